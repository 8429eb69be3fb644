#include "device.h"

#include <stdlib.h>
#include <unistd.h>

#include "../../../gpu/calls.h"

enum { DEVICES = 64 };
static int64_t bytes_of[DEVICES];

void pgs_device_count(int64_t device, int64_t bytes) {
  if (device >= 0 && device < DEVICES) __atomic_add_fetch(&bytes_of[device], bytes, __ATOMIC_RELAXED);
}

int64_t pgs_device_bytes(int64_t device) {
  return device >= 0 && device < DEVICES ? __atomic_load_n(&bytes_of[device], __ATOMIC_RELAXED) : 0;
}

// True if the driver has done it, also if the thread's context could not be restored.
static int done(int result) { return !result || (result & ~RESULT) == BY_POP; }

static int free_now(handle context, uint64_t address) { IN_CONTEXT(context, cuMemFree((CUdeviceptr)address)); }

// Lets the release stream wait for the consumers. Their owners may have destroyed
// them: where one gives an error, the caller waits for the whole context.
static int after_consumers(const pgs_lease *l) {
  handle event = 0;
  int result = l->everything;
  if (result || !l->consumers) return result;
  result = gpu_event_create(l->context, CU_EVENT_DISABLE_TIMING, &event);
  if (result) return result;
  // One event for all: a wait is for what was recorded when it was asked for.
  for (int i = 0; i < l->consumers && !result; i++) {
    result = gpu_event_record(l->context, event, l->consumer[i]);
    if (!result) result = gpu_stream_wait(l->context, l->stream, event);
  }
  if (!done(gpu_event_destroy(l->context, event))) gpu_event_destroy(l->context, event);
  return result;
}

static void give_back(pgs_memory *m) {
  const pgs_lease *l = m->extra;
  pgs_device_count(m->device, -m->size);
  if (!m->data || l->pid != getpid()) return;
  int result = after_consumers(l);
  if (result || !l->pooled) gpu_synchronize(l->context);
  // Nobody is left to be told of an error; a second try costs nothing where the
  // first has worked, and a lost block is lost for as long as the process lives.
  for (int tries = 0; tries < 3; tries++) {
    result = l->pooled ? gpu_free(l->context, l->stream, (uint64_t)m->data) : free_now(l->context, (uint64_t)m->data);
    if (done(result)) return;
  }
}

pgs_memory *pgs_device_over(int64_t device, uint64_t address, int64_t size, const int64_t *header, int64_t words) {
  pgs_memory *m = pgs_memory_empty(header, words);
  if (!m) return NULL;
  m->data = (void *)address;
  m->size = size;
  m->device = device;
  return m;
}

pgs_memory *pgs_device_own(int64_t device, uint64_t address, int64_t size, const int64_t *header, int64_t words,
                           pgs_lease lease) {
  pgs_lease *l = malloc(sizeof *l);
  pgs_memory *m = l ? pgs_device_over(device, address, size, header, words) : NULL;
  if (!m) {
    free(l);
    return NULL;
  }
  *l = lease;
  l->pid = getpid();
  m->extra = l;
  m->dispose = give_back;
  pgs_device_count(device, size);
  return m;
}

void pgs_device_consumer(pgs_memory *m, uintptr_t stream) {
  if (m->dispose != give_back) return;
  pgs_lease *l = m->extra;
  for (int i = 0; i < l->consumers; i++)
    if (l->consumer[i] == stream) return;
  // The per-thread stream (2) has another meaning on the thread that releases.
  if (stream == (uintptr_t)CU_STREAM_PER_THREAD || l->consumers == PGS_CONSUMERS) l->everything = 1;
  else l->consumer[l->consumers++] = stream;
}

void pgs_device_filled_in(pgs_memory *m, uintptr_t stream) {
  if (m->dispose != give_back) return;
  pgs_lease *l = m->extra;
  l->filling = 1;
  l->filler = stream;
}

int pgs_device_filler(const pgs_memory *m, uintptr_t *stream) {
  if (m->dispose != give_back) return 0;
  const pgs_lease *l = m->extra;
  *stream = l->filler;
  return l->filling;
}

typedef struct { int64_t pid, number; } hold;

// A function of Go, which has the registry of pages and the list of spans. A forked child must not
// enter its parent's Go.
extern void pgsLetGo(int64_t number);

static void let_go(pgs_memory *m) {
  const hold *h = m->extra;
  if (h->pid == getpid()) pgsLetGo(h->number);
}

pgs_memory *pgs_device_held(int64_t device, uint64_t address, int64_t size, int64_t number) {
  hold *h = malloc(sizeof *h);
  pgs_memory *m = h ? pgs_device_over(device, address, size, NULL, 0) : NULL;
  if (!m) {
    free(h);
    return NULL;
  }
  *h = (hold){getpid(), number};
  m->extra = h;
  m->dispose = let_go;
  return m;
}
