package bridge

import (
	"math"
	"runtime"
	"testing"
)

// deriveStart is DeriveStart with its words.
func deriveStart(graph int64, kind, name, dtype string, words ...int64) (int64, error) {
	defer runtime.KeepAlive(words)
	return DeriveStart(graph, kind, name, dtype, address(words))
}

// The nodes around nodes of a ring and the edges among them are found; wrong arguments are refused.
func TestAroundVerticesOfARing(t *testing.T) {
	r := newRing(t, 100)
	roots, trees := []int64{5, 7}, []int64{0, 1}
	at, of := address(roots), address(trees)
	half, small := int64(math.Float64bits(.5)), int64(math.Float64bits(1e-4))
	job, err := deriveStart(r.handle, "pagerank", "", "", at, 2, 64, 3, half, small, 0)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := DeriveTake(job)
	if err != nil {
		t.Fatal(err)
	}
	// The places where each root's nodes begin, and the nodes, the root first.
	if got := view(view(mem, 2)[1], 9); got[1] != 3 || got[2] != 6 || got[3] != 5 || got[6] != 7 {
		t.Errorf("got %v", got)
	}
	mem, err = InducedEdges(r.handle, at, of, 2, 64, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := view(view(mem, 2)[1], 3); got[2] != 0 {
		t.Errorf("expected no edges between two trees, got %v", got)
	}

	_, err = deriveStart(-1, "pagerank", "", "", at, 2, 64, 3, half, small, 0)
	fails(t, err, "ClosedError: graph: expected an open one, got a closed one")
	_, err = deriveStart(r.handle, "pagerank", "", "", at, 2, 16, 3, half, small, 0)
	fails(t, err, "TypeError: roots: expected at least 0 of 32 or 64 bits, got 2 of 16")
	_, err = deriveStart(r.handle, "pagerank", "", "", at+1, 1, 64, 3, half, small, 0)
	fails(t, err, "")
	_, err = deriveStart(r.handle, "ranks", "", "", 1)
	fails(t, err, "")
	_, err = DeriveStart(r.handle, "negatives", "", "", 0)
	fails(t, err, `ValueError: derivation: expected a known kind and an address, got "negatives" and 0x0`)
	_, err = InducedEdges(-1, at, of, 2, 64, 64)
	fails(t, err, "ClosedError: graph: expected an open one, got a closed one")
	_, err = InducedEdges(r.handle, at, of, -1, 64, 64)
	fails(t, err, "TypeError: nodes: expected at least 0 of 32 or 64 bits, got -1 of 64, trees of 64")
	roots[0] = 100
	_, err = InducedEdges(r.handle, at, of, 2, 64, 64)
	fails(t, err, "IndexError: nodes: expected ids below 100, got 100")
}
