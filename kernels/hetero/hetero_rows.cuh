// The choice of a row's edges, for the kernels of heterogeneous graphs: the part of the row that a
// time bound admits, its draws by weight, and their factors.
//
// Go twins: internal/graph/times, rng.Chooser, rng.Weights.Factors.
#pragma once
#include "neighbor/edge_factor.cuh"
#include "common/row_draw.cuh"
#include "hetero/hetero.cuh"

#define HETERO_WARPS (THREADS / 32)
#define HETERO_HUB 8192  // edges from which on a whole row is a block's

// A relation in the terms of the kernels without types.
struct HeteroRows : RowsArgs {
  const u64 *alias, *sums;  // null where its rows draw uniformly
  const long long* keys;    // null where its edges have no times

  // Whether rows draw by weight among parts of them.
  __device__ bool in_parts() const { return keys != nullptr; }
};

// What a block keeps of the relation and the tile of its rows that it works on.
struct HeteroShared {
  Meeting meeting;
  u64 parts[32];
  HeteroRows graph;  // the relation that the block works on
  u64 salt;
  u32 src, dst;
  // Of the tile's rows: first CSC position, degree, random state, first edge in the block, edges to take.
  u64 starts[THREADS], degrees[THREADS], states[THREADS], offsets[THREADS], takes[THREADS];
};

struct HeteroAllShared : HeteroShared {
  // Of rows that draw by weight: their edges, excluded ones too; of those of which a bound leaves a part what the
  // sums have before it.
  u64 lengths[THREADS];
  u32 trees[THREADS];
  long long bounds[THREADS];
  void* factors;  // of the relation's edges
};

// The key of the first time that a window leaves under a bound.
__device__ __forceinline__ long long since(const HeteroArgs& a, long long bound) {
  const long long LEAST = (long long)(1ull << 63);
  if (a.float_times) return key_of(time_of(bound) - a.window);
  long long window = (long long)a.window;
  return bound >= LEAST + window ? bound - window : LEAST;
}

// How many of a row's keys, which ascend, are below one, or at it.
__device__ __forceinline__ u64 keys_below(const long long* keys, u64 n, long long key, bool or_at) {
  u64 lo = 0;
  while (lo < n) {
    u64 middle = (lo + n) / 2;
    if (keys[middle] < key || (or_at && keys[middle] == key)) lo = middle + 1;
    else n = middle;
  }
  return lo;
}

// The part of a row that a bound leaves, without counting excluded edges; of more than the fanout its last ones, where a
// hop wants those.
__device__ __forceinline__ ulonglong2 within(const HeteroArgs& a, const HeteroRows& g, ulonglong2 row, long long bound,
                                             long long fanout) {
  const long long* keys = g.keys + row.x;
  u64 end = keys_below(keys, row.y, bound, !a.before), begin = 0;
  if (a.windowed) begin = keys_below(keys, end, since(a, bound), false);
  u64 kept = g.kept(make_ulonglong2(row.x + begin, end - begin)), start = row.x + begin;
  if (a.latest && fanout >= 0 && kept > (u64)fanout) start = g.position(start, kept - (u64)fanout), kept = (u64)fanout;
  return make_ulonglong2(start, kept);
}

// A row that draws by weight: its first CSC position, how many edges it has, excluded ones too, and which of the
// excluded ones are its own. Of one that is a part, what the sums have before it.
struct WeightedRow {
  u64 state, start, n, before, x0, x1;

  // known is how many edges a row has, or of a part before; degree does not count excluded edges.
  __device__ WeightedRow(const HeteroRows& g, u64 state, u64 start, u64 degree, u64 known)
      : state(state), start(start), n(known), before(known), x0(0), x1(0) {
    // Excluded edges behind the last one that is not belong to no draw.
    if (g.in_parts()) n = g.position(start, degree - 1) + 1 - start;
    if (!g.num_excluded) return;
    x0 = excluded_below(g.excluded, g.num_excluded, start);
    x1 = excluded_below(g.excluded, g.num_excluded, start + n);
  }
  __device__ bool is_excluded(const HeteroRows& g, u64 p) const {
    u64 at = x0 + excluded_below(g.excluded + x0, x1 - x0, start + p);
    return at < x1 && g.excluded[at] == start + p;
  }
};

// The choices of a row, up to 32, by a warp: a lane a choice.
__device__ __forceinline__ void choose_by_weight(const HeteroRows& g, const WeightedRow& row, u32* own, u32 fanout) {
  if (g.in_parts()) return weighted_part(g, own, 32, 0, row.state, row.start, row.n, row.before, fanout, row.x0, row.x1);
  u32 lane = threadIdx.x & 31;
  bool mine = lane < fanout;
  const u64* alias = g.alias + row.start;
  u32 p = mine ? weighted_pick32(alias, draw_bits(row.state, lane), (u32)row.n) : 0;
  u32 drawn = (1u << (fanout & 31)) - 1;
  if (fanout == 32) drawn = ~0u;
  bool bad = mine && row.x0 < row.x1 && row.is_excluded(g, p);
  u32 same = __match_any_sync(~0u, p) & drawn;
  if (!g.replace) bad |= mine && (same & ((1u << lane) - 1));
  if (mine) own[lane] = p;
  u32 open = __ballot_sync(~0u, bad), spares = row.n > SHORT ? SPARE * fanout : 0;
  for (u32 t0 = 0; t0 < spares && open; t0 += 32) {
    u32 spare = t0 + lane < spares ? weighted_pick32(alias, draw_bits(row.state, fanout + t0 + lane), (u32)row.n) : 0;
    bool out = row.x0 < row.x1 && row.is_excluded(g, spare);
    for (u32 t = 0; t < 32 && t0 + t < spares && open; t++) {
      u32 pick = __shfl_sync(~0u, spare, t), refused = __shfl_sync(~0u, out, t);
      // What is open equals a choice that is not, or is excluded.
      if (__any_sync(~0u, refused || (!g.replace && mine && p == pick))) continue;
      if (lane == __ffs(open) - 1) own[lane] = p = pick;
      open &= open - 1;
    }
  }
  __syncwarp();
  if (open) weighted_left(g, own, open, row.state, row.start, row.n, fanout, row.x0, row.x1);
}

// The same for any fanout: they stand in a list of so many bits, which is that of edge ids.
__device__ __forceinline__ void choose_many_by_weight(const HeteroRows& g, const WeightedRow& row, void* list, u32 e0, u32 fanout) {
  if (g.in_parts()) weighted_part(g, list, g.out_edge_bits, e0, row.state, row.start, row.n, row.before, fanout, row.x0, row.x1);
  else weighted_wide(g, list, e0, row.state, row.start, row.n, fanout, row.x0, row.x1);
}

// The factors of a row, by a warp, whose choices stand in a list from c0 on.
__device__ __noinline__ void factors_by_weight(const HeteroRows& g, void* choices, u32 bits, u32 c0, void* factors, u32 e0,
                                               const WeightedRow& row, u32 fanout) {
  u64 start = row.start, n = row.n, before = g.in_parts() ? row.before : 0;
  u64 total = weight_of_row(g, start, n, row.x0, row.x1, before);
  __syncwarp();
  DrawnRow<HeteroRows>{g,         choices, factors, bits, c0, e0, fanout, row.state, start, n, total, Sums64{g.sums + start, before},
                      g.in_parts()}
      .all_factors();
}

// The factors of the tile's rows that give all, or have drawn uniformly: a warp a row, and the block one of a hub.
// Those that have drawn by weight have theirs by then.
__device__ __noinline__ void uniform_factors(const HeteroAllShared& s, u32 count, long long fanout) {
  for (u32 turn = 0; turn < 2; turn++) {
    u32 rows = turn ? 1 : HETERO_WARPS, own = turn ? 0 : threadIdx.x >> 5, step = turn ? THREADS : 32;
    for (u32 row = own; row < count; row += rows) {
      u64 take = s.takes[row];
      bool whole = gives_all(s.graph, s.degrees[row], fanout);
      if ((take >= HETERO_HUB) != (turn == 1) || (!whole && s.graph.alias)) continue;
      float factor = whole ? 1.0f : uniform_factor(s.degrees[row], (u64)fanout);
      for (u64 j = threadIdx.x % step; j < take; j += step) put(s.factors, s.offsets[row] + j, factor);
    }
  }
}
