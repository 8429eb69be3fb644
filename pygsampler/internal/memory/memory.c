#define _GNU_SOURCE
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "python.h"

// Freed memories wait here for the next batch: mapping fresh pages costs more
// than sampling into warm ones. Bounded in number and in bytes.
enum { POOL_SLOTS = 16 };
static const int64_t POOL_BYTES = 1LL << 30;
static const int64_t HUGE_PAGE = 2LL << 20;

static pgs_memory *pool[POOL_SLOTS];
static int pooled;
static int64_t pooled_bytes;
static int64_t live, live_bytes;

// Only ever tried, never waited for: a child forked while another thread held the
// lock must not hang on it, and falls back to plain mmap and munmap.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Go's runtime ends the process when it finds no address space for itself: an arena of
// its heap, the stack of a thread. A limit (ulimit -v) is therefore left that much room,
// and what would take it is refused, which is an error of one batch.
static const int64_t HEADROOM = 160LL << 20;

int pgs_memory_has_headroom(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return 1;
  void *room = mmap(NULL, HEADROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return 0;
  munmap(room, HEADROOM);
  return 1;
}

static void count_live(int64_t n, int64_t bytes) {
  __atomic_add_fetch(&live, n, __ATOMIC_RELAXED);
  __atomic_add_fetch(&live_bytes, bytes, __ATOMIC_RELAXED);
}

static void advise(pgs_memory *m) {
  if (m->capacity >= 2 * HUGE_PAGE) madvise(m->data, m->capacity, MADV_HUGEPAGE);
}

// Up to so many bytes come from the heap: a small mapping takes longer to make, to touch and to end than
// what is put there. On whole pages, which have 64 KiB on some ARM systems, so that to pin them pins nobody else's.
static const int64_t SMALL = 1LL << 16;

static void *map_pages(int64_t capacity) {
  if (capacity <= SMALL) {
    void *data = aligned_alloc(getpagesize(), capacity);
    return data ? data : MAP_FAILED;
  }
  return mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void unmap_pages(void *data, int64_t capacity) {
  if (capacity <= SMALL) free(data);
  else munmap(data, capacity);
}

static void *remap_pages(void *data, int64_t capacity, int64_t to) {
  if (capacity > SMALL) return mremap(data, capacity, to, MREMAP_MAYMOVE);
  void *moved = map_pages(to);
  if (moved == MAP_FAILED) return moved;
  memcpy(moved, data, capacity);
  free(data);
  return moved;
}

static int64_t rounded(int64_t bytes) {
  int64_t page = getpagesize(), unit = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : page > 1 << 14 ? page : 1 << 14;
  return (bytes + unit - 1) / unit * unit;
}

static pgs_memory *take_pooled(int64_t capacity) {
  pgs_memory *found = NULL;
  if (pthread_mutex_trylock(&lock)) return NULL;
  int best = -1;
  for (int i = 0; i < pooled; i++)
    if (pool[i]->capacity >= capacity && (best < 0 || pool[i]->capacity < pool[best]->capacity)) best = i;
  if (best >= 0) {
    found = pool[best];
    pool[best] = pool[--pooled];
    pooled_bytes -= found->touched;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static int give_pooled(pgs_memory *m) {
  int kept = 0;
  // A large memory that last held a small batch still has its pages.
  if (m->size > m->touched) m->touched = m->size;
  if (m->touched > POOL_BYTES || pthread_mutex_trylock(&lock)) return 0;
  if (pooled < POOL_SLOTS && pooled_bytes + m->touched <= POOL_BYTES) {
    pool[pooled++] = m;
    pooled_bytes += m->touched;
    kept = 1;
  }
  pthread_mutex_unlock(&lock);
  return kept;
}

pgs_memory *pgs_memory_new(int64_t capacity) {
  pgs_memory *m = take_pooled(capacity);
  if (!m) {
    m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->capacity = rounded(capacity);
    // The bound on a batch is often far above its size: pages that nobody touches
    // must not count as memory.
    m->data = map_pages(m->capacity);
    if (m->data == MAP_FAILED) {
      free(m);
      return NULL;
    }
    if (!pgs_memory_has_headroom()) {
      unmap_pages(m->data, m->capacity);
      free(m);
      return NULL;
    }
    advise(m);
  }
  m->refs = 1;
  m->size = 0;
  m->header = m->data;
  m->device = -1;
  count_live(1, m->capacity);
  return m;
}

int pgs_memory_grow(pgs_memory *m, int64_t capacity) {
  if (capacity <= m->capacity) return 0;
  capacity = rounded(capacity);
  void *data = remap_pages(m->data, m->capacity, capacity);
  if (data == MAP_FAILED) return -1;
  m->data = m->header = data;
  if (!pgs_memory_has_headroom()) {
    // Memory that has left the heap does not go back there.
    if (m->capacity > SMALL) {
      mremap(data, capacity, m->capacity, 0);
    } else {
      count_live(0, capacity - m->capacity);
      m->capacity = capacity;
    }
    return -1;
  }
  count_live(0, capacity - m->capacity);
  m->capacity = capacity;
  advise(m);
  return 0;
}

void pgs_memory_retain(void *memory) {
  __atomic_add_fetch(&((pgs_memory *)memory)->refs, 1, __ATOMIC_RELAXED);
}

void pgs_memory_release(void *memory) {
  pgs_memory *m = memory;
  if (__atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  count_live(-1, -m->capacity);
  if (!m->capacity) {
    if (m->dispose) m->dispose(m);
    if (m->object) pgs_object_release(m->object);
    free(m->extra);
    free(m->header);
    free(m);
    return;
  }
  if (give_pooled(m)) return;
  unmap_pages(m->data, m->capacity);
  free(m);
}

pgs_memory *pgs_memory_empty(const int64_t *header, int64_t words) {
  pgs_memory *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  if (words > 0) {
    m->header = malloc(words * sizeof *header);
    if (!m->header) {
      free(m);
      return NULL;
    }
    memcpy(m->header, header, words * sizeof *header);
  }
  m->refs = 1;
  m->device = -1;
  count_live(1, 0);
  return m;
}

void *pgs_memory_of_object(void *object) {
  pgs_memory *m = pgs_memory_empty(NULL, 0);
  if (!m) return NULL;
  pgs_object_retain(object);
  m->object = object;
  return m;
}

void pgs_memory_count(pgs_memory_counts *counts) {
  counts->live = __atomic_load_n(&live, __ATOMIC_RELAXED);
  counts->live_bytes = __atomic_load_n(&live_bytes, __ATOMIC_RELAXED);
  counts->pooled = __atomic_load_n(&pooled, __ATOMIC_RELAXED);
  counts->pooled_bytes = __atomic_load_n(&pooled_bytes, __ATOMIC_RELAXED);
}

void pgs_memory_trim(void) {
  if (pthread_mutex_trylock(&lock)) return;
  while (pooled) {
    pgs_memory *m = pool[--pooled];
    unmap_pages(m->data, m->capacity);
    free(m);
  }
  pooled_bytes = 0;
  pthread_mutex_unlock(&lock);
}
