package run

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/labor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// labor is for each column the factor c of LABOR's chances min(1, c q), by which a mean by the values a has the variance
// of one over n.K edges that are drawn uniformly and without replacement: docs/developer/operator-rules.md.
func (c *call[I]) labor(n *program.Node) []float64 {
	e := c.edgesOf(n.In[0])
	to := take[float64](&c.arena, int64(len(e.indptr))-1)
	c.columnsIn(e, func(w *worker, _, first, end int64) {
		values := c.unitValues(w, n.In[0], first, end)
		a := sized(&w.chosen, len(values))
		copy(a, values)
		q := c.unitValues(w, n.In[1], first, end)
		for col := first; col < end; col++ {
			lo, hi := e.indptr[col]-e.indptr[first], e.indptr[col+1]-e.indptr[first]
			for k, x := range a[lo:hi] {
				checkChance("labor", x, int64(e.columns.ids[col]))
				checkChance("labor", q[lo+int64(k)], int64(e.columns.ids[col]))
			}
			to[col] = labor.Factor(a[lo:hi], q[lo:hi], n.K)
		}
	})
	return to
}
