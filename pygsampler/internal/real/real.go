// Package real implements functions of real numbers whose every bit is the same on all engines:
// each is one sequence of additions, multiplications and divisions of IEEE doubles, every one
// rounded to nearest. It calls nothing of the mathematical library, whose last bits differ between
// systems, and converts each product to float64, since the compiler may otherwise fuse it with a
// sum on some processors. Their relative error is within 4e-16.
//
// CUDA twin: kernels/common/real.cuh. A test compares the bits.
package real

import "math"

const (
	// The bits of sqrt(1/2), and those of a double's fraction.
	rootBits = 0x3FE6A09E667F3BCD
	fraction = 52

	ln2 = 0x1.62e42fefa39efp-1
	// ln2 in two parts; up to 2^12 times the first is exact.
	ln2High = 0x1.62e42fefa3p-1
	ln2Low  = 0x1.3de6af278ece6p-42
	perLn2  = 0x1.71547652b82fep+0
)

// Log returns the natural logarithm of a positive finite number.
//
// x is 2^e m with sqrt(1/2) <= m < sqrt(2), so that e log(2) takes nothing away from log(m) = 2
// artanh(s) = 2 (s + s^3/3 + s^5/5 + ...), where s = (m - 1) / (m + 1) is at most 0.172: eleven
// terms are enough.
func Log(x float64) float64 {
	subnormal := int64(0)
	if x < 0x1p-1022 {
		x *= 0x1p54
		subnormal = 54
	}
	// By the bits and not by a comparison, which no processor foresees: it would wait for
	// each logarithm before it begins the next.
	bits := int64(math.Float64bits(x))
	e := (bits - rootBits) >> fraction
	m := math.Float64frombits(uint64(bits - e<<fraction))
	e -= subnormal
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	series := float64(1.0 / 21)
	series = float64(series*z) + 1.0/19
	series = float64(series*z) + 1.0/17
	series = float64(series*z) + 1.0/15
	series = float64(series*z) + 1.0/13
	series = float64(series*z) + 1.0/11
	series = float64(series*z) + 1.0/9
	series = float64(series*z) + 1.0/7
	series = float64(series*z) + 1.0/5
	series = float64(series*z) + 1.0/3
	twice := s + s
	return float64(float64(e)*ln2) + (twice + float64(twice*float64(z*series)))
}

// FullLog is Log for any number: minus infinity for 0, NaN for negative numbers and NaN.
func FullLog(x float64) float64 {
	switch {
	case x > 0 && x <= math.MaxFloat64:
		return Log(x)
	case x == 0:
		return math.Inf(-1)
	case x > 0:
		return x
	}
	return math.NaN()
}

// From where on Exp is infinite, and 0.
const (
	expInf  = 709.78
	expZero = -745.14
)

// Exp returns the exponential of any number.
//
// x is n log(2) + r with r within log(2)/2 of 0, and exp(r) = 1 + r (1 + r/2 (1 + r/3 (1 + ...))):
// fourteen terms are enough. The power of two is multiplied in two steps, since it may be outside
// of the doubles where the result is not.
func Exp(x float64) float64 {
	switch {
	case x > expInf:
		return math.Inf(1)
	case x < expZero:
		return 0
	case x != x:
		return x
	}
	n := math.Floor(float64(x*perLn2) + 0.5)
	r := (x - float64(n*ln2High)) - float64(n*ln2Low)
	series := 1 + float64(float64(r*(1.0/14))*1)
	series = 1 + float64(float64(r*(1.0/13))*series)
	series = 1 + float64(float64(r*(1.0/12))*series)
	series = 1 + float64(float64(r*(1.0/11))*series)
	series = 1 + float64(float64(r*(1.0/10))*series)
	series = 1 + float64(float64(r*(1.0/9))*series)
	series = 1 + float64(float64(r*(1.0/8))*series)
	series = 1 + float64(float64(r*(1.0/7))*series)
	series = 1 + float64(float64(r*(1.0/6))*series)
	series = 1 + float64(float64(r*(1.0/5))*series)
	series = 1 + float64(float64(r*(1.0/4))*series)
	series = 1 + float64(float64(r*(1.0/3))*series)
	series = 1 + float64(float64(r*(1.0/2))*series)
	series = 1 + float64(r*series)
	half := int64(n) / 2
	return float64(series*power(int64(n)-half)) * power(half)
}

// power is 2^n of a normal double.
func power(n int64) float64 { return math.Float64frombits(uint64(1023+n) << fraction) }

// OneMinusExp returns 1 - exp(-x) for a number that is not negative, also where x is so small that
// exp(-x) is 1.
//
// x is n log(2) + r with r within log(2)/2 of 0. Then it is (1 - 2^-n) + 2^-n q, and q = 1 -
// exp(-r) = r (1 - r/2 (1 - r/3 (1 - ...))): fourteen terms are enough.
func OneMinusExp(x float64) float64 {
	if x >= 64 {
		return 1
	}
	n := int64(float64(x*perLn2) + 0.5)
	r := (x - float64(float64(n)*ln2High)) - float64(float64(n)*ln2Low)
	series := 1.0
	series = 1 - float64(float64(r*(1.0/14))*series)
	series = 1 - float64(float64(r*(1.0/13))*series)
	series = 1 - float64(float64(r*(1.0/12))*series)
	series = 1 - float64(float64(r*(1.0/11))*series)
	series = 1 - float64(float64(r*(1.0/10))*series)
	series = 1 - float64(float64(r*(1.0/9))*series)
	series = 1 - float64(float64(r*(1.0/8))*series)
	series = 1 - float64(float64(r*(1.0/7))*series)
	series = 1 - float64(float64(r*(1.0/6))*series)
	series = 1 - float64(float64(r*(1.0/5))*series)
	series = 1 - float64(float64(r*(1.0/4))*series)
	series = 1 - float64(float64(r*(1.0/3))*series)
	series = 1 - float64(float64(r*(1.0/2))*series)
	q := float64(r * series)
	scale := math.Float64frombits(uint64(1023-n) << fraction)
	return (1 - scale) + float64(scale*q)
}
