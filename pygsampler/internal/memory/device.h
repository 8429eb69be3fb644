// Memory on a CUDA device. It is given back in C and in stream order: the device
// may still read it when its last reference goes.
#ifndef PYGSAMPLER_DEVICE_H
#define PYGSAMPLER_DEVICE_H

#include <stdint.h>

#include "memory.h"

enum { PGS_CONSUMERS = 8 };

// The driver's handles that the release of a memory needs, as integers.
typedef struct pgs_lease {
  int64_t pid;          // the process that has it: a forked child has no driver to give it back to
  uintptr_t context;
  uintptr_t stream;     // in which it is freed, alive as long as the process
  int32_t pooled;       // cuMemFreeAsync; else cuMemFree, once the device has done its work
  int32_t everything;   // wait for all work of the context, not for consumers alone
  int32_t filling;      // what fills it is put into the stream `filler` by others
  uintptr_t filler;
  int32_t consumers;
  uintptr_t consumer[PGS_CONSUMERS];  // streams whose work may read it
} pgs_lease;

// A memory that owns size bytes at the device's address, with a copy of the words
// of a batch's header. NULL (nothing is owned) when the host has no memory.
pgs_memory *pgs_device_own(int64_t device, uint64_t address, int64_t size, const int64_t *header, int64_t words,
                           pgs_lease lease);

// A memory over an address of another owner's: its release gives the header back.
pgs_memory *pgs_device_over(int64_t device, uint64_t address, int64_t size, const int64_t *header, int64_t words);

// A memory whose release ends what Go holds under a number.
pgs_memory *pgs_device_held(int64_t device, uint64_t address, int64_t size, int64_t number);

// The memory is freed only after the work that is in the stream then.
void pgs_device_consumer(pgs_memory *memory, uintptr_t stream);

void pgs_device_filled_in(pgs_memory *memory, uintptr_t stream);
int pgs_device_filler(const pgs_memory *memory, uintptr_t *stream);

// The bytes that memories own on a device, and a change of their number.
int64_t pgs_device_bytes(int64_t device);
void pgs_device_count(int64_t device, int64_t bytes);

#endif
