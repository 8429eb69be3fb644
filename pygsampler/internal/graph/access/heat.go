// Package access estimates how often batches read each edge of a graph, or each feature row
// of its nodes, for callers that place the most read ones in faster memory.
package access

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// What is taken for usual where nobody knows what will be sampled: a visit of a row reads so many of its edges at
// most, and a hop meets so many neighbours, of which each vertex is visited once.
const (
	usualFanout   = 10
	usualFrontier = 1 << 14
)

// visited is the chance that a hop visits a vertex with that many out-edges of so many in all. One more, for seeds.
func visited(out, edges int64) float64 {
	return -math.Expm1(-usualFrontier * float64(out+1) / float64(max(edges, 1)))
}

// Heat writes how often edges are read, to compare runs of them with each other, each of perUnit edges but the
// last one: a row by the chance that its vertex is among the neighbours of a hop, and of its edges up to usualFanout,
// each as likely as the others. degrees are the out-degrees of all vertices.
func Heat(g *csc.Relation, degrees []int64, perUnit int64, heat []float64) {
	clear(heat)
	kinds := max(g.Kinds, 1)
	end := perUnit * int64(len(heat))
	for row := range g.NumRows() {
		lo, hi := g.Indptr.Element(row), g.Indptr.Element(row+1)
		if lo >= hi || hi > end {
			continue
		}
		each := visited(degrees[row/kinds], g.NumEdges()) * min(1, usualFanout/float64(hi-lo))
		for lo < hi {
			unit := lo / perUnit
			next := min(hi, (unit+1)*perUnit)
			heat[unit] += each * float64(next-lo)
			lo = next
		}
	}
}

// RowHeat writes how often rows of vertices are read, to compare runs of perUnit bytes with each other: each row, of
// so many bytes, by the chance that a hop meets its vertex.
func RowHeat(g *csc.Relation, degrees []int64, row, perUnit int64, heat []float64) {
	clear(heat)
	for v, n := range degrees {
		lo := int64(v) * row
		hi := min(lo+row, perUnit*int64(len(heat)))
		for lo < hi {
			unit := lo / perUnit
			next := min(hi, (unit+1)*perUnit)
			heat[unit] += visited(n, g.NumEdges()) * float64(next-lo)
			lo = next
		}
	}
}
