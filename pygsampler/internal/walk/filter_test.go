package walk_test

import (
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/walktest"
	. "github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// The table of pairs changes no walk of node2vec: by any widths, p and q, with weights, on parallel edges,
// self loops and dead ends.
func TestPairs(t *testing.T) {
	const nodes = 200
	rows := randomRows(nodes, 11)
	// A vertex with many edges to one other, and back.
	for range 20 {
		rows[0], rows[1] = append(rows[0], 1), append(rows[1], 0)
	}
	weights := func(place int) float64 { return float64(place % 4) }
	seeds := make([]int64, 3*nodes)
	for i := range seeds {
		seeds[i] = int64(i % nodes)
	}
	for _, bits := range [][2]int{{32, 32}, {32, 64}, {64, 32}, {64, 64}} {
		for _, by := range []func(int) float64{nil, weights} {
			g := walktest.Graph(rows, nodes, bits[0], bits[1], false, by)
			for _, p := range []float64{.1, .5, 1, 4} {
				for _, q := range []float64{.25, 1, 2} {
					rule := Rule{Length: 12, P: p, Q: q, EdgeIDs: true, Restart: .1}
					r := Request{Rule: rule, Relation: g, Batch: request.Batch{Seeds: csctest.Array(seeds, 64), Seed: 5}, Lean: true}
					want := walks(t, r)
					r.Lean = false
					if got := walks(t, r); !reflect.DeepEqual(got, want) {
						t.Errorf("p %v, q %v, widths %v, weights %v: other walks by the table of pairs", p, q, bits, by != nil)
					}
				}
			}
		}
	}
}

// The first call makes the table, and the graph keeps it; a call that was stopped leaves nothing half done.
func TestPairsAreKept(t *testing.T) {
	const kept = "walk: pairs of nodes"
	g := walktest.Graph(randomRows(50, 51), 50, 32, 64, false, nil)
	r := Request{Rule: Rule{Length: 10, P: .5, Q: 2}, Relation: g, Batch: request.Batch{Seeds: csctest.Array([]int64{1, 2, 3}, 64)}, Lean: true}
	want := walks(t, r)
	if g.Kept.Get(kept) != nil {
		t.Fatal("made where it was asked not to be")
	}
	r.Lean = false
	var stop atomic.Bool
	stop.Store(true)
	if _, err := Sample(&r, walktest.Alone, &stop); err != request.ErrCancelled {
		t.Fatalf("a stopped call: expected %v, got %v", request.ErrCancelled, err)
	}
	if got := walks(t, r); !reflect.DeepEqual(got, want) {
		t.Error("other walks after a stopped call")
	}
	first := g.Kept.Get(kept)
	if first == nil {
		t.Fatal("nothing is kept")
	}
	walks(t, r)
	if g.Kept.Get(kept) != first {
		t.Error("made again")
	}
}
