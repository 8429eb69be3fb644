// What the blocks of one cooperative launch say to each other. All blocks must be resident: one too
// many deadlocks, since a block that waits never leaves its place to the one it waits for.
#pragma once
#include "philox.cuh"

__device__ __forceinline__ u32 load_acquire(const u32* p) {
  u32 v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ u64 load_relaxed(const u64* p) {
  u64 v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store_relaxed(u64* p, u64 v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// Barrier of all blocks; what any thread wrote before it, every thread sees after it. The top bit of
// the counter flips once all have come, and the sum of all additions is 2^31: so the counter needs no
// reset, neither within a launch nor between launches.
__device__ __forceinline__ void grid_barrier(u32* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    u32 old = atomicAdd(arrived, blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u);
    while (((old ^ load_acquire(arrived)) & 0x80000000u) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
}

// A sum over the block's threads, given to all of them. scratch: 33 words of shared memory.
__device__ __forceinline__ u64 block_sum(u64 x, u64* scratch) {
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
  __syncthreads();
  if (threadIdx.x < 32) {
    u64 y = threadIdx.x < blockDim.x >> 5 ? scratch[threadIdx.x] : 0;
    for (int d = 16; d; d >>= 1) y += __shfl_xor_sync(~0u, y, d);
    if (threadIdx.x == 0) scratch[32] = y;
  }
  __syncthreads();
  return scratch[32];
}

// The sum of x over the threads before this one; total is over all. scratch as above.
__device__ __forceinline__ u64 block_scan(u64 x, u64* scratch, u64& total) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  u64 inclusive = x;
  for (int d = 1; d < 32; d <<= 1) {
    u64 y = __shfl_up_sync(~0u, inclusive, d);
    if (lane >= d) inclusive += y;
  }
  __syncthreads();
  if (lane == 31) scratch[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    u64 sum = lane < blockDim.x >> 5 ? scratch[lane] : 0, y = sum;
    for (int d = 1; d < 32; d <<= 1) {
      u64 z = __shfl_up_sync(~0u, y, d);
      if (lane >= d) y += z;
    }
    scratch[lane] = y - sum;
    if (lane == 31) scratch[32] = y;
  }
  __syncthreads();
  total = scratch[32];
  return scratch[warp] + inclusive - x;
}

// Sums over the blocks: every block gives one value below 2^32 and gets the sum of those before its
// own, and of all. A slot holds the launch's stamp above the value, so that it needs no reset and no
// barrier: whoever reads the stamp has the value. It orders no other memory.
__device__ __forceinline__ u64 grid_scan(u64 value, u64* slots, u32 stamp, u64* scratch, u64& total) {
  if (threadIdx.x == 0) store_relaxed(slots + blockIdx.x, (u64)stamp << 32 | value);
  u64 before = 0, all = 0;
  for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
    u64 word;
    do word = load_relaxed(slots + b);
    while ((u32)(word >> 32) != stamp);
    all += (u32)word;
    if (b < blockIdx.x) before += (u32)word;
  }
  total = block_sum(all, scratch);
  return block_sum(before, scratch);
}
