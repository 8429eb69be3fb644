// The state of a block of neighbor.cu from hop to hop, and the number of edges of its rows.
#pragma once
#include "neighbor/large_fanout.cuh"
#include "neighbor/bins.cuh"
#include "neighbor/disjoint_map.cuh"
#include "neighbor/weighted.cuh"

// The rows of a hop that a block draws: old ones from old_lo on, whose first edge in the hop is
// old_at, and those that it has just numbered. `edges` are those of all blocks.
struct Rows {
  u32 old_lo, old_count, old_at, fresh_lo, fresh_count, fresh_at, edges;
};

// Ranks, rows and edges of a hop are below 2^31, or the batch is refused before they are used.
template <typename I, Kind KIND>
struct Hop {
  static constexpr bool WEIGHTS = KIND >= WEIGHTED;
  static constexpr int USUAL = WEIGHTS ? KIND - WEIGHTED : KIND;
  static constexpr bool BINS = USUAL == WITH_BINS, ANY = USUAL >= WITH_ALL, TREES = USUAL == WITH_TREES;
  const Args& a;
  const Batch& b;
  Shared& s;
  u32* scratch;  // dynamic shared memory: a tile's choices, (fanout | 1) words a row, or a bin's table
  u32 turns = 0, exchanges = 0, lists = 0;
  u32 n = 0;     // vertices numbered
  u32 base = 0;  // rank of the hop's first edge
  u32 first = 0;  // row that the hop begins with: 0 unless rows are drawn once
  bool binned = false;
  u32 known = 0;    // what the map says below that is a number; 0 where it is not worth a look
  u32 settled = 0;  // what it says below that is a number, for all blocks
  u32* slots = nullptr;  // of the hop's edges, where each seed has a tree
  // The hop whose edges may still ask another edge of it for their number.
  I* asked = nullptr;
  u32 asked_edges = 0;

  __device__ Hop(const Args& a, const Batch& b, Shared& s, u32* scratch) : a(a), b(b), s(s), scratch(scratch) {
    if (threadIdx.x == 0) s.meeting.begin(b.arrived);
    if (WEIGHTS && threadIdx.x == 0) ((WeightedShared&)s).listed[0] = 0, ((WeightedShared&)s).limit[0] = SPARE_DRAWS;
  }

  __device__ __forceinline__ I* row_nodes() const { return (I*)b.nodes; }

  __device__ __forceinline__ Sums sums(u32 x, u32 y, u32 z) {
    u32 turn = exchanges++ & 1;
    return grid_sums(x, y, z, b.slots + turn * gridDim.x, s.meeting, s.sums[turn]);
  }

  // Words of the map, those of its 32 bits as if they had 64: the tag, then the rank.
  static constexpr bool NARROW = USUAL == PLAIN;
  __device__ __forceinline__ u64 widened(u32 word) const { return (u64)(word >> b.shift) << 32 | (word & ((1u << b.shift) - 1)); }
  __device__ __forceinline__ u64 look(u64 v) const {
    if (NARROW) return widened(load_relaxed((const u32*)b.map + v));
    return load_relaxed((const u64*)b.map + v);
  }
  __device__ __forceinline__ void note(u64 v, u32 number) {
    if (NARROW) ((u32*)b.map)[v] = b.tag << b.shift | number;
    else ((u64*)b.map)[v] = (u64)b.tag << 32 | number;
  }
  // Returns what was there.
  __device__ __forceinline__ u64 claim(u64 v, u32 rank) {
    if (NARROW) return widened(atomicMin((u32*)b.map + v, b.tag << b.shift | rank));
    return atomicMin((u64*)b.map + v, (u64)b.tag << 32 | rank);
  }

  __device__ __forceinline__ bool whole(u64 degree, long long fanout) const {
    return gives_all(a, degree, fanout);
  }
  // How many edges a row gives, up to TOO_MUCH.
  __device__ __forceinline__ u32 take(u64 degree, long long fanout) const {
    return whole(degree, fanout) ? at_most(degree) : (u32)fanout;
  }

  // First position and degree of vertex v.
  __device__ __forceinline__ ulonglong2 row_of(u64 v) const {
    if (v >= a.num_rows) return make_ulonglong2(0, 0);
    u64 start = read(a.indptr, a.indptr_bits, v), end = read(a.indptr, a.indptr_bits, v + 1), degree = end - start;
    if (ANY && a.num_excluded) degree -= excluded_below(a, end) - excluded_below(a, start);
    return make_ulonglong2(start, degree);
  }

  // How many edges the thread's share of rows that have been read gives; the warp's sum.
  __device__ __forceinline__ u32 count(Slice rows, long long fanout) const {
    u64 edges = 0;
#pragma unroll 4
    for (u32 r = rows.lo + threadIdx.x; r < rows.hi; r += THREADS) edges += take(b.rows[r].y, fanout);
    return warp_total(edges);
  }
  __device__ __forceinline__ static u32 warp_total(u64 x) { return at_most(warp_sum(at_most(x))); }
};
