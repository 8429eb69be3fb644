// Conversions between 16-bit floats and float32, rounded to nearest and ties to even.
//
// C twin: internal/engine/cpu/layers/half.h.
#pragma once
#include "common/philox.cuh"

typedef unsigned short u16;

// The emulator has its own.
#ifndef PGS_EMULATED
__device__ __forceinline__ float of_half(u16 half) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
  return x;
}
__device__ __forceinline__ u16 to_half(float x) {
  u16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
  return half;
}
#endif

__device__ __forceinline__ float of_brain(u16 brain) { return __uint_as_float((u32)brain << 16); }
__device__ __forceinline__ u16 to_brain(float x) {
  u32 bits = __float_as_uint(x);
  return x != x ? 0x7FFF : (u16)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

struct Half {
  u16 bits;
};
struct Brain {
  u16 bits;
};

// What values are added up as.
template <typename V> struct Wide { typedef V type; };
template <> struct Wide<Half> { typedef float type; };
template <> struct Wide<Brain> { typedef float type; };

__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ double wide(double x) { return x; }
__device__ __forceinline__ float wide(Half x) { return of_half(x.bits); }
__device__ __forceinline__ float wide(Brain x) { return of_brain(x.bits); }

__device__ __forceinline__ void narrow(float& to, float x) { to = x; }
__device__ __forceinline__ void narrow(double& to, double x) { to = x; }
__device__ __forceinline__ void narrow(Half& to, float x) { to.bits = to_half(x); }
__device__ __forceinline__ void narrow(Brain& to, float x) { to.bits = to_brain(x); }

// N values that are read and written at once; so wide are addresses aligned.
template <int BYTES> struct Word;
template <> struct Word<2> { typedef u16 type; };
template <> struct Word<4> { typedef u32 type; };
template <> struct Word<8> { typedef uint2 type; };
template <> struct Word<16> { typedef uint4 type; };

template <typename V, int N>
struct Values {
  typedef typename Word<sizeof(V) * N>::type All;
  typedef typename Wide<V>::type Sum;
  union {
    All all;
    V v[N];
  };
  __device__ __forceinline__ void load(const V* p) { all = __ldg((const All*)p); }
  __device__ __forceinline__ void store(V* p) const { *(All*)p = all; }
  __device__ __forceinline__ Sum operator[](int j) const { return wide(v[j]); }
  __device__ __forceinline__ void set(int j, Sum x) { narrow(v[j], x); }
};

__device__ __forceinline__ float plus(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float over(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ double over(double a, double b) { return __ddiv_rn(a, b); }

// Of scores, which are float32 or float64.
__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
__device__ __forceinline__ float logarithm(float x) { return logf(x); }
__device__ __forceinline__ double logarithm(double x) { return log(x); }
// Less than all.
template <typename S>
__device__ __forceinline__ S never() { return -(S)__uint_as_float(0x7F800000); }
