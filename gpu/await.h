/* Waiting for a word that a device writes. */

#ifndef GPU_AWAIT_H
#define GPU_AWAIT_H

#include <stdint.h>
#include <time.h>

static inline int64_t gpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline void gpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Nanoseconds. */
static inline int gpu_await(const int64_t *word, int64_t spin, int64_t limit)
{
    int64_t begin = gpu_now();
    for (;;) {
        for (int look = 0; look < 8; look++) {
            if (__atomic_load_n(word, __ATOMIC_ACQUIRE))
                return 1;
            gpu_pause();
        }
        int64_t passed = gpu_now() - begin;
        if (passed >= limit)
            return 0;
        if (passed >= spin) {
            struct timespec nap = {0, 50000};
            nanosleep(&nap, 0);
        }
    }
}

#endif
