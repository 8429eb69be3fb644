// Dense rows of a program: float32 numbers of nodes, times inputs, and for edges the dot product of
// two rows. Products are exact as doubles and are added in the order that
// docs/developer/operator-rules.md defines. Rows are functors of a row and a column.
//
// Go twin: internal/program/dense.
#pragma once
#include "program/sums.cuh"

// Rows that a warp multiplies at a time, and numbers of each that it keeps in its part of the shared memory.
#define DENSE_ROWS 4
#define DENSE_NUMBERS 32

// n rows of d numbers times w, d by h: a warp has some rows, and a lane one number of each.
template <u32 d, u32 h, class X>
__device__ __forceinline__ bool project(Machine& m, const float*& product, u32 n, const float* __restrict__ w, X x) {
  static_assert(DENSE_ROWS * DENSE_NUMBERS <= 256, "rows stand in a warp's digits");
  float* to = m.take<float>((u64)n * h);
  if (!m.well()) return false;
  constexpr u32 tiles = (h + 31) / 32;
  u32 lane = threadIdx.x & 31;
  float* staged = (float*)m.s().digits[threadIdx.x >> 5];
  // Other warps may have been at these digits in the step before.
  __syncthreads();
  m.each_warp((u32)(((u64)n + DENSE_ROWS - 1) / DENSE_ROWS * tiles), [&](u32 unit) {
    u32 begin = unit / tiles * DENSE_ROWS, j = unit % tiles * 32 + lane;
    double sums[DENSE_ROWS] = {};
#pragma unroll 1
    for (u32 k0 = 0; k0 < d; k0 += DENSE_NUMBERS) {
      __syncwarp();
#pragma unroll
      for (u32 r = 0; r < DENSE_ROWS; r++) {
        if (begin + r < n && k0 + lane < d) staged[r * DENSE_NUMBERS + lane] = x(begin + r, k0 + lane);
      }
      __syncwarp();
      if (j < h) {
        u32 some = min((u32)DENSE_NUMBERS, d - k0);
#pragma unroll 4
        for (u32 k = 0; k < some; k++) {
          double weight = (double)w[(u64)(k0 + k) * h + j];
#pragma unroll
          for (u32 r = 0; r < DENSE_ROWS; r++) {
            sums[r] = sums[r] + (double)staged[r * DENSE_NUMBERS + k] * weight;
          }
        }
      }
    }
#pragma unroll
    for (u32 r = 0; r < DENSE_ROWS; r++) {
      if (begin + r < n && j < h) to[(u64)(begin + r) * h + j] = (float)sums[r];
    }
  });
  // The digits serve other steps, which begin where all threads of a block have met.
  __syncthreads();
  m.loosen();
  product = to;
  return true;
}

// Of n pairs of rows of d numbers the products: eight lanes have an edge's eight sums.
template <u32 d, class P, class Q, class From, class Lead>
__device__ __forceinline__ bool dot(Machine& m, const double*& values, u32 n, P p, Q q, From from, Lead lead) {
  double* to = m.take<double>(n);
  if (!m.well()) return false;
  u32 lane = threadIdx.x & 31, of = lane & 7;
  m.each_warp((u32)(((u64)n + 3) / 4), [&](u32 unit) {
    u32 i = unit * 4 + (lane >> 3);
    double sum = 0;
    if (i < n) {
      u32 u = (u32)from(i), v = (u32)lead(i);
#pragma unroll 4
      for (u32 k = of; k < d; k += 8) sum = sum + (double)p(u, k) * (double)q(v, k);
    }
    // Which of two is added to the other does not matter, so all lanes have the first one's sum in the end.
#pragma unroll
    for (u32 half = 4; half; half >>= 1) sum += __shfl_xor_sync(~0u, sum, half);
    if (i < n && of == 0) to[i] = sum;
  });
  m.loosen();
  values = to;
  return true;
}

// An edge's value and its row of X, one of a warp's 32 edges a lane: lanes have numbers of rows when they are multiplied.
struct OfEdge {
  double value;
  u32 row;
};
template <class V, class From>
__device__ __forceinline__ OfEdge of_edge(u32 i, u32 hi, V v, From from) {
  return i < hi ? OfEdge{v(i), (u32)from(i)} : OfEdge{0, 0};
}

// Number k of the products of 32 edges from i0 on, by the tree of sums along columns: what is left of it after the steps
// 16, 8 and 4 are sums of eight, of which two are on their way together.
template <class X>
__device__ __forceinline__ double products32(u32 i0, u32 hi, u32 k, bool own, OfEdge mine, X x) {
  double total = 0;
#pragma unroll 1
  for (u32 half = 0; half < 2; half++) {
    double pair[2];
#pragma unroll
    for (u32 j = 0; j < 2; j++) {
      double p[8];
#pragma unroll
      for (u32 t = 0; t < 8; t++) {
        u32 at = 4 * t + half + 2 * j;
        double value = __shfl_sync(~0u, mine.value, at);
        u32 row = __shfl_sync(~0u, mine.row, at);
        p[t] = own && i0 + at < hi ? __dmul_rn(value, (double)x(row, k)) : 0.0;
      }
#pragma unroll
      for (u32 d = 4; d; d >>= 1) {
#pragma unroll
        for (u32 t = 0; t < d; t++) p[t] = __dadd_rn(p[t], p[t + d]);
      }
      pair[j] = p[0];
    }
    double sum = __dadd_rn(pair[0], pair[1]);
    total = half ? __dadd_rn(total, sum) : sum;
  }
  return total;
}

// For each column of e the sum of its edges' values v times rows, of h numbers, that from(i) is the place of: a warp has a
// column and 32 numbers. Pieces of long columns are shared, as by sum_columns; with two counters.
template <u32 h, class V, class From, class X>
__device__ __forceinline__ bool multiply_columns(Machine& m, const float*& product, const Edges& e, V v, From from, X x) {
  constexpr u32 tiles = (h + 31) / 32;
  u32 *cells = m.counters(2), most = e.n < LONG ? 0 : e.n / PIECE + e.n / LONG;
  float* to = m.take<float>((u64)e.columns.n * h);
  double* parts = m.take<double>((u64)PARTS * most * h);
  uint2 *pieces = m.take<uint2>(most), *columns = m.take<uint2>(most);
  if (!m.well()) return false;
  product = to;
  m.loosen();
  u32 lane = threadIdx.x & 31, split = 0;
#pragma unroll 1
  for (u32 round = 0; round < 2; round++) {
    m.each_warp((round ? split : e.columns.n) * tiles, [&](u32 unit) {
      u32 c = unit / tiles, k = unit % tiles * 32 + lane, lo, hi;
      bool own = k < h;
      if (round) lo = pieces[c].x, hi = min(lo + PIECE, pieces[c].y);
      else lo = e.begins[c], hi = e.begins[c + 1];
      if (!round && hi - lo >= LONG) {
        if (unit % tiles) return;
        u32 n = (hi - lo + PIECE - 1) / PIECE, at = 0;
        if (lane == 0) at = atomicAdd(cells, n), columns[atomicAdd(cells + 1, 1u)] = make_uint2(c, at);
        at = __shfl_sync(~0u, at, 0);
        for (u32 j = lane; j < n; j += 32) pieces[at + j] = make_uint2(lo + j * PIECE, hi);
        return;
      }
      // A column that is not long has fewer than SUMMED edges.
      static_assert(LONG <= SUMMED, "32s are added up at once");
      double total = 0, *part = parts + (u64)PARTS * c * h + k;
#pragma unroll 1
      for (u32 i0 = lo; i0 < hi; i0 += 32, part += h) {
        double sum = products32(i0, hi, k, own, of_edge(i0 + lane, hi, v, from), x);
        if (round && own) *part = sum;
        total = __dadd_rn(total, sum);
      }
      if (!round && own) to[(u64)c * h + k] = (float)total;
    });
    if (round || !most) break;
    m.barrier();
    split = load_relaxed(cells);
    if (!split) break;
  }
  if (!split) return true;
  m.barrier();
  m.each_warp(load_relaxed(cells + 1) * tiles, [&](u32 unit) {
    uint2 column = columns[unit / tiles];
    u32 c = column.x, k = unit % tiles * 32 + lane, n = (e.begins[c + 1] - e.begins[c] + 31) / 32;
    if (k >= h) return;
    const double* part = parts + (u64)PARTS * column.y * h + k;
    double total = 0;
#pragma unroll 1
    for (u32 j0 = 0; j0 < n; j0 += SUMMED / 32) {
      double few = 0;
      u32 last = min(j0 + SUMMED / 32, n);
#pragma unroll 4
      for (u32 j = j0; j < last; j++) few = __dadd_rn(few, part[(u64)j * h]);
      total = __dadd_rn(total, few);
    }
    to[(u64)c * h + k] = (float)total;
  });
  m.loosen();
  return true;
}

// f of each of n things, which may be more than 2^32, by all threads.
template <class F>
__device__ __forceinline__ void everywhere(u64 n, F f) {
#pragma unroll 1
  for (u64 i = blockIdx.x * PROGRAM_THREADS + threadIdx.x; i < n; i += gridDim.x * PROGRAM_THREADS) f(i);
}

// f(edge, its row, number, product) of each of n edges and h numbers: a warp has 32 edges, and a lane one number of each.
// Then done(number).
template <u32 h, class Row, class V, class From, class X, class F, class Done>
__device__ __forceinline__ void each_product(u32 n, Row row, V v, From from, X x, F f, Done done) {
  constexpr u32 tiles = (h + 31) / 32;
  u32 lane = threadIdx.x & 31;
  u64 units = ((u64)n + 31) / 32 * tiles;
#pragma unroll 1
  for (u64 unit = blockIdx.x * PROGRAM_WARPS + (threadIdx.x >> 5); unit < units; unit += gridDim.x * PROGRAM_WARPS) {
    u32 i0 = (u32)(unit / tiles) * 32, k = (u32)(unit % tiles) * 32 + lane, some = min(32u, n - i0);
    OfEdge mine = of_edge(i0 + lane, n, v, from);
    u32 group = i0 + lane < n ? row(i0 + lane) : 0;
#pragma unroll 4
    for (u32 j = 0; j < some; j++) {
      double value = __shfl_sync(~0u, mine.value, j);
      u32 at = __shfl_sync(~0u, mine.row, j), of = __shfl_sync(~0u, group, j);
      if (k < h) f(i0 + j, of, k, __dmul_rn(value, (double)x(at, k)));
    }
    if (k < h) done(k);
  }
}

// Likewise for each row of n edges, of which there are `rows`: edge i is of row(i). Sums are in bins, two integers for
// each number of a row; with a counter for products that are not finite.
template <u32 h, class Row, class V, class From, class X>
__device__ __forceinline__ bool multiply_rows(Machine& m, const float*& product, u32 rows, u32 n, u32 node, Row row, V v, From from, X x) {
  u32* worst = m.counters(2);
  float* to = m.take<float>((u64)rows * h);
  u64 *most = m.take<u64>(h), *bins = m.take<u64>(2 * (u64)rows * h);
  if (!m.well()) return false;
  product = to;
  m.loosen();
  everywhere(h, [&](u64 i) { most[i] = 0; });
  everywhere(2 * (u64)rows * h, [&](u64 i) { bins[i] = 0; });
  m.barrier();
  u64 own = 0;
  each_product<h>(
      n, row, v, from, x,
      [&](u32 i, u32, u32, double p) {
        if (!finite(p)) atomicMax(worst, ~i);
        own = max(own, bits_of(p) & ~SIGN);
      },
      [&](u32 k) {
        if (own > load_relaxed(most + k)) atomicMax(most + k, own);
        own = 0;
      });
  m.barrier();
  u32 found = load_relaxed(worst);
  if (found) {
    u32 i = ~found;
    u64 wrong = 0;
#pragma unroll 1
    for (u32 k = h; k--;) {
      double p = __dmul_rn(v(i), (double)x((u32)from(i), k));
      if (!finite(p)) wrong = bits_of(p);
    }
    return m.refuse(node, wrong);
  }
  each_product<h>(
      n, row, v, from, x,
      [&](u32, u32 of, u32 k, double p) {
        u64 largest = load_relaxed(most + k);
        if (!largest) return;
        Binned q = binned(p, bins_of(largest, n));
        u64* at = bins + 2 * ((u64)of * h + k);
        if (q.upper) atomicAdd(at, (u64)q.upper);
        if (q.lower) atomicAdd(at + 1, (u64)q.lower);
      },
      [](u32) {});
  m.barrier();
  everywhere((u64)rows * h, [&](u64 i) {
    u64 largest = load_relaxed(most + i % h);
    to[i] = largest ? (float)unbinned(Binned{(long long)bins[2 * i], (long long)bins[2 * i + 1]}, bins_of(largest, n)) : 0.0f;
  });
  m.loosen();
  return true;
}
