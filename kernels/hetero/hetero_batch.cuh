// The L-hop uniform sampler of heterogeneous graphs in one cooperative launch, for any number of
// types and relations.
//
// The rows of a hop are one list: first the rows of the first relation (the nodes of its
// destination type that the hop expands), then those of the second, and so on; the edges are
// another list in the same order. Blocks process equal slices of either list, so that a hundred
// relations need no more barriers than one. Every block computes the offsets of the relations in
// the lists itself, from counters that all blocks have added to before a barrier.
//
// Numbering works like in research/fused.cu. One map has a word for every node of every type, one
// type after another; a word holds the lowest rank at which the node occurred, and later its number
// within its type. First occurrences are counted over the whole list, and for each relation. The
// number of a first occurrence is the number of first occurrences before it in the list, plus a
// constant of its relation: the nodes that the source type had, plus the first occurrences of
// earlier relations from that type, minus those of all earlier relations. Numbers within a type are
// below the ranks of all later edges, as neighbor/neighbor.cu requires.
//
// Phases of a hop:
//   rows     in slices of the list: read, and the number of edges of each relation   sums
//   draw     the same slices, in tiles of rows of one relation: choose, gather, claim barrier
//   check    edges: first occurrences, and their number for each relation            sums
//   number   first occurrences get their numbers                                     barrier
//   settle   edges that refer to another edge get its number
// The seeds are numbered as the edges of a hop before the first, whose relations are the types.
//
// Batches with ALL also support rows that draw by weight (neighbor/weighted.cuh), the factors of
// edges, which follow the edge ids of a block, and disjoint trees: a number then belongs to a pair
// of tree and node, and the words of the map are in the table of neighbor/disjoint_map.cuh, one
// table for all types, with nodes counted one type after another like in the map. The rows of a
// tree, which are sorted by the times of their edges, are limited by the bound of the row's node
// (Go: internal/graph/times).
//
// hetero_rows.cuh has the choice of a row's edges. Kernels: hetero.cu, static/static_hetero.cu,
// labor.cu. Go twin: internal/engine/cpu/hetero.go.
#pragma once
#include "neighbor/disjoint_map.cuh"
#include "hetero/hetero_rows.cuh"

template <bool ALL>
struct HeteroSharedOf {
  typedef HeteroShared type;
};
template <>
struct HeteroSharedOf<true> {
  typedef HeteroAllShared type;
};

// A batch is told by its ids, or by a struct of this one's kind that says itself what the rows of a hop give
// (labor.cuh): choose() says how many edges there are, emit() writes them down and claims their vertices, and
// after() comes once all blocks have.
template <typename T>
struct HeteroOf {
  typedef T Id;
  enum { OWN_ROWS = false };
};

template <typename T, bool ALL, class Args = HeteroArgs>
struct Hetero {
  typedef typename HeteroOf<T>::Id I;
  enum { OWN_ROWS = HeteroOf<T>::OWN_ROWS };
  // Whether a hop expands vertices that were chosen, hgt.cu says how, and not those that were numbered.
  static constexpr bool CHOOSES = Args::CHOOSES;
  const Args& a;
  HeteroShared& s;
  // In dynamic shared memory. Of relations, or with the seeds of types: where their rows and edges begin in the
  // lists, and their vertices in the batch; first occurrences; what those have as numbers beside their place;
  // and the map's part of their sources' type.
  u64 *row_at, *edge_at, *ids_at, *found, *shift, *maps;
  // Of types: vertices numbered, those before the hop, the first that it expands, and how many.
  u64 *n, *expanded, *first, *rows;
  u64* chosen = nullptr;  // where CHOOSES
  u32* scratch;  // a tile's choices, (fanout | 1) words a row
  u32 exchanges = 0;
  u64 base = 0;  // rank of the hop's first edge
  u64 used = 0;  // bytes of the batch

  __device__ Hetero(const Args& a, HeteroShared& s, u64* shared) : a(a), s(s) {
    u32 most = max(a.types, a.num_relations) + 1;
    row_at = shared, edge_at = row_at + most, ids_at = edge_at + most, found = ids_at + most, shift = found + most;
    maps = shift + most;
    n = maps + most, expanded = n + a.types, first = expanded + a.types, rows = first + a.types;
    scratch = (u32*)(rows + a.types);
    if (threadIdx.x == 0) s.meeting.begin(a.arrived);
  }

  static constexpr u64 WIDTH = sizeof(I);

  // ---- the tables of the batch ---------------------------------------------------------------

  __device__ u64 nodes_of(u32 type) const { return a.kinds[type].nodes; }
  __device__ u64* map_of(u32 type) const { return a.map + a.kinds[type].map_at; }
  __device__ I* list(u32 type) const { return (I*)a.nodes + a.kinds[type].list_at; }
  // The vertices of a type that were chosen; and of each that has a number its place there, and its budget.
  __device__ I* chosen_list(u32 type) const { return (I*)a.chosen + a.kinds[type].list_at; }
  __device__ int* places(u32 type) const { return a.places + a.kinds[type].list_at; }
  __device__ u64* budgets(u32 type) const { return a.budgets + a.kinds[type].list_at; }
  // A vertex gets a number; seeds are chosen.
  __device__ void meet(u32 type, u64 id, I v, bool seed) const {
    places(type)[id] = seed ? (int)id : -1, budgets(type)[id] = 0;
    if (seed) chosen_list(type)[id] = v;
  }
  __device__ u64 room(u32 type) const { return disjoint() ? a.row_capacity : min(nodes_of(type), a.row_capacity); }
  __device__ bool disjoint() const { return ALL && a.keys; }
  __device__ bool weighted() const { return ALL && s.graph.alias; }
  // The tree of each vertex of a type, by number; and the slots of the edges of the hop that is drawn.
  __device__ u32* trees(u32 type) const { return a.trees + a.kinds[type].list_at; }
  __device__ u32* slots(u32 hop) const { return a.edge_slots + (hop & 1) * a.edge_capacity; }
  // What bounds the edges of each vertex of a type, by number, and of the vertices that a hop's edges lead from.
  __device__ bool timed() const { return ALL && a.bounds; }
  __device__ long long* bounds(u32 type) const { return a.bounds + a.kinds[type].list_at; }
  __device__ long long* edge_bounds(u32 hop) const { return a.edge_bounds + (hop & 1) * a.edge_capacity; }
  __device__ long long& tile_bound(u32 row) const { return ((HeteroAllShared&)s).bounds[row]; }
  __device__ u32* tile_trees() const { return ((HeteroAllShared&)s).trees; }
  __device__ u64& length(u32 row) const { return ((HeteroAllShared&)s).lengths[row]; }
  __device__ bool factors() const { return (ALL || OWN_ROWS) && a.factors; }
  __device__ HeteroAllShared& all_shared() const { return (HeteroAllShared&)s; }
  // Type of the vertices that a relation's edges, or a type's seeds, lead from.
  __device__ u32 source(bool seeds, u32 of) const { return seeds ? of : a.relations[of].src; }
  __device__ long long fanout_of(u32 relation, u32 hop) const {
    return a.fanouts[(u64)relation * a.hops + a.hops - 1 - hop];
  }
  // Counters of a hop: edges of each relation, then first occurrences. Those of the seeds come first.
  __device__ u64* counts(u32 turn) const { return a.counts + (u64)turn * 2 * max(a.types, a.num_relations); }
  __device__ u64 indptr_at(u32 relation) const { return ids_at[relation] - align64((rows[a.relations[relation].dst] + 1) * WIDTH); }
  __device__ u64 edge_ids_at(u32 relation) const {
    return ids_at[relation] + align64((edge_at[relation + 1] - edge_at[relation]) * WIDTH);
  }
  __device__ u64 factors_at(u32 relation) const {
    return edge_ids_at(relation) + align64((edge_at[relation + 1] - edge_at[relation]) * (a.relations[relation].out_edge_bits / 8));
  }

  // to[i] becomes `from` and what the i things before have; to[count] all. Says that.
  template <class Size>
  __device__ u64 sums_to(u64* to, u32 count, u64 from, Size size) {
    for (u32 i0 = 0; i0 < count; i0 += THREADS) {
      u32 i = i0 + threadIdx.x;
      u64 all, before = rows_before(i < count ? size(i) : 0, all, s.parts);
      if (i < count) to[i] = from + before;
      from += all;
    }
    if (threadIdx.x == 0) to[count] = from;
    __syncthreads();
    return from;
  }
  // The last of count things that begins at x or before.
  __device__ static u32 find(const u64* begins, u32 count, u64 x) {
    u32 lo = 0;
    while (count - lo > 1) {
      u32 middle = (lo + count) / 2;
      if (begins[middle] <= x) lo = middle;
      else count = middle;
    }
    return lo;
  }

  // ---- what blocks say to each other ---------------------------------------------------------

  // As in research/fused.cu: slices begin and end at multiples of 32, so that a warp's ballot is a word of firsts.
  __device__ static u64 lower(u64 count) { return (count * blockIdx.x / gridDim.x) & ~31ull; }
  __device__ static u64 upper(u64 count) {
    return blockIdx.x + 1 == gridDim.x ? count : (count * (blockIdx.x + 1) / gridDim.x) & ~31ull;
  }
  // A barrier of all blocks that also adds up what their threads give.
  __device__ void exchange(u64 x, u64& before, u64& total) {
    u64 *slots = a.slots + (exchanges++ & 1) * gridDim.x, mine, early = 0, all = 0;
    rows_before(x, mine, s.parts);
    if (threadIdx.x == 0) slots[blockIdx.x] = mine;
    grid_barrier(s.meeting);
    for (u32 b = threadIdx.x; b < gridDim.x; b += THREADS) {
      u64 y = __ldcg(slots + b);
      all += y;
      if (b < blockIdx.x) early += y;
    }
    rows_before(early, before, s.parts);
    rows_before(all, total, s.parts);
  }
  // The block that comes last reports: then no block works on the batch any more.
  __device__ void end(u64 status, u64 detail) {
    // Where vertices are chosen a.out is no batch yet.
    if (CHOOSES && status == STATUS_TOO_SMALL) status = STATUS_WORK_TOO_SMALL;
    report(status, detail);
  }
  __device__ void report(u64 status, u64 detail) {
    __syncthreads();
    if (threadIdx.x || !s.meeting.come_last()) return;
    a.report[REPORT_DETAIL] = detail;
    __threadfence_system();
    *(volatile u64*)a.report = status;
  }

  // ---- rows ----------------------------------------------------------------------------------

  // A relation in the terms of the kernels without types.
  __device__ __forceinline__ void view(HeteroRows& g, const HeteroRelation& r) const {
    g.alias = r.alias, g.sums = r.sums, g.keys = r.keys;
    g.indptr = r.indptr, g.indices = r.indices, g.edge_ids = r.edge_ids;
    g.excluded = a.excluded + r.excluded_at, g.num_excluded = r.num_excluded;
    g.map = map_of(r.src);
    g.num_rows = r.num_rows, g.num_nodes = nodes_of(r.src), g.num_edges = r.num_edges;
    g.indptr_bits = r.indptr_bits, g.edge_id_bits = r.edge_id_bits, g.out_edge_bits = r.out_edge_bits;
    g.replace = a.replace, g.key0 = a.key0, g.key1 = a.key1, g.batch0 = a.batch0, g.batch1 = a.batch1, g.tag = a.tag;
  }
  // The one that the block works on.
  __device__ void open(u32 relation) {
    __syncthreads();
    if (threadIdx.x == 0) {
      const HeteroRelation& r = a.relations[relation];
      view(s.graph, r);
      s.salt = r.salt, s.src = r.src, s.dst = r.dst;
    }
    __syncthreads();
  }
  // The end of the tile of rows of one relation that begins at item i0 of a slice which ends at hi.
  __device__ u64 tile(u64 i0, u64 hi, u32& relation) const {
    relation = find(row_at, a.num_relations, i0);
    return min(min(i0 + THREADS, hi), row_at[relation + 1]);
  }
  __device__ u64 vertex(u32 relation, u64 item) const {
    u64 row = first[s.dst] + item - row_at[relation];
    if constexpr (CHOOSES) return (u64)chosen_list(s.dst)[row];
    return (u64)list(s.dst)[row];
  }
  __device__ u32 tree(u32 relation, u64 item) const { return trees(s.dst)[first[s.dst] + item - row_at[relation]]; }

  __device__ long long bound(u32 relation, u64 item) const {
    return bounds(s.dst)[first[s.dst] + item - row_at[relation]];
  }

  // Reads the rows of the block's slice; how many edges they give, in thread 0.
  __device__ u64 count(u64 items, u32 hop) {
    u64 mine = 0;
    u32 r;
    for (u64 i0 = lower(items), hi = upper(items), next; i0 < hi; i0 = next) {
      next = tile(i0, hi, r);
      open(r);
      u64 i = i0 + threadIdx.x, takes = 0, all;
      if (i < next) {
        ulonglong2 row;
        if (timed() && s.graph.keys) row = within(a, s.graph, s.graph.all_of(vertex(r, i)), bound(r, i), fanout_of(r, hop));
        else row = s.graph.row_of(vertex(r, i));
        a.rows[i] = row;
        takes = s.graph.taken(row.y, fanout_of(r, hop));
      }
      rows_before(takes, all, s.parts);
      if (threadIdx.x == 0 && all) atomicAdd(counts(hop + 1) + r, all);
      mine += all;
    }
    return threadIdx.x == 0 ? mine : 0;
  }

  // at: where the edges of the block's slice begin in the list.
  __device__ void draw(u64 items, u64 at, u32 hop) {
    u32 r;
    for (u64 i0 = lower(items), hi = upper(items), next; i0 < hi; i0 = next) {
      next = tile(i0, hi, r);
      open(r);
      long long fanout = fanout_of(r, hop);
      I *indptr = (I*)(a.out + indptr_at(r)), *ids = (I*)(a.out + ids_at[r]);
      void* edge_ids = a.out + edge_ids_at(r);
      u64 i = i0 + threadIdx.x, all, takes = 0;
      bool is = i < next, whole = true;
      ulonglong2 row = is ? a.rows[i] : make_ulonglong2(0, 0);
      if (is) takes = s.graph.take(row.y, fanout, whole);
      u64 offset = rows_before(takes, all, s.parts) + at - edge_at[r];
      if (is) indptr[i - row_at[r]] = (I)offset;
      s.starts[threadIdx.x] = row.x, s.degrees[threadIdx.x] = row.y;
      s.offsets[threadIdx.x] = offset, s.takes[threadIdx.x] = takes;
      if (!whole) {
        u64 v = vertex(r, i), state = row_state(s.graph.stream(CHOOSES ? 0 : hop), v);
        if (a.mixed) state = state_of_type(state, s.salt);
        if (disjoint()) state = part_state(state, tree(r, i));
        s.states[threadIdx.x] = state;
        if (weighted()) length(threadIdx.x) = about_weights(v, row);
      }
      if (disjoint() && is) tile_trees()[threadIdx.x] = tree(r, i);
      if (timed() && is) tile_bound(threadIdx.x) = bound(r, i);
      if (factors() && threadIdx.x == 0) all_shared().factors = a.out + factors_at(r);
      __syncthreads();
      u32 in_tile = (u32)(next - i0);
      if (fanout > 0 && fanout <= a.direct && s.graph.num_edges >> 32 == 0) draw_narrow(in_tile, (u32)fanout, ids, edge_ids, edge_at[r], hop);
      else if (fanout) draw_wide(in_tile, fanout, ids, edge_ids, edge_at[r], hop);
      if (factors()) uniform_factors(all_shared(), in_tile, fanout);
      at += all;
    }
  }
  // What a row of v that draws by weight keeps in lengths.
  __device__ u64 about_weights(u64 v, ulonglong2 row) const {
    const HeteroRows& g = s.graph;
    if (g.in_parts()) return row.x > read(g.indptr, g.indptr_bits, v) ? g.sums[row.x - 1] : 0;
    // Rows that exclude some have more edges than they may give.
    return g.num_excluded ? read(g.indptr, g.indptr_bits, v + 1) - row.x : row.y;
  }
  // Edge e of the relation, whose edges begin in the list at first, is a row's at position p.
  __device__ void gather(I* ids, void* edge_ids, u64 e, u64 p, u32 row, u64 at, u32 hop) const {
    const HeteroRows& g = s.graph;
    I v = ((const I*)g.indices)[p];
    ids[e] = v;
    write(edge_ids, g.out_edge_bits, e, g.edge_id_bits ? read(g.edge_ids, g.edge_id_bits, p) : p);
    if (timed()) edge_bounds(hop)[at + e] = a.carry && g.keys ? g.keys[p] : tile_bound(row);
    u64 word = (u64)v;
    if (disjoint()) word = slots(hop)[at + e] = slot_of(a, tile_trees()[row], a.kinds[s.src].map_at + (u64)v);
    // The vertices that the last hop finds get no numbers where they cannot be chosen.
    if (CHOOSES && hop + 1 == a.hops) return;
    atomicMin((disjoint() ? a.map : g.map) + word, (u64)a.tag << 32 | (base + at + e));
  }
  // The CSC position of a row's choice: by weight among all of its edges, else among those not excluded.
  __device__ u64 position(u32 row, u64 pick, bool whole) const {
    return weighted() && !whole ? s.starts[row] + pick : s.graph.position(s.starts[row], pick);
  }
  __device__ WeightedRow weighted_row(u32 row) const {
    return WeightedRow(s.graph, s.states[row], s.starts[row], s.degrees[row], length(row));
  }

  // The factors of a row from edge e0 on, whose choices stand in a list from c0 on.
  __device__ void weigh(const WeightedRow& row, void* list, u32 bits, u32 c0, u32 e0, u32 fanout) const {
    factors_by_weight(s.graph, list, bits, c0, all_shared().factors, e0, row, fanout);
  }

  // The choices by weight of the tile's rows, up to 32 a row, and their factors: a warp a row.
  __device__ void choose_tile_by_weight(u32 count, u32 fanout) const {
    for (u32 row = threadIdx.x >> 5; row < count; row += HETERO_WARPS) {
      if (gives_all(s.graph, s.degrees[row], fanout)) continue;
      WeightedRow drawn = weighted_row(row);
      u32* own = scratch + row * (fanout | 1);
      choose_by_weight(s.graph, drawn, own, fanout);
      if (factors()) weigh(drawn, own, 32, 0, (u32)s.offsets[row], fanout);
    }
  }

  // The tile's rows at once: a thread for each draw, then one for each edge.
  __device__ void draw_narrow(u32 count, u32 fanout, I* ids, void* edge_ids, u64 at, u32 hop) const {
    u32 stride = fanout | 1, draws = count * fanout;
    // q / fanout by a multiplication, exact for q below 2^16: q < THREADS * DIRECT.
    u32 reciprocal = 0xFFFFFFFFu / fanout + 1;
    if (weighted()) choose_tile_by_weight(count, fanout);
    else for (u32 q = threadIdx.x; q < draws; q += THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
      u64 degree = s.degrees[row];
      if (!gives_all(s.graph, degree, fanout)) scratch[row * stride + j] = (u32)s.graph.draw(s.states[row], j, degree, fanout);
    }
    __syncthreads();
    for (u32 q = threadIdx.x; q < draws; q += THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
      if (j >= s.takes[row]) continue;
      u64 degree = s.degrees[row];
      const u32* own = scratch + row * stride;
      u32 pick = j;
      bool whole = gives_all(s.graph, degree, fanout);
      if (!whole) pick = a.replace || weighted() ? own[j] : floyd(own, j, (u32)degree - fanout);
      gather(ids, edge_ids, s.offsets[row] + j, position(row, pick, whole), row, at, hop);
    }
  }
  // The tile's rows one by one, a warp each, and whole rows of hubs by the block.
  __device__ void draw_wide(u32 count, long long fanout, I* ids, void* edge_ids, u64 at, u32 hop) const {
    u32 lane = threadIdx.x & 31;
    for (u32 row = threadIdx.x >> 5; row < count; row += HETERO_WARPS) {
      bool whole = gives_all(s.graph, s.degrees[row], fanout);
      u64 take = s.takes[row], e0 = s.offsets[row];
      if (whole && take >= HETERO_HUB) continue;
      if (!whole && weighted()) {
        WeightedRow drawn = weighted_row(row);
        choose_many_by_weight(s.graph, drawn, edge_ids, (u32)e0, (u32)fanout);
        if (factors()) weigh(drawn, edge_ids, s.graph.out_edge_bits, (u32)e0, (u32)e0, (u32)fanout);
      } else if (!whole) {
        s.graph.choose_wide(edge_ids, e0, s.states[row], s.degrees[row], take);
      }
      for (u64 j = lane; j < take; j += 32) {
        u64 pick = whole ? j : read(edge_ids, s.graph.out_edge_bits, e0 + j);
        gather(ids, edge_ids, e0 + j, position(row, pick, whole), row, at, hop);
      }
    }
    for (u32 row = 0; row < count; row++) {
      u64 take = s.takes[row];
      if (take < HETERO_HUB || !gives_all(s.graph, s.degrees[row], fanout)) continue;
      for (u64 j = threadIdx.x; j < take; j += THREADS) gather(ids, edge_ids, s.offsets[row] + j, position(row, j, true), row, at, hop);
    }
  }

  // ---- numbers -------------------------------------------------------------------------------

  __device__ I* edge(u32 of, u64 e) const { return (I*)(a.out + ids_at[of]) + (e - edge_at[of]); }

  // The map's word of an edge of the list, whose part it is and which leads from v.
  __device__ u64* word(const u32* slots, u32 part, u64 e, u64 v) const {
    return slots ? a.map + slots[e] : (u64*)maps[part] + v;
  }

  // Numbers the first occurrences among the edges of a list of so many parts, as research/fused.cu does; whether there
  // is room for them.
  __device__ bool number(bool seeds, u32 parts, u64 edges, u64* counters, u32 hop) {
    const u32* slots = disjoint() ? this->slots(hop) : nullptr;
    bool last = hop + 1 == a.hops && !seeds;
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, mine = 0, part = 0, run = 0, of_run = 0;
    u64 lo = lower(edges), hi = upper(edges), step = ((hi - lo + HETERO_WARPS - 1) / HETERO_WARPS + 31) & ~31ull;
    u64 from = min(lo + warp * step, hi), to = min(from + step, hi);
    for (u32 i = threadIdx.x; i < parts; i += THREADS) maps[i] = (u64)map_of(source(seeds, i));
    __syncthreads();
    if (from < to) part = find(edge_at, parts, from);
    of_run = part;
    for (u64 e0 = from; e0 < to; e0 += 32) {
      u64 e = e0 + lane;
      bool is = e < to, fresh = false;
      while (is && part + 1 < parts && edge_at[part + 1] <= e) part++;
      if (is) {
        I* at = edge(part, e);
        u64 rank = (u32)load_relaxed(word(slots, part, e, (u64)*at));
        fresh = rank == base + e;
        if (!fresh) *at = RowsArgs::ask<I>(rank, base);
      }
      u32 firsts = __ballot_sync(~0u, fresh), of = __shfl_sync(~0u, part, 0);
      if (lane == 0) a.firsts[e0 >> 5] = firsts;
      mine += __popc(firsts);
      // One addition for many edges of one relation.
      if (__all_sync(~0u, !is || part == of)) {
        if (of != of_run) {
          if (lane == 0 && run) atomicAdd(counters + of_run, (u64)run);
          run = 0, of_run = of;
        }
        run += __popc(firsts);
      } else if (fresh) {
        atomicAdd(counters + part, (u64)1);
      }
    }
    if (lane == 0 && run) atomicAdd(counters + of_run, (u64)run);
    u64 before, total, block;
    u64 next = rows_before(lane == 0 ? mine : 0, block, s.parts);
    exchange(lane == 0 ? mine : 0, before, total);
    next = __shfl_sync(~0u, next, 0) + before;
    for (u32 i = threadIdx.x; i < parts; i += THREADS) found[i] = load_relaxed(counters + i);
    __syncthreads();
    for (u32 i = threadIdx.x; i < parts; i += THREADS) {
      u32 type = source(seeds, i);
      u64 own = n[type], earlier = 0;
      for (u32 j = 0; j < i; j++) {
        earlier += found[j];
        if (source(seeds, j) == type) own += found[j];
      }
      shift[i] = own - earlier;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < parts; i += THREADS)
      if (found[i]) atomicAdd(n + source(seeds, i), found[i]);
    __syncthreads();
    u64 full = 0, all;
    for (u32 t = threadIdx.x; t < a.types; t += THREADS) full += n[t] > room(t);
    rows_before(full, all, s.parts);
    if (all) return false;
    if (from < to) part = find(edge_at, parts, from);
    for (u64 e0 = from; e0 < to; e0 += 32) {
      u64 e = e0 + lane;
      u32 firsts = a.firsts[e0 >> 5];
      while (e < to && part + 1 < parts && edge_at[part + 1] <= e) part++;
      if (firsts >> lane & 1) {
        I *at = edge(part, e), v = *at;
        u32 type = source(seeds, part);
        u64 id = next + __popc(firsts & ((1u << lane) - 1)) + shift[part];
        list(type)[id] = v;
        if constexpr (CHOOSES) meet(type, id, v, seeds);
        if (slots) trees(type)[id] = tree_of(a, slots[e]);
        if (timed()) bounds(type)[id] = edge_bounds(hop)[e];
        *at = (I)id;
        if (!last) *word(slots, part, e, (u64)v) = (u64)a.tag << 32 | id;
      }
      next += __popc(firsts);
    }
    grid_barrier(s.meeting);
    // Edges that ask another edge get its number.
    for (u64 e = lo + threadIdx.x; e < hi; e += THREADS) {
      I* at = edge(find(edge_at, parts, e), e);
      if (*at >= 0) continue;
      u64 other = (u64)(-1 - (long long)*at);
      *at = *edge(find(edge_at, parts, other), other);
    }
    base += edges;
    __syncthreads();
    return true;
  }

  // ---- the batch -----------------------------------------------------------------------------

  __device__ Layout layout() const { return Layout{a.hops, a.types, a.num_relations}; }

  // Claims the seeds and writes them down; false where the batch has ended.
  __device__ bool plant(u64* header) {
    used = align64((u64)layout().words() * 8);
    // Nobody counts before the blocks have met.
    for (u64 i = blockIdx.x * THREADS + threadIdx.x; counts(0) + i < counts(a.hops + 1); i += gridDim.x * THREADS) a.counts[i] = 0;
    sums_to(edge_at, a.types, 0, [&](u32 t) { return a.kinds[t].seeds; });
    used = sums_to(ids_at, a.types, used, [&](u32 t) { return 2 * align64(a.kinds[t].seeds * WIDTH); });
    if (used > a.out_capacity) return end(STATUS_TOO_SMALL, used), false;
    for (u64 i = lower(a.num_seeds) + threadIdx.x, hi = upper(a.num_seeds); i < hi; i += THREADS) {
      u32 type = find(edge_at, a.types, i);
      u64 v = read(a.seeds, a.seed_bits, i);
      if (v >= nodes_of(type)) {
        atomicMin(a.bad_seed, i);
        v = 0;  // any vertex: the batch will be refused
      }
      I* index = edge(type, i);
      index[0] = index[align64(a.kinds[type].seeds * WIDTH) / WIDTH] = (I)v;
      if (disjoint()) {
        // Each has a tree of its own, in which it is the first.
        u64 id = i - edge_at[type];
        if (id < room(type)) {
          index[0] = (I)id;
          list(type)[id] = (I)v, trees(type)[id] = (u32)i;
          if (timed()) bounds(type)[id] = a.seed_times[i];
          a.map[slot_of(a, (u32)i, a.kinds[type].map_at + v)] = (u64)a.tag << 32 | id;
        }
      } else {
        atomicMin(map_of(type) + v, (u64)a.tag << 32 | i);
      }
    }
    grid_barrier(s.meeting);
    u64 bad = load_relaxed(a.bad_seed);
    if (bad != ~0ull) return end(STATUS_SEED_OUT_OF_RANGE, bad), false;
    for (u32 t = threadIdx.x; t < a.types && blockIdx.x == 0; t += THREADS) {
      u64 *words = header + layout().type(t), seeds = a.kinds[t].seeds;
      words[TYPE_NUM_OUTPUT] = seeds, words[TYPE_OUTPUT_INDEX] = ids_at[t];
      words[TYPE_OUTPUT_NODES] = ids_at[t] + align64(seeds * WIDTH);
      words[TYPE_SUBGRAPH_IDS] = words[TYPE_WORDS - 2] = words[TYPE_WORDS - 1] = 0;
    }
    if (disjoint()) {
      u64 full = 0, all;
      for (u32 t = threadIdx.x; t < a.types; t += THREADS) n[t] = a.kinds[t].seeds, full += n[t] > room(t);
      rows_before(full, all, s.parts);
      if (all) return end(STATUS_TOO_SMALL, used), false;
      base = a.num_seeds;
    } else if (!number(true, a.types, a.num_seeds, counts(0), 0)) {
      return end(STATUS_TOO_SMALL, used), false;
    }
    for (u32 t = threadIdx.x; t < a.types && blockIdx.x == 0; t += THREADS) header[layout().count(t, 0)] = n[t];
    return true;
  }

  // Samples a hop; false where the batch has ended.
  __device__ bool sample(u32 hop, u64* header) {
    for (u32 t = threadIdx.x; t < a.types; t += THREADS) {
      u64 have = CHOOSES ? chosen[t] : n[t];
      first[t] = a.only_new ? expanded[t] : 0;
      expanded[t] = have;
      rows[t] = have - first[t];
    }
    __syncthreads();
    u32 relations = a.num_relations;
    u64 items = sums_to(row_at, relations, 0, [&](u32 r) { return rows[a.relations[r].dst]; }), at, edges;
    if (items > a.row_capacity) return end(STATUS_TOO_SMALL, used), false;
    if constexpr (OWN_ROWS) {
      if (!((T*)this)->choose((u32)items, hop, edges)) return false;
    } else {
      exchange(count(items, hop), at, edges);
    }
    const u64* taken = counts(hop + 1);
    sums_to(edge_at, relations, 0, [&](u32 r) { return load_relaxed(taken + r); });
    used = sums_to(ids_at, relations, align64(used), [&](u32 r) {
      u64 own = edge_at[r + 1] - edge_at[r], id_bytes = a.relations[r].out_edge_bits / 8;
      u64 more = factors() ? align64(own * 4) : 0;
      return align64((rows[a.relations[r].dst] + 1) * WIDTH) + align64(own * WIDTH) + align64(own * id_bytes) + more;
    });
    for (u32 r = threadIdx.x; r < relations; r += THREADS) ids_at[r] += align64((rows[a.relations[r].dst] + 1) * WIDTH);
    __syncthreads();
    if (base + edges >= MOST_EDGES) return end(STATUS_TOO_MANY_EDGES, base + edges), false;
    if (used > a.out_capacity || edges > a.edge_capacity) return end(STATUS_TOO_SMALL, used), false;
    if (disjoint() && (base + edges) * 2 > 1ull << a.table_bits) return end(STATUS_TOO_SMALL, used), false;
    if (blockIdx.x == 0) {
      for (u32 r = threadIdx.x; r < relations; r += THREADS) {
        u32 dst = a.relations[r].dst;
        u64 *words = header + layout().block(a.hops - 1 - hop, r), own = edge_at[r + 1] - edge_at[r];
        words[BLOCK_NUM_DST] = rows[dst], words[BLOCK_NUM_EDGES] = own, words[BLOCK_FIRST_DST] = first[dst];
        words[BLOCK_INDPTR] = indptr_at(r), words[BLOCK_INDICES] = ids_at[r], words[BLOCK_EDGE_IDS] = edge_ids_at(r);
        words[BLOCK_EDGE_WEIGHTS] = factors() ? factors_at(r) : 0;
        ((I*)(a.out + indptr_at(r)))[rows[dst]] = (I)own;
      }
    }
    if constexpr (OWN_ROWS) ((T*)this)->emit((u32)items, hop);
    else draw(items, at, hop);
    grid_barrier(s.meeting);
    if constexpr (OWN_ROWS) ((T*)this)->after((u32)items, hop);
    if (CHOOSES && hop + 1 == a.hops) return true;
    if (!number(false, relations, edges, counts(hop + 1) + max(a.types, relations), hop))
      return end(STATUS_TOO_SMALL, used), false;
    if (blockIdx.x == 0) {
      for (u32 r = threadIdx.x; r < relations; r += THREADS)
        header[layout().block(a.hops - 1 - hop, r) + BLOCK_NUM_SRC] = n[a.relations[r].src];
      for (u32 t = threadIdx.x; t < a.types; t += THREADS) header[layout().count(t, hop + 1)] = n[t];
    }
    return true;
  }

  __device__ void run() {
    u64* header = a.report + REPORT_HEADER;
    for (u32 t = threadIdx.x; t < a.types; t += THREADS) n[t] = expanded[t] = 0;
    __syncthreads();
    if (!plant(header)) return;
    for (u32 hop = 0; hop < a.hops; hop++)
      if (!sample(hop, header)) return;
    // The lists of vertices go behind the blocks, those of trees before each.
    u64 lists = disjoint() ? 2 : 1;
    sums_to(edge_at, a.types, align64(used), [&](u32 t) { return lists * align64(n[t] * WIDTH); });
    for (u32 t = threadIdx.x; t < a.types; t += THREADS) ids_at[t] = edge_at[t] + (lists - 1) * align64(n[t] * WIDTH);
    __syncthreads();
    used = ids_at[a.types - 1] + n[a.types - 1] * WIDTH;
    if (used > a.out_capacity) return end(STATUS_TOO_SMALL, used);
    for (u32 t = 0; t < a.types; t++) {
      I *to = (I*)(a.out + ids_at[t]), *own = list(t);
      for (u64 i = lower(n[t]) + threadIdx.x, hi = upper(n[t]); i < hi; i += THREADS) {
        to[i] = own[i];
        if (disjoint()) ((I*)(a.out + edge_at[t]))[i] = (I)trees(t)[i];
      }
    }
    if (blockIdx.x == 0) {
      for (u32 t = threadIdx.x; t < a.types; t += THREADS)
        header[layout().type(t) + TYPE_NUM_NODES] = n[t], header[layout().type(t) + TYPE_NODES] = ids_at[t];
      for (u32 t = threadIdx.x; t < a.types && disjoint(); t += THREADS) header[layout().type(t) + TYPE_SUBGRAPH_IDS] = edge_at[t];
      sign(header, layout());
    }
    if constexpr (OWN_ROWS) end(STATUS_OK, ((T*)this)->most_work);
    else end(STATUS_OK, used);
  }
  // By one block, as the last words: what a batch of a layout has beside the words of types and blocks.
  __device__ void sign(u64* header, Layout l) const {
    for (u32 r = threadIdx.x; r < a.num_relations; r += THREADS) header[l.edge_id_bits(r)] = a.relations[r].out_edge_bits;
    if (threadIdx.x == 0) l.sign(header, WIDTH * 8, used);
    __threadfence_system();
  }
};

template <typename I, bool ALL>
__device__ __forceinline__ void hetero(const HeteroArgs& a) {
  extern __shared__ u64 tables[];
  __shared__ typename HeteroSharedOf<ALL>::type s;
  Hetero<I, ALL>(a, s, tables).run();
}
