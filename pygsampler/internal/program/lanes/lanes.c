// Loops that a compiler vectorizes: each is written once, for any processor, and compiled again for
// vectors of 512 bits. Loops that the compiler does not vectorize are written out.
#include "lanes.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#else
#include <math.h>
#endif

// A product of doubles is rounded before it is added.
#pragma STDC FP_CONTRACT OFF

// The bits of sqrt(1/2).
#define ROOT_BITS 0x3FE6A09E667F3BCD

#define EVERY static inline __attribute__((always_inline))

EVERY uint64_t mixed(uint64_t z) {
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

EVERY uint64_t bits_of(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

EVERY double of_bits(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}

EVERY int64_t sift(const void *ids, int bits, int64_t n, const uint64_t *members, int64_t size, int64_t base, int64_t *places, void *kept) {
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t v = bits == 32 ? ((const int32_t *)ids)[i] : ((const int64_t *)ids)[i];
    if ((uint64_t)v >= (uint64_t)size) return -1;
    places[at] = base + i;
    if (kept && bits == 32) ((int32_t *)kept)[at] = (int32_t)v;
    if (kept && bits == 64) ((int64_t *)kept)[at] = v;
    at += (int64_t)(members[v >> 6] >> (v & 63) & 1);
  }
  return at;
}

EVERY int64_t race(const uint64_t *states, const double *weights, int64_t n, double bound, int64_t base, uint64_t *draws, int64_t *places) {
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t x = mixed(states[i]);
    draws[at] = x, places[at] = base + i;
    at += !((double)(int64_t)(((uint64_t)1 << 53) - (x >> 12 << 1 | 1)) * 0x1p-53 > bound * weights[i]);
  }
  return at;
}

// Go twins real.Log, of a number of at least 2^-53, and raceKey.
EVERY double log_of(double x) {
  const int64_t bits = (int64_t)bits_of(x), e = (bits - ROOT_BITS) >> 52;
  const double m = of_bits((uint64_t)(bits - (int64_t)((uint64_t)e << 52)));
  const double s = (m - 1) / (m + 1), z = s * s, twice = s + s;
  double series = 1.0 / 21;
  series = series * z + 1.0 / 19;
  series = series * z + 1.0 / 17;
  series = series * z + 1.0 / 15;
  series = series * z + 1.0 / 13;
  series = series * z + 1.0 / 11;
  series = series * z + 1.0 / 9;
  series = series * z + 1.0 / 7;
  series = series * z + 1.0 / 5;
  series = series * z + 1.0 / 3;
  return (double)e * 0x1.62e42fefa39efp-1 + (twice + twice * (z * series));
}

EVERY void keys(const uint64_t *draws, const double *weights, const int64_t *places, int64_t n, uint64_t *to) {
  const uint64_t one = (uint64_t)1023 << 52, fraction = ((uint64_t)1 << 52) - 1;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t a = bits_of(-log_of((double)(int64_t)(draws[i] >> 12 << 1 | 1) * 0x1p-53));
    const double weight = weights[places[i]];
    const uint64_t small = bits_of(weight) <= fraction, b = bits_of(small ? weight * 0x1p54 : weight);
    const double r = of_bits((a & fraction) | one) / of_bits((b & fraction) | one);
    to[i] = bits_of(r) + (((a >> 52) - (b >> 52) + 1025 + (small ? 54 : 0)) << 52);
  }
}

// The numbers searched at a time: each hides the latency of the others' reads.
enum { LOOKS = 16 };

EVERY void above(const uint64_t *sums, int64_t n, uint64_t *numbers, int64_t m) {
  for (int64_t i = 0; i < m; i += LOOKS) {
    uint64_t of[LOOKS], from[LOOKS] = {0};
    const int k = m - i < LOOKS ? (int)(m - i) : LOOKS;
    for (int j = 0; j < LOOKS; j++) of[j] = numbers[i + (j < k ? j : 0)];
    for (int64_t left = n; left > 1; left -= left / 2)
      for (int j = 0; j < LOOKS; j++) from[j] += sums[from[j] + (uint64_t)(left / 2) - 1] <= of[j] ? (uint64_t)(left / 2) : 0;
    for (int j = 0; j < k; j++) numbers[i + j] = from[j];
  }
}

// The ids whose places in the map are prefetched ahead. The second-level cache has more reads under
// way than the first.
enum { AHEAD = 128 };

EVERY int64_t id_at(const void *ids, int bits, int64_t i) { return bits == 32 ? ((const int32_t *)ids)[i] : ((const int64_t *)ids)[i]; }

EVERY void put_id(void *ids, int bits, int64_t i, int64_t v) {
  if (bits == 32)
    ((int32_t *)ids)[i] = (int32_t)v;
  else
    ((int64_t *)ids)[i] = v;
}

EVERY void ask(const void *ids, int bits, int64_t from, int64_t to, const uint32_t *words, int64_t size) {
  for (int64_t i = from; i < to; i++) {
    const uint64_t v = (uint64_t)id_at(ids, bits, i);
    __builtin_prefetch(words + (v < (uint64_t)size ? v : 0), 0, 2);
  }
}

// From the first of n ids to the last but end, which is at most n.
EVERY int64_t claim_some(void *ids, int bits, int64_t first, int64_t end, uint32_t *words, int64_t size, uint32_t tag, uint32_t limit, void *nodes, int64_t at) {
  for (int64_t i = first; i < end; i++) {
    const int64_t v = id_at(ids, bits, i);
    if ((uint64_t)v >= (uint64_t)size) return -1;
    uint32_t number = words[v] ^ tag;
    const int is_new = number >= limit;
    number = is_new ? (uint32_t)at : number;
    // Stored before it is known whether it is new: a branch would be mispredicted.
    put_id(nodes, bits, at, v);
    words[v] = tag | number;
    put_id(ids, bits, i, number);
    at += is_new;
  }
  return at;
}

EVERY int64_t claim(void *ids, int bits, int64_t n, uint32_t *words, int64_t size, uint32_t tag, uint32_t limit, void *nodes, int64_t at) {
  ask(ids, bits, 0, n < AHEAD ? n : AHEAD, words, size);
  for (int64_t i = 0; i < n && at >= 0; i += AHEAD) {
    const int64_t end = i + AHEAD < n ? i + AHEAD : n;
    ask(ids, bits, end, end + AHEAD < n ? end + AHEAD : n, words, size);
    at = claim_some(ids, bits, i, end, words, size, tag, limit, nodes, at);
  }
  return at;
}

// The values that are converted to integers at a time.
enum { PARTS = 128 };

// The mark of a sum that is in a slot: a NaN, which no sum is.
#define SLOT ((uint64_t)0xFFF << 51)

// Most rows have one value, whose integers stand for a number that has the same integers: it is theirs, and the sum.
EVERY int gather_rows(const double *values, const void *rows, int bits, int64_t n, const double powers[4], double *to, int64_t size, int64_t *parts, int64_t *slots, int64_t room, int64_t state[2]) {
  const double up = powers[0], down = powers[1], second = powers[2], last = powers[3];
  int64_t next = state[0], taken = state[1];
  for (int64_t lo = 0; lo < n; lo += PARTS) {
    int64_t a[PARTS], b[PARTS], again[PARTS], slot[PARTS];
    double sum[PARTS];
    const int m = n - lo < PARTS ? (int)(n - lo) : PARTS;
    for (int k = 0; k < m; k++) {
      const double x = values[lo + k];
      a[k] = (int64_t)(x * up);
      b[k] = (int64_t)((x - (double)a[k] * down) * second);
      sum[k] = (double)a[k] * down + (double)b[k] * last;
    }
    int others = 0;
    for (int k = 0; k < m; k++) {
      // The value of the next row is written again until the row is reached: there is no branch.
      const int64_t row = id_at(rows, bits, lo + k);
      const int is_next = row == next;
      to[next] = sum[k], again[others] = k;
      __builtin_prefetch(to + ((uint64_t)row < (uint64_t)size ? row : 0));
      next += is_next, others += !is_next;
      if (next > size) return 0;
    }
    for (int j = 0; j < others; j++) {
      const int k = (int)again[j];
      const int64_t row = id_at(rows, bits, lo + k);
      if ((uint64_t)row >= (uint64_t)next) return 0;
      uint64_t is = bits_of(to[row]);
      if (is >> 51 != SLOT >> 51) {
        if (taken == room) return 0;
        const double x = to[row];
        const int64_t q = (int64_t)(x * up);
        parts[2 * taken] = q, parts[2 * taken + 1] = (int64_t)((x - (double)q * down) * second);
        slots[taken] = row;
        to[row] = of_bits(is = SLOT | (uint64_t)taken++);
      }
      slot[j] = (int64_t)(is & ~SLOT);
      __builtin_prefetch(parts + 2 * slot[j]);
    }
    for (int j = 0; j < others; j++) {
      const int k = (int)again[j];
      parts[2 * slot[j]] += a[k], parts[2 * slot[j] + 1] += b[k];
    }
  }
  state[0] = next, state[1] = taken;
  return 1;
}

EVERY uint64_t largest(const double *values, int64_t n) {
  uint64_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t b = bits_of(values[i]) & ~((uint64_t)1 << 63);
    most = b > most ? b : most;
  }
  return most;
}

EVERY void sums_of(const double *values, int64_t n, const double powers[3], int64_t sums[2]) {
  const double up = powers[0], down = powers[1], second = powers[2];
  int64_t a = 0, b = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t q = (int64_t)(values[i] * up);
    a += q;
    b += (int64_t)((values[i] - (double)q * down) * second);
  }
  sums[0] = a, sums[1] = b;
}

EVERY void values_of(const int64_t *parts, int64_t n, const double powers[2], double *to) {
  const double down = powers[0], last = powers[1];
  for (int64_t i = 0; i < n; i++) to[i] = (double)parts[2 * i] * down + (double)parts[2 * i + 1] * last;
}

EVERY int outside(const double *values, int64_t n) {
  // The bits of numbers above 0 are those from 1 to those of the largest.
  uint64_t found = 0;
  for (int64_t i = 0; i < n; i++) found |= bits_of(values[i]) - 1 > (uint64_t)0x7FEFFFFFFFFFFFFE;
  return found != 0;
}

// The library's sqrt would set errno, which a loop of vectors cannot.
EVERY double root(double x) {
#ifdef __x86_64__
  return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x)));
#else
  return sqrt(x);
#endif
}

// Elements of arrays that are one, or apart, do not depend on others.
#define EACH(expression)                   \
  _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) { \
    const double a = x[i], b = y[i];       \
    (void)b;                               \
    to[i] = (expression);                  \
  }                                        \
  break

EVERY void map(int op, double *to, const double *x, const double *y, int64_t n) {
  switch (op) {
  case PGS_ADD: EACH(a + b);
  case PGS_SUB: EACH(a - b);
  case PGS_MUL: EACH(a * b);
  case PGS_DIV: EACH(a / b);
  case PGS_MIN: EACH(b < a ? b : a);
  case PGS_MAX: EACH(b > a ? b : a);
  case PGS_RELU: EACH(a > 0 ? a : 0);
  case PGS_SQRT: EACH(root(a));
  }
}

#ifdef __x86_64__
// gcc needs an option to use whole registers in its own loops; clang does not know it, and would
// drop the whole attribute.
#ifdef __clang__
#define WIDE __attribute__((target("avx512f,avx512cd,avx512dq,avx512vl"), min_vector_width(512)))
#else
#define WIDE __attribute__((target("avx512f,avx512cd,avx512dq,avx512vl,prefer-vector-width=512")))
#endif

WIDE static int64_t sift_wide(const void *ids, int bits, int64_t n, const uint64_t *members, int64_t size, int64_t base, int64_t *places, void *kept) {
  const __m512i most = _mm512_set1_epi64(size), one = _mm512_set1_epi64(1), low = _mm512_set1_epi64(63), eight = _mm512_set1_epi64(8);
  __m512i place = _mm512_add_epi64(_mm512_set1_epi64(base), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
  int64_t i = 0, at = 0;
  for (; i + 8 <= n; i += 8) {
    const __m512i v = bits == 32 ? _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)((const int32_t *)ids + i)))
                                 : _mm512_loadu_si512((const int64_t *)ids + i);
    if (_mm512_cmplt_epu64_mask(v, most) != 0xFF) return -1;
    const __m512i word = _mm512_i64gather_epi64(_mm512_srli_epi64(v, 6), (const long long *)members, 8);
    const __mmask8 in = _mm512_test_epi64_mask(word, _mm512_sllv_epi64(one, _mm512_and_si512(v, low)));
    // The write ends at or before the last read: there is room.
    _mm512_storeu_si512(places + at, _mm512_maskz_compress_epi64(in, place));
    if (kept) {
      const __m512i id = _mm512_maskz_compress_epi64(in, v);
      if (bits == 32)
        _mm256_storeu_si256((__m256i *)((int32_t *)kept + at), _mm512_cvtepi64_epi32(id));
      else
        _mm512_storeu_si512((int64_t *)kept + at, id);
    }
    at += __builtin_popcount(in);
    place = _mm512_add_epi64(place, eight);
  }
  const int size_of = bits / 8;
  const int64_t rest = sift((const char *)ids + i * size_of, bits, n - i, members, size, base + i, places + at, kept ? (char *)kept + at * size_of : NULL);
  return rest < 0 ? rest : at + rest;
}

WIDE static int64_t race_wide(const uint64_t *states, const double *weights, int64_t n, double bound, int64_t base, uint64_t *draws, int64_t *places) {
  const __m512i whole = _mm512_set1_epi64((int64_t)1 << 53), one = _mm512_set1_epi64(1), eight = _mm512_set1_epi64(8);
  const __m512d unit = _mm512_set1_pd(0x1p-53), limit = _mm512_set1_pd(bound);
  __m512i place = _mm512_add_epi64(_mm512_set1_epi64(base), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
  int64_t i = 0, at = 0;
  for (; i + 8 <= n; i += 8) {
    __m512i z = _mm512_add_epi64(_mm512_loadu_si512(states + i), _mm512_set1_epi64((int64_t)0x9E3779B97F4A7C15u));
    z = _mm512_mullo_epi64(_mm512_xor_si512(z, _mm512_srli_epi64(z, 30)), _mm512_set1_epi64((int64_t)0xBF58476D1CE4E5B9u));
    z = _mm512_mullo_epi64(_mm512_xor_si512(z, _mm512_srli_epi64(z, 27)), _mm512_set1_epi64((int64_t)0x94D049BB133111EBu));
    z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
    const __m512i u = _mm512_or_si512(_mm512_slli_epi64(_mm512_srli_epi64(z, 12), 1), one);
    const __m512d early = _mm512_mul_pd(_mm512_cvtepi64_pd(_mm512_sub_epi64(whole, u)), unit);
    const __mmask8 in = ~_mm512_cmp_pd_mask(early, _mm512_mul_pd(limit, _mm512_loadu_pd(weights + i)), _CMP_GT_OQ);
    _mm512_storeu_si512(draws + at, _mm512_maskz_compress_epi64(in, z));
    _mm512_storeu_si512(places + at, _mm512_maskz_compress_epi64(in, place));
    at += __builtin_popcount(in);
    place = _mm512_add_epi64(place, eight);
  }
  return at + race(states + i, weights + i, n - i, bound, base + i, draws + at, places + at);
}

WIDE static int64_t claim_wide(void *ids, int bits, int64_t n, uint32_t *words, int64_t size, uint32_t tag, uint32_t limit, void *nodes, int64_t at) {
  const __m512i most = _mm512_set1_epi64(size), tags = _mm512_set1_epi64(tag), limits = _mm512_set1_epi64(limit);
  const __m512i order = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
  ask(ids, bits, 0, n < AHEAD ? n : AHEAD, words, size);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    ask(ids, bits, i + AHEAD, i + AHEAD + 8 < n ? i + AHEAD + 8 : n, words, size);
    int32_t *const narrow = (int32_t *)ids + i;
    int64_t *const broad = (int64_t *)ids + i;
    const __m512i v = bits == 32 ? _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)narrow)) : _mm512_loadu_si512(broad);
    if (_mm512_cmplt_epu64_mask(v, most) != 0xFF) return -1;
    const __m512i twice = _mm512_conflict_epi64(v);
    if (_mm512_test_epi64_mask(twice, twice)) {
      at = claim_some(ids, bits, i, i + 8, words, size, tag, limit, nodes, at);
      continue;
    }
    const __m512i number = _mm512_xor_si512(_mm512_cvtepu32_epi64(_mm512_i64gather_epi32(v, (const int *)words, 4)), tags);
    const __mmask8 new = _mm512_cmpge_epu64_mask(number, limits);
    const __m512i numbers = _mm512_mask_expand_epi64(number, new, _mm512_add_epi64(_mm512_set1_epi64(at), order));
    const __m512i added = _mm512_maskz_compress_epi64(new, v);
    const int many = __builtin_popcount(new);
    const __mmask8 first = (__mmask8)((1u << many) - 1);
    _mm512_mask_i64scatter_epi32((int *)words, new, v, _mm512_cvtepi64_epi32(_mm512_or_si512(numbers, tags)), 4);
    if (bits == 32) {
      _mm256_mask_storeu_epi32((int32_t *)nodes + at, first, _mm512_cvtepi64_epi32(added));
      _mm256_storeu_si256((__m256i *)narrow, _mm512_cvtepi64_epi32(numbers));
    } else {
      _mm512_mask_storeu_epi64((int64_t *)nodes + at, first, added);
      _mm512_storeu_si512(broad, numbers);
    }
    at += many;
  }
  return claim_some(ids, bits, i, n, words, size, tag, limit, nodes, at);
}

WIDE static int gather_rows_wide(const double *values, const void *rows, int bits, int64_t n, const double powers[4], double *to, int64_t size, int64_t *parts, int64_t *slots, int64_t room, int64_t state[2]) {
  return bits == 32 ? gather_rows(values, rows, 32, n, powers, to, size, parts, slots, room, state) : gather_rows(values, rows, 64, n, powers, to, size, parts, slots, room, state);
}

WIDE static void above_wide(const uint64_t *sums, int64_t n, uint64_t *numbers, int64_t m) {
  enum { SIDE = 4 };
  for (int64_t i = 0; i < m; i += 8 * SIDE) {
    __m512i of[SIDE], from[SIDE];
    __mmask8 in[SIDE];
    for (int j = 0; j < SIDE; j++) {
      const int64_t left = m - i - 8 * j;
      in[j] = left >= 8 ? 0xFF : left > 0 ? (__mmask8)((1 << left) - 1) : 0;
      of[j] = _mm512_maskz_loadu_epi64(in[j], numbers + i + 8 * j), from[j] = _mm512_setzero_si512();
    }
    for (int64_t left = n; left > 1; left -= left / 2) {
      const __m512i half = _mm512_set1_epi64(left / 2);
      for (int j = 0; j < SIDE; j++) {
        const __m512i sum = _mm512_i64gather_epi64(from[j], (const long long *)(sums + left / 2 - 1), 8);
        from[j] = _mm512_mask_add_epi64(from[j], _mm512_cmple_epu64_mask(sum, of[j]), from[j], half);
      }
    }
    for (int j = 0; j < SIDE; j++) _mm512_mask_storeu_epi64(numbers + i + 8 * j, in[j], from[j]);
  }
}

WIDE static void keys_wide(const uint64_t *draws, const double *weights, const int64_t *places, int64_t n, uint64_t *to) {
  keys(draws, weights, places, n, to);
}
WIDE static uint64_t largest_wide(const double *values, int64_t n) { return largest(values, n); }
WIDE static void sums_of_wide(const double *values, int64_t n, const double powers[3], int64_t sums[2]) { sums_of(values, n, powers, sums); }
WIDE static void values_of_wide(const int64_t *parts, int64_t n, const double powers[2], double *to) { values_of(parts, n, powers, to); }
WIDE static int outside_wide(const double *values, int64_t n) { return outside(values, n); }
WIDE static void map_wide(int op, double *to, const double *x, const double *y, int64_t n) {
  int64_t i = 0;
  if (op == PGS_SQRT)
    for (; i + 8 <= n; i += 8) _mm512_storeu_pd(to + i, _mm512_sqrt_pd(_mm512_loadu_pd(x + i)));
  map(op, to + i, x + i, y + i, n - i);
}

static int wide(int widest) {
  return widest >= 512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#define PICK(name, ...) (wide(widest) ? name##_wide(__VA_ARGS__) : (name)(__VA_ARGS__))
#else
#define PICK(name, ...) ((void)widest, (name)(__VA_ARGS__))
#endif

int64_t pgs_sift(const void *ids, int bits, int64_t n, const uint64_t *members, int64_t size, int64_t base, int64_t *places, void *kept, int widest) {
  return PICK(sift, ids, bits, n, members, size, base, places, kept);
}

int64_t pgs_race(const uint64_t *states, const double *weights, int64_t n, double bound, int64_t base, uint64_t *draws, int64_t *places, int widest) {
  return PICK(race, states, weights, n, bound, base, draws, places);
}

int64_t pgs_claim(void *ids, int bits, int64_t n, uint32_t *words, int64_t size, uint32_t tag, uint32_t limit, void *nodes, int64_t numbered, int widest) {
  return PICK(claim, ids, bits, n, words, size, tag, limit, nodes, numbered);
}

int pgs_gather_rows(const double *values, const void *rows, int bits, int64_t n, const double powers[4], double *to, int64_t size, int64_t *parts, int64_t *slots, int64_t room, int64_t state[2], int widest) {
  return PICK(gather_rows, values, rows, bits, n, powers, to, size, parts, slots, room, state);
}

void pgs_settle_rows(const int64_t *parts, const int64_t *slots, int64_t n, const double powers[4], double *to) {
  for (int64_t i = 0; i < n; i++) to[slots[i]] = (double)parts[2 * i] * powers[1] + (double)parts[2 * i + 1] * powers[3];
}

void pgs_keys(const uint64_t *draws, const double *weights, const int64_t *places, int64_t n, uint64_t *to, int widest) {
  PICK(keys, draws, weights, places, n, to);
}

void pgs_above(const uint64_t *sums, int64_t n, uint64_t *numbers, int64_t m, int widest) { PICK(above, sums, n, numbers, m); }

void pgs_sums(const double *values, int64_t n, const double powers[3], int64_t sums[2], int widest) {
  PICK(sums_of, values, n, powers, sums);
}

void pgs_values(const int64_t *parts, int64_t n, const double powers[2], double *to, int widest) {
  PICK(values_of, parts, n, powers, to);
}

uint64_t pgs_largest(const double *values, int64_t n, int widest) { return PICK(largest, values, n); }

int pgs_outside(const double *values, int64_t n, int widest) { return PICK(outside, values, n); }

void pgs_map(int op, double *to, const double *x, const double *y, int64_t n, int widest) { PICK(map, op, to, x, y, n); }
