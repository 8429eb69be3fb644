// Functions of real numbers whose every bit is the same on all engines: each is one sequence of additions,
// multiplications and divisions, every one rounded to nearest by itself. The intrinsics keep the compiler
// from fusing a product with a sum. Go twin, with the reasons: internal/real.
#pragma once

// The natural logarithm of a positive finite number.
__device__ __forceinline__ double real_log(double x) {
  long long subnormal = x < 0x1p-1022 ? 54 : 0;
  if (subnormal) x = __dmul_rn(x, 0x1p54);
  long long bits = __double_as_longlong(x), e = (bits - 0x3FE6A09E667F3BCDll) >> 52;
  double m = __longlong_as_double(bits - (long long)((unsigned long long)e << 52));
  e -= subnormal;
  double s = __ddiv_rn(__dadd_rn(m, -1.0), __dadd_rn(m, 1.0)), z = __dmul_rn(s, s), series = 1.0 / 21;
#pragma unroll
  for (int k = 19; k > 1; k -= 2) series = __dadd_rn(__dmul_rn(series, z), 1.0 / k);
  double twice = __dadd_rn(s, s), log_m = __dadd_rn(twice, __dmul_rn(twice, __dmul_rn(z, series)));
  return __dadd_rn(__dmul_rn((double)e, 0x1.62e42fefa39efp-1), log_m);
}

// 1 - exp(-x) of a number that is not negative.
__device__ __forceinline__ double real_one_minus_exp(double x) {
  if (x >= 64) return 1;
  long long n = (long long)__dadd_rn(__dmul_rn(x, 0x1.71547652b82fep+0), 0.5);
  double whole = (double)n, series = 1;
  double r = __dadd_rn(__dadd_rn(x, -__dmul_rn(whole, 0x1.62e42fefa3p-1)), -__dmul_rn(whole, 0x1.3de6af278ece6p-42));
#pragma unroll
  for (int k = 14; k > 1; k--) series = __dadd_rn(1.0, -__dmul_rn(__dmul_rn(r, 1.0 / k), series));
  double q = __dmul_rn(r, series);
  double scale = __longlong_as_double((1023 - n) << 52);
  return __dadd_rn(__dadd_rn(1.0, -scale), __dmul_rn(scale, q));
}

// The natural logarithm of any number: of 0 minus infinity, of less and of NaN NaN.
__device__ __forceinline__ double real_full_log(double x) {
  if (x > 0 && x <= 0x1.fffffffffffffp+1023) return real_log(x);
  if (x == 0) return -__longlong_as_double(0x7FFll << 52);
  return x > 0 ? x : __longlong_as_double(0x7FF8ll << 48);
}

// 2^n of a normal double.
__device__ __forceinline__ double real_power_of_two(long long n) { return __longlong_as_double((1023 + n) << 52); }

// The exponential of any number.
__device__ __forceinline__ double real_exp(double x) {
  if (x > 709.78) return __longlong_as_double(0x7FFll << 52);
  if (x < -745.14) return 0;
  if (x != x) return x;
  double whole = floor(__dadd_rn(__dmul_rn(x, 0x1.71547652b82fep+0), 0.5)), series = 1;
  double r = __dadd_rn(__dadd_rn(x, -__dmul_rn(whole, 0x1.62e42fefa3p-1)), -__dmul_rn(whole, 0x1.3de6af278ece6p-42));
#pragma unroll
  for (int k = 14; k; k--) series = __dadd_rn(1.0, __dmul_rn(__dmul_rn(r, 1.0 / k), series));
  long long n = (long long)whole, half = n / 2;
  return __dmul_rn(__dmul_rn(series, real_power_of_two(n - half)), real_power_of_two(half));
}

// x 2^n, rounded once, of a number that is 0 or not subnormal.
__device__ __forceinline__ double real_scaled(double x, int n) {
  for (; n > 1023; n -= 1023) {
    if (n > 5000) n = 5000;
    x = __dmul_rn(x, 0x1p1023);
  }
  // Steps after which the last one, which alone may round, is by less than 2^-53.
  for (; n < -1022; n += 969) {
    if (n < -5000) n = -5000;
    x = __dmul_rn(x, 0x1p-969);
  }
  return __dmul_rn(x, real_power_of_two(n));
}
