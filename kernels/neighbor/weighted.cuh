// The choice of the edges of a row with weights. Draw j is choice j by the alias table. Choices that
// are excluded, or were drawn before, are refused; the next SPARE * fanout draws replace them, in
// order, unless they are refused, too, and the rest is drawn by the sums over the remaining edges.
// This is successive sampling exactly, and bounded for any weights. Rows of up to SHORT edges make
// no spare draws: most of theirs would be refused.
//
// Source: M. Vose, "A linear algorithm for generating random numbers with a given distribution",
// IEEE Transactions on Software Engineering 17 (9), 1991. Go twin: rng.Chooser.Weighted.
#pragma once
#include "neighbor/neighbor.cuh"

// The position in its row that a draw chooses, by the alias table of a row of n edges: one product
// gives a slot and a coin.
__device__ __forceinline__ u64 weighted_pick(const u64* alias, u64 bits, u64 n) {
  u64 slot = __umul64hi(bits, n), entry = alias[slot];
  return (u32)(bits * n >> 32) < (u32)entry ? slot : entry >> 32;
}
__device__ __forceinline__ u32 weighted_pick32(const u64* alias, u64 bits, u32 n) {
  u64 low = (bits >> 32) * n + ((u64)(u32)bits * n >> 32);
  u32 slot = (u32)(low >> 32);
  u64 entry = alias[slot];
  return (u32)low < (u32)entry ? slot : (u32)(entry >> 32);
}

// The row's integer weights: those of the edges before p, and p's own.
struct Sums64 {
  const u64* sums;
  u64 before = 0;  // of a part of a row what the sums have before it
  __device__ __forceinline__ u64 below(u64 p) const { return p ? sums[p - 1] : before; }
  __device__ __forceinline__ u64 of(u64 p) const { return sums[p] - below(p); }
  // What p adds where it is left out, and lies at or before y.
  __device__ __forceinline__ u64 skipped(u64 p, u64 y) const {
    u64 b = below(p);
    return b <= y ? sums[p] - b : 0;
  }
};

// Choice i of those that stand in a list of so many bits each, whatever the sign of the last one.
__device__ __forceinline__ u64 choice_at(const void* choices, u32 bits, u64 i) {
  return bits == 32 ? (u64)((const u32*)choices)[i] : ((const u64*)choices)[i];
}

__device__ __forceinline__ u64 warp_sum64(u64 x) {
#pragma unroll
  for (int i = 16; i; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}

// The edge in whose part of the sums y is, by a warp: each step looks at 32 places at once.
__device__ __forceinline__ u64 warp_at(const u64* sums, u64 y, u64 n) {
  u64 lo = 0, lane = threadIdx.x & 31;
  while (n > 32) {
    u64 step = (n + 31) / 32, end = min((lane + 1) * step, n);
    u32 above = __ballot_sync(~0u, sums[lo + end - 1] > y);
    u64 first = (u64)(__ffs(above) - 1) * step;
    lo += first;
    n = min(step, n - first);
  }
  u32 above = __ballot_sync(~0u, lane < n && sums[lo + lane] > y);
  return lo + (__ffs(above) - 1);
}

// The choices that are open of a row of up to SHORT edges, by SHORT / 4 lanes with four edges each. All lanes
// of a warp come here together, those without a row with nothing open.
__device__ __noinline__ void weighted_left_short(const Args& a, u32* own, u32 open, u64 state, u64 start, u32 n, u32 fanout,
                                                 u64 x0, u64 x1) {
  const u32 LANES = SHORT / 4;
  u32 lane = threadIdx.x % LANES, first = lane * 4, gone = 0;
  u64 left[4], before = open && lane && first <= n ? a.sums[start + first - 1] : 0;
#pragma unroll
  for (u32 c = 0; c < 4; c++) {
    u64 sum = open && first + c < n ? a.sums[start + first + c] : before;
    left[c] = sum - before;
    before = sum;
  }
  for (u64 i = x0; i < x1; i++) gone |= 1u << (u32)(a.excluded[i] - start);
  for (u32 j = 0; open && !a.replace && j < fanout; j++)
    if (!(open >> j & 1)) gone |= 1u << own[j];
#pragma unroll
  for (u32 c = 0; c < 4; c++)
    if (gone >> (first + c) & 1) left[c] = 0;
  for (; __any_sync(~0u, open != 0); open &= open - 1) {
    u32 j = __ffs(open) - 1;
    u64 mine = left[0] + left[1] + left[2] + left[3], upto = mine;
#pragma unroll
    for (u32 d = 1; d < LANES; d *= 2) {
      u64 other = __shfl_up_sync(~0u, upto, d, LANES);
      if (lane >= d) upto += other;
    }
    u64 total = __shfl_sync(~0u, upto, LANES - 1, LANES), x = __umul64hi(draw_bits(state, fanout * (1 + SPARE) + j), total);
    if (open == 0 || x < upto - mine || x >= upto) continue;
    x -= upto - mine;
#pragma unroll
    for (u32 c = 0; c < 4; c++) {
      if (x < left[c]) {
        own[j] = first + c;
        if (!a.replace) left[c] = 0;
        break;
      }
      x -= left[c];
    }
  }
}

// The choices of a row that are open in the end, by a warp; at most 32, lane i knows choice i. x0 to x1
// are the row's excluded edges.
template <class Args>
__device__ __noinline__ void weighted_left(const Args& a, u32* own, u32 open, u64 state, u64 start, u64 n, u32 fanout,
                                           u64 x0, u64 x1) {
  Sums64 w{a.sums + start};
  u32 lane = threadIdx.x & 31;
  bool taken = !a.replace && lane < fanout && !(open >> lane & 1);
  u64 p = taken ? own[lane] : 0, below = taken ? w.below(p) : 0, weight = taken ? w.sums[p] - below : 0, out = weight;
  for (u64 i = x0 + lane; i < x1; i += 32) out += w.of(a.excluded[i] - start);
  u64 total = w.sums[n - 1] - warp_sum64(out);
  for (; open; open &= open - 1) {
    u32 j = __ffs(open) - 1;
    u64 x = __umul64hi(draw_bits(state, fanout * (1 + SPARE) + j), total), y = x, before;
    // The least y that has x beside all that is left out up to there.
    do {
      before = y;
      u64 skipped = taken && below <= before ? weight : 0;
      for (u64 i = x0 + lane; i < x1; i += 32) skipped += w.skipped(a.excluded[i] - start, before);
      y = x + warp_sum64(skipped);
    } while (y != before);
    p = warp_at(w.sums, y, n);
    if (lane == 0) own[j] = (u32)p;
    if (a.replace) continue;
    if (lane == j) taken = true, below = w.below(p), weight = w.of(p);
    total -= __shfl_sync(~0u, weight, j);
  }
}

// All choices of a row by a warp, for any fanout; they stand where the edge ids will.
template <class Args>
__device__ __noinline__ void weighted_wide(const Args& a, void* edge_ids, u32 e0, u64 state, u64 start, u64 n, u32 fanout,
                                           u64 x0, u64 x1) {
  const u64 REFUSED = ~0ull;
  Sums64 w{a.sums + start};
  u32 lane = threadIdx.x & 31, bits = a.out_edge_bits;
  for (u32 j = lane; j < fanout; j += 32) write(edge_ids, bits, e0 + j, weighted_pick(a.alias + start, draw_bits(state, j), n));
  __syncwarp();
  if (a.replace && x0 == x1) return;
  bool again = false;
  for (u32 j = 0; j < fanout; j++) {
    u64 p = read(edge_ids, bits, e0 + j);
    u64 at = excluded_below(a.excluded + x0, x1 - x0, start + p);
    bool bad = at < x1 - x0 && a.excluded[x0 + at] == start + p;
    for (u32 i = lane; !a.replace && i < j; i += 32) bad |= read(edge_ids, bits, e0 + i) == p;
    bad = __any_sync(~0u, bad);
    again |= bad;
    if (bad && lane == 0) write(edge_ids, bits, e0 + j, REFUSED);
    __syncwarp();
  }
  if (!again) return;
  // Spare draws take the places of the refused ones, in order.
  u32 j = 0;
  for (u64 t = 0; t < (u64)SPARE * fanout && n > SHORT; t++) {
    while (j < fanout && read(edge_ids, bits, e0 + j) != REFUSED) j++;
    if (j == fanout) return;
    u64 p = weighted_pick(a.alias + start, draw_bits64(state, fanout + t), n);
    u64 at = excluded_below(a.excluded + x0, x1 - x0, start + p);
    bool bad = at < x1 - x0 && a.excluded[x0 + at] == start + p;
    for (u32 i = lane; !a.replace && i < fanout; i += 32) bad |= read(edge_ids, bits, e0 + i) == p;
    if (__any_sync(~0u, bad)) continue;
    if (lane == 0) write(edge_ids, bits, e0 + j, p);
    __syncwarp();
  }
  u64 out = 0;
  for (u64 i = x0 + lane; i < x1; i += 32) out += w.of(a.excluded[i] - start);
  for (u32 i = lane; !a.replace && i < fanout; i += 32) {
    u64 p = read(edge_ids, bits, e0 + i);
    if (p != REFUSED) out += w.of(p);
  }
  u64 total = w.sums[n - 1] - warp_sum64(out);
  for (; j < fanout; j++) {
    if (read(edge_ids, bits, e0 + j) != REFUSED) continue;
    u64 x = __umul64hi(draw_bits64(state, (u64)fanout * (1 + SPARE) + j), total), y = x, before;
    do {
      before = y;
      u64 skipped = 0;
      for (u64 i = x0 + lane; i < x1; i += 32) skipped += w.skipped(a.excluded[i] - start, before);
      for (u32 i = lane; !a.replace && i < fanout; i += 32) {
        u64 p = read(edge_ids, bits, e0 + i);
        if (p != REFUSED) skipped += w.skipped(p, before);
      }
      y = x + warp_sum64(skipped);
    } while (y != before);
    u64 p = warp_at(w.sums, y, n);
    __syncwarp();
    if (lane == 0) write(edge_ids, bits, e0 + j, p);
    __syncwarp();
    if (!a.replace) total -= w.of(p);
  }
}

// All choices of a part of a row, n edges from start on, by a warp, for any fanout; they stand in a list from c0 on.
// before is what the sums have before the part. There is no alias table for a part, so each draw looks in the sums.
// Go twin: rng.Chooser.Part.
template <class Args>
__device__ __noinline__ void weighted_part(const Args& a, void* choices, u32 bits, u32 c0, u64 state, u64 start, u64 n, u64 before,
                                           u32 fanout, u64 x0, u64 x1) {
  const u64* sums = a.sums + start;
  u32 lane = threadIdx.x & 31;
  auto below = [&](u64 p) { return p ? sums[p - 1] : before; };
  // What p adds where it is left out, and lies at or before y.
  auto skipped_at = [&](u64 p, u64 y) {
    u64 b = below(p);
    return b <= y ? sums[p] - b : 0;
  };
  u64 out = 0;
  for (u64 i = x0 + lane; i < x1; i += 32) out += skipped_at(a.excluded[i] - start, ~0ull);
  u64 total = sums[n - 1] - before - warp_sum64(out);
  for (u32 j = 0; j < fanout; j++) {
    u64 x = before + __umul64hi(draw_bits64(state, j), total), y = x, last;
    do {
      last = y;
      u64 skipped = 0;
      for (u64 i = x0 + lane; i < x1; i += 32) skipped += skipped_at(a.excluded[i] - start, last);
      for (u32 i = lane; !a.replace && i < j; i += 32) skipped += skipped_at(choice_at(choices, bits, c0 + i), last);
      y = x + warp_sum64(skipped);
    } while (y != last);
    u64 p = warp_at(sums, y, n);
    __syncwarp();
    if (lane == 0) write(choices, bits, c0 + j, p);
    __syncwarp();
    if (!a.replace) total -= sums[p] - below(p);
  }
}
