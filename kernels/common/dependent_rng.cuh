// Uniform random numbers that are nearly the same in consecutive batches (LABOR's
// batch_dependency).
//
// Source: M. F. Balin, D. LaSalle, U. V. Catalyurek, "Cooperative Minibatching in Graph Neural
// Networks", 2023. Go twin: rng.Dependent.
#pragma once
#include "common/philox.cuh"
#include "common/real.cuh"

struct Dependent {
  Stream first, next;  // of the period's first batch, and of the next period's
  double cos, sin;
  bool between;        // false: the numbers are those of the first

  __device__ __forceinline__ Dependent(u32 key0, u32 key1, u32 site, u32 batch0, u32 batch1, u32 batches, u32 purpose) : cos(1), sin(0) {
    u64 number = (u64)(batch1 & 0xFF) << 32 | batch0, period = number / batches, j = number % batches;
    first = of_batch(key0, key1, site, batch1, period, purpose);
    next = of_batch(key0, key1, site, batch1, period + 1, purpose);
    between = j != 0;
    if (between) real_quarter(j, batches, cos, sin);
  }
  __device__ __forceinline__ static Stream of_batch(u32 key0, u32 key1, u32 site, u32 batch1, u64 batch, u32 purpose) {
    return stream_of(key0, key1, site, (u32)batch, (u32)(batch >> 32) | (batch1 & ~0xFFu), purpose);
  }
  // The number of which a stream's is of(stream).
  template <class Of>
  __device__ __forceinline__ double operator()(Of of) const {
    double u = of(first);
    if (!between) return u;
    double v = of(next);
    return real_normal_below(__dadd_rn(__dmul_rn(cos, real_normal_quantile(u)), __dmul_rn(sin, real_normal_quantile(v))));
  }
};
