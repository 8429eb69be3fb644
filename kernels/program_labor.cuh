// Chances min(1, c q) of a column's edges: its factor c, by what LABOR asks of them (Go twin: internal/program/run/labor.go)
// or by their sum (level.go there).
#pragma once
#include "program_sums.cuh"

// The sum of a column's terms, in the order of sum_columns; every lane of the warp has it.
template <class Term>
__device__ __forceinline__ double warp_sum_of(u32 lo, u32 hi, Term term) {
  return __shfl_sync(~0u, sum_from(lo, hi, term), 0);
}

// The search for a column's factor c: it grows from 0 on, in few steps, some three for most weights. A search goes on with
// next(goal, above, below) until that does not grow any more, `above` and `below` being sums over the column's edges, and
// goal(column, candidates, sum of value). Candidates are edges with a ratio above 0. What it has to know of an edge it holds: it
// looks at the edge once, at several at a time, and settles then what that says; of edges that no warp can hold until the search
// ends it keeps notes.
struct Candidates {
  u32 n;
  u64 least;  // the bits of the least ratio
};
// What factors of LABOR are at most, so that a product with a weight is a number.
const double LABOR_LARGE = 0x1p1000;
// LABOR's: the sum of a^2 / min(1, c q) is to be above that of a^2 by a goal. An edge's ratio q is 0 where it is no candidate. Notes
// have a^2 / q: to divide takes longer than to read.
// Weights that are all 1.
struct Ones {
  __device__ __forceinline__ double operator()(u32) const { return 1; }
};
template <class A>
struct HeldWeight {
  double a = 0;
  __device__ __forceinline__ void hold(double x) { a = x; }
  __device__ __forceinline__ double operator()() const { return a; }
};
template <>
struct HeldWeight<Ones> {
  __device__ __forceinline__ void hold(double) {}
  __device__ __forceinline__ double operator()() const { return 1; }
};
struct AnyChance {
  __device__ __forceinline__ bool operator()(u32, double) const { return true; }
};
template <class A, class Q, class Right = AnyChance>
struct LaborSearch {
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
    __device__ __forceinline__ double value() const { return q > 0 ? a() : 0; }
    __device__ __forceinline__ double2 sums(double c) const {
      return q > 0 && __dmul_rn(c, q) < 1 ? make_double2(share, __dmul_rn(a(), a())) : make_double2(0, 0);
    }
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
  // Whether a column has its factor without a search.
  __device__ __forceinline__ bool known(u32, Candidates all, double& c) const { return known_of(k, all, c); }
  __device__ __forceinline__ static bool known_of(long long k, Candidates all, double& c) {
    c = !all.n || (k >= 0 && all.n > (u64)k) ? 0 : op_div(1.0, of_bits(all.least));
    return !all.n || k < 0 || all.n <= (u64)k;
  }
  __device__ __forceinline__ double goal(u32, u32 candidates, double d) const { return goal_of(k, candidates, d); }
  __device__ __forceinline__ static double goal_of(long long k, u32 candidates, double d) {
    return __dmul_rn(__dmul_rn(d, d), op_sub(op_div(1.0, (double)k), op_div(1.0, (double)candidates)));
  }
  __device__ __forceinline__ static double next(double goal, double above, double below) { return op_div(above, __dadd_rn(goal, below)); }
};
// A sum of the chances: what is left of it by those that are capped is shared by those that are not.
template <class V, class Sum>
struct LevelSearch {
  V v;
  Sum sum;
  struct Held {
    double v = 0;
    __device__ __forceinline__ bool candidate() const { return v > 0; }
    __device__ __forceinline__ double ratio() const { return v; }
    __device__ __forceinline__ double value() const { return 0; }
    __device__ __forceinline__ double2 sums(double c) const {
      bool open = v > 0 && __dmul_rn(c, v) < 1;
      return make_double2(!open && v > 0 ? 1.0 : 0.0, open ? v : 0.0);
    }
  };
  __device__ __forceinline__ Held look(u32 i, u32) const {
    Held own;
    own.v = v(i);
    return own;
  }
  __device__ __forceinline__ void settle(u32, Held&) const {}
  __device__ __forceinline__ void note(u32, const Held&) const {}
  __device__ __forceinline__ Held noted(u32 i) const { return look(i, 0); }
  __device__ __forceinline__ bool known(u32 column, Candidates all, double& c) const {
    double to = sum(column);
    bool none = !all.n || !(to > 0), every = (double)all.n <= to;
    double above = op_div(2.0, of_bits(all.least)), largest = of_bits(0x7fefffffffffffffull);
    c = none || !every ? 0 : above < largest ? above : largest;
    return none || every;
  }
  __device__ __forceinline__ double goal(u32 column, u32, double) const { return sum(column); }
  __device__ __forceinline__ static double next(double goal, double above, double below) { return op_div(op_sub(goal, above), below); }
};

// The next c of a column; false: this one is the last.
template <class Search>
__device__ __forceinline__ bool next_factor(const Search& search, double& c, double goal, double2 sums) {
  double next = search.next(goal, sums.x, sums.y);
  if (!(next > c)) return false;
  c = next;
  return true;
}

// Four times up to 32 edges that a warp holds, those from lo on and before hi: of four columns, or of one.
template <class Search>
struct Held4 {
  u32 lo[4], hi[4];
  typename Search::Held edge[4];

  __device__ __forceinline__ u32 at(u32 j) const { return lo[j] + (threadIdx.x & 31); }
  __device__ __forceinline__ bool is(u32 j) const { return at(j) < hi[j]; }
  // Those of one column from a place on.
  __device__ __forceinline__ void stand(u32 from, u32 end) {
#pragma unroll
    for (u32 j = 0; j < 4; j++) lo[j] = min(from + 32 * j, end), hi[j] = min(from + 32 * j + 32, end);
  }
  __device__ __forceinline__ void look(const Search& search, u32 column, bool one) {
#pragma unroll
    for (u32 j = 0; j < 4; j++) edge[j] = is(j) ? search.look(at(j), one ? column : column + j) : typename Search::Held();
#pragma unroll
    for (u32 j = 0; j < 4; j++)
      if (is(j)) search.settle(at(j), edge[j]);
  }
  __device__ __forceinline__ Candidates candidates(u32 j) const {
    u64 least = edge[j].candidate() ? bits_of(edge[j].ratio()) : ~0ull;
    return Candidates{(u32)__popc(__ballot_sync(~0u, edge[j].candidate())), ~warp_max(~least)};
  }
  // f(edge, j), two numbers, by a tree of 32 each. All lanes have the sum, since a lane adds the same two numbers as the one that it
  // adds with.
  template <class F>
  __device__ __forceinline__ void sums(double2 (&sum)[4], F f) const {
#pragma unroll
    for (u32 j = 0; j < 4; j++) sum[j] = f(edge[j], j);
#pragma unroll 1
    for (int d = 16; d; d >>= 1) {
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        sum[j].x = __dadd_rn(sum[j].x, __shfl_xor_sync(~0u, sum[j].x, d));
        sum[j].y = __dadd_rn(sum[j].y, __shfl_xor_sync(~0u, sum[j].y, d));
      }
    }
  }

  // The factors of up to four columns from `column` on, a bit in `columns` for one that is there; or c[0], of one column. They are
  // searched together: a warp that waited for one column after another would do little else.
  __device__ __forceinline__ void factors(const Search& search, u32 column, u32 columns, bool one, double (&c)[4]) const {
    Candidates all[4];
    double goal[4];
    u32 open = 0;  // a bit each that is searched
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      all[j] = candidates(j);
      if (one && j) all[0].n += all[j].n, all[0].least = min(all[0].least, all[j].least);
    }
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      c[j] = goal[j] = 0;
      if (!(columns >> j & 1) || search.known(column + j, all[j], c[j])) continue;
      c[j] = 0, open |= 1u << j;
    }
#pragma unroll 1
    for (bool begins = true; open; begins = false) {
      double2 sum[4];
      sums(sum, [&](const typename Search::Held& own, u32 j) { return begins ? make_double2(own.value(), 0) : own.sums(one ? c[0] : c[j]); });
      if (one) {
#pragma unroll
        for (u32 j = 1; j < 4; j++) sum[0].x = __dadd_rn(sum[0].x, sum[j].x), sum[0].y = __dadd_rn(sum[0].y, sum[j].y);
      }
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        if (!(open >> j & 1)) continue;
        if (begins) goal[j] = search.goal(column + j, all[j].n, sum[j].x);
        else if (!next_factor(search, c[j], goal[j], sum[j])) open &= ~(1u << j);
      }
    }
  }
};
// What is made of edges when their column's factor is known, up to 32 at a time from i0 on, where they are of one column: nothing.
struct NoUse {
  static const bool USES = false;
  __device__ __forceinline__ void operator()(u32 i0, bool is, u32 column, double ratio, double c) const {}
};
template <class Search, class Use>
__device__ __forceinline__ void use_held(const Held4<Search>& held, u32 j, u32 column, double c, Use use) {
  if (Use::USES && held.lo[j] < held.hi[j]) use(held.lo[j], held.is(j), column, held.edge[j].ratio(), c);
}

// A warp holds up to HELD edges of a column, so columns of up to so many are a warp's; of more, four warps', or a block's. Longer
// ones are cut into pieces, which all warps share: one block would be all that the others wait for.
const u32 HELD = 128, HELD_BY_FOUR = 4 * HELD, HELD_BY_BLOCK = PROGRAM_WARPS * HELD;
const u32 SEARCH_CELLS = 8;

// The factors of columns that the warps of a block hold: PROGRAM_WARPS / width at a time, in step.
template <class Search, class Use>
__device__ __forceinline__ void block_factors(Machine& m, double* to, const Edges& e, const u32* columns, u32 n, u32 width, u32 group,
                                              const Search& search, Use use) {
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, of = group * (PROGRAM_WARPS / width) + warp / width, first = warp / width * width;
  Candidates* found = (Candidates*)m.s().digits[0];
  double2* parts = (double2*)m.s().digits[1];
  u32 column = of < n ? columns[of] : 0, lo = of < n ? e.begins[column] : 0, hi = of < n ? e.begins[column + 1] : 0;
  Held4<Search> held;
  held.stand(min(lo + HELD * (warp - first), hi), hi);
  held.look(search, column, true);
  Candidates all{0, ~0ull};
#pragma unroll
  for (u32 j = 0; j < 4; j++) {
    Candidates own = held.candidates(j);
    all.n += own.n, all.least = min(all.least, own.least);
  }
  if (lane == 0) found[warp] = all;
  __syncthreads();
  all = Candidates{0, ~0ull};
#pragma unroll 4
  for (u32 w = first; w < first + width; w++) all.n += found[w].n, all.least = min(all.least, found[w].least);
  double c = 0, goal = 0;
  bool open = of < n && !search.known(column, all, c);
  if (open) c = 0;
#pragma unroll 1
  for (bool begins = true;; begins = false) {
    double2 sum[4];
    held.sums(sum, [&](const typename Search::Held& own, u32) { return begins ? make_double2(own.value(), 0) : own.sums(c); });
    if (lane == 0) {
#pragma unroll
      for (u32 j = 0; j < 4; j++) parts[4 * warp + j] = sum[j];
    }
    if (!__syncthreads_or(open)) break;
    double2 total = make_double2(0, 0), part = total;
#pragma unroll 8
    for (u32 j = 0; j < 4 * width; j++) {
      double2 own = parts[4 * first + j];
      part.x = __dadd_rn(part.x, own.x), part.y = __dadd_rn(part.y, own.y);
      if (j % 32 == 31 || j + 1 == 4 * width) {
        total.x = __dadd_rn(total.x, part.x), total.y = __dadd_rn(total.y, part.y), part = make_double2(0, 0);
      }
    }
    // The next ones are elsewhere, so that these may still be read.
    parts = (double2*)m.s().digits[parts == (double2*)m.s().digits[1] ? 2 : 1];
    if (!open) continue;
    if (begins) goal = search.goal(column, all.n, total.x);
    else open = next_factor(search, c, goal, total);
  }
  if (of >= n) return;
#pragma unroll
  for (u32 j = 0; j < 4; j++) use_held(held, j, column, c, use);
  if (warp == first && lane == 0) to[column] = c;
}

// A long column that is searched: its pieces stand one behind another.
struct LongColumn {
  double c, goal;
  u32 column, first, pieces;
  u32 done;
};
// The sum of a long column's 32s, alike in all lanes. A lane adds 32 of them up, which are SUMMED edges.
__device__ __noinline__ double2 sum_of_parts(const double2* parts, u32 n) {
  u32 lane = threadIdx.x & 31;
  double2 total = make_double2(0, 0);
#pragma unroll 1
  for (u32 i0 = 0; i0 < n; i0 += SUMMED) {
    double2 part = make_double2(0, 0);
    u32 i = i0 + 32 * lane, last = min(i + 32, n);
#pragma unroll 4
    for (; i < last; i++) {
      double2 own = parts[i];
      part.x = __dadd_rn(part.x, own.x), part.y = __dadd_rn(part.y, own.y);
    }
#pragma unroll 8
    for (u32 j = 0; j < 32; j++) {
      total.x = __dadd_rn(total.x, __shfl_sync(~0u, part.x, j)), total.y = __dadd_rn(total.y, __shfl_sync(~0u, part.y, j));
    }
  }
  return total;
}

// The factors of long columns, the steps of all of them together: a warp holds a piece, then one sums those of a column up. With
// three counters: how many columns and pieces there are, and the last step.
template <class Search, class Use>
__device__ __forceinline__ bool long_factors(Machine& m, double* to, const Edges& e, u32* cells, const uint2* pieces, LongColumn* columns,
                                             const Search& search, Use use) {
  u32 lane = threadIdx.x & 31, num_columns = load_relaxed(cells), num_pieces = load_relaxed(cells + 1), *going = cells + 2;
  if (!num_columns) return true;
  Candidates* found = m.take<Candidates>(num_pieces);
  double2* parts = m.take<double2>(4 * (u64)num_pieces);
  if (!m.well()) return false;
  // Step 0 looks at edges, and finds the goals. A piece is the same warp's in all steps, and an edge the same lane's: notes are read
  // by who made them. The last step uses what was found.
#pragma unroll 1
  for (u32 step = 0;; step++) {
    bool ends = step > 1 && load_relaxed(going) < step - 1;
    if (ends && !Use::USES) return true;
    m.each_warp(num_pieces, [&](u32 i) {
      LongColumn column = columns[pieces[i].y];
      if (column.done && !ends && step) return;
      Held4<Search> held;
      held.stand(pieces[i].x, min(pieces[i].x + HELD, e.begins[column.column + 1]));
      if (!step) held.look(search, column.column, true);
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        if (step) held.edge[j] = held.is(j) ? search.noted(held.at(j)) : typename Search::Held();
        else if (held.is(j)) search.note(held.at(j), held.edge[j]);
      }
      if (ends) {
#pragma unroll
        for (u32 j = 0; j < 4; j++) use_held(held, j, column.column, column.c, use);
        return;
      }
      if (!step) {
        Candidates all{0, ~0ull};
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
          Candidates own = held.candidates(j);
          all.n += own.n, all.least = min(all.least, own.least);
        }
        if (lane == 0) found[i] = all;
      }
      double2 sum[4];
      held.sums(sum, [&](const typename Search::Held& own, u32) { return step ? own.sums(column.c) : make_double2(own.value(), 0); });
      if (lane == 0) {
#pragma unroll
        for (u32 j = 0; j < 4; j++) parts[4 * (u64)i + j] = sum[j];
      }
    });
    if (ends) {
      m.loosen();
      return true;
    }
    m.barrier();
    m.each_warp(num_columns, [&](u32 i) {
      LongColumn column = columns[i];
      if (column.done) return;
      double2 sum = sum_of_parts(parts + 4 * (u64)column.first, (e.begins[column.column + 1] - e.begins[column.column] + 31) / 32);
      if (!step) {
        Candidates all{0, ~0ull};
        for (u32 j = lane; j < column.pieces; j += 32) {
          Candidates own = found[column.first + j];
          all.n += own.n, all.least = min(all.least, own.least);
        }
        all = Candidates{warp_sum32(all.n), ~warp_max(~all.least)};
        column.done = search.known(column.column, all, column.c);
        if (!column.done) column.c = 0, column.goal = search.goal(column.column, all.n, sum.x);
      } else {
        column.done = !next_factor(search, column.c, column.goal, sum);
      }
      if (lane) return;
      columns[i] = column, to[column.column] = column.c;
      if (!column.done) atomicMax(going, step);
    });
    m.barrier();
  }
}

// A warp four columns, and together those of them that are short; then blocks those that a warp cannot hold, and all warps those that
// a block cannot. What `use` has written is there once all have met. With SEARCH_CELLS counters.
template <class Search, class Use = NoUse>
__device__ __forceinline__ bool factors_of(Machine& m, const double*& factors, const Edges& e, const Search& search, Use use = Use()) {
  // How many columns are four warps', a block's and long, the pieces of these, and their last step.
  u32 *cells = m.counters(SEARCH_CELLS), most_held = e.n / HELD, most_long = e.n / HELD_BY_BLOCK, lane = threadIdx.x & 31, n = e.columns.n;
  double* to = m.take<double>(n);
  u32 *by_four = m.take<u32>(most_held), *by_block = m.take<u32>(e.n / HELD_BY_FOUR);
  LongColumn* longs = m.take<LongColumn>(most_long);
  uint2* pieces = m.take<uint2>(most_long ? most_held + most_long : 0);
  if (!m.well()) return false;
  m.each_warp((n + 3) / 4, [&](u32 four) {
    Held4<Search> held;
    u32 shorts = 0, rest = 0;
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      u32 column = 4 * four + j;
      held.lo[j] = e.begins[min(column, n)], held.hi[j] = e.begins[min(column + 1, n)];
      bool fits = held.hi[j] - held.lo[j] <= 32;
      if (column < n) (fits ? shorts : rest) |= 1u << j;
      if (!fits) held.hi[j] = held.lo[j];
    }
#pragma unroll 1
    for (bool one = !shorts; !one || rest; one = true) {
      u32 column = 4 * four;
      if (one) {
        column += __ffs((int)rest) - 1, rest &= rest - 1;
        u32 lo = e.begins[column], hi = e.begins[column + 1];
        if (hi - lo > HELD_BY_BLOCK) {
          u32 n = (hi - lo + HELD - 1) / HELD, first = 0, at = 0;
          if (lane == 0) {
            at = atomicAdd(cells + 2, 1u), first = atomicAdd(cells + 3, n);
            longs[at] = LongColumn{0, 0, column, first, n, 0};
          }
          first = __shfl_sync(~0u, first, 0), at = __shfl_sync(~0u, at, 0);
#pragma unroll 1
          for (u32 j = lane; j < n; j += 32) pieces[first + j] = make_uint2(lo + j * HELD, at);
          continue;
        }
        if (hi - lo > HELD) {
          bool fits = hi - lo <= HELD_BY_FOUR;
          if (lane == 0) (fits ? by_four : by_block)[atomicAdd(cells + !fits, 1u)] = column;
          continue;
        }
        held.stand(lo, hi);
      }
      double c[4];
      held.look(search, column, one);
      held.factors(search, column, one ? 1 : shorts, one, c);
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        u32 of = one ? column : column + j;
        double own = one ? c[0] : c[j];
        use_held(held, j, of, own, use);
        if (lane == 0 && (one ? 1 : shorts) >> j & 1) to[of] = own;
      }
    }
  });
  factors = to;
  m.barrier();
  if (!most_held) return true;
  const u32 fours = PROGRAM_WARPS / 4;
  u32 num_fours = load_relaxed(cells), groups = (num_fours + fours - 1) / fours, num_blocks = load_relaxed(cells + 1);
#pragma unroll 1
  for (u32 group = blockIdx.x; group < groups + num_blocks; group += gridDim.x) {
    bool four = group < groups;
    block_factors(m, to, e, four ? by_four : by_block, four ? num_fours : num_blocks, four ? 4 : PROGRAM_WARPS, four ? group : group - groups,
                  search, use);
  }
  m.loosen();
  return long_factors(m, to, e, cells + 2, pieces, longs, search, use);
}

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
  double next = Search::next(Search::goal_of(k, n, n), n, n);
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
