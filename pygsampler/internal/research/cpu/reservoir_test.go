package cpu

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
)

// lawOf is the exact chance of every reservoir of n of degree positions, by going through
// all draws.
func lawOf(degree, n int) map[string]float64 {
	law := map[string]float64{}
	row := make([]int64, n)
	for j := range row {
		row[j] = int64(j)
	}
	var draw func(row []int64, i int, p float64)
	draw = func(row []int64, i int, p float64) {
		if i == degree {
			law[fmt.Sprint(row)] += p
			return
		}
		each := p / float64(i+1)
		for slot := range row {
			next := slices.Clone(row)
			next[slot] = int64(i)
			draw(next, i+1, each)
		}
		draw(row, i+1, p-each*float64(n))
	}
	draw(row, n, 1)
	return law
}

// Every reservoir of a short row comes as often as its exact chance says, and so does every
// subset, all of which are equally likely.
func TestReservoirsFollowTheirLaw(t *testing.T) {
	for degree := 2; degree <= 7; degree++ {
		for n := 1; n < degree; n++ {
			law := lawOf(degree, n)
			found, subsets := map[string]float64{}, map[string]float64{}
			stream, pos := rng.NewStream(7, 1, 2, 3, rng.Reservoirs), make([]int64, n)
			trials := 400 * len(law)
			for v := range uint64(trials) {
				Reservoir(pos, stream.State(v), int64(degree))
				found[fmt.Sprint(pos)]++
				sorted := slices.Clone(pos)
				slices.Sort(sorted)
				subsets[fmt.Sprint(sorted)]++
			}
			x := 0.0
			for row, p := range law {
				want := p * float64(trials)
				x += (found[row] - want) * (found[row] - want) / want
				delete(found, row)
			}
			if len(found) > 0 {
				t.Errorf("%d of %d: %v cannot be", n, degree, found)
			}
			if len(law) > 1 {
				uniformity.Plausible(t, x, len(law)-1, "reservoirs, %d of %d", n, degree)
			}
			var counts []float64
			all := 1
			for i := range n {
				all = all * (degree - i) / (i + 1)
			}
			for _, count := range subsets {
				counts = append(counts, count)
			}
			if len(counts) != all {
				t.Errorf("%d of %d: %d subsets, want %d", n, degree, len(counts), all)
			}
			uniformity.Plausible(t, uniformity.Uniform(counts), all-1, "subsets, %d of %d", n, degree)
		}
	}
}

// Positions are distinct and within the row, also of long ones.
func TestReservoirIsDistinct(t *testing.T) {
	stream := rng.NewStream(3, 0, 0, 0, rng.Reservoirs)
	for _, k := range []struct {
		degree int64
		n      int
	}{{2, 1}, {33, 32}, {70, 40}, {5000, 17}, {3001, 3000}} {
		pos := make([]int64, k.n)
		for v := range uint64(20) {
			Reservoir(pos, stream.State(v), k.degree)
			sorted := slices.Sorted(slices.Values(pos))
			if len(slices.Compact(sorted)) != k.n || sorted[0] < 0 || slices.Max(pos) >= k.degree {
				t.Fatalf("%d of %d: %v", k.n, k.degree, pos)
			}
		}
	}
	pos := make([]int64, 8)
	if n := testing.AllocsPerRun(100, func() { Reservoir(pos, 1, 1000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
