// LABOR's chances: for each column the factor c of min(1, c q). Go twin: internal/program/run/labor.go.
#pragma once
#include "program_sums.cuh"

// The sum of a column's terms, in the order of sum_columns; every lane of the warp has it.
template <class Term>
__device__ __forceinline__ double warp_sum_of(u32 lo, u32 hi, Term term) {
  return __shfl_sync(~0u, sum_from(lo, hi, term), 0);
}

// A warp a column. It goes through the edges twice a step, and steps are few: some three for most weights.
template <class A, class Q>
__device__ __forceinline__ bool labor(Machine& m, const double*& factors, const Edges& e, long long k, u32 node, A a, Q q) {
  auto wrong = [](double x) { return !(x >= 0 && finite(x)); };
  if (!m.chances(e.n, node, [&](u32 i) { return e.columns(e.column[i]); }, [&](u32 i) -> double { return wrong(a(i)) ? a(i) : q(i); }))
    return false;
  double* to = m.take<double>(e.columns.n);
  if (!m.well()) return false;
  m.each_warp(e.columns.n, [&](u32 column) {
    u32 lo = e.begins[column], hi = e.begins[column + 1], lane = threadIdx.x & 31, candidates = 0;
    u64 least = ~0ull;
#pragma unroll 1
    for (u32 i = lo + lane; i < hi; i += 32) {
      double x = q(i);
      if (x > 0 && a(i) > 0) candidates++, least = min(least, bits_of(x));
    }
    candidates = warp_sum32(candidates);
    least = ~warp_max(~least);
    double c = 0;
    if (candidates && (k < 0 || candidates <= (u64)k)) c = op_div(1.0, of_bits(least));
    if (candidates && k >= 0 && candidates > (u64)k) {
      auto open = [&](u32 i) { return a(i) > 0 && q(i) > 0 && __dmul_rn(c, q(i)) < 1; };
      double d = warp_sum_of(lo, hi, [&](u32 i) { return open(i) ? a(i) : 0.0; });
      double goal = __dmul_rn(__dmul_rn(d, d), op_sub(op_div(1.0, (double)k), op_div(1.0, (double)candidates)));
      for (double next;; c = next) {
        double above = warp_sum_of(lo, hi, [&](u32 i) { return open(i) ? op_div(__dmul_rn(a(i), a(i)), q(i)) : 0.0; });
        double below = warp_sum_of(lo, hi, [&](u32 i) { return open(i) ? __dmul_rn(a(i), a(i)) : 0.0; });
        next = op_div(above, __dadd_rn(goal, below));
        if (!(next > c)) break;
      }
    }
    if (lane == 0) to[column] = c;
  });
  m.barrier();
  factors = to;
  return true;
}
