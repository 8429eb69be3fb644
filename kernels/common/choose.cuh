// The choice of a row's edges, for all sampling kernels: arrays of 32 or 64 bits, the number of
// edges that a row contributes, Robert Floyd's algorithm for distinct positions, and the positions
// of excluded edges. Every function computes the same values as its Go twin.
//
// Go twins: batch.Place, request.Rule, internal/rng/choose.go, csc.Skip in
// internal/graph/csc/exclude.go.
#pragma once
#include "common/philox.cuh"

__device__ __forceinline__ u64 read(const void* p, u32 bits, u64 i) {
  return bits == 32 ? (u64)(long long)((const int*)p)[i] : (u64)((const long long*)p)[i];
}
__device__ __forceinline__ void write(void* p, u32 bits, u64 i, u64 value) {
  if (bits == 32) ((int*)p)[i] = (int)value;
  else ((long long*)p)[i] = (long long)value;
}

// Where the next array of a batch begins.
__device__ __forceinline__ u64 align64(u64 n) { return (n + (ALIGNMENT - 1)) & ~(u64)(ALIGNMENT - 1); }

// Whether a row gives all its edges, in order, without a draw; else it gives fanout of them. The kernel's
// arguments are passed whole, since reading `replace` before it is needed changes the code around it.
template <class Args>
__device__ __forceinline__ bool gives_all(const Args& a, u64 degree, long long fanout) {
  return fanout < 0 || degree == 0 || (!a.replace && degree <= (u64)fanout);
}

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

// How many of n excluded positions, which ascend, are below p.
__device__ __forceinline__ u64 excluded_below(const u64* excluded, u64 n, u64 p) {
  u64 lo = 0;
  while (lo < n) {
    u64 middle = (lo + n) / 2;
    if (excluded[middle] < p) lo = middle + 1;
    else n = middle;
  }
  return lo;
}

// The CSC position of the pick-th edge that is not excluded of the row that begins at start.
__device__ __forceinline__ u64 kept_position(const u64* excluded, u64 n, u64 start, u64 pick) {
  u64 first = excluded_below(excluded, n, start), lo = first;
  // excluded[i] has excluded[i] - start - (i - first) kept edges of the row before it. Those of later
  // rows have at least as many as the row keeps, which is more than pick.
  while (lo < n) {
    u64 middle = (lo + n) / 2;
    if (excluded[middle] - start - (middle - first) <= pick) lo = middle + 1;
    else n = middle;
  }
  return start + pick + (lo - first);
}
