#include "python.h"

void pgs_object_retain(void *object) { Py_IncRef(object); }

void pgs_object_release(void *object) {
  if (!Py_IsInitialized || !Py_IsInitialized()) return;
  int state = PyGILState_Ensure();
  Py_DecRef(object);
  PyGILState_Release(state);
}
