#include "finalizer.h"

#include <unistd.h>

#include "_cgo_export.h"

// Weak symbols, as in internal/memory, so that Go's test binaries link without an interpreter.
#define WEAK __attribute__((weak))

typedef struct {
  const char *name;
  PyObject *(*function)(PyObject *, PyObject *);
  int flags;
  const char *doc;
} method;

enum { NO_ARGUMENTS = 4 };  // METH_NOARGS

// All are of the stable ABI, which instance methods of C functions are not.
extern PyObject *PyDescr_NewMethod(PyObject *, method *) WEAK;
extern PyObject *PyObject_GenericGetAttr(PyObject *, PyObject *) WEAK;
extern int PyObject_GenericSetAttr(PyObject *, PyObject *, PyObject *) WEAK;
extern PyObject *PyUnicode_InternFromString(const char *) WEAK;
extern PyObject *PyLong_FromLongLong(long long) WEAK;
extern long long PyLong_AsLongLong(PyObject *) WEAK;
extern PyObject *Py_BuildValue(const char *, ...) WEAK;
extern void PyErr_SetString(PyObject *, const char *) WEAK;
extern PyObject *PyExc_ValueError WEAK;
extern void Py_DecRef(PyObject *) WEAK;
extern void PyErr_Clear(void) WEAK;
extern void *PyEval_SaveThread(void) WEAK;
extern void PyEval_RestoreThread(void *) WEAK;

static pid_t home;
static int shut;
static int64_t running, generation;
static PyObject *number_name, *generation_name, *out_name;

int64_t pgs_finalizer_running(void) { return __atomic_load_n(&running, __ATOMIC_ACQUIRE); }

void pgs_finalizer_shut(void) { __atomic_store_n(&shut, 1, __ATOMIC_RELEASE); }

// An attribute that is an integer; 0 where __init__ was interrupted before it was set.
// Not by a __getattribute__ of a subclass's, which would be Python.
static int64_t attribute(PyObject *object, PyObject *name) {
  PyObject *value = PyObject_GenericGetAttr(object, name);
  int64_t number = value ? PyLong_AsLongLong(value) : 0;
  PyErr_Clear();
  if (value) Py_DecRef(value);
  return number;
}

// Whoever gets hold of the object again, by a weak reference or out of a cycle, finds
// one that has no handle yet.
static int forget(PyObject *object) {
  PyObject *none = PyLong_FromLongLong(0);
  int failed = !none || PyObject_GenericSetAttr(object, number_name, none);
  PyErr_Clear();
  if (none) Py_DecRef(none);
  return !failed;
}

static PyObject *destroy(PyObject *object, int64_t kind) {
  int64_t number = attribute(object, number_name);
  int64_t *out = (int64_t *)(intptr_t)attribute(object, out_name);
  int64_t result = out ? out[0] : 0, lost = out ? out[1] : 0;
  if (number > 0 || result || lost) {
    int ours = attribute(object, generation_name) == generation;
    // A forked child has no Go to call: the threads of its parent's copy are gone.
    if (ours && getpid() == home && !__atomic_load_n(&shut, __ATOMIC_ACQUIRE) && forget(object)) {
      if (out) out[0] = out[1] = 0;
      __atomic_add_fetch(&running, 1, __ATOMIC_ACQ_REL);
      void *thread = PyEval_SaveThread();
      if (number > 0) pgs_finalizer_end(kind, number);
      if (lost && lost != number) pgs_finalizer_end(kind, lost);
      if (result) pgs_finalizer_release(result);
      PyEval_RestoreThread(thread);
      __atomic_sub_fetch(&running, 1, __ATOMIC_ACQ_REL);
    }
  }
  return Py_BuildValue("");
}

// A method gets the object alone, so that each kind has a function.
#define METHOD(kind)                                                   \
  static PyObject *destroy_##kind(PyObject *object, PyObject *none) { \
    (void)none;                                                        \
    return destroy(object, kind);                                      \
  }
#define ENTRY(kind) {"__del__", destroy_##kind, NO_ARGUMENTS, 0},
#define EACH(of) \
  of(0) of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8) of(9) of(10) of(11) of(12) of(13) of(14) of(15)

EACH(METHOD)

PyObject *pgs_destructor(PyObject *type, int64_t kind, int64_t of_generation) {
  static method destructors[PGS_FINALIZER_KINDS] = {EACH(ENTRY)};
  if (kind < 0 || kind >= PGS_FINALIZER_KINDS) {
    PyErr_SetString(PyExc_ValueError, "destructor: expected a kind of handle that the engine has");
    return 0;
  }
  home = getpid();
  generation = of_generation;
  if (!number_name) number_name = PyUnicode_InternFromString("_number");
  if (!generation_name) generation_name = PyUnicode_InternFromString("_generation");
  if (!out_name) out_name = PyUnicode_InternFromString("_out");
  if (!number_name || !generation_name || !out_name) return 0;
  return PyDescr_NewMethod(type, &destructors[kind]);
}
