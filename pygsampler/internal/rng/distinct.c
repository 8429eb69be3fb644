// Floyd's algorithm for many rows: Go twin Distinct in choose.go, which a test compares.
#include "distinct.h"

#include <string.h>

#include "mix.h"

enum { LANES = 8, ROWS = 128 };

// Rows that draw, with room for those that fill up the last vector.
struct drawn {
  int64_t *to[ROWS + LANES];
  uint64_t starts[ROWS + LANES], degrees[ROWS + LANES];
};

// Writes all positions of the short rows, and what room the others take; returns how many these are.
static int64_t whole(struct drawn *d, int64_t **to, const int64_t *end, const int64_t *starts, const int64_t *degrees, int64_t n, int64_t fanout) {
  int64_t *at = *to, k = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t take = degrees[i] < fanout ? degrees[i] : fanout;
    if (end - at >= LANES) {
      // The next row overwrites the entries beyond this one: the branch of a store for each edge
      // would be mispredicted at most rows' ends.
      for (int64_t l = 0; l < LANES; l++) at[l] = starts[i] + l;
      for (int64_t j = LANES; j < take; j++) at[j] = starts[i] + j;
    } else {
      for (int64_t j = 0; j < take; j++) at[j] = starts[i] + j;
    }
    d->to[k] = at, d->starts[k] = (uint64_t)starts[i], d->degrees[k] = (uint64_t)degrees[i];
    k += degrees[i] > fanout;
    at += take;
  }
  *to = at;
  return k;
}

static void by_one(const struct drawn *d, int64_t k, const uint64_t *states, int64_t fanout) {
  for (int64_t i = 0; i < k; i++) {
    const uint64_t first = d->degrees[i] - (uint64_t)fanout;
    uint64_t state = states[i], chosen[PGS_MOST], filter = 0;
    for (int64_t j = 0; j < fanout; j++) {
      uint64_t t = (uint64_t)((unsigned __int128)mix(state += GOLDEN) * (first + (uint64_t)j + 1) >> 64);
      if (filter >> (t & 63) & 1)
        for (int64_t o = 0; o < j; o++)
          if (chosen[o] == t) {
            t = first + (uint64_t)j;
            break;
          }
      filter |= (uint64_t)1 << (t & 63);
      chosen[j] = t;
      d->to[i][j] = (int64_t)(d->starts[i] + t);
    }
  }
}

#ifdef __x86_64__
#include <immintrin.h>

// Eight lines of eight become eight columns.
__attribute__((target("avx512f,avx512dq"))) static inline void transpose(__m512i line[LANES]) {
  __m512i pair[LANES], four[LANES];
  for (int i = 0; i < LANES; i += 2) {
    pair[i] = _mm512_unpacklo_epi64(line[i], line[i + 1]);
    pair[i + 1] = _mm512_unpackhi_epi64(line[i], line[i + 1]);
  }
  // Columns 0 and 4, 1 and 5, 2 and 6, 3 and 7 of lines 0 to 3, then of lines 4 to 7.
  for (int i = 0; i < LANES; i += 4)
    for (int odd = 0; odd < 2; odd++) {
      const __m512i a = pair[i + odd], b = pair[i + odd + 2];
      four[i + odd] = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), b);
      four[i + odd + 2] = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), b);
    }
  for (int i = 0; i < 4; i++) {
    line[i] = _mm512_shuffle_i64x2(four[i], four[i + 4], 0x44);
    line[i + 4] = _mm512_shuffle_i64x2(four[i], four[i + 4], 0xEE);
  }
}

// A row in each lane, so that a draw is compared with all before it at once: no set, and no branch. Degrees are below 2^32.
__attribute__((target("avx512f,avx512dq"))) static void side_by_side(const struct drawn *d, int64_t k, const uint64_t *states, int64_t fanout) {
  const __m512i golden = _mm512_set1_epi64(GOLDEN), one = _mm512_set1_epi64(1);
  const __m512i mix_first = _mm512_set1_epi64(MIX_FIRST), mix_second = _mm512_set1_epi64(MIX_SECOND);
  const int64_t columns = (fanout + LANES - 1) / LANES * LANES;
  for (int64_t i = 0; i < k; i += LANES) {
    __m512i chosen[PGS_MOST];
    // A value that no draw has, since the draws before a draw are compared by fours.
    for (int64_t j = 0; j < columns; j++) chosen[j] = _mm512_set1_epi64(-1);
    __m512i state = _mm512_loadu_si512(states + i), top = _mm512_loadu_si512(d->degrees + i);
    const __m512i start = _mm512_loadu_si512(d->starts + i);
    top = _mm512_sub_epi64(top, _mm512_set1_epi64(fanout));
    for (int64_t j = 0; j < fanout; j++) {
      state = _mm512_add_epi64(state, golden);
      __m512i z = _mm512_mullo_epi64(_mm512_xor_si512(state, _mm512_srli_epi64(state, 30)), mix_first);
      z = _mm512_mullo_epi64(_mm512_xor_si512(z, _mm512_srli_epi64(z, 27)), mix_second);
      z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
      // The upper half of the product with a factor that has 32 bits.
      const __m512i below = _mm512_add_epi64(top, one);
      const __m512i lower = _mm512_srli_epi64(_mm512_mul_epu32(z, below), 32);
      const __m512i t = _mm512_srli_epi64(_mm512_add_epi64(_mm512_mul_epu32(_mm512_srli_epi64(z, 32), below), lower), 32);
      __mmask8 met = 0;
      for (int64_t o = 0; o < j; o += 4)
        met |= (_mm512_cmpeq_epi64_mask(chosen[o], t) | _mm512_cmpeq_epi64_mask(chosen[o + 1], t)) |
               (_mm512_cmpeq_epi64_mask(chosen[o + 2], t) | _mm512_cmpeq_epi64_mask(chosen[o + 3], t));
      chosen[j] = _mm512_mask_mov_epi64(t, met, top);
      top = below;
    }
    const int64_t rows = k - i < LANES ? k - i : LANES;
    for (int64_t j = 0; j < fanout; j += LANES) {
      __m512i lines[LANES];
      for (int l = 0; l < LANES; l++) lines[l] = _mm512_add_epi64(chosen[j + l], start);
      transpose(lines);
      const __mmask8 columns_here = fanout - j < LANES ? (__mmask8)((1 << (fanout - j)) - 1) : 0xFF;
      for (int64_t r = 0; r < rows; r++) _mm512_mask_storeu_epi64(d->to[i + r] + j, columns_here, lines[r]);
    }
  }
}
#endif

void pgs_distinct(int64_t *to, int64_t room, const int64_t *starts, const int64_t *degrees, int64_t n, const uint64_t *states, int64_t fanout, int widest) {
  const int64_t *end = to + room;
  struct drawn d;
  uint64_t own[ROWS + LANES];
  int vectors = 0;
#ifdef __x86_64__
  vectors = widest >= 512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
#endif
  for (; n > 0; starts += ROWS, degrees += ROWS, n -= ROWS) {
    const int64_t k = whole(&d, &to, end, starts, degrees, n < ROWS ? n : ROWS, fanout);
    if (!states) continue;
    uint64_t all = 0;
    for (int64_t i = 0; i < k; i++) all |= d.degrees[i];
#ifdef __x86_64__
    if (vectors && !(all >> 32)) {
      // Lanes beyond the last row draw what nobody reads.
      memcpy(own, states, (size_t)k * sizeof *own);
      for (int64_t i = k; i < k + LANES; i++) own[i] = 0, d.starts[i] = 0, d.degrees[i] = (uint64_t)fanout + 1;
      side_by_side(&d, k, own, fanout);
    } else
#endif
      by_one(&d, k, states, fanout);
    states += k;
  }
}
