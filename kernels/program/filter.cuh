// Edges of whole columns that satisfy a predicate, without a list of the columns' other edges: a
// list of all edges takes three words per edge, of which LABOR selects a tenth.
//
// Go generator: sieved() in internal/program/source.
#pragma once
#include "program/edges.cuh"

// What the test of an edge reads in the place of an array of all edges: the edge that is looked at.
template <class T>
struct Looked {
  T x;
  __device__ __forceinline__ T operator[](u32) const { return x; }
};

// All in-edges of distinct vertices, of which the begins of columns alone are in memory.
struct Sieve {
  u32 n;
  List columns;
  const u32* begins;
  const Place* from;  // of each column its first place, less its begin
  Looked<u32> column;
  Looked<Place> place;
  Looked<Id> row;
};

// Through values, as the address of a Sieve would keep it from being registers.
__device__ __forceinline__ void sieve(Sieve& s, List columns, const Ranges& r) {
  s.n = r.n, s.columns = columns, s.begins = r.begins, s.from = r.from;
}

// The edges for which kept(i) is 1, in their order; it reads the edge in s. It is asked once an edge, since it may be a
// random number: a bit each tells the second part, which goes through the bits that are set.
template <class Kept>
__device__ __forceinline__ bool sift(Machine& m, Edges& made, Sieve& s, Kept kept) {
  Edges e;
  u32 columns = s.columns.n, n = s.n, lane = threadIdx.x & 31, own = 0;
  const u32* all = s.begins;
  u32 *bits = m.take<u32>((u64)n / 32 + 1), *before = m.take<u32>((u64)n / 32 + 1);
  if (!m.well()) return false;
  // The spans of warps are whole words of bits.
  each_row(m, all, s.from, columns, n, Unseen(), [&](u32 i, u32 c, Place p, Id row, u32) {
    s.column.x = c, s.place.x = p, s.row.x = row;
    u32 word = __ballot_sync(~0u, i < n && kept(i));
    if (lane == 0) bits[i / 32] = word;
    own += __popc(word);
  });
  Machine::Scan scan;
  if (!m.scanned(scan, m.sum(own))) return false;
  u32* begins = m.take<u32>(columns + 1);
  if (!edges_of(m, e, s.columns, begins, scan.total)) return false;
  m.put(made, e);
  const Id* indices = (const Id*)m.a().indices;
  Machine::Span mine = m.span(n);
  u32 at = scan.before, words = mine.lo < mine.hi ? (mine.hi + 31) / 32 : 0;
#pragma unroll 1
  for (u32 w0 = mine.lo / 32; w0 < words; w0 += 32) {
    u32 w = w0 + lane, word = w < words ? bits[w] : 0, found;
    u32 to = at + lanes_before(__popc(word), found);
    at += found;
    if (w < words) before[w] = to;
    u32 c = word ? column_of(all, columns, 32 * w) : 0;
#pragma unroll 1
    for (; word; word &= word - 1, to++) {
      u32 i = 32 * w + __ffs((int)word) - 1;
      c = column_from(all, columns, c, i);
      Place p = s.from[c] + (Place)i;
      ((u32*)e.column)[to] = c, ((Place*)e.place)[to] = p, ((Id*)e.row)[to] = indices[p];
    }
  }
  m.barrier();
  m.each(columns + 1, [&](u32 c) {
    u32 i = all[c];
    begins[c] = i == n ? e.n : before[i / 32] + __popc(bits[i / 32] & ((1u << (i % 32)) - 1));
  });
  m.barrier();
  return true;
}
