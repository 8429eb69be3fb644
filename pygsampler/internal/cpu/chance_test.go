package cpu

import (
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/chance"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
)

// alike is a graph of n vertices that all have the same in-neighbours, the first
// degree vertices.
func alike(n, degree int64) *csc.Graph {
	indptr, indices := make([]int64, n+1), make([]int64, n*degree)
	for v := range n {
		indptr[v+1] = (v + 1) * degree
		for j := range degree {
			indices[v*degree+j] = j
		}
	}
	return &csc.Graph{Indptr: array(indptr, 64), Indices: array(indices, 64), NumNodes: n}
}

// Around excluded edges the rest is sampled as if the graph had nothing else.
func TestExcludedChoicesAreUniform(t *testing.T) {
	const n, degree = 12000, 9
	g := alike(n, degree)
	var ids []int64
	for v := range int64(n) {
		ids = append(ids, v*degree, v*degree+4, v*degree+8)
	}
	x, err := g.Exclude(ids)
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Graph: g, Fanouts: []int64{2}, Seeds: array(upTo(n, n-1), 64), Exclude: x}
	counts := map[int64]float64{}
	b := sample(t, &r, idle(0)).Blocks[0]
	for i := range int64(n) {
		row := b.EdgeID[b.Indptr[i]:b.Indptr[i+1]]
		if len(row) != 2 {
			t.Fatalf("row %d has %d edges", i, len(row))
		}
		counts[1<<(row[0]%degree)|1<<(row[1]%degree)]++
	}
	var flat []float64
	for key, c := range counts {
		if key&(1|1<<4|1<<8) != 0 {
			t.Fatalf("choice %b holds an excluded edge", key)
		}
		flat = append(flat, c)
	}
	if len(flat) != 15 {
		t.Fatalf("%d of 15 pairs", len(flat))
	}
	chance.Plausible(t, chance.Uniform(flat), 14, "pairs of six")
}
