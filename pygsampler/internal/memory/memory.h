// A refcounted memory that C owns: outputs of a batch live here, and every view
// of them (a pgs.Array, a DLPack capsule, an Arrow array) holds one reference.
// Nothing in this file enters Go, so the last reference may be dropped by any
// thread, after a fork, or while the interpreter ends.
#ifndef PYGSAMPLER_MEMORY_H
#define PYGSAMPLER_MEMORY_H

#include <stdint.h>

// Python reads the first five words (refs, data, size, header, device): keep their
// order.
typedef struct pgs_memory {
  int64_t refs;      // atomic
  void *data;        // where the device has one, an address of the device's
  int64_t size;      // bytes written
  void *header;      // a batch's words on the host: data itself, or a copy that the memory owns
  int64_t device;    // -1: the host; else the index of the CUDA device that reads data
  int64_t capacity;  // bytes mapped at data; 0 where this file did not map them
  int64_t touched;   // the most bytes that any batch wrote here: pages that stay
  void *object;      // the PyObject that owns data, or NULL
  // Gives back what this file did not map, or NULL; extra is its own, from malloc.
  void (*dispose)(struct pgs_memory *);
  void *extra;
} pgs_memory;

// A memory of at least capacity bytes with one reference, from the pool where it
// has one; NULL when the system has no memory. Its contents are undefined.
pgs_memory *pgs_memory_new(int64_t capacity);

// True if the process may map as much as Go's runtime could want for itself.
int pgs_memory_has_headroom(void);

// Makes the capacity at least the given one and keeps the contents; data may
// move. 0, or -1 (capacity unchanged) when the system has no memory. Only for the
// sole owner.
int pgs_memory_grow(pgs_memory *memory, int64_t capacity);

void pgs_memory_retain(void *memory);
void pgs_memory_release(void *memory);

// A memory that keeps a Python object alive. Needs the interpreter's lock.
void *pgs_memory_of_object(void *object);

// A memory with one reference and no bytes of its own yet; NULL when there is none.
// words of a batch's header are copied, if there are any.
pgs_memory *pgs_memory_empty(const int64_t *header, int64_t words);

typedef struct pgs_memory_counts {
  int64_t live, live_bytes, pooled, pooled_bytes;
} pgs_memory_counts;
void pgs_memory_count(pgs_memory_counts *counts);

// Unmaps what the pool holds.
void pgs_memory_trim(void);

#endif
