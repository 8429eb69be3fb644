// Matrices of a program: the edges of each, column by column.
//
// Go twin: internal/program/run/edges.go.
#pragma once
#include "program/program.cuh"

// The edges of a matrix. What is not asked for is null.
struct Edges {
  u32 n;
  List columns;
  const u32* begins;   // of each column its first edge, and n
  const u32* column;   // of each edge its column's place
  const Place* place;  // in the CSC
  const Id* row;
  const u32* parent;  // its place among the edges that it was chosen from
  List rows;          // distinct, by first occurrence
  const u32* number;  // of each edge its row's place there
  const u32* first;   // of each row its first edge
};

// Which of n columns edge e is of.
__device__ __noinline__ u32 column_of(const u32* begins, u32 n, u32 e) {
  u32 lo = 0;
  while (n - lo > 1) {
    u32 middle = (lo + n) / 2;
    if (begins[middle] <= e) lo = middle;
    else n = middle;
  }
  return lo;
}

// Likewise, by a whole warp: reads that wait for one another are a fifth as many.
__device__ __noinline__ u32 column_by_warp(const u32* begins, u32 n, u32 e) {
  u32 lo = 0, lane = threadIdx.x & 31;
#pragma unroll 1
  while (n - lo > 1) {
    u32 step = (n - lo + 31) / 32, at = lo + lane * step;
    lo += step * (__popc(__ballot_sync(~0u, at < n && begins[at] <= e)) - 1);
    n = min(lo + step, n);
  }
  return lo;
}

// Likewise, of a column that is not before column c, where an edge not after e is: mostly a few on.
__device__ __forceinline__ u32 column_from(const u32* begins, u32 n, u32 c, u32 e) {
#pragma unroll 1
  for (u32 step = 0; c + 1 < n && begins[c + 1] <= e; c++)
    if (++step > 8) return c + column_of(begins + c, n - c, e);
  return c;
}

// f of each of n edges and its column, in spans of warps.
template <class F>
__device__ __forceinline__ void each_edge(Machine& m, const u32* begins, u32 columns, u32 n, F f) {
  Machine::Span mine = m.span(n);
  if (mine.lo >= mine.hi) return;
  u32 c = column_by_warp(begins, columns, mine.lo);
#pragma unroll 1
  for (u32 i = mine.lo + (threadIdx.x & 31); i < mine.hi; i += 32) {
    c = column_from(begins, columns, c, i);
    f(i, c);
  }
}

// Likewise of the in-edges of columns, whose places are from(column) + i: use(i, column, place, row, seen) by whole warps,
// with i from n on for lanes without an edge. Four rows are on their way at a time, then what see(row) reads of each.
struct Unseen {
  __device__ __forceinline__ u32 operator()(Id) const { return 0; }
};
template <class See, class Use>
__device__ __forceinline__ void each_row(Machine& m, const u32* begins, const Place* from, u32 columns, u32 n, See see, Use use) {
  Machine::Span mine = m.span(n);
  if (mine.lo >= mine.hi) return;
  const Id* indices = (const Id*)m.a().indices;
  u32 lane = threadIdx.x & 31, at = column_by_warp(begins, columns, mine.lo);
#pragma unroll 1
  for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 128) {
    u32 c[4];
    Place p[4];
    Id row[4];
    decltype(see(Id())) seen[4];
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      u32 i = i0 + 32 * j + lane;
      if (i >= mine.hi) continue;
      c[j] = at = column_from(begins, columns, at, i);
      p[j] = from[at] + (Place)i;
      row[j] = indices[p[j]];
    }
#pragma unroll
    for (u32 j = 0; j < 4; j++)
      if (i0 + 32 * j + lane < mine.hi) seen[j] = see(row[j]);
#pragma unroll
    for (u32 j = 0; j < 4; j++)
      if (i0 + 32 * j < mine.hi) use(i0 + 32 * j + lane < mine.hi ? i0 + 32 * j + lane : n, c[j], p[j], row[j], seen[j]);
  }
}

// Edges and lists of a program are in shared memory (Machine::put). What makes some has them for itself until all meet.
__device__ __forceinline__ bool edges_of(Machine& m, Edges& e, List columns, const u32* begins, u32 n) {
  char* at = m.take_bytes(m.room<u32>(n) + m.room<Place>(n) + m.room<Id>(n));
  u32* column = m.next<u32>(at, n);
  Place* place = m.next<Place>(at, n);
  e = Edges{n, columns, begins, column, place, m.next<Id>(at, n)};
  return m.well();
}

__device__ bool number_claimed(Machine& m, Edges& e);

// What is made of each vertex of a list when the list is (Machine::distinct): nothing.
struct Alone {
  static const bool MAKES = false;
  typedef int About;
  __device__ __forceinline__ static Alone of(int) { return Alone(); }
  __device__ __forceinline__ u32 count(Machine&, Id) const { return 0; }
  __device__ __forceinline__ bool room(Machine& m, u32, u32) { return m.well(); }
  __device__ __forceinline__ void put(Machine&, u32, Id, u32) const {}
};

// Where the edges of distinct vertices stand.
struct Ranges {
  static const bool MAKES = true;
  bool claims;  // the vertices are claimed anew, each by its place in the list
  u32 n;        // edges
  u32* begins;  // of each vertex its first one among them all, and n
  Place* from;  // of each its first place less that
  u64 word;     // of a claim
  typedef bool About;
  __device__ __forceinline__ static Ranges of(bool claims) {
    Ranges r{};
    r.claims = claims;
    return r;
  }
  __device__ __forceinline__ u32 count(Machine& m, Id v) const { return at_most(m.start((u64)v + 1) - m.start((u64)v)); }
  __device__ __forceinline__ bool room(Machine& m, u32 vertices, u32 edges) {
    n = edges, begins = m.take<u32>(vertices + 1), from = m.take<Place>(vertices);
    if (!m.well()) return false;
    if (claims) word = m.next_numbering();
    if (m.reporter()) begins[vertices] = edges;
    return true;
  }
  __device__ __forceinline__ void put(Machine& m, u32 at, Id v, u32 begin) const {
    begins[at] = begin, from[at] = (Place)m.start((u64)v) - (Place)begin;
    if (claims) m.a().map[(u64)v] = word | at;
  }
};

// What is made of each vertex of a list of distinct ones.
template <class OfEach>
__device__ __forceinline__ bool of_list(Machine& m, OfEach& made, List list, typename OfEach::About about) {
  OfEach of_each = OfEach::of(about);
  auto count = [&](u32 i) -> u32 { return of_each.count(m, list(i)); };
  Machine::Scan scan;
  if (!m.counted(list.n, scan, count) || !of_each.room(m, list.n, scan.total)) return false;
  m.put(made, of_each);
  m.placed(list.n, scan, count, [&](u32 i, u32 begin, u32) { of_each.put(m, i, list(i), begin); });
  m.loosen();
  m.meet();
  return true;
}
__device__ __noinline__ bool ranges(Machine& m, Ranges& r, List list, bool claims) { return of_list(m, r, list, claims); }

// All in-edges of distinct vertices; their rows are claimed where they are to be numbered.
__device__ __noinline__ bool slice(Machine& m, Edges& made, List columns, const Ranges& r, bool numbered) {
  const u32* begins = r.begins;
  Edges e;
  if (!edges_of(m, e, columns, begins, r.n)) return false;
  m.put(made, e);
  const Place* from = r.from;
  u64 numbering = numbered ? m.next_numbering() : 0;
  u32 *column = (u32*)e.column, n = r.n;
  Place* place = (Place*)e.place;
  Id* rows = (Id*)e.row;
  u64* map = m.a().map;
  each_row(m, begins, from, columns.n, n, [&](Id row) -> u64 { return numbered ? load_relaxed(map + (u64)row) : 0; },
           [&](u32 i, u32 c, Place p, Id row, u64 seen) {
             if (i >= n) return;
             column[i] = c, place[i] = p, rows[i] = row;
             if (seen > (numbering | i)) atomicMin(map + (u64)row, numbering | i);
           });
  m.barrier();
  return !numbered || number_claimed(m, made);
}

// Those edges of c for which kept(i) is 1, in their order.
template <class Kept>
__device__ __forceinline__ bool filter(Machine& m, Edges& e, const Edges& c, Kept kept) {
  Machine::Scan scan;
  return m.counted(c.n, scan, kept) && filtered(m, e, c, scan, kept, [] {});
}
// Likewise, once they were counted; `more` is done before all meet.
template <class Kept, class More>
__device__ __forceinline__ bool filtered(Machine& m, Edges& made, const Edges& c, const Machine::Scan& scan, Kept kept, More more) {
  Edges e;
  u32* begins = m.take<u32>(c.columns.n + 1);
  u32* parent = m.take<u32>(scan.total);
  if (!edges_of(m, e, c.columns, begins, scan.total)) return false;
  e.parent = parent;
  m.put(made, e);
  more();
  m.placed(c.n, scan, kept, [&](u32 i, u32 at, u32 is) {
    u32 column = c.column[i];
    // The column's first edge tells where it begins, and where the empty ones before it do.
    if (c.begins[column] == i) {
      u32 k = column;
      do begins[k] = at;
      while (k-- && c.begins[k] == i);
    }
    if (!is) return;
    parent[at] = i, ((u32*)e.column)[at] = column, ((Place*)e.place)[at] = c.place[i], ((Id*)e.row)[at] = c.row[i];
  });
  m.each(c.columns.n + 1, [&](u32 k) {
    if (c.begins[k] == c.n) begins[k] = scan.total;
  });
  m.barrier();
  return true;
}

// The edges of c at places from(column, j) of their columns, j below the counts of those.
template <class Count, class From>
__device__ __forceinline__ bool pick(Machine& m, Edges& made, const Edges& c, Count count, From from) {
  Edges e;
  Machine::Scan scan;
  if (!m.counted(c.columns.n, scan, count)) return false;
  u32* begins = m.take<u32>(c.columns.n + 1);
  u32* parent = m.take<u32>(scan.total);
  if (!edges_of(m, e, c.columns, begins, scan.total)) return false;
  m.placed(c.columns.n, scan, count, [&](u32 k, u32 begin, u32) { begins[k] = begin; });
  if (m.reporter()) begins[c.columns.n] = scan.total;
  e.parent = parent;
  m.put(made, e);
  m.barrier();
  // Each parent is read by the thread that wrote it.
  if (!from(parent)) return false;
  m.each(e.n, [&](u32 i) {
    u32 p = parent[i];
    ((u32*)e.column)[i] = c.column[p], ((Place*)e.place)[i] = c.place[p], ((Id*)e.row)[i] = c.row[p];
  });
  m.barrier();
  return true;
}

// The edges from vertices of distinct rows to those of distinct columns. `number` is their place among the rows, which may
// have been claimed by it. The edges of the columns are not written down: a first look notes which are kept, a bit each.
__device__ __noinline__ bool cross(Machine& m, Edges& made, const u32*& number, List rows, List columns, const Ranges& r) {
  Edges e;
  u32 n = r.n;
  const u32* all = r.begins;
  const Place* from = r.from;
  u32* kept = m.take<u32>((u64)n / 32 + 1);
  if (!m.well()) return false;
  if (!r.claims) m.claim(rows.n, rows);
  // The spans of warps are whole words of bits.
  u32 lane = threadIdx.x & 31, own = 0, tag = (u32)(m.numbering() >> 32);
  const u64* map = m.a().map;
  each_row(m, all, from, columns.n, n, [&](Id row) { return (u32)(load_relaxed(map + (u64)row) >> 32); }, [&](u32 i, u32, Place, Id, u32 seen) {
    u32 word = __ballot_sync(~0u, i < n && seen == tag);
    if (lane == 0) kept[i / 32] = word;
    own += __popc(word);
  });
  Machine::Scan scan;
  if (!m.scanned(scan, m.sum(own))) return false;
  u32 *begins = m.take<u32>(columns.n + 1), *of = m.take<u32>(scan.total);
  if (!edges_of(m, e, columns, begins, scan.total)) return false;
  m.put(made, e), m.put(number, of);
  const Id* indices = (const Id*)m.a().indices;
  Machine::Span mine = m.span(n);
  u32 at = scan.before, c = mine.lo < mine.hi ? column_by_warp(all, columns.n, mine.lo) : 0;
#pragma unroll 2
  for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 32) {
    u32 i = i0 + lane, word = kept[i0 / 32], to = at + __popc(word & ((1u << lane) - 1));
    if (i < mine.hi) {
      c = column_from(all, columns.n, c, i);
      if (all[c] == i) {
        u32 k = c;
        do begins[k] = to;
        while (k-- && all[k] == i);
      }
      if (word >> lane & 1) {
        Place p = from[c] + (Place)i;
        Id row = indices[p];
        ((u32*)e.column)[to] = c, ((Place*)e.place)[to] = p, ((Id*)e.row)[to] = row, of[to] = m.first(row);
      }
    }
    at += __popc(word);
  }
  m.each(columns.n + 1, [&](u32 k) {
    if (all[k] == n) begins[k] = e.n;
  });
  m.barrier();
  return true;
}

// In each column the edges of c, then those of d, which has the same columns. A parent from c.n on is of d.
__device__ __noinline__ bool merge(Machine& m, Edges& made, const Edges& c, const Edges& d) {
  Edges e;
  if ((u64)c.n + d.n >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, (u64)c.n + d.n);
  u32 columns = c.columns.n;
  u32* begins = m.take<u32>(columns + 1);
  u32* parent = m.take<u32>(c.n + d.n);
  if (!edges_of(m, e, c.columns, begins, c.n + d.n)) return false;
  e.parent = parent;
  m.put(made, e);
  m.each(columns + 1, [&](u32 k) { begins[k] = c.begins[k] + d.begins[k]; });
  auto put = [&](const Edges& from, u32 i, u32 at, u32 of) {
    parent[at] = of, ((u32*)e.column)[at] = from.column[i], ((Place*)e.place)[at] = from.place[i], ((Id*)e.row)[at] = from.row[i];
  };
  m.each(c.n, [&](u32 i) { put(c, i, i + d.begins[c.column[i]], i); });
  m.each(d.n, [&](u32 i) { put(d, i, i + c.begins[d.column[i] + 1], c.n + i); });
  m.barrier();
  return true;
}

// Numbers the rows of the edges.
__device__ __noinline__ bool number_rows(Machine& m, Edges& e) {
  m.claim(e.n, [&](u32 i) { return e.row[i]; });
  return number_claimed(m, e);
}
// Likewise, once they have been claimed.
__device__ __noinline__ bool number_claimed(Machine& m, Edges& e) {
  u32 n = e.n, lane = threadIdx.x & 31, own = 0, *number = m.take<u32>(n), *firsts = m.take<u32>(n / 32 + 1);
  if (!m.well()) return false;
  const Id* row = e.row;
  Machine::Span mine = m.span(n);
  m.each_first(mine, [&](u32 i) { return row[i]; }, [&](u32 i0, Id, bool is) {
    u32 word = __ballot_sync(~0u, is);
    if (lane == 0) firsts[i0 / 32] = word;
    own += __popc(word);
  });
  Machine::Scan scan;
  if (!m.scanned(scan, m.sum(own))) return false;
  Id* rows = m.take<Id>(scan.total);
  u32* first = m.take<u32>(scan.total);
  if (!m.well()) return false;
  u32 before = scan.before;
#pragma unroll 2
  for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 32) {
    u32 word = firsts[i0 / 32], i = i0 + lane, at = before + __popc(word & ((1u << lane) - 1));
    if (word >> lane & 1) rows[at] = row[i], first[at] = i, number[i] = at;
    before += __popc(word);
  }
  m.put(e.rows, List{scan.total, rows}), m.put(e.number, number), m.put(e.first, first);
  m.barrier();
  // Numbers of first edges are read, those of others are written.
  const u64* map = m.a().map;
  u32 stride = gridDim.x * PROGRAM_THREADS;
#pragma unroll 1
  for (u64 i0 = blockIdx.x * PROGRAM_THREADS + threadIdx.x; i0 < n; i0 += 4 * stride) {
    u32 at[4];
#pragma unroll
    for (u32 j = 0; j < 4; j++)
      if (i0 + j * stride < n) at[j] = row[i0 + j * stride];
#pragma unroll
    for (u32 j = 0; j < 4; j++)
      if (i0 + j * stride < n) at[j] = (u32)load_relaxed(map + (u64)at[j]);
#pragma unroll
    for (u32 j = 0; j < 4; j++)
      if (i0 + j * stride < n && at[j] != i0 + j * stride) number[i0 + j * stride] = number[at[j]];
  }
  m.loosen();
  return true;
}

// All edges of c of the rows r that has(r); an edge is of the row row_of(i). Where `numbered`, c's rows are, and these
// are some of them, in their order: since a row keeps all of its edges, no map is asked. What is to be numbered next may be
// claimed here: the vertices of a list, then the rows.
struct Claims {
  bool asked;
  List before;
};
template <class RowOf, class Has>
__device__ __forceinline__ bool edges_of_rows(Machine& m, Edges& e, const Edges& c, bool numbered, Claims claims, RowOf row_of, Has has) {
  auto kept = [&](u32 i) -> u32 { return has(row_of(i)); };
  auto chosen = [&](u32 r) -> u32 { return has(r); };
  u32 rows = numbered ? c.rows.n : 0;
  Sums all = m.sums(m.of_warp(c.n, kept), m.of_warp(rows, chosen));
  Machine::Scan edges, some;
  if (!m.scanned(edges, all, 0) || !m.scanned(some, all, 1)) return false;
  u32* place = m.take<u32>(rows);
  Id* vertices = m.take<Id>(some.total);
  u64 numbering = 0;
  if (!filtered(m, e, c, edges, kept, [&] {
        if (claims.asked) {
          numbering = m.next_numbering();
          m.each(claims.before.n, [&](u32 i) { m.claim_one(numbering, i, claims.before(i)); });
        }
        m.placed(rows, some, chosen, [&](u32 r, u32 at, u32 is) {
          place[r] = at;
          if (!is) return;
          Id v = vertices[at] = c.rows(r);
          if (claims.asked) m.claim_one(numbering, claims.before.n + at, v);
        });
      }))
    return false;
  if (!numbered) return true;
  u32 *number = m.take<u32>(e.n), *first = m.take<u32>(some.total);
  if (!m.well()) return false;
  m.each(e.n, [&](u32 i) {
    u32 from = e.parent[i], r = row_of(from), at = place[r];
    number[i] = at;
    if (c.first[r] == from) first[at] = i;
  });
  m.put(e.rows, List{some.total, vertices}), m.put(e.number, number), m.put(e.first, first);
  m.loosen();
  m.meet();
  return true;
}

// The vertices of a list for which kept(i) is 1.
template <class Kept>
__device__ __forceinline__ bool some(Machine& m, List& list, List of, Kept kept) {
  Machine::Scan scan;
  if (!m.counted(of.n, scan, kept)) return false;
  Id* to = m.take<Id>(scan.total);
  if (!m.well()) return false;
  m.placed(of.n, scan, kept, [&](u32 i, u32 at, u32 is) {
    if (is) to[at] = of(i);
  });
  m.put(list, List{scan.total, to});
  m.barrier();
  return true;
}

// The values of n elements, kept.
template <class F>
__device__ __forceinline__ bool store(Machine& m, const double*& values, u32 n, F f) {
  double* to = m.take<double>(n);
  if (!m.well()) return false;
  m.each(n, [&](u32 i) { to[i] = f(i); });
  m.loosen();
  values = to;
  return true;
}

// The distinct vertices of a list, which may have been claimed.
template <class OfEach>
__device__ __noinline__ bool unique(Machine& m, List& list, List of, bool claimed, OfEach& made, typename OfEach::About about) {
  if (!claimed) m.claim(of.n, of);
  return m.distinct(of.n, list, of, &of, made, about);
}

// Likewise of two, one behind another. Those that have been claimed are as many as can be.
template <class OfEach>
__device__ __noinline__ bool unite(Machine& m, List& list, List x, List y, bool claimed, OfEach& made, typename OfEach::About about) {
  auto vertex = [&](u32 i) { return i < x.n ? x(i) : y(i - x.n); };
  if ((u64)x.n + y.n >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, (u64)x.n + y.n);
  if (!claimed) m.claim(x.n + y.n, vertex);
  return m.distinct(x.n + y.n, list, vertex, nullptr, made, about);
}

// One list behind another.
__device__ __noinline__ bool join(Machine& m, List& list, List x, List y) {
  if ((u64)x.n + y.n >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, (u64)x.n + y.n);
  auto vertex = [&](u32 i) { return i < x.n ? x(i) : y(i - x.n); };
  Id* to = m.take<Id>(x.n + y.n);
  if (!m.well()) return false;
  m.each(x.n + y.n, [&](u32 i) { to[i] = vertex(i); });
  m.put(list, List{x.n + y.n, to});
  m.barrier();
  return true;
}
