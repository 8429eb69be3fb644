package access

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// Heat, edge by edge.
func slow(g *csc.Relation, visits []int64, perUnit int64, units int) []float64 {
	heat := make([]float64, units)
	for row := range g.NumRows() {
		lo, hi := g.Indptr.Element(row), g.Indptr.Element(row+1)
		for e := lo; e < hi; e++ {
			read := 1.0
			if hi-lo > usualFanout {
				read = usualFanout / float64(hi-lo)
			}
			heat[e/perUnit] += (1 - math.Exp(-16384*float64(visits[row/max(g.Kinds, 1)]+1)/float64(g.NumEdges()))) * read
		}
	}
	return heat
}

func TestHeat(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, kinds := range []int64{0, 3} {
		for _, perUnit := range []int64{1, 7, 64, 100000} {
			const nodes = 60
			indptr := []int64{0}
			for range nodes * max(kinds, 1) {
				indptr = append(indptr, indptr[len(indptr)-1]+random.Int64N(30)*random.Int64N(2))
			}
			edges := indptr[len(indptr)-1]
			visits := make([]int64, nodes)
			for v := range visits {
				visits[v] = random.Int64N(100)
			}
			g := &csc.Relation{Indptr: csc.Array{I64: indptr, Bits: 64}, Indices: csc.Array{I64: make([]int64, edges), Bits: 64}, NumNodes: nodes, Kinds: kinds}
			units := int((edges + perUnit - 1) / perUnit)
			got, want := make([]float64, units), slow(g, visits, perUnit, units)
			got[0] = math.NaN() // of before
			Heat(g, visits, perUnit, got)
			for u := range want {
				if math.Abs(got[u]-want[u]) > 1e-9*want[u] {
					t.Fatalf("kinds %d, %d edges a unit, unit %d: expected %g, got %g", kinds, perUnit, u, want[u], got[u])
				}
			}
		}
	}
}

func TestRowHeat(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	visits := make([]int64, 41)
	for v := range visits {
		visits[v] = random.Int64N(9)
	}
	for _, row := range []int64{1, 12, 100} {
		for _, perUnit := range []int64{1, 16, 37, 5000} {
			units := (row*int64(len(visits)) + perUnit - 1) / perUnit
			got, want := make([]float64, units), make([]float64, units)
			for at := range row * int64(len(visits)) {
				want[at/perUnit] += 1 - math.Exp(-16384*float64(visits[at/row]+1)/1e6)
			}
			RowHeat(&csc.Relation{Indices: csc.Array{I64: make([]int64, 1e6), Bits: 64}}, visits, row, perUnit, got)
			for u := range want {
				if math.Abs(got[u]-want[u]) > 1e-9*want[u] {
					t.Fatalf("rows of %d, units of %d, unit %d: expected %g, got %g", row, perUnit, u, want[u], got[u])
				}
			}
		}
	}
}
