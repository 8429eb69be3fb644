// The first part of queue.cu: from the seeds to the last finished task. Every task writes its edges
// to picked and picked_ids, and a word to rows that says which they are.
#pragma once
#include "research/queue.cuh"

#define NONE ~0u

template <typename I>
struct Tasks {
  const Args& a;
  Shared& s;
  u32* draws;  // dynamic shared memory: (widest | 1) words a row of the tile
  u32 exchanges = 0, scans = 0;

  __device__ Tasks(const Args& a, Shared& s, u32* draws) : a(a), s(s), draws(draws) {
    if (threadIdx.x) return;
    s.meeting.begin(a.arrived);
    s.ticket = s.ticket_end = s.tail = 0;
    s.done = 0;
  }

  // The sum of x over the threads before this one; all becomes the sum over all. Two rows of parts take
  // turns: a fast warp is at most one sum ahead of another's reading.
  __device__ u64 before(u64 x, u64& all) {
    Before sums = threads_before(x, s.parts[scans++ & 1]);
    all = sums.all;
    return sums.before;
  }

  // Sums of mine[0, n) over the blocks. Two sets of slots take turns, for the same reason.
  __device__ void exchange(u32 n) {
    add_up(s, a.slots + (u64)(exchanges++ & 1) * (MOST_HOPS + 1) * gridDim.x, n);
  }

  // ---- the queue -----------------------------------------------------------------------------

  __device__ void stop(u64 why) {
    if (threadIdx.x == 0) atomicOr(a.counts + QUEUE_STOP, why);
  }

  // Whether all tasks are finished. Besides those published there is one for each block, which was
  // there from the start: its part of the seeds.
  __device__ static bool finished(u64 progress) {
    return (u32)progress == (u32)(progress >> 32) + gridDim.x;
  }

  // The block's next tasks: how many, the slot of the first, and the thread's own as a word of the
  // queue. 0 when no task will come any more.
  __device__ u32 next(u64& slot, u64& word) {
    for (;;) {
      if (threadIdx.x == 0) {
        u64 stopped = load_relaxed(a.counts + QUEUE_STOP), ticket = s.ticket, end = s.ticket_end;
        if (ticket == end) {
          // A long backlog is shared out, in two rounds lest the last tasks fall to few blocks.
          u64 backlog = s.tail > ticket ? s.tail - ticket : 0;
          u64 ask = a.fetch ? a.fetch : min(max(backlog / (2 * gridDim.x), (u64)a.fewest), (u64)QUEUE_TILE);
          ticket = atomicAdd(a.counts + QUEUE_HEAD, ask);
          end = ticket + ask;
        }
        s.stopped = stopped != 0;
        s.ticket = ticket, s.ticket_end = end;
        s.ready = (u32)min((u64)QUEUE_TILE, end - ticket);
      }
      __syncthreads();
      if (s.stopped) return 0;
      slot = s.ticket;
      bool asked = threadIdx.x < s.ticket_end - slot && threadIdx.x < QUEUE_TILE;
      word = asked && slot + threadIdx.x < a.task_capacity ? load_relaxed(a.queue + slot + threadIdx.x) : 0;
      if (asked && word == 0) atomicMin(&s.ready, threadIdx.x);
      __syncthreads();
      u32 count = s.ready;
      if (count) {
        if (threadIdx.x == 0) s.ticket += count;
        return count;
      }
      if (threadIdx.x == 0) {
        // A slot beyond the capacity is never filled: whoever would, stops all.
        for (bool come = false; !come && !s.done;) {
          u64 task = slot < a.task_capacity ? load_relaxed(a.queue + slot) : 0;
          u64 progress = load_relaxed(a.counts + QUEUE_PROGRESS), stopped = load_relaxed(a.counts + QUEUE_STOP);
          come = task != 0;
          s.done = finished(progress) || stopped;
        }
      }
      __syncthreads();
      if (s.done) return 0;
    }
  }

  // Queues vertex v for the given hop and all later ones, as far as it was not. Returns the hops that
  // it is now queued for, from | end << 8, and bit 16 if nobody had found it before. Hop `hops`, of
  // the outermost vertices, has no tasks.
  __device__ u32 claim(u64 v, u32 hop) {
    u32 old = atomicMin(a.claims + 2 * v, a.tag << 8 | hop);
    bool known = old >> 8 == a.tag;
    u32 end = max(hop, known ? old & 255 : a.hops);
    return hop | end << 8 | (known ? 0 : 1u << 16);
  }

  // Publishes the tasks that claim() gave for the block's vertices v, and says that so many others are
  // finished: one addition to one word. False if something is full.
  __device__ bool publish(const I (&v)[ITEMS], const u32 (&runs)[ITEMS], u32 finished) {
    // New vertices of a chunk have 12 bits, tasks the others.
    u32 mine = 0;
    for (int k = 0; k < ITEMS; k++) mine += ((runs[k] >> 8 & 255) - (runs[k] & 255)) << 12 | runs[k] >> 16;
    u64 all;
    u32 at = (u32)before(mine, all), tasks = (u32)(all >> 12), fresh = (u32)all & 4095;
    if (threadIdx.x == 0) {
      s.slot = atomicAdd(a.counts + QUEUE_PROGRESS, (u64)tasks << 32 | finished) >> 32;
      s.tail = s.slot + tasks;
    }
    if (threadIdx.x == 32) s.arrival = fresh ? atomicAdd(a.counts + QUEUE_FOUND, (u64)fresh) : 0;
    __syncthreads();
    u64 slot = s.slot + (at >> 12), t = s.arrival + (at & 4095);
    if (s.slot + tasks > a.task_capacity || s.arrival + fresh > a.found_capacity) {
      stop(STOP_FULL);
      return false;
    }
    for (int k = 0; k < ITEMS; k++) {
      if (runs[k] >> 16) {
        ((I*)a.found)[t] = v[k];
        a.claims[2 * (u64)v[k] + 1] = (u32)t++;
      }
      for (u32 hop = runs[k] & 255; hop < (runs[k] >> 8 & 255); hop++)
        store_relaxed(a.queue + slot++, ((u64)v[k] << 8 | hop) + 1);
    }
    return true;
  }

  // ---- rows ----------------------------------------------------------------------------------

  // The CSC position of the pick-th edge of a row.
  __device__ u64 position(u64 start, u64 pick) const {
    return a.num_excluded ? kept(a.excluded, a.num_excluded, start, pick) : start + pick;
  }

  // Reads the row of a task into the tile; returns how many edges it gives, 2^31 for more.
  __device__ u64 read_row(u64 task) {
    u32 own = threadIdx.x, hop = (u32)task & 255;
    u64 v = task >> 8, start = 0, degree = 0;
    if (v < a.num_rows) {
      start = read(a.indptr, a.indptr_bits, v);
      u64 end = read(a.indptr, a.indptr_bits, v + 1);
      degree = end - start;
      if (a.num_excluded) degree -= excluded_in(a.excluded, a.num_excluded, start, end);
    }
    long long fanout = a.fanouts[a.hops - 1 - hop];
    // gives_all, but that a row of a fanout of 0 needs no draw. Written out: by the function the kernel is
    // other machine code, which nobody has measured.
    bool whole = fanout <= 0 || degree == 0 || (!a.replace && degree <= (u64)fanout);
    u64 take = fanout == 0 ? 0 : whole ? degree : (u64)fanout;
    s.firsts[own] = start;
    s.degrees[own] = degree;
    s.hops[own] = (unsigned char)hop;
    // A draw is 32 bits wide in shared memory.
    s.kinds[own] = whole ? WHOLE : fanout <= DIRECT && degree >> 32 == 0 ? NARROW : WIDE;
    if (!whole) s.states[own] = row_state(stream_of(a.key0, a.key1, hop, a.batch0, a.batch1), v);
    return min(take, (u64)MOST_EDGES);
  }

  // The rows of edges q of the tile, all at once.
  template <int N>
  __device__ void find_rows(const u32 (&q)[N], u32 (&row)[N]) const {
#pragma unroll
    for (int k = 0; k < N; k++) row[k] = 0;
#pragma unroll 1
    for (u32 step = QUEUE_TILE / 2; step; step >>= 1)
#pragma unroll
      for (int k = 0; k < N; k++)
        if (s.offsets[row[k] + step] <= q[k]) row[k] += step;
  }

  // ---- choices -------------------------------------------------------------------------------

  // All draws of narrow rows, a row's together and rows an odd number of words apart, against bank
  // conflicts.
  __device__ void draw_narrow(u32 count) {
    u32 widest = a.widest, stride = widest | 1;
    for (u32 q = threadIdx.x; q < count * widest; q += QUEUE_THREADS) {
      u32 row = q / widest, j = q - row * widest, fanout = s.takes[row];
      if (s.kinds[row] != NARROW || j >= fanout) continue;
      u64 degree = s.degrees[row];
      draws[row * stride + j] = (u32)draw_below(s.states[row], j, a.replace ? degree : degree - fanout + j + 1);
    }
  }

  // Rows of larger fanouts, a warp each: the choices stand where the edge ids will, which are wide
  // enough for any position.
  __device__ void choose_wide(u32 count) const {
    u32 lane = threadIdx.x & 31, bits = a.out_edge_bits;
    for (u32 row = threadIdx.x >> 5; row < count; row += WARPS) {
      if (s.kinds[row] != WIDE) continue;
      u64 degree = s.degrees[row], at = s.edge + s.offsets[row], state = s.states[row];
      u32 fanout = s.takes[row];
      for (u32 j = 0; j < fanout; j++) {
        if (a.replace) {
          if ((j & 31) == lane) write(a.picked_ids, bits, at + j, draw_below(state, j, degree));
          continue;
        }
        u64 top = degree - fanout + j, t = draw_below(state, j, top + 1);
        bool met = false;
        for (u32 i = lane; i < j; i += 32) met |= read(a.picked_ids, bits, at + i) == t;
        if (__any_sync(~0u, met)) t = top;
        if (lane == 0) write(a.picked_ids, bits, at + j, t);
        __syncwarp();
      }
    }
  }

  // The offset in its row of edge j, not counting excluded ones.
  __device__ u64 pick(u32 row, u32 j, u64 edge) const {
    if (s.kinds[row] == WHOLE) return j;
    if (s.kinds[row] == WIDE) return read(a.picked_ids, a.out_edge_bits, edge);
    const u32* own = draws + row * (a.widest | 1);
    return a.replace ? own[j] : floyd(own, j, (u32)s.degrees[row] - s.takes[row]);
  }

  // ---- tasks ---------------------------------------------------------------------------------

  // Chooses the edges of a tile of tasks: n of them, from first_edge on in picked. False if they do not
  // fit.
  __device__ bool choose(u32 count, u64 slot, u64 word, u32& first_edge, u32& n) {
    u32 own = threadIdx.x;
    u64 take = own < count ? read_row(word - 1) : 0, all, at = before(take, all);
    if (own < QUEUE_TILE) s.offsets[own] = (u32)at, s.takes[own] = (u32)take;
    // The draws are made while the addition is on its way.
    u64 edge = 0;
    if (own == 0) edge = atomicAdd(a.counts + QUEUE_EDGES, all);
    __syncthreads();
    draw_narrow(count);
    if (own == 0) s.edge = edge;
    __syncthreads();
    edge = s.edge;
    if (edge + all > a.edge_capacity) {
      stop(STOP_FULL);
      return false;
    }
    if (own < count) a.rows[slot + own] = (edge + at) | take << 32;
    choose_wide(count);
    __syncthreads();
    first_edge = (u32)edge, n = (u32)all;
    return true;
  }

  // Gathers what the n edges of the tile, from edge on in picked, lead to, and queues it; or queues n
  // seeds from seed `edge` on. Then so many tasks are finished. False if something is full.
  __device__ bool spread(bool seeds, u32 edge, u32 n, u32 finished) {
    for (u32 q0 = 0;; q0 += CHUNK) {
      I v[ITEMS];
      u32 runs[ITEMS];
      if (seeds) take_seeds(edge + q0, edge + n, v, runs);
      else gather(q0, n, edge, v, runs);
#pragma unroll
      for (int k = 0; k < ITEMS; k++) {
        u32 hop = runs[k];
        runs[k] = hop == NONE ? 0 : claim((u64)v[k], hop);
      }
      bool last = n - q0 <= CHUNK;
      if (!publish(v, runs, last ? finished : 0)) return false;
      if (last) return true;
    }
  }

  // The vertices and hops, or NONE, of seeds [i0, hi). All are looked at, whatever happens, so that the
  // lowest bad one is found.
  __device__ void take_seeds(u32 i0, u32 hi, I (&v)[ITEMS], u32 (&hops)[ITEMS]) {
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
      u32 i = i0 + k * QUEUE_THREADS + threadIdx.x;
      hops[k] = NONE;
      if (i >= hi) continue;
      u64 seed = read(a.seeds, a.seed_bits, i);
      v[k] = ((I*)a.kept)[i] = (I)seed;
      if (seed < a.num_nodes) {
        hops[k] = 0;
      } else {
        atomicMin(a.counts + QUEUE_LOWEST_BAD, (u64)i);
        atomicOr(a.counts + QUEUE_STOP, (u64)STOP_BAD_SEED);
      }
    }
  }

  // The vertices that edges [q0, n) of the tile lead to, and the hops next to theirs.
  __device__ void gather(u32 q0, u32 n, u32 edge, I (&v)[ITEMS], u32 (&hops)[ITEMS]) {
    u32 q[ITEMS], row[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) q[k] = q0 + k * QUEUE_THREADS + threadIdx.x;
    find_rows(q, row);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
      hops[k] = NONE;
      if (q[k] >= n) continue;
      u64 p = position(s.firsts[row[k]], pick(row[k], q[k] - s.offsets[row[k]], edge + q[k]));
      v[k] = ((const I*)a.indices)[p];
      hops[k] = s.hops[row[k]] + 1;
      write(a.picked_ids, a.out_edge_bits, edge + q[k], a.edge_id_bits ? read(a.edge_ids, a.edge_id_bits, p) : p);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
      if (q[k] < n) ((I*)a.picked)[edge + q[k]] = v[k];
  }

  // Runs tasks until there are none, or something is full.
  __device__ void drain() {
    Part seeds((u32)a.num_seeds);
    // The block's part of the seeds is a task, too.
    bool tile = false, going = true;
    u32 edge = seeds.lo, n = seeds.hi - seeds.lo, count = 1;
    while (going && spread(!tile, edge, n, count)) {
      u64 slot, word;
      count = next(slot, word);
      tile = true;
      going = count && choose(count, slot, word, edge, n);
    }
  }
};
