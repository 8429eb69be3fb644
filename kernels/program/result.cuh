// The batch of a program: nodes by first occurrence, a block for each matrix, and extra arrays.
//
// Go twin: internal/program/run/result.go.
#pragma once
#include "program/dependent.cuh"
#include "program/replace.cuh"
#include "program/walk.cuh"

// Where the arrays of a batch stand, and the words that say so.
struct Batching {
  Machine& m;
  u64* words;
  u64 size;
  const Layout layout;

  __device__ Batching(Machine& m, u32 blocks, u32 extras) : m(m), words(m.a().report + REPORT_HEADER), layout(homogeneous(blocks)) {
    u32 n = layout.words(extras);
    size = n * 8;
    if (m.reporter()) {
      for (u32 i = 0; i < n; i++) words[i] = 0;
      layout.sign(words, sizeof(Id) * 8, 0, extras);
      words[WORD_NUM_OUTPUT] = m.a().num_seeds, words[layout.edge_id_bits(0)] = PROGRAM_OUT_EDGE_BITS;
    }
  }
  __device__ __forceinline__ void set(u32 word, u64 value) const {
    if (m.reporter()) words[word] = value;
  }
  // n elements of so many bytes, at an offset that a word says. They may be beyond the end: see fits().
  __device__ __forceinline__ char* put(u32 word, u64 n, u32 bytes) {
    u64 at = align64(size);
    size = at + n * bytes;
    set(word, at);
    return m.a().out + at;
  }
  // Where they do not fit nothing is written, but all is put, so that the host hears how much it takes.
  __device__ __forceinline__ bool fits() const { return size <= m.a().out_bytes; }
  __device__ __forceinline__ bool end() {
    set(WORD_SIZE, size);
    m.set(m.now().detail, m.now().used);
    return fits() || m.fail(STATUS_TOO_SMALL, size);
  }
};

// A value as a result has it.
__device__ __forceinline__ float single(double x) { return x == x ? __double2float_rn(x) : __uint_as_float(0x7FC00000u); }

// Vertices of a batch, which are numbered by first occurrence among parts, one behind another. Each part is a
// list or the rows of edges.
struct Occurrences {
  Id* all;
  u32* before;  // how many distinct vertices come before each of them
  u32 n = 0;
  __device__ __forceinline__ Id operator()(u32 i) const { return all[i]; }
  __device__ __forceinline__ u32 number(const Machine& m, Id v) const { return before[m.first(v)]; }
};
// Likewise of two lists, which are read where they are.
struct Nested {
  List x, y;
  u32* before;
  u32 n;
  __device__ __forceinline__ Id operator()(u32 i) const { return i < x.n ? x(i) : y(i - x.n); }
  __device__ __forceinline__ u32 number(const Machine& m, Id v) const { return before[m.first(v)]; }
};
__device__ __forceinline__ bool room(Machine& m, Occurrences& o, u64 n) {
  if (n >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, n);
  o.all = m.take<Id>(n), o.before = m.take<u32>(n + 1);
  return m.well();
}
template <class Vertex>
__device__ __forceinline__ void occur(Machine& m, Occurrences& o, u32 n, Vertex vertex) {
  m.each(n, [&](u32 i) { o.all[o.n + i] = vertex(i); });
  o.n += n;
}

template <class Of>
__device__ __forceinline__ bool number_all(Machine& m, Of& o, u32& total, bool claimed) {
  if (!claimed) m.claim(o.n, o);
  auto is_first = [&](u32 i) -> u32 { return m.first(o(i)) == i; };
  Machine::Scan scan;
  if (!m.counted(o.n, scan, is_first)) return false;
  m.placed(o.n, scan, is_first, [&](u32 i, u32 at, u32) { o.before[i] = at; });
  if (m.reporter()) o.before[o.n] = scan.total;
  m.put(total, scan.total);
  m.barrier();
  return true;
}
__device__ __noinline__ bool number(Machine& m, Occurrences o, u32& total) {
  m.barrier();
  return number_all(m, o, total, false);
}
// They may have been claimed.
__device__ __noinline__ bool nest(Machine& m, Nested& o, List x, List y, u32& total, bool claimed) {
  u64 n = (u64)x.n + y.n;
  if (n >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, n);
  Nested all{x, y, m.take<u32>(n + 1), (u32)n};
  m.put(o, all);
  return m.well() && number_all(m, all, total, claimed);
}

// Of each destination of a block its first edge. Those of all blocks are found at the same meetings: degrees are zeros
// before vertices are numbered, then they are counted, added up, and placed.
struct Destinations {
  u32 n = 0;
  u32 *degrees, *begins;
  Machine::Scan scan;

  __device__ __forceinline__ bool room(Machine& m, u32 most) {
    degrees = m.zeros<u32>(most), begins = m.take<u32>(most);
    return m.well();
  }
  // A column c of the matrix is destination to(c) of so many.
  template <class To>
  __device__ __forceinline__ void count(Machine& m, u32 destinations, const Edges& e, To to) {
    n = destinations;
    m.each(e.columns.n, [&](u32 c) { degrees[to(c)] = e.begins[c + 1] - e.begins[c]; });
  }
  __device__ __forceinline__ u32 own(Machine& m) const {
    return m.of_warp(n, [&](u32 d) { return degrees[d]; });
  }
  __device__ __forceinline__ void place(Machine& m) const {
    m.placed(n, scan, [&](u32 d) { return degrees[d]; }, [&](u32 d, u32 begin, u32) { begins[d] = begin; });
  }
};
// Of up to three blocks.
__device__ __forceinline__ bool destinations(Machine& m, Destinations& x, Destinations& y, Destinations& z) {
  Sums all = m.sums(x.own(m), y.own(m), z.own(m));
  if (!m.scanned(x.scan, all, 0) || !m.scanned(y.scan, all, 1) || !m.scanned(z.scan, all, 2)) return false;
  x.place(m), y.place(m), z.place(m);
  m.loosen();
  return true;
}

// Where a block's arrays are, once its numbers are known.
struct BlockArrays {
  Id *indptr, *indices;
  void* ids;
  float* values;

  __device__ __forceinline__ BlockArrays(Machine& m, Batching& b, u32 i, u32 sources, u32 destinations, u32 edges, bool valued) {
    u32 words = b.layout.block(i, 0);
    b.set(b.layout.count(0, b.layout.hops - 1 - i), destinations);
    b.set(words + BLOCK_NUM_SRC, sources), b.set(words + BLOCK_NUM_DST, destinations), b.set(words + BLOCK_NUM_EDGES, edges);
    indptr = (Id*)b.put(words + BLOCK_INDPTR, (u64)destinations + 1, sizeof(Id));
    indices = (Id*)b.put(words + BLOCK_INDICES, edges, sizeof(Id));
    ids = b.put(words + BLOCK_EDGE_IDS, edges, PROGRAM_OUT_EDGE_BITS / 8);
    values = valued ? (float*)b.put(words + BLOCK_EDGE_WEIGHTS, edges, 4) : nullptr;
  }
};

// Block i of the batch, of a matrix whose columns are the destinations, in order.
template <class From, class Value>
__device__ __forceinline__ bool block_in_place(Machine& m, Batching& b, u32 i, u32 sources, const Edges& e, From from, bool valued, Value value) {
  BlockArrays to(m, b, i, sources, e.columns.n, e.n, valued);
  if (!b.fits()) return true;
  m.each(e.columns.n + 1, [&](u32 d) { to.indptr[d] = (Id)e.begins[d]; });
  m.each(e.n, [&](u32 k) {
    to.indices[k] = (Id)from(k);
    write(to.ids, PROGRAM_OUT_EDGE_BITS, k, m.edge_id(e.place[k]));
    if (valued) to.values[k] = single(value(k));
  });
  return true;
}

// Block i of the batch: edges of a matrix whose column c is destination to(c), and whose edge k comes from
// vertex number from(k). Its values are left out where they are ones.
template <class To, class From, class Value>
__device__ __forceinline__ bool block(Machine& m, Batching& b, u32 i, u32 sources, const Destinations& of, const Edges& e, To to, From from, bool valued,
                                      Value value) {
  BlockArrays arrays(m, b, i, sources, of.n, e.n, valued);
  if (!b.fits()) return true;
  const u32* begins = of.begins;
  m.each(of.n, [&](u32 d) { arrays.indptr[d] = (Id)begins[d]; });
  if (m.reporter()) arrays.indptr[of.n] = (Id)e.n;
  m.each(e.n, [&](u32 k) {
    u32 c = e.column[k], at = begins[to(c)] + (k - e.begins[c]);
    arrays.indices[at] = (Id)from(k);
    write(arrays.ids, PROGRAM_OUT_EDGE_BITS, at, m.edge_id(e.place[k]));
    if (valued) arrays.values[at] = single(value(k));
  });
  return true;
}

// The vertices that were numbered, the seeds among them, and where those are. So many seeds are distinct: they stand
// first.
template <class Of>
__device__ __forceinline__ bool vertices(Machine& m, Batching& b, const Of& o, u32 total, List seeds, u32 distinct) {
  b.set(WORD_NUM_NODES, total), b.set(b.layout.count(0, b.layout.hops), total);
  Id* nodes = (Id*)b.put(WORD_NODES, total, sizeof(Id));
  bool repeated = distinct != seeds.n;
  Id* given = nodes;
  if (repeated) given = (Id*)b.put(WORD_OUTPUT_NODES, seeds.n, sizeof(Id));
  else b.set(WORD_OUTPUT_NODES, (char*)nodes - m.a().out);
  Id* index = (Id*)b.put(WORD_OUTPUT_INDEX, seeds.n, sizeof(Id));
  if (!b.fits()) return true;
  m.each(o.n, [&](u32 i) {
    if (m.first(o(i)) == i) nodes[o.before[i]] = o(i);
  });
  m.each(seeds.n, [&](u32 i) {
    if (repeated) given[i] = seeds(i);
    index[i] = (Id)o.number(m, seeds(i));
  });
  return true;
}

// The vertices of a subgraph, which have just been claimed, and where the seeds are among them.
__device__ __forceinline__ bool subgraph_vertices(Machine& m, Batching& b, List of, List seeds) {
  b.set(WORD_NUM_NODES, of.n), b.set(b.layout.count(0, b.layout.hops), of.n);
  Id* nodes = (Id*)b.put(WORD_NODES, of.n, sizeof(Id));
  Id* given = (Id*)b.put(WORD_OUTPUT_NODES, seeds.n, sizeof(Id));
  Id* index = (Id*)b.put(WORD_OUTPUT_INDEX, seeds.n, sizeof(Id));
  if (!b.fits()) return true;
  m.each(of.n, [&](u32 i) { nodes[i] = of(i); });
  m.each(seeds.n, [&](u32 i) {
    given[i] = seeds(i);
    index[i] = m.claimed(seeds(i)) ? (Id)m.first(seeds(i)) : (Id)-1;
  });
  return true;
}

// n values of what is made once for a graph, behind those before.
template <class Of>
__device__ __forceinline__ bool keep(Machine& m, char*& to, u32 n, Of of) {
  double* out = (double*)to;
  to += align64((u64)n * 8);
  m.each(n, [&](u32 i) { out[i] = of(i); });
  return true;
}

// Likewise n rows of h numbers.
template <u32 h, class Of>
__device__ __forceinline__ bool keep_rows(Machine& m, char*& to, u32 n, Of of) {
  float* out = (float*)to;
  u64 count = (u64)n * h;
  to += align64(count * 4);
#pragma unroll 1
  for (u64 k = blockIdx.x * PROGRAM_THREADS + threadIdx.x; k < count; k += gridDim.x * PROGRAM_THREADS) out[k] = of((u32)(k / h), (u32)(k % h));
  return true;
}

// Array i beside so many blocks.
template <class Of>
__device__ __forceinline__ bool extra_values(Machine& m, Batching& b, u32 blocks, u32 i, u32 n, Of of) {
  u32 words = b.layout.extra(i);
  b.set(words + EXTRA_LENGTH, n);
  float* to = (float*)b.put(words + EXTRA_OFFSET, n, 4);
  if (!b.fits()) return true;
  m.each(n, [&](u32 k) { to[k] = single(of(k)); });
  return true;
}
// Array i: values of the edges of a block, as block() has them.
template <class To, class Of>
__device__ __forceinline__ bool extra_edges(Machine& m, Batching& b, u32 blocks, u32 i, const Destinations& dst, const Edges& e, To to, Of of) {
  u32 words = b.layout.extra(i);
  b.set(words + EXTRA_LENGTH, e.n);
  float* out = (float*)b.put(words + EXTRA_OFFSET, e.n, 4);
  if (!b.fits()) return true;
  const u32* begins = dst.begins;
  m.each(e.n, [&](u32 k) {
    u32 c = e.column[k];
    out[begins[to(c)] + (k - e.begins[c])] = single(of(k));
  });
  return true;
}
// Array i: n rows of h numbers.
template <u32 h, class Of>
__device__ __forceinline__ bool extra_rows(Machine& m, Batching& b, u32 blocks, u32 i, u32 n, Of of) {
  u32 words = b.layout.extra(i);
  u64 count = (u64)n * h;
  b.set(words + EXTRA_LENGTH, count), b.set(words + EXTRA_WIDTH, h + 1);
  float* to = (float*)b.put(words + EXTRA_OFFSET, count, 4);
  if (!b.fits()) return true;
#pragma unroll 1
  for (u64 k = blockIdx.x * PROGRAM_THREADS + threadIdx.x; k < count; k += gridDim.x * PROGRAM_THREADS) {
    to[k] = single((double)of((u32)(k / h), (u32)(k % h)));
  }
  return true;
}
// Array i: the microseconds of n parts.
__device__ __forceinline__ bool extra_times(Machine& m, Batching& b, u32 blocks, u32 i, u32 n) {
  u32 words = b.layout.extra(i);
  b.set(words + EXTRA_LENGTH, n);
  float* to = (float*)b.put(words + EXTRA_OFFSET, n, 4);
  if (!b.fits() || !m.reporter()) return true;
  u64 cycles = 0;
  for (u32 k = 0; k < n; k++) cycles += m.s().times[k];
  double us = 1e-3 * (double)(globaltimer() - m.s().begin) / (double)max(cycles, (u64)1);
  for (u32 k = 0; k < n; k++) to[k] = (float)((double)m.s().times[k] * us);
  return true;
}
__device__ __forceinline__ bool extra_list(Machine& m, Batching& b, u32 blocks, u32 i, List list) {
  u32 words = b.layout.extra(i);
  b.set(words + EXTRA_KIND, 1), b.set(words + EXTRA_LENGTH, list.n);
  Id* to = (Id*)b.put(words + EXTRA_OFFSET, list.n, sizeof(Id));
  if (!b.fits()) return true;
  m.each(list.n, [&](u32 k) { to[k] = list(k); });
  return true;
}

// Go: declare() of internal/program/source counts with these.
static_assert(sizeof(ProgramShared) <= 21 << 10 && sizeof(Edges) == 96 && sizeof(Ranges) == 32 && sizeof(Draws) == 56 && sizeof(List) == 16 &&
                  sizeof(Nested) == 48,
              "two blocks have room beside each other");
