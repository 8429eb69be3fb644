// Chances min(1, c q) of a column's edges, with its factor c by LABOR's equation (Go twin:
// internal/program/run/labor.go) or by their sum (Go twin: cap.go there).
//
// Source: M. F. Balin, U. V. Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion
// in GNNs", NeurIPS 2023.
#pragma once
#include "program/search.cuh"

// What factors of LABOR are at most, so that a product with a weight is a number.
const double LABOR_LARGE = 0x1p1000;

// Weights that are all 1.
struct Ones {
  __device__ __forceinline__ double operator()(u32) const { return 1; }
};
template <class A>
struct HeldWeight {
  static const bool ALIKE = false;
  double a = 0;
  __device__ __forceinline__ void hold(double x) { a = x; }
  __device__ __forceinline__ double operator()() const { return a; }
};
template <>
struct HeldWeight<Ones> {
  static const bool ALIKE = true;
  __device__ __forceinline__ void hold(double) {}
  __device__ __forceinline__ double operator()() const { return 1; }
};
struct AnyChance {
  __device__ __forceinline__ bool operator()(u32, double) const { return true; }
};
// LABOR's: the sum of a^2 / min(1, c q) is to be above that of a^2 by a goal; q is 0 where an edge is no candidate, and it is open
// while c q is below 1. Notes have a^2 / q: to divide takes longer than to read.
template <class A, class Q, class Right = AnyChance>
struct LaborSearch {
  static const bool TWO = !HeldWeight<A>::ALIKE;
  long long k;
  A a;
  Q q;
  double2* notes;
  Right right;  // whether an edge's number is one
  struct Held {
    double q = 0, share = 0;  // share: a^2 / q
    HeldWeight<A> a;
    __device__ __forceinline__ bool candidate() const { return q > 0; }
    __device__ __forceinline__ double ratio() const { return q; }
    __device__ __forceinline__ bool open(double c) const { return q > 0 && __dmul_rn(c, q) < 1; }
    __device__ __forceinline__ double main() const { return share; }
    __device__ __forceinline__ double second() const { return __dmul_rn(a(), a()); }
    __device__ __forceinline__ double value() const { return q > 0 ? a() : 0; }
  };
  __device__ __forceinline__ Held look(u32 i, u32 column) const {
    Held own;
    own.a.hold(a(i)), own.q = q(i, column);
    return own;
  }
  __device__ __forceinline__ void settle(u32 i, Held& own) const {
    double a = own.a();
    bool is = right(i, a) & right(i, own.q);
    if (is && a > 0 && own.q > 0) own.share = op_div(__dmul_rn(a, a), own.q);
    else own = Held();
  }
  __device__ __forceinline__ void note(u32 i, const Held& own) const { notes[i] = make_double2(own.q, own.share); }
  __device__ __forceinline__ Held noted(u32 i) const {
    double2 known = notes[i];
    Held own;
    if (known.x > 0) own.q = known.x, own.share = known.y, own.a.hold(a(i));
    return own;
  }
  __device__ __forceinline__ bool asks(u32, u32 n) const { return asks_of(k, n); }
  __device__ __forceinline__ static bool asks_of(long long k, u32 n) { return k < 0 || n <= (u64)k; }
  __device__ __forceinline__ bool known(u32, Candidates all, double& c) const { return known_of(k, all, c); }
  __device__ __forceinline__ static bool known_of(long long k, Candidates all, double& c) {
    c = !all.n || !asks_of(k, all.n) ? 0 : op_div(1.0, of_bits(all.least));
    return !all.n || asks_of(k, all.n);
  }
  __device__ __forceinline__ double goal(u32, u32 n, double values) const { return goal_of(k, n, values); }
  __device__ __forceinline__ static double goal_of(long long k, u32 n, double values) {
    return __dmul_rn(__dmul_rn(values, values), op_sub(op_div(1.0, (double)k), op_div(1.0, (double)n)));
  }
  __device__ __forceinline__ static double next(double goal, double shares, double squares, u32) {
    return op_div(shares, __dadd_rn(goal, squares));
  }
};
// A sum of the chances: what is left of it by those that are capped is shared by those that are not, which are open.
template <class V, class Sum>
struct LevelSearch {
  static const bool TWO = false;
  V v;
  Sum sum;
  struct Held {
    double v = 0;
    __device__ __forceinline__ bool candidate() const { return v > 0; }
    __device__ __forceinline__ double ratio() const { return v; }
    __device__ __forceinline__ bool open(double c) const { return v > 0 && __dmul_rn(c, v) < 1; }
    __device__ __forceinline__ double main() const { return v; }
    __device__ __forceinline__ double second() const { return 1; }
    __device__ __forceinline__ double value() const { return 1; }
  };
  __device__ __forceinline__ Held look(u32 i, u32) const {
    Held own;
    own.v = v(i);
    return own;
  }
  __device__ __forceinline__ void settle(u32, Held&) const {}
  __device__ __forceinline__ void note(u32, const Held&) const {}
  __device__ __forceinline__ Held noted(u32 i) const { return look(i, 0); }
  __device__ __forceinline__ bool asks(u32 column, u32 n) const { return (double)n <= sum(column); }
  __device__ __forceinline__ bool known(u32 column, Candidates all, double& c) const {
    double to = sum(column);
    bool none = !all.n || !(to > 0), every = (double)all.n <= to;
    double above = op_div(2.0, of_bits(all.least)), largest = of_bits(0x7fefffffffffffffull);
    c = none || !every ? 0 : above < largest ? above : largest;
    return none || every;
  }
  __device__ __forceinline__ double goal(u32 column, u32, double) const { return sum(column); }
  __device__ __forceinline__ static double next(double goal, double values, double open, u32 n) {
    return op_div(op_sub(goal, op_sub((double)n, open)), values);
  }
};

// With two counters beside those of the search.
template <class A, class Q>
__device__ __forceinline__ bool labor(Machine& m, const double*& factors, const Edges& e, long long k, u32 node, A a, Q q) {
  auto wrong = [](double x) { return !(x >= 0 && finite(x)); };
  double2* notes = m.take<double2>(e.n);
  u32* worst = m.counters(2);
  if (!m.well()) return false;
  auto right = [=](u32 i, double x) {
    if (wrong(x)) atomicMax(worst, ~i);
    return !wrong(x);
  };
  auto ratio = [&](u32 i, u32) { return q(i); };
  if (!factors_of(m, factors, e, LaborSearch<A, decltype(ratio), decltype(right)>{k, a, ratio, notes, right})) return false;
  m.sync();
  return m.looked(worst, node, [&](u32 i) { return e.columns(e.column[i]); }, [&](u32 i) -> double { return wrong(a(i)) ? a(i) : q(i); });
}

// Likewise where all weights and ratios are 1: the search ends after one step, whose sums are known.
__device__ __forceinline__ double factor_of_ones(long long k, u32 n) {
  typedef LaborSearch<double (*)(u32), double (*)(u32, u32)> Search;
  double c = 0;
  if (Search::known_of(k, Candidates{n, ONE_BITS}, c)) return c;
  double next = Search::next(Search::goal_of(k, n, n), n, n, n);
  return next > 0 ? next : 0;
}
__device__ __noinline__ bool labor_of_ones(Machine& m, const double*& factors, const Edges& e, long long k) {
  double* to = m.take<double>(e.columns.n);
  if (!m.well()) return false;
  m.each(e.columns.n, [&](u32 column) { to[column] = factor_of_ones(k, e.begins[column + 1] - e.begins[column]); });
  m.barrier();
  factors = to;
  return true;
}

template <class V, class Sum>
__device__ __forceinline__ bool level(Machine& m, const double*& factors, const Edges& e, u32 node, V v, Sum sum) {
  return m.chances(e.n, node, [&](u32 i) { return e.columns(e.column[i]); }, v) && factors_of(m, factors, e, LevelSearch<V, Sum>{v, sum});
}
