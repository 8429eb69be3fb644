// The L-hop uniform sampler as a sequence of ordinary launches, hop by hop: bulk-synchronous, like
// the samplers of DGL and GraphBolt, and the baseline of the ablation. It is a strong baseline: four
// kernels per hop, as many blocks as there is work, one thread per edge, and the host reads two sizes
// per hop, fewer than in DGL.
//
// Kernels of a hop, in a stream:
//   count   one thread per row: reads the new rows, counts the edges of each; offsets within tiles of
//           rows
//           -> the host reads the number of edges of the hop, which determines the arrays' places
//   draw    one block per tile of rows: a thread per draw, then a thread per edge: gathers, claims
//           (fanouts above DIRECT, and whole rows: choose, one warp per row, then gather)
//   check   one thread per edge: a first occurrence if the map still holds its rank, else the node's
//           number or the edge that will have it; first occurrences are counted in tiles of edges
//           -> the host reads the number of nodes, while number runs
//   number  first occurrences get their numbers, in order; the others read their edge's
// The block of count or check that ends last adds up the tiles, so that prefix sums need no separate
// kernel. Seeds are claimed as if they were distinct; otherwise they are checked and numbered like a
// hop.
//
// Invariants: every array is written by one kernel and read by later ones, except the map, which draw
// and seeds only lower, check only reads and number only writes at first occurrences. ended
// and repeated are zero, and bad_seed is ~0, when no kernel runs.
//
// Go caller: internal/research/cuda/bsp.go. Go twin: internal/engine/cpu/neighbor.go and row_tiles.go.
#include "research/bsp.cuh"

template <typename I>
__device__ __forceinline__ Bsp<I> bsp(const BspArgs& a) {
  __shared__ BspShared s;
  return Bsp<I>{a, s};
}

#define KERNELS(step)                                                                                        \
  extern "C" __global__ void __launch_bounds__(BSP_THREADS) bsp_##step##32(const __grid_constant__ BspArgs a) { \
    bsp<int>(a).step();                                                                                      \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(BSP_THREADS) bsp_##step##64(const __grid_constant__ BspArgs a) { \
    bsp<long long>(a).step();                                                                                \
  }
KERNELS(seeds)
KERNELS(count)
KERNELS(draw)
KERNELS(choose)
KERNELS(gather)
KERNELS(check)
KERNELS(number)
