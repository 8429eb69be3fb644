package run

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// level is for each column the factor c by which the chances min(1, c v) of its edges have the sum that a vector says:
// docs/developer/operator-rules.md.
func (c *call[I]) level(n *program.Node) []float64 {
	e := c.edgesOf(n.In[0])
	sums := c.columnValues(n.In[1], e)
	to := take[float64](&c.arena, int64(len(e.indptr))-1)
	c.columnsIn(e, func(w *worker, _, first, end int64) {
		values := c.unitValues(w, n.In[0], first, end)
		for col := first; col < end; col++ {
			v := values[e.indptr[col]-e.indptr[first] : e.indptr[col+1]-e.indptr[first]]
			for _, x := range v {
				checkChance("cap", x, int64(e.columns.ids[col]))
			}
			to[col] = levelFactor(v, sums[col])
		}
	})
	return to
}

// columnValues is a vector's elements for the columns of a matrix.
func (c *call[I]) columnValues(i int, e *edges[I]) []float64 {
	if e.whole || c.Nodes[i].Type.Along.Space != program.All {
		return c.vectorOf(i)
	}
	ids := e.columns.ids
	to := take[float64](&c.arena, int64(len(ids)))
	c.ranges(int64(len(ids)), func(w *worker, lo, hi int64) {
		ev := evaluatorOf[I](w, c)
		for ; lo < hi; lo += tileEdges {
			end := min(hi, lo+tileEdges)
			ev.begin(nil, 0, 0)
			ev.vector(i, span[I]{n: end - lo, lo: lo, ids: ids[lo:end]}, to[lo:end])
		}
	})
	return to
}

// levelFactor returns the factor of one column. It increases from 0, since each capped edge leaves
// more for the others, and ends after at most as many steps as there are edges.
func levelFactor(v []float64, sum float64) (c float64) {
	candidates, least := 0, math.Inf(1)
	for _, x := range v {
		if x > 0 {
			candidates++
			least = min(least, x)
		}
	}
	switch {
	case candidates == 0 || !(sum > 0):
		return 0
	case float64(candidates) <= sum:
		return min(2/least, math.MaxFloat64)
	}
	for {
		var of running
		var part [32]float64
		of.begin(program.Sum)
		full := 0
		for lo := 0; lo < len(v); lo += len(part) {
			m := min(len(part), len(v)-lo)
			for i, x := range v[lo : lo+m] {
				part[i] = 0
				if c*x < 1 {
					part[i] = x
				} else {
					full++
				}
			}
			of.take(part[:m])
		}
		next := (sum - float64(full)) / of.end()
		if !(next > c) {
			return c
		}
		c = next
	}
}
