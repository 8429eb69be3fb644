// Warp-aggregated atomics: lanes with the same key are grouped, and one lane adds for all of them.
#pragma once
#include "common/philox.cuh"

// Lanes with the same value, as their number before this one and their first.
struct Peers {
  u32 lanes, before, first;

  __device__ __forceinline__ Peers(u32 value) {
    lanes = __match_any_sync(~0u, value);
    before = __popc(lanes & ((1u << (threadIdx.x & 31)) - 1));
    first = __ffs((int)lanes) - 1;
  }
};
