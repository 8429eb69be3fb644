// Matrices of a program: which edges they have, column by column.
#pragma once
#include "program.cuh"

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

__device__ __forceinline__ bool edges_of(Machine& m, Edges& e, List columns, u32 n) {
  e = Edges{n, columns};
  e.column = m.take<u32>(n), e.place = m.take<Place>(n), e.row = m.take<Id>(n);
  return m.well();
}

// All in-edges of distinct vertices.
__device__ __noinline__ bool slice(Machine& m, Edges& e, List columns) {
  auto degree = [&](u32 c) -> u32 {
    u64 v = (u64)columns(c);
    return at_most(m.start(v + 1) - m.start(v));
  };
  Machine::Scan scan;
  if (!m.counted(columns.n, scan, degree)) return false;
  u32* begins = m.take<u32>(columns.n + 1);
  if (!edges_of(m, e, columns, scan.total)) return false;
  m.placed(columns.n, scan, degree, [&](u32 c, u32 begin, u32) { begins[c] = begin; });
  if (m.reporter()) begins[columns.n] = scan.total;
  m.barrier();
  e.begins = begins;
  m.each(e.n, [&](u32 i) {
    u32 c = column_of(begins, columns.n, i);
    u64 p = m.start((u64)columns(c)) + (i - begins[c]);
    ((u32*)e.column)[i] = c, ((Place*)e.place)[i] = (Place)p, ((Id*)e.row)[i] = ((const Id*)m.a.indices)[p];
  });
  m.barrier();
  return true;
}

// Those edges of c for which kept(i) is 1, in their order.
template <class Kept>
__device__ __forceinline__ bool filter(Machine& m, Edges& e, const Edges& c, Kept kept) {
  Machine::Scan scan;
  if (!m.counted(c.n, scan, kept)) return false;
  u32* begins = m.take<u32>(c.columns.n + 1);
  u32* parent = m.take<u32>(scan.total);
  if (!edges_of(m, e, c.columns, scan.total)) return false;
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
  e.begins = begins, e.parent = parent;
  return true;
}

// The edges of c at places from(column, j) of their columns, j below the counts of those.
template <class Count, class From>
__device__ __forceinline__ bool pick(Machine& m, Edges& e, const Edges& c, Count count, From from) {
  Machine::Scan scan;
  if (!m.counted(c.columns.n, scan, count)) return false;
  u32* begins = m.take<u32>(c.columns.n + 1);
  u32* parent = m.take<u32>(scan.total);
  if (!edges_of(m, e, c.columns, scan.total)) return false;
  m.placed(c.columns.n, scan, count, [&](u32 k, u32 begin, u32) { begins[k] = begin; });
  if (m.reporter()) begins[c.columns.n] = scan.total;
  m.barrier();
  e.begins = begins, e.parent = parent;
  if (!from(parent)) return false;
  m.each(e.n, [&](u32 i) {
    u32 p = parent[i];
    ((u32*)e.column)[i] = c.column[p], ((Place*)e.place)[i] = c.place[p], ((Id*)e.row)[i] = c.row[p];
  });
  m.barrier();
  return true;
}

// The edges from vertices of distinct rows to those of distinct columns. `number` is their place among the rows.
__device__ __noinline__ bool cross(Machine& m, Edges& e, const u32*& number, List rows, List columns) {
  Edges all;
  if (!slice(m, all, columns)) return false;
  m.claim(rows.n, rows);
  if (!filter(m, e, all, [&](u32 i) -> u32 { return m.claimed(all.row[i]); })) return false;
  u32* of = m.take<u32>(e.n);
  if (!m.well()) return false;
  m.each(e.n, [&](u32 i) { of[i] = m.first(e.row[i]); });
  m.barrier();
  number = of;
  return true;
}

// In each column the edges of c, then those of d, which has the same columns. A parent from c.n on is of d.
__device__ __noinline__ bool merge(Machine& m, Edges& e, const Edges& c, const Edges& d) {
  if ((u64)c.n + d.n >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, (u64)c.n + d.n);
  u32 columns = c.columns.n;
  u32* begins = m.take<u32>(columns + 1);
  u32* parent = m.take<u32>(c.n + d.n);
  if (!edges_of(m, e, c.columns, c.n + d.n)) return false;
  m.each(columns + 1, [&](u32 k) { begins[k] = c.begins[k] + d.begins[k]; });
  auto put = [&](const Edges& from, u32 i, u32 at, u32 of) {
    parent[at] = of, ((u32*)e.column)[at] = from.column[i], ((Place*)e.place)[at] = from.place[i], ((Id*)e.row)[at] = from.row[i];
  };
  m.each(c.n, [&](u32 i) { put(c, i, i + d.begins[c.column[i]], i); });
  m.each(d.n, [&](u32 i) { put(d, i, i + c.begins[d.column[i] + 1], c.n + i); });
  m.barrier();
  e.begins = begins, e.parent = parent;
  return true;
}

// Numbers the rows of the edges.
__device__ __noinline__ bool number_rows(Machine& m, Edges& e) {
  u32* number = m.take<u32>(e.n);
  if (!m.well()) return false;
  auto vertex = [&](u32 i) { return e.row[i]; };
  m.claim(e.n, vertex);
  auto is_first = [&](u32 i) -> u32 { return m.first(e.row[i]) == i; };
  Machine::Scan scan;
  if (!m.counted(e.n, scan, is_first)) return false;
  Id* rows = m.take<Id>(scan.total);
  u32* first = m.take<u32>(scan.total);
  if (!m.well()) return false;
  m.placed(e.n, scan, is_first, [&](u32 i, u32 at, u32 is) {
    if (is) rows[at] = e.row[i], first[at] = i, number[i] = at;
  });
  m.barrier();
  // Numbers of first edges are read, those of others are written.
  m.each(e.n, [&](u32 i) {
    u32 at = m.first(e.row[i]);
    if (at != i) number[i] = number[at];
  });
  m.barrier();
  e.rows = List{scan.total, rows}, e.number = number, e.first = first;
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
  m.barrier();
  list = List{scan.total, to};
  return true;
}

// The values of n elements, kept.
template <class F>
__device__ __forceinline__ bool store(Machine& m, const double*& values, u32 n, F f) {
  double* to = m.take<double>(n);
  if (!m.well()) return false;
  m.each(n, [&](u32 i) { to[i] = f(i); });
  m.barrier();
  values = to;
  return true;
}

// The distinct vertices of a list.
__device__ __noinline__ bool unique(Machine& m, List& list, List of) { return m.distinct(of.n, list, of); }

// One list behind another; of distinct vertices, where it is asked for.
__device__ __noinline__ bool join(Machine& m, List& list, List x, List y, bool distinct) {
  auto vertex = [&](u32 i) { return i < x.n ? x(i) : y(i - x.n); };
  if ((u64)x.n + y.n >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, (u64)x.n + y.n);
  if (distinct) return m.distinct(x.n + y.n, list, vertex);
  Id* to = m.take<Id>(x.n + y.n);
  if (!m.well()) return false;
  m.each(x.n + y.n, [&](u32 i) { to[i] = vertex(i); });
  m.barrier();
  list = List{x.n + y.n, to};
  return true;
}
