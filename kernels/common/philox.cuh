// The random numbers of a row: one Philox4x32-10 call returns its 64-bit state, and SplitMix64's
// finalizer returns each draw.
//
// Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// Go twins: internal/rng/philox.go, splitmix.go (known answers are tested there, equality by every
// parity test).
#pragma once
#include "common/constants.cuh"

typedef unsigned int u32;
typedef unsigned long long u64;

// What is alike for all rows of a hop. Mirrors rng.Stream.
struct Stream {
  u32 k0, k1;      // key: the seed
  u32 c1, c2, c3;  // counter words 1 to 3: hop, batch, epoch
};

__device__ __forceinline__ Stream stream_of(u32 key0, u32 key1, u32 hop, u32 batch0, u32 batch1, u32 purpose = PURPOSE_NEIGHBORS) {
  return Stream{key0, key1, hop << HOP_SHIFT | purpose << PURPOSE_SHIFT, batch0, batch1};
}

__device__ __forceinline__ u64 row_state(const Stream& s, u64 v) {
  u32 c0 = (u32)v, c1 = s.c1 | ((u32)(v >> 32) & 0xFFFF), c2 = s.c2, c3 = s.c3;
  u32 k0 = s.k0, k1 = s.k1;
#pragma unroll
  for (int round = 0; round < PHILOX_ROUNDS; round++) {
    u64 p0 = (u64)c0 * PHILOX_M0, p1 = (u64)c2 * PHILOX_M1;
    c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
    c1 = (u32)p1;
    c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
    c3 = (u32)p0;
    k0 += PHILOX_W0;
    k1 += PHILOX_W1;
  }
  return c0 | (u64)c1 << 32;
}

__device__ __forceinline__ u64 mix(u64 z) {
  z = (z ^ z >> 30) * MIX_FIRST;
  z = (z ^ z >> 27) * MIX_SECOND;
  return z ^ z >> 31;
}

// Draw j of a row: 64 random bits.
__device__ __forceinline__ u64 draw_bits(u64 state, u32 j) { return mix(state + (j + 1) * GOLDEN); }
__device__ __forceinline__ u64 draw_bits64(u64 state, u64 j) { return mix(state + (j + 1) * GOLDEN); }

// The state of a row in one tree of a disjoint batch. Go twin: rng.Part.
__device__ __forceinline__ u64 part_state(u64 state, u32 tree) { return mix(state ^ ((u64)tree + 1) * GOLDEN); }

// Bits reduced to [0, n).
__device__ __forceinline__ u64 below(u64 bits, u64 n) { return __umul64hi(bits, n); }
__device__ __forceinline__ u32 below(u64 bits, u32 n) {
  return (u32)(((bits >> 32) * n + ((u64)(u32)bits * n >> 32)) >> 32);
}
__device__ __forceinline__ u64 draw_below(u64 state, u32 j, u64 n) { return below(draw_bits(state, j), n); }
__device__ __forceinline__ u32 draw_below32(u64 state, u32 j, u32 n) { return below(draw_bits(state, j), n); }
