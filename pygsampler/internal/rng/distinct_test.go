package rng

import (
	"fmt"
	"slices"
	"testing"
)

// Rows of every degree around the fanout and of degrees beyond 32 bits, as many as there are around those of a vector and
// of a round, by vectors of every width: as Distinct has each.
func TestDistinctRowsAreThoseOfEach(t *testing.T) {
	var c Chooser
	for fanout := int64(1); fanout <= DistinctMost; fanout++ {
		for _, n := range []int{0, 1, 7, 8, 9, 127, 128, 129, 300} {
			starts, degrees := make([]int64, n), make([]int64, n)
			states, want := []uint64{}, []int64{}
			for i := range n {
				x := Mix(uint64(i) + uint64(fanout)<<20 + uint64(n)<<40)
				starts[i], degrees[i] = int64(x>>24), int64(x%uint64(3*fanout))
				if x>>32%4 == 0 {
					degrees[i] += int64(x >> 33 % 1000)
				}
				if x>>20%64 == 0 && i >= 128 {
					degrees[i] += 1 << 33
				}
				row := make([]int64, min(degrees[i], fanout))
				for j := range row {
					row[j] = int64(j)
				}
				if degrees[i] > fanout {
					states = append(states, Mix(x))
					c.Distinct(row, Mix(x), degrees[i])
				}
				for j := range row {
					row[j] += starts[i]
				}
				want = append(want, row...)
			}
			for _, widest := range []int{64, 512} {
				got := make([]int64, len(want)+1)
				got[len(want)] = -7
				distinctRows(got[:len(want)], starts, degrees, states, fanout, widest)
				if !slices.Equal(got[:len(want)], want) || got[len(want)] != -7 {
					t.Fatalf("fanout %d, %d rows, %d bits: got %d, want %d", fanout, n, widest, got, want)
				}
			}
		}
	}
}

func BenchmarkDistinctRows(b *testing.B) {
	const n, fanout = 128, 10
	starts, degrees, states := make([]int64, n), make([]int64, n), make([]uint64, n)
	to := make([]int64, n*fanout)
	for i := range states {
		states[i] = Mix(uint64(i))
		degrees[i] = fanout + 1 + int64(states[i]%100)
	}
	for _, widest := range []int{0, 64, 512} {
		b.Run(fmt.Sprint(widest), func(b *testing.B) {
			var c Chooser
			for b.Loop() {
				if widest > 0 {
					distinctRows(to, starts, degrees, states, fanout, widest)
					continue
				}
				for i := range states {
					c.Distinct(to[i*fanout:(i+1)*fanout], states[i], degrees[i])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
