// The choice of a row's edges for any fanout, which only the kernels neighbor32_any and
// neighbor64_any need. It is not inlined, since few rows use it.
#pragma once
#include "neighbor/neighbor.cuh"

// Floyd's algorithm by a warp, for any fanout: the choices stand where the edge ids will, which are
// wide enough for any position.
__device__ __noinline__ void choose_wide(const Args& a, void* edge_ids, u32 e0, u64 state, u64 degree, u32 fanout) {
  u32 lane = threadIdx.x & 31;
  for (u32 j = 0; j < fanout; j++) {
    u64 top = a.replace ? degree - 1 : degree - fanout + j, t = draw_below(state, j, top + 1);
    bool met = false;
    for (u32 i = lane; !a.replace && i < j; i += 32) met |= read(edge_ids, a.out_edge_bits, e0 + i) == t;
    if (__any_sync(~0u, met)) t = top;
    if (lane == 0) write(edge_ids, a.out_edge_bits, e0 + j, t);
    __syncwarp();
  }
}

__device__ __noinline__ u64 excluded_below(const Args& a, u64 p) { return excluded_below(a.excluded, a.num_excluded, p); }
__device__ __noinline__ u64 kept_position(const Args& a, u64 start, u64 pick) {
  return kept_position(a.excluded, a.num_excluded, start, pick);
}
