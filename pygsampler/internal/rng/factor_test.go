package rng_test

import (
	"math"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Sums of factor times y over what is drawn are those of y over all edges that are not
// excluded, within four standard errors, whatever the weights: with replacement and
// without, with few choices and with so many that spare draws and sums make some of them.
func TestFactorsAreUnbiased(t *testing.T) {
	ramp, heavy := make([]float64, 60), make([]float64, 40)
	for i := range ramp {
		ramp[i] = float64(i + 1)
	}
	for i := range heavy {
		heavy[i] = 1
	}
	heavy[7] = 1e3
	for _, k := range []struct {
		name     string
		weights  []float64
		y        func(i int) float64
		fanout   int
		excluded []int64
		replace  bool
	}{
		{"three", []float64{1, 2, 3}, func(i int) float64 { return []float64{5, 1, 2}[i] }, 2, nil, false},
		{"three", []float64{1, 2, 3}, func(i int) float64 { return []float64{5, 1, 2}[i] }, 1, nil, false},
		{"three", []float64{1, 2, 3}, func(i int) float64 { return []float64{5, 1, 2}[i] }, 2, nil, true},
		{"subnormal", []float64{5e-324, 1e-323, 3e-323, 5e-324}, func(i int) float64 { return float64(3 - i) }, 2, nil, false},
		{"subnormal", []float64{5e-324, 1e-323, 3e-323, 5e-324}, func(i int) float64 { return float64(3 - i) }, 2, []int64{1}, false},
		{"one huge", heavy, func(i int) float64 { return float64(i%5 + 1) }, 4, nil, false},
		{"one huge", heavy, func(i int) float64 { return float64(i%5 + 1) }, 36, []int64{0, 3}, false},
		{"ramp", ramp, func(i int) float64 { return float64(i%7) - 2 }, 10, nil, false},
		{"ramp", ramp, func(i int) float64 { return float64(i%7) - 2 }, 50, []int64{5, 59}, false},
		{"ramp", ramp, func(i int) float64 { return float64(i%7) - 2 }, 10, []int64{5, 59}, true},
	} {
		var scratch weights.Scratch
		w := rng.Weights{Alias: make([]uint64, len(k.weights)), Sums: make([]uint64, len(k.weights))}
		scratch.BuildTables(k.weights, w.Alias, w.Sums)
		want := 0.0
		for i := range k.weights {
			want += k.y(i)
		}
		for _, p := range k.excluded {
			want -= k.y(int(p))
		}
		var c rng.Chooser
		const trials = 30_000
		stream := rng.NewStream(11, 0, 0, 0, rng.Neighbors)
		pos, factors := make([]int64, k.fanout), make([]float32, k.fanout)
		sum, squares := 0.0, 0.0
		for v := range uint64(trials) {
			state := stream.State(v)
			c.Weighted(pos, w, state, k.excluded, k.replace, int64(k.fanout), 0)
			c.Factors(factors, pos, w, state, k.excluded, k.replace, int64(k.fanout))
			x := 0.0
			for j, p := range pos {
				if factors[j] < 1 && !k.replace {
					t.Fatalf("%s: a factor of %g", k.name, factors[j])
				}
				x += float64(factors[j]) * k.y(int(p))
			}
			sum += x
			squares += x * x
		}
		mean := sum / trials
		if err := math.Sqrt((squares/trials - mean*mean) / trials); math.Abs(mean-want) > 4*err {
			t.Errorf("%s, %d of %d, replace %v: mean %.5g with a standard error of %.2g, want %.5g", k.name, k.fanout, len(k.weights), k.replace, mean, err, want)
		}
	}
}
