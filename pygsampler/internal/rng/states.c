// Philox4x32-10 for many vertices: Go twin State in philox.go, which a test compares.
#include "states.h"

#include <string.h>

#include "mix.h"

#define M0 0xD2511F53u
#define M1 0xCD9E8D57u
#define W0 0x9E3779B9u
#define W1 0xBB67AE85u

static void by_one(uint64_t *v, int64_t n, const uint32_t key[5]) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t c0 = (uint32_t)v[i], c1 = key[2] | (uint32_t)(v[i] >> 32 & 0xFFFF), c2 = key[3], c3 = key[4];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++, k0 += W0, k1 += W1) {
      uint64_t p0 = (uint64_t)c0 * M0, p1 = (uint64_t)c2 * M1;
      c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, c1 = (uint32_t)p1;
      c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1, c3 = (uint32_t)p0;
    }
    v[i] = c0 | (uint64_t)c1 << 32;
  }
}

// Puts the uniform number of the first draw of a state in the state's place.
static inline __attribute__((always_inline)) void uniforms(uint64_t *v, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const double u = (double)(int64_t)(mix(v[i] + GOLDEN) >> 12 << 1 | 1) * 0x1p-53;
    memcpy(v + i, &u, sizeof u);
  }
}

#ifdef __x86_64__
#include <immintrin.h>

// Two vectors of vertices side by side: one hides the latency of the other's products. A word of 32 bits stands in 64, and
// what is above it does not count, since products take the lower halves alone.
#define BY_VECTORS(BITS, ISA) \
  __attribute__((target(ISA))) static void by_##BITS(uint64_t *v, int64_t n, const uint32_t key[5]) { \
    typedef uint64_t words __attribute__((vector_size(BITS / 8))); \
    enum { LANES = BITS / 64 }; \
    const words none = {0}, m0 = none + M0, m1 = none + M1; \
    int64_t i = 0; \
    for (; i + 2 * LANES <= n; i += 2 * LANES) { \
      words c[2][4]; \
      for (int h = 0; h < 2; h++) { \
        words x; \
        memcpy(&x, v + i + LANES * h, sizeof x); \
        c[h][0] = x, c[h][1] = (x >> 32 & 0xFFFF) | key[2], c[h][2] = none + key[3], c[h][3] = none + key[4]; \
      } \
      uint32_t k0 = key[0], k1 = key[1]; \
      for (int round = 0; round < 10; round++, k0 += W0, k1 += W1) { \
        for (int h = 0; h < 2; h++) { \
          words p0 = (words)_mm##BITS##_mul_epu32((__m##BITS##i)c[h][0], (__m##BITS##i)m0); \
          words p1 = (words)_mm##BITS##_mul_epu32((__m##BITS##i)c[h][2], (__m##BITS##i)m1); \
          c[h][0] = p1 >> 32 ^ c[h][1] ^ k0, c[h][1] = p1; \
          c[h][2] = p0 >> 32 ^ c[h][3] ^ k1, c[h][3] = p0; \
        } \
      } \
      for (int h = 0; h < 2; h++) { \
        words state = (c[h][0] & 0xFFFFFFFF) | c[h][1] << 32; \
        memcpy(v + i + LANES * h, &state, sizeof state); \
      } \
    } \
    by_one(v + i, n - i, key); \
  }

BY_VECTORS(256, "avx2")
BY_VECTORS(512, "avx512f,avx512dq")

__attribute__((target("avx512f,avx512dq"))) static void uniforms_wide(uint64_t *v, int64_t n) { uniforms(v, n); }

static int has(int bits) {
  return bits == 512 ? __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") : __builtin_cpu_supports("avx2");
}
#endif

void pgs_states(uint64_t *v, int64_t n, const uint32_t key[5], int widest) {
#ifdef __x86_64__
  if (widest >= 512 && has(512)) {
    by_512(v, n, key);
    return;
  }
  if (widest >= 256 && has(256)) {
    by_256(v, n, key);
    return;
  }
#endif
  by_one(v, n, key);
}

void pgs_uniforms(uint64_t *v, int64_t n, const uint32_t key[5], int widest) {
  pgs_states(v, n, key, widest);
#ifdef __x86_64__
  if (widest >= 512 && has(512)) {
    uniforms_wide(v, n);
    return;
  }
#endif
  uniforms(v, n);
}
