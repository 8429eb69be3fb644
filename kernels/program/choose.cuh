// Choices of a program: of elements by the smallest keys, among all or in each column, and uniformly.
//
// Go twin: internal/program/run/select.go.
#pragma once
#include "program/labor.cuh"
#include "program/filter.cuh"

// The last of those that are chosen, by key, then by the second, then by place.
struct Bound {
  u64 words[3];
  // The second is asked for where keys are equal.
  template <class Second>
  __device__ __forceinline__ bool has(u64 key, u64 place, Second second) const {
    if (key == NO_KEY || key > words[0]) return false;
    if (key < words[0]) return true;
    u64 own = second();
    return own < words[1] || (own == words[1] && place <= words[2]);
  }
};

// Which digit the k-th smallest has, its place among those of the digit, and how many have that.
struct Digit {
  u32 digit, k, count;
};
// Of counts of 32 EACH digits, by a warp: first which 128 of them, then which lane's four.
template <u32 EACH>
__device__ __noinline__ Digit digit_of(const u32* counts, u32 k) {
  u32 lane = threadIdx.x & 31, upto = 0, before = 0, from = 0, all;
  const uint4* fours = (const uint4*)counts + lane;
#pragma unroll 8
  for (u32 i = 0; i < EACH / 4; i++) {
    uint4 own = fours[32 * i];
    upto += warp_sum32(own.x + own.y + own.z + own.w);
    if (upto < k) before = upto, from = i + 1;
  }
  uint4 own = fours[32 * from];
  before += lanes_before(own.x + own.y + own.z + own.w, all);
  u32 digit = 128 * from + 4 * lane, count = own.x;
  if (k > before + count) before += count, digit++, count = own.y;
  if (k > before + count) before += count, digit++, count = own.z;
  if (k > before + count) before += count, digit++, count = own.w;
  u32 of = __ffs((int)__ballot_sync(~0u, k > before && k <= before + count)) - 1;
  return Digit{__shfl_sync(~0u, digit, of), __shfl_sync(~0u, k - before, of), __shfl_sync(~0u, count, of)};
}

// The bound of the k smallest of n keys, of which more than k are there, between the least and the largest: digit by
// digit of (key, second, place), until those before the digit's end are just as many. The counts of all blocks
// meet in counters.
template <class Key, class Second>
__device__ __forceinline__ void smallest(Machine& m, Bound& bound, u32 n, u32 k, u64 least, u64 largest, Key key, Second second) {
  u32* counts = m.counters(SELECT_CELLS);
  u32* block = m.s().digits[0];
  bound = Bound{{0, 0, 0}};
  bool open = true;
#pragma unroll 1
  for (int word = 0; word < 3; word++) {
    if (!open) bound.words[word] = ~0ull;
    // So many bits are not known yet.
    int bits = 64;
    if (word == 0) {
      bits -= __clzll((long long)(least ^ largest));
      bound.words[0] = bits < 64 ? least >> bits << bits : 0;
    }
#pragma unroll 1
    while (open && bits > 0) {
#pragma unroll 1
      for (u32 i = threadIdx.x; i < SELECT_DIGITS; i += PROGRAM_THREADS) block[i] = 0;
      __syncthreads();
      int shift = max(bits - SELECT_BITS, 0);
      u64 known = bits == 64 ? 0 : ~0ull << bits, want = bound.words[word];
      u32 digits = (1u << (bits - shift)) - 1;
      m.each(n, [&](u32 i) {
        u64 own = key(i);
        if (own == NO_KEY || (word > 0 && own != bound.words[0])) return;
        if (word > 0) own = second(i);
        if (word > 1) {
          if (own != bound.words[1]) return;
          own = i;
        }
        if ((own & known) == want) atomicAdd(block + (own >> shift & digits), 1u);
      });
      __syncthreads();
#pragma unroll 1
      for (u32 i = threadIdx.x; i < SELECT_DIGITS; i += PROGRAM_THREADS)
        if (block[i]) atomicAdd(counts + i, block[i]);
      m.barrier();
      Digit of = digit_of<SELECT_DIGITS / 32>(counts, k);
      bound.words[word] |= (u64)of.digit << shift, k = of.k;
      if (k == of.count) {
        open = false;
        bound.words[word] |= (1ull << shift) - 1;
      }
      bits = shift, counts += SELECT_DIGITS;
    }
  }
}

// Keys of a race.
struct Keys {
  u64* of;
  u64* range;  // the complement of the least, and the largest
  u32 there;   // how many there are
};

// Which of n elements win a race: those with the k smallest keys, or all that have one
// where k is at least their number or negative.
template <class Key, class Second>
__device__ __forceinline__ void race(Machine& m, Bound& bound, u32 n, const Keys& keys, long long k, Key key, Second second) {
  bound = Bound{{NO_KEY - 1, ~0ull, ~0ull}};
  if (k < 0 || keys.there <= (u64)k) return;
  // No key is 0, since a race has an exponent of at least 2048 - 1100.
  if (k == 0) bound = Bound{{0, 0, 0}};
  else smallest(m, bound, n, (u32)k, ~load_relaxed(keys.range), load_relaxed(keys.range + 1), key, second);
}

// The keys of n weights p, of draw 0 of states: vertex(i)'s; and how many there are.
template <class Vertex, class P>
__device__ __forceinline__ bool vertex_keys(Machine& m, Keys& keys, u32 n, u32 node, u32 site, Vertex vertex, P p) {
  u32* worst = m.counters(2);
  keys.range = (u64*)m.counters(4);
  u64* to = keys.of = m.take<u64>(n);
  if (!m.well()) return false;
  Stream stream = m.stream(site, PURPOSE_CANDIDATES);
  u32 own = 0;
  u64 low = 0, high = 0;
  m.each(n, [&](u32 i) {
    double w = p(i);
    m.look(worst, i, w);
    u64 key = NO_KEY;
    if (w > 0) own++, key = race_key(draw_bits(state_of(stream, (u64)vertex(i)), 0), w), low = max(low, ~key), high = max(high, key);
    to[i] = key;
  });
  low = warp_max(low), high = warp_max(high);
  if ((threadIdx.x & 31) == 0 && low) atomicMax(keys.range, low), atomicMax(keys.range + 1, high);
  keys.there = m.sum(warp_sum32(own)).total;
  return m.looked(worst, node, vertex, p);
}

// The edges of k rows. p(r) is that of row r; a row has vertex(r), and an edge the row row_of(i).
template <class Vertex, class RowOf, class P>
__device__ __forceinline__ bool collective(Machine& m, Edges& e, const Edges& c, u32 rows, long long k, u32 node, u32 site,
                                           bool numbered, Claims claims, Vertex vertex, RowOf row_of, P p) {
  Keys keys;
  if (!vertex_keys(m, keys, rows, node, site, vertex, p)) return false;
  Bound bound;
  race(m, bound, rows, keys, k, [&](u32 r) { return keys.of[r]; }, [&](u32 r) { return (u64)vertex(r); });
  return edges_of_rows(m, e, c, numbered, claims, row_of, [&](u32 r) -> u32 { return bound.has(keys.of[r], r, [&] { return (u64)vertex(r); }); });
}

// k vertices of a list by p, in the list's order.
template <class P>
__device__ __forceinline__ bool draw(Machine& m, List& list, List of, long long k, u32 node, u32 site, P p) {
  Keys keys;
  if (!vertex_keys(m, keys, of.n, node, site, of, p)) return false;
  Bound bound;
  race(m, bound, of.n, keys, k, [&](u32 i) { return keys.of[i]; }, [&](u32 i) { return (u64)of(i); });
  return some(m, list, of, [&](u32 i) -> u32 { return bound.has(keys.of[i], i, [&] { return (u64)of(i); }); });
}

// Threads that look at one column together, with counts of 256 digits: a warp, or a block.
struct WarpTeam {
  u32* counts;
  __device__ __forceinline__ u32 rank() const { return threadIdx.x & 31; }
  __device__ __forceinline__ u32 size() const { return 32; }
  __device__ __forceinline__ void meet() const { __syncwarp(); }
};
struct BlockTeam {
  u32* counts;
  __device__ __forceinline__ u32 rank() const { return threadIdx.x; }
  __device__ __forceinline__ u32 size() const { return PROGRAM_THREADS; }
  __device__ __forceinline__ void meet() const { __syncthreads(); }
};

// The bound of the k smallest of a column's keys, by key, and how far those that equal it count, by place.
struct ColumnBound {
  u64 key;
  u32 upto;
};
template <class Team>
__device__ __noinline__ ColumnBound column_bound(Team team, const u64* keys, u32 lo, u32 hi, long long k) {
  u32 lane = threadIdx.x & 31, left = (u32)k, upto = ~0u;
  if (k == 0) return ColumnBound{0, 0};
  if (k < 0 || hi - lo <= (u64)k) return ColumnBound{NO_KEY - 1, ~0u};
  bool open = true;
  u64 bound = 0;
#pragma unroll 1
  for (int shift = 56; open && shift >= 0; shift -= 8) {
    team.meet();
#pragma unroll 1
    for (u32 i = team.rank(); i < 256; i += team.size()) team.counts[i] = 0;
    team.meet();
    u64 known = shift == 56 ? 0 : ~0ull << (shift + 8);
#pragma unroll 4
    for (u32 i = lo + team.rank(); i < hi; i += team.size()) {
      u64 key = keys[i];
      if ((key & known) == bound) atomicAdd_block(team.counts + (key >> shift & 255), 1u);
    }
    team.meet();
    Digit of = digit_of<8>(team.counts, left);
    bound |= (u64)of.digit << shift, left = of.k;
    open = left != of.count;
    if (!open) bound |= (1ull << shift) - 1;
  }
  // Fewer than k have a key: all of those.
  if (bound == NO_KEY) return ColumnBound{NO_KEY - 1, ~0u};
  // Equal keys: the first `left` of them.
#pragma unroll 1
  for (u32 i0 = lo; open && i0 < hi; i0 += 32) {
    u32 same = __ballot_sync(~0u, i0 + lane < hi && keys[i0 + lane] == bound), n = __popc(same);
    if (left > n) {
      left -= n;
      continue;
    }
    for (; left > 1; left--) same &= same - 1;
    upto = i0 - lo + (__ffs((int)same) - 1);
    open = false;
  }
  return ColumnBound{bound, upto};
}

// Of each column the bound of its k(column) smallest keys: by a warp, or by a block where it is long. With four counters.
template <class K>
__device__ __noinline__ bool column_bounds(Machine& m, const Edges& c, const u64* keys, K k, u64* bounds, u32* last) {
  const u32 shared = 2048;
  u32 *longs = m.counters(4), most = c.n / shared, *columns = m.take<u32>(most), lane = threadIdx.x & 31;
  if (!m.well()) return false;
  m.each_warp(c.columns.n, [&](u32 column) {
    u32 lo = c.begins[column], hi = c.begins[column + 1];
    if (hi - lo >= shared) {
      if (lane == 0) columns[atomicAdd(longs, 1u)] = column;
      return;
    }
    ColumnBound bound = column_bound(WarpTeam{m.s().digits[threadIdx.x >> 5]}, keys, lo, hi, k(column));
    if (lane == 0) bounds[column] = bound.key, last[column] = bound.upto;
  });
  m.barrier();
  u32 n = most ? load_relaxed(longs) : 0;
  if (!n) return true;
#pragma unroll 1
  for (u32 i = blockIdx.x; i < n; i += gridDim.x) {
    u32 column = columns[i];
    ColumnBound bound = column_bound(BlockTeam{m.s().digits[0]}, keys, c.begins[column], c.begins[column + 1], k(column));
    if (threadIdx.x == 0) bounds[column] = bound.key, last[column] = bound.upto;
  }
  m.barrier();
  return true;
}

// Of each column the edges with the k smallest keys, equal ones: the first.
template <class Key, class Met>
__device__ __forceinline__ bool choose_columns(Machine& m, Edges& e, const Edges& c, long long k, Key key, Met met) {
  u64 *keys = m.take<u64>(c.n), *bounds = m.take<u64>(c.columns.n);
  u32* last = m.take<u32>(c.columns.n);
  if (!m.well()) return false;
  m.each(c.n, [&](u32 i) { keys[i] = key(i); });
  m.barrier();
  if (!met()) return false;
  if (!column_bounds(m, c, keys, [k](u32) { return k; }, bounds, last)) return false;
  return filter(m, e, c, [&](u32 i) -> u32 {
    u32 column = c.column[i];
    u64 bound = bounds[column];
    return keys[i] != NO_KEY && (keys[i] < bound || (keys[i] == bound && i - c.begins[column] <= last[column]));
  });
}

// The state of each column's vertex, once all have met.
__device__ __noinline__ u64* column_states(Machine& m, List columns, u32 site) {
  u64* states = m.take<u64>(columns.n);
  if (!m.well()) return states;
  Stream stream = m.stream(site, PURPOSE_NEIGHBORS);
  m.each(columns.n, [&](u32 k) { states[k] = state_of(stream, (u64)columns(k)); });
  return states;
}

// k edges of each column by their weights p.
template <class P>
__device__ __forceinline__ bool individual_by(Machine& m, Edges& e, const Edges& c, long long k, u32 node, u32 site, P p) {
  u32* worst = m.counters(2);
  u64* states = column_states(m, c.columns, site);
  if (!m.well()) return false;
  m.barrier();
  return choose_columns(
      m, e, c, k,
      [&](u32 i) -> u64 {
        double w = p(i);
        m.look(worst, i, w);
        u32 column = c.column[i];
        return w > 0 ? race_key(draw_bits(states[column], i - c.begins[column]), w) : NO_KEY;
      },
      [&] { return m.looked(worst, node, [&](u32 i) { return c.columns(c.column[i]); }, p); });
}

// The k edges of each column with the largest values.
template <class By>
__device__ __forceinline__ bool top_k(Machine& m, Edges& e, const Edges& c, long long k, By by) {
  return choose_columns(
      m, e, c, k,
      [&](u32 i) -> u64 {
        double x = by(i);
        return x != x ? NO_KEY - 1 : ~ascending(x);
      },
      [] { return true; });
}

// How k edges of each column are drawn uniformly, of `degree` edges.
struct Uniform {
  long long k;
  bool replace;
  __device__ __forceinline__ bool whole(u32 degree) const { return k < 0 || degree == 0 || (!replace && degree <= (u64)k); }
  __device__ __forceinline__ u32 count(u32 degree) const { return whole(degree) ? degree : (u32)k; }
  __device__ __forceinline__ u32 draw(u64 state, u32 j, u32 degree) const {
    return whole(degree) ? j : draw_below32(state, j, replace ? degree : degree - (u32)k + j + 1);
  }
  // Which edge draw j is, of all draws of its column.
  __device__ __forceinline__ u32 edge(const u32* draws, u32 j, u32 degree) const {
    return whole(degree) || replace ? draws[j] : floyd(draws, j, degree - (u32)k);
  }
  // Likewise, of draws that are made where they are asked for.
  template <class Draw>
  __device__ __forceinline__ u32 edge_by(Draw draw, u32 j, u32 degree) const {
    u32 own = draw(j), top = degree - (u32)k;
    if (whole(degree) || replace) return own;
    // As floyd() has it.
    for (u32 n = j, t = own;;) {
      bool met = false;
#pragma unroll 1
      for (u32 i = 0; i < n; i++) met |= draw(i) == t;
      if (met) return top + j;
      if (t < top || t - top >= n) return own;
      n = t - top, t = draw(n);
    }
  }
};

// k edges of each column of c.
__device__ __noinline__ bool individual(Machine& m, Edges& e, const Edges& c, long long k, bool replace, u32 site) {
  Uniform uniform{k, replace};
  u64* states = column_states(m, c.columns, site);
  if (!m.well()) return false;
  auto degree = [&](u32 column) { return c.begins[column + 1] - c.begins[column]; };
  return pick(m, e, c, [&](u32 column) { return uniform.count(degree(column)); }, [&](u32* from) {
    u32* draws = m.take<u32>(e.n);
    u32* columns = (u32*)e.column;
    if (!m.well()) return false;
    each_edge(m, e.begins, c.columns.n, e.n, [&](u32 i, u32 column) {
      columns[i] = column;
      draws[i] = uniform.draw(states[column], i - e.begins[column], degree(column));
    });
    m.barrier();
    m.each(e.n, [&](u32 i) {
      u32 column = columns[i], begin = e.begins[column];
      from[i] = c.begins[column] + uniform.edge(draws + begin, i - begin, degree(column));
    });
    return true;
  });
}

// What draws of the in-edges of distinct vertices need.
struct DrawsAbout {
  Uniform uniform;
  u32 site;
};
struct Draws {
  static const bool MAKES = true;
  typedef DrawsAbout About;
  __device__ __forceinline__ static Draws of(About about) {
    Draws d{};
    d.uniform = about.uniform, d.site = about.site;
    return d;
  }
  Uniform uniform;
  u32 site;
  u32 n;         // draws
  u32* begins;   // of each vertex its first one, and n
  u32* degrees;
  Place* starts;  // where its edges begin
  u64* states;
  __device__ __forceinline__ u32 count(Machine& m, Id v) const {
    return uniform.count(at_most(m.start((u64)v + 1) - m.start((u64)v)));
  }
  __device__ __forceinline__ bool room(Machine& m, u32 vertices, u32 edges) {
    n = edges, begins = m.take<u32>(vertices + 1), degrees = m.take<u32>(vertices);
    starts = m.take<Place>(vertices), states = m.take<u64>(vertices);
    if (!m.well()) return false;
    if (m.reporter()) begins[vertices] = edges;
    return true;
  }
  __device__ __forceinline__ void put(Machine& m, u32 at, Id v, u32 begin) const {
    u64 start = m.start((u64)v);
    begins[at] = begin, starts[at] = (Place)start, degrees[at] = at_most(m.start((u64)v + 1) - start);
    states[at] = state_of(m.stream(site, PURPOSE_NEIGHBORS), (u64)v);
  }
};
__device__ __noinline__ bool draws(Machine& m, Draws& d, List list, DrawsAbout about) { return of_list(m, d, list, about); }

// What a row of few draws chooses is found by each thread from the draws before its own, which it makes again; of more
// they are written down, for another meeting.
const long long FEW_DRAWS = 32;

// k in-edges of each of distinct vertices. Where it is asked for, what is to be numbered next is claimed: the vertices
// of a list, then the rows of the edges.
__device__ __noinline__ bool neighbors(Machine& m, Edges& made, List columns, const Draws& of, Claims claims) {
  Edges e;
  List before = claims.before;
  Uniform uniform = of.uniform;
  const u32 *begins = of.begins, *degrees = of.degrees;
  if (!edges_of(m, e, columns, begins, of.n)) return false;
  m.put(made, e);
  const u64* states = of.states;
  bool few = uniform.k <= FEW_DRAWS;
  u32 *column = (u32*)e.column, *draws = few ? nullptr : m.take<u32>(e.n);
  if (!m.well()) return false;
  if (claims.asked && (u64)before.n + e.n >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, (u64)before.n + e.n);
  u64 numbering = claims.asked ? m.next_numbering() : 0;
  if (claims.asked) m.each(before.n, [&](u32 i) { m.claim_one(numbering, i, before(i)); });
  if (!few) {
    each_edge(m, begins, columns.n, e.n, [&](u32 i, u32 c) { draws[i] = uniform.draw(states[c], i - begins[c], degrees[c]); });
    m.barrier();
  }
  each_edge(m, begins, columns.n, e.n, [&](u32 i, u32 c) {
    u32 begin = begins[c], degree = degrees[c], j = i - begin, at;
    if (few) {
      u64 state = states[c];
      at = uniform.edge_by([&](u32 k) { return uniform.draw(state, k, degree); }, j, degree);
    } else {
      at = uniform.edge(draws + begin, j, degree);
    }
    Place p = of.starts[c] + (Place)at;
    Id row = ((const Id*)m.a().indices)[p];
    column[i] = c, ((Place*)e.place)[i] = p, ((Id*)e.row)[i] = row;
    if (claims.asked) m.claim_one(numbering, before.n + i, row);
  });
  m.barrier();
  return true;
}
