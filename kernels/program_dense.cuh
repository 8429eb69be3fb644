// Dense rows of a program: float32 numbers of vertices, times inputs, and of edges the product of two. Products are
// exact as doubles and are added in the order that docs/operators.md has. Rows come as functors of a row and a number
// of it. Go twin: internal/program/rows.
#pragma once
#include "program_edges.cuh"

// Rows that a warp multiplies at a time, and numbers of each that it keeps in its part of the shared memory.
#define DENSE_ROWS 4
#define DENSE_NUMBERS 32

// n rows of d numbers times w, d by h: a warp has some rows, and a lane one number of each.
template <u32 d, u32 h, class X>
__device__ __forceinline__ bool project(Machine& m, const float*& product, u32 n, const float* __restrict__ w, X x) {
  static_assert(DENSE_ROWS * DENSE_NUMBERS <= 256, "rows stand in a warp's digits");
  float* to = m.take<float>((u64)n * h);
  if (!m.well()) return false;
  constexpr u32 tiles = (h + 31) / 32;
  u32 lane = threadIdx.x & 31;
  float* staged = (float*)m.s.digits[threadIdx.x >> 5];
  // Other warps may have been at these digits in the step before.
  __syncthreads();
  m.each_warp((u32)(((u64)n + DENSE_ROWS - 1) / DENSE_ROWS * tiles), [&](u32 unit) {
    u32 begin = unit / tiles * DENSE_ROWS, j = unit % tiles * 32 + lane;
    double sums[DENSE_ROWS] = {};
#pragma unroll 1
    for (u32 k0 = 0; k0 < d; k0 += DENSE_NUMBERS) {
      __syncwarp();
#pragma unroll
      for (u32 r = 0; r < DENSE_ROWS; r++) {
        if (begin + r < n && k0 + lane < d) staged[r * DENSE_NUMBERS + lane] = x(begin + r, k0 + lane);
      }
      __syncwarp();
      if (j < h) {
        u32 some = min((u32)DENSE_NUMBERS, d - k0);
#pragma unroll 4
        for (u32 k = 0; k < some; k++) {
          double weight = (double)w[(u64)(k0 + k) * h + j];
#pragma unroll
          for (u32 r = 0; r < DENSE_ROWS; r++) {
            sums[r] = sums[r] + (double)staged[r * DENSE_NUMBERS + k] * weight;
          }
        }
      }
    }
#pragma unroll
    for (u32 r = 0; r < DENSE_ROWS; r++) {
      if (begin + r < n && j < h) to[(u64)(begin + r) * h + j] = (float)sums[r];
    }
  });
  // The digits serve other steps, which begin where all threads of a block have met.
  __syncthreads();
  m.loose = true;
  product = to;
  return true;
}

// Of n pairs of rows of d numbers the products: eight lanes have an edge's eight sums.
template <u32 d, class P, class Q, class From, class Lead>
__device__ __forceinline__ bool dot(Machine& m, const double*& values, u32 n, P p, Q q, From from, Lead lead) {
  double* to = m.take<double>(n);
  if (!m.well()) return false;
  u32 lane = threadIdx.x & 31, of = lane & 7;
  m.each_warp((u32)(((u64)n + 3) / 4), [&](u32 unit) {
    u32 i = unit * 4 + (lane >> 3);
    double sum = 0;
    if (i < n) {
      u32 u = (u32)from(i), v = (u32)lead(i);
#pragma unroll 4
      for (u32 k = of; k < d; k += 8) sum = sum + (double)p(u, k) * (double)q(v, k);
    }
    // Which of two is added to the other does not matter, so all lanes have the first one's sum in the end.
#pragma unroll
    for (u32 half = 4; half; half >>= 1) sum += __shfl_xor_sync(~0u, sum, half);
    if (i < n && of == 0) to[i] = sum;
  });
  m.loose = true;
  values = to;
  return true;
}
