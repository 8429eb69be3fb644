// Random walks: a thread a walk. Steps are dependent reads at random places, so what a kernel can do is to
// keep them few, and many walks under way.
//
//   csr     two reads a step: 8 bytes of where the row of a vertex begins and how many edges it has, which
//           walk_rows makes once, and the neighbour (with weights a third, of the alias table)
//   packed  one read a step: an edge has, beside its neighbour, where the neighbour's row begins and how
//           many edges it has, and the edge's id, 16 bytes; with weights both of an alias table's
//           candidates and its threshold, 32 bytes. walk_pack makes that once of a graph.
//
// node2vec asks whether two vertices are adjacent, most often for pairs that are not. A filter of 8 bits an
// edge, which walk_filter makes once, says so by one read for all but a thirtieth of them; a binary search
// of the row says the rest.
//
// Walks lie in memory step by step, so that the lanes of a warp write side by side: walk by walk took a
// third more. A lane whose walk has ended goes on writing -1 beside the others.
//
// Draws are the walk's and the step's alone, not the vertex's, so that two walks on one vertex are
// independent, and neither the grid nor the place of a walk changes a bit. docs/randomness.md has the rules.
//
// Invariants: bad_seed is ~0 when no kernel runs, unless the last one reported a seed out of range.
//
// Go caller: internal/cuda/walk.go. Go twin: internal/walk.
#include "walk.cuh"

template <typename I>
__device__ __forceinline__ void put(I* nodes, u64 i, long long v) {
  // Nobody reads it here again.
  __stcs(nodes + i, (I)v);
}
__device__ __forceinline__ void put_edge(const WalkArgs& a, u64 i, u64 id) {
  if (a.out_edge_bits == 32) __stcs((int*)(a.out + a.edges_at) + i, (int)id);
  else __stcs((long long*)(a.out + a.edges_at) + i, (long long)id);
}

// The walk w from root; without one the lane only goes along, since a warp stays together.
template <typename I, bool PACKED, bool WEIGHTED, WalkKind KIND>
__device__ __forceinline__ void walk_from(const WalkArgs& a, u64 w, u64 root, bool is) {
  const Steps<I, PACKED, WEIGHTED> steps{a};
  const u64 state = row_state(stream_of(a.key0, a.key1, 0, a.batch0, a.batch1, PURPOSE_WALKING), w), NONE = ~0ull;
  I* nodes = (I*)(a.out + a.nodes_at);
  u64 v = root, last = NONE;
  u32 length = 0, place = 0;  // place: in the metapath
  Row<PACKED> row{0, 0};
  if (is) {
    row = steps.row_of(v, KIND == PLAIN ? 0 : a.path[0]);
    put(nodes, w, (long long)v);
  }
  bool going = is;
  u32 step = 0;
#pragma unroll 1
  for (; step < a.length; step++) {
    u64 out = (u64)(step + 1) * a.walks + w, draw = 0;
    bool jumped = false;
    if (going) {
      draw = draw_bits(state, step);
      if constexpr (KIND != PLAIN) {
        if (a.stop && (a.stop_every == 0 || (step && step % a.stop_every == 0)) && coin(draw_bits(draw, STOP_DRAW)) < a.stop) going = false;
        // After a step the row is that of the next kind; going back asks for the root's.
        bool home = going && a.restart && (coin(draw_bits(draw, RESTART_DRAW)) < a.restart || (row.degree == 0 && v != root));
        if (home) {
          v = root, last = NONE;
          row = steps.row_of(v, a.path[place]);
          jumped = a.jumps;
        }
      }
      if (!jumped && row.degree == 0) going = false;
    }
    // What is left of walks that have all ended is written without asking for draws.
    if (!__any_sync(~0u, going)) break;
    u64 id = NONE;
    if (going) {
      length = step + 1;
      if (!jumped) {
        Step<PACKED> s;
        if constexpr (KIND == SECOND) s = last == NONE ? steps.propose(row, draw) : steps.second(row, draw, last);
        else s = steps.propose(row, draw);
        last = v, v = s.to;
        if (a.edges_at) id = steps.id_of(s);
        if constexpr (PACKED) row = s.row;
      }
      if constexpr (KIND != PLAIN)
        if (a.path_length > 1 && ++place == a.path_length) place = 0;
      if constexpr (!PACKED) {
        if (step + 1 < a.length) row = steps.row_of(v, KIND == PLAIN ? 0 : a.path[place]);
      }
    }
    if (is) {
      put(nodes, out, going ? (long long)v : -1);
      if (a.edges_at) put_edge(a, out - a.walks, id);
    }
  }
  if (!is) return;
  for (; step < a.length; step++) {
    u64 out = (u64)(step + 1) * a.walks + w;
    put(nodes, out, -1);
    if (a.edges_at) put_edge(a, out - a.walks, NONE);
  }
  ((int*)(a.out + a.lengths_at))[w] = (int)length;
}

template <typename I, bool PACKED, bool WEIGHTED, WalkKind KIND>
__device__ __forceinline__ void walk(const WalkArgs& a) {
#pragma unroll 1
  for (u64 first = (u64)blockIdx.x * a.per_block; first < a.walks; first += (u64)gridDim.x * a.per_block) {
    u64 w = first + threadIdx.x, seed = 0, v = 0;
    bool is = threadIdx.x < a.per_block && w < a.walks;
    if (is) {
      seed = w / a.per_seed, v = read(a.seeds, a.seed_bits, seed);
      if (v >= a.num_nodes) {
        atomicMin(a.bad_seed, seed);
        is = false;
      }
    }
    walk_from<I, PACKED, WEIGHTED, KIND>(a, w, v, is);
  }
  __syncthreads();
  // walk_tally follows otherwise.
  if (threadIdx.x == 0 && !a.top) walks_report(a);
}

#define WALK(NAME, I, PACKED, WEIGHTED, KIND) \
  extern "C" __global__ void __launch_bounds__(WALK_THREADS) NAME(const __grid_constant__ WalkArgs a) { walk<I, PACKED, WEIGHTED, KIND>(a); }
#define WALKS(SUFFIX, I)                                    \
  WALK(walk_csr##SUFFIX, I, false, false, PLAIN)            \
  WALK(walk_csr_first##SUFFIX, I, false, false, FIRST)      \
  WALK(walk_csr_second##SUFFIX, I, false, false, SECOND)    \
  WALK(walk_packed##SUFFIX, I, true, false, PLAIN)          \
  WALK(walk_packed_first##SUFFIX, I, true, false, FIRST)    \
  WALK(walk_packed_second##SUFFIX, I, true, false, SECOND)  \
  WALK(walk_alias_csr##SUFFIX, I, false, true, PLAIN)       \
  WALK(walk_alias_csr_first##SUFFIX, I, false, true, FIRST) \
  WALK(walk_alias_csr_second##SUFFIX, I, false, true, SECOND) \
  WALK(walk_alias_packed##SUFFIX, I, true, true, PLAIN)     \
  WALK(walk_alias_packed_first##SUFFIX, I, true, true, FIRST) \
  WALK(walk_alias_packed_second##SUFFIX, I, true, true, SECOND)
WALKS(32, int)
WALKS(64, long long)

// ---- packing ----------------------------------------------------------------------------------

// Mirrors packArgs.
struct PackArgs {
  const void *indptr, *indices, *edge_ids;
  const u64* alias;
  uint4* packed;  // what is made
  u64 num_rows, num_edges, words;
  u32 indptr_bits, id_bits, edge_id_bits, unused;
};

__device__ __forceinline__ uint2 packed_row(const PackArgs& a, u64 v) {
  if (v >= a.num_rows) return make_uint2(0, 0);
  u64 start = read(a.indptr, a.indptr_bits, v);
  return make_uint2((u32)start, (u32)(read(a.indptr, a.indptr_bits, v + 1) - start));
}

extern "C" __global__ void __launch_bounds__(PACK_THREADS) walk_pack(const __grid_constant__ PackArgs a) {
  for (u64 e = (u64)blockIdx.x * blockDim.x + threadIdx.x; e < a.num_edges; e += (u64)gridDim.x * blockDim.x) {
    u64 v = read(a.indices, a.id_bits, e);
    uint2 row = packed_row(a, v);
    u64 id = a.edge_id_bits == 32 ? read(a.edge_ids, 32, e) : e;
    a.packed[e] = make_uint4((u32)v, row.x, row.y, (u32)id);
  }
}

// A warp a row.
extern "C" __global__ void __launch_bounds__(PACK_THREADS) walk_pack_alias(const __grid_constant__ PackArgs a) {
  u32 lane = threadIdx.x & 31;
  for (u64 r = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32; r < a.num_rows; r += (u64)gridDim.x * blockDim.x / 32) {
    u64 start = read(a.indptr, a.indptr_bits, r), end = read(a.indptr, a.indptr_bits, r + 1);
    for (u64 e = start + lane; e < end; e += 32) {
      u64 entry = a.alias[e], other = entry >> 32;
      u64 v = read(a.indices, a.id_bits, e), u = read(a.indices, a.id_bits, start + other);
      uint2 own = packed_row(a, v), alias = packed_row(a, u);
      a.packed[2 * e] = make_uint4((u32)entry, (u32)v, own.x, own.y);
      a.packed[2 * e + 1] = make_uint4((u32)u, alias.x, alias.y, (u32)other);
    }
  }
}

extern "C" __global__ void __launch_bounds__(PACK_THREADS) walk_rows(const __grid_constant__ PackArgs a) {
  for (u64 r = (u64)blockIdx.x * blockDim.x + threadIdx.x; r < a.num_rows; r += (u64)gridDim.x * blockDim.x)
    ((uint2*)a.packed)[r] = packed_row(a, r);
}

// Of the transposed graph, a warp a row: the pairs of its edges. The words are zero before.
extern "C" __global__ void __launch_bounds__(PACK_THREADS) walk_filter(const __grid_constant__ PackArgs a) {
  u32 lane = threadIdx.x & 31;
  for (u64 r = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32; r < a.num_rows; r += (u64)gridDim.x * blockDim.x / 32) {
    u64 start = read(a.indptr, a.indptr_bits, r), end = read(a.indptr, a.indptr_bits, r + 1);
    for (u64 e = start + lane; e < end; e += 32) {
      FilterBits f = filter_bits(r, read(a.indices, a.id_bits, e), a.words);
      atomicOr((u32*)a.packed + f.word, f.bits);
    }
  }
}
