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

// Sums over the block need one barrier each: every warp adds up all warps' parts for itself.
typedef u64 BlockParts[2][32];

// The sum over the warp's lanes of values below 2^59.
__device__ __forceinline__ u64 warp_sum(u64 x) {
#if __CUDA_ARCH__ >= 800
  // Three additions in hardware take less than five rounds of two shuffles.
  u64 low = __reduce_add_sync(~0u, (u32)x & 0xFFFF), middle = __reduce_add_sync(~0u, (u32)x >> 16);
  return low + (middle << 16) + ((u64)__reduce_add_sync(~0u, (u32)(x >> 32)) << 32);
#else
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
  return x;
#endif
}

// Replaces x and y by their sums over the block's threads.
__device__ __forceinline__ void block_sum(u64& x, u64& y, u64 (*parts)[32]) {
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  x = warp_sum(x), y = warp_sum(y);
  if (lane == 0) parts[0][warp] = x, parts[1][warp] = y;
  __syncthreads();
  bool has = lane < blockDim.x >> 5;
  x = warp_sum(has ? parts[0][lane] : 0), y = warp_sum(has ? parts[1][lane] : 0);
}

// The sum of x over the warps before this one; x becomes the sum over all. x is alike within a warp.
__device__ __forceinline__ u64 warps_before(u64& x, u64 (*parts)[32]) {
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) parts[0][warp] = x;
  __syncthreads();
  u64 part = lane < blockDim.x >> 5 ? parts[0][lane] : 0;
  x = warp_sum(part);
  return warp_sum(lane < warp ? part : 0);
}

// The sum of x over the threads before this one; all becomes the sum over all, which is below 2^32.
__device__ __forceinline__ u32 threads_before(u32 x, u64& all, u64 (*parts)[32]) {
  u32 lane = threadIdx.x & 31, inclusive = x;
  for (int d = 1; d < 32; d <<= 1) {
    u32 y = __shfl_up_sync(~0u, inclusive, d);
    if (lane >= d) inclusive += y;
  }
  all = __shfl_sync(~0u, inclusive, 31);
  return (u32)warps_before(all, parts) + inclusive - x;
}

// Barrier of all blocks: what any thread wrote before it, every thread sees after it. The top bit of
// the counter flips once all have come, and the sum of all additions is 2^31: so the counter needs no
// reset, neither within a launch nor between launches. One thread of a block waits: fences and loads
// of many threads take longer than the barrier itself (measured: 44 us became 55).
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

// Barrier of all blocks that also adds up: every block gives two values and gets the sums over earlier
// blocks, and over all. Waiting for the barrier and then reading all slots takes 2 us with 132 blocks;
// having every block wait for every slot by itself took 3.
struct Sums {
  u64 before[2], total[2];
};
__device__ __forceinline__ Sums grid_sums(u64 x, u64 y, ulonglong2* slots, u32* arrived, u64 (*parts)[32],
                                          u64 (*more)[32]) {
  // The barrier's fence by the same thread comes after this store.
  if (threadIdx.x == 0) slots[blockIdx.x] = make_ulonglong2(x, y);
  grid_barrier(arrived);
  Sums s = {{0, 0}, {0, 0}};
  for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
    ulonglong2 word = __ldcg(slots + b);
    s.total[0] += word.x, s.total[1] += word.y;
    if (b < blockIdx.x) s.before[0] += word.x, s.before[1] += word.y;
  }
  block_sum(s.before[0], s.total[0], parts);
  block_sum(s.before[1], s.total[1], more);
  return s;
}
