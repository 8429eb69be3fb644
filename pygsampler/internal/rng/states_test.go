package rng

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// Every length around those of a vector, by vectors of every width, and vertices of up to 48 bits.
func TestStatesAreThoseOfEach(t *testing.T) {
	for _, s := range []Stream{NewStream(1<<63|12345, 1<<24-1, 1<<40-1, 255, 5), NewStream(7, 0, 3, 0, 0), {}} {
		for n := range 70 {
			vertices, states, numbers := make([]uint64, n), make([]uint64, n), make([]uint64, n)
			for i := range vertices {
				vertices[i] = Mix(uint64(n*100+i)) >> (16 + i%40)
				states[i] = s.State(vertices[i])
				numbers[i] = math.Float64bits(Uniform(Draw(states[i], 0)))
			}
			for _, widest := range []int{64, 256, 512} {
				got := slices.Clone(vertices)
				if s.states(got, widest); !slices.Equal(got, states) {
					t.Fatalf("%d vertices, %d bits: states %x, want %x", n, widest, got, states)
				}
				got = slices.Clone(vertices)
				if s.uniforms(got, widest); !slices.Equal(got, numbers) {
					t.Fatalf("%d vertices, %d bits: numbers %x, want %x", n, widest, got, numbers)
				}
			}
		}
	}
}

func BenchmarkStates(b *testing.B) {
	vertices := make([]uint64, 512)
	for _, widest := range []int{64, 256, 512} {
		b.Run(fmt.Sprint(widest), func(b *testing.B) {
			for b.Loop() {
				NewStream(1, 2, 3, 4, 5).states(vertices, widest)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/vertex")
		})
	}
}
