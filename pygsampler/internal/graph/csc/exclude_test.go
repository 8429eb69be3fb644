package csc_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// A random graph whose rows are often empty.
func randomGraph(r *rand.Rand, rows, edges int, bits int) *csc.Relation {
	indptr := []int64{0}
	for v := range rows {
		at := indptr[v]
		if r.IntN(3) > 0 {
			at = min(at+r.Int64N(int64(2*edges/rows)+1), int64(edges))
		}
		indptr = append(indptr, at)
	}
	indices := make([]int64, indptr[rows])
	for i := range indices {
		indices[i] = r.Int64N(int64(rows))
	}
	return &csc.Relation{Indptr: csctest.Array(indptr, bits), Indices: csctest.Array(indices, bits), NumNodes: int64(rows) + 3}
}

// Exclude against a scan of all edges, where ids are positions, a permutation,
// arbitrary, and arbitrary with many edges to an id.
func TestExclude(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 60 {
		bits := 32 + 32*(round%2)
		g := randomGraph(r, 1+r.IntN(40), 100, bits)
		n := g.NumEdges()
		ids := make([]int64, n)
		for i, p := range r.Perm(int(n)) {
			ids[i] = int64(p)
		}
		kind := []string{"positions", "dense", "sparse", "negative", "repeated"}[round%5]
		for i := range ids {
			switch kind {
			case "positions":
				ids[i] = int64(i)
			case "sparse":
				ids[i] = ids[i]*1000 + 7
			case "negative":
				ids[i] = -ids[i]
			case "repeated":
				ids[i] /= 4
			}
		}
		if kind != "positions" {
			g.EdgeIDs = csctest.Array(ids, bits)
		}
		var exclude []int64
		for _, id := range ids {
			if r.IntN(3) == 0 {
				exclude = append(exclude, id, id)
			}
		}
		r.Shuffle(len(exclude), func(i, j int) { exclude[i], exclude[j] = exclude[j], exclude[i] })
		x, err := g.Exclude(exclude)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		for v := range g.NumRows() {
			var want, kept []int64
			for p := g.Indptr.Element(v); p < g.Indptr.Element(v+1); p++ {
				if slices.Contains(exclude, ids[p]) {
					want = append(want, p-g.Indptr.Element(v))
				} else {
					kept = append(kept, p-g.Indptr.Element(v))
				}
			}
			if !slices.Equal(x.Offsets(v), want) {
				t.Fatalf("%s: row %d: got %v, want %v", kind, v, x.Offsets(v), want)
			}
			for i, k := range kept {
				if got := csc.Skip(x.Offsets(v), int64(i)); got != k {
					t.Fatalf("%s: kept edge %d of row %d: got %d, want %d", kind, i, v, got, k)
				}
			}
		}
		for v := g.NumRows(); v < g.NumNodes; v++ {
			if x.Offsets(v) != nil {
				t.Fatalf("vertex %d has no edges", v)
			}
		}
	}
}

func TestExcludeErrors(t *testing.T) {
	graph := func(ids csc.Array) *csc.Relation {
		return &csc.Relation{Indptr: csctest.Array([]int64{0, 2, 3}, 64), Indices: csctest.Array([]int64{0, 1, 0}, 64), EdgeIDs: ids, NumNodes: 2}
	}
	plain := graph(csc.Array{})
	for _, g := range []*csc.Relation{plain, graph(csctest.Array([]int64{2, 0, 1}, 64)), graph(csctest.Array([]int64{10, -3, 10}, 32))} {
		known := int64(0)
		if g.EdgeIDs.Bits == 32 {
			known = 10
		}
		for _, bad := range []int64{-1, 3, 1 << 40, -1 << 63} {
			_, err := g.Exclude([]int64{known, bad})
			var value *csc.ValueError
			want := fmt.Sprintf("exclude[1]: expected the id of an edge of the graph, got %d", bad)
			if !errors.As(err, &value) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
	if x, err := plain.Exclude(nil); x != nil || err != nil || x.Offsets(0) != nil {
		t.Error("nothing excludes something")
	}
	empty := &csc.Relation{Indptr: csctest.Array([]int64{0}, 32), Indices: csctest.Array(nil, 32), NumNodes: 0}
	if _, err := empty.Exclude([]int64{0}); err == nil {
		t.Error("an edge of an empty graph")
	}
}

// Positions above 2^31 find their rows, without a byte for each edge.
func TestExcludeLarge(t *testing.T) {
	const n = 2_200_000_000
	g := &csc.Relation{
		Indptr:  csctest.Array([]int64{0, 1<<31 + 100, 1<<31 + 100, 1<<31 + 103, n}, 64),
		Indices: csc.Array{Bits: 32, I32: csctest.Sparse[int32](t, n)}, NumNodes: 4,
	}
	x, err := g.Exclude([]int64{n - 1, 1<<31 + 101, 5, 1<<31 + 99, 1<<31 + 103})
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range [][]int64{{5, 1<<31 + 99}, nil, {1}, {0, n - 1 - (1<<31 + 103)}} {
		if !slices.Equal(x.Offsets(int64(v)), want) {
			t.Errorf("row %d: got %v, want %v", v, x.Offsets(int64(v)), want)
		}
	}
	if got := csc.Skip(x.Offsets(0), 1<<31+97); got != 1<<31+98 {
		t.Errorf("got %d", got)
	}
	if got := csc.Skip(x.Offsets(0), 1<<31+98); got != 1<<31+100 {
		t.Errorf("got %d", got)
	}
}

// The way from id to position is made once, by whoever comes first.
func TestExcludeAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	g := randomGraph(r, 200, 5000, 64)
	ids := make([]int64, g.NumEdges())
	for i, p := range r.Perm(len(ids)) {
		ids[i] = int64(p)
	}
	g.EdgeIDs = csctest.Array(ids, 64)
	want, err := (&csc.Relation{Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, NumNodes: g.NumNodes}).Exclude(ids[:50])
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := g.Exclude(ids[:50])
			if err != nil {
				t.Error(err)
			}
			for v := range g.NumNodes {
				if !slices.Equal(got.Offsets(v), want.Offsets(v)) {
					t.Errorf("row %d: got %v, want %v", v, got.Offsets(v), want.Offsets(v))
				}
			}
		})
	}
	wg.Wait()
}
