// Draws by weight among what is left of short rows: of Chooser.Weighted the last step, which a test compares.
#include "pending_row.h"

#include <string.h>

#include "mix.h"

// The draws of each choice that come before: the choice itself, and spare ones, which short rows do
// not use.
enum { BEFORE = 3 };

// The draw j of the refused ones, below a total.
static inline uint64_t again(const struct pgs_left *row, int64_t j, uint64_t total) {
  const uint64_t z = mix(row->state + (uint64_t)(row->fanout * BEFORE + j + 1) * GOLDEN);
  return (uint64_t)((unsigned __int128)z * total >> 64);
}

static inline uint64_t weight(const uint64_t *sums, int64_t p) { return p > 0 ? sums[p] - sums[p - 1] : sums[p]; }

static inline uint32_t taken(const int64_t *pos, int64_t fanout) {
  uint32_t bits = 0;
  for (int64_t j = 0; j < fanout; j++) bits |= (uint32_t)1 << (pos[j] & (PGS_SHORT - 1));
  return bits;
}

// Nothing but the number of edges decides how its inner loops go: branches that depend on draws are mispredicted, which
// took as long as all else.
static void by_one(int64_t *pos, const uint64_t *sums, const struct pgs_left *row) {
  uint64_t left[PGS_SHORT], total = 0, before = 0;
  const uint32_t out = taken(pos, row->fanout);
  for (int64_t i = 0; i < row->edges; i++) {
    total += (sums[i] - before) & ((uint64_t)(out >> i & 1) - 1);
    before = sums[i];
    left[i] = total;
  }
  for (uint64_t refused = row->refused; refused; refused &= refused - 1) {
    const int64_t j = __builtin_ctzll(refused);
    const uint64_t x = again(row, j, total);
    int64_t p = 0;
    // The edge of x is behind those whose sums are not above it.
    for (int64_t i = 0; i < row->edges; i++) p += left[i] <= x;
    pos[j] = p;
    const uint64_t gone = weight(sums, p);
    for (int64_t i = 0; i < row->edges; i++) left[i] -= i >= p ? gone : 0;
    total -= gone;
  }
}

#ifdef __x86_64__
#include <immintrin.h>

enum { LANES = 8, VECTORS = PGS_SHORT / LANES };

// by_one with the sums of a row in vectors.
__attribute__((target("avx512f,avx512dq,popcnt,bmi"))) static void by_vectors(int64_t *pos, const uint64_t *sums, const struct pgs_left *row) {
  const int n = (int)((row->edges + LANES - 1) / LANES);
  const uint32_t all = 0xFFFFFFFFu >> (PGS_SHORT - row->edges);
  __m512i left[VECTORS];
  for (int k = 0; k < n; k++) left[k] = _mm512_maskz_loadu_epi64((__mmask8)(all >> k * LANES), sums + k * LANES);
  uint64_t total = sums[row->edges - 1];
  for (uint32_t out = taken(pos, row->fanout); out; out &= out - 1) {
    const int p = __builtin_ctz(out);
    const uint64_t gone = weight(sums, p);
    const uint32_t at = 0xFFFFFFFFu << p;
    for (int k = 0; k < n; k++) left[k] = _mm512_mask_sub_epi64(left[k], (__mmask8)(at >> k * LANES), left[k], _mm512_set1_epi64((int64_t)gone));
    total -= gone;
  }
  for (uint64_t refused = row->refused; refused; refused &= refused - 1) {
    const int64_t j = __builtin_ctzll(refused);
    const __m512i x = _mm512_set1_epi64((int64_t)again(row, j, total));
    uint32_t behind = 0;
    for (int k = 0; k < n; k++) behind |= (uint32_t)_mm512_cmple_epu64_mask(left[k], x) << k * LANES;
    const int p = __builtin_popcount(behind & all);
    pos[j] = p;
    const uint64_t gone = weight(sums, p);
    const uint32_t at = (uint32_t)(0xFFFFFFFFull << p);
    for (int k = 0; k < n; k++) left[k] = _mm512_mask_sub_epi64(left[k], (__mmask8)(at >> k * LANES), left[k], _mm512_set1_epi64((int64_t)gone));
    total -= gone;
  }
}
#endif

void pgs_draw_left(int64_t *positions, const uint64_t *sums, const struct pgs_left *rows, int64_t n, int widest) {
#ifdef __x86_64__
  if (widest >= 512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    for (int64_t i = 0; i < n; i++) by_vectors(positions + rows[i].at, sums + rows[i].start, rows + i);
    return;
  }
#endif
  for (int64_t i = 0; i < n; i++) by_one(positions + rows[i].at, sums + rows[i].start, rows + i);
}
