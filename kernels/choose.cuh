// Which edges of a row are taken. Go twins: internal/rng/choose.go, csc.Skip in internal/csc/exclude.go.
#pragma once
#include "neighbor.cuh"

// Choice j of Robert Floyd's algorithm, from the draws of the row, without making the choices before
// it: a draw gives way to the largest position of its step, top, when it was chosen before. It was if
// an earlier draw is equal; else only if it is the top of an earlier step which gave way.
__device__ __forceinline__ u32 floyd(const u32* draws, u32 j, u32 first_top) {
  for (u32 k = j;;) {
    u32 t = draws[k];
    bool met = false;
#pragma unroll 2
    for (u32 i = 0; i < k; i++) met |= draws[i] == t;
    if (met) return first_top + j;
    if (t < first_top || t - first_top >= k) return draws[j];
    k = t - first_top;
  }
}

// The same for a whole row by one thread, in place: a third of the instructions where there are rows
// enough for all threads, and much slower where there are few.
__device__ __forceinline__ void floyd_row(u32* row, u32 fanout, u32 first_top) {
#pragma unroll 1
  for (u32 j = 1; j < fanout; j++) {
    u32 t = row[j];
    bool met = false;
#pragma unroll 4
    for (u32 i = 0; i < j; i++) met |= row[i] == t;
    if (met) row[j] = first_top + j;
  }
}

// Floyd's algorithm by a warp, for any fanout: the choices stand where the edge ids will, which are
// wide enough for any position.
__device__ __noinline__ void choose_wide(const Args& a, void* edge_ids, u32 e0, u64 state, u64 degree, u32 fanout) {
  u32 lane = threadIdx.x & 31;
  for (u32 j = 0; j < fanout; j++) {
    u64 top = a.replace ? degree - 1 : degree - fanout + j, t = draw_below(state, j, top + 1);
    bool met = false;
    for (u32 i = lane; !a.replace && i < j; i += 32) met |= read(edge_ids, a.out_edge_bits, e0 + i) == t;
    if (__any_sync(~0u, met)) t = top;
    if (lane == 0) write(edge_ids, a.out_edge_bits, e0 + j, t);
    __syncwarp();
  }
}

// How many excluded positions are below p.
__device__ __noinline__ u64 excluded_below(const Args& a, u64 p) {
  u64 lo = 0, hi = a.num_excluded;
  while (lo < hi) {
    u64 middle = (lo + hi) / 2;
    if (a.excluded[middle] < p) lo = middle + 1;
    else hi = middle;
  }
  return lo;
}

// The CSC position of the pick-th edge of a row that is not excluded.
__device__ __noinline__ u64 kept_position(const Args& a, u64 start, u64 pick) {
  u64 first = excluded_below(a, start), lo = first, hi = a.num_excluded;
  // excluded[i] has excluded[i] - start - (i - first) kept edges of the row before it.
  while (lo < hi) {
    u64 middle = (lo + hi) / 2;
    if (a.excluded[middle] - start - (middle - first) <= pick) lo = middle + 1;
    else hi = middle;
  }
  return start + pick + (lo - first);
}
