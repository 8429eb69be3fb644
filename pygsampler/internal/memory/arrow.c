#include "arrow.h"

#include <stdlib.h>
#include <string.h>

#include "python.h"

typedef struct {
  const void *buffers[2];  // validity (none), values
  pgs_memory *memory;
} array_private;

static void release_schema(struct ArrowSchema *s) {
  free((void *)s->format);
  s->release = NULL;
}

static void release_array(struct ArrowArray *a) {
  array_private *p = a->private_data;
  pgs_memory_release(p->memory);
  free(p);
  a->release = NULL;
}

pgs_arrow_pair *pgs_arrow_new(const char *format, int64_t flags, pgs_memory *memory, void *data, int64_t length) {
  pgs_arrow_pair *pair = calloc(1, sizeof *pair);
  array_private *p = calloc(1, sizeof *p);
  char *copy = strdup(format);
  if (!pair || !p || !copy) {
    free(pair);
    free(p);
    free(copy);
    return NULL;
  }
  p->buffers[1] = data;
  p->memory = memory;
  pair->device = memory->device;
  pgs_memory_retain(memory);
  pair->schema = (struct ArrowSchema){.format = copy, .name = "", .flags = flags, .release = release_schema};
  pair->array = (struct ArrowArray){
      .length = length, .n_buffers = 2, .buffers = p->buffers, .release = release_array, .private_data = p};
  return pair;
}

static void keep_schema(struct ArrowSchema *s) { s->release = NULL; }
static void keep_array(struct ArrowArray *a) { a->release = NULL; }

pgs_arrow_pair *pgs_arrow_borrow(const void *schema, const void *array) {
  pgs_arrow_pair *pair = calloc(1, sizeof *pair);
  if (!pair) return NULL;
  pair->schema = *(const struct ArrowSchema *)schema;
  pair->array = *(const struct ArrowArray *)array;
  if (pair->schema.release) pair->schema.release = keep_schema;
  if (pair->array.release) pair->array.release = keep_array;
  return pair;
}

void pgs_arrow_free(pgs_arrow_pair *pair) {
  if (pair->schema.release) pair->schema.release(&pair->schema);
  if (pair->array.release) pair->array.release(&pair->array);
  free(pair);
}

// The capsule owns its struct; a consumer that moved it out left release NULL.
static void free_schema(PyObject *capsule) {
  struct ArrowSchema *s = PyCapsule_GetPointer(capsule, "arrow_schema");
  if (s->release) s->release(s);
  free(s);
}
static void free_array(PyObject *capsule) {
  struct ArrowArray *a = PyCapsule_GetPointer(capsule, "arrow_array");
  if (a->release) a->release(a);
  free(a);
}

static void free_device_array(PyObject *capsule) {
  struct ArrowDeviceArray *a = PyCapsule_GetPointer(capsule, "arrow_device_array");
  if (a->array.release) a->array.release(&a->array);
  free(a);
}

// Two capsules; a is, or is the start of, the second one's struct, from malloc.
static void *export(pgs_arrow_pair *pair, struct ArrowArray *a, const char *name, void (*destroy)(PyObject *)) {
  struct ArrowSchema *s = malloc(sizeof *s);
  if (!s || !a) {
    free(s);
    free(a);
    pgs_arrow_free(pair);
    return PyErr_NoMemory();
  }
  *s = pair->schema;
  *a = pair->array;
  free(pair);
  PyObject *result = NULL;
  PyObject *schema = PyCapsule_New(s, "arrow_schema", free_schema);
  PyObject *array = PyCapsule_New(a, name, destroy);
  if (schema && array) result = PyTuple_Pack(2, schema, array);
  if (schema) Py_DecRef(schema);
  else { s->release(s); free(s); }
  if (array) Py_DecRef(array);
  else { a->release(a); free(a); }
  return result;
}

void *pgs_arrow_export(void *pair) {
  return export(pair, malloc(sizeof(struct ArrowArray)), "arrow_array", free_array);
}

enum { ARROW_DEVICE_CPU = 1, ARROW_DEVICE_CUDA = 2 };

void *pgs_arrow_export_device(void *opaque) {
  pgs_arrow_pair *pair = opaque;
  struct ArrowDeviceArray *a = calloc(1, sizeof *a);
  if (a) {
    // No event to wait for: a batch is handed out when its content is there.
    a->device_id = pair->device;
    a->device_type = pair->device < 0 ? ARROW_DEVICE_CPU : ARROW_DEVICE_CUDA;
  }
  return export(pair, (struct ArrowArray *)a, "arrow_device_array", free_device_array);
}
