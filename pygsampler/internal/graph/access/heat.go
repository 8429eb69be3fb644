// Package access estimates how often batches read each edge of a graph, or each feature row of its
// nodes, for callers that place the most frequent ones in faster memory.
package access

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// Assumptions about unknown samplers: a visit of a row reads at most this many of its edges, and a
// hop meets this many neighbors, each node of which is visited once.
const (
	usualFanout   = 10
	usualFrontier = 1 << 14
)

// visited returns the chance that a hop visits a node with out of all edges as out-edges; one is
// added for seeds.
func visited(out, edges int64) float64 {
	return -math.Expm1(-usualFrontier * float64(out+1) / float64(max(edges, 1)))
}

// Heat estimates the read frequencies of runs of perUnit edges, relative to each other (the last
// run may be shorter): a row is read with the probability that its node is among the neighbors of a
// hop, and up to usualFanout of its edges, all equally likely. degrees are the out-degrees of all
// nodes.
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

// RowHeat estimates the read frequencies of runs of perUnit bytes of feature rows, relative to each
// other: each row, of row bytes, is read with the probability that a hop meets its node.
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
