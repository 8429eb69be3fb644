// The structs of DLPack 1's ABI, as far as they are needed here: tensors in capsules, and the table
// of functions by which a framework exchanges them without capsules.
#ifndef PYGSAMPLER_DLPACK_H
#define PYGSAMPLER_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_INT = 0, DL_READ_ONLY = 1 };

typedef struct {
  void *data;
  struct { int32_t type, id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
  dl_tensor tensor;
  void *context;
  void (*deleter)(struct dl_managed *);
} dl_managed;

typedef struct dl_managed_versioned {
  struct { uint32_t major, minor; } version;
  void *context;
  void (*deleter)(struct dl_managed_versioned *);
  uint64_t flags;
  dl_tensor tensor;
} dl_managed_versioned;

// In capsules named "dlpack_exchange_api", of DLPack 1.2 and later. Only one function is called
// here; what follows it is left out.
typedef struct {
  struct { uint32_t major, minor; } version;
  void *previous;
  void *allocator, *from_object;
  // Takes the tensor over, and gives an object of the framework's; -1 with an exception set.
  int (*to_object)(dl_managed_versioned *, void **);
} dl_exchange_api;

#endif
