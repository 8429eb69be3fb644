// Groups the edges of a CSR by their sources: starts[s] is the offset of the edges of source s, rows
// and places hold the row and the position of each edge, in the order of the edges. The gradient of
// a reduction is a reduction over this CSR.
//
// torch sorts the edges by their sources and searches all bounds in the result: some twenty
// launches, with a radix sort over all bits of the ids. Sources are small numbers here, so a
// counting sort is enough, five small launches that never wait for the host:
//
//   clear  sets the counts to zero
//   count  gives an edge a number among those of its source, by an atomic: the edges of a source
//          that are in one warp share one atomic, so that a hub does not serialize its edges
//   scan   turns the counts into starts, by tiles of sources; the offset of a tile is the sum of the
//          previous tiles, which count has computed
//   place  writes an edge and its row to the list of its source, at its number. Lists of one edge
//          are complete then
//   order  counts for each edge how many of its list precede it, and moves it there. So the result
//          is in the order of the edges, for any order of the atomics
//
// Lists are short: a row names a frequent node only once. In order an edge reads all of its list,
// which is quadratic, so lists of more than TRANSPOSE_LONG are radix sorted by one block each, 8
// bits at a time (long_list).
//
// Edges beyond the last offset are padding and ignored, and so are ids that are no source.
//
// Go caller: internal/engine/cuda/transpose.go. C twin: internal/engine/cpu/layers (transpose.h).
#include "common/warp_match.cuh"

// Mirrors transposeArgs in internal/engine/cuda/transpose.go; loading compares the sizes.
struct TransposeArgs {
  const void* indptr;   // [num_rows + 1], of id_bits, as all ids
  const void* indices;  // [edges]
  void* starts;         // [sources + 1]
  void* rows;           // [edges]; as places undefined from starts[sources] on
  void* places;         // [edges]; null: nobody asks
  u32* tiles;           // [TRANSPOSE_TILES]: the edges of each tile of sources
  u32* num_longs;       // behind them
  u32* counts;          // [sources], behind that
  u32* longs;           // [edges / TRANSPOSE_LONG]: sources with more edges than that, in any order
  u32* numbers;         // [edges]: the number of each edge among those of its source
  u64* lists;           // [edges]: row << 32 | edge, by sources
  u64 sources, num_rows, edges;  // each below 2^32 - 1
  u32 shift;   // a tile has 2^shift sources, at least TRANSPOSE_THREADS
  u32 passes;  // so many bytes have the numbers of edges
  u32 id_bits, unused;
};

struct Transpose : TransposeArgs {
  __device__ __forceinline__ u64 read(const void* ids, u64 i) const {
    return id_bits == 32 ? (u64)(long long)((const int*)ids)[i] : ((const u64*)ids)[i];
  }
  __device__ __forceinline__ void write(void* ids, u64 i, u64 v) const {
    if (id_bits == 32) ((int*)ids)[i] = (int)v;
    else ((u64*)ids)[i] = v;
  }

  // How many edges there are; those behind them are padding.
  __device__ __forceinline__ u64 all() const {
    u64 last = read(indptr, num_rows);
    return last < edges ? last : edges;
  }

  // The row of an edge: the last that begins at it or before it.
  __device__ __forceinline__ u64 row_of(u64 e) const {
    u64 low = 0, high = num_rows;
    while (high - low > 1) {
      u64 middle = (low + high) / 2;
      if (read(indptr, middle) <= e) low = middle;
      else high = middle;
    }
    return low;
  }

  __device__ __forceinline__ void put(u64 at, u64 row, u64 e) const {
    write(rows, at, row);
    if (places) write(places, at, e);
  }
};

extern "C" __global__ void __launch_bounds__(TRANSPOSE_THREADS) transpose_clear(const __grid_constant__ TransposeArgs a) {
  u64 all = TRANSPOSE_TILES + 1 + a.sources, stride = (u64)gridDim.x * TRANSPOSE_THREADS;
  for (u64 i = (u64)blockIdx.x * TRANSPOSE_THREADS + threadIdx.x; i < all; i += stride) a.tiles[i] = 0;
}

extern "C" __global__ void __launch_bounds__(TRANSPOSE_THREADS) transpose_count(const __grid_constant__ TransposeArgs args) {
  __shared__ u32 of_tile[TRANSPOSE_TILES];
  const Transpose& a = (const Transpose&)args;
  u32 tiles = (u32)((a.sources + (1ull << a.shift) - 1) >> a.shift), lane = threadIdx.x & 31;
  for (u32 i = threadIdx.x; i < tiles; i += TRANSPOSE_THREADS) of_tile[i] = 0;
  __syncthreads();
  u64 all = a.all(), stride = (u64)gridDim.x * TRANSPOSE_THREADS;
  // All lanes of a warp go on while one has an edge.
  for (u64 e = (u64)blockIdx.x * TRANSPOSE_THREADS + threadIdx.x; e - lane < all; e += stride) {
    u64 source = e < all ? a.read(a.indices, e) : ~0ull;
    bool is = source < a.sources;
    Peers same(is ? (u32)source : ~0u);
    u32 number = 0;
    if (is && same.before == 0) {
      u32 many = __popc(same.lanes);
      number = atomicAdd(a.counts + source, many);
      atomicAdd(of_tile + (source >> a.shift), many);
    }
    number = __shfl_sync(~0u, number, same.first) + same.before;
    if (is) a.numbers[e] = number;
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < tiles; i += TRANSPOSE_THREADS)
    if (of_tile[i]) atomicAdd(a.tiles + i, of_tile[i]);
}

// The sum of x over the threads of the block before this one; all becomes the sum over all. parts has a word for
// each warp and is free when it returns.
__device__ __forceinline__ u32 sum_before(u32 x, u32& all, u32* parts) {
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, sum = x;
  for (u32 d = 1; d < 32; d *= 2) {
    u32 other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += other;
  }
  if (lane == 31) parts[warp] = sum;
  __syncthreads();
  u32 earlier = 0;
  all = 0;
  for (u32 w = 0; w < TRANSPOSE_THREADS / 32; w++) {
    if (w < warp) earlier += parts[w];
    all += parts[w];
  }
  __syncthreads();
  return earlier + sum - x;
}

// A block a tile.
extern "C" __global__ void __launch_bounds__(TRANSPOSE_THREADS) transpose_scan(const __grid_constant__ TransposeArgs args) {
  __shared__ u32 parts[TRANSPOSE_THREADS / 32];
  const Transpose& a = (const Transpose&)args;
  u32 mine = 0, base, all;
  for (u32 i = threadIdx.x; i < blockIdx.x; i += TRANSPOSE_THREADS) mine += a.tiles[i];
  sum_before(mine, base, parts);
  u64 first = (u64)blockIdx.x << a.shift, last = first + (1ull << a.shift);
  last = last < a.sources ? last : a.sources;
  for (u64 from = first; from < last; from += TRANSPOSE_THREADS) {
    u64 source = from + threadIdx.x;
    u32 count = source < last ? a.counts[source] : 0, before = sum_before(count, all, parts);
    if (source < last) a.write(a.starts, source, base + before);
    if (count > TRANSPOSE_LONG) a.longs[atomicAdd(a.num_longs, 1u)] = (u32)source;
    base += all;
  }
  if (last == a.sources && threadIdx.x == 0) a.write(a.starts, a.sources, base);
}

extern "C" __global__ void __launch_bounds__(TRANSPOSE_THREADS) transpose_place(const __grid_constant__ TransposeArgs args) {
  const Transpose& a = (const Transpose&)args;
  u64 all = a.all(), stride = (u64)gridDim.x * TRANSPOSE_THREADS;
  for (u64 e = (u64)blockIdx.x * TRANSPOSE_THREADS + threadIdx.x; e < all; e += stride) {
    u64 source = a.read(a.indices, e);
    if (source >= a.sources) continue;
    u64 start = a.read(a.starts, source), row = a.row_of(e);
    if (a.counts[source] == 1) a.put(start, row, e);
    else a.lists[start + a.numbers[e]] = row << 32 | e;
  }
}

// Sorts the list of a source by a block, 8 bits of the edges' numbers a pass. A warp has a part of the list, and
// counts how often each byte is in it; the bytes of a warp go behind those of the warps before it.
__device__ __forceinline__ void long_list(const Transpose& a, u64 source) {
  const u32 WARPS = TRANSPOSE_THREADS / 32;
  __shared__ u32 places[WARPS][256], parts[WARPS];
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n = a.counts[source];
  u64 start = a.read(a.starts, source);
  u32 step = (n / WARPS + 32) & ~31u;
  u32 low = min(warp * step, n), high = min(low + step, n);
  // The list is read once, where edges are every other word. Its room is for every other pass then.
  u32 *even = a.numbers + start, *odd = (u32*)(a.lists + start), *from = odd, *to = even;
  for (u32 pass = 0; pass < a.passes; pass++) {
    u32 apart = pass == 0 ? 2 : 1;
    for (u32 i = lane; i < 256; i += 32) places[warp][i] = 0;
    __syncwarp();
    for (u32 i = low + lane; i < high; i += 32) atomicAdd(&places[warp][from[(u64)i * apart] >> 8 * pass & 255], 1u);
    __syncthreads();
    // A thread a byte.
    u32 total = 0, ignored;
    for (u32 w = 0; w < WARPS; w++) total += places[w][threadIdx.x];
    u32 at = sum_before(total, ignored, parts);
    for (u32 w = 0; w < WARPS; w++) {
      u32 count = places[w][threadIdx.x];
      places[w][threadIdx.x] = at;
      at += count;
    }
    __syncthreads();
    for (u32 i = low + lane; i - lane < high; i += 32) {
      u32 e = i < high ? from[(u64)i * apart] : 0, byte = i < high ? e >> 8 * pass & 255 : 256;
      Peers same(byte);
      if (i < high) to[places[warp][byte] + same.before] = e;
      __syncwarp();
      if (i < high && same.before == 0) places[warp][byte] += __popc(same.lanes);
      __syncwarp();
    }
    __syncthreads();
    from = to, to = from == even ? odd : even;
  }
  for (u32 i = threadIdx.x; i < n; i += TRANSPOSE_THREADS) a.put(start + i, a.row_of(from[i]), from[i]);
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(TRANSPOSE_THREADS) transpose_order(const __grid_constant__ TransposeArgs args) {
  const Transpose& a = (const Transpose&)args;
  u64 all = a.all(), stride = (u64)gridDim.x * TRANSPOSE_THREADS;
  for (u64 e = (u64)blockIdx.x * TRANSPOSE_THREADS + threadIdx.x; e < all; e += stride) {
    u64 source = a.read(a.indices, e);
    if (source >= a.sources) continue;
    u32 n = a.counts[source];
    if (n == 1 || n > TRANSPOSE_LONG) continue;
    u64 start = a.read(a.starts, source), row = 0;
    const u64* list = a.lists + start;
    u32 before = 0;
    for (u32 i = 0; i < n; i++) {
      u64 one = list[i];
      if ((u32)one < (u32)e) before++;
      if ((u32)one == (u32)e) row = one >> 32;
    }
    a.put(start + before, row, e);
  }
  for (u32 i = blockIdx.x; i < *a.num_longs; i += gridDim.x) long_list(a, a.longs[i]);
}
