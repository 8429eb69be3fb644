// TurboGNN's sampling kernels, as replacements of count and draw of bsp.cu: a warp scans the
// positions of a row and keeps a reservoir of fanout of them, in shared or in global memory. The rest
// of a hop (seeds, check, number, the reads of the host) is that of bsp.cu, so that the two modes
// differ in time by the draws only.
//
// Source: Wu et al., "TurboGNN", section III-B.
//
// Kernels of a hop, in a stream:
//   count  as in bsp.cu, one thread per row; also counts the rows of each class of degrees, and the
//          block that ends last computes the offset of each class in the order, the largest degrees
//          first
//          -> the host reads the number of edges of the hop, and of rows of the high part
//   order  one thread per row: its place in the order. Without schedule the only classes are the
//          parts; with a single part, neither are classes counted nor rows ordered
//   draw   one warp per row (Algorithm 1): slot j of its reservoir holds position j at first;
//          position i replaces the one in slot r, where r is the row's draw i of [0, i], if
//          r < fanout. Then the warp gathers and claims the slots' edges. Blocks from 0 on have the
//          high part, rows of degree >= threshold, whose reservoirs are in shared memory; those after
//          them the low part, whose reservoirs are in the memory of the edge ids.
//
// The lanes of a warp process positions in parallel. A slot finally holds the largest position that
// drew it (atomicMax), which is also the result of sequential processing. So neither the order of
// lanes and rows nor the place of a reservoir changes a bit.
//
// Rows of a block (Algorithm 2): in a part that takes fewer than snake_below blocks, one row of each
// round of as many rows as blocks, every other round backwards, so that each block has some of all
// degrees; in a larger part a run of rows, the longest in its first blocks, which the device starts
// first. Inside a block, warps alternate in both directions. Without schedule a block has a run of
// rows of the frontier, and warps alternate.
//
// Sorting is one scan by classes of degrees, four per octave: rows of a class differ by a quarter at
// most, which is enough for balancing, while sorting by all bits takes one scan for each eight. A
// threshold inside a class splits it, so that the parts are exact. Rows of a class are in any order.
// An automatic threshold is the bound of a class: the high part has the classes of largest degrees
// whose rows fit into the device's shared memory at the same time (most_high).
//
// Invariants: as in bsp.cu. classes are zero when no kernel runs; a row is in the order once.
//
// Go caller: internal/research/cuda/reservoir.go. Go twin: internal/research/cpu/reservoir.go.
#include "research/bsp.cuh"

#define DRAW_WARPS (DRAW_THREADS / 32)

// Mirrors reservoirArgs in internal/research/cuda/reservoir.go; loading compares the sizes.
struct ReservoirArgs {
  BspArgs hop;     // its tile: rows of a block of draw
  u32* order;      // the rows by descending class; null: as they are
  u32* classes;    // DEGREE_CLASSES counts, and behind them where each class goes on in the order
  u64 threshold;   // the least degree of the high part
  u64 high;        // rows of the high part
  u64 most_high;   // not 0: the high part is as many whole classes as have so many rows, whatever the threshold
  u32 high_blocks, low_blocks, first_block;  // of draw; first_block: the launch's first
  u32 schedule, snake_below, slot_bits;      // slot_bits: of a slot in shared memory
};

// 0 to 3, then four classes an octave: 252 of all degrees. With the threshold, one more.
__device__ __forceinline__ u32 degree_class(const ReservoirArgs& a, u64 degree) {
  u32 high = degree >= a.threshold;
  if (!a.schedule) return high;
  if (degree < 4) return (u32)degree + high;
  u32 exponent = 63 - __clzll((long long)degree);
  return 4 * (exponent - 1) + (u32)(degree >> (exponent - 2) & 3) + high;
}

// ---- count and order ---------------------------------------------------------------------------

template <typename I>
__device__ __forceinline__ void reservoir_count(const ReservoirArgs& r) {
  __shared__ BspShared s;
  __shared__ u32 found[DEGREE_CLASSES];
  __shared__ u64 high;
  const BspArgs& a = r.hop;
  Bsp<I> bsp{a, s};
  u64 row = bsp.thread(), take = 0, all;
  found[threadIdx.x] = 0;
  __syncthreads();
  if (row < a.n) {
    ulonglong2 read;
    if (row < a.known) read = a.rows[row];
    else a.rows[row] = read = a.graph.row_of((u64)((const I*)a.nodes)[row]);
    take = a.graph.taken(read.y, a.fanout);
    if (r.order) atomicAdd(found + degree_class(r, read.y), 1u);
  }
  u64 before = rows_before(take, all, s.parts);
  if (row < a.n) ((I*)a.indptr)[row] = (I)before;
  if (threadIdx.x == 0) a.sums[blockIdx.x] = all;
  if (r.order && found[threadIdx.x]) atomicAdd(r.classes + threadIdx.x, found[threadIdx.x]);
  if (!bsp.ends_last()) return;
  u64 total = bsp.add_up(gridDim.x);
  if (r.order) {
    // Thread 0 has the last class. The high part ends with the class that the threshold begins.
    u32 own = DEGREE_CLASSES - 1 - threadIdx.x;
    u64 count = __ldcg(r.classes + own), earlier = rows_before(count, all, s.parts);
    r.classes[own] = 0;
    r.classes[DEGREE_CLASSES + own] = (u32)earlier;
    if (r.most_high) {
      if (threadIdx.x == 0) high = 0;
      __syncthreads();
      if (earlier + count <= r.most_high) atomicMax(&high, earlier + count);
    } else if (own == degree_class(r, r.threshold)) {
      high = earlier + count;
    }
    __syncthreads();
  }
  if (threadIdx.x) return;
  ((I*)a.indptr)[a.n] = (I)total;
  a.report[RESERVOIR_HIGH] = r.order ? high : r.threshold ? 0 : a.n;
  bsp.post(total);
}

// A block takes the places of its rows in each class with one addition.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS) reservoir_order(const __grid_constant__ ReservoirArgs r) {
  __shared__ u32 found[DEGREE_CLASSES];
  u64 row = (u64)blockIdx.x * ORDER_THREADS + threadIdx.x;
  u32 own = 0, place = 0;
  found[threadIdx.x] = 0;
  __syncthreads();
  if (row < r.hop.n) {
    own = degree_class(r, r.hop.rows[row].y);
    place = atomicAdd(found + own, 1u);
  }
  __syncthreads();
  if (found[threadIdx.x]) found[threadIdx.x] = atomicAdd(r.classes + DEGREE_CLASSES + threadIdx.x, found[threadIdx.x]);
  __syncthreads();
  if (row < r.hop.n) r.order[found[own] + place] = (u32)row;
}

// ---- draw --------------------------------------------------------------------------------------

// By a warp. T holds any position of the row.
template <typename T>
__device__ __forceinline__ void fill(T* slots, u64 state, u64 degree, u64 fanout) {
  u32 lane = threadIdx.x & 31;
  for (u64 j = lane; j < fanout; j += 32) slots[j] = (T)j;
  __syncwarp();
  T i = (T)(fanout + lane), left = degree > i ? ((T)degree - i - 1) / 32 + 1 : 0;
  // Draw i is mix(state + (i + 1) GOLDEN): a lane's next one is 32 further. Unrolled this takes 56 registers in
  // the place of 32, which is 9 blocks of a multiprocessor in the place of 16.
#pragma unroll 1
  for (u64 z = state + ((u64)i + 1) * GOLDEN; left; left--, i += 32, z += 32 * GOLDEN) {
    T slot = below(mix(z), (T)(i + 1));
    if (slot < (T)fanout) atomicMax(slots + slot, i);
  }
  __syncwarp();
}

// Fills a row's slots. Where they are is known when this is compiled, so that atomic operations are those of
// that memory.
template <typename T, typename I>
__device__ __forceinline__ void keep(const ReservoirArgs& r, T* slots, ulonglong2 row, u64 row_number) {
  const BspArgs& a = r.hop;
  const RowsArgs& g = a.graph;
  Stream s = stream_of(g.key0, g.key1, a.hop, g.batch0, g.batch1, PURPOSE_RESERVOIRS);
  fill(slots, row_state(s, (u64)((const I*)a.nodes)[row_number]), row.y, (u64)a.fanout);
}

// One row, by a warp. kept: its reservoir in shared memory, of the high part.
template <typename I, bool HIGH>
__device__ __forceinline__ void draw_row(const ReservoirArgs& r, u64 row_number, u64* kept) {
  const BspArgs& a = r.hop;
  u32 lane = threadIdx.x & 31, bits = HIGH ? r.slot_bits : a.graph.out_edge_bits;
  ulonglong2 row = a.rows[row_number];
  I* indptr = (I*)a.indptr;
  u64 e0 = 0;
  if (lane == 0) {
    e0 = a.sums[row_number / BSP_ROW_TILE] + (u64)indptr[row_number];
    indptr[row_number] = (I)e0;
  }
  e0 = __shfl_sync(~0u, e0, 0);
  bool whole;
  u64 take = a.graph.take(row.y, a.fanout, whole);
  u32* narrow = HIGH ? (u32*)kept : (u32*)a.edge_ids + e0;
  u64* wide = HIGH ? kept : (u64*)a.edge_ids + e0;
  if (!whole && take) {
    if (bits == 32) keep<u32, I>(r, narrow, row, row_number);
    else keep<u64, I>(r, wide, row, row_number);
  }
  for (u64 j = lane; j < take; j += 32) {
    u64 pick = j;
    if (!whole && HIGH) pick = bits == 32 ? narrow[j] : wide[j];
    // Atomic operations of other lanes were made in the L2.
    else if (!whole) pick = bits == 32 ? __ldcg(narrow + j) : __ldcg(wide + j);
    a.graph.gather((I*)a.ids, a.edge_ids, e0 + j, row.x, pick, a.base);
  }
  __syncwarp();  // the next row's reservoir takes this one's place
}

// The rows of a block among those of a part.
template <typename I, bool HIGH>
__device__ __forceinline__ void draw_part(const ReservoirArgs& r, u32 block, u64* kept) {
  u32 warp = threadIdx.x >> 5, tile = r.hop.tile, blocks = HIGH ? r.high_blocks : r.low_blocks;
  u64 first = HIGH ? 0 : r.high, count = HIGH ? r.high : r.hop.n - r.high;
  bool snake = r.schedule && blocks < r.snake_below;
  for (u32 turn = 0; turn * DRAW_WARPS < tile; turn++) {
    u32 k = turn * DRAW_WARPS + warp;
    u64 place = (u64)k * blocks + (k & 1 ? blocks - 1 - block : block);
    if (!snake) place = (u64)block * tile + (r.schedule && turn & 1 ? (turn + 1) * DRAW_WARPS - 1 - warp : k);
    if (place >= count) continue;
    place += first;
    draw_row<I, HIGH>(r, r.order ? r.order[place] : place, kept);
  }
}

template <typename I>
__device__ __forceinline__ void reservoir_draw(const ReservoirArgs& r) {
  extern __shared__ u64 reservoirs[];
  u32 block = blockIdx.x + r.first_block;
  if (block < r.high_blocks) draw_part<I, true>(r, block, (u64*)((char*)reservoirs + (threadIdx.x >> 5) * (u64)r.hop.fanout * (r.slot_bits / 8)));
  else draw_part<I, false>(r, block - r.high_blocks, nullptr);
}

#define KERNELS(step, threads)                                                                                             \
  extern "C" __global__ void __launch_bounds__(threads) reservoir_##step##32(const __grid_constant__ ReservoirArgs a) {   \
    reservoir_##step<int>(a);                                                                                              \
  }                                                                                                                        \
  extern "C" __global__ void __launch_bounds__(threads) reservoir_##step##64(const __grid_constant__ ReservoirArgs a) {   \
    reservoir_##step<long long>(a);                                                                                        \
  }
KERNELS(count, BSP_THREADS)
KERNELS(draw, DRAW_THREADS)
