// All hops of a batch: the seeds, and the order of the phases. neighbor.cu describes the phases.
#pragma once
#include "neighbor/renumber.cuh"

template <typename I, Kind KIND>
struct Sampling : Numbering<I, KIND> {
  using N = Numbering<I, KIND>;
  using N::BINS, N::NARROW, N::TREES;
  using N::a, N::b, N::s, N::scratch, N::n, N::base, N::first, N::slots, N::binned, N::known, N::settled;
  using N::claim, N::draw, N::number, N::row_nodes, N::row_of, N::settle, N::sums, N::take, N::warp_total;
  using N::Numbering;

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
      u64 word = v;
      if (TREES) {
        word = slot_of(a, i, v);
        a.trees[i] = i;
      }
      if (claim(word, i) >> 32 == b.tag) met = 1;
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

  // The block that comes last reports: then no block works on the batch any more.
  __device__ __forceinline__ void end(u64 status, u64 detail) {
    __syncthreads();
    if (threadIdx.x || !s.meeting.come_last()) return;
    b.report[REPORT_DETAIL] = detail;
    __threadfence_system();
    *(volatile u64*)b.report = status;
  }

  __device__ __forceinline__ void run() {
    const u32 width = sizeof(I), id_width = a.out_edge_bits / 8;
    const u32 each = TREES ? 2 * width : width, extra = TREES ? 64 : 0;  // bytes of a vertex in the end
    const Layout l = homogeneous(a.hops);
    u64 off_index = align64(l.words() * 8), off_given = align64(off_index + b.num_seeds * width);
    u64 used = off_given + b.num_seeds * width, off_nodes = 0, status = STATUS_OK;
    if (used > b.out_capacity) return end(STATUS_TOO_SMALL, used);
    bool reporter = blockIdx.x == 0 && threadIdx.x == 0, repeated;
    u64* header = b.report + REPORT_HEADER;
    I* ids = (I*)(b.out + off_index);
    Rows rows = seeds(ids, (I*)(b.out + off_given), a.fanouts[a.hops - 1], repeated);
    if (load_relaxed(b.bad_seed) != ~0ull) return end(STATUS_SEED_OUT_OF_RANGE, load_relaxed(b.bad_seed));
    // Repeated seeds are numbered like the edges of a hop before the first.
    for (int hop = repeated ? -1 : 0; hop < (int)a.hops; hop++) {
      u32 edges = rows.edges, full = 0;
      bool last = hop + 1 == (int)a.hops;
      if (hop >= 0) {
        long long fanout = a.fanouts[a.hops - 1 - hop];
        u64 off_indptr = align64(used), off_ids = align64(off_indptr + (u64)(n - first + 1) * width);
        u64 off_edge_ids = align64(off_ids + (u64)edges * width);
        used = off_edge_ids + (u64)edges * id_width;
        if (NARROW && (u64)base + edges >> b.shift) status = STATUS_RANKS_FULL;
        else if ((u64)base + edges >= TOO_MUCH) status = binned ? STATUS_BINS_FULL : STATUS_TOO_MANY_EDGES;
        else if (TREES && ((u64)base + edges) * 2 > 1ull << a.table_bits) status = STATUS_TOO_SMALL;
        else if (n > b.row_capacity || used > b.out_capacity || edges > b.edge_capacity) status = STATUS_TOO_SMALL;
        u32 bin_bits = BINS && (binned || edges >= a.bin_from) ? bits_for(n + edges) : 0;
        if (BINS && bin_bits && (u64)BIN_ROOM << bin_bits > a.pair_capacity) {
          if (binned) status = STATUS_TOO_SMALL;
          bin_bits = 0;
        }
        if (status != STATUS_OK) break;
        // Where most vertices have numbers, looking at the map saves most claims and the look later.
        known = !BINS && (u64)n * 2 >= a.num_nodes && edges >= a.known_from ? settled : 0;
        I* indptr = (I*)(b.out + off_indptr);
        ids = (I*)(b.out + off_ids);
        if (reporter) {
          u64* words = header + l.block(a.hops - 1 - hop, 0);
          header[l.count(0, hop)] = n;
          words[BLOCK_NUM_DST] = n - first, words[BLOCK_NUM_EDGES] = edges, words[BLOCK_INDPTR] = off_indptr;
          words[BLOCK_INDICES] = off_ids, words[BLOCK_EDGE_IDS] = off_edge_ids, words[BLOCK_FIRST_DST] = first, words[7] = 0;
          indptr[n - first] = (I)edges;
        }
        // Two hops take turns: a block may draw while another still numbers.
        if (TREES) slots = a.answers + (hop & 1) * b.edge_capacity;
        draw(stream_of(b.key0, b.key1, hop, b.batch0, b.batch1), rows, fanout, indptr, ids, b.out + off_edge_ids, bin_bits);
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
      u64 room = off_nodes + extra < b.out_capacity ? (b.out_capacity - off_nodes - extra) / each : 0;
      rows = number(ids, edges, full, last ? 0 : a.fanouts[a.hops - 2 - hop], last ? (I*)(b.out + off_nodes) : nullptr, room);
      if (hop < 0 && reporter) header[WORD_OUTPUT_NODES] = off_given;
      if (reporter && hop >= 0) header[l.block(a.hops - 1 - hop, 0) + BLOCK_NUM_SRC] = n;
      if (rows.edges == TOO_MUCH && binned) status = STATUS_BINS_FULL;
      else if (last && n > room) status = STATUS_TOO_SMALL, used = off_nodes + (u64)n * each + extra;
      if (status != STATUS_OK) break;
    }
    if (status != STATUS_OK) return end(status, status == STATUS_TOO_MANY_EDGES || status == STATUS_RANKS_FULL ? (u64)base + rows.edges : used);
    grid_barrier(s.meeting);
    settle();
    used = off_nodes + (u64)n * width;
    u64 off_trees = TREES ? align64(used) : 0;
    if (TREES) used = off_trees + (u64)n * width;
    if (reporter) {
      l.sign(header, width * 8, used);
      header[WORD_NUM_OUTPUT] = b.num_seeds, header[WORD_NODES] = off_nodes, header[WORD_NUM_NODES] = n;
      header[WORD_OUTPUT_INDEX] = off_index, header[WORD_SUBGRAPH_IDS] = off_trees;
      if (!repeated) header[WORD_OUTPUT_NODES] = off_nodes;
      for (u32 i = WORD_SUBGRAPH_IDS + 1; i < FIRST_BLOCK; i++) header[i] = 0;
      header[l.edge_id_bits(0)] = a.out_edge_bits, header[l.count(0, a.hops)] = n;
      __threadfence_system();
    }
    end(STATUS_OK, used);
  }
};

template <Kind KIND>
struct SharedOf {
  typedef Shared type;
};
template <>
struct SharedOf<WITH_TREES> {
  typedef TreesShared type;
};
template <>
struct SharedOf<WEIGHTED> {
  typedef WeightedShared type;
};
template <>
struct SharedOf<WEIGHTED_BINS> {
  typedef WeightedShared type;
};
template <>
struct SharedOf<WEIGHTED_ALL> {
  typedef WeightedAnyShared type;
};
template <>
struct SharedOf<WEIGHTED_TREES> {
  typedef WeightedAnyShared type;
};

template <typename I, Kind KIND>
__device__ __forceinline__ void sample(const Args& a, const Batch& b) {
  extern __shared__ u32 scratch[];
  __shared__ typename SharedOf<KIND>::type s;
  Sampling<I, KIND>(a, b, s, scratch).run();
}

#define KERNEL(name, I, KIND)                                                                     \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ Args a) { \
    sample<I, KIND>(a, a.batch);                                                                  \
  }

#define KERNEL_OF_MANY(name, I, KIND)                                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ ManyArgs m) { \
    sample<I, KIND>(m.all, m.batches[blockIdx.y]);                                                   \
  }
