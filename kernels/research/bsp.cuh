// The bodies of the kernels of a hop that are launched one after another, in a struct. bsp.cu
// describes the kernels, and reservoir.cu reuses the common ones.
#pragma once
#include "common/row_draw.cuh"
#include "research/constants.cuh"

#define BSP_WARP_WORDS (BSP_EDGE_TILE / BSP_THREADS)  // words of first occurrences that a warp makes

// Mirrors bspArgs in internal/research/cuda/bsp.go; loading compares the sizes.
struct BspArgs {
  RowsArgs graph;
  const void* seeds;
  ulonglong2* rows;  // per row of the hop: first CSC position, degree
  void* nodes;       // per row its vertex
  u64* sums;         // per tile: what comes before it; after the last, all
  uint2* firsts;     // per 32 edges: which are first occurrences, and how many the tile has before them
  u32* ended;        // blocks of the running kernel that are done
  u32* repeated;     // whether some seed was
  u64* bad_seed;     // the lowest seed out of range
  u64* report;       // in memory that the host sees: 1 + size, -, lowest bad seed, repeated
  void *indptr, *ids, *edge_ids;  // the hop's arrays in the batch; of the seeds: ids is their index
  void* given;                    // the seeds, in the batch
  void* list;                     // the batch's list of vertices; null before the last hop
  u64 num_seeds, n, known;        // n rows, of which the first known have been read in earlier hops
  u64 edges, base;                // of the hop, and of all before it
  u64 room;                       // vertices that nodes, or list, can hold
  long long fanout;
  u32 hop, seed_bits, tile, unused;  // tile: rows of a block of draw and choose
};

struct BspShared {
  u64 parts[32], states[BSP_ROW_TILE], starts[BSP_ROW_TILE], degrees[BSP_ROW_TILE];
  u32 offsets[BSP_ROW_TILE], takes[BSP_ROW_TILE];
  u64 row_lo, row_hi;
  u32 is_last;
};

template <typename I>
struct Bsp {
  const BspArgs& a;
  BspShared& s;

  __device__ u64 thread() const { return (u64)blockIdx.x * BSP_THREADS + threadIdx.x; }

  // Whether all other blocks have ended, and what they wrote can be seen.
  __device__ bool ends_last() const {
    __syncthreads();
    if (threadIdx.x == 0) {
      fence();
      s.is_last = atomicAdd(a.ended, 1u) + 1 == gridDim.x;
      if (s.is_last) *a.ended = 0;
      fence();
    }
    __syncthreads();
    return s.is_last;
  }

  // By one block: makes of the sums of so many tiles what comes before each, and returns the sum of all.
  __device__ u64 add_up(u64 tiles) const {
    const u32 EACH = 8;
    u64 total = 0;
    for (u64 i0 = 0; i0 < tiles; i0 += EACH * BSP_THREADS) {
      u64 x[EACH], mine = 0, all, i = i0 + EACH * threadIdx.x;
#pragma unroll
      for (u32 k = 0; k < EACH; k++) x[k] = i + k < tiles ? __ldcg(a.sums + i + k) : 0;
#pragma unroll
      for (u32 k = 0; k < EACH; k++) mine += x[k];
      u64 before = total + rows_before(mine, all, s.parts);
#pragma unroll
      for (u32 k = 0; k < EACH; k++) {
        if (i + k < tiles) a.sums[i + k] = before;
        before += x[k];
      }
      total += all;
    }
    if (threadIdx.x == 0) a.sums[tiles] = total;
    return total;
  }

  // The host sees size + 1, and finds the rest there by then.
  __device__ void post(u64 size) const {
    if (threadIdx.x) return;
    a.report[BSP_BAD_SEED] = load_relaxed(a.bad_seed);
    a.report[BSP_REPEATED] = *(volatile u32*)a.repeated;
    *a.repeated = 0;
    __threadfence_system();
    *(volatile u64*)a.report = size + 1;
  }

  __device__ void seeds() const {
    u64 i = thread();
    if (i >= a.num_seeds) return;
    u64 v = read(a.seeds, a.seed_bits, i);
    if (v >= a.graph.num_nodes) {
      atomicMin(a.bad_seed, i);
      v = 0;  // any vertex: the batch will be refused
    }
    if (a.graph.claim(v, i) >> 32 == a.graph.tag) atomicOr(a.repeated, 1u);
    ((I*)a.given)[i] = (I)v;
    ((I*)a.ids)[i] = (I)i;
    ((I*)a.nodes)[i] = (I)v;
  }

  // ---- rows ----------------------------------------------------------------------------------

  // Leaves in indptr what a row's tile has before it; draw or choose adds what comes before the tile.
  __device__ void count() const {
    u64 r = thread(), take = 0, all;
    if (r < a.n) {
      ulonglong2 row;
      if (r < a.known) row = a.rows[r];
      else a.rows[r] = row = a.graph.row_of((u64)((const I*)a.nodes)[r]);
      take = a.graph.taken(row.y, a.fanout);
    }
    u64 before = rows_before(take, all, s.parts);
    if (r < a.n) ((I*)a.indptr)[r] = (I)before;
    if (threadIdx.x == 0) a.sums[blockIdx.x] = all;
    if (!ends_last()) return;
    u64 total = add_up(gridDim.x);
    if (threadIdx.x == 0) ((I*)a.indptr)[a.n] = (I)total;
    post(total);
  }

  // Reads the block's rows into shared memory, with their states, and finishes their offsets; returns
  // how many rows there are.
  __device__ u32 open_tile() const {
    u64 r0 = (u64)blockIdx.x * a.tile, r = r0 + threadIdx.x;
    u32 in_tile = (u32)min((u64)a.tile, a.n - r0);
    if (threadIdx.x < in_tile) {
      ulonglong2 row = a.rows[r];
      bool whole;
      u64 take = a.graph.take(row.y, a.fanout, whole);
      I* indptr = (I*)a.indptr;
      u64 offset = a.sums[r / BSP_ROW_TILE] + (u64)indptr[r];
      indptr[r] = (I)offset;
      s.starts[threadIdx.x] = row.x;
      s.degrees[threadIdx.x] = row.y;
      s.offsets[threadIdx.x] = (u32)offset;
      s.takes[threadIdx.x] = (u32)take;
      if (!whole) s.states[threadIdx.x] = row_state(a.graph.stream(a.hop), (u64)((const I*)a.nodes)[r]);
    }
    __syncthreads();
    return in_tile;
  }

  // A row's draws lie together in shared memory, and rows an odd number of words apart, against bank
  // conflicts.
  __device__ void draw() const {
    extern __shared__ u32 draws[];
    u32 in_tile = open_tile(), fanout = (u32)a.fanout, stride = fanout | 1, all = in_tile * fanout;
    // q / fanout by a multiplication, exact for q below 2^16: q < BSP_ROW_TILE * DIRECT.
    u32 reciprocal = 0xFFFFFFFFu / fanout + 1;
    bool whole;
    for (u32 q = threadIdx.x; q < all; q += BSP_THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
      a.graph.take(s.degrees[row], a.fanout, whole);
      draws[row * stride + j] = whole ? j : (u32)a.graph.draw(s.states[row], j, s.degrees[row], fanout);
    }
    __syncthreads();
    for (u32 q = threadIdx.x; q < all; q += BSP_THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
      if (j >= s.takes[row]) continue;
      const u32* own = draws + row * stride;
      a.graph.take(s.degrees[row], a.fanout, whole);
      u32 pick = whole || a.graph.replace ? own[j] : floyd(own, j, (u32)s.degrees[row] - fanout);
      a.graph.gather((I*)a.ids, a.edge_ids, (u64)s.offsets[row] + j, s.starts[row], pick, a.base);
    }
  }

  // For gather: a warp chooses for one row after another. Whole rows take no choice.
  __device__ void choose() const {
    u32 in_tile = open_tile();
    for (u32 row = threadIdx.x >> 5; row < in_tile; row += BSP_THREADS / 32) {
      bool whole;
      u64 take = a.graph.take(s.degrees[row], a.fanout, whole);
      if (!whole) a.graph.choose_wide(a.edge_ids, s.offsets[row], s.states[row], s.degrees[row], take);
    }
  }

  // The row in [lo, hi] that edge e is of: the last one that begins at or before it.
  __device__ u64 row_at(u64 e, u64 lo, u64 hi) const {
    const I* indptr = (const I*)a.indptr;
    while (lo < hi) {
      u64 middle = (lo + hi + 1) / 2;
      if ((u64)indptr[middle] <= e) lo = middle;
      else hi = middle - 1;
    }
    return lo;
  }

  // Edges are dealt to threads whatever their rows, so that hubs unbalance nothing.
  __device__ void gather() const {
    u64 e0 = (u64)blockIdx.x * BSP_EDGE_TILE, end = min(e0 + BSP_EDGE_TILE, a.edges);
    if (threadIdx.x == 0) s.row_lo = row_at(e0, 0, a.n - 1);
    if (threadIdx.x == 32) s.row_hi = row_at(end - 1, 0, a.n - 1);
    __syncthreads();
    for (u64 e = e0 + threadIdx.x; e < end; e += BSP_THREADS) {
      u64 r = row_at(e, s.row_lo, s.row_hi), j = e - (u64)((const I*)a.indptr)[r];
      ulonglong2 row = a.rows[r];
      bool whole;
      a.graph.take(row.y, a.fanout, whole);
      u64 pick = whole ? j : read(a.edge_ids, a.graph.out_edge_bits, e);
      a.graph.gather((I*)a.ids, a.edge_ids, e, row.x, pick, a.base);
    }
  }

  // ---- numbers -------------------------------------------------------------------------------

  // The first edge of the thread; its others follow 32 apart.
  __device__ u64 own_edge() const {
    return (u64)blockIdx.x * BSP_EDGE_TILE + (threadIdx.x >> 5) * (32 * BSP_WARP_WORDS) + (threadIdx.x & 31);
  }

  __device__ void check() const {
    u32 lane = threadIdx.x & 31, mask[BSP_WARP_WORDS], found = 0;
    u64 e0 = own_edge(), rank[BSP_WARP_WORDS], all;
    I* ids = (I*)a.ids;
    I v[BSP_WARP_WORDS];
#pragma unroll
    for (u32 k = 0; k < BSP_WARP_WORDS; k++) v[k] = e0 + 32 * k < a.edges ? ids[e0 + 32 * k] : 0;
#pragma unroll
    for (u32 k = 0; k < BSP_WARP_WORDS; k++) rank[k] = e0 + 32 * k < a.edges ? a.graph.lowest((u64)v[k]) : 0;
#pragma unroll
    for (u32 k = 0; k < BSP_WARP_WORDS; k++) {
      u64 e = e0 + 32 * k;
      bool first = e < a.edges && rank[k] == a.base + e;
      mask[k] = __ballot_sync(~0u, first);
      found += __popc(mask[k]);
      if (e < a.edges && !first) ids[e] = RowsArgs::ask<I>(rank[k], a.base);
    }
    u32 before = (u32)rows_before(lane == 0 ? found : 0, all, s.parts);
    before = __shfl_sync(~0u, before, 0);
#pragma unroll
    for (u32 k = 0; k < BSP_WARP_WORDS; k++) {
      if (lane == k) a.firsts[e0 / 32 + k] = make_uint2(mask[k], before);
      before += __popc(mask[k]);
    }
    if (threadIdx.x == 0) a.sums[blockIdx.x] = all;
    if (!ends_last()) return;
    u64 total = add_up(gridDim.x);
    if (a.list == nullptr) post(total);
  }

  // The number of the vertex that edge e found first.
  __device__ u64 number_of(u64 e) const {
    uint2 word = a.firsts[e / 32];
    return a.n + a.sums[e / BSP_EDGE_TILE] + word.y + __popc(word.x & ((1u << (e & 31)) - 1));
  }

  // Writes nothing where there is no room: the batch will be made again.
  __device__ void number() const {
    u64 tiles = (a.edges + BSP_EDGE_TILE - 1) / BSP_EDGE_TILE, found = tiles ? a.sums[tiles] : 0;
    I *ids = (I*)a.ids, *nodes = (I*)(a.list ? a.list : a.nodes);
    if (a.n + found <= a.room) {
#pragma unroll
      for (u32 k = 0; k < BSP_WARP_WORDS; k++) {
        u64 e = own_edge() + 32 * k;
        if (e >= a.edges) continue;
        long long id = ids[e];
        if (a.firsts[e / 32].x >> (e & 31) & 1) {
          u64 number = number_of(e);
          nodes[number] = (I)id;
          if (a.list == nullptr) a.graph.give((u64)id, number);
          ids[e] = (I)number;
        } else if (id < 0) {
          ids[e] = (I)number_of((u64)(-1 - id));
        }
      }
      if (a.list)
        for (u64 i = thread(); i < a.n; i += (u64)gridDim.x * BSP_THREADS) nodes[i] = ((const I*)a.nodes)[i];
    }
    if (a.list && ends_last()) post(found);
  }
};
