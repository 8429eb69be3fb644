package rng

import (
	"math"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
)

// Each batch's numbers are uniform, next to 0 as well, and a period leads from those of a stream to the next one's.
func TestGradual(t *testing.T) {
	const n, batches = 200_000, 5
	of := func(batch uint64) []float64 {
		g := NewGradual(3, 1, batch, batches, 2, Candidates)
		next, ok := g.Next()
		numbers := make([]float64, n)
		for v := range numbers {
			numbers[v] = Uniform(Draw(g.State(uint64(v)), 0))
			if ok {
				numbers[v] = g.Between(numbers[v], Uniform(Draw(next.State(uint64(v)), 0)))
			}
		}
		return numbers
	}
	plain := NewStream(3, 1, 1, 2, Candidates)
	for v, u := range of(batches)[:100] {
		if want := Uniform(Draw(plain.State(uint64(v)), 0)); u != want {
			t.Fatalf("vertex %d has %g in the first batch of a period, want %g", v, u, want)
		}
	}
	first := of(0)
	for j := uint64(0); j <= batches; j++ {
		numbers := of(j)
		var all, small [100]float64
		below, both := 0, 0.0
		for v, u := range numbers {
			if u <= 0 || u >= 1 {
				t.Fatalf("batch %d: %g", j, u)
			}
			all[int(u*100)]++
			if u < 0.01 {
				small[int(u*10000)]++
				below++
			}
			if u < 0.5 && first[v] < 0.5 {
				both++
			}
		}
		uniformity.Plausible(t, uniformity.Uniform(all[:]), 99, "batch %d", j)
		uniformity.Plausible(t, uniformity.Uniform(small[:]), 99, "batch %d below 0.01", j)
		// Two normal numbers of that correlation are both below 0.
		want := 0.5 - float64(j)/(4*batches)
		if off := both/n - want; math.Abs(off) > 5*math.Sqrt(want*(1-want)/n) {
			t.Errorf("batch %d: both below 1/2 of %g, want %g", j, both/n, want)
		}
	}
}
