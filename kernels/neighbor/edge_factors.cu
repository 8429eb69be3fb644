// The Horvitz-Thompson factors of a batch that neighbor.cu or weighted.cu has sampled: with these
// factors, a sum over a node's sampled edges is an unbiased estimate of the sum over all its edges.
//
// The kernel runs after that launch, in the same stream. The report of the batch is in device memory
// then; this kernel forwards it to the host, with an additional array for each block if the batch
// succeeded, and unchanged otherwise. So the kernels of batches without factors need no changes.
//
// A warp processes a row. It repeats the draws of the row, from the same state: directly if all
// first draws are accepted, otherwise by weighted_wide, which supports any fanout; all ways to a
// row's choices yield the same ones. Their positions are stored where the factors are written later.
// Rows that draw uniformly have one factor for all edges, and rows that contribute all edges have 1.
//
// edge_factor.cuh defines the factors. Go caller: internal/engine/cuda/factors.go. Go twin:
// rng.Weights.Factors.
#include "neighbor/edge_factor.cuh"

// What is of one batch alone. Mirrors factorBatch in internal/engine/cuda/factors.go.
struct FactorBatch {
  u64* told;    // the first launch's report
  u64* report;  // that of both, in memory that the host sees
  char* out;    // the batch
  void* choices;  // positions of choices, 64 bits each; null: where the factors will be, 32 bits each
  u32* arrived;   // the meetings' counter
  u64 out_capacity;
  u32 key0, key1, batch0, batch1;
};

// Mirrors factorArgs. Row y of the grid is of batches[y], in place of all.batch. all.out_edge_bits is the width
// of a choice here.
struct FactorArgs {
  Args all;
  FactorBatch batches[MOST_BATCHES];
};

// The choices of a row where the first draw of each is accepted, as it mostly is, by a warp; false where one
// is not, or where there are more than lanes. weighted_wide says the same, one choice after another.
__device__ __forceinline__ bool first_draws(const Args& a, void* choices, u32 c0, u64 state, u64 start, u64 n, u32 fanout,
                                            u64 x0, u64 x1) {
  if (fanout > 32) return false;
  u32 lane = threadIdx.x & 31;
  // No position is so large.
  u64 p = lane < fanout ? weighted_pick(a.alias + start, draw_bits64(state, lane), n) : ~(u64)lane;
  u32 same = __match_any_sync(~0u, p);
  bool bad = !a.replace && (same & ((1u << lane) - 1)) != 0;
  if (x0 < x1 && lane < fanout) {
    u64 at = excluded_below(a.excluded + x0, x1 - x0, start + p);
    bad |= at < x1 - x0 && a.excluded[x0 + at] == start + p;
  }
  if (__any_sync(~0u, bad)) return false;
  if (lane < fanout) write(choices, a.out_edge_bits, c0 + lane, p);
  return true;
}

// What a block keeps of a report, and where it puts the factors.
struct FactorShared {
  u64 words[REPORT_HEADER + MOST_WORDS];
  u64 used;
};

// The factors of block k of a batch.
__device__ __forceinline__ void factors_of(const Args& a, const FactorBatch& b, const u64* header, u32 k, u64 edges_before) {
  const u64* block = header + FIRST_BLOCK + BLOCK_WORDS * k;
  const u32 width = (u32)header[WORD_ID_BITS];
  const void *nodes = b.out + header[WORD_NODES], *indptr = b.out + block[BLOCK_INDPTR];
  const void* trees = header[WORD_SUBGRAPH_IDS] ? b.out + header[WORD_SUBGRAPH_IDS] : nullptr;
  void* factors = b.out + block[BLOCK_EDGE_WEIGHTS];
  const float ONE = 1;
  long long fanout = a.fanouts[k];
  u64 edges = block[BLOCK_NUM_EDGES];
  if (fanout < 0) {
    // By edges and not by rows, of which one may have most of them.
    for (u64 e = blockIdx.x * blockDim.x + threadIdx.x; e < edges; e += gridDim.x * blockDim.x) put(factors, e, ONE);
    return;
  }
  Stream stream = stream_of(b.key0, b.key1, (u32)a.hops - 1 - k, b.batch0, b.batch1);
  u32 lane = threadIdx.x & 31, warps = blockDim.x / 32;
  for (u64 r = blockIdx.x * warps + threadIdx.x / 32; r < block[BLOCK_NUM_DST]; r += gridDim.x * warps) {
    u32 e0 = (u32)read(indptr, width, r), take = (u32)read(indptr, width, r + 1) - e0;
    if (take == 0) continue;
    u64 place = block[BLOCK_FIRST_DST] + r, v = read(nodes, width, place);
    u64 start = read(a.indptr, a.indptr_bits, v), end = read(a.indptr, a.indptr_bits, v + 1), x0 = 0, x1 = 0;
    if (a.num_excluded) {
      x0 = excluded_below(a.excluded, a.num_excluded, start);
      x1 = excluded_below(a.excluded, a.num_excluded, end);
    }
    u64 n = end - start, degree = n - (x1 - x0);
    bool all = gives_all(a, degree, fanout);
    if (all || !a.alias) {
      float factor = all ? ONE : uniform_factor(degree, (u64)fanout);
      for (u32 j = lane; j < take; j += 32) put(factors, e0 + j, factor);
      continue;
    }
    u64 state = row_state(stream, v);
    if (trees) state = part_state(state, (u32)read(trees, width, place));
    void* choices = b.choices ? b.choices : factors;
    u32 c0 = b.choices ? (u32)edges_before + e0 : e0;
    u64 total = weight_of_row(a, start, n, x0, x1);
    if (!first_draws(a, choices, c0, state, start, n, (u32)fanout, x0, x1))
      weighted_wide(a, choices, c0, state, start, n, (u32)fanout, x0, x1);
    __syncwarp();
    DrawnRow<Args>{a, choices, factors, a.out_edge_bits, c0, e0, (u32)fanout, state, start, n, total, Sums64{a.sums + start}}.all_factors();
  }
}

extern "C" __global__ void __launch_bounds__(FACTOR_THREADS) edge_factors(const __grid_constant__ FactorArgs f) {
  __shared__ FactorShared s;
  __shared__ Meeting meeting;
  const Args& a = f.all;
  const FactorBatch& b = f.batches[blockIdx.y];
  const u32 WORDS = REPORT_HEADER + homogeneous(a.hops).words();
  for (u32 i = threadIdx.x; i < WORDS; i += blockDim.x) s.words[i] = b.told[i];
  __syncthreads();
  u64* header = s.words + REPORT_HEADER;
  if (threadIdx.x == 0) {
    meeting.begin(b.arrived);
    if (s.words[REPORT_STATUS] == STATUS_OK) {
      u64 used = header[WORD_SIZE];
      for (u32 k = 0; k < a.hops; k++) {
        u64* block = header + FIRST_BLOCK + BLOCK_WORDS * k;
        block[BLOCK_EDGE_WEIGHTS] = align64(used);
        used = block[BLOCK_EDGE_WEIGHTS] + block[BLOCK_NUM_EDGES] * 4;
      }
      header[WORD_SIZE] = s.words[REPORT_DETAIL] = used;
      if (used > b.out_capacity) s.words[REPORT_STATUS] = STATUS_TOO_SMALL;
    }
  }
  __syncthreads();
  u64 edges = 0;
  for (u32 k = 0; k < a.hops && s.words[REPORT_STATUS] == STATUS_OK; k++) {
    factors_of(a, b, header, k, edges);
    edges += header[FIRST_BLOCK + BLOCK_WORDS * k + BLOCK_NUM_EDGES];
  }
  // The block that comes last reports, as in neighbor.cu. No block reads the first report any more.
  __syncthreads();
  u64 status = s.words[REPORT_STATUS];
  if (threadIdx.x || !meeting.come_last() || status == 0) return;
  for (u32 i = REPORT_DETAIL; i < WORDS; i++) b.report[i] = s.words[i];
  b.told[REPORT_STATUS] = 0;
  __threadfence_system();
  *(volatile u64*)(b.report + REPORT_STATUS) = status;
}
