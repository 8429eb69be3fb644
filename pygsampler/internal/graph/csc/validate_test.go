package csc_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

func TestValidate(t *testing.T) {
	for _, bits := range []int{32, 64} {
		for _, idBits := range []int{32, 64} {
			graph := func(numNodes int64, indptr, indices []int64) *csc.Relation {
				return &csc.Relation{Indptr: csctest.Array(indptr, bits), Indices: csctest.Array(indices, idBits), NumNodes: numNodes}
			}
			split := func(g *csc.Relation, kinds int64) *csc.Relation {
				g.Kinds = kinds
				return g
			}
			ids := graph(2, []int64{0, 1}, []int64{1})
			ids.EdgeIDs = csctest.Array([]int64{1, 2}, idBits)
			for _, k := range []struct {
				graph *csc.Relation
				want  string
			}{
				{graph(0, []int64{0}, nil), ""},
				{graph(7, []int64{0}, nil), ""},
				{graph(3, []int64{0, 2, 2, 3}, []int64{2, 2, 0}), ""},
				{graph(9, []int64{0, 2, 2, 3}, []int64{8, 2, 0}), ""},
				{split(graph(2, []int64{0, 0, 1, 1, 1}, []int64{1}), 2), ""},
				{graph(0, nil, nil), "indptr: expected at least 1 element, got 0"},
				{graph(1, []int64{0, 1, 1}, []int64{0}), "num_nodes: expected at least 2 (len(indptr) - 1), got 1"},
				{graph(1<<48+1, []int64{0}, nil), "num_nodes: expected at most 2^48, got 281474976710657"},
				{split(graph(2, []int64{0, 1, 1}, []int64{0}), 2), "indptr: expected 2 rows for each of 2 nodes, got 2 rows"},
				{split(graph(1, []int64{0, 1, 1, 1}, []int64{0}), 2), "indptr: expected 2 rows for each of 1 nodes, got 3 rows"},
				{split(graph(1, []int64{0, 1}, []int64{0}), csc.MaxKinds+1), "kinds: expected at most 32768 types, got 32769"},
				{split(graph(1, []int64{0, 1}, []int64{0}), -1), "kinds: expected at most 32768 types, got -1"},
				{split(graph(2, []int64{0, 0, 1, 1, 1}, []int64{2}), 2), "indices[0]: expected an id in [0, 2), got 2"},
				{graph(2, []int64{1, 1, 1}, []int64{0}), "indptr[0]: expected 0, got 1"},
				{graph(2, []int64{-1, 1, 1}, []int64{0}), "indptr[0]: expected 0, got -1"},
				{graph(2, []int64{0, 1, 2}, []int64{0}), "indptr[2]: expected 1 (len(indices)), got 2"},
				{graph(2, []int64{0, 0, 0}, []int64{0}), "indptr[2]: expected 1 (len(indices)), got 0"},
				{graph(3, []int64{0, 2, 1, 3}, []int64{0, 0, 0}), "indptr[2]: expected at least 2 (indptr[1]), got 1"},
				{graph(4, []int64{0, 5, 4, 3, 3}, []int64{0, 0, 0}), "indptr[2]: expected at least 5 (indptr[1]), got 4"},
				{graph(2, []int64{0, 1, 3}, []int64{0, 2, -1}), "indices[1]: expected an id in [0, 2), got 2"},
				{graph(2, []int64{0, 1, 3}, []int64{0, 1, -1}), "indices[2]: expected an id in [0, 2), got -1"},
				{graph(0, []int64{0}, []int64{}), ""},
				{ids, "edge_ids: expected 1 elements (len(indices)), got 2"},
			} {
				err := k.graph.Validate()
				var value *csc.ValueError
				switch {
				case k.want == "" && err != nil:
					t.Errorf("%d/%d bits: %v", bits, idBits, err)
				case k.want != "" && (err == nil || err.Error() != k.want || !errors.As(err, &value)):
					t.Errorf("%d/%d bits: got %v, want %s", bits, idBits, err, k.want)
				}
			}
		}
	}
	narrow := &csc.Relation{Indptr: csctest.Array([]int64{0}, 64), Indices: csctest.Array(nil, 32), NumNodes: 1<<31 + 1}
	if err := narrow.Validate(); err == nil || err.Error() != "num_nodes: expected at most 2^31 with int32 ids, got 2147483649" {
		t.Error(err)
	}
}

// Above 65536 elements the check runs on all cores; the first offender is named
// wherever it stands and however many follow.
func TestValidateNamesTheFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(5)) // as many parts, however few cores
	const n = 300_000
	indptr, indices := make([]int64, n+1), make([]int64, n)
	for i := range indptr {
		indptr[i] = int64(i)
	}
	g := &csc.Relation{Indptr: csctest.Array(indptr, 64), Indices: csctest.Array(indices, 64), NumNodes: n}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{1, 65535, 65536, 149_999, 150_000, 150_001, n - 1} {
		bad := &csc.Relation{Indptr: g.Indptr, Indices: csctest.Array(indices, 64), NumNodes: n}
		for _, i := range []int{at, min(at+70_000, n-1), n - 1} {
			bad.Indices.I64[i] = n
		}
		want := fmt.Sprintf("indices[%d]: expected an id in [0, 300000), got 300000", at)
		if err := bad.Validate(); err == nil || err.Error() != want {
			t.Errorf("id at %d: %v", at, err)
		}
		bad.Indices = g.Indices
		bad.Indptr = csctest.Array(indptr, 64)
		bad.Indptr.I64[at] = int64(at) + 2 // the next one is below it
		want = fmt.Sprintf("indptr[%d]: expected at least %d (indptr[%d]), got %d", at+1, at+2, at, at+1)
		if err := bad.Validate(); err == nil || err.Error() != want {
			t.Errorf("offset at %d: got %v, want %s", at, err, want)
		}
	}
}

// The parts of Parallel cover a range exactly once.
func TestParallel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(5)) // as many parts, however few cores
	for _, k := range [][2]int64{{0, 0}, {3, 3}, {5, 2}, {0, 1}, {0, 65535}, {0, 65536}, {7, 1 << 20}} {
		var mu sync.Mutex
		var parts [][2]int64
		csc.Parallel(k[0], k[1], func(lo, hi int64) {
			mu.Lock()
			defer mu.Unlock()
			parts = append(parts, [2]int64{lo, hi})
		})
		slices.SortFunc(parts, func(a, b [2]int64) int { return int(a[0] - b[0]) })
		at := k[0]
		for _, p := range parts {
			if p[0] != at || p[1] < p[0] {
				t.Fatalf("[%d, %d): parts %v", k[0], k[1], parts)
			}
			at = p[1]
		}
		if at != max(k[0], k[1]) {
			t.Fatalf("[%d, %d): parts %v", k[0], k[1], parts)
		}
	}
}
