// The check and number phases of a block of neighbor.cu: it numbers the nodes of a hop by first
// occurrence.
#pragma once
#include "neighbor/draw.cuh"

template <typename I, Kind KIND>
struct Numbering : Drawing<I, KIND> {
  using D = Drawing<I, KIND>;
  using D::ANY, D::BINS, D::TREES;
  using D::a, D::b, D::s, D::exchanges, D::n, D::base, D::first, D::slots, D::binned, D::settled, D::asked, D::asked_edges;
  using D::count, D::look, D::note, D::row_nodes, D::row_of, D::sums, D::take, D::warp_total;
  using D::Drawing;

  // The lowest rank at which v, found by edge e, occurred; its number where it has one.
  __device__ __forceinline__ u32 lowest(I v, u32 e) const {
    if (TREES) return (u32)look(__ldcg(slots + e));
    if (!BINS && v < 0) return (u32)(-1 - (long long)v);  // gather() has seen its number
    return BINS && binned ? __ldcg(a.answers + e) : (u32)look((u64)v);
  }
  // What stands for the number of an edge's vertex that is not new with it.
  __device__ __forceinline__ I ask(u32 rank) const { return rank < base ? (I)rank : (I)(-1 - (long long)(rank - base)); }

  // What the first warps found before the last exchange.
  __device__ __forceinline__ u32 found_by(u32 warps) const {
    u32 lane = threadIdx.x & 31;
    return (u32)warp_sum(lane < warps ? s.sums[(exchanges - 1) & 1].parts[0][lane] : 0);
  }

  __device__ __forceinline__ void give(I* ids, u32 e, u32 id, I v, ulonglong2 row, I* nodes, I* trees, bool last) {
    nodes[id] = v;
    ids[e] = (I)id;
    u64 word = (u64)v;
    if (TREES) {
      word = slots[e];
      if (last) trees[id] = (I)tree_of(a, word);
      else a.trees[id] = tree_of(a, word);
    }
    if (last) return;
    b.rows[id] = row;
    if (!BINS || !binned) note(word, id);
  }

  // Gives the edges that ask another edge its number, once a meeting has come after number().
  __device__ __forceinline__ void settle() {
    Slice mine = slice(asked_edges, 32);
#pragma unroll 1
    for (u32 e0 = mine.lo + threadIdx.x; e0 < mine.hi; e0 += BATCH * THREADS) {
      I id[BATCH];
      bool is[BATCH];
#pragma unroll
      for (u32 c = 0; c < BATCH; c++) {
        id[c] = e0 + c * THREADS < mine.hi ? asked[e0 + c * THREADS] : 0;
        is[c] = id[c] < 0;
      }
#pragma unroll
      for (u32 c = 0; c < BATCH; c++)
        if (is[c]) id[c] = asked[-1 - (long long)id[c]];
#pragma unroll
      for (u32 c = 0; c < BATCH; c++)
        if (is[c]) asked[e0 + c * THREADS] = id[c];
    }
  }

  // Numbers the first occurrences among ids[0, edges), which hold original ids that have been claimed,
  // and replaces each id by its number, or by -1 - e where edge e has, or will have, the number. In the
  // last hop the vertices go to `end`, which has room for so many, their trees behind them; else reads the new rows and returns
  // who draws what in the next hop, which has that fanout. Where there is no room, n says so.
  __device__ __forceinline__ Rows number(I* ids, u32 edges, u32 full, long long fanout, I* end, u64 room) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    bool last = end != nullptr;
    Slice mine = slice(edges, 32);
    u32 step = ((mine.hi - mine.lo) / WARPS + 32) & ~31u;
    u32 from = min(mine.lo + warp * step, mine.hi), to = min(from + step, mine.hi);
    // Small hops, for all blocks alike: what is read before the exchange waits in registers, and one
    // exchange tells both the numbers and the edges of the next hop.
    bool small = edges / gridDim.x + 32 < THREADS * KEPT;
    Slice old = last || (ANY && a.only_new) ? Slice{0, 0} : slice(n, 1);
    u32 old_edges = last ? 0 : count(old, fanout), found = 0;
    I kept[KEPT];
    ulonglong2 row[KEPT];
    u32 mask[KEPT];
    u64 takes = 0;
    if (small) {
      u32 rank[KEPT];
#pragma unroll
      for (u32 c = 0; c < KEPT; c++) kept[c] = from + 32 * c + lane < to ? ids[from + 32 * c + lane] : 0;
#pragma unroll
      for (u32 c = 0; c < KEPT; c++) {
        u32 e = from + 32 * c + lane;
        rank[c] = e < to ? lowest(kept[c], e) : ~0u;
      }
#pragma unroll
      for (u32 c = 0; c < KEPT; c++) {
        bool first = rank[c] == base + from + 32 * c + lane;
        row[c] = first && !last ? row_of((u64)kept[c]) : make_ulonglong2(0, 0);
      }
#pragma unroll
      for (u32 c = 0; c < KEPT; c++) {
        u32 e = from + 32 * c + lane;
        bool first = rank[c] == base + e;
        if (e < to && !first) ids[e] = ask(rank[c]);
        if (first && !last) takes += take(row[c].y, fanout);
        mask[c] = __ballot_sync(~0u, first);
        found += __popc(mask[c]);
      }
    } else {
#pragma unroll 1
      for (u32 e0 = from; e0 < to; e0 += 32 * BATCH) {
        I v[BATCH];
        u32 rank[BATCH];
#pragma unroll
        for (u32 c = 0; c < BATCH; c++) v[c] = e0 + 32 * c + lane < to ? ids[e0 + 32 * c + lane] : 0;
#pragma unroll
        for (u32 c = 0; c < BATCH; c++) {
          u32 e = e0 + 32 * c + lane;
          rank[c] = e < to ? lowest(v[c], e) : ~0u;
        }
#pragma unroll
        for (u32 c = 0; c < BATCH; c++) {
          u32 e = e0 + 32 * c + lane;
          bool first = rank[c] == base + e;
          if (e < to && !first) ids[e] = ask(rank[c]);
          u32 firsts = __ballot_sync(~0u, first);
          if (lane == 0 && e < to) b.firsts[e >> 5] = firsts;
          found += __popc(firsts);
        }
      }
    }
    // A full bin makes a sum too large.
    Sums all = sums(found, small ? warp_total(takes) : 0, __any_sync(~0u, full) ? TOO_MUCH : old_edges);
    settle();
    if (all.total[2] == TOO_MUCH) return Rows{0, 0, 0, 0, 0, 0, TOO_MUCH};
    u32 fresh_lo = n + all.before[0], fresh_count = found_by(WARPS), next = fresh_lo + found_by(warp);
    u32 numbered = n + all.total[0];
    if (numbered > (last ? room : b.row_capacity)) {
      n = numbered;
      return Rows{};
    }
    I *nodes = last ? end : row_nodes(), *trees = end + align64((u64)numbered * sizeof(I)) / sizeof(I);
    takes = 0;
    if (small) {
#pragma unroll
      for (u32 c = 0; c < KEPT; c++) {
        if (mask[c] >> lane & 1)
          give(ids, from + 32 * c + lane, next + __popc(mask[c] & ((1u << lane) - 1)), kept[c], row[c], nodes, trees, last);
        next += __popc(mask[c]);
      }
    } else {
#pragma unroll 1
      for (u32 e0 = from; e0 < to; e0 += 32 * BATCH) {
        I v[BATCH];
        u32 firsts[BATCH];
        ulonglong2 of[BATCH];
#pragma unroll
        for (u32 c = 0; c < BATCH; c++) firsts[c] = e0 + 32 * c < to ? b.firsts[(e0 >> 5) + c] : 0;
#pragma unroll
        for (u32 c = 0; c < BATCH; c++)
          if (firsts[c] >> lane & 1) v[c] = ids[e0 + 32 * c + lane];
#pragma unroll
        for (u32 c = 0; c < BATCH; c++)
          if (firsts[c] >> lane & 1 && !last) of[c] = row_of((u64)v[c]);
#pragma unroll
        for (u32 c = 0; c < BATCH; c++) {
          if (firsts[c] >> lane & 1) {
            if (!last) takes += take(of[c].y, fanout);
            give(ids, e0 + 32 * c + lane, next + __popc(firsts[c] & ((1u << lane) - 1)), v[c], of[c], nodes, trees, last);
          }
          next += __popc(firsts[c]);
        }
      }
    }
    if (last) {
      Slice mine = slice(n, 32);
      for (u32 i = mine.lo + threadIdx.x; i < mine.hi; i += THREADS) {
        end[i] = row_nodes()[i];
        if (TREES) trees[i] = (I)a.trees[i];
      }
    }
    if (ANY && a.only_new) first = n;
    n = numbered;
    settled = small ? base : base + edges;  // the second exchange of a large hop comes after its numbers
    base += edges;
    asked = ids;
    asked_edges = edges;
    if (last) return Rows{};
    if (small) {
      __syncthreads();  // other threads of the block draw the rows
      return rows_of(old, all.before[2], fresh_lo, fresh_count, all.total[2], all.before[1], all.total[1]);
    }
    u32 old_at = all.before[2], old_total = all.total[2];
    // Large hops deal all rows anew, once all have been read.
    bool anew = n - first > LARGE_HOP;
    Slice part = anew ? slice(n - first, 1) : old;
    if (anew) part.lo += first, part.hi += first;
    if (anew) grid_barrier(s.meeting);
    all = sums(anew ? count(part, fanout) : warp_total(takes), 0, 0);
    if (!anew) return rows_of(old, old_at, fresh_lo, fresh_count, old_total, all.before[0], all.total[0]);
    return Rows{part.lo, part.hi - part.lo, all.before[0], 0, 0, 0, all.total[0]};
  }

  __device__ __forceinline__ static Rows rows_of(Slice old, u32 old_at, u32 fresh_lo, u32 fresh_count, u32 old_total,
                                                 u32 fresh_before, u32 fresh_total) {
    return Rows{old.lo, old.hi - old.lo, old_at, fresh_lo, fresh_count, old_total + fresh_before,
                at_most((u64)old_total + fresh_total)};
  }
};
