// Tensors of another framework, all of a result by one call, through DLPack's C exchange API.
#include <stdlib.h>

#include "dlpack.h"
#include "memory.h"
#include "python.h"

typedef struct tensors tensors;

typedef struct {
  dl_managed_versioned managed;
  int64_t length;
  tensors *of;
} tensor;

// One allocation holds all tensors of a result, and one reference to its memory: it goes with the
// last of them.
struct tensors {
  int64_t refs;  // atomic
  pgs_memory *memory;
  int64_t device;  // -1: the host; else the index of a CUDA device
  tensor at[];
};

typedef struct {
  int64_t code, bits;  // the type, as DLPack has it
  int64_t length, more, offset;
} descriptor;

static int64_t stride = 1;

static void drop(tensors *of) {
  if (__atomic_sub_fetch(&of->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  pgs_memory_release(of->memory);
  free(of);
}

// Called by any thread, with or without the interpreter's lock, and after the interpreter's end.
// It happens once: a framework that fails may have called it already, or not.
static void delete_tensor(dl_managed_versioned *m) {
  tensors *of = m->context;
  if (!of) return;
  m->context = NULL;
  drop(of);
}

static PyObject *make(PyObject *result, const dl_exchange_api *api, tensors *all, char *data, const int64_t *words,
                      const descriptor *descriptors, int64_t count) {
  int64_t device = all->device;
  for (int64_t i = 0; i < count; i++) {
    const descriptor *d = &descriptors[i];
    void *object = NULL;
    if (!words[d->offset]) {
      object = Py_BuildValue("");
    } else {
      tensor *t = &all->at[i];
      t->length = words[d->length] + d->more;
      t->managed = (dl_managed_versioned){
          .version = {1, 0},
          .context = all,
          .deleter = delete_tensor,
          .tensor = {.data = data + words[d->offset],
                     .device = {device < 0 ? DL_CPU : DL_CUDA, device < 0 ? 0 : (int32_t)device},
                     .ndim = 1,
                     .dtype = {(uint8_t)d->code, (uint8_t)d->bits, 1},
                     .shape = &t->length,
                     .strides = &stride}};
      __atomic_add_fetch(&all->refs, 1, __ATOMIC_RELAXED);
      if (api->to_object(&t->managed, &object) || !object) {
        delete_tensor(&t->managed);
        object = NULL;
      }
    }
    if (!object) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "tensors: expected a tensor by DLPack, got none");
      return NULL;
    }
    if (PyTuple_SetItem(result, i, object)) return NULL;
  }
  return result;
}

// tensors(api, memory, device, data, words, descriptors): addresses but for the device, and bytes of
// descriptors. `length` and `offset` are places among the words; an offset of 0 there gives None.
static PyObject *make_tensors(PyObject *self, PyObject *const *arguments, ptrdiff_t given) {
  (void)self;
  int64_t number[5];
  char *bytes;
  ptrdiff_t size;
  if (given != 6) {
    PyErr_SetString(PyExc_RuntimeError, "tensors: expected 6 arguments");
    return NULL;
  }
  for (int i = 0; i < 5; i++) {
    number[i] = PyLong_AsLongLong(arguments[i]);
    if (number[i] == -1 && PyErr_Occurred()) return NULL;
  }
  if (PyBytes_AsStringAndSize(arguments[5], &bytes, &size)) return NULL;
  int64_t count = size / (ptrdiff_t)sizeof(descriptor);
  PyObject *result = PyTuple_New(count);
  if (!result) return NULL;
  tensors *all = malloc(sizeof *all + (size_t)count * sizeof *all->at);
  if (!all) {
    Py_DecRef(result);
    return PyErr_NoMemory();
  }
  all->refs = 1;
  all->memory = (pgs_memory *)(intptr_t)number[1];
  all->device = number[2];
  pgs_memory_retain(all->memory);
  PyObject *made = make(result, (const dl_exchange_api *)(intptr_t)number[0], all, (char *)(intptr_t)number[3],
                        (const int64_t *)(intptr_t)number[4], (const descriptor *)bytes, count);
  drop(all);
  if (!made) Py_DecRef(result);
  return made;
}

// The function as an object of Python's: by ctypes a call would cost as much as two tensors.
PyObject *pgs_tensor_maker(void) {
  enum { FAST_CALL = 0x80 };
  static pgs_method method = {"tensors", (void *)make_tensors, FAST_CALL, NULL};
  return PyCFunction_NewEx(&method, NULL, NULL);
}
