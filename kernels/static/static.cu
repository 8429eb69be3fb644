// Samples batches into memory with fixed addresses, for launches that a CUDA graph repeats.
//
// A replayed launch has the arguments that were captured with it. So everything that changes from
// batch to batch is in device memory and is advanced there: seeds, counters of the random streams,
// the tag of the map, and the address of the batch. A batch takes three launches:
//
//   static*        samples it, as neighbor/neighbor.cu and neighbor/weighted.cu do, from a Batch in
//                  device memory, into the next of STATIC_SLOTS slots, and reports to the device
//   static_turn    forwards the report to the host, and writes the Batch of the next one
//   static_spread  copies the batch to arrays of fixed sizes, and pads them
//
// The first two may run at the same time as the training step of an earlier batch, since slots
// alternate: the host has read the report of a batch before it launches the step on it. static_turn
// detects a batch that is larger than the arrays; static_spread then writes nothing of it.
//
// Padding is harmless for readers that treat it as edges: it consists of existing nodes and edges,
// and of local numbers of rows after the batch's own, spread over all of those, since atomics on a
// single row would be serialized. Rows after the batch's own have no edges in indptr.
//
// Source of padding to fixed sizes: jraph (pad_with_graphs). Go caller:
// internal/engine/cuda/static.go. Go twin: none; the CPU engine's batches have the same content.
#include "neighbor/phases.cuh"
#include "static/static.cuh"

// Mirrors staticState in internal/engine/cuda/static.go. The host writes what is of a pass before it begins.
struct StaticState {
  const char* seeds;         // of the pass
  const StaticStep* steps;   // [num_steps + 1], the last without seeds
  u64 num_steps;
  u64 sampled, spread;       // batches of the pass so far
  u64 launches;              // of static*, ever
  u32 turned, spreading;     // blocks that are done
  Batch batch;               // of the next launch
};

// Mirrors staticArgs.
struct StaticArgs {
  Args all;  // but for its batch
  const Batch* batch;
};

#define STATIC_KERNEL(name, I, KIND)                                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ StaticArgs a) {    \
    __shared__ Batch b;                                                                                    \
    for (u32 i = threadIdx.x; i < sizeof(Batch) / 8; i += THREADS) ((u64*)&b)[i] = ((const u64*)a.batch)[i]; \
    __syncthreads();                                                                                       \
    sample<I, KIND>(a.all, b);                                                                             \
  }

STATIC_KERNEL(static32, int, PLAIN)
STATIC_KERNEL(static64, long long, PLAIN)
STATIC_KERNEL(static32_any, int, WITH_ALL)
STATIC_KERNEL(static64_any, long long, WITH_ALL)
STATIC_KERNEL(static32_weighted, int, WEIGHTED)
STATIC_KERNEL(static64_weighted, long long, WEIGHTED)
STATIC_KERNEL(static32_weighted_any, int, WEIGHTED_ALL)
STATIC_KERNEL(static64_weighted_any, long long, WEIGHTED_ALL)

// How many vertices and edges a block may have, mirrors staticMost.
struct StaticMost {
  u64 src, dst, edges;
};

// Mirrors turnArgs.
struct TurnArgs {
  StaticState* state;
  const u64* reports;  // of the device, a slot's behind the other
  u64* told;           // likewise, memory of the host
  u64 map_words;       // of 32 bits
  u64 out_bytes;       // of a slot
  u64 seed_bytes;
  u32 words;           // of a report
  u32 hops, first;     // first: no batch is to be told of
  u32 tags;            // that the map has
  Batch batch;         // what all batches have in common; out and report are those of slot 0
  StaticMost most[MOST_HOPS];  // outermost first
};

extern "C" __global__ void __launch_bounds__(STATIC_THREADS) static_turn(const __grid_constant__ TurnArgs a) {
  __shared__ u64 launches, turn;
  StaticState& s = *a.state;
  if (threadIdx.x == 0) launches = s.launches, turn = a.first ? 0 : s.sampled + 1;
  __syncthreads();
  // Tags fall from launch to launch; an empty word is larger than any.
  if (launches % a.tags == 0) {
    u64 threads = (u64)gridDim.x * STATIC_THREADS;
    for (u64 i = (u64)blockIdx.x * STATIC_THREADS + threadIdx.x; i < a.map_words; i += threads) ((u32*)a.batch.map)[i] = ~0u;
  }
  if (blockIdx.x == 0 && !a.first) {
    u64 slot = (turn - 1) % STATIC_SLOTS;
    const u64* report = a.reports + slot * a.words;
    u64* told = a.told + slot * a.words;
    // Of a failed launch the header is not all written.
    u64 status = report[REPORT_STATUS];
    for (u32 i = REPORT_HEADER + threadIdx.x; i < a.words; i += STATIC_THREADS) told[i] = report[i];
    bool fits = true;
    for (u32 i = threadIdx.x; status == STATUS_OK && i < a.hops; i += STATIC_THREADS) {
      const u64* block = report + REPORT_HEADER + FIRST_BLOCK + BLOCK_WORDS * i;
      fits = block[BLOCK_NUM_SRC] <= a.most[i].src && block[BLOCK_NUM_DST] <= a.most[i].dst && block[BLOCK_NUM_EDGES] <= a.most[i].edges;
    }
    __threadfence_system();
    fits = __syncthreads_and(fits);
    if (threadIdx.x == 0) {
      told[REPORT_DETAIL] = turn - 1;
      __threadfence_system();
      *(volatile u64*)(told + REPORT_STATUS) = status == STATUS_OK && !fits ? STATUS_TOO_SMALL : status;
    }
  }
  __syncthreads();
  if (threadIdx.x) return;
  // The last block moves on, once all have read where things stand.
  __threadfence();
  if (atomicInc(&s.turned, gridDim.x - 1) + 1 != gridDim.x) return;
  StaticStep step = s.steps[min(turn, s.num_steps)];
  u64 slot = turn % STATIC_SLOTS;
  Batch b = a.batch;
  b.seeds = s.seeds + step.first * a.seed_bytes;
  b.num_seeds = step.num_seeds;
  b.out += slot * a.out_bytes;
  b.report += slot * a.words;
  b.tag = a.tags - 1 - (u32)(launches % a.tags);
  b.key0 = step.key0, b.key1 = step.key1, b.batch0 = step.batch0, b.batch1 = step.batch1;
  s.batch = b;
  s.sampled = turn;
  s.launches = launches + 1;
}

// Mirrors spreadBlock: arrays of fixed sizes.
struct SpreadBlock {
  void *indptr, *indices, *edge_ids;  // [dst + 1], [edges], [edges]
  u64 src, dst, edges;
};

// Mirrors spreadArgs.
struct SpreadArgs {
  StaticState* state;
  const u64* reports;
  const char* out;
  u64 out_bytes;
  u64 num_nodes, num_edges;      // of the graph
  u64 outputs;
  void *nodes;                   // [blocks[0].src]
  void *output_nodes, *output_index;  // [outputs]
  long long* counts;             // seeds; for each block, outermost first, sources, destinations, edges
  u32 words, hops, id_bits, edge_id_bits;
  SpreadBlock blocks[MOST_HOPS];
};

// Writes n values, of which the first `used` are copied, and what fill says from there on; both
// begin at multiples of 16 bytes.
template <typename I, typename Fill>
__device__ __forceinline__ void copy_and_fill(void* to, const void* from, u64 used, u64 n, Fill fill) {
  const u64 each = 16 / sizeof(I), threads = (u64)gridDim.x * STATIC_THREADS;
#pragma unroll 4
  for (u64 v = (u64)blockIdx.x * STATIC_THREADS + threadIdx.x; v * each < n; v += threads) {
    u64 i = v * each;
    if (i + each <= used) {
      ((uint4*)to)[v] = ((const uint4*)from)[v];
    } else {
      for (u64 k = i; k < i + each && k < n; k++) ((I*)to)[k] = k < used ? ((const I*)from)[k] : (I)fill(k);
    }
  }
}

// Row 0 of the grid has the vertices, row y the block y - 1.
template <typename I>
__device__ __forceinline__ void spread(const SpreadArgs& a, const u64* header, const char* out, bool good) {
  u64 num_nodes = a.num_nodes, num_edges = max(a.num_edges, (u64)1);
  auto vertex = [=](u64 i) { return i % num_nodes; };
  if (blockIdx.y == 0) {
    u64 n = good ? header[WORD_NUM_NODES] : 0, seeds = good ? header[WORD_NUM_OUTPUT] : 0;
    copy_and_fill<I>(a.nodes, out + header[WORD_NODES], n, a.blocks[0].src, vertex);
    copy_and_fill<I>(a.output_nodes, out + header[WORD_OUTPUT_NODES], seeds, a.outputs, vertex);
    copy_and_fill<I>(a.output_index, out + header[WORD_OUTPUT_INDEX], seeds, a.outputs, [](u64 i) { return i; });
    u64 at = (u64)blockIdx.x * STATIC_THREADS + threadIdx.x;
    if (at < 1 + 3 * a.hops) {
      const u64* block = header + FIRST_BLOCK + BLOCK_WORDS * ((at + 2) / 3 - 1);
      u32 which = (at + 2) % 3;
      a.counts[at] = at == 0 ? seeds : !good ? 0 : block[which == 0 ? BLOCK_NUM_SRC : which == 1 ? BLOCK_NUM_DST : BLOCK_NUM_EDGES];
    }
    return;
  }
  const SpreadBlock& b = a.blocks[blockIdx.y - 1];
  const u64* block = header + FIRST_BLOCK + BLOCK_WORDS * (blockIdx.y - 1);
  u64 src = good ? block[BLOCK_NUM_SRC] : 0, dst = good ? block[BLOCK_NUM_DST] : 0, edges = good ? block[BLOCK_NUM_EDGES] : 0;
  u32 rows = (u32)(b.src - src);
  copy_and_fill<I>(b.indptr, out + block[BLOCK_INDPTR], good ? dst + 1 : 0, b.dst + 1, [=](u64) { return edges; });
  copy_and_fill<I>(b.indices, out + block[BLOCK_INDICES], edges, b.edges, [=](u64 i) { return src + (u32)(i - edges) % rows; });
  auto edge = [=](u64 i) { return i % num_edges; };
  if (a.edge_id_bits == 32) copy_and_fill<u32>(b.edge_ids, out + block[BLOCK_EDGE_IDS], edges, b.edges, edge);
  else copy_and_fill<u64>(b.edge_ids, out + block[BLOCK_EDGE_IDS], edges, b.edges, edge);
}

extern "C" __global__ void __launch_bounds__(STATIC_THREADS) static_spread(const __grid_constant__ SpreadArgs a) {
  __shared__ u64 turn;
  if (threadIdx.x == 0) turn = a.state->spread;
  __syncthreads();
  const u64* report = a.reports + turn % STATIC_SLOTS * a.words;
  const u64* header = report + REPORT_HEADER;
  const char* out = a.out + turn % STATIC_SLOTS * a.out_bytes;
  bool good = report[REPORT_STATUS] == STATUS_OK;
  for (u32 i = 0; good && i < a.hops; i++) {
    const u64* block = header + FIRST_BLOCK + BLOCK_WORDS * i;
    good = block[BLOCK_NUM_SRC] < a.blocks[i].src && block[BLOCK_NUM_DST] <= a.blocks[i].dst && block[BLOCK_NUM_EDGES] <= a.blocks[i].edges;
  }
  if (a.id_bits == 32) spread<int>(a, header, out, good);
  else spread<long long>(a, header, out, good);
  __syncthreads();
  if (threadIdx.x) return;
  __threadfence();
  u32 blocks = gridDim.x * gridDim.y;
  if (atomicInc(&a.state->spreading, blocks - 1) + 1 == blocks) a.state->spread = turn + 1;
}

// Mirrors staticEdgesArgs.
struct StaticEdgesArgs {
  const void *indptr, *indices;  // [dst + 1], [edges]
  const long long* num_dst;      // in the counts of static_spread
  void *sources, *destinations;  // [edges] each, of out_bits; sources may be null
  u64 dst, edges;
  u32 id_bits, out_bits;
};

template <typename I, typename O>
__device__ __forceinline__ void static_edges(const StaticEdgesArgs& a) {
  const I *indptr = (const I*)a.indptr, *indices = (const I*)a.indices;
  u64 threads = (u64)gridDim.x * STATIC_THREADS, used = (u64)indptr[a.dst], rows = (u64)*a.num_dst;
  for (u64 e = (u64)blockIdx.x * STATIC_THREADS + threadIdx.x; e < a.edges; e += threads) {
    u64 low = 0, high = rows;
    if (e >= used) {
      low = rows + (a.dst > rows ? (u32)(e - used) % (u32)(a.dst - rows) : 0);
    } else {
      // The first row that ends behind the edge is in [low, high).
      while (low + 1 < high) {
        u64 middle = (low + high) / 2;
        if ((u64)indptr[middle] > e) high = middle;
        else low = middle;
      }
    }
    ((O*)a.destinations)[e] = (O)low;
    if (a.sources) ((O*)a.sources)[e] = (O)indices[e];
  }
}

// The edges of a block one by one, as neighbor/expand_coo.cu writes them; those that fill it up end in rows behind its own.
extern "C" __global__ void __launch_bounds__(STATIC_THREADS) static_edges(const __grid_constant__ StaticEdgesArgs a) {
  if (a.id_bits == 64) static_edges<long long, long long>(a);
  else if (a.out_bits == 64) static_edges<int, long long>(a);
  else static_edges<int, int>(a);
}
