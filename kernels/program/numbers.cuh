// The numbers of programs (docs/developer/operator-rules.md): maps, keys of races, and sums that do not
// depend on the order. Every operation is rounded to nearest separately.
//
// Go twin: internal/program/run.
#pragma once
#include "common/philox.cuh"
#include "common/real.cuh"

__device__ __forceinline__ u64 bits_of(double x) { return (u64)__double_as_longlong(x); }
__device__ __forceinline__ double of_bits(u64 x) { return __longlong_as_double((long long)x); }
const u64 SIGN = 1ull << 63, INFINITE = 0x7FFull << 52, ONE_BITS = 1023ull << 52, FRACTION = (1ull << 52) - 1;
__device__ __forceinline__ bool finite(double x) { return (bits_of(x) & ~SIGN) < INFINITE; }
__device__ __forceinline__ double nan_value() { return of_bits(INFINITE | 1ull << 51); }

// Maps.
__device__ __forceinline__ double op_neg(double x) { return of_bits(bits_of(x) ^ SIGN); }
__device__ __forceinline__ double op_abs(double x) { return of_bits(bits_of(x) & ~SIGN); }
__device__ __forceinline__ double op_sqrt(double x) { return x >= 0 ? __dsqrt_rn(x) : nan_value(); }
__device__ __noinline__ double op_exp(double x) { return real_exp(x); }
__device__ __noinline__ double op_log(double x) { return real_full_log(x); }
__device__ __forceinline__ double op_relu(double x) { return x > 0 ? x : 0; }
__device__ __forceinline__ double op_not(double x) { return x == 0; }
__device__ __forceinline__ double op_add(double x, double y) { return __dadd_rn(x, y); }
__device__ __forceinline__ double op_sub(double x, double y) { return __dadd_rn(x, op_neg(y)); }
__device__ __forceinline__ double op_mul(double x, double y) { return __dmul_rn(x, y); }
__device__ __noinline__ double op_div(double x, double y) { return __ddiv_rn(x, y); }
__device__ __forceinline__ double op_min(double x, double y) { return y < x ? y : x; }
__device__ __forceinline__ double op_max(double x, double y) { return y > x ? y : x; }
__device__ __forceinline__ double op_lt(double x, double y) { return x < y; }
__device__ __forceinline__ double op_le(double x, double y) { return x <= y; }
__device__ __forceinline__ double op_eq(double x, double y) { return x == y; }
__device__ __forceinline__ double op_ne(double x, double y) { return x != y; }
__device__ __forceinline__ double op_where(double c, double x, double y) { return c == 0 ? y : x; }
__device__ __forceinline__ double op_pow(double x, double y) {
  double size = op_abs(y);
  if (size <= 64 && size == floor(size)) {
    double r = 1;
    for (int digits = (int)size; digits;) {
      if (digits & 1) r = __dmul_rn(r, x);
      if (digits >>= 1) x = __dmul_rn(x, x);
    }
    return y < 0 ? op_div(1.0, r) : r;
  }
  return y == 0.5 ? op_sqrt(x) : op_exp(__dmul_rn(y, op_log(x)));
}

// The middle of one of 2^52 parts of (0, 1).
__device__ __forceinline__ double uniform(u64 draw) { return __dmul_rn((double)(draw >> 12 << 1 | 1), 0x1p-53); }

// e with 2^(e - 1) <= |x| < 2^e, of a finite number that is not 0.
__device__ __forceinline__ int exponent_above(u64 size) {
  int e = (int)(size >> 52);
  return e ? e - 1022 : -1010 - __clzll((long long)size);
}

// The integer and the exponent of its unit that a finite number is, but for its sign.
struct Parts {
  u64 whole;
  int unit;
};
__device__ __forceinline__ Parts parts_of(u64 size) {
  int e = (int)(size >> 52);
  return e ? Parts{(size & FRACTION) | 1ull << 52, e - 1075} : Parts{size, -1074};
}

// A number in [1, 2) that a positive finite number is a power of two times.
__device__ __forceinline__ double mantissa(double x, int& e) {
  u64 size = bits_of(x);
  e = exponent_above(size) - 1;
  if (size >> 52 == 0) size <<= __clzll((long long)size) - 11;
  return of_bits((size & FRACTION) | ONE_BITS);
}

// What no key is: an edge or a vertex that is no candidate.
const u64 NO_KEY = ~0ull;

// The key of a race: E / w of an exponential variate E, which no scale overflows.
__device__ __noinline__ u64 race_key(u64 draw, double w) {
  int a, c;
  double m = mantissa(op_neg(real_log(uniform(draw))), a), n = mantissa(w, c), r = op_div(m, n);
  int k = a - c;
  if (r < 1) r = __dmul_rn(2.0, r), k--;
  return ((u64)(k + 2048) << 52) + (bits_of(r) & FRACTION);
}

// Numbers that stand in the order of the doubles x, the two zeros alike and NaN last.
__device__ __forceinline__ u64 ascending(double x) {
  if (x != x) return ~0ull;
  u64 word = bits_of(x == 0 ? 0.0 : x);
  return word & SIGN ? ~word : word | SIGN;
}

__device__ __forceinline__ double of_ascending(u64 word) { return of_bits(word & SIGN ? word & ~SIGN : ~word); }

// Sums of n terms that no order changes: integers of the parts of each above and below 2^(e - b).
struct Bins {
  int e, b;
};
__device__ __forceinline__ Bins bins_of(u64 largest, u32 n) {
  return Bins{largest ? exponent_above(largest) : 0, 30 + __clz((int)n)};
}
struct Binned {
  long long upper, lower;
};
__device__ __noinline__ Binned binned(double x, Bins bins) {
  u64 size = bits_of(x) & ~SIGN, upper = 0, lower = 0;
  Parts p = parts_of(size);
  int up = p.unit + bins.b - bins.e, down = up + bins.b;
  u64 rest = p.whole;
  if (up >= 0) upper = p.whole << up, rest = 0;
  else if (up > -64) upper = p.whole >> -up, rest = p.whole - (upper << -up);
  if (down >= 0) lower = rest << (down < 64 ? down : 0);
  else if (down > -64) lower = rest >> -down;
  bool negative = bits_of(x) >> 63;
  return Binned{negative ? -(long long)upper : (long long)upper, negative ? -(long long)lower : (long long)lower};
}
__device__ __noinline__ double unbinned(Binned q, Bins bins) {
  return __dadd_rn(real_scaled((double)q.upper, bins.e - bins.b), real_scaled((double)q.lower, bins.e - 2 * bins.b));
}
