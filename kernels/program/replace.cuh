// Draws with replacement, by weight, of a program: integers in the ratio of the weights
// (docs/developer/draws.md), their cumulative sums, and a draw in the interval of one of them.
//
// Go twins: internal/graph/weights, internal/program/run.
#pragma once
#include "program/choose.cuh"

// The integer of a weight among n positive ones, of which the largest is below 2^e.
__device__ __forceinline__ u64 integer(double w, int e, u32 n) {
  if (!(w > 0)) return 0;
  Parts p = parts_of(bits_of(w));
  int shift = p.unit + 62 - (32 - __clz((int)n)) - e;
  u64 whole = shift >= 0 ? p.whole << shift : shift > -64 ? p.whole >> -shift : 0;
  return whole ? whole : 1;
}

// The first of n ascending sums that is above x.
__device__ __noinline__ u32 part_of(const u64* sums, u32 n, u64 x) {
  u32 lo = 0;
  while (lo < n) {
    u32 middle = (lo + n) / 2;
    if (sums[middle] > x) n = middle;
    else lo = middle + 1;
  }
  return lo;
}

// Likewise, by a whole warp, of sums that end above x.
__device__ __noinline__ u32 part_by_warp(const u64* sums, u32 n, u64 x) {
  u32 lo = 0, lane = threadIdx.x & 31, step;
#pragma unroll 1
  do {
    step = (n - lo + 31) / 32;
    u32 end = min(lo + (lane + 1) * step, n);
    lo += step * (__ffs((int)__ballot_sync(~0u, sums[end - 1] > x)) - 1);
    n = min(lo + step, n);
  } while (step > 1);
  return lo;
}

// The sums of a warp's values up to and with each lane's.
__device__ __forceinline__ u64 lanes_upto(u64 x) {
  u32 lane = threadIdx.x & 31;
  for (u32 d = 1; d < 32; d <<= 1) {
    u64 y = __shfl_up_sync(~0u, x, d);
    if (lane >= d) x += y;
  }
  return x;
}

// What the integers of weights depend on: how many are positive, and the largest's bits.
struct Positive {
  u32 n;
  u64 largest;
  __device__ __forceinline__ void meet(double w) {
    if (w > 0) n++, largest = max(largest, bits_of(w));
  }
  __device__ __forceinline__ void meet(const Positive& other) { n += other.n, largest = max(largest, other.largest); }
  __device__ __forceinline__ Positive of_warp() const { return Positive{warp_sum32(n), warp_max(largest)}; }
  __device__ __forceinline__ int above() const { return n ? exponent_above(largest) : 0; }
};
// The sum of the integers of the weights from lo on, in all lanes of a warp.
template <class P>
__device__ __forceinline__ u64 sum_of_integers(u32 lo, u32 hi, Positive of, P p) {
  u64 sum = 0;
#pragma unroll 4
  for (u32 i = lo + (threadIdx.x & 31); i < hi; i += 32) sum += integer(p(i), of.above(), of.n);
  return __shfl_sync(~0u, lanes_upto(sum), 31);
}

// Their sums up to and with each, and before that a number, by a warp; four times 32 are on their way at a time.
template <class P>
__device__ __forceinline__ void write_sums(u64* sums, u32 lo, u32 hi, u64 before, Positive of, P p) {
  u32 lane = threadIdx.x & 31;
#pragma unroll 1
  for (u32 i0 = lo; i0 < hi; i0 += 128) {
    double w[4];
#pragma unroll
    for (u32 j = 0; j < 4; j++) w[j] = i0 + 32 * j + lane < hi ? p(i0 + 32 * j + lane) : 0.0;
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      u32 i = i0 + 32 * j + lane;
      u64 upto = before + lanes_upto(integer(w[j], of.above(), of.n));
      if (i < hi) sums[i] = upto;
      before = __shfl_sync(~0u, upto, 31);
    }
  }
}

// The sums of the integers of the weights p along a list, and of all of them.
template <class P>
__device__ __forceinline__ bool integer_sums(Machine& m, u64*& sums, u64& total, List list, u32 node, P p) {
  u32 n = list.n, *worst = m.counters(2);
  u64* most = (u64*)m.counters(2);
  u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  u64 *parts = m.take<u64>(gridDim.x), *of_warps = (u64*)m.s().digits[0];
  u64* to = sums = m.take<u64>(n);
  if (!m.well()) return false;
  Positive positive{0, 0};
  m.each(n, [&](u32 i) {
    double w = p(i);
    m.look(worst, i, w);
    positive.meet(w);
  });
  positive = positive.of_warp();
  if (lane == 0 && positive.n) atomicMax(most, positive.largest);
  positive.n = m.sum(positive.n).total;
  if (!m.looked(worst, node, list, p)) return false;
  total = 0;
  if (!positive.n) return true;
  positive.largest = load_relaxed(most);
  Machine::Span mine = m.span(n);
  u64 sum = sum_of_integers(mine.lo, mine.hi, positive, p);
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    u64 block = lanes_upto(lane < PROGRAM_WARPS ? of_warps[lane] : 0);
    if (lane == 31) parts[blockIdx.x] = block;
  }
  m.barrier();
  u64 before = lane < warp ? of_warps[lane] : 0, all = 0;
  for (u32 b = lane; b < gridDim.x; b += 32) {
    u64 part = parts[b];
    all += part;
    if (b < blockIdx.x) before += part;
  }
  total = __shfl_sync(~0u, lanes_upto(all), 31);
  before = __shfl_sync(~0u, lanes_upto(before), 31);
  write_sums(to, mine.lo, mine.hi, before, positive, p);
  m.barrier();
  return true;
}

// put(i, which of n elements draw i of a site takes), of k draws: a warp each while there are warps for them.
template <class Put>
__device__ __forceinline__ void drawn(Machine& m, u32 k, u32 site, const u64* sums, u32 n, u64 total, Put put) {
  Stream stream = m.stream(site, PURPOSE_NEGATIVES);
  auto at = [&](u32 i) { return below(draw_bits(state_of(stream, i), 0), total); };
  if (k > 4 * gridDim.x * PROGRAM_WARPS) {
    m.each(k, [&](u32 i) { put(i, part_of(sums, n, at(i))); });
    return;
  }
  m.each_warp(k, [&](u32 i) {
    u32 which = part_by_warp(sums, n, at(i));
    if ((threadIdx.x & 31) == 0) put(i, which);
  });
}

// The edges of the rows that k draws choose; `times` is how often each row was.
template <class RowOf, class P>
__device__ __forceinline__ bool collective_again(Machine& m, Edges& e, const u32*& times, const Edges& c, List list, u32 k, u32 node,
                                                 u32 site, bool numbered, Claims claims, RowOf row_of, P p) {
  u32 rows = list.n;
  u64 *sums, total;
  u32* to = m.zeros<u32>(rows);
  if (!m.well() || !integer_sums(m, sums, total, list, node, p)) return false;
  if (total) drawn(m, k, site, sums, rows, total, [&](u32, u32 row) { atomicAdd(to + row, 1u); });
  m.barrier();
  times = to;
  return edges_of_rows(m, e, c, numbered, claims, row_of, [&](u32 r) -> u32 { return to[r] != 0; });
}

// The vertices of a list that k draws choose, in the order of the draws.
template <class P>
__device__ __forceinline__ bool draw_again(Machine& m, List& list, List of, u32 k, u32 node, u32 site, P p) {
  u64 *sums, total;
  if (!integer_sums(m, sums, total, of, node, p)) return false;
  if (!total) k = 0;
  Id* to = m.take<Id>(k);
  if (!m.well()) return false;
  if (total) drawn(m, k, site, sums, of.n, total, [&](u32 i, u32 which) { to[i] = of(which); });
  m.put(list, List{k, to});
  m.barrier();
  return true;
}

// Those of a long column, by a block.
template <class P>
__device__ __forceinline__ void write_sums_by_block(Machine& m, u64* sums, u32 lo, u32 hi, P p) {
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, step = ((hi - lo) / PROGRAM_THREADS + 1) * 32;
  u32 first = min(lo + warp * step, hi), last = min(first + step, hi);
  Positive *of_warps = (Positive*)m.s().digits[0], all{0, 0};
  u64 *parts = (u64*)m.s().digits[1], before = 0;
#pragma unroll 4
  for (u32 i = first + lane; i < last; i += 32) all.meet(p(i));
  all = all.of_warp();
  if (lane == 0) of_warps[warp] = all;
  __syncthreads();
  all = Positive{0, 0};
  for (u32 w = 0; w < PROGRAM_WARPS; w++) all.meet(of_warps[w]);
  u64 sum = sum_of_integers(first, last, all, p);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  for (u32 w = 0; w < warp; w++) before += parts[w];
  write_sums(sums, first, last, before, all, p);
  __syncthreads();
}

// k draws of each column by its weights p. With four counters.
template <class P>
__device__ __forceinline__ bool individual_again(Machine& m, Edges& e, const Edges& c, u32 k, u32 node, u32 site, P p) {
  if (!m.chances(c.n, node, [&](u32 i) { return c.columns(c.column[i]); }, p)) return false;
  const u32 shared = 2048;
  u32 *longs = m.counters(4), most = c.n / shared, *columns = m.take<u32>(most);
  u64 *states = column_states(m, c.columns, site), *sums = m.take<u64>(c.n);
  if (!m.well()) return false;
  m.each_warp(c.columns.n, [&](u32 column) {
    u32 lo = c.begins[column], hi = c.begins[column + 1], lane = threadIdx.x & 31;
    if (hi - lo >= shared) {
      if (lane == 0) columns[atomicAdd(longs, 1u)] = column;
      return;
    }
    Positive all{0, 0};
#pragma unroll 4
    for (u32 i = lo + lane; i < hi; i += 32) all.meet(p(i));
    write_sums(sums, lo, hi, 0, all.of_warp(), p);
  });
  if (most) {
    m.barrier();
    u32 n = load_relaxed(longs);
#pragma unroll 1
    for (u32 i = blockIdx.x; i < n; i += gridDim.x) write_sums_by_block(m, sums, c.begins[columns[i]], c.begins[columns[i] + 1], p);
  }
  m.barrier();
  auto count = [&](u32 column) -> u32 {
    u32 lo = c.begins[column], hi = c.begins[column + 1];
    return hi > lo && sums[hi - 1] ? k : 0;
  };
  return pick(m, e, c, count, [&](u32* from) {
    m.each(e.n, [&](u32 i) {
      u32 column = column_of(e.begins, c.columns.n, i), j = i - e.begins[column], lo = c.begins[column], hi = c.begins[column + 1];
      // By the thread that reads it.
      from[i] = lo + part_of(sums + lo, hi - lo, below(draw_bits(states[column], j), sums[hi - 1]));
    });
    return true;
  });
}
