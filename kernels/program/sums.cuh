// Reductions of a program: along columns in the order of their edges; along rows, and of vectors, in
// any order.
//
// Go twin: internal/program/run/reduce.go.
#pragma once
#include "program/edges.cuh"

__device__ __forceinline__ u32 warp_min32(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(~0u, x);
#else
  for (int d = 16; d; d >>= 1) x = min(x, __shfl_xor_sync(~0u, x, d));
  return x;
#endif
}
__device__ __forceinline__ u64 warp_max(u64 x) {
#if __CUDA_ARCH__ >= 800
  u32 high = __reduce_max_sync(~0u, (u32)(x >> 32));
  return (u64)high << 32 | __reduce_max_sync(~0u, (u32)(x >> 32) == high ? (u32)x : 0);
#else
  for (int d = 16; d; d >>= 1) x = max(x, (u64)__shfl_xor_sync(~0u, x, d));
  return x;
#endif
}

// The bins of n terms, which have to be finite; with four counters.
template <class Of>
__device__ __forceinline__ bool bins_of(Machine& m, u32* worst, Bins& bins, u64& largest, u32 n, u32 node, Of of) {
  u64* most = (u64*)(worst + 2);
  u64 own = 0;
  m.each(n, [&](u32 i) {
    double x = of(i);
    if (!finite(x)) atomicMax(worst, ~i);
    own = max(own, bits_of(x) & ~SIGN);
  });
  own = warp_max(own);
  if (own && (threadIdx.x & 31) == 0) atomicMax(most, own);
  m.barrier();
  u32 found = load_relaxed(worst);
  if (found) {
    return m.refuse(node, bits_of(of(~found)));
  }
  largest = load_relaxed(most);
  bins = bins_of(largest, n);
  return true;
}

// What becomes of a sum of so many terms: itself, or the mean.
__device__ __forceinline__ double finished(double sum, double count, bool mean) {
  return !mean ? sum : count == 0 ? 0 : op_div(sum, count);
}

// Sums, or means, of groups: they stay in their bins until they are read.
struct GroupSums {
  const longlong2* bins;
  const u32* counts;  // of means
  Bins place;
  bool some;  // not all of them are 0
};
__device__ __noinline__ double group_sum(GroupSums sums, u32 g) {
  if (!sums.some) return 0;
  longlong2 own = sums.bins[g];
  double sum = unbinned(Binned{own.x, own.y}, sums.place);
  return sums.counts ? finished(sum, sums.counts[g], true) : sum;
}

// A sum, or mean, for each group of n terms: group(i) is below `groups`, of which each has some.
template <class Group, class Of>
__device__ __forceinline__ bool sum_groups(Machine& m, GroupSums& sums, u32 groups, u32 n, u32 node, bool mean, Group group, Of of) {
  u64* bins = m.zeros<u64>(2 * (u64)groups);
  u32* counts = mean ? m.zeros<u32>(groups) : nullptr;
  if (!m.well()) return false;
  Bins place;
  u64 largest;
  if (!bins_of(m, m.counters(4), place, largest, n, node, of)) return false;
  sums = GroupSums{(const longlong2*)bins, counts, place, largest != 0};
  if (!largest) return true;
  m.each(n, [&](u32 i) {
    u64* at = bins + 2 * (u64)group(i);
    Binned q = binned(of(i), place);
    if (q.upper) atomicAdd(at, (u64)q.upper);
    if (q.lower) atomicAdd(at + 1, (u64)q.lower);
    if (mean) atomicAdd(counts + group(i), 1u);
  });
  m.barrier();
  return true;
}

// The sum, or mean, of n terms; with eight counters.
template <class Of>
__device__ __forceinline__ bool sum_all(Machine& m, u32* counters, double& sum, u32 n, u32 node, bool mean, Of of) {
  Bins place;
  u64 largest;
  u64* bins = (u64*)(counters + 4);
  sum = 0;
  if (!bins_of(m, counters, place, largest, n, node, of)) return false;
  if (!largest) return true;
  u64 upper = 0, lower = 0;
  m.each(n, [&](u32 i) {
    Binned q = binned(of(i), place);
    upper += (u64)q.upper, lower += (u64)q.lower;
  });
  for (int d = 16; d; d >>= 1) upper += __shfl_xor_sync(~0u, upper, d), lower += __shfl_xor_sync(~0u, lower, d);
  if ((threadIdx.x & 31) == 0) {
    if (upper) atomicAdd(bins, upper);
    if (lower) atomicAdd(bins + 1, lower);
  }
  m.barrier();
  sum = finished(unbinned(Binned{(long long)load_relaxed(bins), (long long)load_relaxed(bins + 1)}, place), n, mean);
  return true;
}

// The largest, or smallest, of each group of n elements, equal ones: the first; 0 where a group has none.
template <class Group, class Of>
__device__ __forceinline__ bool extreme_groups(Machine& m, const double*& found, u32 groups, u32 n, bool largest, Group group, Of of) {
  u64* best = m.zeros<u64>(groups);
  double* to = m.take<double>(groups);
  if (!m.well()) return false;
  m.barrier();
  auto key = [&](u32 i) -> u64 {
    double x = of(i);
    return x != x ? ~0ull : largest ? ascending(x) : ~ascending(x);
  };
  m.each(n, [&](u32 i) {
    u64 own = key(i), *at = best + group(i);
    if (load_relaxed(at) < own) atomicMax(at, own);
  });
  m.barrier();
  // Elements of one key are one number, but for the two zeros.
  const u64 zero = largest ? ascending(0.0) : ~ascending(0.0);
  u32 own = 0;
  m.each(groups, [&](u32 g) {
    u64 word = best[g];
    own += word == zero;
    to[g] = !word ? 0 : word == ~0ull ? nan_value() : of_ascending(largest ? word : ~word);
  });
  u32 zeros = m.sum(at_most(warp_sum(own))).total;
  found = to;
  if (!zeros) return true;
  u32* first = m.zeros<u32>(groups);
  if (!m.well()) return false;
  m.barrier();
  m.each(n, [&](u32 i) {
    if (best[group(i)] == zero && key(i) == zero) atomicMax(first + group(i), ~i);
  });
  m.barrier();
  m.each(groups, [&](u32 g) {
    if (best[g] == zero) to[g] = of(~first[g]);
  });
  m.barrier();
  return true;
}

// How many of n elements are in each group.
template <class Group>
__device__ __forceinline__ bool count_groups(Machine& m, const double*& found, u32 groups, u32 n, Group group) {
  u32* counts = m.zeros<u32>(groups);
  double* to = m.take<double>(groups);
  if (!m.well()) return false;
  m.barrier();
  m.each(n, [&](u32 i) { atomicAdd(counts + group(i), 1u); });
  m.barrier();
  m.each(groups, [&](u32 g) { to[g] = counts[g]; });
  m.barrier();
  found = to;
  return true;
}

// The sums of four times 32 edges from i0 on, in lane 0, each by a tree. Their edges are on their way together; the
// trees are a loop, since fetching code takes longer than running it.
struct Four {
  double x[4];
};
template <class Of>
__device__ __forceinline__ Four sums32(u32 i0, u32 hi, Of of) {
  Four sums;
#pragma unroll
  for (u32 j = 0; j < 4; j++) {
    u32 i = i0 + 32 * j + (threadIdx.x & 31);
    sums.x[j] = i < hi ? of(i) : 0.0;
  }
#pragma unroll 1
  for (int d = 16; d; d >>= 1) {
#pragma unroll
    for (u32 j = 0; j < 4; j++) sums.x[j] = __dadd_rn(sums.x[j], __shfl_down_sync(~0u, sums.x[j], d));
  }
  return sums;
}
// Of all edges from lo on, in lane 0: what is added for edges that are not there is 0, which changes no sum. 32 sums
// of 32s make one, and these the whole, so that a long column's are no chain of as many additions as it has 32s.
const u32 SUMMED = 1024;
template <class Of>
__device__ __forceinline__ double sum_from(u32 lo, u32 hi, Of of) {
  double total = 0, part = 0;
#pragma unroll 1
  for (u32 i0 = lo; i0 < hi; i0 += 128) {
    Four own = sums32(i0, hi, of);
#pragma unroll
    for (u32 j = 0; j < 4; j++) part = __dadd_rn(part, own.x[j]);
    if ((i0 - lo + 128) % SUMMED == 0 || i0 + 128 >= hi) total = __dadd_rn(total, part), part = 0;
  }
  return total;
}
// Two such sums at once, of(i) being an edge's terms.
template <class Of>
__device__ __forceinline__ double2 sums_from(u32 lo, u32 hi, Of of) {
  double2 total = make_double2(0, 0), part = total;
#pragma unroll 1
  for (u32 i0 = lo; i0 < hi; i0 += 128) {
    double2 x[4];
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
      u32 i = i0 + 32 * j + (threadIdx.x & 31);
      x[j] = i < hi ? of(i) : make_double2(0, 0);
    }
#pragma unroll 1
    for (int d = 16; d; d >>= 1) {
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        x[j].x = __dadd_rn(x[j].x, __shfl_down_sync(~0u, x[j].x, d));
        x[j].y = __dadd_rn(x[j].y, __shfl_down_sync(~0u, x[j].y, d));
      }
    }
#pragma unroll
    for (u32 j = 0; j < 4; j++) part.x = __dadd_rn(part.x, x[j].x), part.y = __dadd_rn(part.y, x[j].y);
    if ((i0 - lo + 128) % SUMMED == 0 || i0 + 128 >= hi)
      total.x = __dadd_rn(total.x, part.x), total.y = __dadd_rn(total.y, part.y), part = make_double2(0, 0);
  }
  return total;
}
// Of n values, one behind another and alike in all lanes.
__device__ __forceinline__ double sum_in_order(const double* values, u32 n) {
  u32 lane = threadIdx.x & 31;
  double total = 0;
#pragma unroll 1
  for (u32 i0 = 0; i0 < n; i0 += 32) {
    double x = i0 + lane < n ? values[i0 + lane] : 0.0;
#pragma unroll 8
    for (u32 j = 0; j < 32; j++) total = __dadd_rn(total, __shfl_sync(~0u, x, j));
  }
  return total;
}

// Long columns are cut into pieces, which leave the sums of their 32s.
const u32 PIECE = 256, LONG = 2 * PIECE, PARTS = PIECE / 32;
__device__ __noinline__ void add_pieces(Machine& m, double* to, const u32* begins, u32 n, const uint2* columns, const double* parts, bool mean) {
  u32 lane = threadIdx.x & 31;
  m.each_warp(n, [&](u32 k) {
    u32 c = columns[k].x, degree = begins[c + 1] - begins[c], n = (degree + 31) / 32;
    const double* own = parts + PARTS * (u64)columns[k].y;
    double total = 0;
    // A lane adds 32 of them up, which are SUMMED edges.
#pragma unroll 1
    for (u32 i0 = 0; i0 < n; i0 += SUMMED) {
      double part = 0;
      u32 i = i0 + 32 * lane, last = min(i + 32, n);
#pragma unroll 4
      for (; i < last; i++) part = __dadd_rn(part, own[i]);
#pragma unroll 8
      for (u32 j = 0; j < 32; j++) total = __dadd_rn(total, __shfl_sync(~0u, part, j));
    }
    if (lane == 0) to[c] = finished(total, degree, mean);
  });
  m.loosen();
}

// Along columns, a warp each. Pieces of long ones are shared by all warps, and what they leave is added then; which
// pieces stand where does not count. With two counters.
template <class Of>
__device__ __forceinline__ bool sum_columns(Machine& m, const double*& sums, const Edges& e, bool mean, Of of) {
  u32 *cells = m.counters(2), most = e.n < LONG ? 0 : e.n / PIECE + e.n / LONG;
  double* to = m.take<double>(e.columns.n);
  double* parts = m.take<double>(PARTS * (u64)most);
  uint2 *pieces = m.take<uint2>(most), *columns = m.take<uint2>(most);
  if (!m.well()) return false;
  sums = to;
  u32 lane = threadIdx.x & 31, split = 0;
  // First the columns, then the pieces: one loop, so that its code is there once.
#pragma unroll 1
  for (u32 round = 0; round < 2; round++) {
    m.each_warp(round ? split : e.columns.n, [&](u32 k) {
      u32 lo, hi;
      if (round) lo = pieces[k].x, hi = min(lo + PIECE, pieces[k].y);
      else lo = e.begins[k], hi = e.begins[k + 1];
      if (!round && hi - lo >= LONG) {
        u32 n = (hi - lo + PIECE - 1) / PIECE, at = 0;
        if (lane == 0) at = atomicAdd(cells, n), columns[atomicAdd(cells + 1, 1u)] = make_uint2(k, at);
        at = __shfl_sync(~0u, at, 0);
#pragma unroll 1
        for (u32 j = lane; j < n; j += 32) pieces[at + j] = make_uint2(lo + j * PIECE, hi);
        return;
      }
      double total = 0, *part = parts + PARTS * (u64)k;
#pragma unroll 1
      for (u32 i0 = lo; i0 < hi; i0 += 128, part += 4) {
        Four own = sums32(i0, hi, of);
        if (round && lane == 0) {
#pragma unroll
          for (u32 j = 0; j < 4; j++) part[j] = own.x[j];
        }
#pragma unroll
        for (u32 j = 0; j < 4; j++) total = __dadd_rn(total, own.x[j]);
      }
      if (!round && lane == 0) to[k] = finished(total, hi - lo, mean);
    });
    m.loosen();
    if (round || !most) break;
    m.barrier();
    split = load_relaxed(cells);
    if (!split) break;
  }
  if (!split) return true;
  m.barrier();
  add_pieces(m, to, e.begins, load_relaxed(cells + 1), columns, parts, mean);
  return true;
}
template <class Of>
__device__ __forceinline__ bool extreme_columns(Machine& m, const double*& found, const Edges& e, bool largest, Of of) {
  double* to = m.take<double>(e.columns.n);
  if (!m.well()) return false;
  m.each_warp(e.columns.n, [&](u32 c) {
    u32 lo = e.begins[c], hi = e.begins[c + 1], lane = threadIdx.x & 31, at = ~0u;
    u64 best = 0;
#pragma unroll 1
    for (u32 i = lo + lane; i < hi; i += 32) {
      double x = of(i);
      u64 key = x != x ? ~0ull : largest ? ascending(x) : ~ascending(x);
      if (key > best) best = key, at = i;
    }
    u64 all = warp_max(best);
    at = warp_min32(best == all ? at : ~0u);
    if (lane == 0) to[c] = !all ? 0 : all == ~0ull ? nan_value() : of(at);
  });
  m.barrier();
  found = to;
  return true;
}

// Chances in the ratio of the elements v along a list, of which k is the sum.
template <class Of>
__device__ __forceinline__ bool cap(Machine& m, const double*& chances, List list, long long k, u32 node, Of v) {
  u32 n = list.n;
  if (!m.chances(n, node, list, v)) return false;
  double* to = m.take<double>(n);
  u32* full = m.zeros<u32>(n);
  if (!m.well()) return false;
  chances = to;
  u32 own = 0;
  m.each(n, [&](u32 i) { own += v(i) > 0; });
  if (m.sum(warp_sum32(own)).total <= (u64)k) {
    m.each(n, [&](u32 i) { to[i] = v(i) > 0; });
    m.barrier();
    return true;
  }
  double c = 0;
  for (u32 capped = 0, more = 1; more; capped += more) {
    u32* counters = m.zeros<u32>(8);
    if (!m.well()) return false;
    m.barrier();
    double sum;
    if (!sum_all(m, counters, sum, n, node, false, [&](u32 i) { return full[i] ? 0.0 : v(i); })) return false;
    c = op_div((double)(k - (long long)capped), sum);
    own = 0;
    // An element is looked at by the thread that it is capped by.
    m.each(n, [&](u32 i) {
      if (!full[i] && __dmul_rn(c, v(i)) >= 1) full[i] = 1, own++;
    });
    more = m.sum(warp_sum32(own)).total;
  }
  m.each(n, [&](u32 i) {
    double x = v(i);
    to[i] = full[i] ? 1.0 : x != 0 ? __dmul_rn(c, x) : 0.0;
  });
  m.barrier();
  return true;
}
