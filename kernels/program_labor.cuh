// Chances min(1, c q) of a column's edges: its factor c, by what LABOR asks of them (Go twin: internal/program/run/labor.go)
// or by their sum (level.go there).
#pragma once
#include "program_sums.cuh"

// The sum of a column's terms, in the order of sum_columns; every lane of the warp has it.
template <class Term>
__device__ __forceinline__ double warp_sum_of(u32 lo, u32 hi, Term term) {
  return __shfl_sync(~0u, sum_from(lo, hi, term), 0);
}

// Edges from which on a column is cut into pieces: one warp would be all that the others wait for.
const u32 LONG_SEARCH = 2 * SUMMED;

// The search for a column's factor c: it grows from 0 on, in few steps, some three for most weights. Its terms are of candidates,
// those with a ratio q(i) > 0, and `open` are those of them whose chance is below 1. A search has next(goal, above, below) until
// that does not grow any more, `above` and `below` being sums of its terms, and goal(column, candidates, sum of value(i)).
struct Candidates {
  u32 n;
  u64 least;  // the bits of the least ratio
};
// LABOR's: the sum of a^2 / min(1, c q) is to be above that of a^2 by a goal. Of each edge its ratio, 0 where it is no candidate,
// and a^2 / q have been written down: a search goes over them again and again, and to divide takes longer than to read.
__device__ __forceinline__ double2 labor_term(double a, double q) {
  return a > 0 && q > 0 ? make_double2(q, op_div(__dmul_rn(a, a), q)) : make_double2(0, 0);
}
template <class A>
struct LaborSearch {
  long long k;
  A a;
  const double2* terms;
  __device__ __forceinline__ bool candidate(u32 i) const { return terms[i].x > 0; }
  __device__ __forceinline__ double ratio(u32 i) const { return terms[i].x; }
  __device__ __forceinline__ double value(u32 i) const { return candidate(i) ? a(i) : 0.0; }
  __device__ __forceinline__ double2 sums(u32 i, double c) const {
    double2 own = terms[i];
    return own.x > 0 && __dmul_rn(c, own.x) < 1 ? make_double2(own.y, __dmul_rn(a(i), a(i))) : make_double2(0, 0);
  }
  // Whether a column has its factor without a search.
  __device__ __forceinline__ bool known(u32, Candidates all, double& c) const {
    c = !all.n || (k >= 0 && all.n > (u64)k) ? 0 : op_div(1.0, of_bits(all.least));
    return !all.n || k < 0 || all.n <= (u64)k;
  }
  __device__ __forceinline__ double goal(u32, u32 candidates, double d) const {
    return __dmul_rn(__dmul_rn(d, d), op_sub(op_div(1.0, (double)k), op_div(1.0, (double)candidates)));
  }
  __device__ __forceinline__ double next(double goal, double above, double below) const { return op_div(above, __dadd_rn(goal, below)); }
};
// A sum of the chances: what is left of it by those that are capped is shared by those that are not.
template <class V, class Sum>
struct LevelSearch {
  V v;
  Sum sum;
  __device__ __forceinline__ bool candidate(u32 i) const { return v(i) > 0; }
  __device__ __forceinline__ double ratio(u32 i) const { return v(i); }
  __device__ __forceinline__ double value(u32) const { return 0; }
  __device__ __forceinline__ double2 sums(u32 i, double c) const {
    double own = v(i);
    bool open = own > 0 && __dmul_rn(c, own) < 1;
    return make_double2(!open && own > 0 ? 1.0 : 0.0, open ? own : 0.0);
  }
  __device__ __forceinline__ bool known(u32 column, Candidates all, double& c) const {
    double to = sum(column);
    bool none = !all.n || !(to > 0), every = (double)all.n <= to;
    double above = op_div(2.0, of_bits(all.least)), largest = of_bits(0x7fefffffffffffffull);
    c = none || !every ? 0 : above < largest ? above : largest;
    return none || every;
  }
  __device__ __forceinline__ double goal(u32 column, u32, double) const { return sum(column); }
  __device__ __forceinline__ double next(double goal, double above, double below) const { return op_div(op_sub(goal, above), below); }
};

// The next c of a column; false: this one is the last.
template <class Search>
__device__ __forceinline__ bool next_factor(const Search& search, double& c, double goal, double2 sums) {
  double next = search.next(goal, sums.x, sums.y);
  if (!(next > c)) return false;
  c = next;
  return true;
}

template <class Search>
__device__ __forceinline__ Candidates candidates_of(u32 lo, u32 hi, const Search& of) {
  Candidates found{0, ~0ull};
#pragma unroll 1
  for (u32 i = lo + (threadIdx.x & 31); i < hi; i += 32)
    if (of.candidate(i)) found.n++, found.least = min(found.least, bits_of(of.ratio(i)));
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
template <class Search>
__device__ __forceinline__ bool long_factors(Machine& m, double* to, const Edges& e, u32* cells, const uint2* pieces, LongColumn* columns,
                                             double* parts, const Search& search) {
  u32 lane = threadIdx.x & 31, num_pieces = load_relaxed(cells), num_columns = load_relaxed(cells + 1), *going = cells + 2;
  if (!num_pieces) return true;
  Candidates* found = m.take<Candidates>(num_pieces);
  if (!m.well()) return false;
  double* second = parts + num_pieces;
  m.each_warp(num_pieces, [&](u32 i) {
    u32 lo = pieces[i].x, hi = min(lo + SUMMED, e.begins[columns[pieces[i].y].column + 1]);
    Candidates own = candidates_of(lo, hi, search);
    double d = sum_from(lo, hi, [&](u32 i) { return search.value(i); });
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
    column.done = search.known(column.column, all, column.c);
    if (!column.done) column.goal = search.goal(column.column, all.n, sum_in_order(parts + column.first, column.pieces));
    if (lane == 0) columns[i] = column, to[column.column] = column.c;
  });
  m.barrier();
#pragma unroll 1
  for (u32 step = 1;; step++) {
    m.each_warp(num_pieces, [&](u32 i) {
      LongColumn column = columns[pieces[i].y];
      if (column.done) return;
      u32 lo = pieces[i].x, hi = min(lo + SUMMED, e.begins[column.column + 1]);
      double2 sums = sums_from(lo, hi, [&](u32 i) { return search.sums(i, column.c); });
      if (lane == 0) parts[i] = sums.x, second[i] = sums.y;
    });
    m.barrier();
    m.each_warp(num_columns, [&](u32 i) {
      LongColumn column = columns[i];
      if (column.done) return;
      double above = sum_in_order(parts + column.first, column.pieces), below = sum_in_order(second + column.first, column.pieces);
      column.done = !next_factor(search, column.c, column.goal, make_double2(above, below));
      if (lane) return;
      columns[i] = column, to[column.column] = column.c;
      if (!column.done) atomicMax(going, step);
    });
    m.barrier();
    if (load_relaxed(going) != step) return true;
  }
}

// A warp a column; long ones follow, by pieces. With four counters.
template <class Search>
__device__ __forceinline__ bool factors_of(Machine& m, const double*& factors, const Edges& e, const Search& search) {
  u32 *cells = m.counters(4), most = e.n < LONG_SEARCH ? 0 : e.n / SUMMED + e.n / LONG_SEARCH;
  double *to = m.take<double>(e.columns.n), *parts = m.take<double>(2 * (u64)most);
  uint2* pieces = m.take<uint2>(most);
  LongColumn* columns = m.take<LongColumn>(most ? e.n / LONG_SEARCH : 0);
  if (!m.well()) return false;
  u32 lane = threadIdx.x & 31;
  m.each_warp(e.columns.n, [&](u32 column) {
    u32 lo = e.begins[column], hi = e.begins[column + 1];
    if (hi - lo >= LONG_SEARCH) {
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
    Candidates all = candidates_of(lo, hi, search);
    double c = 0;
    if (!search.known(column, all, c)) {
      double goal = search.goal(column, all.n, warp_sum_of(lo, hi, [&](u32 i) { return search.value(i); }));
      double2 sums;
      do {
        sums = sums_from(lo, hi, [&](u32 i) { return search.sums(i, c); });
        sums = make_double2(__shfl_sync(~0u, sums.x, 0), __shfl_sync(~0u, sums.y, 0));
      } while (next_factor(search, c, goal, sums));
    }
    if (lane == 0) to[column] = c;
  });
  m.barrier();
  if (most && !long_factors(m, to, e, cells, pieces, columns, parts, search)) return false;
  factors = to;
  return true;
}

// With two counters beside those of the search, as `level`.
template <class A, class Q>
__device__ __forceinline__ bool labor(Machine& m, const double*& factors, const Edges& e, long long k, u32 node, A a, Q q) {
  auto wrong = [](double x) { return !(x >= 0 && finite(x)); };
  double2* terms = m.take<double2>(e.n);
  u32* worst = m.counters(2);
  if (!m.well()) return false;
  m.each(e.n, [&](u32 i) {
    double own = a(i), ratio = q(i);
    if (wrong(own) || wrong(ratio)) atomicMax(worst, ~i);
    else terms[i] = labor_term(own, ratio);
  });
  m.barrier();
  if (!m.looked(worst, node, [&](u32 i) { return e.columns(e.column[i]); }, [&](u32 i) -> double { return wrong(a(i)) ? a(i) : q(i); }))
    return false;
  return factors_of(m, factors, e, LaborSearch<A>{k, a, terms});
}

// Likewise where all weights and ratios are 1: the search ends after one step, whose sums are known.
__device__ __noinline__ bool labor_of_ones(Machine& m, const double*& factors, const Edges& e, long long k) {
  double* to = m.take<double>(e.columns.n);
  if (!m.well()) return false;
  m.each(e.columns.n, [&](u32 column) {
    u32 n = e.begins[column + 1] - e.begins[column];
    LaborSearch<double (*)(u32)> search{k, nullptr, nullptr};
    double c = 0;
    if (!search.known(column, Candidates{n, ONE_BITS}, c)) next_factor(search, c, search.goal(column, n, n), make_double2(n, n));
    to[column] = c;
  });
  m.barrier();
  factors = to;
  return true;
}

template <class V, class Sum>
__device__ __forceinline__ bool level(Machine& m, const double*& factors, const Edges& e, u32 node, V v, Sum sum) {
  return m.chances(e.n, node, [&](u32 i) { return e.columns(e.column[i]); }, v) && factors_of(m, factors, e, LevelSearch<V, Sum>{v, sum});
}
