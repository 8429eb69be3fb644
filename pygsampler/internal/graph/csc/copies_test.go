package csc

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Rows that ascend and rows that do not, of few and of many sources, against a look back from each edge.
func TestCopies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, sources := range []int{1, 3, 40, 1 << 20} {
		indptr, indices := []int64{0}, []int64{}
		for row := range 60 {
			of := make([]int64, row)
			for i := range of {
				of[i] = r.Int64N(int64(sources))
			}
			if row%2 == 0 {
				slices.Sort(of)
			}
			indices = append(indices, of...)
			indptr = append(indptr, int64(len(indices)))
		}
		g := &Relation{Indptr: Array{I64: indptr, Bits: 64}, Indices: Array{I64: indices, Bits: 64}, NumNodes: int64(max(sources, 60))}
		found, err := g.Copies()
		if err != nil {
			t.Fatal(err)
		}
		some := false
		out := func(p int64) bool { return p%3 == 0 }
		for row := range len(indptr) - 1 {
			for p := indptr[row]; p < indptr[row+1]; p++ {
				before, there := int64(0), false
				for q := indptr[row]; q < p; q++ {
					if indices[q] == indices[p] {
						before, there = p-q, there || !out(q)
					}
				}
				some = some || before > 0
				if found != nil && int64(found[p]) != before || found == nil && before > 0 {
					t.Fatalf("%d sources: edge %d: expected the last copy %d places before, got %v", sources, p, before, found)
				}
				if found.Is(p, nil) != (before > 0) || found.Is(p, out) != there {
					t.Fatalf("%d sources: edge %d: expected a copy %t and %t, got others", sources, p, before > 0, there)
				}
			}
		}
		if some != (found != nil) {
			t.Errorf("%d sources: expected an array where there are copies (%t)", sources, some)
		}
	}
}
