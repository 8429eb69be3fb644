// Random walks: one thread per walk. Steps are dependent reads at random addresses, so the kernels
// minimize their number and keep many walks in flight.
//
//   csr     two reads per step: the bounds of a node's row, in 32 bits, from an array that
//           walk_offsets writes, so that more of it is in the L2 (8 bytes for both were a sixth
//           slower), and the neighbor (with weights a third read, of the alias table)
//   packed  one read per step: an edge has, in addition to its neighbor, the offset and the length
//           of the neighbor's row, and the edge's id, 16 bytes; with weights both candidates of an
//           alias table and its threshold, 32 bytes. walk_pack computes this once for a graph.
//
// Few walks wait for one read after another, and for the instructions between the reads: so the next
// step's draw is computed, and the previous node written, while a read is in flight.
//
// node2vec tests whether two nodes are adjacent, most often for pairs that are not. A filter of 8
// bits per edge, which walk_filter computes once, decides all but a thirtieth of them by one read; a
// binary search of the row decides the rest.
//
// Walks are stored step by step, so that the lanes of a warp write adjacent words: walk by walk took
// a third more. A lane whose walk has ended continues to write -1 with the others, up to the end of
// the warp's last walk. The host fills the rest in advance, which is most of the memory if walks may
// stop: 128 bytes of each step at a time took 24 us per step of 5 million walks, where a fill takes
// 5. Two alternatives were no better: lanes that start further walks once theirs have ended, whose
// writes are 4 bytes each; and a tile of a block's first steps in shared memory with a second kernel
// for walks that continue, which took 2 to 7 % less.
//
// Draws depend on the walk and the step only, not on the node, so that two walks at one node are
// independent, and neither the grid nor the place of a walk changes a bit.
// docs/developer/walk-draws.md has the rules.
//
// Invariants: bad_seed is ~0 when no kernel runs, unless the last one reported a seed out of range.
//
// Sources: A. Grover, J. Leskovec, "node2vec: Scalable Feature Learning for Networks", KDD 2016;
// A. Jangda et al., "Accelerating Graph Sampling for Graph Machine Learning using GPUs", EuroSys
// 2021 (NextDoor). Go caller: internal/engine/cuda/walk.go. Go twin: internal/walk.
#include "walk/walk.cuh"

// Plain stores: streaming ones leave the L2 a warp's 128 bytes at a time, each for another page of memory.
template <typename I>
__device__ __forceinline__ void put(I* nodes, u64 i, long long v) {
  nodes[i] = (I)v;
}
__device__ __forceinline__ void put_edge(const WalkArgs& a, u64 i, u64 id) { write(a.out + a.edges_at, a.out_edge_bits, i, id); }

// A walk under way.
template <bool PACKED>
struct Walk {
  u64 w, root, v, last, state;  // last: where it came from by an edge; ~0: it did not
  Row<PACKED> row;              // of the next step
  u32 step, length, place;      // place: in the metapath
};

template <typename I, bool PACKED, bool WEIGHTED, WalkKind KIND>
struct Walker {
  const WalkArgs& a;
  const Steps<I, PACKED, WEIGHTED> steps;
  __device__ __forceinline__ explicit Walker(const WalkArgs& args) : a(args), steps{args} {}

  __device__ __forceinline__ I* nodes() const { return (I*)(a.out + a.nodes_at); }

  // Begins walk w; false: its seed is no vertex.
  __device__ __forceinline__ bool begin(Walk<PACKED>& k, u64 w) const {
    u64 seed = w / a.per_seed, v = read(a.seeds, a.seed_bits, seed);
    if (v >= a.num_nodes) {
      atomicMin(a.bad_seed, seed);
      return false;
    }
    k.w = w, k.root = k.v = v, k.last = ~0ull;
    k.state = row_state(stream_of(a.key0, a.key1, 0, a.batch0, a.batch1, PURPOSE_WALKING), a.first_walk + w);
    k.row = steps.row_of(v, KIND == PLAIN ? 0 : a.path[0]);
    k.step = k.length = k.place = 0;
    return true;
  }

  // Whether the walk goes on, and if so by a jump; draw is the step's.
  __device__ __forceinline__ bool goes_on(Walk<PACKED>& k, u64 draw, bool& jumped) const {
    jumped = false;
    if constexpr (KIND != PLAIN) {
      if (a.stop && may_stop(a, k.step) && coin(draw_bits(draw, STOP_DRAW)) < a.stop) return false;
      // After a step the row is that of the next kind; going back asks for the root's.
      if (a.restart && (coin(draw_bits(draw, RESTART_DRAW)) < a.restart || (k.row.degree == 0 && k.v != k.root))) {
        k.v = k.root, k.last = ~0ull;
        k.row = steps.row_of(k.v, a.path[k.place]);
        jumped = a.jumps;
      }
    }
    return jumped || k.row.degree != 0;
  }

  // Takes the step, gives the edge's id where somebody asks for it, and leaves the next step's draw.
  __device__ __forceinline__ u64 go(Walk<PACKED>& k, u64& draw, bool jumped) const {
    u64 id = ~0ull, next = KIND == PLAIN ? draw_bits(k.state, k.step + 1) : 0;
    if (!jumped) {
      Step<PACKED> s;
      if constexpr (KIND == SECOND) s = k.last == ~0ull ? steps.propose(k.row, draw) : steps.second(k.row, draw, k.last);
      else s = steps.propose(k.row, draw);
      k.last = k.v, k.v = s.to;
      if (a.edges_at) id = steps.id_of(s);
      if constexpr (PACKED) k.row = s.row;
    }
    draw = next, k.length = ++k.step;
    if constexpr (KIND != PLAIN)
      if (a.path_length > 1 && ++k.place == a.path_length) k.place = 0;
    if constexpr (!PACKED) {
      if (k.step < a.length) k.row = steps.row_of(k.v, KIND == PLAIN ? 0 : a.path[k.place]);
    }
    return id;
  }

  __device__ __forceinline__ void end(const Walk<PACKED>& k) const { ((int*)(a.out + a.lengths_at))[k.w] = (int)k.length; }
};

// A lane has one walk after the other, and each of a warp's begins with the others'.
template <typename I, bool PACKED, bool WEIGHTED, WalkKind KIND>
__device__ __forceinline__ void walk(const WalkArgs& a) {
  // Other kinds do more between two reads, and would need more registers than all threads have room for.
  constexpr bool BEHIND = KIND == PLAIN;
  const Walker<I, PACKED, WEIGHTED, KIND> walker(a);
  I* nodes = walker.nodes();
#pragma unroll 1
  for (u64 first = (u64)blockIdx.x * a.per_block; first < a.walks; first += (u64)gridDim.x * a.per_block) {
    Walk<PACKED> k;
    u64 w = first + threadIdx.x;
    bool is = threadIdx.x < a.per_block && w < a.walks && walker.begin(k, w), going = is;
    u64 draw = is ? draw_bits(k.state, 0) : 0, out = w, id = ~0ull;
    long long v = (long long)k.v;
    u32 step = 0;
    auto write = [&](long long node, u64 edge) {
      put(nodes, out, node);
      if (a.edges_at && out >= a.walks) put_edge(a, out - a.walks, edge);
    };
    if (!BEHIND) {
      if (is) write(v, id);
      out += a.walks;
    }
#pragma unroll 1
    for (; step < a.length; step++, out += a.walks) {
      bool jumped;
      u64 next = ~0ull;
      if (!BEHIND && going) draw = draw_bits(k.state, step);
      if (going) going = walker.goes_on(k, draw, jumped);
      if (going) next = walker.go(k, draw, jumped);
      // Where the step before led, while the read of this one is on its way.
      if (BEHIND && is) write(v, id);
      if (!__any_sync(~0u, going)) break;
      v = going ? (long long)k.v : -1, id = next;
      if (!BEHIND && is) write(v, id);
    }
    if (!is) continue;
    if (BEHIND) {
      if (step == a.length) write(v, id);
      out += a.walks;
    }
    // What is left of walks that have all ended asks for no draws.
    for (; step < a.length && !a.filled; step++, out += a.walks) write(-1, ~0ull);
    walker.end(k);
  }
  __syncthreads();
  // visit_counts follows otherwise.
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

extern "C" __global__ void __launch_bounds__(PACK_THREADS) walk_offsets(const __grid_constant__ PackArgs a) {
  for (u64 r = (u64)blockIdx.x * blockDim.x + threadIdx.x; r <= a.num_rows; r += (u64)gridDim.x * blockDim.x)
    ((u32*)a.packed)[r] = (u32)read(a.indptr, a.indptr_bits, r);
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
