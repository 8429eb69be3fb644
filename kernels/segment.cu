// Reduces rows of x over the segments of a CSR: row r of the result is the sum, the mean or the largest of
// x[indices[e]] for e of [indptr[r], indptr[r + 1]). Layers of a graph network spend their time here.
//
// torch copies a row for each edge and reduces those, by atomics or by segment_reduce: an array of [edges, width]
// is written and read again. Here each row of x goes from memory into registers and is added there.
//
// The unit of work is a row of the result, or 32 vectors of it where it is wider: those are row y of the grid.
// 2^group lanes take it, of which each has N columns, and adds the edges in their order, every product and every
// sum rounded by itself. So the bits are the CPU's, and the same on every run. Columns never meet, nor do lanes.
//
// - What is on its way decides the speed. A lane loads the rows of AHEAD edges, then the ids of the AHEAD behind
//   them, and only then adds.
// - Lanes without an edge read zeros that the L1 has, as in gather.cu: of a load that only some do ptxas makes one
//   to another register and a move, which waits. A sum is never -0, since it begins at +0; so + 0 changes none.
// - A row is one group's work, however long. Sampled blocks have short ones; over their sources those of a hub are
//   longer, and the other groups go on meanwhile.
//
// An id that is no row of x is not read: the edge adds nothing, and its place is noted where that is asked for.
// Offsets beyond the edges are taken for the end, so wrong ones cost wrong sums and no fault.
//
// segment_taken is the gradient of the largest: over the edges by their sources, what the rows have whose largest
// a source was. segment_dots multiplies, for each edge, both of its rows; row y of the grid has head y, a group of
// lanes a row. It adds in the order of lanes and may fuse: the same bits on every run, but not the CPU's.
//
// AHEAD of 8 spilled registers; with 4, 64 of them hold all that is on its way.
//
// Go caller: internal/cuda/segment.go. Go twin: internal/segment (body.h).
#include "philox.cuh"

// Mirrors segmentArgs in internal/cuda/segment.go; loading compares the sizes.
struct SegmentArgs {
  const void* x;        // [sources][width]
  const void* indptr;   // [rows + 1], of id_bits, as all ids
  const void* indices;  // [edges]
  const void* weights;  // [edges][heads]; null: all are 1
  void* out;            // [rows][width]; dots read it
  void* best;           // [rows][width], written; may be null. segment_taken reads it: [sources][width]
  void* dots;           // [edges][heads]
  u64* bad;             // becomes at most the place of an id outside of [0, sources); may be null
  u64 sources, rows, edges;
  u32 width, heads;
  u32 mean;        // whether sums are divided by the number of edges
  u32 id_bits;     // 32 or 64
  u32 float_bits;  // 32 or 64
  u32 vector;      // N: divides the width, or a head's, and so wide are addresses aligned; 16 bytes at most
  u32 group;       // 2^group lanes take a row; 5 where its part has more than 16 vectors
};

// What is read where there is nothing to read.
__device__ const uint4 segment_nothing = {0, 0, 0, 0};

__device__ __forceinline__ void load(const float* p, float (&v)[1]) { v[0] = __ldg(p); }
__device__ __forceinline__ void load(const double* p, double (&v)[1]) { v[0] = __ldg(p); }
__device__ __forceinline__ void load(const double* p, double (&v)[2]) {
  double2 all = __ldg((const double2*)p);
  v[0] = all.x, v[1] = all.y;
}
__device__ __forceinline__ void load(const float* p, float (&v)[4]) {
  float4 all = __ldg((const float4*)p);
  v[0] = all.x, v[1] = all.y, v[2] = all.z, v[3] = all.w;
}

__device__ __forceinline__ void store(float* p, const float (&v)[1]) { *p = v[0]; }
__device__ __forceinline__ void store(double* p, const double (&v)[1]) { *p = v[0]; }
__device__ __forceinline__ void store(double* p, const double (&v)[2]) { *(double2*)p = make_double2(v[0], v[1]); }
__device__ __forceinline__ void store(float* p, const float (&v)[4]) {
  *(float4*)p = make_float4(v[0], v[1], v[2], v[3]);
}

__device__ __forceinline__ float plus(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float over(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ double over(double a, double b) { return __ddiv_rn(a, b); }

// Edges of a row, AHEAD at a time, with the ids of the next ones on their way.
template <typename I, int AHEAD>
struct RowEdges {
  const I* ids;  // of the first that is left
  u64 left;
  u64 place;   // of the first that is left, among all edges
  u64 degree;  // as indptr says
  I next[AHEAD];
  u64 source[AHEAD];
  bool on[AHEAD];  // whether there is an edge and its source is a row

  __device__ __forceinline__ void begin(const SegmentArgs& a, u64 row) {
    const I* indptr = (const I*)a.indptr;
    u64 low = (u64)(long long)__ldg(indptr + row), high = (u64)(long long)__ldg(indptr + row + 1);
    degree = high - low;
    high = high < a.edges ? high : a.edges;
    place = low;
    left = low < high ? high - low : 0;
    ids = (const I*)a.indices + low;
    if (left) fetch(0, few());
  }

  // How many are left, as far as anybody asks.
  __device__ __forceinline__ u32 few() const { return left < 2 * AHEAD ? (u32)left : 2 * AHEAD; }

  // Loads the ids from one on; of edges that there are none of, the last one's, so that no lane skips a load.
  __device__ __forceinline__ void fetch(u32 first, u32 n) {
#pragma unroll
    for (int c = 0; c < AHEAD; c++) next[c] = __ldg(ids + (first + c < n ? first + c : n - 1));
  }

  // Decides whose rows are read; note says whether this lane is the one to report ids that are none.
  __device__ __forceinline__ void take(const SegmentArgs& a, bool note) {
    u32 n = few();
#pragma unroll
    for (int c = 0; c < AHEAD; c++) {
      source[c] = (u64)(long long)next[c];
      bool is_row = source[c] < a.sources;
      on[c] = (u32)c < n && is_row;
      if (note && (u32)c < n && !is_row && a.bad) atomicMin(a.bad, place + c);
    }
  }

  // Asks for the ids of the next ones, once the rows of these have been asked for.
  __device__ __forceinline__ void ask() {
    u32 n = few();
    if (n) fetch(AHEAD, n);
  }

  __device__ __forceinline__ void advance() {
    u64 step = left < AHEAD ? left : AHEAD;
    left -= step, place += step, ids += step;
  }
};

// The rows of a group of lanes, and which columns of them are this lane's.
struct Task {
  u64 row, stride;
  u32 column;

  __device__ __forceinline__ Task(const SegmentArgs& a, u32 part, u32 n) {
    row = ((u64)blockIdx.x * SEGMENT_THREADS + threadIdx.x) >> a.group;
    stride = ((u64)gridDim.x * SEGMENT_THREADS) >> a.group;
    column = (part * 32 + (threadIdx.x & ((1u << a.group) - 1))) * n;
  }
};

template <typename I, typename V, int N, bool WEIGHTED>
__device__ __forceinline__ void sums(const SegmentArgs& a, u32 part) {
  const int AHEAD = 4;
  const V* nothing = (const V*)&segment_nothing;
  Task t(a, part, N);
  if (t.column >= a.width) return;
  u32 column = t.column;
  for (u64 row = t.row; row < a.rows; row += t.stride) {
    const V* x = (const V*)a.x + column;
    const V* weights = nullptr;
    if (WEIGHTED) weights = (const V*)a.weights + column / (a.width / a.heads);
    RowEdges<I, AHEAD> edges;
    edges.begin(a, row);
    V sum[N] = {};
    while (edges.left) {
      V value[AHEAD][N], weight[AHEAD];
      edges.take(a, column == 0);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        load(edges.on[c] ? x + edges.source[c] * a.width : nothing, value[c]);
        if (WEIGHTED) weight[c] = __ldg(edges.on[c] ? weights + (edges.place + c) * a.heads : nothing);
      }
      edges.ask();
#pragma unroll
      for (int c = 0; c < AHEAD; c++)
#pragma unroll
        for (int j = 0; j < N; j++) sum[j] = plus(sum[j], WEIGHTED ? times(weight[c], value[c][j]) : value[c][j]);
      edges.advance();
    }
    if (a.mean && edges.degree) {
#pragma unroll
      for (int j = 0; j < N; j++) sum[j] = over(sum[j], (V)(long long)edges.degree);
    }
    store((V*)a.out + row * a.width + column, sum);
  }
}

template <typename I, typename V, int N>
__device__ __forceinline__ void largest(const SegmentArgs& a, u32 part) {
  const int AHEAD = 4;
  const V* nothing = (const V*)&segment_nothing;
  Task t(a, part, N);
  if (t.column >= a.width) return;
  u32 column = t.column;
  for (u64 row = t.row; row < a.rows; row += t.stride) {
    const V* x = (const V*)a.x + column;
    RowEdges<I, AHEAD> edges;
    edges.begin(a, row);
    V most[N] = {};
    I best[N];
#pragma unroll
    for (int j = 0; j < N; j++) best[j] = -1;
    while (edges.left) {
      V value[AHEAD][N];
      edges.take(a, column == 0);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) load(edges.on[c] ? x + edges.source[c] * a.width : nothing, value[c]);
      edges.ask();
#pragma unroll
      for (int c = 0; c < AHEAD; c++)
#pragma unroll
        for (int j = 0; j < N; j++) {
          V v = value[c][j];
          // A NaN wins, and the first of equals.
          bool wins = edges.on[c] && (best[j] < 0 || v > most[j] || (v != v && most[j] == most[j]));
          most[j] = wins ? v : most[j];
          best[j] = wins ? (I)edges.source[c] : best[j];
        }
      edges.advance();
    }
    u64 at = row * a.width + column;
    store((V*)a.out + at, most);
    if (a.best) {
#pragma unroll
      for (int j = 0; j < N; j++) ((I*)a.best)[at + j] = best[j];
    }
  }
}

// Rows here are sources of the CSR that was reduced, and sources its rows: x are their gradients. Edges of one
// source that lead to one row stand side by side, and the first of them has all of it.
template <typename I, typename V, int N>
__device__ __forceinline__ void taken(const SegmentArgs& a, u32 part) {
  const int AHEAD = 2;
  const V* nothing = (const V*)&segment_nothing;
  Task t(a, part, N);
  if (t.column >= a.width) return;
  u32 column = t.column;
  for (u64 row = t.row; row < a.rows; row += t.stride) {
    const V* x = (const V*)a.x + column;
    const I* best = (const I*)a.best + column;
    RowEdges<I, AHEAD> edges;
    edges.begin(a, row);
    V sum[N] = {};
    u64 before = ~0ull;
    while (edges.left) {
      V value[AHEAD][N];
      I winner[AHEAD][N];
      edges.take(a, column == 0);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        u64 at = edges.source[c] * a.width;
        load(edges.on[c] ? x + at : nothing, value[c]);
#pragma unroll
        for (int j = 0; j < N; j++) winner[c][j] = __ldg(edges.on[c] ? best + at + j : (const I*)&segment_nothing);
      }
      edges.ask();
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        bool counts = edges.on[c] && edges.source[c] != before;
        before = edges.source[c];
#pragma unroll
        for (int j = 0; j < N; j++) sum[j] = plus(sum[j], counts && winner[c][j] == (I)row ? value[c][j] : (V)0);
      }
      edges.advance();
    }
    store((V*)a.out + row * a.width + column, sum);
  }
}

template <typename I, typename V, int N>
__device__ __forceinline__ void dots(const SegmentArgs& a, u32 head) {
  const int AHEAD = 4;
  const V* nothing = (const V*)&segment_nothing;
  Task t(a, 0, N);
  u32 each = a.width / a.heads, at = t.column;
  const V* x = (const V*)a.x + (u64)head * each;
  // All lanes of a warp go on while one has a row, so that they meet in the shuffles.
  for (u64 row = t.row; __any_sync(~0u, row < a.rows); row += t.stride) {
    RowEdges<I, AHEAD> edges;
    edges.left = 0;
    const V* y = (const V*)a.out + row * a.width + (u64)head * each;
    V mine[N] = {};
    if (row < a.rows) {
      edges.begin(a, row);
      if (at < each) load(y + at, mine);
    }
    while (__any_sync(~0u, edges.left != 0)) {
      V value[AHEAD][N], sum[AHEAD] = {};
      const V* from[AHEAD];
      if (edges.left) edges.take(a, false);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        from[c] = edges.left && edges.on[c] ? x + edges.source[c] * a.width : nullptr;
        load(from[c] && at < each ? from[c] + at : nothing, value[c]);
      }
      edges.ask();
#pragma unroll
      for (int c = 0; c < AHEAD; c++)
#pragma unroll
        for (int j = 0; j < N; j++) sum[c] += value[c][j] * mine[j];
      // What is behind 32 vectors: there all lanes have one row.
      for (u32 column = at + 32 * N; column < each; column += 32 * N) {
        V other[N];
        load(y + column, other);
#pragma unroll
        for (int c = 0; c < AHEAD; c++) load(from[c] ? from[c] + column : nothing, value[c]);
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
          if ((u64)c < edges.left) ((V*)a.dots)[(edges.place + c) * a.heads + head] = sum[c];
      }
      edges.advance();
    }
  }
}

template <typename I, typename V, int N>
__device__ __forceinline__ void either(const SegmentArgs& a, u32 part) {
  if (a.weights) sums<I, V, N, true>(a, part);
  else sums<I, V, N, false>(a, part);
}

// The function for the widths of a, for one part of each row.
#define OF_FLOATS(function, I)                                   \
  if (a.float_bits == 32) {                                      \
    if (a.vector == 4) function<I, float, 4>(a, part);           \
    else function<I, float, 1>(a, part);                         \
  } else if (a.vector == 2) function<I, double, 2>(a, part);     \
  else function<I, double, 1>(a, part);
#define OF_WIDTHS(function)                                      \
  u32 part = blockIdx.y;                                         \
  if (a.id_bits == 32) {                                         \
    OF_FLOATS(function, int)                                     \
  } else {                                                       \
    OF_FLOATS(function, long long)                               \
  }

extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS, 4) segment_sum(const __grid_constant__ SegmentArgs a) {
  OF_WIDTHS(either)
}
extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS, 4) segment_max(const __grid_constant__ SegmentArgs a) {
  OF_WIDTHS(largest)
}
extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS, 4) segment_taken(const __grid_constant__ SegmentArgs a) {
  OF_WIDTHS(taken)
}
extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS, 3) segment_dots(const __grid_constant__ SegmentArgs a) {
  OF_WIDTHS(dots)
}
