// The softmax of edge scores over the segments of a CSR, for each head separately, and its gradient:
// edge e of a row gets exp(x[e]) over the sum of the exponentials of the row.
//
// A warp processes a row, and 32 heads of it, which are row y of the grid. A step reads as many
// whole edges as the lanes hold, in memory order, so that a lane always has the same head: with 4
// heads, 8 edges per step. Lanes of a head exchange values once for the largest score and
// once for the sum. Rows are read three times, twice of these from the L1. Scores of 16 bits are
// added as float32.
//
// Scores after the last offset are padding, and become 0.
//
// Long rows are split into pieces, as in segment.cuh: softmax writes the largest score and the sum
// of each piece, or its part of the gradient's sum, to room, and softmax_pieces does the rest.
//
// Go caller: internal/engine/cuda/attention.go. C twin: internal/engine/cpu/layers (attend.h).
#include "layers/segment.cuh"

// Mirrors softmaxArgs in internal/engine/cuda/attention.go; loading compares the sizes.
struct SoftmaxArgs {
  SegmentArgs of;    // x: [edges][width] scores, or with grad their softmax; out likewise; room [pieces][width][2]
  const void* grad;  // [edges][width]: the gradient of x; null: x are scores
};

struct Sum {
  template <typename S> __device__ __forceinline__ S operator()(S a, S b) const { return a + b; }
};
struct Largest {
  template <typename S> __device__ __forceinline__ S operator()(S a, S b) const { return a > b ? a : b; }
};

// What the lanes of a head have together: lanes, heads and 2 heads on, and so forth.
template <typename S, typename Op>
__device__ __forceinline__ S together(S mine, u32 heads, u32 lanes, Op op) {
  u32 lane = threadIdx.x & 31;
  for (u32 d = heads; d < lanes; d *= 2) {
    S other = __shfl_down_sync(~0u, mine, d);
    if (lane + d < lanes) mine = op(mine, other);
  }
  return __shfl_sync(~0u, mine, lane % heads);
}

template <typename V>
__device__ __forceinline__ void softmax(const SoftmaxArgs& b, bool of_pieces) {
  typedef typename Wide<V>::type S;
  const SegmentArgs& a = b.of;
  u32 lane = threadIdx.x & 31, start = blockIdx.y * 32, heads = min(a.width - start, 32u);
  u32 lanes = 32 / heads * heads, step = 32 / heads;
  u64 warp = ((u64)blockIdx.x * SEGMENT_THREADS + threadIdx.x) >> 5, warps = (u64)gridDim.x * (SEGMENT_THREADS / 32);
  u64 column = start + lane % heads;
  const V *x = (const V*)a.x + column, *grad = (const V*)b.grad + column;
  V* out = (V*)a.out + column;
  S* room = (S*)a.room + column * 2;
  u64 rows = of_pieces ? a.pieces : a.pieces + a.rows;
  for (u64 item = warp; item < rows + !of_pieces; item += warps) {
    Part part;
    bool padding = item == a.pieces + a.rows, piece = item < a.pieces;
    if (padding) part.low = offset_at(a, a.indptr, a.rows), part.high = a.edges;
    else if (!part.find(a, item)) continue;
    // Lanes beside those that fill edges have none.
    u64 low = lane < lanes ? part.low + lane / heads : part.high, high = part.high;
    S most = never<S>(), total = 0;
    if (of_pieces) {
      u64 from = part.first_item(a), last = from + part.many(a);
      if (!b.grad)
        for (u64 i = from; i < last; i++) most = Largest()(room[i * a.width * 2], most);
      for (u64 i = from; i < last; i++) {
        S own = room[i * a.width * 2], sum = room[i * a.width * 2 + 1];
        total += b.grad || own == most ? sum : sum * exponential(own - most);
      }
    } else if (padding) {
      for (u64 e = low; e < high; e += step) narrow(out[e * a.width], (S)0);
      continue;
    } else if (b.grad) {
      for (u64 e = low; e < high; e += step) total += wide(x[e * a.width]) * wide(grad[e * a.width]);
      total = together(total, heads, lanes, Sum());
    } else {
      for (u64 e = low; e < high; e += step) most = Largest()(wide(x[e * a.width]), most);
      most = together(most, heads, lanes, Largest());
      for (u64 e = low; e < high; e += step) total += exponential(wide(x[e * a.width]) - most);
      total = together(total, heads, lanes, Sum());
    }
    if (piece && !of_pieces) {
      if (lane < heads) room[item * a.width * 2] = most, room[item * a.width * 2 + 1] = total;
    } else if (b.grad) {
      for (u64 e = low; e < high; e += step)
        narrow(out[e * a.width], wide(x[e * a.width]) * (wide(grad[e * a.width]) - total));
    } else {
      for (u64 e = low; e < high; e += step) narrow(out[e * a.width], exponential(wide(x[e * a.width]) - most) / total);
    }
  }
}

#define SOFTMAX_KERNEL(name, of_pieces)                                                                     \
  extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS) name(const __grid_constant__ SoftmaxArgs a) { \
    if (a.of.float_bits == 32) softmax<float>(a, of_pieces);                                                \
    else if (a.of.float_bits == 64) softmax<double>(a, of_pieces);                                          \
    else if (a.of.brain) softmax<Brain>(a, of_pieces);                                                      \
    else softmax<Half>(a, of_pieces);                                                                       \
  }
SOFTMAX_KERNEL(softmax, false)
SOFTMAX_KERNEL(softmax_pieces, true)
