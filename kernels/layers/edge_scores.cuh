// Edge scores of GATv2: the score of head h of an edge from u to row v is the dot product of att[h]
// and leaky_relu(x[u] + own[v] + edge). attention.cuh computes their softmax.
//
// Source: S. Brody, U. Alon, E. Yahav, "How Attentive are Graph Attention Networks?", ICLR 2022.
//
// With torch's operations the sum is an array over the edges that is as wide as x; here it stays in
// registers.
//
// edge_scores assigns a row of the CSR and a head to a group of lanes, like dots in segment.cuh.
// edge_scores_back assigns the columns of a row to lanes, like sums there, and adds for each row the
// gradients of own[v] and of att over its edges; the caller adds the rows of the latter. The
// gradient of x is the same computation over the edges by their sources: x and own are exchanged,
// and places says which edge has which gradient. The pieces of a long row wait in room, and
// segment_fold adds them. No step uses atomics.
//
// Kernels: attention.cu, attention_half.cu. Go caller: internal/engine/cuda/edge_scores.go. C twin:
// internal/engine/cpu/layers (edge_scores.h).
#pragma once
#include "layers/segment.cuh"

// Mirrors edgeScoresArgs in internal/engine/cuda/edge_scores.go; loading compares the sizes.
struct EdgeScoresArgs {
  SegmentArgs of;    // x by heads; with to_own the gradients of scores are those of places
  const void* own;   // [rows][width]
  const void* att;   // [width], as scores and gradients of att what values are added as
  const void* edge;  // [edges][width]; may be null
  void* scores;      // [edges][heads]: written; with to_own their gradients, which are read
  void* to_own;      // [rows][width]: gradients of own; null: scores are asked for
  void* to_att;      // [rows][width]: what each row gives to att; may be null
  void* to_edge;     // [edges][width]: gradients of edge; may be null
  double slope;      // of what is below 0
};

template <typename S>
__device__ __forceinline__ S leaky(S x, S slope) { return x > 0 ? x : x * slope; }

template <typename V, int N, bool>
__device__ __forceinline__ void edge_scores(const EdgeScoresArgs& b) {
  typedef typename Wide<V>::type Sum;
  const int AHEAD = 4;
  const SegmentArgs& a = b.of;
  const V* nothing = (const V*)&segment_nothing;
  Task t(a, 0, N);
  u32 head = blockIdx.y, each = a.width / a.heads, at = t.column;
  const V *x = (const V*)a.x + (u64)head * each, *edge = (const V*)b.edge + (u64)head * each;
  const Sum *att = (const Sum*)b.att + (u64)head * each, slope = (Sum)b.slope;
  // Nothing else writes what padding has.
  u64 thread = (u64)blockIdx.x * SEGMENT_THREADS + threadIdx.x, threads = (u64)gridDim.x * SEGMENT_THREADS;
  for (u64 e = offset_at(a, a.indptr, a.rows) + thread; e < a.edges; e += threads) ((Sum*)b.scores)[e * a.heads + head] = 0;
  // All lanes of a warp go on while one has a row, so that they meet in the shuffles.
  for (u64 item = t.item; __any_sync(~0u, item < a.pieces + a.rows); item += t.stride) {
    RowEdges<AHEAD, false> edges;
    edges.left = 0;
    Part part;
    bool is = item < a.pieces + a.rows && part.find(a, item);
    if (is) edges.begin(a, part);
    const V* own = (const V*)b.own + (is ? part.row : 0) * a.width + (u64)head * each;
    while (__any_sync(~0u, edges.left != 0)) {
      Sum sum[AHEAD] = {};
      if (edges.left) edges.take(a, false);
      // The rows are read for each four edges again, of which the L1 has them.
      for (u32 column = at; column < each; column += 32 * N) {
        Values<V, N> value[AHEAD], more[AHEAD], mine;
        mine.load(edges.left ? own + column : nothing);
#pragma unroll
        for (int c = 0; c < AHEAD; c++) {
          bool on = edges.left && edges.on[c];
          value[c].load(on ? x + (u64)edges.row[c] * a.width + column : nothing);
          more[c].load(on && b.edge ? edge + (edges.place + c) * a.width + column : nothing);
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
          Sum factor = __ldg(att + column + j);
#pragma unroll
          for (int c = 0; c < AHEAD; c++) sum[c] += factor * leaky(value[c][j] + mine[j] + more[c][j], slope);
        }
      }
      edges.ask(a);
      for (u32 d = (1u << a.group) / 2; d; d /= 2)
#pragma unroll
        for (int c = 0; c < AHEAD; c++) sum[c] += __shfl_xor_sync(~0u, sum[c], d);
      if (at == 0) {
#pragma unroll
        for (int c = 0; c < AHEAD; c++)
          if ((u64)c < edges.left) ((Sum*)b.scores)[(edges.place + c) * a.heads + head] = sum[c];
      }
      edges.advance(a);
    }
  }
}

template <typename V, int N, bool>
__device__ __forceinline__ void edge_scores_back(const EdgeScoresArgs& b) {
  typedef typename Wide<V>::type Sum;
  const int AHEAD = 2;
  const SegmentArgs& a = b.of;
  const V* nothing = (const V*)&segment_nothing;
  Task t(a, blockIdx.y, N);
  if (t.column >= a.width) return;
  u32 column = t.column;
  const V *x = (const V*)a.x + column, *edge = (const V*)b.edge + column;
  const Sum *grad = (const Sum*)b.scores + column / (a.width / a.heads), slope = (Sum)b.slope;
  Values<V, N> none;
  none.load(nothing);
  if (b.to_edge) {
    // Nothing else writes what padding has.
    for (u64 e = offset_at(a, a.indptr, a.rows) + t.item; e < a.edges; e += t.stride) none.store((V*)b.to_edge + e * a.width + column);
  }
  Sum att[N];
#pragma unroll
  for (int j = 0; j < N; j++) att[j] = __ldg((const Sum*)b.att + column + j);
  for (u64 item = t.item; item < a.pieces + a.rows; item += t.stride) {
    Part part;
    if (!part.find(a, item)) continue;
    RowEdges<AHEAD, false> edges;
    edges.begin(a, part);
    Values<V, N> mine;
    mine.load((const V*)b.own + part.row * a.width + column);
    Sum sum[N] = {}, to_att[N] = {};
    while (edges.left) {
      Values<V, N> value[AHEAD], more[AHEAD];
      Sum g[AHEAD];
      edges.take(a, column == 0);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        u64 place = edges.place + c;
        if (a.places && edges.on[c]) place = *id_at(a, a.places, place);
        g[c] = __ldg(edges.on[c] ? grad + place * a.heads : (const Sum*)&segment_nothing);
        value[c].load(edges.on[c] ? x + (u64)edges.row[c] * a.width : nothing);
        more[c].load(edges.on[c] && b.edge ? edge + place * a.width : nothing);
      }
      edges.ask(a);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        Values<V, N> made;
#pragma unroll
        for (int j = 0; j < N; j++) {
          Sum z = value[c][j] + mine[j] + more[c][j], steep = z > 0 ? g[c] : g[c] * slope;
          sum[j] += steep;
          to_att[j] += steep * z;
          made.set(j, steep * att[j]);
        }
        if (b.to_edge && (u64)c < edges.left) made.store((V*)b.to_edge + (edges.place + c) * a.width + column);
      }
      edges.advance(a);
    }
    if (item < a.pieces) {
      Sum* to = (Sum*)a.room + item * a.width + column;
#pragma unroll
      for (int j = 0; j < N; j++) to[j] = sum[j] * att[j], to[a.pieces * a.width + j] = to_att[j];
      continue;
    }
    u64 to = part.row * a.width + column;
    Values<V, N> made;
#pragma unroll
    for (int j = 0; j < N; j++) made.set(j, sum[j] * att[j]);
    made.store((V*)b.to_own + to);
    if (b.to_att) {
#pragma unroll
      for (int j = 0; j < N; j++) ((Sum*)b.to_att)[to + j] = to_att[j];
    }
  }
}
