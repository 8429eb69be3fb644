// The search for the factors of columns, each of which is the limit of steps that begin at 0 and
// increase.
//
// A step sums over the column's open edges, and asks the search for the next factor; the last factor
// is reached if it does not increase, or opens and closes no edge. A lane holds the data of an edge
// that a search needs: it reads edges once, several at a time, then processes them. Sums are those of
// sum_columns: by a tree over 32 edges, then in order.
//
// A search has
//   Held                      the data of an edge: candidate(), ratio(), open(c), main(), second(), value()
//   TWO                       true if seconds and values are summed; else both are 1, and counted
//   look(i, column), settle(i, held)     edge i of a column, in two parts, of which the first only reads
//   note(i, held), noted(i)   the data of edges that no warp can hold until the search ends
//   asks(column, n)           true if known() needs the least ratio, for n candidates
//   known(column, candidates, c)         true if a column has its factor without a search
//   goal(column, n, sum of values)
//   next(goal, sum of mains, of seconds, n)
//
// Go twins: labor.Factor in internal/labor, internal/program/run/labor.go.
#pragma once
#include "program/sums.cuh"

// The sum of a column's terms, in the order of sum_columns; every lane of the warp has it.
template <class Term>
__device__ __forceinline__ double warp_sum_of(u32 lo, u32 hi, Term term) {
  return __shfl_sync(~0u, sum_from(lo, hi, term), 0);
}

struct Candidates {
  u32 n;
  u64 least;  // the bits of the least ratio, where that is asked for
};

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
  __device__ __forceinline__ void recall(const Search& search) {
#pragma unroll
    for (u32 j = 0; j < 4; j++) edge[j] = is(j) ? search.noted(at(j)) : typename Search::Held();
  }
  __device__ __forceinline__ u64 least(u32 j) const { return ~warp_max(edge[j].candidate() ? ~bits_of(edge[j].ratio()) : 0); }
  __device__ __forceinline__ Candidates candidates() const {
    Candidates all{0, ~0ull};
#pragma unroll
    for (u32 j = 0; j < 4; j++) all.n += __popc(__ballot_sync(~0u, edge[j].candidate())), all.least = min(all.least, least(j));
    return all;
  }
  // Which edges are open at a factor, a bit each; whether others were.
  __device__ __forceinline__ bool opened(u32 (&open)[4], double c) const {
    bool others = false;
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      u32 was = open[j];
      open[j] = __ballot_sync(~0u, edge[j].open(c));
      others |= open[j] != was;
    }
    return others;
  }

  // By trees, whose sums all lanes have: a lane adds the same two numbers as the one that it adds with.
  __device__ __forceinline__ static void trees(double (&x)[4], double (&y)[4]) {
#pragma unroll 1
    for (int d = 16; d; d >>= 1) {
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        x[j] = __dadd_rn(x[j], __shfl_xor_sync(~0u, x[j], d));
        if (Search::TWO) y[j] = __dadd_rn(y[j], __shfl_xor_sync(~0u, y[j], d));
      }
    }
  }
  __device__ __forceinline__ void sum_open(const u32 (&open)[4], double (&x)[4], double (&y)[4]) const {
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      bool is = open[j] >> (threadIdx.x & 31) & 1;
      x[j] = is ? edge[j].main() : 0.0;
      y[j] = !Search::TWO ? (double)__popc(open[j]) : is ? edge[j].second() : 0.0;
    }
    trees(x, y);
  }
  __device__ __forceinline__ void sum_values(double (&x)[4], double (&y)[4]) const {
#pragma unroll
    for (u32 j = 0; j < 4; j++) x[j] = edge[j].value(), y[j] = 0;
    trees(x, y);
  }
  // Of four sums, that of a lane's column, or of the one that all are of.
  __device__ __forceinline__ static double of_lane(const double (&x)[4], bool one) {
    double sum = x[0];
#pragma unroll
    for (u32 j = 1; j < 4; j++) sum = one ? __dadd_rn(sum, x[j]) : (threadIdx.x & 3) == j ? x[j] : sum;
    return sum;
  }

  // The factors of up to four columns from `column` on, a bit in `columns` for one that is there; or of one column. They are searched
  // together: a warp that waited for one column after another would do little else. What is of a column is in each fourth lane.
  __device__ __forceinline__ void factors(const Search& search, u32 column, u32 columns, bool one, double (&c)[4]) const {
    u32 own = one ? 0 : threadIdx.x & 3, open[4];
    Candidates all{0, ~0ull};
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      open[j] = 0;
      u32 n = __popc(__ballot_sync(~0u, edge[j].candidate()));
      if (one || own == j) all.n += n;
    }
    bool goes = columns >> own & 1;
    if (__any_sync(~0u, goes && search.asks(column + own, all.n))) {
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        u64 least32 = least(j);
        if (one || own == j) all.least = min(all.least, least32);
      }
    }
    double at = 0, goal = 0, x[4], y[4], values = all.n;
    goes = goes && !search.known(column + own, all, at);
    if (goes) at = 0;
    if (Search::TWO && __any_sync(~0u, goes)) sum_values(x, y), values = of_lane(x, one);
    if (goes) goal = search.goal(column + own, all.n, values);
#pragma unroll 1
    while (__any_sync(~0u, goes)) {
      bool others = false;
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        u32 now = __ballot_sync(~0u, edge[j].open(__shfl_sync(~0u, at, one ? 0 : j)));
        if (one || own == j) others |= now != open[j];
        open[j] = now;
      }
      goes = goes && others;
      if (!__any_sync(~0u, goes)) break;
      sum_open(open, x, y);
      double next = search.next(goal, of_lane(x, one), of_lane(y, one), all.n);
      goes = goes && next > at;
      if (goes) at = next;
    }
#pragma unroll
    for (u32 j = 0; j < 4; j++) c[j] = __shfl_sync(~0u, at, one ? 0 : j);
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
  // Two that take turns, so that one may still be read while the other is written.
  auto parts = [&](u32 turn) { return (double2*)m.s().digits[turn]; };
  auto flags = [&](u32 turn) { return m.s().digits[2 + turn]; };
  Candidates* found = (Candidates*)m.s().digits[4];
  u32 column = of < n ? columns[of] : 0, lo = of < n ? e.begins[column] : 0, hi = of < n ? e.begins[column + 1] : 0;
  Held4<Search> held;
  held.stand(min(lo + HELD * (warp - first), hi), hi);
  held.look(search, column, true);
  double x[4] = {0, 0, 0, 0}, y[4] = {0, 0, 0, 0};
  auto put = [&](u32 turn) {
    if (lane) return;
#pragma unroll
    for (u32 j = 0; j < 4; j++) parts(turn)[4 * warp + j] = make_double2(x[j], y[j]);
  };
  // The sum of the team's 32s.
  auto whole = [&](u32 turn) {
    double2 total = make_double2(0, 0), part = total;
#pragma unroll 8
    for (u32 j = 0; j < 4 * width; j++) {
      double2 own = parts(turn)[4 * first + j];
      part.x = __dadd_rn(part.x, own.x), part.y = __dadd_rn(part.y, own.y);
      if (j % 32 == 31 || j + 1 == 4 * width) {
        total.x = __dadd_rn(total.x, part.x), total.y = __dadd_rn(total.y, part.y), part = make_double2(0, 0);
      }
    }
    return total;
  };
  Candidates all = held.candidates();
  if (lane == 0) found[warp] = all;
  if (Search::TWO) held.sum_values(x, y), put(1);
  __syncthreads();
  all = Candidates{0, ~0ull};
#pragma unroll 4
  for (u32 w = first; w < first + width; w++) all.n += found[w].n, all.least = min(all.least, found[w].least);
  double c = 0, goal = 0;
  bool goes = of < n && !search.known(column, all, c);
  if (goes) c = 0, goal = search.goal(column, all.n, Search::TWO ? whole(1).x : all.n);
  u32 open[4] = {0, 0, 0, 0};
#pragma unroll 1
  for (u32 turn = 0;; turn ^= 1) {
    bool others = held.opened(open, c);
    if (others) held.sum_open(open, x, y);
    put(turn);
    if (lane == 0) flags(turn)[warp] = others;
    if (!__syncthreads_or(goes && others)) break;
    if (!goes) continue;
    u32 any = 0;
#pragma unroll 4
    for (u32 w = first; w < first + width; w++) any |= flags(turn)[w];
    double2 sum = whole(turn);
    double next = search.next(goal, sum.x, sum.y, all.n);
    goes = any && next > c;
    if (goes) c = next;
  }
  if (of >= n) return;
#pragma unroll
  for (u32 j = 0; j < 4; j++) use_held(held, j, column, c, use);
  if (warp == first && lane == 0) to[column] = c;
}

// A long column that is searched: its pieces stand one behind another.
struct LongColumn {
  double c, before, goal;  // before: the factor of the step before; not a number where there is none
  u64 least;
  u32 n, column, first;
  u32 others;  // whether other edges are open than before
  u32 done;
};
// The sum of a long column's 32s, by a block, alike in all threads. A thread adds 32 of them up, which are SUMMED edges.
__device__ __noinline__ double2 sum_of_parts(Machine& m, const double2* parts, u32 n) {
  double2 *sums = (double2*)m.s().digits[0], total = make_double2(0, 0);
#pragma unroll 1
  for (u32 i0 = 0; i0 < n; i0 += 32 * PROGRAM_THREADS) {
    double2 part = make_double2(0, 0);
    u32 i = i0 + 32 * threadIdx.x, last = min(i + 32, n), threads = min((n - i0 + 31) / 32, (u32)PROGRAM_THREADS);
#pragma unroll 8
    for (; i < last; i++) {
      double2 own = parts[i];
      part.x = __dadd_rn(part.x, own.x), part.y = __dadd_rn(part.y, own.y);
    }
    // The ones before have been read.
    __syncthreads();
    sums[threadIdx.x] = part;
    __syncthreads();
#pragma unroll 8
    for (u32 t = 0; t < threads; t++) total.x = __dadd_rn(total.x, sums[t].x), total.y = __dadd_rn(total.y, sums[t].y);
  }
  return total;
}

// The factors of long columns, the steps of all of them together: a warp holds a piece, then a block sums those of a column up. With
// three counters: how many columns and pieces there are, and one more than the last step that some column goes on after.
template <class Search, class Use>
__device__ __forceinline__ bool long_factors(Machine& m, double* to, const Edges& e, u32* cells, const uint2* pieces, LongColumn* columns,
                                             const Search& search, Use use) {
  u32 lane = threadIdx.x & 31, num_columns = load_relaxed(cells), num_pieces = load_relaxed(cells + 1), *going = cells + 2;
  if (!num_columns) return true;
  double2* parts = m.take<double2>(4 * (u64)num_pieces);
  if (!m.well()) return false;
  // Step 0 looks at edges. A piece is the same warp's in all steps, and an edge the same lane's: notes are read by who made them. The
  // last step uses what was found.
#pragma unroll 1
  for (u32 step = 0;; step++) {
    bool ends = step && load_relaxed(going) < step;
    if (ends && !Use::USES) return true;
    m.each_warp(num_pieces, [&](u32 i) {
      LongColumn& of = columns[pieces[i].y];
      u32 column = of.column;
      double c = of.c;
      if (of.done && !ends) return;
      Held4<Search> held;
      held.stand(pieces[i].x, min(pieces[i].x + HELD, e.begins[column + 1]));
      if (ends) {
        held.recall(search);
#pragma unroll
        for (u32 j = 0; j < 4; j++) use_held(held, j, column, c, use);
        return;
      }
      u32 open[4] = {0, 0, 0, 0};
      bool others = true;
      double x[4], y[4];
      if (!step) {
        held.look(search, column, true);
#pragma unroll
        for (u32 j = 0; j < 4; j++)
          if (held.is(j)) search.note(held.at(j), held.edge[j]);
        Candidates all = held.candidates();
        if (lane == 0) atomicAdd(&of.n, all.n), atomicMin(&of.least, all.least);
        held.opened(open, 0);
      } else {
        held.recall(search);
        held.opened(open, of.before);
        others = held.opened(open, c);
        if (others && lane == 0) atomicMax(&of.others, 1u);
      }
      // Without others the parts are those of the step before.
      if (!others) return;
      if (Search::TWO && !step) held.sum_values(x, y);
      else held.sum_open(open, x, y);
      if (lane) return;
#pragma unroll
      for (u32 j = 0; j < 4; j++) parts[4 * (u64)i + j] = make_double2(x[j], y[j]);
    });
    if (ends) {
      m.loosen();
      return true;
    }
    m.barrier();
#pragma unroll 1
    for (u32 i = blockIdx.x; i < num_columns; i += gridDim.x) {
      LongColumn column = columns[i];
      // All threads have read it.
      __syncthreads();
      if (column.done) continue;
      bool known = !step && search.known(column.column, Candidates{column.n, column.least}, column.c);
      column.done = known || (step && !column.others);
      if (!column.done) {
        double2 sum = sum_of_parts(m, parts + 4 * (u64)column.first, (e.begins[column.column + 1] - e.begins[column.column] + 31) / 32);
        if (!step) column.c = 0, column.goal = search.goal(column.column, column.n, Search::TWO ? sum.x : column.n);
        column.before = column.c;
        if (Search::TWO && !step) {
          column.before = nan_value();
        } else {
          double next = search.next(column.goal, sum.x, sum.y, column.n);
          column.done = !(next > column.c);
          if (!column.done) column.c = next;
        }
      }
      if (threadIdx.x) continue;
      column.others = 0, columns[i] = column, to[column.column] = column.c;
      if (!column.done) atomicMax(going, step + 1);
    }
    m.barrier();
  }
}

// The factors of all columns. A warp takes four columns, and together those of them that are short; then blocks take those that a warp
// cannot hold, and all warps those that a block cannot. What `use` has written is there once all have met. With SEARCH_CELLS counters.
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
            longs[at] = LongColumn{0, 0, 0, ~0ull, 0, column, first, 0, 0};
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
        use_held(held, j, of, c[j], use);
        if (lane == 0 && (one ? 1 : shorts) >> j & 1) to[of] = c[j];
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
