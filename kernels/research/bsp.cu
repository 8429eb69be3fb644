// The L-hop uniform sampler as a sequence of ordinary launches, hop by hop: bulk-synchronous, as DGL's
// and GraphBolt's samplers are, and the baseline of the ablation. It is meant to be a good one: four
// kernels a hop, as many blocks as there is work, a thread an edge, and the host reads two sizes a hop
// where DGL reads more.
//
// Kernels of a hop, in a stream:
//   count   a thread a row: reads the new rows, counts what each gives; offsets within tiles of rows
//           -> the host reads how many edges the hop has: the places of its arrays depend on it
//   draw    a tile of rows a block: a thread a draw, then a thread an edge: gathers, claims
//           (fanouts beyond DIRECT, and whole rows: choose, a warp a row, then gather)
//   check   a thread an edge: a first occurrence when the map still holds its rank, else the vertex's
//           number or the edge to ask for it; first occurrences are counted in tiles of edges
//           -> the host reads how many vertices there are now, while number runs
//   number  first occurrences get their numbers, in order; the others look up their edge's
// The block of count or check that ends last adds the tiles up, so that a prefix sum is no kernel more.
// Seeds are claimed as if they were distinct; only where they are not do they go through check and
// number, as a hop of their own.
//
// Invariants: every array is written by one kernel and read by later ones, but for the map, which draw
// and seeds only lower, check only reads and number only writes where a first occurrence was found.
// ended and repeated are zero, and bad_seed is ~0, when no kernel runs.
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
