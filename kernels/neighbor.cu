// The L-hop uniform sampler in one cooperative persistent launch.
//
// Source: PGSampler, sections III-B and III-C: all hops in one kernel, persistent blocks. Unlike the
// paper's queue the hops stay in phases here, since canonical numbering needs an order.
//
// Numbering by first occurrence without a sort. Every edge of a batch has a rank: the edges of earlier
// hops (the seeds count as a hop of their own), then the edge's position in its hop. A map of all
// vertices holds, under the launch's tag, the smallest rank at which a vertex occurred, found by
// atomicMin, and later the vertex's number. Ranks grow from hop to hop and numbers stay below them, so
// a claim of a later hop never displaces an earlier one.
//
// Phases of a hop, and what separates them (with 132 blocks a barrier takes 1.3 us, sums 2):
//   draw    rows: choose, gather, claim                                            barrier
//   check   edges, in equal slices: a first occurrence when the map holds its
//           rank, else the edge's number or the edge to ask for it                 sums
//   number  first occurrences get their numbers, in order; offsets and degrees of
//           the next hop's rows are read                                           sums
//   settle  (in the next hop) edges that asked another edge get its number
// The seeds are one more hop without rows. They are nearly always distinct, and then their numbers are
// their positions: the next hop's sums tell whether they were.
//
// Who draws which rows. The rows that a block has just numbered are the only ones whose place among
// the edges it knows without another exchange, so it draws them and an equal slice of the older rows.
// First occurrences are more frequent at the front of a hop, which makes these parts unequal: a large
// hop deals all rows anew, which costs one more exchange.
//
// Tags fall from launch to launch: an old entry is larger than any new one, so the map is never
// cleared. When they run out the host fills it with ones.
//
// Versions tried, microseconds a batch back to back on one H200, int32 ids, arxiv-like and products-like
// 1024x(10,10), then products-like 2048x(10,10,10):
//   every block polls every other's slot for each exchange             55   63  226
//   counter barrier, sums polled                                       44   50  199
//   sums read after a counter barrier, seeds taken for distinct,
//   older and fresh rows in one tile, sums by redux                    33   38  152
//
// Go caller: internal/cuda/neighbor.go. Go twin: internal/cpu/neighbor.go and rows.go.
#include "neighbor.cuh"

template <typename I>
struct Sampling {
  const Args& a;
  Shared& s;
  u32* picks;  // dynamic shared memory: (fanout | 1) words a row of the tile
  I* nodes;
  u64 n = 0;     // vertices numbered
  u64 base = 0;  // rank of the hop's first edge
  u32 turns = 0;
  // The hop whose edges may still ask another edge of it for their number.
  I* asked = nullptr;
  u64 asked_edges = 0;
  // The rows that this block has numbered last, and how many edges its older rows give.
  u64 fresh_lo = 0, fresh_hi = 0, older_edges = 0;

  __device__ Sampling(const Args& a, Shared& s, u32* picks, I* nodes) : a(a), s(s), picks(picks), nodes(nodes) {}

  // Parts take turns, so that a fast warp does not overwrite what a slow one still reads.
  __device__ u64 (*parts())[32] { return s.parts[turns++ & 3]; }

  __device__ void barrier() { grid_barrier(a.arrived); }

  // Two rows of slots take turns: a block may be one exchange ahead of another's reading.
  u32 exchanges = 0;
  __device__ Sums sums(u64 x, u64 y) {
    ulonglong2* slots = a.slots + (exchanges++ & 1) * gridDim.x;
    u64(*first)[32] = parts();
    return grid_sums(x, y, slots, a.arrived, first, parts());
  }

  __device__ void claim(u64 v, u64 edge) { atomicMin(a.map + v, (u64)a.tag << 32 | (base + edge)); }

  __device__ void report(u64 status, u64 detail) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      a.report[1] = detail;
      __threadfence_system();
      a.report[0] = status;
    }
  }

  // Numbers the first occurrences among ids[0, edges), which hold original ids that all blocks have
  // claimed, and replaces each id by its number, or by -1 - e where edge e has, or will have, the
  // number. Unless it is the last hop, reads the new rows; returns how many edges of the block's they
  // give.
  __device__ u64 number(I* ids, u64 edges, bool last, long long fanout) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = THREADS / 32;
    u64 lo = slice_begin(edges), hi = slice_end(edges), step = ((hi - lo + warps - 1) / warps + 31) & ~31ull;
    u64 from = min(lo + warp * step, hi), to = min(from + step, hi);
    u32 found = 0, kept = 0;
    u64 kept_v = 0, kept_start = 0, kept_end = 0;
    for (u64 e0 = from; e0 < to; e0 += 32) {
      u64 e = e0 + lane;
      bool first = false;
      if (e < to) {
        u64 v = (u64)ids[e], rank = (u32)load_relaxed(a.map + v);
        first = rank == base + e;
        if (e0 == from && first) {
          // What small hops need after the exchange is on its way before it.
          kept_v = v;
          if (!last && v < a.num_rows) {
            kept_start = read(a.indptr, a.indptr_bits, v);
            kept_end = read(a.indptr, a.indptr_bits, v + 1);
          }
        }
        if (!first) ids[e] = rank < base ? (I)rank : (I)(-1 - (long long)(rank - base));
      }
      u32 mask = __ballot_sync(~0u, first);
      if (e0 == from) kept = mask;
      else if (lane == 0) a.firsts[e0 >> 5] = mask;
      found += __popc(mask);
    }
    u64 in_block = found, in_warps = warps_before(in_block, parts());
    Sums all = sums(in_block, 0);
    fresh_lo = n + all.before[0];
    fresh_hi = fresh_lo + in_block;
    u64 next = fresh_lo + in_warps, takes = 0;
    for (u64 e0 = from; e0 < to; e0 += 32) {
      bool is_kept = e0 == from;
      u32 mask = is_kept ? kept : a.firsts[e0 >> 5];
      if (mask >> lane & 1) {
        u64 v = is_kept ? kept_v : (u64)ids[e0 + lane], id = next + __popc(mask & ((1u << lane) - 1));
        nodes[id] = (I)v;
        ids[e0 + lane] = (I)id;
        if (!last) {
          a.map[v] = (u64)a.tag << 32 | id;
          if (id < a.row_capacity) {
            takes += is_kept ? keep_row(kept_start, kept_end - kept_start, id, fanout) : read_row(v, id, fanout);
          }
        }
      }
      next += __popc(mask);
    }
    n += all.total[0];
    base += edges;
    asked = ids;
    asked_edges = edges;
    return takes;
  }

  // Gives the edges that ask another edge its number; a barrier after number() has passed.
  __device__ void settle() {
    for (u64 e = slice_begin(asked_edges) + threadIdx.x, hi = slice_end(asked_edges); e < hi; e += THREADS) {
      long long id = asked[e];
      if (id < 0) asked[e] = asked[-1 - id];
    }
  }

  __device__ u64 take(u64 degree, long long fanout, bool& whole) const {
    whole = fanout < 0 || degree == 0 || (!a.replace && degree <= (u64)fanout);
    return whole ? degree : (u64)fanout;
  }

  // Reads offset and degree of vertex v, row r; returns how many edges the row gives.
  __device__ u64 read_row(u64 v, u64 r, long long fanout) {
    u64 start = 0, degree = 0;
    if (v < a.num_rows) {
      start = read(a.indptr, a.indptr_bits, v);
      degree = read(a.indptr, a.indptr_bits, v + 1) - start;
    }
    return keep_row(start, degree, r, fanout);
  }

  __device__ u64 keep_row(u64 start, u64 degree, u64 r, long long fanout) {
    a.rows[r] = make_ulonglong2(start, degree);
    bool whole;
    return take(degree, fanout, whole);
  }

  // How many edges the thread's share of the rows [lo, hi), read before, gives.
  __device__ u64 count(u64 lo, u64 hi, long long fanout) {
    u64 edges = 0;
    bool whole;
    for (u64 r = lo + threadIdx.x; r < hi; r += THREADS) edges += take(a.rows[r].y, fanout, whole);
    return edges;
  }

  __device__ void store_edge_id(void* edge_ids, u64 e, u64 position) const {
    u64 id = a.edge_id_bits ? read(a.edge_ids, a.edge_id_bits, position) : position;
    if (a.out_edge_bits == 32) ((int*)edge_ids)[e] = (int)id;
    else ((long long*)edge_ids)[e] = (long long)id;
  }

  __device__ void gather(I* ids, void* edge_ids, u64 e, u64 position) {
    I v = ((const I*)a.indices)[position];
    ids[e] = v;
    store_edge_id(edge_ids, e, position);
    claim((u64)v, e);
  }

  // Finishes Floyd's algorithm for a row whose draws are in place: one that met an earlier choice gives
  // way to the largest position of its step.
  __device__ void replace_repeated(u32* row, u64 degree, u32 fanout) const {
    for (u32 j = 1; j < fanout; j++) {
      u32 t = row[j];
      bool taken = false;
      for (u32 i = 0; i < j; i++) taken |= row[i] == t;
      if (taken) row[j] = (u32)(degree - fanout + j);
    }
  }

  // Floyd's algorithm, one warp a row, for fanouts beyond DIRECT: the choices stand where the edge ids
  // will, which are wide enough for any position.
  __device__ void choose_wide(void* edge_ids, u64 e0, u64 state, u64 degree, u64 fanout) const {
    u32 lane = threadIdx.x & 31;
    for (u64 j = 0; j < fanout; j++) {
      u64 top = a.replace ? degree - 1 : degree - fanout + j, t = draw_below(state, (u32)j, top + 1);
      bool taken = false;
      for (u64 i = lane; !a.replace && i < j; i += 32) taken |= read(edge_ids, a.out_edge_bits, e0 + i) == t;
      if (__any_sync(~0u, taken)) t = top;
      if (lane == 0) {
        if (a.out_edge_bits == 32) ((int*)edge_ids)[e0 + j] = (int)t;
        else ((long long*)edge_ids)[e0 + j] = (long long)t;
      }
      __syncwarp();
    }
  }

  // The tile's rows one by one, a warp each, or the whole block for a whole row of a hub.
  __device__ void draw_wide(u32 count, long long fanout, I* ids, void* edge_ids) {
    const u64 HUB = 8192;
    u32 lane = threadIdx.x & 31;
    for (u32 row = threadIdx.x >> 5; row < count; row += THREADS / 32) {
      u64 take = s.takes[row], degree = s.degrees[row], e0 = s.offsets[row], start = s.starts[row];
      bool whole;
      this->take(degree, fanout, whole);
      if (!whole) choose_wide(edge_ids, e0, s.states[row], degree, take);
      else if (take >= HUB) continue;
      for (u64 j = lane; j < take; j += 32)
        gather(ids, edge_ids, e0 + j, start + (whole ? j : read(edge_ids, a.out_edge_bits, e0 + j)));
    }
    for (u32 row = 0; row < count; row++) {
      u64 take = s.takes[row];
      bool whole;
      this->take(s.degrees[row], fanout, whole);
      if (whole && take >= HUB)
        for (u64 j = threadIdx.x; j < take; j += THREADS) gather(ids, edge_ids, s.offsets[row] + j, s.starts[row] + j);
    }
  }

  // The tile's rows at once: a thread for each draw, then one for each row, then one for each edge. A
  // row's choices lie together in shared memory, and rows an odd number of words apart, so that none
  // of these meets bank conflicts.
  __device__ void draw_narrow(u32 count, u32 fanout, I* ids, void* edge_ids) {
    u32 stride = fanout | 1, own = threadIdx.x;
    // q / fanout by a multiplication, exact for q below 2^16: q < THREADS * DIRECT.
    u32 reciprocal = 0xFFFFFFFFu / fanout + 1, draws = count * fanout;
    for (u32 q = threadIdx.x; q < draws; q += THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
      u64 degree = s.degrees[row];
      bool all;
      take(degree, fanout, all);
      u64 below = a.replace ? degree : degree - fanout + j + 1;
      picks[row * stride + j] = all ? j : (u32)draw_below(s.states[row], j, below);
    }
    if (!a.replace) {
      __syncthreads();
      bool whole = true;
      if (own < count) take(s.degrees[own], fanout, whole);
      if (!whole) replace_repeated(picks + own * stride, s.degrees[own], fanout);
    }
    __syncthreads();
    for (u32 q = threadIdx.x; q < draws; q += THREADS) {
      u32 row = fanout > 1 ? __umulhi(q, reciprocal) : q, j = q - row * fanout;
      if (j < s.takes[row]) gather(ids, edge_ids, s.offsets[row] + j, s.starts[row] + picks[row * stride + j]);
    }
  }

  // The rows that a block draws in a hop: split of them from lo on, the others from fresh on. The first
  // edge of the former is edge at, and the latter's edges lie jump further than if they followed.
  struct Rows {
    u64 lo, split, fresh, count, at, jump;
  };

  __device__ void draw(const Stream& stream, const Rows& rows, long long fanout, I* indptr, I* ids, void* edge_ids) {
    // A choice is 32 bits wide in shared memory.
    bool narrow = fanout > 0 && fanout <= DIRECT && a.num_edges >> 32 == 0;
    u64 at = rows.at;
    for (u64 i0 = 0; i0 < rows.count; i0 += THREADS) {
      u64 i = i0 + threadIdx.x, r = i < rows.split ? rows.lo + i : rows.fresh + (i - rows.split), edges;
      u32 count = (u32)min((u64)THREADS, rows.count - i0), takes = 0;
      ulonglong2 row = make_ulonglong2(0, 0);
      bool whole = true;
      if (i < rows.count) {
        row = a.rows[r];
        takes = (u32)take(row.y, fanout, whole);
        if (!whole) s.states[threadIdx.x] = row_state(stream, (u64)nodes[r]);
      }
      u64 offset = at + threads_before(takes, edges, parts()) + (i < rows.split ? 0 : rows.jump);
      if (i < rows.count) indptr[r] = (I)offset;
      s.starts[threadIdx.x] = row.x;
      s.degrees[threadIdx.x] = row.y;
      s.offsets[threadIdx.x] = offset;
      s.takes[threadIdx.x] = takes;
      __syncthreads();
      if (narrow) draw_narrow(count, (u32)fanout, ids, edge_ids);
      else draw_wide(count, fanout, ids, edge_ids);
      at += edges;
      __syncthreads();
    }
  }

  // Claims the seeds as if they were distinct, so that each number is its position, and reads their
  // rows. Returns the sums of: edges of the rows; seeds that are not as hoped.
  __device__ Sums seeds(I* index, I* given, long long fanout) {
    u64 lo = slice_begin(a.num_seeds), hi = slice_end(a.num_seeds);
    for (u64 i = lo + threadIdx.x; i < hi; i += THREADS) {
      u64 v = read(a.seeds, a.seed_bits, i);
      if (v >= a.num_nodes) {
        atomicMin(a.bad_seed, i);
        v = 0;  // any vertex: the batch will be refused
      }
      given[i] = index[i] = (I)v;
      claim(v, i);
    }
    barrier();
    u64 takes = 0, repeated = 0;
    for (u64 i = lo + threadIdx.x; i < hi; i += THREADS) {
      u64 v = (u64)given[i];
      bool first = (u32)load_relaxed(a.map + v) == i;
      repeated += !first;
      if (first && i < a.row_capacity) {
        nodes[i] = (I)v;
        takes += read_row(v, i, fanout);
      }
    }
    u64 first_lo = lo, first_hi = hi;
    block_sum(takes, repeated, parts());
    Sums all = sums(takes, repeated);
    if (all.total[1] == 0) {
      n = base = a.num_seeds;
      for (u64 i = lo + threadIdx.x; i < hi; i += THREADS) index[i] = (I)i;
      fresh_lo = first_lo, fresh_hi = first_hi;
      all.before[1] = all.before[0], all.total[1] = all.total[0], all.before[0] = all.total[0] = 0;
      return all;
    }
    return exchange(0, number(index, a.num_seeds, false, fanout), fanout);
  }

  // After number(): the sums of the edges of older rows, and of those just numbered.
  __device__ Sums exchange(u64 older, u64 fresh, long long fanout) {
    u64 mine = count(older * blockIdx.x / gridDim.x, older * (blockIdx.x + 1) / gridDim.x, fanout);
    block_sum(mine, fresh, parts());
    older_edges = mine;
    Sums all = sums(mine, fresh);
    return all;
  }

  __device__ void run() {
    u64 width = sizeof(I), id_width = a.out_edge_bits / 8;
    u64 off_nodes = align64((HEADER_WORDS + BLOCK_WORDS * a.hops) * 8);
    u64 off_index = align64(off_nodes + a.node_bound * width);
    u64 off_given = align64(off_index + a.num_seeds * width);
    u64 used = off_given + a.num_seeds * width;
    if (used > a.out_capacity) return report(TOO_SMALL, used);
    nodes = (I*)(a.out + off_nodes);
    I* index = (I*)(a.out + off_index);
    Sums at = seeds(index, (I*)(a.out + off_given), a.fanouts[a.hops - 1]);
    if (load_relaxed(a.bad_seed) != ~0ull) return report(SEED_OUT_OF_RANGE, load_relaxed(a.bad_seed));
    u64 distinct = n, older = 0;
    bool reporter = blockIdx.x == 0 && threadIdx.x == 0;
    u64* header = a.report + 2;
    for (u32 hop = 0; hop < a.hops; hop++) {
      long long fanout = a.fanouts[a.hops - 1 - hop];
      u64 rows = n, edges = at.total[0] + at.total[1];
      u64 off_indptr = align64(used), off_ids = align64(off_indptr + (rows + 1) * width);
      u64 off_edge_ids = align64(off_ids + edges * width);
      used = off_edge_ids + edges * id_width;
      if (base + edges >= 1ull << 31) return report(TOO_MANY_EDGES, base + edges);
      if (rows > a.row_capacity || used > a.out_capacity || edges > a.edge_capacity) return report(TOO_SMALL, used);
      settle();
      I* indptr = (I*)(a.out + off_indptr);
      I* ids = (I*)(a.out + off_ids);
      Stream stream = {a.key0, a.key1, hop << 16, a.batch0, a.batch1};
      if (rows > LARGE_HOP) {
        u64 lo = rows * blockIdx.x / gridDim.x, hi = rows * (blockIdx.x + 1) / gridDim.x;
        u64 mine = count(lo, hi, fanout), unused = 0;
        block_sum(mine, unused, parts());
        Sums dealt = sums(mine, 0);
        draw(stream, Rows{lo, hi - lo, 0, hi - lo, dealt.before[0], 0}, fanout, indptr, ids, a.out + off_edge_ids);
      } else {
        u64 lo = older * blockIdx.x / gridDim.x, split = older * (blockIdx.x + 1) / gridDim.x - lo;
        u64 jump = at.total[0] + at.before[1] - at.before[0] - older_edges;
        Rows mine = {lo, split, fresh_lo, split + fresh_hi - fresh_lo, at.before[0], jump};
        draw(stream, mine, fanout, indptr, ids, a.out + off_edge_ids);
      }
      if (reporter) indptr[rows] = (I)edges;
      bool last = hop + 1 == a.hops;
      older = n;
      barrier();
      u64 fresh = number(ids, edges, last, last ? 0 : a.fanouts[a.hops - 2 - hop]);
      if (!last) at = exchange(older, fresh, a.fanouts[a.hops - 2 - hop]);
      if (reporter) {
        u64* words = header + HEADER_WORDS + BLOCK_WORDS * (a.hops - 1 - hop);
        words[0] = n, words[1] = rows, words[2] = edges;
        words[3] = off_indptr, words[4] = off_ids, words[5] = off_edge_ids, words[6] = words[7] = 0;
      }
    }
    barrier();
    settle();
    if (reporter) {
      header[0] = 0x50475342, header[1] = width * 8, header[2] = a.out_edge_bits, header[3] = a.hops;
      header[4] = a.num_seeds, header[5] = off_nodes, header[6] = n;
      header[7] = distinct == a.num_seeds ? off_nodes : off_given, header[8] = off_index, header[9] = used;
    }
    report(OK, used);
  }
};

template <typename I>
__device__ __forceinline__ void sample(const Args& a) {
  extern __shared__ u32 picks[];
  __shared__ Shared s;
  Sampling<I>(a, s, picks, nullptr).run();
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) neighbor32(const __grid_constant__ Args a) {
  sample<int>(a);
}
extern "C" __global__ void __launch_bounds__(THREADS, 2) neighbor64(const __grid_constant__ Args a) {
  sample<long long>(a);
}
