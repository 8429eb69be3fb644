// Philox4x32-10 for many vertices: Go twin State in philox.go, which a test compares.
#include "states.h"

#include <string.h>

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
    uint64_t z = v[i] + 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    const double u = (double)(int64_t)(z >> 12 << 1 | 1) * 0x1p-53;
    memcpy(v + i, &u, sizeof u);
  }
}

#ifdef __x86_64__
#include <immintrin.h>

// Eight vertices side by side, two vectors of four: one hides the latency of the other's products. A word of 32 bits
// stands in 64, and what is above it does not count, since products take the lower halves alone.
__attribute__((target("avx2"))) static void by_eight(uint64_t *v, int64_t n, const uint32_t key[5]) {
  const __m256i m0 = _mm256_set1_epi64x(M0), m1 = _mm256_set1_epi64x(M1), low = _mm256_set1_epi64x(0xFFFFFFFF);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256i c[2][4];
    for (int h = 0; h < 2; h++) {
      __m256i x = _mm256_loadu_si256((const __m256i *)(v + i + 4 * h));
      c[h][0] = x;
      c[h][1] = _mm256_or_si256(_mm256_set1_epi64x(key[2]), _mm256_and_si256(_mm256_srli_epi64(x, 32), _mm256_set1_epi64x(0xFFFF)));
      c[h][2] = _mm256_set1_epi64x(key[3]), c[h][3] = _mm256_set1_epi64x(key[4]);
    }
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++, k0 += W0, k1 += W1) {
      __m256i a = _mm256_set1_epi64x(k0), b = _mm256_set1_epi64x(k1);
      for (int h = 0; h < 2; h++) {
        __m256i p0 = _mm256_mul_epu32(c[h][0], m0), p1 = _mm256_mul_epu32(c[h][2], m1);
        c[h][0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c[h][1]), a), c[h][1] = p1;
        c[h][2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c[h][3]), b), c[h][3] = p0;
      }
    }
    for (int h = 0; h < 2; h++) {
      __m256i state = _mm256_or_si256(_mm256_and_si256(c[h][0], low), _mm256_slli_epi64(c[h][1], 32));
      _mm256_storeu_si256((__m256i *)(v + i + 4 * h), state);
    }
  }
  by_one(v + i, n - i, key);
}

// by_eight with vectors of eight, sixteen vertices at a time.
__attribute__((target("avx512f,avx512dq"))) static void by_sixteen(uint64_t *v, int64_t n, const uint32_t key[5]) {
  const __m512i m0 = _mm512_set1_epi64(M0), m1 = _mm512_set1_epi64(M1), low = _mm512_set1_epi64(0xFFFFFFFF);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __m512i c[2][4];
    for (int h = 0; h < 2; h++) {
      __m512i x = _mm512_loadu_si512(v + i + 8 * h);
      c[h][0] = x;
      c[h][1] = _mm512_or_si512(_mm512_set1_epi64(key[2]), _mm512_and_si512(_mm512_srli_epi64(x, 32), _mm512_set1_epi64(0xFFFF)));
      c[h][2] = _mm512_set1_epi64(key[3]), c[h][3] = _mm512_set1_epi64(key[4]);
    }
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++, k0 += W0, k1 += W1) {
      __m512i a = _mm512_set1_epi64(k0), b = _mm512_set1_epi64(k1);
      for (int h = 0; h < 2; h++) {
        __m512i p0 = _mm512_mul_epu32(c[h][0], m0), p1 = _mm512_mul_epu32(c[h][2], m1);
        c[h][0] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p1, 32), c[h][1]), a), c[h][1] = p1;
        c[h][2] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p0, 32), c[h][3]), b), c[h][3] = p0;
      }
    }
    for (int h = 0; h < 2; h++)
      _mm512_storeu_si512(v + i + 8 * h, _mm512_or_si512(_mm512_and_si512(c[h][0], low), _mm512_slli_epi64(c[h][1], 32)));
  }
  by_one(v + i, n - i, key);
}

__attribute__((target("avx512f,avx512dq"))) static void uniforms_wide(uint64_t *v, int64_t n) { uniforms(v, n); }

static int has(int bits) {
  return bits == 512 ? __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") : __builtin_cpu_supports("avx2");
}
#endif

void pgs_states(uint64_t *v, int64_t n, const uint32_t key[5], int widest) {
#ifdef __x86_64__
  if (widest >= 512 && has(512)) {
    by_sixteen(v, n, key);
    return;
  }
  if (widest >= 256 && has(256)) {
    by_eight(v, n, key);
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
