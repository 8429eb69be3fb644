// The L-hop uniform sampler in one cooperative launch with a static distribution of work: the variant
// that PGSampler's paper measures as "DGL+Fusion", the step between bsp.cu and neighbor/neighbor.cu
// in the ablation.
//
// All hops are fused, so that only the last sizes go to the host. The rest is simple: row r is drawn
// by warp r modulo the number of warps, whatever its degree, with one lane per choice; five barriers
// of the grid separate the phases of a hop; scans over rows or edges in order use equal slices, one
// per block. There are no tiles that balance rows, no exchange that serves two phases and no bins.
//
// Phases of a hop:
//   count    rows: new ones are read; the number of edges of each slice            sums
//   offsets  rows: the offset of the edges of each                                 barrier
//   draw     rows, round robin: choose, gather, claim                              barrier
//   check    edges: a first occurrence if the map still holds its rank, else the
//            node's number or the edge that will have it                           sums
//   number   edges: first occurrences get their numbers, in order                  barrier
//   settle   (while the next rows are counted) edges that refer to another edge get its number
// The seeds are numbered as the edges of a hop before the first.
//
// Go caller: internal/research/cuda/fused.go. Go twin: internal/engine/cpu/neighbor.go and
// row_tiles.go.
#include "common/header.cuh"
#include "common/row_draw.cuh"
#include "research/constants.cuh"

#define FUSED_WARPS (FUSED_THREADS / 32)

// Mirrors fusedArgs in internal/research/cuda/fused.go; loading compares the sizes.
struct FusedArgs {
  RowsArgs graph;
  const void* seeds;
  ulonglong2* rows;  // per row of a hop: first CSC position, degree
  void* nodes;       // per row its vertex
  u32* firsts;       // per 32 edges of a hop: which are first occurrences
  u32* arrived;      // the meetings' counter
  u64* slots;        // two rows of gridDim.x, which take turns
  char* out;         // the batch; layout of internal/batch
  u64* report;       // status, detail and the batch's header, in memory that the host sees
  u64* bad_seed;     // the lowest seed out of range; ~0 if none
  u64 out_capacity, row_capacity, edge_capacity, num_seeds;  // bytes, rows, edges of a hop, seeds
  u32 hops, seed_bits;
  long long fanouts[MOST_HOPS];  // outermost first
};

struct FusedShared {
  Meeting meeting;
  u64 parts[32];
  u32 draws[FUSED_WARPS][DIRECT];
};

template <typename I>
struct Fused {
  const FusedArgs& a;
  FusedShared& s;
  u32 exchanges = 0;
  u64 n = 0;      // vertices numbered
  u64 known = 0;  // rows read
  u64 base = 0;   // rank of the hop's first edge
  // The hop whose edges may still ask another edge of it for their number.
  I* asked = nullptr;
  u64 asked_edges = 0;

  __device__ Fused(const FusedArgs& a, FusedShared& s) : a(a), s(s) {
    if (threadIdx.x == 0) s.meeting.begin(a.arrived);
  }

  __device__ I* nodes() const { return (I*)a.nodes; }

  // The block's slice of so many things begins, and the one before it ends, at a multiple of 32, so
  // that a warp's ballot is a word of firsts.
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
    for (u32 b = threadIdx.x; b < gridDim.x; b += FUSED_THREADS) {
      u64 y = __ldcg(slots + b);
      all += y;
      if (b < blockIdx.x) early += y;
    }
    rows_before(early, before, s.parts);
    rows_before(all, total, s.parts);
  }

  // The block that comes last reports: then no block works on the batch any more.
  __device__ void end(u64 status, u64 detail) {
    __syncthreads();
    if (threadIdx.x || !s.meeting.come_last()) return;
    a.report[REPORT_DETAIL] = detail;
    __threadfence_system();
    *(volatile u64*)a.report = status;
  }

  // ---- rows ----------------------------------------------------------------------------------

  __device__ void seeds(I* index, I* given) {
    for (u64 i = lower(a.num_seeds) + threadIdx.x, hi = upper(a.num_seeds); i < hi; i += FUSED_THREADS) {
      u64 v = read(a.seeds, a.seed_bits, i);
      if (v >= a.graph.num_nodes) {
        atomicMin(a.bad_seed, i);
        v = 0;  // any vertex: the batch will be refused
      }
      a.graph.claim(v, i);
      index[i] = given[i] = (I)v;
    }
  }

  // The edges of the thread's rows.
  __device__ u64 count(long long fanout) const {
    u64 edges = 0;
    for (u64 r = lower(n) + threadIdx.x, hi = upper(n); r < hi; r += FUSED_THREADS) {
      ulonglong2 row;
      if (r < known) row = a.rows[r];
      else a.rows[r] = row = a.graph.row_of((u64)nodes()[r]);
      edges += a.graph.taken(row.y, fanout);
    }
    return edges;
  }

  // at: where the edges of the block's slice begin.
  __device__ void offsets(I* indptr, u64 at, long long fanout) const {
    u64 lo = lower(n), hi = upper(n);
    for (u64 r0 = lo; r0 < hi; r0 += FUSED_THREADS) {
      u64 r = r0 + threadIdx.x, all;
      u64 before = rows_before(r < hi ? a.graph.taken(a.rows[r].y, fanout) : 0, all, s.parts);
      if (r < hi) indptr[r] = (I)(at + before);
      at += all;
    }
  }

  __device__ void draw(u32 hop, long long fanout, const I* indptr, I* ids, void* edge_ids) const {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, *draws = s.draws[warp];
    u64 warps = (u64)gridDim.x * FUSED_WARPS;
    for (u64 r = (u64)blockIdx.x * FUSED_WARPS + warp; r < n; r += warps) {
      ulonglong2 row = a.rows[r];
      u64 e0 = (u64)__ldcg(indptr + r);
      bool whole, narrow = a.graph.narrow(fanout);
      u64 take = a.graph.take(row.y, fanout, whole);
      if (!whole) {
        u64 state = row_state(a.graph.stream(hop), (u64)nodes()[r]);
        if (!narrow) a.graph.choose_wide(edge_ids, e0, state, row.y, take);
        else if (lane < take) draws[lane] = (u32)a.graph.draw(state, lane, row.y, take);
        __syncwarp();
      }
      for (u64 j = lane; j < take; j += 32) {
        u64 pick = j;
        if (!whole && !narrow) pick = read(edge_ids, a.graph.out_edge_bits, e0 + j);
        else if (!whole) pick = a.graph.replace ? draws[j] : floyd(draws, (u32)j, (u32)row.y - (u32)take);
        a.graph.gather(ids, edge_ids, e0 + j, row.x, pick, base);
      }
      __syncwarp();  // the next row's draws take these ones' place
    }
  }

  // ---- numbers -------------------------------------------------------------------------------

  // Numbers the first occurrences among ids[0, edges), which hold original ids that have been claimed,
  // and replaces each id by its number, or by -1 - e where edge e has, or will have, the number. The
  // new vertices go behind the others in nodes; in the last hop, all go to list. Nothing is written
  // beyond room; the caller sees that n does not fit.
  __device__ void number(I* ids, u64 edges, I* list, u64 room) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, found = 0;
    u64 lo = lower(edges), hi = upper(edges), step = ((hi - lo + FUSED_WARPS - 1) / FUSED_WARPS + 31) & ~31ull;
    u64 from = min(lo + warp * step, hi), to = min(from + step, hi);
    for (u64 e0 = from; e0 < to; e0 += 32) {
      u64 e = e0 + lane, rank = e < to ? a.graph.lowest((u64)ids[e]) : 0;
      bool first = e < to && rank == base + e;
      if (e < to && !first) ids[e] = RowsArgs::ask<I>(rank, base);
      u32 firsts = __ballot_sync(~0u, first);
      if (lane == 0) a.firsts[e0 >> 5] = firsts;
      found += __popc(firsts);
    }
    u64 before, total, block;
    u64 next = rows_before(lane == 0 ? found : 0, block, s.parts);
    exchange(lane == 0 ? found : 0, before, total);
    next = __shfl_sync(~0u, next, 0) + n + before;
    u64 old = n;
    n += total;
    base += edges;
    asked = ids;
    asked_edges = edges;
    if (n > room) return;
    I* to_nodes = list ? list : nodes();
    for (u64 e0 = from; e0 < to; e0 += 32) {
      u32 firsts = a.firsts[e0 >> 5];
      if (firsts >> lane & 1) {
        I v = ids[e0 + lane];
        u64 id = next + __popc(firsts & ((1u << lane) - 1));
        to_nodes[id] = v;
        ids[e0 + lane] = (I)id;
        if (!list) a.graph.give((u64)v, id);
      }
      next += __popc(firsts);
    }
    if (list)
      for (u64 i = lower(old) + threadIdx.x, end = upper(old); i < end; i += FUSED_THREADS) list[i] = nodes()[i];
  }

  // Gives the edges that ask another edge its number, once a barrier has come after number().
  __device__ void settle() const {
    for (u64 e = lower(asked_edges) + threadIdx.x, hi = upper(asked_edges); e < hi; e += FUSED_THREADS) {
      long long id = asked[e];
      if (id < 0) asked[e] = asked[-1 - id];
    }
  }

  // ---- the batch -----------------------------------------------------------------------------

  __device__ void run() {
    u64 width = sizeof(I), id_width = a.graph.out_edge_bits / 8;
    const Layout l = homogeneous(a.hops);
    u64 off_index = align64(l.words() * 8);
    u64 off_given = align64(off_index + a.num_seeds * width), used = off_given + a.num_seeds * width, off_nodes = 0;
    if (used > a.out_capacity) return end(STATUS_TOO_SMALL, used);
    I* index = (I*)(a.out + off_index);
    seeds(index, (I*)(a.out + off_given));
    grid_barrier(s.meeting);
    u64 bad = load_relaxed(a.bad_seed);
    if (bad != ~0ull) return end(STATUS_SEED_OUT_OF_RANGE, bad);
    number(index, a.num_seeds, nullptr, a.row_capacity);
    u64 distinct = n;
    bool reporter = blockIdx.x == 0 && threadIdx.x == 0;
    u64* header = a.report + REPORT_HEADER;
    for (u32 hop = 0; hop < a.hops; hop++) {
      long long fanout = a.fanouts[a.hops - 1 - hop];
      bool last = hop + 1 == a.hops;
      grid_barrier(s.meeting);
      settle();
      u64 at, edges;
      exchange(count(fanout), at, edges);
      u64 off_indptr = align64(used), off_ids = align64(off_indptr + (n + 1) * width);
      u64 off_edge_ids = align64(off_ids + edges * width);
      used = off_edge_ids + edges * id_width;
      if (base + edges >= MOST_EDGES) return end(STATUS_TOO_MANY_EDGES, base + edges);
      if (used > a.out_capacity || edges > a.edge_capacity) return end(STATUS_TOO_SMALL, used);
      I *indptr = (I*)(a.out + off_indptr), *ids = (I*)(a.out + off_ids);
      offsets(indptr, at, fanout);
      if (reporter) indptr[n] = (I)edges;
      grid_barrier(s.meeting);
      draw(hop, fanout, indptr, ids, a.out + off_edge_ids);
      grid_barrier(s.meeting);
      u64 before = known = n, room = a.row_capacity;
      I* list = nullptr;
      if (last) {
        off_nodes = align64(used);
        room = off_nodes < a.out_capacity ? (a.out_capacity - off_nodes) / width : 0;
        list = (I*)(a.out + off_nodes);
      }
      number(ids, edges, list, room);
      if (last) used = off_nodes + n * width;
      if (n > room) return end(STATUS_TOO_SMALL, used);
      if (reporter) {
        u64* words = header + l.block(a.hops - 1 - hop, 0);
        header[l.count(0, hop)] = before;
        words[BLOCK_NUM_SRC] = n, words[BLOCK_NUM_DST] = before, words[BLOCK_NUM_EDGES] = edges;
        words[BLOCK_INDPTR] = off_indptr, words[BLOCK_INDICES] = off_ids, words[BLOCK_EDGE_IDS] = off_edge_ids;
        words[BLOCK_FIRST_DST] = words[7] = 0;
      }
    }
    grid_barrier(s.meeting);
    settle();
    if (reporter) {
      l.sign(header, width * 8, used);
      header[WORD_NUM_OUTPUT] = a.num_seeds, header[WORD_NODES] = off_nodes;
      header[WORD_NUM_NODES] = n, header[WORD_OUTPUT_NODES] = distinct == a.num_seeds ? off_nodes : off_given;
      header[WORD_OUTPUT_INDEX] = off_index;
      for (u32 i = WORD_SUBGRAPH_IDS; i < FIRST_BLOCK; i++) header[i] = 0;
      header[l.edge_id_bits(0)] = a.graph.out_edge_bits, header[l.count(0, a.hops)] = n;
      __threadfence_system();
    }
    end(STATUS_OK, used);
  }
};

template <typename I>
__device__ __forceinline__ void fused(const FusedArgs& a) {
  __shared__ FusedShared s;
  Fused<I>(a, s).run();
}

extern "C" __global__ void __launch_bounds__(FUSED_THREADS, 2) fused32(const __grid_constant__ FusedArgs a) {
  fused<int>(a);
}
extern "C" __global__ void __launch_bounds__(FUSED_THREADS, 2) fused64(const __grid_constant__ FusedArgs a) {
  fused<long long>(a);
}
