#include "owner.h"

#include <unistd.h>

#include "_cgo_export.h"

// As in internal/memory: weak, so that Go's test binaries link without an interpreter.
#define WEAK __attribute__((weak))

typedef struct {
  const char *name;
  PyObject *(*function)(PyObject *, PyObject *);
  int flags;
  const char *doc;
} method;

enum { ONE_ARGUMENT = 8 };  // METH_O

extern PyObject *PyCFunction_NewEx(method *, PyObject *, PyObject *) WEAK;
extern PyObject *PyInstanceMethod_New(PyObject *) WEAK;
extern PyObject *PyObject_GenericGetAttr(PyObject *, PyObject *) WEAK;
extern int PyObject_GenericSetAttr(PyObject *, PyObject *, PyObject *) WEAK;
extern PyObject *PyUnicode_InternFromString(const char *) WEAK;
extern PyObject *PyLong_FromLongLong(long long) WEAK;
extern long long PyLong_AsLongLong(PyObject *) WEAK;
extern PyObject *Py_BuildValue(const char *, ...) WEAK;
extern void Py_DecRef(PyObject *) WEAK;
extern void PyErr_Clear(void) WEAK;
extern void *PyEval_SaveThread(void) WEAK;
extern void PyEval_RestoreThread(void *) WEAK;

enum { KIND_BITS = 8 };

static pid_t home;
static int shut;
static int64_t running;
static PyObject *number_name, *generation_name;

int64_t pgs_owner_running(void) { return __atomic_load_n(&running, __ATOMIC_ACQUIRE); }

void pgs_owner_shut(void) { __atomic_store_n(&shut, 1, __ATOMIC_RELEASE); }

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

static PyObject *destroy(PyObject *about, PyObject *object) {
  int64_t number = attribute(object, number_name);
  if (number > 0) {
    int64_t word = PyLong_AsLongLong(about);
    int ours = attribute(object, generation_name) == word >> KIND_BITS;
    // A forked child has no Go to call: the threads of its parent's copy are gone.
    if (ours && getpid() == home && !__atomic_load_n(&shut, __ATOMIC_ACQUIRE) && forget(object)) {
      __atomic_add_fetch(&running, 1, __ATOMIC_ACQ_REL);
      void *thread = PyEval_SaveThread();
      pgs_owner_end(word & ((1 << KIND_BITS) - 1), number);
      PyEval_RestoreThread(thread);
      __atomic_sub_fetch(&running, 1, __ATOMIC_ACQ_REL);
    }
  }
  return Py_BuildValue("");
}

PyObject *pgs_destructor(int64_t kind, int64_t generation) {
  static method destructor = {"__del__", destroy, ONE_ARGUMENT, 0};
  home = getpid();
  if (!number_name) number_name = PyUnicode_InternFromString("_number");
  if (!generation_name) generation_name = PyUnicode_InternFromString("_generation");
  if (!number_name || !generation_name) return 0;
  PyObject *about = PyLong_FromLongLong(generation << KIND_BITS | kind);
  PyObject *function = about ? PyCFunction_NewEx(&destructor, about, 0) : 0;
  // A function of C's is no method by itself.
  PyObject *bound = function ? PyInstanceMethod_New(function) : 0;
  if (function) Py_DecRef(function);
  if (about) Py_DecRef(about);
  return bound;
}
