// The few functions of CPython that C code needs here. They are weak: the
// interpreter that loads the extension defines them, and a Go test binary, which
// has no interpreter, links without them.
#ifndef PYGSAMPLER_PYTHON_H
#define PYGSAMPLER_PYTHON_H

#include <stddef.h>

typedef struct _object PyObject;
#define PGS_WEAK __attribute__((weak))
extern PyObject *PyCapsule_New(void *, const char *, void (*)(PyObject *)) PGS_WEAK;
extern void *PyCapsule_GetPointer(PyObject *, const char *) PGS_WEAK;
extern int PyCapsule_IsValid(PyObject *, const char *) PGS_WEAK;
extern PyObject *PyTuple_Pack(long, ...) PGS_WEAK;
extern PyObject *PyTuple_New(ptrdiff_t) PGS_WEAK;
extern int PyTuple_SetItem(PyObject *, ptrdiff_t, PyObject *) PGS_WEAK;
extern long long PyLong_AsLongLong(PyObject *) PGS_WEAK;
extern int PyBytes_AsStringAndSize(PyObject *, char **, ptrdiff_t *) PGS_WEAK;
extern PyObject *Py_BuildValue(const char *, ...) PGS_WEAK;
extern PyObject *PyErr_NoMemory(void) PGS_WEAK;
extern PyObject *PyErr_Occurred(void) PGS_WEAK;
extern void PyErr_SetString(PyObject *, const char *) PGS_WEAK;
extern PyObject *PyExc_RuntimeError PGS_WEAK;
extern void Py_IncRef(PyObject *) PGS_WEAK;
extern void Py_DecRef(PyObject *) PGS_WEAK;
extern int Py_IsInitialized(void) PGS_WEAK;
extern int PyGILState_Ensure(void) PGS_WEAK;
extern void PyGILState_Release(int) PGS_WEAK;

// PyMethodDef.
typedef struct {
  const char *name;
  void *function;
  int flags;
  const char *doc;
} pgs_method;
extern PyObject *PyCFunction_NewEx(pgs_method *, PyObject *, PyObject *) PGS_WEAK;

// Needs the interpreter's lock.
void pgs_object_retain(void *object);

// Takes the interpreter's lock itself: a consumer of DLPack may drop its tensor
// from any thread. Leaks where the interpreter is gone.
void pgs_object_release(void *object);

#endif
