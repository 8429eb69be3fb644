#include "python.h"

#include <stdint.h>

#include "memory.h"

void pgs_object_retain(void *object) { Py_IncRef(object); }

void pgs_object_release(void *object) {
  if (!Py_IsInitialized || !Py_IsInitialized()) return;
  int state = PyGILState_Ensure();
  Py_DecRef(object);
  PyGILState_Release(state);
}

static const char CLAIMED[] = "pygsampler.memory";

static void drop_claimed(PyObject *capsule) { pgs_memory_release(PyCapsule_GetPointer(capsule, CLAIMED)); }

// A capsule that owns the memory in the slot, which is emptied: at every moment one of
// the two has it. No line of Python runs when the capsule goes, so no signal handler does.
PyObject *pgs_memory_claim(int64_t *slot) {
  PyObject *capsule = PyCapsule_New((void *)(intptr_t)*slot, CLAIMED, drop_claimed);
  if (capsule) *slot = 0;
  return capsule;
}
