// Kernels for the walks of a seed, or of several roots, in addition to walk.cu.
//
//   visit_counts finds the nodes that the walks of a seed have visited most (PinSAGE): one block per
//                seed, after walk.cu in its stream. Visits are keys, the node above its position;
//                after a sort, the visits of a node are adjacent, and the first has the lowest
//                position. A second sort, by count and position, puts the top ones in front. Both
//                are bitonic sorts in shared memory, of all visits: there are few.
//   visit_roots  samples frontiers: one warp per walk. The degrees of its nodes are in shared memory
//                in chunks, whose sums the lanes hold, so that a step finds the edge of a rank by two
//                scans of the warp.
//
// Neither depends on the grid. walk.cu does not report if visit_counts follows, which reports for
// both.
//
// Sources: R. Ying et al., "Graph Convolutional Neural Networks for Web-Scale Recommender Systems",
// KDD 2018; B. Ribeiro, D. Towsley, "Estimating and Sampling Graphs with Multidimensional Random
// Walks", IMC 2010. Go caller: internal/engine/cuda/walk.go. Go twins: tally and frontier in
// internal/walk.
#include "walk/walk.cuh"

// ---- visits -----------------------------------------------------------------------------------

// Ascending; n is a power of two. All threads of the block.
__device__ void bitonic_sort(u64* keys, u32 n) {
  for (u32 k = 2; k <= n; k <<= 1) {
    for (u32 j = k >> 1; j; j >>= 1) {
      __syncthreads();
      for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        u32 other = i ^ j;
        if (other <= i) continue;
        u64 x = keys[i], y = keys[other];
        if ((x > y) == ((i & k) == 0)) keys[i] = y, keys[other] = x;
      }
    }
  }
  __syncthreads();
}

template <typename I>
__device__ __forceinline__ void visit_counts(const WalkArgs& a) {
  extern __shared__ u64 space[];
  const u64 NONE = ~0ull, PLACE = (1ull << VISIT_SHIFT) - 1;
  const u32 visits = a.length / a.every, n = visits * a.per_seed;
  u32 size = 2;
  while (size < n) size <<= 1;
  u64 *keys = space, *ranks = space + size;
  const I* nodes = (const I*)(a.out + a.nodes_at);
  I* top = (I*)(a.out + a.top_at);
  int* counts = (int*)(a.out + a.visits_at);
  const u64 seeds = a.walks / a.per_seed;
  for (u64 seed = blockIdx.x; seed < seeds; seed += gridDim.x) {
    auto at = [&](u32 place) { return (long long)nodes[(u64)(place % visits + 1) * a.every * a.walks + seed * a.per_seed + place / visits]; };
    for (u32 i = threadIdx.x; i < size; i += blockDim.x) {
      long long v = i < n ? at(i) : -1;
      keys[i] = v < 0 ? NONE : (u64)v << VISIT_SHIFT | i;
    }
    bitonic_sort(keys, size);
    for (u32 i = threadIdx.x; i < size; i += blockDim.x) {
      u64 key = keys[i];
      ranks[i] = NONE;
      if (key == NONE || (i && keys[i - 1] >> VISIT_SHIFT == key >> VISIT_SHIFT)) continue;
      // The first key beyond the vertex's.
      u32 lo = i + 1, hi = size;
      while (lo < hi) {
        u32 middle = (lo + hi) / 2;
        if (keys[middle] >> VISIT_SHIFT == key >> VISIT_SHIFT) lo = middle + 1;
        else hi = middle;
      }
      ranks[i] = (u64)(MOST_VISITS - (lo - i)) << VISIT_SHIFT | (key & PLACE);
    }
    bitonic_sort(ranks, size);
    for (u32 k = threadIdx.x; k < a.top; k += blockDim.x) {
      u64 rank = k < size ? ranks[k] : NONE;
      top[seed * a.top + k] = rank == NONE ? (I)-1 : (I)at((u32)(rank & PLACE));
      counts[seed * a.top + k] = rank == NONE ? 0 : (int)(MOST_VISITS - (rank >> VISIT_SHIFT));
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) walks_report(a);
}

extern "C" __global__ void __launch_bounds__(TALLY_THREADS) visit_counts32(const __grid_constant__ WalkArgs a) { visit_counts<int>(a); }
extern "C" __global__ void __launch_bounds__(TALLY_THREADS) visit_counts64(const __grid_constant__ WalkArgs a) { visit_counts<long long>(a); }

// ---- several roots ----------------------------------------------------------------------------

__device__ __forceinline__ u64 scanned(u64 x) {
  u32 lane = threadIdx.x & 31;
#pragma unroll
  for (u32 d = 1; d < 32; d <<= 1) {
    u64 y = __shfl_up_sync(~0u, x, d);
    if (lane >= d) x += y;
  }
  return x;
}

// The lane in whose part a rank falls, of parts that the lanes have; the rank becomes one in that part.
__device__ __forceinline__ u32 lane_of(u64 part, u64& rank) {
  u64 inclusive = scanned(part);
  u32 lane = __ffs(__ballot_sync(~0u, inclusive > rank)) - 1;
  rank -= __shfl_sync(~0u, inclusive - part, lane);
  return lane;
}

template <typename I>
__device__ __forceinline__ void visit_roots(const WalkArgs& a) {
  extern __shared__ u64 space[];
  I* at = (I*)space;
  u32 lane = threadIdx.x, chunks = (a.roots + ROOT_CHUNK - 1) / ROOT_CHUNK;
  u64* degrees = space + (chunks * ROOT_CHUNK * sizeof(I) + 7) / 8;
  const Steps<I, false, false> steps{a};
  I* nodes = (I*)(a.out + a.nodes_at);
  int* slots = (int*)(a.out + a.slots_at);
  const I* indices = (const I*)a.indices;
  for (u64 w = blockIdx.x; w < a.walks; w += gridDim.x) {
    u64 mine = 0;  // of the lane's chunk
    __syncwarp();
    for (u32 c = 0; c < chunks; c++) {
      u64 sum = 0;
      for (u32 i = c * ROOT_CHUNK + lane; i < (c + 1) * ROOT_CHUNK; i += 32) {
        u64 v = i < a.roots ? read(a.seeds, a.seed_bits, w * a.roots + i) : 0, degree = 0;
        if (i < a.roots && v >= a.num_nodes) atomicMin(a.bad_seed, w * a.roots + i), v = 0;
        else if (i < a.roots) degree = steps.row_of(v, 0).degree;
        at[i] = (I)v, degrees[i] = degree;
        sum += degree;
      }
      for (u32 d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
      if (lane == c) mine = sum;
    }
    __syncwarp();
    u64 total = mine;
    for (u32 d = 16; d; d >>= 1) total += __shfl_xor_sync(~0u, total, d);
    const u64 state = row_state(stream_of(a.key0, a.key1, 0, a.batch0, a.batch1, PURPOSE_WALKING), a.first_walk + w);
    if (lane == 0) nodes[w] = at[0];
    u32 step = 0;
    for (; step < a.length && total; step++) {
      u64 rank = below(draw_bits(state, step), total);
      u32 chunk = lane_of(mine, rank), first = chunk * ROOT_CHUNK + lane * (ROOT_CHUNK / 32);
      u64 part = 0;
      for (u32 i = 0; i < ROOT_CHUNK / 32; i++) part += degrees[first + i];
      u32 owner = lane_of(part, rank), slot = chunk * ROOT_CHUNK + owner * (ROOT_CHUNK / 32);
      while (rank >= degrees[slot]) rank -= degrees[slot++];
      u64 place = steps.row_of((u64)at[slot], 0).start + rank, v = (u64)indices[place];
      u64 before = degrees[slot], after = steps.row_of(v, 0).degree;
      __syncwarp();
      if (lane == 0) {
        at[slot] = (I)v, degrees[slot] = after;
        nodes[(u64)(step + 1) * a.walks + w] = (I)v;
        slots[(u64)step * a.walks + w] = (int)slot;
        if (a.edges_at) write(a.out + a.edges_at, a.out_edge_bits, (u64)step * a.walks + w, a.edge_id_bits ? read(a.edge_ids, a.edge_id_bits, place) : place);
      }
      if (lane == chunk) mine += after - before;
      total += after - before;
      __syncwarp();
    }
    if (lane == 0) ((int*)(a.out + a.lengths_at))[w] = (int)step;
    for (u32 s = step + lane; s < a.length; s += 32) {
      nodes[(u64)(s + 1) * a.walks + w] = (I)-1;
      slots[(u64)s * a.walks + w] = -1;
      if (a.edges_at) write(a.out + a.edges_at, a.out_edge_bits, (u64)s * a.walks + w, ~0ull);
    }
  }
  __syncwarp();
  if (lane == 0) walks_report(a);
}

extern "C" __global__ void __launch_bounds__(32) visit_roots32(const __grid_constant__ WalkArgs a) { visit_roots<int>(a); }
extern "C" __global__ void __launch_bounds__(32) visit_roots64(const __grid_constant__ WalkArgs a) { visit_roots<long long>(a); }
