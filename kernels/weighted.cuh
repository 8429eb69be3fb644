// How a row with weights chooses its edges. Draw j is choice j by the alias table. Where that edge is
// excluded, or was drawn before, further draws take its place once all have been made: up to TRIES by the
// alias table, then one by the sums over the edges that are left. That is successive sampling exactly,
// and bounded whatever the weights are. Go twin: rng.Chooser.Weighted.
#pragma once
#include "neighbor.cuh"

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
  __device__ __forceinline__ u64 below(u64 p) const { return p ? sums[p - 1] : 0; }
  __device__ __forceinline__ u64 of(u64 p) const { return sums[p] - below(p); }
  // The edge in whose part of the sums x is.
  __device__ __forceinline__ u64 at(u64 x, u64 n) const {
    u64 lo = 0;
    while (lo < n) {
      u64 middle = (lo + n) / 2;
      if (sums[middle] > x) n = middle;
      else lo = middle + 1;
    }
    return lo;
  }
  // What p adds where it is left out, and lies at or before y.
  __device__ __forceinline__ u64 skipped(u64 p, u64 y) const {
    u64 b = below(p);
    return b <= y ? sums[p] - b : 0;
  }
};

// Choices of a row by one thread, anew where a bit of refused says so. x0 to x1 are its excluded edges.
__device__ __noinline__ void weighted_again(const Args& a, u32* own, u32 refused, u64 state, u64 start, u64 n, u32 fanout,
                                            u64 x0, u64 x1) {
  Sums64 w{a.sums + start};
  u32 taken = a.replace ? 0 : ~refused & (fanout < 32 ? (1u << fanout) - 1 : ~0u);
  u64 total = 0;  // of what is left, once it is known
  for (; refused; refused &= refused - 1) {
    u32 j = __ffs(refused) - 1;
    bool found = false;
    for (u32 t = 0; t < TRIES && !found; t++) {
      u32 p = weighted_pick32(a.alias + start, draw_bits(state, fanout + j * TRIES + t), (u32)n);
      found = true;
      // What is refused equals one that is taken, or is excluded.
#pragma unroll 2
      for (u32 i = 0; i < fanout && !a.replace; i++) found &= own[i] != p;
      if (x0 < x1) {
        u64 at = excluded_below(a.excluded + x0, x1 - x0, start + p);
        found &= at == x1 - x0 || a.excluded[x0 + at] != start + p;
      }
      if (found) {
        own[j] = p;
        if (!a.replace) taken |= 1u << j;
        if (total && !a.replace) total -= w.of(p);
      }
    }
    if (found) continue;
    if (!total) {
      total = w.sums[n - 1];
      for (u64 i = x0; i < x1; i++) total -= w.of(a.excluded[i] - start);
      for (u32 left = taken; left; left &= left - 1) total -= w.of(own[__ffs(left) - 1]);
    }
    u64 x = __umul64hi(draw_bits(state, fanout * (1 + TRIES) + j), total), y = x, before;
    // The least y that has x beside all that is left out before it.
    do {
      before = y;
      y = x;
      for (u64 i = x0; i < x1; i++) y += w.skipped(a.excluded[i] - start, before);
      for (u32 left = taken; left; left &= left - 1) y += w.skipped(own[__ffs(left) - 1], before);
    } while (y != before);
    u64 p = w.at(y, n);
    own[j] = (u32)p;
    if (!a.replace) taken |= 1u << j, total -= w.of(p);
  }
}

__device__ __forceinline__ u64 warp_sum64(u64 x) {
#pragma unroll
  for (int i = 16; i; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}

// All choices of a row by a warp, for any fanout; they stand where the edge ids will.
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
  u64 total = 0;
  for (u32 j = 0; j < fanout; j++) {
    if (read(edge_ids, bits, e0 + j) != REFUSED) continue;
    bool found = false;
    u64 p = 0;
    for (u32 t = 0; t < TRIES && !found; t++) {
      p = weighted_pick(a.alias + start, draw_bits64(state, fanout + (u64)j * TRIES + t), n);
      u64 at = excluded_below(a.excluded + x0, x1 - x0, start + p);
      bool bad = at < x1 - x0 && a.excluded[x0 + at] == start + p;
      for (u32 i = lane; !a.replace && i < fanout; i += 32) bad |= read(edge_ids, bits, e0 + i) == p;
      found = !__any_sync(~0u, bad);
    }
    if (found) {
      if (lane == 0) write(edge_ids, bits, e0 + j, p);
      __syncwarp();
      if (total && !a.replace) total -= w.of(p);
      continue;
    }
    if (!total) {
      u64 out = 0;
      for (u64 i = x0 + lane; i < x1; i += 32) out += w.of(a.excluded[i] - start);
      for (u32 i = lane; !a.replace && i < fanout; i += 32) {
        p = read(edge_ids, bits, e0 + i);
        if (p != REFUSED) out += w.of(p);
      }
      total = w.sums[n - 1] - warp_sum64(out);
    }
    u64 x = __umul64hi(draw_bits64(state, (u64)fanout * (1 + TRIES) + j), total), y = x, before;
    do {
      before = y;
      u64 skipped = 0;
      for (u64 i = x0 + lane; i < x1; i += 32) skipped += w.skipped(a.excluded[i] - start, before);
      for (u32 i = lane; !a.replace && i < fanout; i += 32) {
        p = read(edge_ids, bits, e0 + i);
        if (p != REFUSED) skipped += w.skipped(p, before);
      }
      y = x + warp_sum64(skipped);
    } while (y != before);
    p = w.at(y, n);
    __syncwarp();
    if (lane == 0) write(edge_ids, bits, e0 + j, p);
    __syncwarp();
    if (!a.replace) total -= w.of(p);
  }
}
