// DLPack capsules, legacy and versioned (DLPack 1.0): of one-dimensional signed
// integers, and of arrays of any type and shape, in memory of the host or of a device.
// Each holds one reference to its memory.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dlpack.h"
#include "memory.h"
#include "python.h"

enum { MOST_DIMS = 8 };

// One allocation holds the struct that the consumer sees and what it points to.
typedef struct {
  union { dl_managed legacy; dl_managed_versioned versioned; } managed;
  int64_t shape[MOST_DIMS], strides[MOST_DIMS];
  pgs_memory *memory;
} export;

static void drop(void *context) {
  export *e = context;
  pgs_memory_release(e->memory);
  free(e);
}

static void delete_legacy(dl_managed *m) { drop(m->context); }
static void delete_versioned(dl_managed_versioned *m) { drop(m->context); }

// A consumed capsule has another name; then the consumer's deleter call is due,
// not ours.
static void capsule_legacy(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor")) delete_legacy(PyCapsule_GetPointer(capsule, "dltensor"));
}
static void capsule_versioned(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

// make exports an array without gaps; dims has at most MOST_DIMS sizes. The last dimension is the
// innermost one, or the first where t.ndim is negative: minus how many there are.
static PyObject *make(void *memory, dl_tensor t, const int64_t *dims, int32_t readonly, int32_t versioned) {
  int turned = t.ndim < 0;
  if (turned) t.ndim = -t.ndim;
  export *e = calloc(1, sizeof *e);
  if (!e) return PyErr_NoMemory();
  memcpy(e->shape, dims, (size_t)t.ndim * sizeof *dims);
  int64_t stride = 1;
  for (int32_t i = t.ndim - 1; i >= 0; i--) {
    int32_t d = turned ? t.ndim - 1 - i : i;
    e->strides[d] = stride;
    stride *= dims[d];
  }
  e->memory = memory;
  t.shape = e->shape;
  t.strides = e->strides;
  pgs_memory_retain(memory);
  PyObject *capsule;
  if (versioned) {
    e->managed.versioned = (dl_managed_versioned){
        .version = {1, 0}, .context = e, .deleter = delete_versioned, .flags = readonly ? DL_READ_ONLY : 0, .tensor = t};
    capsule = PyCapsule_New(&e->managed.versioned, "dltensor_versioned", capsule_versioned);
  } else {
    e->managed.legacy = (dl_managed){.tensor = t, .context = e, .deleter = delete_legacy};
    capsule = PyCapsule_New(&e->managed.legacy, "dltensor", capsule_legacy);
  }
  if (!capsule) drop(e);
  return capsule;
}

PyObject *pgs_dlpack_export_device(void *memory, void *data, int64_t length, int32_t bits, int32_t readonly,
                                   int32_t versioned, int32_t device_type, int32_t device_id) {
  dl_tensor t = {.data = data, .device = {device_type, device_id}, .ndim = 1, .dtype = {DL_INT, (uint8_t)bits, 1}};
  return make(memory, t, &length, readonly, versioned);
}

PyObject *pgs_dlpack_export(void *memory, void *data, int64_t length, int32_t bits, int32_t readonly,
                            int32_t versioned) {
  return pgs_dlpack_export_device(memory, data, length, bits, readonly, versioned, DL_CPU, 0);
}

// code is DLPack's of the type; the caller has seen to it that ndim is at most MOST_DIMS either way.
PyObject *pgs_dlpack_export_tensor(void *memory, void *data, int64_t *dims, int32_t ndim, int32_t code, int32_t bits,
                                   int32_t readonly, int32_t versioned, int32_t device_type, int32_t device_id) {
  dl_tensor t = {
      .data = data, .device = {device_type, device_id}, .ndim = ndim, .dtype = {(uint8_t)code, (uint8_t)bits, 1}};
  return make(memory, t, dims, readonly, versioned);
}
