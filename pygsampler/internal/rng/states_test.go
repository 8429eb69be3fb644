package rng

import "testing"

// Every length around those of a vector, and vertices of up to 48 bits.
func TestStatesAreThoseOfEach(t *testing.T) {
	for _, s := range []Stream{NewStream(1<<63|12345, 1<<24-1, 1<<40-1, 255, 5), NewStream(7, 0, 3, 0, 0), {}} {
		for n := range 70 {
			got, want := make([]uint64, n), make([]uint64, n)
			for i := range got {
				got[i] = Mix(uint64(n*100+i)) >> (16 + i%40)
				want[i] = s.State(got[i])
			}
			s.States(got)
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("%d vertices: state %d is %x, want %x", n, i, got[i], want[i])
				}
			}
		}
	}
}

func BenchmarkStates(b *testing.B) {
	vertices := make([]uint64, 512)
	for b.Loop() {
		NewStream(1, 2, 3, 4, 5).States(vertices)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/vertex")
}
