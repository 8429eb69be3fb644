// Reduces rows of x over the segments of a CSR: row r of the result is the sum, the mean or the
// maximum of x[indices[e]] over e in [indptr[r], indptr[r + 1]). Layers of a graph network spend
// most of their time here.
//
// torch copies a row for each edge and reduces the copies, by atomics or by segment_reduce: it
// writes and reads an array of [edges, width]. Here each row of x goes from memory into registers
// and is added there. The first layer does not even need its x: with ids the row of an edge is
// x[ids[indices[e]]] of the feature table itself, and the rows of a batch are never written.
//
// The unit of work is a row of the result, or 32 vectors of it if it is wider: row y of the grid.
// 2^group lanes process it, each with N columns, and add the edges in their order, every product and
// every sum rounded separately, and 16-bit values as float32. So the bits are those of the CPU, and
// the same on every run. Columns and lanes are independent.
//
// - The number of loads in flight determines the speed. A lane loads the rows of AHEAD edges, then
//   the ids of the next AHEAD, and only then adds; with ids it also has the sources of the AHEAD
//   edges after those in flight.
// - Lanes without an edge read zeros that the L1 holds, as in features/gather.cu: ptxas compiles a
//   conditional load to a load into another register and a move, which waits. A sum is never -0,
//   since it begins at +0; so + 0 changes none.
// - A row of at least 2 a.piece edges is long: it is added in pieces of a.piece edges, the last of
//   which has the rest, and then the sums of the pieces are added in order. In a launch with pieces
//   they are separate items of work in addition to the rows, whose results wait in room for
//   segment_fold, so that several groups share a hub. Piece i of a row is found by the multiple of
//   a.piece that is the row's own number i, of which there is at least one for each piece: so no
//   list of pieces is built, and nothing waits for its length. Without pieces a group adds them one
//   after another, with the same bits.
//
// An id that is no source, or no row of x, is not read: the edge adds nothing, and its position is
// reported if requested. Offsets beyond the edges are clamped to the end, so wrong ones cause wrong
// sums and no fault. Edges beyond the last offset are padding.
//
// The gradient of a sum is the sum over the edges by their sources (transpose.cu). places says which
// edge of the original CSR an edge is, for weights. degrees are the offsets of that CSR: the
// gradient of a mean is a sum of rows over their degrees.
//
// fold and fold_max finish the long rows of the previous launch.
//
// taken is the gradient of the maximum: over the edges by their sources, it adds the gradients of
// the rows whose maximum a source was. dots computes, for each edge, the dot product of both of its
// rows; row y of the grid has head y, with a group of lanes per row. It adds in the order of lanes
// and may fuse: the bits are the same on every run, but not those of the CPU.
//
// AHEAD of 8 spilled registers for vectors of 16 bytes; with 4, 64 of them hold all loads in flight.
//
// Kernels: segment.cu, segment_half.cu. Go caller: internal/engine/cuda/segment.go. C twin:
// internal/engine/cpu/layers (body.h).
#pragma once
#include "common/half.cuh"

// Mirrors segmentArgs in internal/engine/cuda/segment.go; loading compares the sizes.
struct SegmentArgs {
  const void* x;        // [table][width]
  const void* indptr;   // [rows + 1], of id_bits, as all ids
  const void* indices;  // [edges]
  const void* weights;  // [edges][heads]; null: all are 1
  void* out;            // [rows][width]; dots read it
  void* best;           // [rows][width], written: sources; may be null. taken reads it: [sources][width]
  void* dots;           // [edges][heads]
  u64* bad;             // becomes at most the place of an id that is none; may be null
  const void* ids;      // [sources]: rows of x; null: a source's row is its own
  const void* degrees;  // [sources + 1]: offsets, by whose steps rows are divided; null: by 1
  const void* places;   // [edges]: whose weights an edge has; null: its own
  u64 sources, rows, edges, table;
  u32 width, heads;
  u32 mean;        // whether sums are divided by the number of edges
  u32 id_bits;     // 32 or 64
  u32 float_bits;  // 16, 32 or 64
  u32 brain;       // whether those of 16 are bfloat16
  u32 vector;      // N: divides the width, or a head's, and so wide are addresses aligned; 16 bytes at most
  u32 group;       // 2^group lanes take a row; 5 where its part has more than 16 vectors
  void* room;      // [pieces][width] of what sums are, and what a kernel says; not of dots
  u64 pieces;      // multiples of piece among the edges; 0: rows are one group's work
  u64 piece;       // so many edges has a piece of a row, a multiple of 8; 0: no row is long
};

// What is read where there is nothing to read.
__device__ const uint4 segment_nothing = {0, 0, 0, 0};

// Ids, of which the low words are read: there are fewer than 2^32 of anything that they name, and those of both
// widths are one code.
__device__ __forceinline__ const u32* id_at(const SegmentArgs& a, const void* ids, u64 i) {
  return (const u32*)ids + (i << (a.id_bits == 64));
}
__device__ __forceinline__ u64 offset_at(const SegmentArgs& a, const void* offsets, u64 i) {
  return a.id_bits == 64 ? __ldg((const u64*)offsets + i) : (u64)__ldg((const u32*)offsets + i);
}
__device__ __forceinline__ void put_id(const SegmentArgs& a, void* ids, u64 i, u32 id) {
  if (a.id_bits == 64) ((long long*)ids)[i] = id == ~0u ? -1 : (long long)id;
  else ((u32*)ids)[i] = id;
}

// What a group of lanes takes at a time: a row, or a piece of one.
struct Part {
  u64 row, low, high;  // edges from low to high, at most all there are
  u64 first, last;     // of the row

  // Finds an item of a launch, which has those of pieces before those of rows; false where it is none.
  __device__ __forceinline__ bool find(const SegmentArgs& a, u64 item) {
    row = item - a.pieces;
    if (item < a.pieces) {
      u64 end = a.rows;
      row = 0;
      // The last row that begins at the multiple or before it.
      while (end - row > 1) {
        u64 middle = (row + end) / 2;
        if (offset_at(a, a.indptr, middle) <= item * a.piece) row = middle;
        else end = middle;
      }
    }
    first = low = offset_at(a, a.indptr, row), last = offset_at(a, a.indptr, row + 1);
    last = high = last < a.edges ? last : a.edges;
    if (!a.pieces) return true;
    u64 size = a.piece;
    bool is_long = low < high && high - low >= 2 * size;
    if (item >= a.pieces || !is_long) return item >= a.pieces && !is_long;
    u64 number = item - first_item(a);
    if (item * size < low || number >= many(a)) return false;
    low += number * size;
    if (number + 1 < many(a)) high = low + size;
    return true;
  }

  // How many pieces the row has, and which item is the first of them.
  __device__ __forceinline__ u64 many(const SegmentArgs& a) const { return (last - first) / a.piece; }
  __device__ __forceinline__ u64 first_item(const SegmentArgs& a) const { return (first + a.piece - 1) / a.piece; }
};

// Edges of a row, AHEAD at a time, with the ids of the next ones on their way. OF: rows of x are named by ids.
template <int AHEAD, bool OF>
struct RowEdges {
  const u32* ids;  // of the first that is left
  u64 left;
  u64 place;  // of the first that is left, among all edges
  u32 fold;   // so many are left when a piece ends; more than there are: none does
  u32 next[AHEAD];                               // sources
  u32 after[OF ? AHEAD : 1], rows[OF ? AHEAD : 1];  // those behind the next ones, whose rows of x are on their way
  u32 source[AHEAD], row[AHEAD];
  bool on[AHEAD];  // whether there is an edge and its source is one, with a row of x

  __device__ __forceinline__ void begin(const SegmentArgs& a, const Part& part) {
    place = part.low;
    left = part.low < part.high ? part.high - part.low : 0;
    next_fold(a);
    ids = id_at(a, a.indices, part.low);
    if (!left) return;
    fetch(a, next, 0);
    if constexpr (OF) {
      look(a);
      fetch(a, after, AHEAD);
    }
  }

  __device__ __forceinline__ void next_fold(const SegmentArgs& a) {
    fold = a.piece && left >= 2 * a.piece ? (u32)(left - a.piece) : ~0u;
  }

  // How many are left, as far as anybody asks.
  __device__ __forceinline__ u32 few() const { return left < 4 * AHEAD ? (u32)left : 4 * AHEAD; }

  // Loads the ids from one on; of edges that there are none of, the last one's, so that no lane skips a load.
  __device__ __forceinline__ void fetch(const SegmentArgs& a, u32* to, u32 first) {
    u32 n = few();
#pragma unroll
    for (u32 c = 0; c < AHEAD; c++) to[c] = __ldg(ids + ((first + c < n ? first + c : n - 1) << (a.id_bits == 64)));
  }

  // Loads what rows the next ones have.
  __device__ __forceinline__ void look(const SegmentArgs& a) {
#pragma unroll
    for (int c = 0; c < AHEAD; c++)
      rows[c] = __ldg(next[c] < a.sources ? id_at(a, a.ids, next[c]) : (const u32*)&segment_nothing);
  }

  // Decides whose rows are read; note says whether this lane is the one to report ids that are none.
  __device__ __forceinline__ void take(const SegmentArgs& a, bool note) {
    u32 n = few();
#pragma unroll
    for (int c = 0; c < AHEAD; c++) {
      source[c] = next[c];
      row[c] = OF ? rows[c] : source[c];
      bool is_row = source[c] < a.sources && (!OF || row[c] < a.table);
      on[c] = (u32)c < n && is_row;
      if (note && (u32)c < n && !is_row && a.bad) atomicMin(a.bad, place + c);
    }
  }

  // Asks for the ids of the next ones, once the rows of these have been asked for.
  __device__ __forceinline__ void ask(const SegmentArgs& a) {
    if (!left) return;
    if constexpr (OF) {
#pragma unroll
      for (int c = 0; c < AHEAD; c++) next[c] = after[c];
      look(a);
      fetch(a, after, 2 * AHEAD);
    } else {
      fetch(a, next, AHEAD);
    }
  }

  __device__ __forceinline__ void advance(const SegmentArgs& a) {
    u64 step = left < AHEAD ? left : AHEAD;
    left -= step, place += step, ids += step << (a.id_bits == 64);
  }
};

// The items of a group of lanes, and which columns of them are this lane's.
struct Task {
  u64 item, stride;
  u32 column;

  __device__ __forceinline__ Task(const SegmentArgs& a, u32 part, u32 n) {
    item = ((u64)blockIdx.x * SEGMENT_THREADS + threadIdx.x) >> a.group;
    stride = ((u64)gridDim.x * SEGMENT_THREADS) >> a.group;
    column = (part * 32 + (threadIdx.x & ((1u << a.group) - 1))) * n;
  }
};

// What a row of x is multiplied by: nothing, a weight of its edge, that of its place, one over its degree.
enum Factor { NONE, WEIGHT, PLACED, DEGREE };

// Adds the sum of a piece to those before it.
template <int N, typename Sum, typename Edges>
__device__ __forceinline__ void add_piece(const SegmentArgs& a, Edges& edges, Sum* sum, Sum* total) {
#pragma unroll
  for (int j = 0; j < N; j++) total[j] = plus(total[j], sum[j]), sum[j] = 0;
  edges.next_fold(a);
}

// Writes what has been added of a row, or what waits for its other pieces.
template <typename V, int N, typename Sum>
__device__ __forceinline__ void finish(const SegmentArgs& a, u64 item, u32 column, Sum* sum, const Sum* total) {
  if (item < a.pieces) {
#pragma unroll
    for (int j = 0; j < N; j++) ((Sum*)a.room)[item * a.width + column + j] = sum[j];
    return;
  }
  u64 row = item - a.pieces;
  Values<V, N> made;
  Sum degree = 0;
  if (a.mean) degree = (Sum)(long long)(offset_at(a, a.indptr, row + 1) - offset_at(a, a.indptr, row));
#pragma unroll
  for (int j = 0; j < N; j++) {
    // No sum is -0: it begins with 0.
    sum[j] = plus(total[j], sum[j]);
    if (degree) sum[j] = over(sum[j], degree);
    made.set(j, sum[j]);
  }
  made.store((V*)a.out + row * a.width + column);
}

// Adds the sums of each long row's pieces: items are those of pieces.
template <typename V, int N, bool, Factor>
__device__ __forceinline__ void fold(const SegmentArgs& a, u32 y) {
  typedef typename Wide<V>::type Sum;
  Task t(a, y, N);
  if (t.column >= a.width) return;
  for (u64 item = t.item; item < a.pieces; item += t.stride) {
    Part part;
    if (!part.find(a, item) || part.low != part.first) continue;
    u64 many = part.many(a);
    Sum sum[N], total[N] = {};
    const Sum* from = (const Sum*)a.room + item * a.width + t.column;
#pragma unroll 4
    for (u64 i = 0; i < many; i++)
#pragma unroll
      for (int j = 0; j < N; j++) sum[j] = from[i * a.width + j], total[j] = i + 1 < many ? plus(total[j], sum[j]) : total[j];
    finish<V, N>(a, a.pieces + part.row, t.column, sum, total);
  }
}

// How many edges' rows are on their way. Vectors of 8 bytes or less leave registers for twice as many, and need
// them to keep as many bytes in flight.
template <typename V, int N, bool OF, Factor FACTOR>
__device__ constexpr int rows_ahead() {
  return sizeof(V) * N <= 8 && !OF && FACTOR == NONE ? 8 : 4;
}

template <typename V, int N, bool OF, Factor FACTOR>
__device__ __forceinline__ void sums(const SegmentArgs& a, u32 part) {
  typedef typename Wide<V>::type Sum;
  const int AHEAD = rows_ahead<V, N, OF, FACTOR>();
  const bool WEIGHTED = FACTOR == WEIGHT || FACTOR == PLACED;
  const V* nothing = (const V*)&segment_nothing;
  const u32* none = (const u32*)&segment_nothing;
  Task t(a, part, N);
  if (t.column >= a.width) return;
  u32 column = t.column;
  for (u64 item = t.item; item < a.pieces + a.rows; item += t.stride) {
    Part part;
    if (!part.find(a, item)) continue;
    const V* x = (const V*)a.x + column;
    const V* weights = nullptr;
    if (WEIGHTED) weights = (const V*)a.weights + column / (a.width / a.heads);
    RowEdges<AHEAD, OF> edges;
    edges.begin(a, part);
    Sum sum[N] = {}, total[N] = {};
    while (edges.left) {
      Values<V, N> value[AHEAD];
      Values<V, 1> weight[AHEAD];
      u32 low[AHEAD], high[AHEAD];
      edges.take(a, column == 0);
      if (FACTOR == PLACED) {
#pragma unroll
        for (int c = 0; c < AHEAD; c++) low[c] = __ldg(edges.on[c] ? id_at(a, a.places, edges.place + c) : none);
      }
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        value[c].load(edges.on[c] ? x + (u64)edges.row[c] * a.width : nothing);
        if (FACTOR == WEIGHT) weight[c].load(edges.on[c] ? weights + (edges.place + c) * a.heads : nothing);
        if (FACTOR == DEGREE) {
          low[c] = __ldg(edges.on[c] ? id_at(a, a.degrees, edges.source[c]) : none);
          high[c] = __ldg(edges.on[c] ? id_at(a, a.degrees, (u64)edges.source[c] + 1) : none);
        }
      }
      if (FACTOR == PLACED) {
#pragma unroll
        for (int c = 0; c < AHEAD; c++) weight[c].load(edges.on[c] ? weights + (u64)low[c] * a.heads : nothing);
      }
      edges.ask(a);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        Sum factor = 1;
        if (WEIGHTED) factor = weight[c][0];
        // Where there is no edge a row of zeros, which stays one.
        if (FACTOR == DEGREE) factor = over((Sum)1, edges.on[c] ? (Sum)(high[c] - low[c]) : (Sum)1);
#pragma unroll
        for (int j = 0; j < N; j++) sum[j] = plus(sum[j], FACTOR == NONE ? value[c][j] : times(factor, value[c][j]));
      }
      edges.advance(a);
      if ((u32)edges.left == edges.fold) add_piece<N>(a, edges, sum, total);
    }
    finish<V, N>(a, item, column, sum, total);
  }
}

// A NaN wins, and the first of equals.
template <typename Sum>
__device__ __forceinline__ void larger(Sum& most, u32& best, Sum v, u32 source, bool on) {
  bool wins = on && (best == ~0u || v > most || (v != v && most == most));
  most = wins ? v : most;
  best = wins ? source : best;
}

// Writes the largest of a row, or what waits in room for its other pieces: values, and behind those of all sources.
template <typename V, int N, typename Sum>
__device__ __forceinline__ void finish_largest(const SegmentArgs& a, u64 item, u32 column, const Sum* most, const u32* best) {
  u64 at = (item < a.pieces ? item : item - a.pieces) * a.width + column;
  if (item < a.pieces) {
    u32* sources = (u32*)((Sum*)a.room + a.pieces * a.width);
#pragma unroll
    for (int j = 0; j < N; j++) ((Sum*)a.room)[at + j] = most[j], sources[at + j] = best[j];
    return;
  }
  Values<V, N> made;
#pragma unroll
  for (int j = 0; j < N; j++) made.set(j, most[j]);
  made.store((V*)a.out + at);
  if (a.best) {
#pragma unroll
    for (int j = 0; j < N; j++) put_id(a, a.best, at + j, best[j]);
  }
}

// Finds the largest of each long row's pieces, as fold adds them.
template <typename V, int N, bool, Factor>
__device__ __forceinline__ void fold_largest(const SegmentArgs& a, u32 y) {
  typedef typename Wide<V>::type Sum;
  Task t(a, y, N);
  if (t.column >= a.width) return;
  const u32* sources = (const u32*)((const Sum*)a.room + a.pieces * a.width);
  for (u64 item = t.item; item < a.pieces; item += t.stride) {
    Part part;
    if (!part.find(a, item) || part.low != part.first) continue;
    u64 many = part.many(a);
    Sum most[N] = {};
    u32 best[N];
#pragma unroll
    for (int j = 0; j < N; j++) best[j] = ~0u;
    for (u64 i = item; i < item + many; i++)
#pragma unroll
      for (int j = 0; j < N; j++) {
        u64 at = i * a.width + t.column + j;
        larger(most[j], best[j], ((const Sum*)a.room)[at], sources[at], sources[at] != ~0u);
      }
    finish_largest<V, N>(a, a.pieces + part.row, t.column, most, best);
  }
}

template <typename V, int N, bool OF, Factor>
__device__ __forceinline__ void largest(const SegmentArgs& a, u32 part) {
  typedef typename Wide<V>::type Sum;
  const int AHEAD = 4;
  const V* nothing = (const V*)&segment_nothing;
  Task t(a, part, N);
  if (t.column >= a.width) return;
  u32 column = t.column;
  for (u64 item = t.item; item < a.pieces + a.rows; item += t.stride) {
    Part part;
    if (!part.find(a, item)) continue;
    const V* x = (const V*)a.x + column;
    RowEdges<AHEAD, OF> edges;
    edges.begin(a, part);
    Sum most[N] = {};
    u32 best[N];
#pragma unroll
    for (int j = 0; j < N; j++) best[j] = ~0u;
    while (edges.left) {
      Values<V, N> value[AHEAD];
      edges.take(a, column == 0);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) value[c].load(edges.on[c] ? x + (u64)edges.row[c] * a.width : nothing);
      edges.ask(a);
#pragma unroll
      for (int c = 0; c < AHEAD; c++)
#pragma unroll
        for (int j = 0; j < N; j++) larger(most[j], best[j], (Sum)value[c][j], edges.source[c], edges.on[c]);
      edges.advance(a);
    }
    finish_largest<V, N>(a, item, column, most, best);
  }
}

// Rows here are sources of the CSR that was reduced, and sources its rows: x are their gradients. Edges of one
// source that lead to one row stand side by side, and the first of them has all of it.
template <typename V, int N, bool, Factor>
__device__ __forceinline__ void taken(const SegmentArgs& a, u32 part) {
  typedef typename Wide<V>::type Sum;
  const int AHEAD = 2;
  const V* nothing = (const V*)&segment_nothing;
  Task t(a, part, N);
  if (t.column >= a.width) return;
  u32 column = t.column;
  for (u64 item = t.item; item < a.pieces + a.rows; item += t.stride) {
    Part part;
    if (!part.find(a, item)) continue;
    const V* x = (const V*)a.x + column;
    RowEdges<AHEAD, false> edges;
    edges.begin(a, part);
    Sum sum[N] = {}, total[N] = {};
    u32 before = part.low > part.first ? *id_at(a, a.indices, part.low - 1) : ~0u;
    while (edges.left) {
      Values<V, N> value[AHEAD];
      u32 winner[AHEAD][N];
      edges.take(a, column == 0);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        u64 at = (u64)edges.source[c] * a.width;
        value[c].load(edges.on[c] ? x + at : nothing);
#pragma unroll
        for (int j = 0; j < N; j++) winner[c][j] = __ldg(edges.on[c] ? id_at(a, a.best, at + column + j) : (const u32*)&segment_nothing);
      }
      edges.ask(a);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        bool counts = edges.on[c] && edges.source[c] != before;
        before = edges.source[c];
#pragma unroll
        for (int j = 0; j < N; j++) sum[j] = plus(sum[j], counts && winner[c][j] == (u32)part.row ? value[c][j] : (Sum)0);
      }
      edges.advance(a);
      if ((u32)edges.left == edges.fold) add_piece<N>(a, edges, sum, total);
    }
    finish<V, N>(a, item, column, sum, total);
  }
}

template <typename V, int N, bool OF, Factor>
__device__ __forceinline__ void dots(const SegmentArgs& a, u32 head) {
  typedef typename Wide<V>::type Sum;
  const int AHEAD = 4;
  const V* nothing = (const V*)&segment_nothing;
  Task t(a, 0, N);
  u32 each = a.width / a.heads, at = t.column;
  const V* x = (const V*)a.x + (u64)head * each;
  V zero;
  narrow(zero, (Sum)0);
  // Nothing else writes what padding has.
  u64 thread = (u64)blockIdx.x * SEGMENT_THREADS + threadIdx.x, threads = (u64)gridDim.x * SEGMENT_THREADS;
  for (u64 e = offset_at(a, a.indptr, a.rows) + thread; e < a.edges; e += threads)
    ((V*)a.dots)[e * a.heads + head] = zero;
  // All lanes of a warp go on while one has a row, so that they meet in the shuffles.
  for (u64 item = t.item; __any_sync(~0u, item < a.pieces + a.rows); item += t.stride) {
    RowEdges<AHEAD, OF> edges;
    edges.left = 0;
    Part part;
    bool on = item < a.pieces + a.rows && part.find(a, item);
    const V* y = (const V*)a.out + (on ? part.row : 0) * a.width + (u64)head * each;
    Values<V, N> mine;
    mine.load(nothing);
    if (on) {
      edges.begin(a, part);
      if (at < each) mine.load(y + at);
    }
    while (__any_sync(~0u, edges.left != 0)) {
      Values<V, N> value[AHEAD];
      Sum sum[AHEAD] = {};
      const V* from[AHEAD];
      if (edges.left) edges.take(a, false);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        from[c] = edges.left && edges.on[c] ? x + (u64)edges.row[c] * a.width : nullptr;
        value[c].load(from[c] && at < each ? from[c] + at : nothing);
      }
      edges.ask(a);
#pragma unroll
      for (int c = 0; c < AHEAD; c++)
#pragma unroll
        for (int j = 0; j < N; j++) sum[c] += value[c][j] * mine[j];
      // What is behind 32 vectors: there all lanes have one row.
      for (u32 column = at + 32 * N; column < each; column += 32 * N) {
        Values<V, N> other;
        other.load(y + column);
#pragma unroll
        for (int c = 0; c < AHEAD; c++) value[c].load(from[c] ? from[c] + column : nothing);
#pragma unroll
        for (int c = 0; c < AHEAD; c++)
#pragma unroll
          for (int j = 0; j < N; j++) sum[c] += value[c][j] * other[j];
      }
      for (u32 d = (1u << a.group) / 2; d; d /= 2)
#pragma unroll
        for (int c = 0; c < AHEAD; c++) sum[c] += __shfl_xor_sync(~0u, sum[c], d);
      if (at == 0) {
#pragma unroll
        for (int c = 0; c < AHEAD; c++)
          if ((u64)c < edges.left) narrow(((V*)a.dots)[(edges.place + c) * a.heads + head], sum[c]);
      }
      edges.advance(a);
    }
  }
}

// A kernel of a function, by the vectors that FLOATS knows. OF and FACTOR are the function's; blocks say how many
// of them a multiprocessor has registers for.
#define SEGMENT_KERNEL(name, blocks, function, OF, FACTOR)                                                           \
  extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS, blocks) name(const __grid_constant__ SegmentArgs a) { \
    FLOATS(function, OF, FACTOR)                                                                                     \
  }
#define SEGMENT_KERNELS(name)                                 \
  SEGMENT_KERNEL(name##_sum, 4, sums, false, NONE)            \
  SEGMENT_KERNEL(name##_weighted, 4, sums, false, WEIGHT)     \
  SEGMENT_KERNEL(name##_placed, 4, sums, false, PLACED)       \
  SEGMENT_KERNEL(name##_by_degree, 4, sums, false, DEGREE)    \
  SEGMENT_KERNEL(name##_sum_of, 4, sums, true, NONE)          \
  SEGMENT_KERNEL(name##_weighted_of, 4, sums, true, WEIGHT)   \
  SEGMENT_KERNEL(name##_max, 4, largest, false, NONE)         \
  SEGMENT_KERNEL(name##_max_of, 4, largest, true, NONE)       \
  SEGMENT_KERNEL(name##_taken, 4, taken, false, NONE)         \
  SEGMENT_KERNEL(name##_fold, 4, fold, false, NONE)           \
  SEGMENT_KERNEL(name##_fold_max, 4, fold_largest, false, NONE) \
  SEGMENT_KERNEL(name##_dots, 3, dots, false, NONE)           \
  SEGMENT_KERNEL(name##_dots_of, 3, dots, true, NONE)
