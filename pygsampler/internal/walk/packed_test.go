package walk_test

import (
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/walktest"
	. "github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// randomRows are lists of out-neighbours, with self loops, parallel edges and, every so many rows, none.
func randomRows(nodes, none int) [][]int64 {
	rows := make([][]int64, nodes)
	for v := range rows {
		for j := range 1 + v%5 {
			if v%none != none-1 {
				rows[v] = append(rows[v], int64(rng.Below(rng.Mix(uint64(v*8+j)), uint64(nodes))))
			}
		}
	}
	return rows
}

// Packed edges change no walk: by any widths, with edges and without, to dead ends and without any.
func TestPackedEdges(t *testing.T) {
	const nodes = 300
	seeds := make([]int64, 2*nodes)
	for i := range seeds {
		seeds[i] = int64(i % nodes)
	}
	for _, none := range []int{7, nodes + 1} {
		for _, bits := range [][2]int{{32, 32}, {32, 64}, {64, 32}, {64, 64}} {
			for _, withIDs := range []bool{false, true} {
				g := walktest.Graph(randomRows(nodes, none), nodes, bits[0], bits[1], withIDs, nil)
				for _, length := range []int64{0, 1, 30} {
					for _, rule := range []Rule{{Length: length}, {Length: length, EdgeIDs: true, PerSeed: 3}, {Length: length, Stop: .2}} {
						r := Request{Rule: rule, Relation: g, Batch: request.Batch{Seeds: csctest.Array(seeds, 64), Seed: 5}}
						want := walks(t, r)
						r.Pack = true
						if got := walks(t, r); !reflect.DeepEqual(got, want) {
							t.Errorf("%v, widths %v, ids %v, rows without edges every %d: other walks by packed edges", rule, bits, withIDs, none)
						}
					}
				}
			}
		}
	}
}

// The first call packs, and the graph keeps what it made; a call that was stopped leaves nothing half done.
func TestPackedEdgesAreKept(t *testing.T) {
	const kept = "walk: packed edges"
	g := walktest.Graph(randomRows(50, 51), 50, 32, 64, false, nil)
	r := Request{Rule: Rule{Length: 10}, Relation: g, Batch: request.Batch{Seeds: csctest.Array([]int64{1, 2, 3}, 64)}}
	want := walks(t, r)
	if g.Kept.Get(kept) != nil {
		t.Fatal("packed without being asked to")
	}
	r.Pack = true
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
		t.Error("packed again")
	}
}
