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
// Several batches in one launch, as gSampler's super-batches: each row of the grid makes one, in memory
// of its own, and knows nothing of the others. What says blocks of all here are those of the row.
//
// Go callers: internal/cuda/neighbor.go and many.go. Go twin: internal/cpu/neighbor.go and rows.go.
#include "bins.cuh"
#include "choose.cuh"

// Ranks, rows and edges of a hop are below 2^31, or the batch is refused before they are used.
// What most batches do not need is left out of the kernel that they run, since its registers and its
// code would slow them down: ANY, fanouts beyond DIRECT and exclusions; BINS, binned hops.
template <typename I, bool ANY, bool BINS>
struct Sampling {
  const Args& a;
  const Batch& b;
  Shared& s;
  u32* scratch;  // dynamic shared memory: a tile's choices, (fanout | 1) words a row, or a bin's table
  u32 turns = 0, exchanges = 0;
  u32 n = 0;     // vertices numbered
  u32 base = 0;  // rank of the hop's first edge
  bool binned = false;
  u32 known = 0;    // what the map says below that is a number; 0 where it is not worth a look
  u32 settled = 0;  // what it says below that is a number, for all blocks
  // The hop whose edges may still ask another edge of it for their number.
  I* asked = nullptr;
  u32 asked_edges = 0;

  // The rows of a hop that a block draws: old ones from old_lo on, whose first edge in the hop is
  // old_at, and those that it has just numbered. `edges` are those of all blocks.
  struct Rows {
    u32 old_lo, old_count, old_at, fresh_lo, fresh_count, fresh_at, edges;
  };

  __device__ Sampling(const Args& a, const Batch& b, Shared& s, u32* scratch) : a(a), b(b), s(s), scratch(scratch) {
    if (threadIdx.x == 0) s.meeting.begin(b.arrived);
  }

  __device__ __forceinline__ I* row_nodes() const { return (I*)b.nodes; }

  __device__ __forceinline__ Sums sums(u32 x, u32 y, u32 z) {
    u32 turn = exchanges++ & 1;
    return grid_sums(x, y, z, b.slots + turn * gridDim.x, s.meeting, s.sums[turn]);
  }

  __device__ __forceinline__ u64 claim(u64 v, u32 rank) { return atomicMin(b.map + v, (u64)b.tag << 32 | rank); }

  // ---- rows ----------------------------------------------------------------------------------

  __device__ __forceinline__ bool whole(u64 degree, long long fanout) const {
    return fanout < 0 || degree == 0 || (!a.replace && degree <= (u64)fanout);
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

  // ---- seeds ---------------------------------------------------------------------------------

  // Claims the seeds as if they were distinct, so that each number is its position, and reads their
  // rows. The claims tell whether they were: the second of two equal ones meets the first.
  __device__ __forceinline__ Rows seeds(I* index, I* given, long long fanout, bool& repeated) {
    Slice mine = slice((u32)b.num_seeds, 32);
    u64 takes = 0;
    u32 met = 0;
#pragma unroll 1
    for (u32 i = mine.lo + threadIdx.x; i < mine.hi; i += THREADS) {
      u64 v = read(b.seeds, b.seed_bits, i);
      if (v >= a.num_nodes) {
        atomicMin(b.bad_seed, (u64)i);
        v = 0;  // any vertex: the batch will be refused
      }
      ulonglong2 row = row_of(v);
      if (claim(v, i) >> 32 == b.tag) met = 1;
      takes += take(row.y, fanout);
      given[i] = (I)v;
      index[i] = (I)i;
      row_nodes()[i] = (I)v;
      b.rows[i] = row;
    }
    Sums all = sums(warp_total(takes), __any_sync(~0u, met), 0);
    repeated = all.total[1] != 0;
    if (repeated) {
#pragma unroll 1
      for (u32 i = mine.lo + threadIdx.x; i < mine.hi; i += THREADS) index[i] = given[i];
      __syncthreads();
      return Rows{0, 0, 0, 0, 0, 0, (u32)b.num_seeds};
    }
    n = base = (u32)b.num_seeds;
    return Rows{0, 0, 0, mine.lo, mine.hi - mine.lo, all.before[0], all.total[0]};
  }

  // ---- choices -------------------------------------------------------------------------------

  // Edges e[c] of the hop, by positions: takes what the CSC has there, and claims. A warp waits for its
  // loads, so each thread has several on their way.
  __device__ __forceinline__ void gather(I* ids, void* edge_ids, const bool (&is)[EDGES], const u32 (&e)[EDGES],
                                         u64 (&p)[EDGES], u32 bin_bits) {
    I v[EDGES];
#pragma unroll
    for (u32 c = 0; c < EDGES; c++)
      if (is[c]) v[c] = ((const I*)a.indices)[p[c]];
    if (a.edge_id_bits) {
#pragma unroll
      for (u32 c = 0; c < EDGES; c++)
        if (is[c]) p[c] = read(a.edge_ids, a.edge_id_bits, p[c]);
    }
    if (!BINS && known) {
      u64 word[EDGES];
#pragma unroll
      for (u32 c = 0; c < EDGES; c++)
        if (is[c]) word[c] = load_relaxed(b.map + (u64)v[c]);
#pragma unroll
      for (u32 c = 0; c < EDGES; c++) {
        if (!is[c]) continue;
        if (word[c] >> 32 == b.tag && (u32)word[c] < known) v[c] = (I)(-1 - (long long)(u32)word[c]);
      }
    }
#pragma unroll
    for (u32 c = 0; c < EDGES; c++) {
      if (!is[c]) continue;
      ids[e[c]] = v[c];
      write(edge_ids, a.out_edge_bits, e[c], p[c]);
      if (BINS ? !bin_bits : v[c] >= 0) claim((u64)v[c], base + e[c]);
    }
    if (BINS && bin_bits) {
      u32 at[EDGES];
#pragma unroll
      for (u32 c = 0; c < EDGES; c++)
        if (is[c]) at[c] = bin_place(a, (u32)v[c], bin_bits);
#pragma unroll
      for (u32 c = 0; c < EDGES; c++)
        if (is[c]) bin_put(a, (u32)v[c], base + e[c], bin_bits, at[c]);
    }
  }
  __device__ __forceinline__ u64 position(u64 start, u64 pick) const {
    return ANY && a.num_excluded ? kept_position(a, start, pick) : start + pick;
  }

  // The tile's rows at once: a thread for each draw, then one for each edge. A row's draws lie together
  // in shared memory, and rows an odd number of words apart, against bank conflicts.
  __device__ __forceinline__ void draw_narrow(u32 count, u32 fanout, I* ids, void* edge_ids, u32 bin_bits) {
    u32 stride = fanout | 1;
    // q / fanout by a multiplication, exact for q below 2^16: q < THREADS * DIRECT.
    u32 reciprocal = 0xFFFFFFFFu / fanout + 1, draws = count * fanout;
    bool full = count == THREADS && !a.replace;
#pragma unroll 2
    for (u32 q = threadIdx.x; q < draws; q += THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout, degree = (u32)s.degrees[row];
      scratch[row * stride + j] = whole(degree, fanout) ? j : draw_below32(s.states[row], j, a.replace ? degree : degree - fanout + j + 1);
    }
    __syncthreads();
    if (full) {
      u32 degree = (u32)s.degrees[threadIdx.x];
      if (!whole(degree, fanout)) floyd_row(scratch + threadIdx.x * stride, fanout, degree - fanout);
      __syncthreads();
    }
#pragma unroll 1
    for (u32 q0 = threadIdx.x; q0 < draws; q0 += EDGES * THREADS) {
      bool is[EDGES];
      u32 e[EDGES];
      u64 p[EDGES];
#pragma unroll
      for (u32 c = 0; c < EDGES; c++) {
        u32 q = q0 + c * THREADS, row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
        is[c] = q < draws && j < s.takes[row];
        if (!is[c]) continue;
        u32 degree = (u32)s.degrees[row];
        const u32* own = scratch + row * stride;
        u32 pick = full || a.replace || whole(degree, fanout) ? own[j] : floyd(own, j, degree - fanout);
        e[c] = s.offsets[row] + j;
        p[c] = position(s.starts[row], pick);
      }
      gather(ids, edge_ids, is, e, p, bin_bits);
    }
  }

  // The tile's rows one by one, a warp each, and whole rows of hubs by the block. For fanouts beyond
  // DIRECT, whose choices stand at first where the edge ids will.
  __device__ __forceinline__ void draw_wide(u32 count, long long fanout, I* ids, void* edge_ids, u32 bin_bits) {
    const u32 HUB = 8192;
    u32 lane = threadIdx.x & 31;
    // First the warp's own rows, then all hubs of the tile, one after another.
#pragma unroll 1
    for (u32 turn = threadIdx.x >> 5; turn < 2 * count + WARPS; turn += turn < count ? WARPS : 1) {
      bool alone = turn < count;
      if (!alone && turn < count + WARPS) turn = count + WARPS;
      u32 r = alone ? turn : turn - count - WARPS;
      if (r >= count) break;
      u32 take = s.takes[r], e0 = s.offsets[r], first = alone ? lane : threadIdx.x, step = alone ? 32 : THREADS;
      bool all = whole(s.degrees[r], fanout), hub = all && take >= HUB;
      if (hub == alone) continue;
      if (!all) choose_wide(a, edge_ids, e0, s.states[r], s.degrees[r], (u32)fanout);
#pragma unroll 1
      for (u32 j0 = first; j0 < take; j0 += EDGES * step) {
        bool is[EDGES];
        u32 e[EDGES];
        u64 p[EDGES];
#pragma unroll
        for (u32 c = 0; c < EDGES; c++) {
          u32 j = j0 + c * step;
          is[c] = j < take;
          if (!is[c]) continue;
          e[c] = e0 + j;
          p[c] = position(s.starts[r], all ? j : read(edge_ids, a.out_edge_bits, e0 + j));
        }
        gather(ids, edge_ids, is, e, p, bin_bits);
      }
    }
  }

  __device__ __forceinline__ void draw(const Stream& stream, const Rows& rows, long long fanout, I* indptr, I* ids,
                                       void* edge_ids, u32 bin_bits) {
    // A choice is 32 bits wide in shared memory.
    bool narrow = !ANY || (fanout > 0 && fanout <= a.direct && a.num_edges >> 32 == 0);
    u32 at = rows.old_at, old_edges = 0, count = rows.old_count + rows.fresh_count;
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll 1
    for (u32 i0 = 0; i0 < count; i0 += THREADS) {
      u32 i = i0 + threadIdx.x, in_tile = min((u32)THREADS, count - i0), takes = 0;
      bool old = i < rows.old_count;
      u32 r = old ? rows.old_lo + i : rows.fresh_lo + (i - rows.old_count);
      ulonglong2 row = make_ulonglong2(0, 0);
      if (i < count) {
        row = b.rows[r];
        takes = take(row.y, fanout);
        if (!whole(row.y, fanout)) s.states[threadIdx.x] = row_state(stream, (u64)row_nodes()[r]);
      }
      // Old rows' edges first, then, after a gap, those of the fresh ones.
      u32 all, before = lanes_before(takes, all), turn = turns++ & 1, old_here = warp_sum32(old ? takes : 0);
      if (lane == 0) s.parts[turn][0][warp] = all, s.parts[turn][1][warp] = old_here;
      __syncthreads();
      u32 part = lane < WARPS ? s.parts[turn][0][lane] : 0, old_part = lane < WARPS ? s.parts[turn][1][lane] : 0;
      u32 tile = warp_sum32(part), warps_before = warp_sum32(lane < warp ? part : 0);
      old_edges += warp_sum32(old_part);
      u32 offset = at + warps_before + before;
      if (!old) offset += rows.fresh_at - rows.old_at - old_edges;
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

  // ---- numbers -------------------------------------------------------------------------------

  // The lowest rank at which v, found by edge e, occurred; its number where it has one.
  __device__ __forceinline__ u32 lowest(I v, u32 e) const {
    if (!BINS && v < 0) return (u32)(-1 - (long long)v);  // gather() has seen its number
    return BINS && binned ? __ldcg(a.answers + e) : (u32)load_relaxed(b.map + (u64)v);
  }
  // What stands for the number of an edge's vertex that is not new with it.
  __device__ __forceinline__ I ask(u32 rank) const { return rank < base ? (I)rank : (I)(-1 - (long long)(rank - base)); }

  // What the first warps found before the last exchange.
  __device__ __forceinline__ u32 found_by(u32 warps) const {
    u32 lane = threadIdx.x & 31;
    return (u32)warp_sum(lane < warps ? s.sums[(exchanges - 1) & 1].parts[0][lane] : 0);
  }

  __device__ __forceinline__ void give(I* ids, u32 e, u32 id, I v, ulonglong2 row, I* nodes, bool last) {
    nodes[id] = v;
    ids[e] = (I)id;
    if (last) return;
    b.rows[id] = row;
    if (!BINS || !binned) b.map[(u64)v] = (u64)b.tag << 32 | id;
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
  // last hop the vertices go to `end`, which has room for so many; else reads the new rows and returns
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
    Slice old = last ? Slice{0, 0} : slice(n, 1);
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
    I* nodes = last ? end : row_nodes();
    takes = 0;
    if (small) {
#pragma unroll
      for (u32 c = 0; c < KEPT; c++) {
        if (mask[c] >> lane & 1)
          give(ids, from + 32 * c + lane, next + __popc(mask[c] & ((1u << lane) - 1)), kept[c], row[c], nodes, last);
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
            give(ids, e0 + 32 * c + lane, next + __popc(firsts[c] & ((1u << lane) - 1)), v[c], of[c], nodes, last);
          }
          next += __popc(firsts[c]);
        }
      }
    }
    if (last) {
      Slice mine = slice(n, 32);
      for (u32 i = mine.lo + threadIdx.x; i < mine.hi; i += THREADS) end[i] = row_nodes()[i];
    }
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
    bool anew = n > LARGE_HOP;
    Slice part = anew ? slice(n, 1) : old;
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

  // ---- the batch -----------------------------------------------------------------------------

  // The block that comes last reports: then no block works on the batch any more.
  __device__ __forceinline__ void end(u64 status, u64 detail) {
    __syncthreads();
    if (threadIdx.x || !s.meeting.come_last()) return;
    b.report[1] = detail;
    __threadfence_system();
    *(volatile u64*)b.report = status;
  }

  __device__ __forceinline__ void run() {
    const u32 width = sizeof(I), id_width = a.out_edge_bits / 8;
    u64 off_index = align64((HEADER_WORDS + BLOCK_WORDS * a.hops) * 8), off_given = align64(off_index + b.num_seeds * width);
    u64 used = off_given + b.num_seeds * width, off_nodes = 0, status = OK;
    if (used > b.out_capacity) return end(TOO_SMALL, used);
    bool reporter = blockIdx.x == 0 && threadIdx.x == 0, repeated;
    u64* header = b.report + 2;
    I* ids = (I*)(b.out + off_index);
    Rows rows = seeds(ids, (I*)(b.out + off_given), a.fanouts[a.hops - 1], repeated);
    if (load_relaxed(b.bad_seed) != ~0ull) return end(SEED_OUT_OF_RANGE, load_relaxed(b.bad_seed));
    // Repeated seeds are numbered like the edges of a hop before the first.
    for (int hop = repeated ? -1 : 0; hop < (int)a.hops; hop++) {
      u32 edges = rows.edges, full = 0;
      bool last = hop + 1 == (int)a.hops;
      if (hop >= 0) {
        long long fanout = a.fanouts[a.hops - 1 - hop];
        u64 off_indptr = align64(used), off_ids = align64(off_indptr + (u64)(n + 1) * width);
        u64 off_edge_ids = align64(off_ids + (u64)edges * width);
        used = off_edge_ids + (u64)edges * id_width;
        if ((u64)base + edges >= TOO_MUCH) status = binned ? BINS_FULL : TOO_MANY_EDGES;
        else if (n > b.row_capacity || used > b.out_capacity || edges > b.edge_capacity) status = TOO_SMALL;
        u32 bin_bits = BINS && (binned || edges >= a.bin_from) ? bits_for(n + edges) : 0;
        if (BINS && bin_bits && (u64)BIN_ROOM << bin_bits > a.pair_capacity) {
          if (binned) status = TOO_SMALL;
          bin_bits = 0;
        }
        if (status != OK) break;
        // Where most vertices have numbers, looking at the map saves most claims and the look later.
        known = !BINS && (u64)n * 2 >= a.num_nodes && edges >= a.known_from ? settled : 0;
        I* indptr = (I*)(b.out + off_indptr);
        ids = (I*)(b.out + off_ids);
        if (reporter) {
          u64* words = header + HEADER_WORDS + BLOCK_WORDS * (a.hops - 1 - hop);
          words[1] = n, words[2] = edges, words[3] = off_indptr, words[4] = off_ids, words[5] = off_edge_ids;
          words[6] = words[7] = 0;
          indptr[n] = (I)edges;
        }
        draw(Stream{b.key0, b.key1, (u32)hop << 16, b.batch0, b.batch1}, rows, fanout, indptr, ids, b.out + off_edge_ids, bin_bits);
        if (BINS && bin_bits) {
          append_numbered(a, Slice{rows.old_lo, rows.old_lo + rows.old_count}, 8 * width, bin_bits);
          append_numbered(a, Slice{rows.fresh_lo, rows.fresh_lo + rows.fresh_count}, 8 * width, bin_bits);
        }
        grid_barrier(s.meeting);
        binned = BINS && bin_bits != 0;
        if (BINS && binned) {
          full = answer(a, scratch, base, bin_bits);
          grid_barrier(s.meeting);
        }
      }
      off_nodes = align64(used);
      u64 room = off_nodes < b.out_capacity ? (b.out_capacity - off_nodes) / width : 0;
      rows = number(ids, edges, full, last ? 0 : a.fanouts[a.hops - 2 - hop], last ? (I*)(b.out + off_nodes) : nullptr, room);
      if (hop < 0 && reporter) header[7] = off_given;
      if (reporter && hop >= 0) header[HEADER_WORDS + BLOCK_WORDS * (a.hops - 1 - hop)] = n;
      if (rows.edges == TOO_MUCH && binned) status = BINS_FULL;
      else if (last && n > room) status = TOO_SMALL, used = off_nodes + (u64)n * width;
      if (status != OK) break;
    }
    if (status != OK) return end(status, status == TOO_MANY_EDGES ? (u64)base + rows.edges : used);
    grid_barrier(s.meeting);
    settle();
    used = off_nodes + (u64)n * width;
    if (reporter) {
      header[0] = 0x50475342, header[1] = width * 8, header[2] = a.out_edge_bits, header[3] = a.hops;
      header[4] = b.num_seeds, header[5] = off_nodes, header[6] = n, header[8] = off_index, header[9] = used;
      if (!repeated) header[7] = off_nodes;
      for (u32 i = 10; i < HEADER_WORDS; i++) header[i] = 0;
      __threadfence_system();
    }
    end(OK, used);
  }
};

template <typename I, bool ANY, bool BINS>
__device__ __forceinline__ void sample(const Args& a, const Batch& b) {
  extern __shared__ u32 scratch[];
  __shared__ Shared s;
  Sampling<I, ANY, BINS>(a, b, s, scratch).run();
}

#define KERNEL(name, I, ANY, BINS)                                                                \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ Args a) { \
    sample<I, ANY, BINS>(a, a.batch);                                                             \
  }
KERNEL(neighbor32, int, false, false)
KERNEL(neighbor64, long long, false, false)
KERNEL(neighbor32_any, int, true, false)
KERNEL(neighbor64_any, long long, true, false)
KERNEL(neighbor32_bins, int, false, true)
KERNEL(neighbor64_bins, long long, false, true)

#define KERNEL_OF_MANY(name, I)                                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ ManyArgs m) { \
    sample<I, false, false>(m.all, m.batches[blockIdx.y]);                                            \
  }
KERNEL_OF_MANY(neighbor32_many, int)
KERNEL_OF_MANY(neighbor64_many, long long)
