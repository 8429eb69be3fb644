// Expands the blocks of batches to edge lists: for every edge its destination and, if requested, its
// source.
//
// torch does the same with arange, diff and repeat_interleave, which is a dozen launches per block
// and, at 3 us per launch, most of the time of a small batch. Here all blocks of one or several
// batches are one launch, in one id width or in both: row y of the grid has block y. The unit of
// work is an edge: a thread finds its row in indptr by binary search. Lanes of a warp have
// consecutive edges, so that they read the same few words and write whole lines, and neither a row
// of millions of edges nor millions of empty rows unbalances the threads.
//
// Go caller: internal/engine/cuda/expand.go. Go twin: ExpandRows in internal/graph/csc/coo.go.
#include "common/philox.cuh"

struct ExpandBlock {
  const void *indptr, *indices;  // [rows + 1], [edges], of id_bits; indptr[0] is 0
  void *sources, *destinations;  // [edges] each, of out_bits; sources may be null
  u64 rows, edges;
  u64 first;     // the number of the first destination
  u64 out_bits;  // not fewer than id_bits
};

// Mirrors expandArgs in internal/engine/cuda/expand.go; loading compares the sizes.
struct ExpandArgs {
  ExpandBlock blocks[MOST_HOPS];
  u32 id_bits;
};

template <typename I, typename O>
__device__ void expand(const ExpandBlock& b) {
  const I *indptr = (const I*)b.indptr, *indices = (const I*)b.indices;
  u64 threads = (u64)gridDim.x * blockDim.x;
  for (u64 e = (u64)blockIdx.x * blockDim.x + threadIdx.x; e < b.edges; e += threads) {
    // The first row that ends behind the edge is in [low, high].
    u64 low = 0, high = b.rows - 1;
    while (low < high) {
      u64 middle = (low + high) / 2;
      if ((u64)indptr[middle + 1] > e) high = middle;
      else low = middle + 1;
    }
    ((O*)b.destinations)[e] = (O)(b.first + low);
    if (b.sources) ((O*)b.sources)[e] = (O)indices[e];
  }
}

extern "C" __global__ void __launch_bounds__(EXPAND_THREADS) expand_coo(const __grid_constant__ ExpandArgs a) {
  const ExpandBlock& b = a.blocks[blockIdx.y];
  if (a.id_bits == 64) expand<long long, long long>(b);
  else if (b.out_bits == 64) expand<int, long long>(b);
  else expand<int, int>(b);
}
