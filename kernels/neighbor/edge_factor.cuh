// The Horvitz-Thompson factors of a row that has drawn by weight, computed by a warp, for every
// kernel that computes factors.
//
// Without replacement, the factor of an edge of weight w is 1 / (1 - exp(-w tau)), where tau is the
// time of the first arrival of an edge that was not chosen, if each edge arrives at an exponential
// time with its weight as rate. Conditioned on the order of the choices, the gaps between arrivals
// are independent and exponential.
//
// Go twin: rng.Weights.Factors.
#pragma once
#include "common/real.cuh"
#include "neighbor/weighted.cuh"

// The sum of x over the lanes before this one; all becomes the sum over all lanes.
__device__ __forceinline__ u64 lanes_before64(u64 x, u64& all) {
  u64 lane = threadIdx.x & 31, inclusive = x;
#pragma unroll
  for (u32 d = 1; d < 32; d <<= 1) {
    u64 y = __shfl_up_sync(~0u, inclusive, d);
    if (lane >= d) inclusive += y;
  }
  all = __shfl_sync(~0u, inclusive, 31);
  return inclusive - x;
}

// -log(u), u in the middle of one of 2^52 parts of (0, 1). Go twin: rng.Exponential.
__device__ __forceinline__ double exponential(u64 bits) {
  return -real_log(__dmul_rn((double)(long long)(bits >> 12 << 1 | 1), 0x1p-53));
}

// Stored as integers, so that the compiler knows that it may overwrite a choice.
__device__ __forceinline__ void put(void* factors, u64 e, float factor) { write(factors, 32, e, (u64)__float_as_int(factor)); }

// The factor of a row that has drawn uniformly, of so many edges. Go twin: request.Rule.Factor.
__device__ __forceinline__ float uniform_factor(u64 degree, u64 fanout) {
  return __double2float_rn(__ddiv_rn(__ull2double_rn(degree), __ull2double_rn(fanout)));
}

// The weights of all edges of a row of n that may be drawn, by a warp; x0 to x1 are its excluded ones. Of a part before is
// what the sums have before it.
template <class Args>
__device__ __forceinline__ u64 weight_of_row(const Args& a, u64 start, u64 n, u64 x0, u64 x1, u64 before = 0) {
  Sums64 w{a.sums + start, before};
  u64 out = 0;
  for (u64 i = x0 + (threadIdx.x & 31); i < x1; i += 32) out += w.of(a.excluded[i] - start);
  return w.sums[n - 1] - before - warp_sum64(out);
}

// A row that has drawn by weight: edges e0 to e0 + fanout of factors, whose choices, of so many bits each, stand from c0 on.
template <class Args>
struct DrawnRow {
  const Args& a;
  void *choices, *factors;
  u32 bits, c0, e0, fanout;
  u64 state, start, n, total;  // total: the weights of all that may be drawn
  Sums64 w;
  bool part = false;  // of a row, whose choices were drawn one after another, none of them refused

  __device__ __forceinline__ u64 choice(u32 j) const { return choice_at(choices, bits, c0 + j); }
  __device__ __forceinline__ bool first_draw(u32 j, u64 p) const {
    return part || weighted_pick(a.alias + start, draw_bits64(state, j), n) == p;
  }

  __device__ __forceinline__ void replaced() const {
    double all = __ull2double_rn(total), times = (double)fanout;
    for (u32 j = threadIdx.x & 31; j < fanout; j += 32)
      put(factors, e0 + j, __double2float_rn(__ddiv_rn(all, __dmul_rn(times, __ull2double_rn(w.of(choice(j)))))));
  }

  // When the first edge arrives that was not chosen. First draws that were accepted came first, in order,
  // then what took the places of the refused ones, in order.
  __device__ __forceinline__ double next() const {
    u32 lane = threadIdx.x & 31;
    u64 later = 0, earlier = 0;
    for (u32 j = lane; j < fanout; j += 32) {
      u64 p = choice(j);
      if (first_draw(j, p)) later += w.of(p);
    }
    later = warp_sum64(later);
    double tau = 0;
    for (u32 j0 = 0; j0 <= fanout; j0 += 32) {
      u32 j = j0 + lane;
      u64 weight = 0, accepted = 0, replacing = 0;
      bool first = false;
      if (j < fanout) {
        u64 p = choice(j);
        weight = w.of(p);
        first = first_draw(j, p);
      }
      u64 before_first = lanes_before64(first ? weight : 0, accepted), before_other = lanes_before64(first ? 0 : weight, replacing);
      u64 before = first ? earlier + before_first : later + before_other;
      double gap = 0;
      if (j <= fanout) gap = __ddiv_rn(exponential(draw_bits64(state, (u64)GAPS * fanout + j)), __ull2double_rn(total - before));
#pragma unroll
      for (u32 d = 16; d; d >>= 1) gap = __dadd_rn(gap, __shfl_xor_sync(~0u, gap, d));
      tau = __dadd_rn(tau, gap);
      earlier += accepted;
      later += replacing;
    }
    return tau;
  }

  __device__ __forceinline__ void distinct() const {
    double tau = next();
    for (u32 j = threadIdx.x & 31; j < fanout; j += 32) {
      double chance = real_one_minus_exp(__dmul_rn(__ull2double_rn(w.of(choice(j))), tau));
      put(factors, e0 + j, __double2float_rn(__ddiv_rn(1.0, chance)));
    }
  }

  __device__ __forceinline__ void all_factors() const {
    if (a.replace) replaced();
    else distinct();
  }
};
