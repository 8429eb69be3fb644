package run

import (
	"math/rand/v2"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// inOrder is the sum of values by its definition: docs/developer/operator-rules.md.
func inOrder(values []float64) (total float64) {
	for len(values) > 0 {
		some := values[:min(1024, len(values))]
		values = values[len(some):]
		few := 0.0
		for len(some) > 0 {
			var part [32]float64
			some = some[copy(part[:], some):]
			for half := 16; half > 0; half /= 2 {
				for i := range half {
					part[i] += part[i+half]
				}
			}
			few += part[0]
		}
		total += few
	}
	return total
}

func TestSumsInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var r running
	r.begin(program.Sum)
	for _, n := range []int{0, 1, 31, 32, 33, 1023, 1024, 1025, 2047, 2048, 5003} {
		values := make([]float64, n)
		for i := range values {
			values[i] = random.ExpFloat64()
		}
		// Sums in parts of any size, and one column after the other.
		for range 3 {
			for left := values; len(left) > 0; {
				k := 1 + random.IntN(len(left))
				r.take(left[:k])
				left = left[k:]
			}
			if got, want := r.end(), inOrder(values); got != want {
				t.Fatalf("%d values: got %v, want %v", n, got, want)
			}
		}
	}
}
