package cpu

import (
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
)

// Around excluded edges the rest is sampled as if the graph had nothing else.
func TestExcludedChoicesAreUniform(t *testing.T) {
	const n, degree = 12000, 9
	g := csctest.Graph(slices.Repeat([][]int64{upTo(degree, degree-1)}, n), n, 64, 64, false)
	var ids []int64
	for v := range int64(n) {
		ids = append(ids, v*degree, v*degree+4, v*degree+8)
	}
	x, err := g.Exclude(ids)
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Relation: g, Exclude: x, Request: request.Request{Hops: request.Hops{Fanouts: []int64{2}}, Batch: request.Batch{Seeds: csctest.Array(upTo(n, n-1), 64)}}}
	counts := map[int64]float64{}
	b := sample(t, &r, idle(0)).Blocks[0]
	for i := range int64(n) {
		row := b.EdgeIDs[b.Indptr[i]:b.Indptr[i+1]]
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
	uniformity.Plausible(t, uniformity.Uniform(flat), 14, "pairs of six")
}
