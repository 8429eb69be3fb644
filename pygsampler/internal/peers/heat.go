// Package peers says which edges of a graph, or rows of its vertices, batches read most, for those who have room for
// some of them.
package peers

import "github.com/pygsampler/pygsampler/pygsampler/internal/csc"

// usualFanout is how many edges of a row a visit reads at most, where nobody knows what will be sampled.
const usualFanout = 10

// Heat writes how often edges are read, to compare runs of them with each other, each of perUnit edges but the
// last one. A row is visited as often as its vertex is somebody's neighbour, and once as a seed; a visit reads up to
// usualFanout of its edges, each as likely as the others. visits are the out-degrees of all vertices.
func Heat(g *csc.Graph, visits []int64, perUnit int64, heat []float64) {
	clear(heat)
	kinds := max(g.Kinds, 1)
	end := perUnit * int64(len(heat))
	for row := range g.Rows() {
		lo, hi := g.Indptr.At(row), g.Indptr.At(row+1)
		if lo >= hi || hi > end {
			continue
		}
		each := float64(visits[row/kinds]+1) * min(1, usualFanout/float64(hi-lo))
		for lo < hi {
			unit := lo / perUnit
			next := min(hi, (unit+1)*perUnit)
			heat[unit] += each * float64(next-lo)
			lo = next
		}
	}
}

// RowHeat writes how often rows of vertices are read, to compare runs of perUnit bytes with each other: each row, of
// so many bytes, as often as its vertex is somebody's neighbour, and once as a seed.
func RowHeat(visits []int64, row, perUnit int64, heat []float64) {
	clear(heat)
	for v, n := range visits {
		lo := int64(v) * row
		hi := min(lo+row, perUnit*int64(len(heat)))
		for lo < hi {
			unit := lo / perUnit
			next := min(hi, (unit+1)*perUnit)
			heat[unit] += float64(n+1) * float64(next-lo)
			lo = next
		}
	}
}
