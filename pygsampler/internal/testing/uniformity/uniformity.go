// Package uniformity tests whether counts fit an unbiased sampler. It serves tests only. The large
// tests, over many seeds, are in tests/statistics.
package uniformity

import (
	"math"
	"testing"
)

// Plausible fails when chi-square statistic x with k degrees of freedom has a
// p-value below 1e-4 or above 1-1e-4: counts that fit too well are no sample
// either. All seeds are fixed, so a test that passes passes always.
func Plausible(t testing.TB, x float64, k int, format string, args ...any) {
	t.Helper()
	// Wilson and Hilferty: the cube root of chi-square over k is nearly normal.
	v := 2 / (9 * float64(k))
	z := (math.Cbrt(x/float64(k)) - (1 - v)) / math.Sqrt(v)
	if p := math.Erfc(z/math.Sqrt2) / 2; p < 1e-4 || p > 1-1e-4 {
		t.Errorf(format+": chi-square %.1f with %d degrees of freedom, p = %.2g", append(args, x, k, p)...)
	}
}

// Uniform returns Pearson's statistic of counts that are equally likely.
func Uniform(counts []float64) (x float64) {
	total := 0.0
	for _, c := range counts {
		total += c
	}
	each := total / float64(len(counts))
	for _, c := range counts {
		x += (c - each) * (c - each) / each
	}
	return x
}
