// The softmax of scores over the segments of a CSR, for each head by itself, and its gradient: edge e of a row has
// exp(x[e]) over the sum of that in the row.
//
// A warp takes a row, and 32 heads of it, which are row y of the grid. As many lanes as whole edges fill go through
// the scores of the row as they stand in memory, so that a lane stays with its head: with 4 heads, 8 edges a step.
// Lanes of a head meet once for the largest score and once for the sum. Rows are read three times, of which two are
// from the L1. Scores of 16 bits are added as float32.
//
// What is behind the last offset is padding, and becomes 0.
//
// Go caller: internal/engine/cuda/attention.go. Go twin: internal/engine/cpu/layers (attend.h).
#include "common/half.cuh"

// Mirrors softmaxArgs in internal/engine/cuda/attention.go; loading compares the sizes.
struct SoftmaxArgs {
  const void* indptr;  // [rows + 1], of id_bits
  const void* x;       // [edges][heads]: scores, or with grad what their softmax was
  const void* grad;    // [edges][heads]: its gradient; null: x are scores
  void* out;           // [edges][heads]
  u64 rows, edges;
  u32 heads, id_bits, float_bits, brain;
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
__device__ __forceinline__ void softmax(const SoftmaxArgs& a) {
  typedef typename Wide<V>::type S;
  u32 lane = threadIdx.x & 31, first = blockIdx.y * 32, heads = min(a.heads - first, 32u);
  u32 lanes = 32 / heads * heads, step = 32 / heads;
  u64 warp = ((u64)blockIdx.x * SEGMENT_THREADS + threadIdx.x) >> 5, warps = (u64)gridDim.x * (SEGMENT_THREADS / 32);
  u64 column = first + lane % heads;
  const V *x = (const V*)a.x + column, *grad = (const V*)a.grad + column;
  V* out = (V*)a.out + column;
  auto offset = [&](u64 row) { return a.id_bits == 64 ? __ldg((const u64*)a.indptr + row) : (u64)__ldg((const u32*)a.indptr + row); };
  for (u64 row = warp; row <= a.rows; row += warps) {
    bool padding = row == a.rows;
    u64 low = offset(row), high = padding ? a.edges : offset(row + 1);
    high = high < a.edges ? high : a.edges;
    // Lanes beside those that fill edges have none.
    low = lane < lanes ? low + lane / heads : high;
    if (padding) {
      for (u64 e = low; e < high; e += step) narrow(out[e * a.heads], (S)0);
    } else if (a.grad) {
      S dot = 0;
      for (u64 e = low; e < high; e += step) dot += wide(x[e * a.heads]) * wide(grad[e * a.heads]);
      dot = together(dot, heads, lanes, Sum());
      for (u64 e = low; e < high; e += step)
        narrow(out[e * a.heads], wide(x[e * a.heads]) * (wide(grad[e * a.heads]) - dot));
    } else {
      S most = never<S>(), total = 0;
      for (u64 e = low; e < high; e += step) most = Largest()(wide(x[e * a.heads]), most);
      most = together(most, heads, lanes, Largest());
      for (u64 e = low; e < high; e += step) total += exponential(wide(x[e * a.heads]) - most);
      total = together(total, heads, lanes, Sum());
      for (u64 e = low; e < high; e += step) narrow(out[e * a.heads], exponential(wide(x[e * a.heads]) - most) / total);
    }
  }
}

extern "C" __global__ void __launch_bounds__(SEGMENT_THREADS) softmax(const __grid_constant__ SoftmaxArgs a) {
  if (a.float_bits == 32) softmax<float>(a);
  else if (a.float_bits == 64) softmax<double>(a);
  else if (a.brain) softmax<Brain>(a);
  else softmax<Half>(a);
}
