// LABOR's chances: for each column the factor c of min(1, c q). Go twin: internal/program/run/labor.go.
#pragma once
#include "program_sums.cuh"

// The sum of a column's terms, in the order of sum_columns; every lane of the warp has it.
template <class Term>
__device__ __forceinline__ double warp_sum_of(u32 lo, u32 hi, Term term) {
  return __shfl_sync(~0u, sum_from(lo, hi, term), 0);
}

// Edges from which on a column is a block's: one warp would be all that the others wait for.
const u32 LABOR_LONG = 2048;
// Sums of 32s that a block keeps at a time, where no digits are; behind them is a word a warp.
const u32 LABOR_SUMS = PROGRAM_WARPS * 128 - 64;

// Likewise by a block.
template <class Term>
__device__ __forceinline__ double block_sum_of(Machine& m, u32 lo, u32 hi, Term term) {
  double *sums = (double*)m.s.digits, total = 0;
#pragma unroll 1
  for (u32 i0 = lo; i0 < hi;) {
    u32 end = hi - i0 > 32 * LABOR_SUMS ? i0 + 32 * LABOR_SUMS : hi, n = (end - i0 + 31) / 32;
#pragma unroll 1
    for (u32 g = threadIdx.x / 32 * 4; g < n; g += PROGRAM_WARPS * 4) {
      Four own = sums32(i0 + 32 * g, end, term);
      if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (u32 j = 0; j < 4; j++)
          if (g + j < n) sums[g + j] = own.x[j];
      }
    }
    __syncthreads();
#pragma unroll 4
    for (u32 g = 0; g < n; g++) total = __dadd_rn(total, sums[g]);
    __syncthreads();
    i0 = end;
  }
  return total;
}

// The sums of a column by its warp, and by its block.
struct WarpSum {
  u32 lo, hi;
  template <class Term>
  __device__ __forceinline__ double operator()(Term term) const { return warp_sum_of(lo, hi, term); }
};
struct BlockSum {
  Machine& m;
  u32 lo, hi;
  template <class Term>
  __device__ __forceinline__ double operator()(Term term) const { return block_sum_of(m, lo, hi, term); }
};

// The factor of a column with so many candidates, of which `least` are the bits of the least q. Steps are few:
// some three for most weights.
template <class A, class Q, class Sum>
__device__ __forceinline__ double labor_factor(long long k, u32 candidates, u64 least, A a, Q q, Sum sum) {
  if (!candidates) return 0;
  if (k < 0 || candidates <= (u64)k) return op_div(1.0, of_bits(least));
  double c = 0;
  auto open = [&](u32 i) { return a(i) > 0 && q(i) > 0 && __dmul_rn(c, q(i)) < 1; };
  double d = sum([&](u32 i) { return open(i) ? a(i) : 0.0; });
  double goal = __dmul_rn(__dmul_rn(d, d), op_sub(op_div(1.0, (double)k), op_div(1.0, (double)candidates)));
  for (double next;; c = next) {
    double above = sum([&](u32 i) { return open(i) ? op_div(__dmul_rn(a(i), a(i)), q(i)) : 0.0; });
    double below = sum([&](u32 i) { return open(i) ? __dmul_rn(a(i), a(i)) : 0.0; });
    next = op_div(above, __dadd_rn(goal, below));
    if (!(next > c)) return c;
  }
}

// A warp a column, and a block a long one.
template <class A, class Q>
__device__ __forceinline__ bool labor(Machine& m, const double*& factors, const Edges& e, long long k, u32 node, A a, Q q) {
  auto wrong = [](double x) { return !(x >= 0 && finite(x)); };
  if (!m.chances(e.n, node, [&](u32 i) { return e.columns(e.column[i]); }, [&](u32 i) -> double { return wrong(a(i)) ? a(i) : q(i); }))
    return false;
  double* to = m.take<double>(e.columns.n);
  if (!m.well()) return false;
  // Of the edges from a place on, so many apart: how many are candidates, and the least q of all that the warp has.
  auto look = [&](u32 from, u32 hi, u32 apart, u32& candidates, u64& least) {
    candidates = 0, least = ~0ull;
#pragma unroll 1
    for (u32 i = from; i < hi; i += apart) {
      double x = q(i);
      if (x > 0 && a(i) > 0) candidates++, least = min(least, bits_of(x));
    }
    candidates = warp_sum32(candidates);
    least = ~warp_max(~least);
  };
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  m.each_warp(e.columns.n, [&](u32 column) {
    u32 lo = e.begins[column], hi = e.begins[column + 1], candidates;
    if (hi - lo >= LABOR_LONG) return;
    u64 least;
    look(lo + lane, hi, 32, candidates, least);
    double c = labor_factor(k, candidates, least, a, q, WarpSum{lo, hi});
    if (lane == 0) to[column] = c;
  });
  // Long columns are often beside each other: blocks take those that are far apart.
  u64* of_warps = (u64*)m.s.digits;
  u32* words = (u32*)(of_warps + LABOR_SUMS);
#pragma unroll 1
  for (u64 first = blockIdx.x; first < e.columns.n; first += (u64)PROGRAM_THREADS * gridDim.x) {
    u64 mine = first + (u64)threadIdx.x * gridDim.x;
    u32 those = __ballot_sync(~0u, mine < e.columns.n && e.begins[mine + 1] - e.begins[mine] >= LABOR_LONG);
    __syncthreads();
    if (lane == 0) words[warp] = those;
    __syncthreads();
#pragma unroll 1
    for (u32 w = 0; w < PROGRAM_WARPS; w++) {
#pragma unroll 1
      for (u32 left = words[w]; left; left &= left - 1) {
        u32 column = (u32)(first + (u64)(32 * w + __ffs((int)left) - 1) * gridDim.x);
        u32 lo = e.begins[column], hi = e.begins[column + 1], candidates;
        u64 least;
        look(lo + threadIdx.x, hi, PROGRAM_THREADS, candidates, least);
        if (lane == 0) of_warps[2 * warp] = candidates, of_warps[2 * warp + 1] = least;
        __syncthreads();
        candidates = 0, least = ~0ull;
        for (u32 j = 0; j < PROGRAM_WARPS; j++) candidates += (u32)of_warps[2 * j], least = min(least, of_warps[2 * j + 1]);
        __syncthreads();
        double c = labor_factor(k, candidates, least, a, q, BlockSum{m, lo, hi});
        if (threadIdx.x == 0) to[column] = c;
      }
    }
  }
  m.barrier();
  factors = to;
  return true;
}
