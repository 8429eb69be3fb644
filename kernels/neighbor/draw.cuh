// The draw phase of a block of neighbor.cu: it chooses the edges of a hop's rows, gathers their
// neighbors, and claims their numbers.
#pragma once
#include "neighbor/hop.cuh"

template <typename I, Kind KIND>
struct Drawing : Hop<I, KIND> {
  using H = Hop<I, KIND>;
  using H::ANY, H::BINS, H::TREES, H::WEIGHTS;
  using H::a, H::b, H::s, H::scratch, H::turns, H::lists, H::base, H::first, H::known, H::slots;
  using H::claim, H::look, H::row_nodes, H::take, H::whole;
  using H::Hop;

  __device__ __forceinline__ u32* tile_trees() const {
    return WEIGHTS ? ((WeightedAnyShared&)s).trees : ((TreesShared&)s).trees;
  }
  // How many edges a row with weights has, excluded ones too.
  __device__ __forceinline__ u64& edges_of(u32 row) const {
    return ANY ? ((WeightedAnyShared&)s).edges[row] : s.degrees[row];
  }
  // The excluded edges of a row.
  __device__ __forceinline__ void excluded_of(u32 row, u64& x0, u64& x1) const {
    x0 = x1 = 0;
    if (!ANY || !a.num_excluded) return;
    x0 = excluded_below(a, s.starts[row]), x1 = excluded_below(a, s.starts[row] + edges_of(row));
  }

  // Edges e[c] of the hop, by positions, of rows of the tile: takes what the CSC has there, and claims. A
  // warp waits for its loads, so each thread has several on their way.
  __device__ __forceinline__ void gather(I* ids, void* edge_ids, const bool (&is)[EDGES], const u32 (&e)[EDGES],
                                         u64 (&p)[EDGES], const u32 (&row)[EDGES], u32 bin_bits) {
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
        if (is[c]) word[c] = look((u64)v[c]);
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
      if (TREES) {
        u32 slot = slot_of(a, tile_trees()[row[c]], (u64)v[c]);
        slots[e[c]] = slot;
        claim(slot, base + e[c]);
      } else if (BINS ? !bin_bits : v[c] >= 0) {
        claim((u64)v[c], base + e[c]);
      }
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
  // Choices by weight are among all edges of a row, others among those that are not excluded.
  __device__ __forceinline__ u64 position(u64 start, u64 pick, bool all) const {
    return ANY && all && a.num_excluded ? kept_position(a, start, pick) : start + pick;
  }

  // The tile's rows at once: a thread for each draw, then one for each edge. A row's draws lie together
  // in shared memory, and rows an odd number of words apart, against bank conflicts.
  __device__ __forceinline__ void draw_narrow(u32 count, u32 fanout, I* ids, void* edge_ids, u32 bin_bits) {
    u32 stride = fanout | 1;
    // q / fanout by a multiplication, exact for q below 2^16: q < THREADS * DIRECT.
    u32 reciprocal = 0xFFFFFFFFu / fanout + 1, draws = count * fanout;
    bool full = count == THREADS && !a.replace && !WEIGHTS;
#pragma unroll 2
    for (u32 q = threadIdx.x; q < draws; q += THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout, degree = (u32)s.degrees[row];
      if (WEIGHTS) scratch[row * stride + j] = whole(degree, fanout) ? j : pick(row, j);
      else scratch[row * stride + j] = whole(degree, fanout) ? j : draw_below32(s.states[row], j, a.replace ? degree : degree - fanout + j + 1);
    }
    __syncthreads();
    if (WEIGHTS && (!a.replace || (ANY && a.num_excluded))) make_distinct(count, fanout, stride, reciprocal);
    if (full) {
      u32 degree = (u32)s.degrees[threadIdx.x];
      if (!whole(degree, fanout)) floyd_row(scratch + threadIdx.x * stride, fanout, degree - fanout);
      __syncthreads();
    }
#pragma unroll 1
    for (u32 q0 = threadIdx.x; q0 < draws; q0 += EDGES * THREADS) {
      bool is[EDGES];
      u32 e[EDGES], of[EDGES];
      u64 p[EDGES];
#pragma unroll
      for (u32 c = 0; c < EDGES; c++) {
        u32 q = q0 + c * THREADS, row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
        is[c] = q < draws && j < s.takes[row];
        if (!is[c]) continue;
        of[c] = row;
        u32 degree = (u32)s.degrees[row];
        const u32* own = scratch + row * stride;
        u32 pick = WEIGHTS || full || a.replace || whole(degree, fanout) ? own[j] : floyd(own, j, degree - fanout);
        e[c] = s.offsets[row] + j;
        p[c] = position(s.starts[row], pick, !WEIGHTS || whole(degree, fanout));
      }
      gather(ids, edge_ids, is, e, p, of, bin_bits);
    }
  }

  __device__ __forceinline__ u32 pick(u32 row, u32 j) const {
    return weighted_pick32(a.alias + s.starts[row], draw_bits(s.states[row], j), (u32)edges_of(row));
  }
  __device__ __forceinline__ bool is_excluded(u32 row, u32 choice) const {
    if (!ANY || !a.num_excluded) return false;
    u64 p = s.starts[row] + choice, at = excluded_below(a, p);
    return at < a.num_excluded && a.excluded[at] == p;
  }

  // Choices by weight that are excluded, or the same as earlier ones of their row, are made anew.
  __device__ __forceinline__ void make_distinct(u32 count, u32 fanout, u32 stride, u32 reciprocal) {
    u32 draws = count * fanout;
#pragma unroll 1
    for (u32 q = threadIdx.x; q < draws; q += THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
      if (whole(s.degrees[row], fanout)) continue;
      const u32* own = scratch + row * stride;
      u32 t = own[j];
      bool bad = is_excluded(row, t);
#pragma unroll 2
      for (u32 i = 0; i < j && !a.replace; i++) bad |= own[i] == t;
      if (bad) atomicOr(&((WeightedShared&)s).open[row], 1u << j);
    }
    WeightedShared& w = (WeightedShared&)s;
    u32 rows = list_open(count, true);
    const u32 LANES = SHORT / 4;
#pragma unroll 1
    for (u32 i0 = 0; i0 < rows; i0 += THREADS / LANES) {
      u32 i = i0 + threadIdx.x / LANES, row = i < rows ? w.list[i] : 0;
      u64 x0 = 0, x1 = 0;
      if (i < rows) excluded_of(row, x0, x1);
      weighted_left_short(a, scratch + row * stride, i < rows ? w.open[row] : 0, s.states[row], s.starts[row],
                          (u32)edges_of(row), fanout, x0, x1);
    }
    while (spare_round(count, fanout, stride)) {
    }
    rows = list_open(count, false);
#pragma unroll 1
    for (u32 i = threadIdx.x >> 5; i < rows; i += WARPS) {
      u32 row = w.list[i];
      u64 x0, x1;
      excluded_of(row, x0, x1);
      weighted_left(a, scratch + row * stride, w.open[row], s.states[row], s.starts[row], edges_of(row), fanout, x0, x1);
    }
    __syncthreads();
  }
  // The next spare draws of all rows with open choices that may make some, as far as there is room, packed:
  // says whether there were any.
  __device__ __forceinline__ bool spare_round(u32 count, u32 fanout, u32 stride) {
    WeightedShared& w = (WeightedShared&)s;
    u32 row = threadIdx.x, turn = next_list(), need = 0, at = 0;
    if (row < count && w.open[row] && edges_of(row) > SHORT) {
      // Twice as many as are missing, since about half are new where one edge has as much weight as the others.
      need = min(min(2 * (u32)__popc(w.open[row]), (u32)SPARE_ROUND), SPARE * fanout - (w.spare[row] >> SPARE_ROUND));
      if (need) at = atomicAdd(&w.listed[turn], need);
      if (at + need > SPARE_DRAWS) {
        atomicMin(&w.limit[turn], at);
        need = 0;
      }
      w.first[row] = at;
      for (u32 e = 0; e < need; e++) w.owner[at + e] = row;
    }
    __syncthreads();
    u32 draws = min(w.listed[turn], w.limit[turn]);
    if (draws == 0) return false;
    const u32 EACH = SPARE_DRAWS / THREADS;
    u32 of[EACH], e[EACH], p[EACH];
#pragma unroll
    for (u32 c = 0; c < EACH; c++) {
      u32 i = threadIdx.x + c * THREADS;
      if (i >= draws) continue;
      of[c] = w.owner[i];
      e[c] = i - w.first[of[c]];
      p[c] = pick(of[c], fanout + (w.spare[of[c]] >> SPARE_ROUND) + e[c]);
    }
#pragma unroll
    for (u32 c = 0; c < EACH; c++)
      if (threadIdx.x + c * THREADS < draws) w.draws[threadIdx.x + c * THREADS] = p[c];
    __syncthreads();
#pragma unroll
    for (u32 c = 0; c < EACH; c++) {
      u32 i = threadIdx.x + c * THREADS;
      if (i >= draws) continue;
      const u32 *own = scratch + of[c] * stride, *drawn = w.draws + i - e[c];
      bool bad = is_excluded(of[c], p[c]);
      // What is open equals one that is not, or is excluded.
#pragma unroll 2
      for (u32 k = 0; k < fanout && !a.replace; k++) bad |= own[k] == p[c];
      for (u32 k = 0; k < e[c] && !a.replace; k++) bad |= drawn[k] == p[c];
      if (!bad) atomicOr(&w.spare[of[c]], 1u << e[c]);
    }
    __syncthreads();
    if (need) {
      u32 left = w.open[row], made = (w.spare[row] >> SPARE_ROUND) + need;
      for (u32 found = w.spare[row] & ((1u << SPARE_ROUND) - 1); left && found; left &= left - 1, found &= found - 1)
        scratch[row * stride + __ffs(left) - 1] = w.draws[at + __ffs(found) - 1];
      w.open[row] = left;
      w.spare[row] = made << SPARE_ROUND;
    }
    return true;
  }
  // Which of two counters, which take turns, since a thread may read one while another is already here again.
  __device__ __forceinline__ u32 next_list() {
    WeightedShared& w = (WeightedShared&)s;
    u32 turn = lists++ & 1;
    __syncthreads();
    if (threadIdx.x == 0) w.listed[turn ^ 1] = 0, w.limit[turn ^ 1] = SPARE_DRAWS;
    return turn;
  }
  // Lists the short or the other rows that have open choices; how many there are.
  __device__ __forceinline__ u32 list_open(u32 count, bool brief) {
    WeightedShared& w = (WeightedShared&)s;
    u32 row = threadIdx.x, turn = next_list();
    if (row < count && w.open[row] && (edges_of(row) <= SHORT) == brief) w.list[atomicAdd(&w.listed[turn], 1)] = row;
    __syncthreads();
    return w.listed[turn];
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
      if (!all && WEIGHTS) {
        u64 x0, x1;
        excluded_of(r, x0, x1);
        weighted_wide(a, edge_ids, e0, s.states[r], s.starts[r], edges_of(r), (u32)fanout, x0, x1);
      } else if (!all) {
        choose_wide(a, edge_ids, e0, s.states[r], s.degrees[r], (u32)fanout);
      }
#pragma unroll 1
      for (u32 j0 = first; j0 < take; j0 += EDGES * step) {
        bool is[EDGES];
        u32 e[EDGES], of[EDGES];
        u64 p[EDGES];
#pragma unroll
        for (u32 c = 0; c < EDGES; c++) {
          u32 j = j0 + c * step;
          is[c] = j < take;
          if (!is[c]) continue;
          of[c] = r;
          e[c] = e0 + j;
          p[c] = position(s.starts[r], all ? j : read(edge_ids, a.out_edge_bits, e0 + j), !WEIGHTS || all);
        }
        gather(ids, edge_ids, is, e, p, of, bin_bits);
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
        if (TREES) tile_trees()[threadIdx.x] = a.trees[r];
        if (!whole(row.y, fanout)) {
          u64 state = row_state(stream, (u64)row_nodes()[r]);
          s.states[threadIdx.x] = TREES ? part_state(state, a.trees[r]) : state;
        }
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
      if (i < count) indptr[r - first] = (I)offset;
      s.starts[threadIdx.x] = row.x;
      s.degrees[threadIdx.x] = row.y;
      if (WEIGHTS) {
        WeightedShared& w = (WeightedShared&)s;
        w.open[threadIdx.x] = w.spare[threadIdx.x] = 0;
        // Rows that exclude some have more edges than they may give.
        bool more = ANY && a.num_excluded && i < count && !whole(row.y, fanout);
        if (ANY) edges_of(threadIdx.x) = more ? read(a.indptr, a.indptr_bits, (u64)row_nodes()[r] + 1) - row.x : row.y;
      }
      s.offsets[threadIdx.x] = offset;
      s.takes[threadIdx.x] = takes;
      __syncthreads();
      if (narrow) draw_narrow(in_tile, (u32)fanout, ids, edge_ids, bin_bits);
      else draw_wide(in_tile, fanout, ids, edge_ids, bin_bits);
      at += tile;
      __syncthreads();
    }
  }
};
