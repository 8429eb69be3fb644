// The L-hop uniform sampler in one cooperative persistent launch.
//
// Source: PGSampler, sections III-B and III-C: all hops in one kernel, persistent blocks. Unlike the
// paper's queue (queue.cu) the hops stay in phases here, since canonical numbering needs an order.
//
// Numbering by first occurrence without a sort. Every edge of a batch has a rank: the edges of earlier
// hops (the seeds count as a hop of their own), then the edge's position in its hop. A map of all
// vertices holds, under the launch's tag, the smallest rank at which a vertex occurred, found by
// atomicMin, and later the vertex's number. Ranks grow from hop to hop and numbers stay below them, so
// a claim of a later hop never displaces an earlier one.
//
// A map that no cache holds costs a read and a write of device memory for each claim and a read for
// each look. So large hops of large graphs are binned instead: each edge puts (vertex, rank) into one
// of some thousand bins, a hash of the vertex says which; then each bin is small enough for a table in
// shared memory, which answers every edge of the bin with its vertex's lowest rank. Vertices that have
// numbers go into the bins too. The map knows nothing of a binned hop, hence all later hops are binned.
//
// Phases of a hop, and what separates them:
//   draw    rows: choose, gather, claim                                              meeting
//   (answer bins                                                                     meeting)
//   check   edges, in equal slices: a first occurrence when the lowest rank is its
//           own, else the edge's number or the edge to ask for it; rows of the new
//           vertices are read                                                        sums
//   number  first occurrences get their numbers, in order
//   settle  (a hop later) edges that asked another edge get its number
// The sums tell each block its first new number and the place of its next rows' edges. A large hop
// reads the new rows only when it numbers them, and then needs sums of its own for the edges.
// The seeds are claimed as if they were distinct, as they nearly always are: then their numbers are
// their positions. Else they are numbered like a hop.
//
// Who draws which rows. The rows that a block has just numbered are the only ones whose place among
// the edges it knows without another exchange, so it draws them and an equal slice of the older rows.
// First occurrences are more frequent at the front of a hop, which makes these parts unequal: a large
// hop deals all rows anew, which costs one more exchange.
//
// Tags fall from launch to launch: an old entry is larger than any new one, so the map is never
// cleared. When they run out the host fills it with ones.
//
// Go caller: internal/cuda/neighbor.go. Go twin: internal/cpu/neighbor.go and rows.go.
#include "neighbor.cuh"

template <typename I>
struct Sampling {
  const Args& a;
  Shared& s;
  u32* scratch;  // dynamic shared memory: a tile's choices, (fanout | 1) words a row, or a bin's table
  Meeting meeting;
  u32 turns = 0, exchanges = 0;
  u64 n = 0;     // vertices numbered
  u64 base = 0;  // rank of the hop's first edge
  bool binned = false;
  // The hop whose edges may still ask another edge of it for their number.
  I* asked = nullptr;
  u64 asked_edges = 0;

  // The rows of a hop that a block draws: old ones from old_lo on, whose first edge in the hop is
  // old_at, and those that it has just numbered.
  struct Rows {
    u64 old_lo, old_count, old_at, fresh_lo, fresh_count, fresh_at, edges;
    bool read = false;  // by all blocks, before the last exchange
  };

  __device__ Sampling(const Args& a, Shared& s, u32* scratch) : a(a), s(s), scratch(scratch) { meeting.begin(a.arrived); }

  __device__ I* rows_nodes() const { return (I*)a.nodes; }
  __device__ static u64 share(u64 n, u32 block) { return n * block / gridDim.x; }

  __device__ Sums sums(u32 x, u32 y, u32 z) {
    u32 turn = exchanges++ & 1;
    return grid_sums(x, y, z, a.slots + turn * gridDim.x, meeting, s.sums[turn]);
  }

  __device__ u64 claim(u64 v, u64 rank) { return atomicMin(a.map + v, (u64)a.tag << 32 | rank); }

  __device__ void report(u64 status, u64 detail) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      a.report[1] = detail;
      __threadfence_system();
      a.report[0] = status;
    }
  }

  // ---- rows ----------------------------------------------------------------------------------

  __device__ u64 take(u64 degree, long long fanout, bool& whole) const {
    whole = fanout < 0 || degree == 0 || (!a.replace && degree <= (u64)fanout);
    return whole ? degree : (u64)fanout;
  }
  __device__ u32 taken(u64 degree, long long fanout) const {
    bool whole;
    return (u32)min(take(degree, fanout, whole), 1ull << 31);
  }

  // How many excluded positions are below p.
  __device__ u64 excluded_below(u64 p) const {
    u64 lo = 0, hi = a.num_excluded;
    while (lo < hi) {
      u64 middle = (lo + hi) / 2;
      if (a.excluded[middle] < p) lo = middle + 1;
      else hi = middle;
    }
    return lo;
  }
  // The CSC position of the pick-th edge of a row that is not excluded.
  __device__ u64 position(u64 start, u64 pick) const {
    if (a.num_excluded == 0) return start + pick;
    u64 first = excluded_below(start), lo = first, hi = a.num_excluded;
    // excluded[i] has excluded[i] - start - (i - first) kept edges of the row before it.
    while (lo < hi) {
      u64 middle = (lo + hi) / 2;
      if (a.excluded[middle] - start - (middle - first) <= pick) lo = middle + 1;
      else hi = middle;
    }
    return start + pick + (lo - first);
  }

  // First position and degree of vertex v.
  __device__ ulonglong2 row_of(u64 v) const {
    if (v >= a.num_rows) return make_ulonglong2(0, 0);
    u64 start = read(a.indptr, a.indptr_bits, v), end = read(a.indptr, a.indptr_bits, v + 1), degree = end - start;
    if (a.num_excluded) degree -= excluded_below(end) - excluded_below(start);
    return make_ulonglong2(start, degree);
  }

  // How many edges the thread's share of the rows [lo, hi), read before, gives; a warp's sum.
  __device__ u32 count(u64 lo, u64 hi, long long fanout) const {
    u64 edges = 0;
    for (u64 r = lo + threadIdx.x; r < hi; r += THREADS) edges += taken(a.rows[r].y, fanout);
    return many(edges);
  }
  // The warp's sum, or anything from 2^31 on.
  __device__ static u32 many(u64 x) { return (u32)min(warp_sum((u32)min(x, 1ull << 31)), 1ull << 31); }

  // ---- seeds ---------------------------------------------------------------------------------

  // Claims the seeds as if they were distinct, so that each number is its position, and reads their
  // rows. The claims tell whether they were: the second of two equal ones meets the first.
  __device__ Rows seeds(I* index, I* given, long long fanout) {
    u64 lo = slice_begin(a.num_seeds), hi = slice_end(a.num_seeds);
    u64 takes = 0;
    u32 repeated = 0;
    for (u64 i = lo + threadIdx.x; i < hi; i += THREADS) {
      u64 v = read(a.seeds, a.seed_bits, i);
      if (v >= a.num_nodes) {
        atomicMin(a.bad_seed, i);
        v = 0;  // any vertex: the batch will be refused
      }
      if (claim(v, i) >> 32 == a.tag) repeated = 1;
      ulonglong2 row = row_of(v);
      takes += taken(row.y, fanout);
      given[i] = (I)v;
      index[i] = (I)i;
      rows_nodes()[i] = (I)v;
      a.rows[i] = row;
    }
    Sums all = sums(many(takes), __any_sync(~0u, repeated), 0);
    if (all.total[1] == 0) {
      n = base = a.num_seeds;
      return Rows{0, 0, 0, lo, hi - lo, all.before[0], all.total[0]};
    }
    for (u64 i = lo + threadIdx.x; i < hi; i += THREADS) index[i] = given[i];
    __syncthreads();
    return number(index, a.num_seeds, 0, fanout);
  }

  // ---- choices -------------------------------------------------------------------------------

  __device__ void store_edge_id(void* edge_ids, u64 e, u64 position) const {
    u64 id = a.edge_id_bits ? read(a.edge_ids, a.edge_id_bits, position) : position;
    if (a.out_edge_bits == 32) ((int*)edge_ids)[e] = (int)id;
    else ((long long*)edge_ids)[e] = (long long)id;
  }

  // Puts a pair into its bin; pairs beyond the room are counted alone.
  __device__ void append(u64 v, u64 rank, u32 bin_bits) {
    u32 bin = (u32)((u32)v * 2654435769u) >> (32 - bin_bits), at = atomicAdd(a.fills + bin, 1u);
    if (at < BIN_ROOM) a.pairs[(u64)bin * BIN_ROOM + at] = v << 32 | rank;
  }

  __device__ void gather(I* ids, void* edge_ids, u64 e, u64 start, u64 pick, u32 bin_bits) {
    u64 p = position(start, pick);
    I v = ((const I*)a.indices)[p];
    ids[e] = v;
    store_edge_id(edge_ids, e, p);
    if (bin_bits) append((u64)v, base + e, bin_bits);
    else claim((u64)v, base + e);
  }

  // Choice j of Robert Floyd's algorithm, from the draws of the row, without making the choices before
  // it: a draw gives way to the largest position of its step, top, when it was chosen before. It was if
  // an earlier draw is equal; else only if it is the top of an earlier step which gave way.
  __device__ u32 floyd(const u32* draws, u32 j, u32 first_top) const {
    for (u32 k = j;;) {
      u32 t = draws[k];
      bool met = false;
      for (u32 i = 0; i < k; i++) met |= draws[i] == t;
      if (met) return first_top + j;
      if (t < first_top || t - first_top >= k) return draws[j];
      k = t - first_top;
    }
  }

  // Floyd's algorithm, one warp a row, for fanouts beyond DIRECT: the choices stand where the edge ids
  // will, which are wide enough for any position.
  __device__ void choose_wide(void* edge_ids, u64 e0, u64 state, u64 degree, u64 fanout) const {
    u32 lane = threadIdx.x & 31;
    for (u64 j = 0; j < fanout; j++) {
      u64 top = a.replace ? degree - 1 : degree - fanout + j, t = draw_below(state, (u32)j, top + 1);
      bool met = false;
      for (u64 i = lane; !a.replace && i < j; i += 32) met |= read(edge_ids, a.out_edge_bits, e0 + i) == t;
      if (__any_sync(~0u, met)) t = top;
      if (lane == 0) {
        if (a.out_edge_bits == 32) ((int*)edge_ids)[e0 + j] = (int)t;
        else ((long long*)edge_ids)[e0 + j] = (long long)t;
      }
      __syncwarp();
    }
  }

  // The tile's rows one by one, a warp each, or the whole block for a whole row of a hub.
  __device__ void draw_wide(u32 count, long long fanout, I* ids, void* edge_ids, u32 bin_bits) {
    const u64 HUB = 8192;
    u32 lane = threadIdx.x & 31;
    for (u32 row = threadIdx.x >> 5; row < count; row += WARPS) {
      u64 take = s.takes[row], degree = s.degrees[row], e0 = s.offsets[row], start = s.starts[row];
      bool whole;
      this->take(degree, fanout, whole);
      if (!whole) choose_wide(edge_ids, e0, s.states[row], degree, take);
      else if (take >= HUB) continue;
      for (u64 j = lane; j < take; j += 32)
        gather(ids, edge_ids, e0 + j, start, whole ? j : read(edge_ids, a.out_edge_bits, e0 + j), bin_bits);
    }
    for (u32 row = 0; row < count; row++) {
      u64 take = s.takes[row];
      bool whole;
      this->take(s.degrees[row], fanout, whole);
      if (whole && take >= HUB)
        for (u64 j = threadIdx.x; j < take; j += THREADS) gather(ids, edge_ids, s.offsets[row] + j, s.starts[row], j, bin_bits);
    }
  }

  // The tile's rows at once: a thread for each draw, then one for each edge. A row's draws lie together
  // in shared memory, and rows an odd number of words apart, against bank conflicts.
  __device__ void draw_narrow(u32 count, u32 fanout, I* ids, void* edge_ids, u32 bin_bits) {
    u32 stride = fanout | 1;
    // q / fanout by a multiplication, exact for q below 2^16: q < THREADS * DIRECT.
    u32 reciprocal = 0xFFFFFFFFu / fanout + 1, draws = count * fanout;
    for (u32 q = threadIdx.x; q < draws; q += THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
      u64 degree = s.degrees[row];
      bool whole;
      take(degree, fanout, whole);
      u64 below = a.replace ? degree : degree - fanout + j + 1;
      scratch[row * stride + j] = whole ? j : (u32)draw_below(s.states[row], j, below);
    }
    __syncthreads();
    for (u32 q = threadIdx.x; q < draws; q += THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
      if (j >= s.takes[row]) continue;
      u64 degree = s.degrees[row];
      bool whole;
      take(degree, fanout, whole);
      const u32* own = scratch + row * stride;
      u32 pick = whole || a.replace ? own[j] : floyd(own, j, (u32)degree - fanout);
      gather(ids, edge_ids, s.offsets[row] + j, s.starts[row], pick, bin_bits);
    }
  }

  __device__ void draw(const Stream& stream, const Rows& rows, long long fanout, I* indptr, I* ids, void* edge_ids,
                       u32 bin_bits) {
    // A choice is 32 bits wide in shared memory.
    bool narrow = fanout > 0 && fanout <= DIRECT && a.num_edges >> 32 == 0;
    u64 at = rows.old_at, jump = rows.fresh_at - rows.old_at, old_edges = 0;
    u64 count = rows.old_count + rows.fresh_count;
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u64 i0 = 0; i0 < count; i0 += THREADS) {
      u64 i = i0 + threadIdx.x;
      bool old = i < rows.old_count;
      u64 r = old ? rows.old_lo + i : rows.fresh_lo + (i - rows.old_count);
      u32 in_tile = (u32)min((u64)THREADS, count - i0), takes = 0;
      ulonglong2 row = make_ulonglong2(0, 0);
      bool whole = true;
      if (i < count) {
        row = a.rows[r];
        takes = (u32)take(row.y, fanout, whole);
        if (!whole) s.states[threadIdx.x] = row_state(stream, (u64)rows_nodes()[r]);
      }
      // Old rows' edges first, then, after a gap of jump, those of the fresh ones.
      u32 all, before = lanes_before(takes, all), turn = turns++ & 1;
      u32 old_here = (u32)warp_sum(old ? takes : 0);
      if (lane == 0) s.parts[turn][0][warp] = all, s.parts[turn][1][warp] = old_here;
      __syncthreads();
      u32 part = lane < WARPS ? s.parts[turn][0][lane] : 0, old_part = lane < WARPS ? s.parts[turn][1][lane] : 0;
      u64 tile = warp_sum(part), warps_before = warp_sum(lane < warp ? part : 0);
      old_edges += warp_sum(old_part);
      u64 offset = at + warps_before + before;
      if (!old) offset += jump - old_edges;
      if (i < count) indptr[r] = (I)offset;
      s.starts[threadIdx.x] = row.x;
      s.degrees[threadIdx.x] = row.y;
      s.offsets[threadIdx.x] = offset;
      s.takes[threadIdx.x] = takes;
      __syncthreads();
      if (narrow) draw_narrow(in_tile, (u32)fanout, ids, edge_ids, bin_bits);
      else draw_wide(in_tile, fanout, ids, edge_ids, bin_bits);
      at += tile;
      __syncthreads();
    }
  }

  // ---- bins ----------------------------------------------------------------------------------

  // 2^bits bins for so many pairs: at most two thirds of their room is used if vertices are distinct.
  __device__ u32 bits_for(u64 pairs) const {
    u32 bits = 1;
    while (bits < 31 && pairs > (u64)(BIN_ROOM * 5 / 8) << bits) bits++;
    return bits;
  }

  // The vertices numbered so far go into the bins beside the hop's edges, with their numbers as ranks.
  __device__ void append_numbered(u32 bin_bits) {
    for (u64 i = share(n, blockIdx.x) + threadIdx.x, hi = share(n, blockIdx.x + 1); i < hi; i += THREADS)
      append((u64)rows_nodes()[i], i, bin_bits);
  }

  // Finds the lowest rank of every vertex, bin by bin, in a table in shared memory, and answers every
  // edge. Returns whether a bin of the block's had no room.
  __device__ u32 answer(u32 bin_bits) {
    u32 *keys = scratch, *ranks = scratch + BIN_TABLE, full = 0;
    const u32 NONE = ~0u, EACH = BIN_ROOM / THREADS;
    for (u32 bin = blockIdx.x; bin < 1u << bin_bits; bin += gridDim.x) {
      u32 fill = __ldcg(a.fills + bin);
      if (fill > BIN_ROOM) full = 1, fill = BIN_ROOM;
      for (u32 i = threadIdx.x; i < 2 * BIN_TABLE; i += THREADS) scratch[i] = NONE;
      u64 pair[EACH];
      u32 place[EACH];
#pragma unroll
      for (u32 c = 0; c < EACH; c++) {
        u32 i = c * THREADS + threadIdx.x;
        if (i < fill) pair[c] = __ldcg(a.pairs + (u64)bin * BIN_ROOM + i);
      }
      __syncthreads();
      if (threadIdx.x == 0) a.fills[bin] = 0;
#pragma unroll
      for (u32 c = 0; c < EACH; c++) {
        if (c * THREADS + threadIdx.x >= fill) continue;
        u32 v = (u32)(pair[c] >> 32), at = (v * 2246822519u) >> 19;
        for (;; at = (at + 1) & (BIN_TABLE - 1)) {
          u32 old = atomicCAS(keys + at, NONE, v);
          if (old == NONE || old == v) break;
        }
        atomicMin(ranks + at, (u32)pair[c]);
        place[c] = at;
      }
      __syncthreads();
#pragma unroll
      for (u32 c = 0; c < EACH; c++)
        if (c * THREADS + threadIdx.x < fill && (u32)pair[c] >= base) a.answers[(u32)pair[c] - base] = ranks[place[c]];
      __syncthreads();
    }
    return full;
  }

  // ---- numbers -------------------------------------------------------------------------------

  // Numbers the first occurrences among ids[0, edges), which hold original ids that have been claimed,
  // and replaces each id by its number, or by -1 - e where edge e has, or will have, the number. Unless
  // it is the last hop (end given: where the batch's list of vertices goes), reads the new rows and
  // returns who draws what in the next hop, which has that fanout.
  __device__ Rows number(I* ids, u64 edges, u32 full, long long fanout, I* end = nullptr, u64 room = 0) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    bool last = end != nullptr;
    u64 lo = slice_begin(edges), hi = slice_end(edges), step = ((hi - lo + WARPS - 1) / WARPS + 31) & ~31ull;
    u64 from = min(lo + warp * step, hi), to = min(from + step, hi);
    // Small hops, for all blocks alike: what is read before the exchange waits in registers, and one
    // exchange tells both the numbers and the edges of the next hop.
    bool small = ((edges / gridDim.x + 64 + WARPS - 1) / WARPS + 31) / 32 <= KEPT;
    u64 old = last ? 0 : n, old_lo = share(old, blockIdx.x), old_hi = share(old, blockIdx.x + 1);
    u32 old_edges = last ? 0 : count(old_lo, old_hi, fanout), found = 0;
    I kept[KEPT];
    ulonglong2 row[KEPT];
    u32 mask[KEPT];
    u64 takes = 0;
    if (small) {
      u64 rank[KEPT];
#pragma unroll
      for (u32 c = 0; c < KEPT; c++) {
        u64 e = from + 32 * c + lane;
        kept[c] = e < to ? ids[e] : 0;
      }
#pragma unroll
      for (u32 c = 0; c < KEPT; c++) {
        u64 e = from + 32 * c + lane;
        rank[c] = e < to ? lowest(kept[c], e) : 0;
      }
#pragma unroll
      for (u32 c = 0; c < KEPT; c++) {
        u64 e = from + 32 * c + lane;
        bool first = e < to && rank[c] == base + e;
        row[c] = make_ulonglong2(0, 0);
        if (first && !last) row[c] = row_of((u64)kept[c]), takes += taken(row[c].y, fanout);
        mask[c] = __ballot_sync(~0u, first);
        found += __popc(mask[c]);
        if (e < to && !first) ids[e] = ask(rank[c]);
      }
    } else {
      for (u64 e0 = from; e0 < to; e0 += 32) {
        u64 e = e0 + lane;
        bool first = false;
        if (e < to) {
          u64 rank = lowest(ids[e], e);
          first = rank == base + e;
          if (!first) ids[e] = ask(rank);
        }
        u32 firsts = __ballot_sync(~0u, first);
        if (lane == 0) a.firsts[e0 >> 5] = firsts;
        found += __popc(firsts);
      }
    }
    // A full bin makes the sum of edges too large.
    Sums all = sums(found, small ? many(takes) : 0, __any_sync(~0u, full) ? 1u << 31 : old_edges);
    settle();
    if (binned && all.total[2] >> 31) return Rows{0, 0, 0, 0, 0, 0, all.total[2]};
    u64 fresh_lo = n + all.before[0], fresh_hi = fresh_lo + found_by(WARPS);
    u64 next = fresh_lo + found_by(warp);
    u64 numbered = n + all.total[0];
    if (numbered > (last ? room : a.row_capacity)) {
      n = numbered;  // the caller sees that it does not fit
      return Rows{};
    }
    I* nodes = last ? end : rows_nodes();
    takes = 0;
#pragma unroll
    for (u32 c = 0; c < KEPT; c++)
      if (small && mask[c] >> lane & 1) give(ids, from + 32 * c + lane, next + rank_in(c, mask, lane), kept[c], row[c], nodes, last);
    for (u64 e0 = from; !small && e0 < to; e0 += 32) {
      u32 firsts = a.firsts[e0 >> 5];
      if (firsts >> lane & 1) {
        I v = ids[e0 + lane];
        ulonglong2 of = last ? make_ulonglong2(0, 0) : row_of((u64)v);
        takes += taken(of.y, fanout);
        give(ids, e0 + lane, next + __popc(firsts & ((1u << lane) - 1)), v, of, nodes, last);
      }
      next += __popc(firsts);
    }
    if (last)
      for (u64 i = share(n, blockIdx.x) + threadIdx.x, top = share(n, blockIdx.x + 1); i < top; i += THREADS) end[i] = rows_nodes()[i];
    n = numbered;
    base += edges;
    asked = ids;
    asked_edges = edges;
    if (last) return Rows{0, 0, 0, 0, 0, 0, all.total[2]};
    u64 old_at = all.before[2], old_total = all.total[2];
    if (!small) {
      all = sums(many(takes), 0, 0);
      return Rows{old_lo, old_hi - old_lo, old_at, fresh_lo, fresh_hi - fresh_lo, old_total + all.before[0], old_total + all.total[0], true};
    }
    return Rows{old_lo, old_hi - old_lo, old_at, fresh_lo, fresh_hi - fresh_lo, old_total + all.before[1], old_total + all.total[1]};
  }

  // The lowest rank at which v, found by edge e, occurred; its number where it has one.
  __device__ u64 lowest(I v, u64 e) const { return binned ? __ldcg(a.answers + e) : (u32)load_relaxed(a.map + (u64)v); }
  // What stands for the number of an edge's vertex that is not new with it.
  __device__ I ask(u64 rank) const { return rank < base ? (I)rank : (I)(-1 - (long long)(rank - base)); }

  // What the warps found before the last exchange: those before one, and all.
  __device__ u64 found_by(u32 warps) const {
    u32 lane = threadIdx.x & 31;
    return warp_sum(lane < warps ? s.sums[(exchanges - 1) & 1].parts[0][lane] : 0);
  }
  __device__ static u32 rank_in(u32 chunk, const u32* mask, u32 lane) {
    u32 before = __popc(mask[chunk] & ((1u << lane) - 1));
    for (u32 c = 0; c < chunk; c++) before += __popc(mask[c]);
    return before;
  }

  __device__ void give(I* ids, u64 e, u64 id, I v, ulonglong2 row, I* nodes, bool last) {
    nodes[id] = v;
    ids[e] = (I)id;
    if (last) return;
    a.rows[id] = row;
    if (!binned) a.map[(u64)v] = (u64)a.tag << 32 | id;
  }

  // Gives the edges that ask another edge its number, once a meeting has come after number().
  __device__ void settle() {
    for (u64 e = slice_begin(asked_edges) + threadIdx.x, hi = slice_end(asked_edges); e < hi; e += THREADS) {
      long long id = asked[e];
      if (id < 0) asked[e] = asked[-1 - id];
    }
  }

  // ---- the batch -----------------------------------------------------------------------------

  // The block that comes last reports: then no block works on the batch any more.
  __device__ void end(u64 status, u64 detail) {
    __syncthreads();
    if (threadIdx.x || !meeting.come_last()) return;
    a.report[1] = detail;
    __threadfence_system();
    *(volatile u64*)a.report = status;
  }

  // Deals all rows anew, which have been read before the last exchange.
  __device__ Rows deal(long long fanout) {
    u64 lo = share(n, blockIdx.x), hi = share(n, blockIdx.x + 1);
    Sums all = sums(count(lo, hi, fanout), 0, 0);
    return Rows{lo, hi - lo, all.before[0], 0, 0, 0, all.total[0]};
  }

  __device__ void run() {
    u64 width = sizeof(I), id_width = a.out_edge_bits / 8;
    u64 off_index = align64((HEADER_WORDS + BLOCK_WORDS * a.hops) * 8), off_given = align64(off_index + a.num_seeds * width);
    u64 used = off_given + a.num_seeds * width;
    if (used > a.out_capacity) return end(TOO_SMALL, used);
    I* index = (I*)(a.out + off_index);
    Rows rows = seeds(index, (I*)(a.out + off_given), a.fanouts[a.hops - 1]);
    if (load_relaxed(a.bad_seed) != ~0ull) return end(SEED_OUT_OF_RANGE, load_relaxed(a.bad_seed));
    u64 distinct = n, off_nodes = 0;
    bool reporter = blockIdx.x == 0 && threadIdx.x == 0;
    u64* header = a.report + 2;
    for (u32 hop = 0; hop < a.hops; hop++) {
      long long fanout = a.fanouts[a.hops - 1 - hop];
      bool last = hop + 1 == a.hops;
      u64 edges = rows.edges;
      u64 off_indptr = align64(used), off_ids = align64(off_indptr + (n + 1) * width);
      u64 off_edge_ids = align64(off_ids + edges * width);
      used = off_edge_ids + edges * id_width;
      if (base + edges >= 1ull << 31) return end(binned ? BINS_FULL : TOO_MANY_EDGES, base + edges);
      if (n > a.row_capacity || used > a.out_capacity || edges > a.edge_capacity) return end(TOO_SMALL, used);
      u32 bin_bits = binned || edges >= a.bin_from ? bits_for(n + edges) : 0;
      if (bin_bits && (u64)BIN_ROOM << bin_bits > a.pair_capacity) {
        if (binned) return end(TOO_SMALL, used);
        bin_bits = 0;
      }
      I* indptr = (I*)(a.out + off_indptr);
      I* ids = (I*)(a.out + off_ids);
      u64 before = n;
      draw(Stream{a.key0, a.key1, hop << 16, a.batch0, a.batch1}, rows, fanout, indptr, ids, a.out + off_edge_ids, bin_bits);
      if (bin_bits) append_numbered(bin_bits);
      if (reporter) indptr[n] = (I)edges;
      grid_barrier(meeting);
      u32 full = 0;
      if (bin_bits) {
        full = answer(bin_bits);
        grid_barrier(meeting);
      }
      binned = bin_bits != 0;
      if (last) {
        off_nodes = align64(used);
        u64 room = off_nodes < a.out_capacity ? (a.out_capacity - off_nodes) / width : 0;
        rows = number(ids, edges, full, 0, (I*)(a.out + off_nodes), room);
        used = off_nodes + n * width;
        if (rows.edges >> 31) return end(BINS_FULL, 0);
        if (n > room) return end(TOO_SMALL, used);
      } else {
        long long next = a.fanouts[a.hops - 2 - hop];
        rows = number(ids, edges, full, next);
        if (n > LARGE_HOP && n <= a.row_capacity && rows.read) rows = deal(next);
      }
      if (reporter) {
        u64* words = header + HEADER_WORDS + BLOCK_WORDS * (a.hops - 1 - hop);
        words[0] = n, words[1] = before, words[2] = edges;
        words[3] = off_indptr, words[4] = off_ids, words[5] = off_edge_ids, words[6] = words[7] = 0;
      }
    }
    grid_barrier(meeting);
    settle();
    if (reporter) {
      header[0] = 0x50475342, header[1] = width * 8, header[2] = a.out_edge_bits, header[3] = a.hops;
      header[4] = a.num_seeds, header[5] = off_nodes, header[6] = n;
      header[7] = distinct == a.num_seeds ? off_nodes : off_given, header[8] = off_index, header[9] = used;
      __threadfence_system();
    }
    end(OK, used);
  }
};

template <typename I>
__device__ __forceinline__ void sample(const Args& a) {
  extern __shared__ u32 scratch[];
  __shared__ Shared s;
  Sampling<I>(a, s, scratch).run();
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) neighbor32(const __grid_constant__ Args a) {
  sample<int>(a);
}
extern "C" __global__ void __launch_bounds__(THREADS, 2) neighbor64(const __grid_constant__ Args a) {
  sample<long long>(a);
}
