// Arrow's C data interface, and the pair of structs that one export hands out.
#ifndef PYGSAMPLER_ARROW_H
#define PYGSAMPLER_ARROW_H

#include <stdint.h>

#include "memory.h"

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

// Arrow's C device data interface.
struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  int32_t device_type;
  void *sync_event;
  int64_t reserved[3];
};

typedef struct pgs_arrow_pair {
  struct ArrowSchema schema;
  struct ArrowArray array;
  int64_t device;  // -1: the host
} pgs_arrow_pair;

// A primitive array with the given format over data, which the array keeps alive
// by a reference to memory. NULL when there is no memory.
pgs_arrow_pair *pgs_arrow_new(const char *format, int64_t flags, pgs_memory *memory, void *data, int64_t length);

// A copy of someone else's pair whose release does nothing: it can be imported
// without taking the original away from its owner. NULL when there is no memory.
pgs_arrow_pair *pgs_arrow_borrow(const void *schema, const void *array);
void pgs_arrow_free(pgs_arrow_pair *pair);

// The pair as two PyCapsules ("arrow_schema", "arrow_array"); frees the pair.
void *pgs_arrow_export(void *pair);

// The pair as "arrow_schema" and "arrow_device_array"; frees the pair.
void *pgs_arrow_export_device(void *pair);

#endif
