// Four threads that make, grow, share and give back the engine's memories, for the sanitizers:
// test_sanitizers.py compiles it together with pygsampler/internal/memory/*.c.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

enum { THREADS = 4, STEPS = 6000, KEPT = 8 };

static void *work(void *number) {
  unsigned seed = (unsigned)(intptr_t)number;
  pgs_memory *kept[KEPT] = {0};
  for (int i = 0; i < STEPS; i++) {
    pgs_memory **one = &kept[rand_r(&seed) % KEPT];
    if (*one) {
      if (rand_r(&seed) % 3 == 0) {
        pgs_memory_retain(*one);
        pgs_memory_release(*one);
      }
      ((char *)(*one)->data)[(*one)->capacity - 1] = 1;
#ifdef GROW
      if (rand_r(&seed) % 4 == 0) pgs_memory_grow(*one, (*one)->capacity + rand_r(&seed) % 100000);
      ((char *)(*one)->data)[(*one)->capacity - 1] = 1;
#endif
      (*one)->size = (*one)->capacity / 2;
      pgs_memory_release(*one);
      *one = NULL;
    } else if (rand_r(&seed) % 5 == 0) {
      int64_t header[4] = {1, 2, 3, 4};
      pgs_memory_release(pgs_memory_empty(header, 4));
    } else {
      *one = pgs_memory_new(1 + rand_r(&seed) % 300000);
    }
    if (i % 1500 == 0) pgs_memory_trim();
  }
  for (int i = 0; i < KEPT; i++)
    if (kept[i]) pgs_memory_release(kept[i]);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pgs_memory_trim();
  pgs_memory_counts counts;
  pgs_memory_count(&counts);
  printf("%lld %lld\n", (long long)counts.live, (long long)counts.pooled);
#ifdef BEYOND
  char *block = malloc(8);
  return block[BEYOND];
#endif
  return 0;
}
