// Attention over the segments of a CSR, as in graph attention networks: an edge from u to row v has
// the score leaky_relu(source[u] + target[v] + edge) of each head, the softmax of a row's scores are
// its edges' weights, and the row is the sum of x[u] times the weights.
//
// Source: P. Velickovic et al., "Graph Attention Networks", ICLR 2018.
//
// With torch's operations each of these is an array over the edges, one of which is as wide as x.
// Here forward is one launch: a group of lanes processes a row, as in segment.cuh, and holds the
// largest score so far, the sum of exponentials, and the weighted sum of rows (an online softmax); a
// larger score rescales both sums. Four edges are processed at a time, with a fifth exponential for
// each four. In addition to the rows it writes only the logarithm of each row's sum, from which
// backward computes an edge's weight by one exponential.
//
// attend_back assigns a row of the CSR and a head to a group of lanes, like dots in segment.cuh: the
// gradient of a weight is the dot product of the row's gradient and x[u]. Once a row has the
// gradients of all of its edges (which wait in pre), it computes their weighted mean, and with it
// the gradient of each score; their sum is the gradient of target. It also writes the weights. The
// rest are reductions by source, of gradients times weights and of the scores' gradients, by
// segment.cuh. No step uses atomics: the bits are the same on every run, but not those of the CPU,
// whose exponential differs.
//
// SHARED: x has a single head, [sources][width / heads], which all heads sum. Then an item is a row
// and a head, and the head varies fastest: the warps of a block that process a row's heads read the
// same rows of x at about the same time, from memory once and then from the L1. A row of the grid
// is a part of a head.
//
// x, out and the weights are values of any width; scores and their gradients have the type of the
// sums. Each part of a score may be missing; scores that are computed before are the edge part only,
// with a slope of 1.
//
// Kernels: attention.cu, attention_half.cu. Go caller: internal/engine/cuda/attention.go. C twin:
// internal/engine/cpu/layers (attend.h).
#pragma once
#include "layers/edge_scores.cuh"

// Mirrors attendArgs in internal/engine/cuda/attention.go; loading compares the sizes.
struct AttentionArgs {
  SegmentArgs of;       // x by heads, or shared by them; room has 2 values a head behind the rows, and nothing else for attend_back; out is written, or in attend_back the gradient, which is read
  const void* source;   // [sources][heads]; null, as target and edge: 0
  const void* target;   // [rows][heads]
  const void* edge;     // [edges][heads]
  void* log;            // [rows][heads]: of the sum of exponentials; undefined without edges
  void* alpha;          // [edges][heads]: written by attend_back, as pre and to_target
  void* pre;            // [edges][heads]: the gradients of the scores before leaky_relu; 0 for padding where there is an edge
  void* to_target;      // [rows][heads]
  double slope;         // of what is below 0
};

template <typename V, int N, typename Sum>
__device__ __forceinline__ void attended(const AttentionArgs& b, u64 row, u32 column, const Sum* sum, Sum most, Sum total) {
  const SegmentArgs& a = b.of;
  u32 each = a.width / a.heads;
  Values<V, N> made;
#pragma unroll
  for (int j = 0; j < N; j++) made.set(j, total == 0 ? (Sum)0 : sum[j] / total);
  made.store((V*)a.out + row * a.width + column);
  if (b.log && column % each == 0) ((Sum*)b.log)[row * a.heads + column / each] = most + logarithm(total);
}

template <typename V, int N, bool SHARED>
__device__ __forceinline__ void attend(const AttentionArgs& b) {
  typedef typename Wide<V>::type Sum;
  const int AHEAD = 4;
  const SegmentArgs& a = b.of;
  const V* nothing = (const V*)&segment_nothing;
  const Sum* none = (const Sum*)&segment_nothing;
  Task t(a, blockIdx.y, N);
  if (t.column >= (SHARED ? a.width / a.heads : a.width)) return;
  u32 column = t.column, each = a.width / a.heads, head = column / each, row_width = SHARED ? each : a.width;
  const Sum slope = (Sum)b.slope;
  const V* x = (const V*)a.x + column;
  for (u64 i = t.item; i < (a.pieces + a.rows) * (SHARED ? a.heads : 1); i += t.stride) {
    u64 item = SHARED ? i / a.heads : i;
    if (SHARED) head = (u32)(i % a.heads), column = head * each + t.column;
    Part part;
    if (!part.find(a, item)) continue;
    const Sum *source = (const Sum*)b.source + head, *edge = (const Sum*)b.edge + head;
    Sum target = b.target ? __ldg((const Sum*)b.target + part.row * a.heads + head) : (Sum)0;
    RowEdges<AHEAD, false> edges;
    edges.begin(a, part);
    Sum most = never<Sum>(), total = 0, sum[N] = {};
    while (edges.left) {
      Values<V, N> value[AHEAD];
      Sum score[AHEAD];
      edges.take(a, column == 0);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        score[c] = __ldg(edges.on[c] && b.source ? source + (u64)edges.source[c] * a.heads : none);
        if (b.edge) score[c] += __ldg(edges.on[c] ? edge + (edges.place + c) * a.heads : none);
        value[c].load(edges.on[c] ? x + (u64)edges.row[c] * row_width : nothing);
      }
      edges.ask(a);
      Sum before = most;
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        score[c] = edges.on[c] ? leaky(score[c] + target, slope) : never<Sum>();
        most = score[c] > most ? score[c] : most;
      }
      // Before the first score nothing is to be scaled; of scores that are all -infinity the weights are NaN.
      Sum scale = before == most ? (Sum)1 : exponential(before - most);
      total *= scale;
#pragma unroll
      for (int j = 0; j < N; j++) sum[j] *= scale;
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        Sum weight = edges.on[c] ? exponential(score[c] - most) : (Sum)0;
        total += weight;
#pragma unroll
        for (int j = 0; j < N; j++) sum[j] += weight * value[c][j];
      }
      edges.advance(a);
    }
    if (item < a.pieces) {
#pragma unroll
      for (int j = 0; j < N; j++) ((Sum*)a.room)[item * a.width + column + j] = sum[j];
      Sum* known = (Sum*)a.room + a.pieces * a.width + (item * a.heads + head) * 2;
      if (column % each == 0) known[0] = most, known[1] = total;
      continue;
    }
    attended<V, N>(b, item - a.pieces, column, sum, most, total);
  }
}

// Finishes the long rows of attend: the sums of their pieces are scaled to the largest score of all, and added.
template <typename V, int N, bool>
__device__ __forceinline__ void fold_attended(const AttentionArgs& b) {
  typedef typename Wide<V>::type Sum;
  const SegmentArgs& a = b.of;
  Task t(a, blockIdx.y, N);
  if (t.column >= a.width) return;
  u32 head = t.column / (a.width / a.heads);
  for (u64 item = t.item; item < a.pieces; item += t.stride) {
    Part part;
    if (!part.find(a, item) || part.low != part.first) continue;
    u64 last = item + part.many(a);
    const Sum* known = (const Sum*)a.room + a.pieces * a.width + head * 2;
    Sum most = never<Sum>(), total = 0, sum[N] = {};
    for (u64 i = item; i < last; i++) most = known[i * a.heads * 2] > most ? known[i * a.heads * 2] : most;
    for (u64 i = item; i < last; i++) {
      Sum from = known[i * a.heads * 2], scale = from == most ? (Sum)1 : exponential(from - most);
      total += scale * known[i * a.heads * 2 + 1];
#pragma unroll
      for (int j = 0; j < N; j++) sum[j] += scale * ((const Sum*)a.room)[i * a.width + t.column + j];
    }
    attended<V, N>(b, part.row, t.column, sum, most, total);
  }
}

// Makes gradients of scores of what pre has, where mean is that of the row, and returns their sum. Scores are made
// again, one a lane: the row's are in the L1.
template <typename Sum>
__device__ __forceinline__ Sum score_gradients(const AttentionArgs& b, u64 first, u64 last, u32 head, u32 lane, u32 lanes, Sum target, Sum log, Sum mean) {
  const SegmentArgs& a = b.of;
  const Sum *source = (const Sum*)b.source + head, *edge = (const Sum*)b.edge + head, *none = (const Sum*)&segment_nothing;
  Sum all = 0, slope = (Sum)b.slope;
  for (u64 e = first + lane; e < last; e += lanes) {
    u32 u = *id_at(a, a.indices, e);
    bool on = u < a.sources;
    Sum score = __ldg(on && b.source ? source + (u64)u * a.heads : none);
    if (b.edge) score += __ldg(on ? edge + e * a.heads : none);
    score = on ? score + target : (Sum)0;
    Sum weight = on ? exponential(leaky(score, slope) - log) : (Sum)0;
    Sum* to = (Sum*)b.pre + e * a.heads + head;
    Sum pre = (*to - weight * mean) * (score > 0 ? (Sum)1 : slope);
    *to = pre;
    all += pre;
  }
  for (u32 d = lanes / 2; d; d /= 2) all += __shfl_xor_sync(~0u, all, d);
  return all;
}

template <typename V, int N, bool SHARED>
__device__ __forceinline__ void attend_back(const AttentionArgs& b) {
  typedef typename Wide<V>::type Sum;
  const int AHEAD = 4;
  const SegmentArgs& a = b.of;
  const V* nothing = (const V*)&segment_nothing;
  const Sum* none = (const Sum*)&segment_nothing;
  Task t(a, 0, N);
  u32 head = blockIdx.y, each = a.width / a.heads, at = t.column, lanes = 1u << a.group, lane = threadIdx.x & (lanes - 1);
  u32 row_width = SHARED ? each : a.width;
  const V* x = (const V*)a.x + (SHARED ? 0 : (u64)head * each);
  // With SHARED the head is added to indices, since these are uniform registers then.
  const Sum *source = (const Sum*)b.source + (SHARED ? 0 : head), *edge = (const Sum*)b.edge + (SHARED ? 0 : head);
  const Sum slope = (Sum)b.slope;
  if (b.edge) {
    // Nothing else writes what padding has.
    u64 thread = (u64)blockIdx.x * SEGMENT_THREADS + threadIdx.x, threads = (u64)gridDim.x * SEGMENT_THREADS;
    const u64 many = SHARED ? a.heads : 1;
    for (u64 e = offset_at(a, a.indptr, a.rows) * many + thread; e < a.edges * many; e += threads)
      ((Sum*)b.pre)[SHARED ? e : e * a.heads + head] = 0;
  }
  // All lanes of a warp go on while one has a row, so that they meet in the shuffles.
  const u64 pieces = SHARED ? a.pieces * a.heads : a.pieces, items = pieces + (SHARED ? a.rows * a.heads : a.rows);
  for (u64 item = t.item; __any_sync(~0u, item < items); item += t.stride) {
    RowEdges<AHEAD, false> edges;
    edges.left = 0;
    Part part;
    if (SHARED) head = (u32)(item % a.heads);
    bool is = item < items && part.find(a, SHARED ? item / a.heads : item);
    u64 row = is ? part.row : 0;
    const V* y = (const V*)a.out + row * a.width + (u64)head * each;
    Values<V, N> mine;
    mine.load(nothing);
    Sum target = 0, log = 0, mean = 0;
    if (is) {
      edges.begin(a, part);
      if (b.target) target = __ldg((const Sum*)b.target + row * a.heads + head);
      log = __ldg((const Sum*)b.log + row * a.heads + head);
      if (at < each) mine.load(y + at);
    }
    u64 first = edges.left ? edges.place : 0, last = first + edges.left;
    const u32 more = SHARED ? head : 0;
    while (__any_sync(~0u, edges.left != 0)) {
      Values<V, N> value[AHEAD];
      Sum sum[AHEAD] = {}, score[AHEAD];
      const V* from[AHEAD];
      if (edges.left) edges.take(a, false);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        bool on = edges.left && edges.on[c];
        from[c] = on ? x + (u64)edges.row[c] * row_width : nullptr;
        score[c] = __ldg(on && b.source ? source + (u64)edges.source[c] * a.heads + more : none);
        if (b.edge) score[c] += __ldg(on ? edge + (edges.place + c) * a.heads + more : none);
        value[c].load(on && at < each ? from[c] + at : nothing);
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
      for (u32 d = lanes / 2; d; d /= 2)
#pragma unroll
        for (int c = 0; c < AHEAD; c++) sum[c] += __shfl_xor_sync(~0u, sum[c], d);
#pragma unroll
      for (int c = 0; c < AHEAD; c++) {
        Sum weight = from[c] ? exponential(leaky(score[c] + target, slope) - log) : (Sum)0;
        mean += weight * sum[c];
        if (lane == 0 && (u64)c < edges.left) {
          u64 place = (edges.place + c) * a.heads + head;
          narrow(((V*)b.alpha)[place], weight);
          ((Sum*)b.pre)[place] = weight * sum[c];
        }
      }
      edges.advance(a);
    }
    __syncwarp();
    if (item < pieces) {
      if (is && lane == 0) ((Sum*)a.room)[SHARED ? item : item * a.heads + head] = mean;
      last = first;
    }
    Sum all = score_gradients(b, first, last, head, lane, lanes, target, log, mean);
    if (is && item >= pieces && lane == 0 && b.to_target) ((Sum*)b.to_target)[row * a.heads + head] = all;
    __syncwarp();
  }
}

// The gradients of scores of the pieces of long rows, whose means attend_back has left in room. Their sums wait behind
// those for segment_fold.
template <typename V, int N, bool>
__device__ __forceinline__ void attend_back_pieces(const AttentionArgs& b) {
  typedef typename Wide<V>::type Sum;
  const SegmentArgs& a = b.of;
  u32 head = blockIdx.y, lane = threadIdx.x & 31;
  for (u64 item = ((u64)blockIdx.x * SEGMENT_THREADS + threadIdx.x) >> 5; item < a.pieces; item += (u64)gridDim.x * (SEGMENT_THREADS / 32)) {
    Part part;
    if (!part.find(a, item)) continue;
    Sum target = b.target ? ((const Sum*)b.target)[part.row * a.heads + head] : (Sum)0, mean = 0;
    u64 from = part.first_item(a), last = from + part.many(a);
    for (u64 i = from; i < last; i++) mean += ((const Sum*)a.room)[i * a.heads + head];
    Sum log = ((const Sum*)b.log)[part.row * a.heads + head];
    Sum all = score_gradients(b, part.low, part.high, head, lane, 32u, target, log, mean);
    if (lane == 0) ((Sum*)a.room)[(a.pieces + item) * a.heads + head] = all;
  }
}

// The kernels of a file, by the vectors that FLOATS knows. SHARED is the function's, where it has a use for it.
#define ATTENTION_KERNEL(Args, name, blocks, function, SHARED)                                                \
  extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS, blocks) name(const __grid_constant__ Args b) { \
    const SegmentArgs& a = b.of;                                                                              \
    FLOATS(function, SHARED)                                                                                  \
  }
#define ATTENTION_KERNELS(name)                                                   \
  ATTENTION_KERNEL(AttentionArgs, name##_forward, 4, attend, false)               \
  ATTENTION_KERNEL(AttentionArgs, name##_forward_shared, 4, attend, true)         \
  ATTENTION_KERNEL(AttentionArgs, name##_backward, 3, attend_back, false)         \
  ATTENTION_KERNEL(AttentionArgs, name##_backward_shared, 3, attend_back, true)   \
  ATTENTION_KERNEL(AttentionArgs, name##_fold, 3, fold_attended, false)           \
  ATTENTION_KERNEL(AttentionArgs, name##_pieces, 3, attend_back_pieces, false)    \
  ATTENTION_KERNEL(EdgeScoresArgs, name##_scores, 3, edge_scores, false)          \
  ATTENTION_KERNEL(EdgeScoresArgs, name##_scores_back, 3, edge_scores_back, false)
