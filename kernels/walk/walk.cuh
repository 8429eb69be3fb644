// Random walks: the draws and the reads of a step. walk.cu describes the kernels.
#pragma once
#include "common/choose.cuh"
#include "common/grid.cuh"

// Mirrors walkArgs in internal/engine/cuda/walk.go; loading compares the sizes.
struct WalkArgs {
  const void* seeds;
  char* out;       // the walks; layout of walk.Rule.Words
  u64* report;     // in memory that the host sees; the words that describe the walks are there already
  u32* arrived;    // the meetings' counter
  u64* bad_seed;   // the lowest seed out of range; ~0 if none
  const void *indptr, *indices, *edge_ids;
  const u64 *alias, *sums;  // per edge, of a graph with weights: rng.Weights
  const uint4* packed;      // per edge what a step needs, 16 bytes, or 32 with weights; walk.cu says what
  const u32* offsets;       // where rows begin, and the last ends; null: as indptr says
  const u32* filter;        // of the edges of the transposed graph; null: none
  const void *back_indptr, *back_indices;  // the transposed graph, rows sorted
  u64 walks, num_rows, num_nodes, back_rows;
  u64 lengths_at, nodes_at, edges_at;  // edges_at 0: nobody asks for them
  u64 slots_at, top_at, visits_at;     // of walks of several roots; of visits
  // What coins of 63 bits are compared with, and what node2vec weighs by: walk.Chances.
  u64 stop, restart, accept_back, accept_common, accept_far;
  double of_back, of_far, bound, extra;
  u64 filter_words;
  u64 first_walk;  // as walk.Rule has it
  u32 per_seed, length, kinds, path_length, jumps;
  u32 filled;            // -1 stands wherever no walk has come
  u32 per_block;         // walks that a block has under way, at most its threads
  u32 every, top, roots;  // as walk.Rule has them, but for every, which is at least 1
  u32 stop_every;         // steps between two chances to stop, of which the first is then no one; 0: each step has one
  u32 seed_bits, indptr_bits, edge_id_bits, out_edge_bits, back_indptr_bits;
  u32 key0, key1, batch0, batch1;
  unsigned short path[MOST_PATH];
};

// The word of a pair of vertices in a filter, and its bits there. A pair that has been put in has all of
// them; of 8 bits an edge, about one other pair in thirty has them too.
struct FilterBits {
  u64 word;
  u32 bits;
};
__device__ __forceinline__ FilterBits filter_bits(u64 t, u64 x, u64 words) {
  u64 h = mix(mix(t + GOLDEN) ^ x);
  return FilterBits{below(h, words), 1u << (h & 31) | 1u << (h >> 5 & 31) | 1u << (h >> 10 & 31)};
}

// What a kernel leaves out: FIRST: stops, restarts, metapaths, and where a walk came from. SECOND has all.
enum WalkKind { PLAIN, FIRST, SECOND };

__device__ __forceinline__ u64 coin(u64 draw) { return draw >> 1; }

// Whether the coin of stopping is tossed before a step. Go twin: walk.Rule.MayStop.
__device__ __forceinline__ bool may_stop(const WalkArgs& a, u32 step) {
  return a.stop_every == 0 || (step && step % a.stop_every == 0);
}

// By one thread of a block, once the block has done what it does: the last block reports.
__device__ __forceinline__ void walks_report(const WalkArgs& a) {
  Meeting meeting{a.arrived, 0};
  if (!meeting.come_last()) return;
  u64 bad = load_relaxed(a.bad_seed);
  a.report[REPORT_DETAIL] = bad;
  __threadfence_system();
  *(volatile u64*)(a.report + REPORT_STATUS) = bad == ~0ull ? STATUS_OK : STATUS_SEED_OUT_OF_RANGE;
}

// Where a walk is: the row of its edges. Packed rows have fewer than 2^32 edges in all.
template <bool PACKED>
struct Row {
  u64 start, degree;
};
template <>
struct Row<true> {
  u32 start, degree;
};

// An edge that a step may take: where it stands, where it leads, and with a packed graph the row there.
template <bool PACKED>
struct Step {
  u64 at, to;
};
template <>
struct Step<true> {
  u32 at, to, id;
  Row<true> row;
};

// The steps of a graph. I: int or long long, of ids.
template <typename I, bool PACKED, bool WEIGHTED>
struct Steps {
  const WalkArgs& a;

  __device__ __forceinline__ Row<PACKED> row_of(u64 v, u32 kind) const {
    u64 r = v * a.kinds + kind;
    Row<PACKED> row;
    row.start = 0, row.degree = 0;
    if (r < a.num_rows && !PACKED && a.offsets) {
      u32 start = __ldg(a.offsets + r);
      row.start = start, row.degree = __ldg(a.offsets + r + 1) - start;
    } else if (r < a.num_rows) {
      u64 start = read(a.indptr, a.indptr_bits, r);
      row.start = start, row.degree = read(a.indptr, a.indptr_bits, r + 1) - start;
    }
    return row;
  }

  // The edge that a draw takes by its weight: one product gives slot and coin. Go twin: rng.Weights.At.
  __device__ __forceinline__ Step<PACKED> propose(const Row<PACKED>& row, u64 draw) const {
    Step<PACKED> s;
    if constexpr (PACKED && WEIGHTED) {
      u32 slot = below(draw, row.degree), toss = (u32)(draw * row.degree >> 32);
      const uint4* e = a.packed + 2 * (u64)(row.start + slot);
      uint4 x = __ldg(e), y = __ldg(e + 1);
      bool own = toss < x.x;
      s.at = row.start + (own ? slot : y.w);
      s.to = own ? x.y : y.x;
      s.row.start = own ? x.z : y.y, s.row.degree = own ? x.w : y.z;
    } else if constexpr (PACKED) {
      s.at = row.start + below(draw, row.degree);
      uint4 x = __ldg(a.packed + s.at);
      s.to = x.x, s.row.start = x.y, s.row.degree = x.z, s.id = x.w;
    } else if constexpr (WEIGHTED) {
      u64 slot = below(draw, row.degree);
      u64 entry = a.alias[row.start + slot];
      s.at = row.start + ((u32)(draw * row.degree >> 32) < (u32)entry ? slot : entry >> 32);
      s.to = (u64)((const I*)a.indices)[s.at];
    } else {
      s.at = row.start + below(draw, row.degree);
      s.to = (u64)((const I*)a.indices)[s.at];
    }
    return s;
  }

  // The edge at a place.
  __device__ __forceinline__ Step<PACKED> edge(u64 at) const {
    Step<PACKED> s;
    s.at = at;
    if constexpr (PACKED && !WEIGHTED) {
      uint4 x = a.packed[at];
      s.to = x.x, s.row.start = x.y, s.row.degree = x.z, s.id = x.w;
    } else {
      s.to = (u64)((const I*)a.indices)[at];
      if constexpr (PACKED) s.row = row_of(s.to, 0);
    }
    return s;
  }

  __device__ __forceinline__ u64 id_of(const Step<PACKED>& s) const {
    if constexpr (PACKED && !WEIGHTED)
      if (a.out_edge_bits == 32) return s.id;
    return a.edge_id_bits ? read(a.edge_ids, a.edge_id_bits, s.at) : s.at;
  }

  // ---- node2vec ------------------------------------------------------------------------------

  // The first of n sorted ids from `at` on that is not below v.
  __device__ u64 lower(const I* ids, u64 at, u64 n, u64 v) const {
    while (n) {
      u64 half = n / 2;
      if ((u64)ids[at + half] < v) at += half + 1, n -= half + 1;
      else n = half;
    }
    return at;
  }
  // Whether an edge leads from x to t.
  __device__ bool adjacent(u64 t, u64 x) const {
    if (t >= a.back_rows) return false;
    if (a.filter) {
      FilterBits f = filter_bits(t, x, a.filter_words);
      if ((__ldg(a.filter + f.word) & f.bits) != f.bits) return false;
    }
    const I* ids = (const I*)a.back_indices;
    u64 start = read(a.back_indptr, a.back_indptr_bits, t), end = read(a.back_indptr, a.back_indptr_bits, t + 1);
    u64 at = lower(ids, start, end - start, x);
    return at < end && (u64)ids[at] == x;
  }
  // What n edges of a row from `at` on weigh. Go twin: unit.weight.
  __device__ __forceinline__ u64 weight(const Row<PACKED>& row, u64 at, u64 n) const {
    if (!WEIGHTED || n == 0) return n;
    return a.sums[at + n - 1] - (at == row.start ? 0 : a.sums[at - 1]);
  }
  // The place in whose part of the weight of n edges a rank falls. Go twin: unit.rank.
  __device__ u64 ranked(const Row<PACKED>& row, u64 at, u64 n, u64 rank) const {
    if (!WEIGHTED) return at + rank;
    if (at > row.start) rank += a.sums[at - 1];
    while (n) {
      u64 half = n / 2;
      if (a.sums[at + half] <= rank) at += half + 1, n -= half + 1;
      else n = half;
    }
    return at;
  }
  // Go twin: walk.Chances.Area.
  __device__ u64 area(u64 back, u64 all) const {
    double beyond = __dmul_rn(a.extra, __ull2double_rn(back)), rest = __dmul_rn(__ull2double_rn(all), a.bound);
    return __double2ull_rz(__dmul_rn(__ddiv_rn(beyond, __dadd_rn(rest, beyond)), 0x1p63));
  }
  // Go twin: walk.Chances.Class.
  __device__ u32 class_of(u64 draw, u64 back, u64 common, u64 far) const {
    double first = __dmul_rn(a.of_back, __ull2double_rn(back)), second = __dadd_rn(first, __ull2double_rn(common));
    double total = __dadd_rn(second, __dmul_rn(a.of_far, __ull2double_rn(far)));
    double x = __dmul_rn(__dmul_rn(__ull2double_rn(draw >> 11), 0x1p-53), total);
    if (x < first) return 0;
    if (x < second && common) return 1;
    return far ? 2 : common ? 1 : 0;
  }
  __device__ u32 class_at(u64 at, u64 t) const {
    u64 x = (u64)((const I*)a.indices)[at];
    return x == t ? 0 : adjacent(t, x) ? 1 : 2;
  }

  // An edge by what all edges of the row weigh, where no try was accepted. Go twin: unit.finish.
  __device__ __noinline__ u64 finish(Row<PACKED> row, u64 draw, u64 t) const {
    u64 sums[3] = {0, 0, 0};
    for (u64 i = 0; i < row.degree; i++) sums[class_at(row.start + i, t)] += weight(row, row.start + i, 1);
    u32 chosen = class_of(draw_bits(draw, CLASS_DRAW), sums[0], sums[1], sums[2]);
    u64 rank = below(draw_bits(draw, RANK_DRAW), sums[chosen]), at = row.start;
    for (;; at++) {
      if (class_at(at, t) != chosen) continue;
      u64 w = weight(row, at, 1);
      if (rank < w) return at;
      rank -= w;
    }
  }

  // The edge of a step that came from t by an edge. Go twin: unit.chooseSecond.
  __device__ __forceinline__ Step<PACKED> second(const Row<PACKED>& row, u64 draw, u64 t) const {
    return second(row, draw, t, [&](u64 proposal) { return propose(row, proposal); });
  }
  // Likewise, of a row whose edges are proposed in a way of the caller's.
  template <typename Propose>
  __device__ __forceinline__ Step<PACKED> second(const Row<PACKED>& row, u64 draw, u64 t, const Propose& proposed) const {
    if (row.degree == 1) return edge(row.start);
    u64 back = 0, backs = 0, share = 0;
    if (a.extra > 0) {
      const I* ids = (const I*)a.indices;
      back = lower(ids, row.start, row.degree, t);
      backs = lower(ids, back, row.start + row.degree - back, t + 1) - back;
      if (backs) share = area(weight(row, back, backs), weight(row, row.start, row.degree));
    }
    u64 surely = min(a.accept_common, a.accept_far), never = max(a.accept_common, a.accept_far);
    for (u32 k = FIRST_TRY; k < FIRST_TRY + TRY_DRAWS * TRIES; k += TRY_DRAWS) {
      u64 proposal = draw_bits(draw, k);
      if (share && coin(draw_bits(draw, k + 2)) < share) return edge(ranked(row, back, backs, below(proposal, weight(row, back, backs))));
      Step<PACKED> s = proposed(proposal);
      u64 toss = coin(draw_bits(draw, k + 1));
      if (s.to == t) {
        if (toss < a.accept_back) return s;
      } else if (toss < surely) {
        return s;
      } else if (toss < never && toss < (adjacent(t, s.to) ? a.accept_common : a.accept_far)) {
        return s;
      }
    }
    return edge(finish(row, draw, t));
  }
};
