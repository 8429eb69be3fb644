package request

import (
	"errors"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// For every small degree and fanout, a row gives as many edges as docs/developer/draws.md says,
// and the guess for rows of one degree is exact.
func TestRule(t *testing.T) {
	for degree := range int64(12) {
		for fanout := int64(-1); fanout < 14; fanout++ {
			for _, replace := range []bool{false, true} {
				r := Rule{fanout, replace}
				want, whole := degree, true
				switch {
				case degree == 0 || fanout == -1: // nothing to draw from; all
				case replace:
					want, whole = fanout, false
				case degree > fanout:
					want, whole = fanout, false
				}
				if r.Take(degree) != want || r.TakesAll(degree) != whole {
					t.Errorf("%+v of %d edges: %d, whole %v, want %d, %v", r, degree, r.Take(degree), r.TakesAll(degree), want, whole)
				}
				if mean := r.Mean(float64(degree)); mean != float64(want) {
					t.Errorf("%+v of %d edges: %g in the mean, want %d", r, degree, mean, want)
				}
				if most, bounded := r.Most(); bounded != (fanout >= 0) || bounded && want > most {
					t.Errorf("%+v of %d edges: %d, at most %d, %v", r, degree, want, most, bounded)
				}
				// A whole row needs no draw, the others' draws are of its edges.
				if !whole && !replace && want > 0 {
					row := make([]int64, want)
					new(rng.Chooser).Distinct(row, 1, degree)
					if slices.Max(row) >= degree {
						t.Errorf("%+v of %d edges: %v", r, degree, row)
					}
				}
			}
		}
	}
}

// Hop by hop, and never more rows than the graph has.
func TestExpect(t *testing.T) {
	r := Request{Hops: Hops{Fanouts: []int64{-1, 2, 10}}}
	var got [][2]float64
	vertices := r.Expect(3, 20, 4, func(rows, edges float64) { got = append(got, [2]float64{rows, edges}) })
	if want := [][2]float64{{3, 12}, {15, 30}, {20, 80}}; !slices.Equal(got, want) || vertices != 20 {
		t.Errorf("got %v and %v vertices, want %v and 20", got, vertices, want)
	}
	if n := testing.AllocsPerRun(100, func() { r.Expect(3, 20, 4, func(float64, float64) {}) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A tree and a vertex fit a key, or the error says how many seeds would.
func TestTreeShift(t *testing.T) {
	for _, k := range []struct{ nodes, seeds, shift int64 }{{0, 0, 0}, {1, 1 << 48, 0}, {5, 1 << 45, 3}, {1 << 48, 1, 48}} {
		if shift, err := TreeShift(k.nodes, k.seeds); int64(shift) != k.shift || err != nil {
			t.Errorf("%+v: %d, %v", k, shift, err)
		}
	}
	for _, k := range []struct{ nodes, seeds int64 }{{1, 1<<48 + 1}, {5, 1<<45 + 1}, {1 << 48, 2}} {
		if _, err := TreeShift(k.nodes, k.seeds); !errors.Is(err, ErrValue) {
			t.Errorf("%+v: %v", k, err)
		}
	}
}
