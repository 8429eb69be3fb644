// Barriers and sums over all blocks of one cooperative launch. All blocks must be resident: with
// one block too many the launch deadlocks, since a block that waits never frees its place for the
// block that it waits for.
#pragma once
#include "common/philox.cuh"

#ifdef PGS_EMULATED
// The emulator (tests/emulator) has one thread of the host: its loads are ordered, and let others run.
u32 load_acquire(const u32* p);
u32 load_relaxed(const u32* p);
u64 load_relaxed(const u64* p);
void add_release(u32* p, u32 x);
void fence();
#else
__device__ __forceinline__ u32 load_acquire(const u32* p) {
  u32 v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ u32 load_relaxed(const u32* p) {
  u32 v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ u64 load_relaxed(const u64* p) {
  u64 v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
// Nanoseconds of a clock that all multiprocessors have.
__device__ __forceinline__ u64 globaltimer() {
  u64 v;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(v));
  return v;
}
// Adds, once all that the thread has written is there, and what its block wrote before a barrier.
__device__ __forceinline__ void add_release(u32* p, u32 x) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
// Weaker and cheaper than __threadfence, which is sequentially consistent.
__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
#endif

// The sum over the warp's lanes, in every lane; of values whose sum is below 2^32.
__device__ __forceinline__ u32 warp_sum32(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0u, x);
#else
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
  return x;
#endif
}

// Likewise, of any values.
__device__ __forceinline__ u64 warp_sum(u32 x) {
#if __CUDA_ARCH__ >= 800
  // Two additions in hardware: neither half can overflow.
  return __reduce_add_sync(~0u, x & 0xFFFF) + ((u64)__reduce_add_sync(~0u, x >> 16) << 16);
#else
  u64 sum = x;
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  return sum;
#endif
}

// The sum over the lanes before this one; all becomes the sum over all lanes, below 2^32.
__device__ __forceinline__ u32 lanes_before(u32 x, u32& all) {
  u32 lane = threadIdx.x & 31, inclusive = x;
  for (int d = 1; d < 32; d <<= 1) {
    u32 y = __shfl_up_sync(~0u, inclusive, d);
    if (lane >= d) inclusive += y;
  }
  all = __shfl_sync(~0u, inclusive, 31);
  return inclusive - x;
}

// How far the blocks of a grid are: a counter in device memory whose top bit flips once all blocks
// have come. The additions of one meeting sum up to 2^31, so the counter needs no reset, neither
// within a launch nor between launches. Only thread 0 of a block asks and waits: fences and loads of
// many threads take longer than the meeting itself. Lies in shared memory.
struct Meeting {
  u32* arrived;
  u32 phase;  // the top bit while this block has not come

  // By thread 0, as the rest. No other block can have come to the first meeting of all before this one.
  __device__ __forceinline__ void begin(u32* counter) {
    arrived = counter;
    phase = load_acquire(counter) & 0x80000000u;
  }
  __device__ __forceinline__ u32 step() const { return blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u; }
  // After a barrier of the block. That the addition releases, and the load of wait() acquires, in the
  // place of fences around them took 2 to 8 % off a batch of 1024 to 4096 seeds.
  __device__ __forceinline__ void come() { add_release(arrived, step()); }
  __device__ __forceinline__ void wait() {
    u32 was = phase;
    while (((was ^ load_acquire(arrived)) & 0x80000000u) == 0) {
    }
    phase = was ^ 0x80000000u;
  }
  // Likewise, for the last meeting of a launch; says whether all others have come before.
  __device__ __forceinline__ bool come_last() {
    fence();
    u32 old = atomicAdd(arrived, step());
    fence();
    return (old ^ (old + step())) >> 31;
  }
};

// Barrier of all blocks: what any thread wrote before it, every thread sees after it.
__device__ __forceinline__ void grid_barrier(Meeting& m) {
  __syncthreads();
  if (threadIdx.x == 0) m.come(), m.wait();
  __syncthreads();
}

// Barrier of all blocks that also adds up: every block gives three values below 2^31 and gets their
// sums over earlier blocks, and over all. A sum from TOO_MUCH on is only known to be that.
const u32 TOO_MUCH = MOST_EDGES;
struct Sums {
  u32 before[3], total[3];
};
// What it needs of a block's shared memory; two take turns.
struct SumSpace {
  u32 parts[3][32];
  u32 of_warps[6][32];
};

__device__ __forceinline__ u32 at_most(u64 x) { return x < TOO_MUCH ? (u32)x : TOO_MUCH; }

// x, y, z are a warp's, alike in its lanes; the first N of them count. Every thread reads the slots of some blocks, at once.
template <int N = 3>
__device__ __forceinline__ Sums grid_sums(u32 x, u32 y, u32 z, ulonglong2* slots, Meeting& m, SumSpace& space) {
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  bool has = lane < blockDim.x >> 5;
  if (lane == 0) {
    space.parts[0][warp] = x;
    if (N > 1) space.parts[1][warp] = y, space.parts[2][warp] = z;
  }
  __syncthreads();
  if (warp == 0) {
    u32 block[3] = {0, 0, 0};
#pragma unroll
    for (int i = 0; i < N; i++) block[i] = at_most(warp_sum(has ? space.parts[i][lane] : 0));
    if (lane == 0) {
      slots[blockIdx.x] = make_ulonglong2(block[0] | (u64)block[1] << 32, block[2]);
      m.come();
      m.wait();
    }
  }
  __syncthreads();
  u64 sums[6] = {0, 0, 0, 0, 0, 0};
#pragma unroll 1
  for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
    ulonglong2 word = __ldcg(slots + b);
    u32 value[3] = {(u32)word.x, (u32)(word.x >> 32), (u32)word.y};
#pragma unroll
    for (int i = 0; i < N; i++) {
      sums[i] += value[i];
      if (b < blockIdx.x) sums[3 + i] += value[i];
    }
  }
#pragma unroll
  for (int i = 0; i < 6; i++) {
    if (i % 3 >= N) continue;
    u32 of_warp = at_most(warp_sum(at_most(sums[i])));
    if (lane == 0) space.of_warps[i][warp] = of_warp;
  }
  __syncthreads();
  Sums all;
#pragma unroll
  for (int i = 0; i < N; i++) {
    all.total[i] = at_most(warp_sum(has ? space.of_warps[i][lane] : 0));
    all.before[i] = at_most(warp_sum(has ? space.of_warps[3 + i][lane] : 0));
  }
  return all;
}
