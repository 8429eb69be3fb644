// LABOR's chances: for each column the factor c of min(1, c q). Go twin: internal/program/run/labor.go.
#pragma once
#include "program_sums.cuh"

// The sum of a column's terms, in the order of sum_columns; every lane of the warp has it.
template <class Term>
__device__ __forceinline__ double warp_sum_of(u32 lo, u32 hi, Term term) {
  return __shfl_sync(~0u, sum_from(lo, hi, term), 0);
}

// Edges from which on a column is cut into pieces: one warp would be all that the others wait for.
const u32 LABOR_LONG = 2 * SUMMED;

// The search for a column's factor c: it grows from 0 on, in few steps, some three for most weights. Its terms are of
// edges that c leaves open, those whose chance is below 1.
template <class A, class Q>
struct Open {
  A a;
  Q q;
  double c;
  __device__ __forceinline__ bool operator()(u32 i) const { return a(i) > 0 && q(i) > 0 && __dmul_rn(c, q(i)) < 1; }
  __device__ __forceinline__ double value(u32 i) const { return (*this)(i) ? a(i) : 0.0; }
  __device__ __forceinline__ double above(u32 i) const { return (*this)(i) ? op_div(__dmul_rn(a(i), a(i)), q(i)) : 0.0; }
  __device__ __forceinline__ double below(u32 i) const { return (*this)(i) ? __dmul_rn(a(i), a(i)) : 0.0; }
};
// Whether a column with so many candidates, of which `least` are the bits of the least q, has its factor without a search.
__device__ __forceinline__ bool labor_known(long long k, u32 candidates, u64 least, double& c) {
  c = !candidates || (k >= 0 && candidates > (u64)k) ? 0 : op_div(1.0, of_bits(least));
  return !candidates || k < 0 || candidates <= (u64)k;
}
// What the sum of a^2 / min(1, c q) is to be above that of a^2, where d is the sum of the values.
__device__ __forceinline__ double labor_goal(long long k, u32 candidates, double d) {
  return __dmul_rn(__dmul_rn(d, d), op_sub(op_div(1.0, (double)k), op_div(1.0, (double)candidates)));
}
// The next c of a column; false: the one before is the last.
__device__ __forceinline__ bool labor_next(double& c, double goal, double above, double below) {
  double next = op_div(above, __dadd_rn(goal, below));
  if (!(next > c)) return false;
  c = next;
  return true;
}

// Of some edges: how many are candidates, and the bits of the least q of them.
struct Candidates {
  u32 n;
  u64 least;
};
template <class A, class Q>
__device__ __forceinline__ Candidates labor_candidates(u32 lo, u32 hi, A a, Q q) {
  Candidates found{0, ~0ull};
#pragma unroll 1
  for (u32 i = lo + (threadIdx.x & 31); i < hi; i += 32) {
    double x = q(i);
    if (x > 0 && a(i) > 0) found.n++, found.least = min(found.least, bits_of(x));
  }
  return Candidates{warp_sum32(found.n), ~warp_max(~found.least)};
}

// A long column that is searched: its pieces stand one behind another.
struct LongColumn {
  double c, goal;
  u32 column, first, pieces;
  u32 done;
};

// The factors of long columns, the steps of all of them together: a warp sums a piece, then one the pieces of a column. With four
// counters, of which two say how many pieces and columns there are.
template <class A, class Q>
__device__ __forceinline__ bool labor_long(Machine& m, double* to, const Edges& e, long long k, u32* cells, const uint2* pieces, LongColumn* columns,
                                           double* parts, A a, Q q) {
  u32 lane = threadIdx.x & 31, num_pieces = load_relaxed(cells), num_columns = load_relaxed(cells + 1), *going = cells + 2;
  if (!num_pieces) return true;
  Candidates* found = m.take<Candidates>(num_pieces);
  if (!m.well()) return false;
  double* second = parts + num_pieces;
  m.each_warp(num_pieces, [&](u32 i) {
    u32 lo = pieces[i].x, hi = min(lo + SUMMED, e.begins[columns[pieces[i].y].column + 1]);
    Candidates own = labor_candidates(lo, hi, a, q);
    Open<A, Q> open{a, q, 0};
    double d = sum_from(lo, hi, [&](u32 i) { return open.value(i); });
    if (lane == 0) found[i] = own, parts[i] = d;
  });
  m.barrier();
  m.each_warp(num_columns, [&](u32 i) {
    LongColumn column = columns[i];
    Candidates all{0, ~0ull};
    for (u32 j = lane; j < column.pieces; j += 32) {
      Candidates own = found[column.first + j];
      all.n += own.n, all.least = min(all.least, own.least);
    }
    all = Candidates{warp_sum32(all.n), ~warp_max(~all.least)};
    column.done = labor_known(k, all.n, all.least, column.c);
    if (!column.done) column.goal = labor_goal(k, all.n, sum_in_order(parts + column.first, column.pieces));
    if (lane == 0) columns[i] = column, to[column.column] = column.c;
  });
  m.barrier();
#pragma unroll 1
  for (u32 step = 1;; step++) {
    m.each_warp(num_pieces, [&](u32 i) {
      LongColumn column = columns[pieces[i].y];
      if (column.done) return;
      u32 lo = pieces[i].x, hi = min(lo + SUMMED, e.begins[column.column + 1]);
      Open<A, Q> open{a, q, column.c};
      double above = sum_from(lo, hi, [&](u32 i) { return open.above(i); });
      double below = sum_from(lo, hi, [&](u32 i) { return open.below(i); });
      if (lane == 0) parts[i] = above, second[i] = below;
    });
    m.barrier();
    m.each_warp(num_columns, [&](u32 i) {
      LongColumn column = columns[i];
      if (column.done) return;
      double above = sum_in_order(parts + column.first, column.pieces), below = sum_in_order(second + column.first, column.pieces);
      column.done = !labor_next(column.c, column.goal, above, below);
      if (lane) return;
      columns[i] = column, to[column.column] = column.c;
      if (!column.done) atomicMax(going, step);
    });
    m.barrier();
    if (load_relaxed(going) != step) return true;
  }
}

// A warp a column; long ones follow, by pieces. With four counters beside those of the chances.
template <class A, class Q>
__device__ __forceinline__ bool labor(Machine& m, const double*& factors, const Edges& e, long long k, u32 node, A a, Q q) {
  auto wrong = [](double x) { return !(x >= 0 && finite(x)); };
  if (!m.chances(e.n, node, [&](u32 i) { return e.columns(e.column[i]); }, [&](u32 i) -> double { return wrong(a(i)) ? a(i) : q(i); }))
    return false;
  u32 *cells = m.counters(4), most = e.n < LABOR_LONG ? 0 : e.n / SUMMED + e.n / LABOR_LONG;
  double *to = m.take<double>(e.columns.n), *parts = m.take<double>(2 * (u64)most);
  uint2* pieces = m.take<uint2>(most);
  LongColumn* columns = m.take<LongColumn>(most ? e.n / LABOR_LONG : 0);
  if (!m.well()) return false;
  u32 lane = threadIdx.x & 31;
  m.each_warp(e.columns.n, [&](u32 column) {
    u32 lo = e.begins[column], hi = e.begins[column + 1];
    if (hi - lo >= LABOR_LONG) {
      u32 n = (hi - lo + SUMMED - 1) / SUMMED, first = 0, at = 0;
      if (lane == 0) {
        first = atomicAdd(cells, n), at = atomicAdd(cells + 1, 1u);
        columns[at] = LongColumn{0, 0, column, first, n, 0};
      }
      first = __shfl_sync(~0u, first, 0), at = __shfl_sync(~0u, at, 0);
#pragma unroll 1
      for (u32 j = lane; j < n; j += 32) pieces[first + j] = make_uint2(lo + j * SUMMED, at);
      return;
    }
    Candidates all = labor_candidates(lo, hi, a, q);
    double c;
    if (!labor_known(k, all.n, all.least, c)) {
      Open<A, Q> open{a, q, 0};
      double goal = labor_goal(k, all.n, warp_sum_of(lo, hi, [&](u32 i) { return open.value(i); })), above, below;
      do {
        open.c = c;
        above = warp_sum_of(lo, hi, [&](u32 i) { return open.above(i); });
        below = warp_sum_of(lo, hi, [&](u32 i) { return open.below(i); });
      } while (labor_next(c, goal, above, below));
    }
    if (lane == 0) to[column] = c;
  });
  m.barrier();
  if (most && !labor_long(m, to, e, k, cells, pieces, columns, parts, a, q)) return false;
  factors = to;
  return true;
}
