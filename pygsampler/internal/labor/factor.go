// Package labor is the common part of both implementations of LABOR: M. F. Balin, U. V. Catalyurek,
// "Layer-Neighbor Sampling: Defusing Neighborhood Explosion in GNNs", NeurIPS 2023.
package labor

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/real"
)

// Factor returns the factor c of a column's chances min(1, c q), by which a mean over the values a
// has the same variance as one over most edges that are drawn uniformly without replacement:
// docs/developer/operator-rules.md. Its steps rise to the root of a function that is convex in 1/c, and
// end after at most as many steps as there are edges.
//
// CUDA twin: LaborSearch of kernels/program/labor.cuh.
func Factor(a, q []float64, most int64) float64 {
	candidates, least := int64(0), math.Inf(1)
	for i := range a {
		if a[i] > 0 && q[i] > 0 {
			candidates++
			least = min(least, q[i])
		}
	}
	switch {
	case candidates == 0:
		return 0
	case most < 0 || candidates <= most:
		return 1 / least
	}
	d := sum(a, q, 0, func(a, _ float64) float64 { return a })
	goal := float64(float64(d*d) * float64(1/float64(most)-1/float64(candidates)))
	for c := 0.0; ; {
		next := sum(a, q, c, func(a, q float64) float64 { return float64(a*a) / q }) /
			float64(goal+sum(a, q, c, func(a, _ float64) float64 { return a * a }))
		if !(next > c) {
			return c
		}
		c = next
	}
}

// sum adds a term up over the candidates with c q < 1.
func sum(a, q []float64, c float64, term func(a, q float64) float64) float64 {
	var of real.Sum
	var part [32]float64
	for lo := 0; lo < len(a); lo += len(part) {
		m := min(len(part), len(a)-lo)
		for i := range part[:m] {
			part[i] = 0
			if a, q := a[lo+i], q[lo+i]; a > 0 && q > 0 && c*q < 1 {
				part[i] = term(a, q)
			}
		}
		of.Take(part[:m])
	}
	return of.End()
}
