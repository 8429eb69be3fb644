// Computes the lowest ranks of nodes without a map: pairs of (node, rank) are written to bins, and
// each bin fits into a table in shared memory. A bin that overflows ends the launch with
// STATUS_BINS_FULL.
#pragma once
#include "neighbor/neighbor.cuh"

// 2^bits bins for so many pairs: one for every block at least, and if vertices are distinct, at most
// five eighths of their room is used.
__device__ __forceinline__ u32 bits_for(u64 pairs) {
  u32 bits = gridDim.x > 2 ? 32 - __clz(gridDim.x - 1) : 1;
  while (bits < 31 && pairs > (u64)(BIN_ROOM * 5 / 8) << bits) bits++;
  return bits;
}

// Puts a pair into its bin in two steps, so that a thread has several on their way; pairs beyond the
// room are counted alone.
__device__ __forceinline__ u32 bin_of(u32 v, u32 bits) { return (v * 2654435769u) >> (32 - bits); }
__device__ __forceinline__ u32 bin_place(const Args& a, u32 v, u32 bits) { return atomicAdd(a.fills + bin_of(v, bits) * FILL_STRIDE, 1u); }
__device__ __forceinline__ void bin_put(const Args& a, u32 v, u32 rank, u32 bits, u32 at) {
  if (at < BIN_ROOM) a.pairs[(u64)bin_of(v, bits) * BIN_ROOM + at] = (u64)v << 32 | rank;
}

// Vertices that have numbers, lo to hi, go into the bins beside the hop's edges, with their numbers as
// ranks.
__device__ __forceinline__ void append_numbered(const Args& a, Slice mine, u32 id_bits, u32 bits) {
#pragma unroll 1
  for (u32 i0 = mine.lo + threadIdx.x; i0 < mine.hi; i0 += BATCH * THREADS) {
    u32 v[BATCH], at[BATCH];
#pragma unroll
    for (u32 c = 0; c < BATCH; c++)
      if (i0 + c * THREADS < mine.hi) v[c] = (u32)read(a.batch.nodes, id_bits, i0 + c * THREADS);
#pragma unroll
    for (u32 c = 0; c < BATCH; c++)
      if (i0 + c * THREADS < mine.hi) at[c] = bin_place(a, v[c], bits);
#pragma unroll
    for (u32 c = 0; c < BATCH; c++)
      if (i0 + c * THREADS < mine.hi) bin_put(a, v[c], i0 + c * THREADS, bits, at[c]);
  }
}

// Finds the lowest rank of every vertex, bin by bin, and answers every edge with its vertex's. Returns
// whether a bin of the block's had no room.
__device__ __forceinline__ u32 answer(const Args& a, u32* table, u32 base, u32 bits) {
  u32 *keys = table, *ranks = table + BIN_TABLE, full = 0;
  const u32 NONE = ~0u, EACH = BIN_ROOM / THREADS;
  for (u32 bin = blockIdx.x; bin < 1u << bits; bin += gridDim.x) {
    u32 fill = __ldcg(a.fills + bin * FILL_STRIDE);
    if (fill > BIN_ROOM) full = 1, fill = BIN_ROOM;
    u64 pair[EACH];
    u32 place[EACH];
#pragma unroll
    for (u32 c = 0; c < EACH; c++)
      if (c * THREADS + threadIdx.x < fill) pair[c] = __ldcg(a.pairs + (u64)bin * BIN_ROOM + c * THREADS + threadIdx.x);
    uint4* words = (uint4*)table;
#pragma unroll 4
    for (u32 i = threadIdx.x; i < 2 * BIN_TABLE / 4; i += THREADS) words[i] = make_uint4(NONE, NONE, NONE, NONE);
    __syncthreads();
    if (threadIdx.x == 0) a.fills[bin * FILL_STRIDE] = 0;
#pragma unroll
    for (u32 c = 0; c < EACH; c++) {
      if (c * THREADS + threadIdx.x >= fill) continue;
      u32 v = (u32)(pair[c] >> 32), at = (v * 2246822519u) >> 19;
      for (;; at = (at + 1) & (BIN_TABLE - 1)) {
        u32 old = atomicCAS(keys + at, NONE, v);
        if (old == NONE || old == v) break;
      }
      atomicMin(ranks + at, (u32)pair[c]);
      place[c] = at;
    }
    __syncthreads();
#pragma unroll
    for (u32 c = 0; c < EACH; c++)
      if (c * THREADS + threadIdx.x < fill && (u32)pair[c] >= base) a.answers[(u32)pair[c] - base] = ranks[place[c]];
    __syncthreads();
  }
  return full;
}
