// The L-hop uniform sampler without barriers between hops: mode "queue".
//
// Source: PGSampler, sections III-B, III-C and IV-B. One global queue holds tasks of (node, hop);
// persistent blocks fetch some at a time, sample them, deduplicate the tasks that follow from them,
// and publish those. A destination is a source again at every later hop, with a fresh draw, so a
// finished task returns at the next hop.
//
// Differences from the paper, and their reasons:
//   Completion. In the paper a block leaves when its index has reached the tail, which is correct
// only while tasks are consumed more slowly than they are published; a block that leaves early is
// lost, and if all leave but one the batch is right but slow. Here tasks are counted when published
// and when finished, in the two halves of one word:
//     An addition that finishes tasks publishes all of their remaining children, so while a task is
//     unfinished fewer tasks are finished than published. One load reads both counts at the same
//     moment: if they are equal, no task was unfinished then. Only an unfinished task publishes, so
//     they stay equal, and no block that leaves is needed again.
// Every block's part of the seeds is a task that exists from the start; it is counted by the number
// of blocks, not published, so no block can see an end before the beginning.
//   Deduplication. Instead of a boolean for each pair, one word per node holds the lowest hop that
// the node is queued from, under the launch's tag. One atomicMin queues it for that hop and all later
// ones at once, so the reuse of finished tasks depends on no other task. If it is found again at a
// lower hop, it is queued for the missing hops. Tags decrease, so that old words lose and nothing is
// cleared.
//   Aggregation. A block pops many tasks with one addition, more of them if the backlog is long, and
// publishes the children of up to 2048 edges with another, which also finishes their parents. A word
// of the queue holds its whole task and is written in one store, so its readers need no fence.
//   Numbering. Tasks finish in any order. Every node has a number of arrival t; after the queue,
// sampled edges are translated from nodes to t's, and all later phases work on arrays of the size of
// the batch. Its level, the hop that first reached it, is then known: the lowest hop of its tasks.
//     ordered: hop by hop, an edge whose target has the next level offers (row, place in the row) to
//     that target's key; the least one is its first occurrence, and first occurrences are numbered in
//     that order. The result equals neighbor/neighbor.cu's and the CPU's byte for byte.
//     not ordered: nodes are numbered level by level as they arrived; the seeds in their order.
// Rows are copied into the batch in the order of their numbers, so the layout is the same in both.
//
// Phases, and the synchronization between them: queue | barrier | resolve | sums | number: for each
// hop offer, barrier, count, sums, number, and a barrier before the next hop; or without order one
// step and a barrier | measure | sums | write. Repeated seeds take another barrier, sums and a
// barrier.
//
// A launch that runs out of room stops all blocks, takes back the tasks that it queued and reports
// their number; only words under a tag that no launch uses again remain.
//
// Go caller: internal/research/cuda/queue.go. Go twin: internal/research/cpu/queue.go and
// internal/research/task.
#include "research/queue_tasks.cuh"

template <typename I>
struct Sampling : Tasks<I> {
  using Tasks<I>::a;
  using Tasks<I>::s;
  I* nodes = nullptr;

  // An edge in picked holds its neighbour's t below this bit, which says whether the edge may be the
  // neighbour's first occurrence: whether the neighbour's level is the hop's.
  enum : u32 { OFFERS = 1u << 31 };

  __device__ Sampling(const Args& a, Shared& s, u32* draws) : Tasks<I>(a, s, draws) {}

  __device__ u32& edge(u32 e) const { return *(u32*)((I*)a.picked + e); }

  // For every edge e of the tile: x = load(e), y = follow(x), use(row, place in the row, e, x, y). A
  // thread's loads of a kind are under way together.
  template <class Load, class Follow, class Use>
  __device__ void edges(u32 total, Load load, Follow follow, Use use) const {
    for (u32 q0 = threadIdx.x; q0 < total; q0 += CHUNK) {
      u32 q[ITEMS], row[ITEMS], place[ITEMS], e[ITEMS];
      decltype(load(0u)) x[ITEMS];
      decltype(follow(load(0u))) y[ITEMS];
#pragma unroll
      for (int k = 0; k < ITEMS; k++) q[k] = q0 + k * QUEUE_THREADS;
      this->find_rows(q, row);
#pragma unroll
      for (int k = 0; k < ITEMS; k++) {
        if (q[k] >= total) continue;
        place[k] = q[k] - s.offsets[row[k]];
        e[k] = (u32)s.firsts[row[k]] + place[k];
        x[k] = load(e[k]);
      }
#pragma unroll
      for (int k = 0; k < ITEMS; k++)
        if (q[k] < total) y[k] = follow(x[k]);
#pragma unroll
      for (int k = 0; k < ITEMS; k++)
        if (q[k] < total) use(row[k], place[k], e[k], x[k], y[k]);
    }
  }

  // ---- resolve -------------------------------------------------------------------------------

  // Puts a row of finished tasks into the tile; returns the tile's edges.
  __device__ u32 load_tile(u64 row) {
    u64 all, at = this->before(row >> 32, all);
    if (threadIdx.x < QUEUE_TILE) s.offsets[threadIdx.x] = (u32)at, s.firsts[threadIdx.x] = (u32)row;
    __syncthreads();
    return (u32)all;
  }

  // Translates the block's part of the edges, finds every row by t and hop, takes the tasks out of the
  // queue, and counts the vertices of each level in mine.
  __device__ void resolve(u32 tasks, u32 found) {
    Part slots(tasks), arrivals(found);
    u32 own = threadIdx.x, lane = own & 31;
    const u64* claims = (const u64*)a.claims;
    if (own <= a.hops) s.mine[own] = 0;
    for (u32 i0 = slots.lo; i0 < slots.hi; i0 += QUEUE_TILE) {
      u32 i = i0 + own;
      u64 row = 0;
      if (own < QUEUE_TILE && i < slots.hi) {
        u64 task = a.queue[i] - 1;
        a.queue[i] = 0;
        row = a.rows[i];
        s.hops[own] = (unsigned char)task;
        a.table[(claims[task >> 8] >> 32) * a.hops + (task & 255)] = row;
      }
      edges(load_tile(row), [&](u32 e) { return ((const I*)a.picked)[e]; }, [&](I v) { return claims[(u64)v]; },
            [&](u32 row, u32, u32 e, I, u64 claim) {
              bool offers = (claim & 255) == s.hops[row] + 1u;
              edge(e) = (u32)(claim >> 32) | (offers ? OFFERS : 0);
            });
      __syncthreads();
    }
    u32 counted = 0;  // lane l counts level l
    __syncthreads();
    for (u32 t0 = arrivals.lo + (own & ~31u); t0 < arrivals.hi; t0 += QUEUE_THREADS) {
      u32 t = t0 + lane, level = ~0u;
      if (t < arrivals.hi) {
        level = (u32)claims[(u64)((const I*)a.found)[t]] & 255;
        a.keys[t] = a.ordered ? ~0ull : (u64)level << 32 | ~0u;
      }
      for (u32 l = 0; l <= a.hops; l++) {
        u32 mask = __ballot_sync(~0u, level == l);
        if (lane == l) counted += __popc(mask);
      }
    }
    if (lane <= a.hops) atomicAdd(&s.mine[lane], counted);
  }

  // ---- number --------------------------------------------------------------------------------

  __device__ void put(u32 t, u32 number, I v) {
    a.numbers[t] = number;
    a.order[number] = t;
    nodes[number] = v;
  }

  __device__ u32 arrival(I v) const { return a.claims[2 * (u64)v + 1]; }

  // Whether no seed comes twice: then their numbers are their positions.
  __device__ bool distinct() const { return s.ends[0] == a.num_seeds; }

  // The seeds, in the order of their first occurrences. A barrier must follow.
  __device__ void number_seeds() {
    Part seeds((u32)a.num_seeds);
    if (distinct()) {
      for (u32 i = seeds.lo + threadIdx.x; i < seeds.hi; i += QUEUE_THREADS) {
        I v = ((const I*)a.kept)[i];
        put(arrival(v), i, v);
      }
      return;
    }
    for (u32 i = seeds.lo + threadIdx.x; i < seeds.hi; i += QUEUE_THREADS)
      atomicMin(a.keys + arrival(((const I*)a.kept)[i]), (u64)i);
    barrier(s);
    u64 next = 0;
    for (int numbering = 0; numbering < 2; numbering++) {
      u64 firsts = 0;
      for (u32 i0 = seeds.lo; i0 < seeds.hi; i0 += QUEUE_THREADS) {
        u32 i = i0 + threadIdx.x;
        u64 all;
        I v = 0;
        bool first = false;
        if (i < seeds.hi) {
          v = ((const I*)a.kept)[i];
          first = load_relaxed(a.keys + arrival(v)) == i;
        }
        u64 at = this->before(first, all);
        if (numbering && first) put(arrival(v), (u32)(next + at), v);
        firsts += all, next += all;
      }
      if (numbering) break;
      next = firsts_before(firsts);
    }
  }

  // The sum over earlier blocks of what each gives.
  __device__ u32 firsts_before(u64 firsts) {
    if (threadIdx.x == 0) s.mine[0] = (u32)firsts;
    this->exchange(1);
    return s.before[0];
  }

  // Puts rows of a hop from r0 on, but below hi, into the tile; returns their edges. Distinct seeds are
  // found without their numbers, which other blocks may still be writing.
  __device__ u32 load_rows(u32 hop, u32 r0, u32 hi) {
    u32 r = r0 + threadIdx.x;
    u64 row = 0;
    if (threadIdx.x < QUEUE_TILE && r < hi) {
      u32 t = hop == 0 && distinct() ? arrival(((const I*)a.kept)[r]) : a.order[r];
      row = a.table[(u64)t * a.hops + hop];
    }
    return load_tile(row);
  }

  // Numbers what the rows of a hop have found, which follows what was found before.
  __device__ void number_hop(u32 hop) {
    Part rows(s.ends[hop]);
    bool only = rows.hi - rows.lo <= QUEUE_TILE;  // with one tile its rows are loaded once
    u32 total = 0, next = s.ends[hop];
    auto load = [&](u32 e) { return edge(e); };
    auto no = [](u32) { return 0; };
    for (u32 r0 = rows.lo; r0 < rows.hi; r0 += QUEUE_TILE) {
      total = load_rows(hop, r0, rows.hi);
      edges(total, load, no, [&](u32 row, u32 place, u32, u32 x, int) {
        if (x & OFFERS) atomicMin(a.keys + (x & ~OFFERS), (u64)(r0 + row) << 32 | place);
      });
      __syncthreads();
    }
    barrier(s);
    auto key = [&](u32 x) { return x & OFFERS ? load_relaxed(a.keys + (x & ~OFFERS)) : ~0ull; };
    u64 mine = 0, firsts;
    for (u32 r0 = rows.lo; r0 < rows.hi; r0 += QUEUE_TILE) {
      if (!only) total = load_rows(hop, r0, rows.hi);
      edges(total, load, key, [&](u32 row, u32 place, u32, u32, u64 least) {
        mine += least == ((u64)(r0 + row) << 32 | place);
      });
      __syncthreads();
    }
    this->before(mine, firsts);
    next += firsts_before(firsts);
    for (u32 r0 = rows.lo; r0 < rows.hi; r0 += QUEUE_TILE) {
      if (!only) total = load_rows(hop, r0, rows.hi);
      for (u32 q0 = 0; q0 < total; q0 += QUEUE_THREADS) {
        u32 q[1] = {q0 + threadIdx.x}, row[1], t = 0;
        bool first = false;
        if (q[0] < total) {
          this->find_rows(q, row);
          u32 place = q[0] - s.offsets[row[0]], x = edge((u32)s.firsts[row[0]] + place);
          t = x & ~OFFERS;
          first = key(x) == ((u64)(r0 + row[0]) << 32 | place);
        }
        u64 all, at = this->before(first, all);
        if (first) put(t, next + (u32)at, ((const I*)a.found)[t]);
        next += (u32)all;
      }
      __syncthreads();
    }
  }

  // Numbers all vertices but the seeds level by level, within a level as they come. Other blocks may be
  // numbering seeds already: whatever they do to a seed's key, the upper half stays 0.
  __device__ void number_arrived(u32 found) {
    Part arrivals(found);
    u32 lane = threadIdx.x & 31;
    if (threadIdx.x && threadIdx.x <= a.hops) s.next[threadIdx.x] = s.ends[threadIdx.x - 1] + s.before[threadIdx.x];
    __syncthreads();
    for (u32 t0 = arrivals.lo + (threadIdx.x & ~31u); t0 < arrivals.hi; t0 += QUEUE_THREADS) {
      u32 t = t0 + lane, level = t < arrivals.hi ? (u32)(load_relaxed(a.keys + t) >> 32) : 0, number = 0;
      for (u32 l = 1; l <= a.hops; l++) {
        u32 mask = __ballot_sync(~0u, level == l), first = 0;
        if (lane == 0 && mask) first = atomicAdd(&s.next[l], __popc(mask));
        first = __shfl_sync(~0u, first, 0);
        if (level == l) number = first + __popc(mask & ((1u << lane) - 1));
      }
      if (level) put(t, number, ((const I*)a.found)[t]);
    }
  }

  // ---- write ---------------------------------------------------------------------------------

  // The sums of the rows' edges, of each hop, to mine.
  __device__ void measure() {
    for (u32 hop = 0; hop < a.hops; hop++) {
      Part rows(s.ends[hop]);
      u64 edges = 0, all;
      for (u32 r = rows.lo + threadIdx.x; r < rows.hi; r += QUEUE_THREADS) edges += a.table[(u64)a.order[r] * a.hops + hop] >> 32;
      this->before(edges, all);
      if (threadIdx.x == 0) s.mine[hop] = (u32)all;
    }
  }

  __device__ void write_hop(u32 hop, I* indptr, I* ids, char* edge_ids) {
    Part rows(s.ends[hop]);
    u32 bits = a.out_edge_bits, at = s.before[hop];
    for (u32 r0 = rows.lo; r0 < rows.hi; r0 += QUEUE_TILE) {
      u32 total = load_rows(hop, r0, rows.hi);
      if (threadIdx.x < QUEUE_TILE && r0 + threadIdx.x < rows.hi) indptr[r0 + threadIdx.x] = (I)(at + s.offsets[threadIdx.x]);
      edges(total, [&](u32 e) { return ulonglong2{edge(e), read(a.picked_ids, bits, e)}; },
            [&](ulonglong2 x) { return a.numbers[x.x & ~OFFERS]; },
            [&](u32 row, u32 place, u32, ulonglong2 x, u32 number) {
              u32 to = at + s.offsets[row] + place;
              ids[to] = (I)number;
              write(edge_ids, bits, to, x.y);
            });
      at += total;
      __syncthreads();
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) indptr[s.ends[hop]] = (I)s.total[hop];
  }

  // ---- the batch -----------------------------------------------------------------------------

  // The block that comes last leaves the counts as it found them and reports: then no block works on
  // the batch any more.
  __device__ void end(u64 status, u64 detail) {
    __syncthreads();
    if (threadIdx.x || !s.meeting.come_last()) return;
    if (status == STATUS_QUEUE_FULL) {
      a.report[REPORT_HEADER + QUEUE_FULL_TASKS] = load_relaxed(a.counts + QUEUE_PROGRESS) >> 32;
      a.report[REPORT_HEADER + QUEUE_FULL_FOUND] = load_relaxed(a.counts + QUEUE_FOUND);
      a.report[REPORT_HEADER + QUEUE_FULL_EDGES] = load_relaxed(a.counts + QUEUE_EDGES);
    }
    for (int i = QUEUE_PROGRESS; i < QUEUE_LOWEST_BAD; i++) a.counts[i] = 0;
    a.counts[QUEUE_LOWEST_BAD] = ~0ull;
    a.report[REPORT_DETAIL] = detail;
    __threadfence_system();
    *(volatile u64*)a.report = status;
  }

  __device__ void run() {
    this->drain();
    barrier(s);
    u64 tasks = load_relaxed(a.counts + QUEUE_PROGRESS) >> 32, found = load_relaxed(a.counts + QUEUE_FOUND);
    u64 picked = load_relaxed(a.counts + QUEUE_EDGES), stopped = load_relaxed(a.counts + QUEUE_STOP);
    if (stopped) {
      Part queued((u32)min(tasks, a.task_capacity));
      for (u32 i = queued.lo + threadIdx.x; i < queued.hi; i += QUEUE_THREADS) a.queue[i] = 0;
      // What was not looked at may hold a lower bad seed.
      if (stopped & STOP_FULL) return end(STATUS_QUEUE_FULL, 0);
      return end(STATUS_SEED_OUT_OF_RANGE, load_relaxed(a.counts + QUEUE_LOWEST_BAD));
    }
    resolve((u32)tasks, (u32)found);
    this->exchange(a.hops + 1);
    if (threadIdx.x <= a.hops) {
      u32 sum = 0;
      for (u32 l = 0; l <= threadIdx.x; l++) sum += s.total[l];
      s.ends[threadIdx.x] = sum;
    }
    __syncthreads();
    u64 width = sizeof(I), id_width = a.out_edge_bits / 8;
    const Layout l = homogeneous(a.hops);
    u64 off_nodes = align64(l.words() * 8), off_index = align64(off_nodes + found * width);
    u64 off_given = align64(off_index + a.num_seeds * width), used = off_given + a.num_seeds * width;
    // Three arrays a hop, each with a gap before it; every row of a hop was a task.
    u64 most = used + 3 * 64 * a.hops + (tasks + a.hops) * width + picked * (width + id_width);
    if (used > a.out_capacity) return end(STATUS_QUEUE_FULL, most);
    nodes = (I*)(a.out + off_nodes);
    if (!a.ordered) number_arrived((u32)found);
    number_seeds();
    if (!a.ordered || !distinct()) barrier(s);
    for (u32 hop = 0; a.ordered && hop < a.hops; hop++) {
      number_hop(hop);
      if (hop + 1 < a.hops) barrier(s);
    }
    measure();
    this->exchange(a.hops);
    u64 size = used;
    for (u32 hop = 0; hop < a.hops; hop++)
      size = align64(align64(align64(size) + (s.ends[hop] + 1) * width) + s.total[hop] * width) + s.total[hop] * id_width;
    if (size > a.out_capacity) return end(STATUS_QUEUE_FULL, size);
    bool reporter = blockIdx.x == 0 && threadIdx.x == 0;
    u64* header = a.report + REPORT_HEADER;
    for (u32 hop = 0; hop < a.hops; hop++) {
      u64 rows = s.ends[hop], edges = s.total[hop];
      u64 off_indptr = align64(used), off_ids = align64(off_indptr + (rows + 1) * width);
      u64 off_edge_ids = align64(off_ids + edges * width);
      used = off_edge_ids + edges * id_width;
      write_hop(hop, (I*)(a.out + off_indptr), (I*)(a.out + off_ids), a.out + off_edge_ids);
      if (reporter) {
        u64* words = header + l.block(a.hops - 1 - hop, 0);
        header[l.count(0, hop)] = rows;
        words[BLOCK_NUM_SRC] = s.ends[hop + 1], words[BLOCK_NUM_DST] = rows, words[BLOCK_NUM_EDGES] = edges;
        words[BLOCK_INDPTR] = off_indptr, words[BLOCK_INDICES] = off_ids, words[BLOCK_EDGE_IDS] = off_edge_ids;
        words[BLOCK_FIRST_DST] = words[7] = 0;
      }
    }
    I* index = (I*)(a.out + off_index);
    I* given = (I*)(a.out + off_given);
    Part seeds((u32)a.num_seeds);
    for (u32 i = seeds.lo + threadIdx.x; i < seeds.hi; i += QUEUE_THREADS) {
      I v = ((const I*)a.kept)[i];
      given[i] = v;
      index[i] = (I)a.numbers[arrival(v)];
    }
    if (reporter) {
      l.sign(header, width * 8, used);
      header[WORD_NUM_OUTPUT] = a.num_seeds, header[WORD_NODES] = off_nodes;
      header[WORD_NUM_NODES] = found, header[WORD_OUTPUT_NODES] = distinct() ? off_nodes : off_given;
      header[WORD_OUTPUT_INDEX] = off_index;
      for (u32 i = WORD_SUBGRAPH_IDS; i < FIRST_BLOCK; i++) header[i] = 0;
      header[l.edge_id_bits(0)] = a.out_edge_bits, header[l.count(0, a.hops)] = found;
      __threadfence_system();
    }
    end(STATUS_OK, used);
  }
};

template <typename I>
__device__ __forceinline__ void sample(const Args& a) {
  extern __shared__ u32 draws[];
  __shared__ Shared s;
  Sampling<I>(a, s, draws).run();
}

extern "C" __global__ void __launch_bounds__(QUEUE_THREADS, 2) queue32(const __grid_constant__ Args a) { sample<int>(a); }
extern "C" __global__ void __launch_bounds__(QUEUE_THREADS, 2) queue64(const __grid_constant__ Args a) {
  sample<long long>(a);
}
