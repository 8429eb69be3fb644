// Functions of real numbers whose every bit is the same on all engines. Each is one sequence of
// additions, multiplications and divisions, every one rounded to nearest separately. The
// intrinsics prevent the compiler from fusing a product with a sum.
//
// Go twin, with the derivations: internal/real.
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

// Coefficients from the highest power on.
template <int N>
__device__ __forceinline__ double real_polynomial(const double (&of)[N], double x) {
  double y = of[0];
#pragma unroll
  for (int k = 1; k < N; k++) y = __dadd_rn(__dmul_rn(y, x), of[k]);
  return y;
}

// Where the standard normal distribution is p, for p in (0, 1).
__device__ __noinline__ double real_normal_quantile(double p) {
  double q = __dadd_rn(p, -0.5);
  if (fabs(q) <= 0.425) {
    const double over[8] = {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
                            1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080};
    const double under[8] = {5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
                             5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1};
    double r = __dadd_rn(0.180625, -__dmul_rn(q, q));
    return __ddiv_rn(__dmul_rn(q, real_polynomial(over, r)), real_polynomial(under, r));
  }
  double r = __dsqrt_rn(-real_log(q < 0 ? p : __dadd_rn(1.0, -p))), z;
  if (r <= 5) {
    const double over[8] = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
                            3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734};
    const double under[8] = {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
                             6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1};
    r = __dadd_rn(r, -1.6);
    z = __ddiv_rn(real_polynomial(over, r), real_polynomial(under, r));
  } else {
    const double over[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
                            2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720};
    const double under[8] = {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
                             1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1};
    r = __dadd_rn(r, -5.0);
    z = __ddiv_rn(real_polynomial(over, r), real_polynomial(under, r));
  }
  return q < 0 ? -z : z;
}

// The standard normal distribution at x.
__device__ __noinline__ double real_normal_below(double x) {
  double z = fabs(x), below = real_exp(__ddiv_rn(-__dmul_rn(z, z), 2.0));
  if (z < 3) {
    const double over[7] = {3.52624965998911e-2, 0.700383064443688, 6.37396220353165, 33.912866078383,
                            112.079291497871, 221.213596169931, 220.206867912376};
    const double under[8] = {8.83883476483184e-2, 1.75566716318264, 16.064177579207, 86.7807322029461,
                             296.564248779674, 637.333633378831, 793.826512519948, 440.413735824752};
    below = __ddiv_rn(__dmul_rn(below, real_polynomial(over, z)), real_polynomial(under, z));
  } else {
    double fraction = z;
    for (int k = 32; k; k--) fraction = __dadd_rn(z, __ddiv_rn(k, fraction));
    below = __ddiv_rn(__ddiv_rn(below, fraction), 2.5066282746310002);
  }
  return x > 0 ? __dadd_rn(1.0, -below) : below;
}

// Cosine and sine of the part j / k of a right angle, j being from 0 to k.
__device__ __noinline__ void real_quarter(unsigned long long j, unsigned long long k, double& cos, double& sin) {
  bool turned = 2 * j > k;
  if (turned) j = k - j;
  double x = __dmul_rn(__ddiv_rn((double)j, (double)k), 0x1.921fb54442d18p+0), z = __dmul_rn(x, x), c = 1, s = 1;
  for (int n = 18; n; n -= 2) {
    c = __dadd_rn(1.0, -__dmul_rn(__ddiv_rn(z, n * (n - 1)), c));
    s = __dadd_rn(1.0, -__dmul_rn(__ddiv_rn(z, n * (n + 1)), s));
  }
  s = __dmul_rn(x, s);
  cos = turned ? s : c;
  sin = turned ? c : s;
}
