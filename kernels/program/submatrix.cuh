// A[R, S] by the out-edges of R. If S is all nodes, the in-edges of S are all edges of the graph, and
// R may have a thousandth of them: to read each costs about as much as the rest of a batch.
//
// Out-edges are computed once for a graph (turn, a separate launch) and cached with it: for each node
// the destinations of its edges and their positions in the CSC, in any order. They are ordered by
// columns and positions by a bit for each in-edge of S, which its finder sets; the rank of an edge is
// the number of bits before it. So bits of all in-edges are written and read, 1/32 of the bytes of
// their ids, and nothing is sorted.
//
// Each batch chooses the way (between), by the degrees of R and S and the costs of both ways. While
// there are no out-edges it accumulates the loss, and reports it to the host.
//
// Go caller: internal/engine/cuda/out_edges.go. Go twin: internal/program/run (layout.go).
#pragma once
#include "program/edges.cuh"

// Where edge i among the out-edges of rows leads, and where it is: a place among the in-edges of the columns.
struct OutEdges {
  List rows, columns;
  u32 n;
  const u32 *begins, *from;  // of each row its first one among them, and its first one of the graph's less that
  const u32* all;            // of each column its first in-edge among theirs; null: columns are all vertices
  const Place* places;       // and its first place less that

  // f of each that leads to a column: its row, column and place in the CSC, and that among the in-edges.
  template <class F>
  __device__ __forceinline__ void each(Machine& m, F f) const {
    each_edge(m, begins, rows.n, n, [&](u32 i, u32 r) {
      uint2 edge = ((const uint2*)m.a().out_edges)[from[r] + i];
      if (!all) f(r, edge.x, (Place)edge.y, edge.y);
      else if (m.claimed((Id)edge.x)) {
        u32 c = m.first((Id)edge.x);
        f(r, c, (Place)edge.y, edge.y - (u32)places[c]);
      }
    });
  }
};

// Bits of which some are set, and how many are before each word of them.
struct Ranks {
  u32 *words, *before;
  __device__ __forceinline__ u32 operator()(u32 i) const { return before[i / 32] + __popc(words[i / 32] & ((1u << (i & 31)) - 1)); }
};

__device__ __noinline__ bool by_rows(Machine& m, Edges& made, const u32*& number, OutEdges out, u32 in) {
  Edges e;
  u32 words = in / 32 + 1, columns = out.columns.n;
  Ranks ranks{m.zeros<u32>(words), m.take<u32>(words)};
  if (!m.well()) return false;
  m.barrier();
  out.each(m, [&](u32, u32, Place, u32 i) { atomicOr(ranks.words + i / 32, 1u << (i & 31)); });
  m.barrier();
  auto set = [&](u32 w) -> u32 { return __popc(ranks.words[w]); };
  Machine::Scan scan;
  if (!m.counted(words, scan, set)) return false;
  u32 *begins = m.take<u32>(columns + 1), *of = m.take<u32>(scan.total);
  if (!edges_of(m, e, out.columns, begins, scan.total)) return false;
  m.put(made, e), m.put(number, of);
  m.placed(words, scan, set, [&](u32 w, u32 at, u32) { ranks.before[w] = at; });
  m.barrier();
  out.each(m, [&](u32 r, u32 c, Place p, u32 i) {
    u32 to = ranks(i);
    ((u32*)e.column)[to] = c, ((Place*)e.place)[to] = p, ((Id*)e.row)[to] = out.rows(r), of[to] = r;
  });
  m.each(columns + 1, [&](u32 c) { begins[c] = c == columns ? e.n : ranks(out.all ? out.all[c] : (u32)m.start(c)); });
  m.barrier();
  return true;
}

// What a batch loses that takes the in-edges, in nanoseconds; below 0 it gains.
__device__ __forceinline__ float lost_by(const Machine& m, float in, float out) {
  return (m.a().cost_in - m.a().cost_bit) * in - m.a().cost_out * out - m.a().cost_more;
}

// cross() by the way that costs less; by the rows where `forced`.
__device__ __noinline__ bool between(Machine& m, Edges& e, const u32*& number, float& lost, List rows, List columns, bool forced) {
  auto by_columns = [&](bool asks) {
    Ranges in;
    if (!ranges(m, in, columns, false)) return false;
    // By the mean degree.
    if (asks) lost += fmaxf(0, lost_by(m, (float)in.n, (float)rows.n * (float)m.a().num_edges / (float)m.a().num_nodes));
    m.sync();
    return cross(m, e, number, rows, columns, in);
  };
  const u32* starts = (const u32*)m.a().out_starts;
  if (!starts) return by_columns(true);
  bool whole = !columns.vertices;
  auto out_degree = [&](u32 r) -> u32 {
    u64 v = (u64)rows(r);
    return starts[v + 1] - starts[v];
  };
  auto in_degree = [&](u32 c) -> u32 {
    u64 v = (u64)columns(c);
    return at_most(m.start(v + 1) - m.start(v));
  };
  if (!whole) {
    u64 numbering = m.next_numbering();
    m.each(columns.n, [&](u32 c) { m.claim_one(numbering, c, columns(c)); });
  }
  Sums sums = m.sums(m.of_warp(rows.n, out_degree), m.of_warp(whole ? 0 : columns.n, in_degree));
  Machine::Scan out, in;
  if (!m.scanned(out, sums, 0) || !m.scanned(in, sums, 1)) return false;
  u32 n = whole ? (u32)m.a().num_edges : in.total;
  if (!forced && lost_by(m, (float)n, (float)out.total) <= 0) return by_columns(false);
  u32 *begins = m.take<u32>(rows.n + 1), *from = m.take<u32>(rows.n), *all = nullptr;
  Place* places = nullptr;
  if (!whole) all = m.take<u32>(columns.n), places = m.take<Place>(columns.n);
  if (!m.well()) return false;
  m.placed(rows.n, out, out_degree, [&](u32 r, u32 begin, u32) { begins[r] = begin, from[r] = starts[(u64)rows(r)] - begin; });
  if (m.reporter()) begins[rows.n] = out.total;
  if (!whole)
    m.placed(columns.n, in, in_degree, [&](u32 c, u32 begin, u32) {
      all[c] = begin, places[c] = (Place)m.start((u64)columns(c)) - (Place)begin;
    });
  return by_rows(m, e, number, OutEdges{rows, columns, out.total, begins, from, all, places}, n);
}

// The out-edges of a graph of fewer than 2^31 edges: where those of each vertex begin, and on the next line of the cache
// what they are.
__device__ __noinline__ bool turn(Machine& m) {
  u32 vertices = (u32)m.a().num_nodes, n = (u32)m.a().num_edges, *starts = (u32*)m.a().out;
  uint2* edges = (uint2*)(m.a().out + align64(((u64)vertices + 1) * 4));
  const Id* indices = (const Id*)m.a().indices;
  u32* next = m.zeros<u32>(vertices);
  if (!m.well()) return false;
  m.barrier();
  m.each(n, [&](u32 p) { atomicAdd(next + (u64)indices[p], 1u); });
  m.barrier();
  Machine::Scan scan;
  auto degree = [&](u32 v) -> u32 { return next[v]; };
  if (!m.counted(vertices, scan, degree)) return false;
  m.placed(vertices, scan, degree, [&](u32 v, u32 begin, u32) { starts[v] = next[v] = begin; });
  if (m.reporter()) starts[vertices] = scan.total;
  m.barrier();
  // The last of the vertices lo, ..., hi - 1 that has no edge behind p before its own.
  auto column = [&](u32 lo, u32 hi, u32 p) {
    while (hi - lo > 1) {
      u32 middle = lo + (hi - lo) / 2;
      if (m.start(middle) <= p) lo = middle;
      else hi = middle;
    }
    return lo;
  };
  Machine::Span mine = m.span(n);
  u32 c = mine.lo < mine.hi ? column(0, vertices, mine.lo) : 0;
#pragma unroll 1
  for (u32 p = mine.lo + (threadIdx.x & 31); p < mine.hi; p += 32) {
    for (u32 step = 0; m.start((u64)c + 1) <= p; c++)
      if (++step > 8) {
        c = column(c, vertices, p);
        break;
      }
    edges[atomicAdd(next + (u64)indices[p], 1u)] = make_uint2(c, p);
  }
  return true;
}
