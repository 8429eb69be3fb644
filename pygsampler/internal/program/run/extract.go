package run

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// extract returns the columns of a list's nodes, each with its edges in a matrix: none if the
// matrix has no such column.
func (c *call[I]) extract(n *program.Node) *edges[I] {
	p, columns := c.edgesOf(n.In[0]), c.distinct(n.In[1])
	was := take[I](&c.arena, int64(len(columns.ids)))
	copy(was, columns.ids)
	// In the list of all nodes, the position of a node is its id.
	if c.ColumnsOf(p.node).Space != program.All {
		c.number(p.columns)
		cpu.Find(&c.numbers, was)
	}
	e := &edges[I]{parent: p, columns: columns, indptr: take[int64](&c.arena, int64(len(was))+1), wasColumn: was}
	at := int64(0)
	for k, col := range was {
		if e.indptr[k] = at; col >= 0 {
			at += p.indptr[col+1] - p.indptr[col]
		}
	}
	e.indptr[len(was)] = at
	e.from, e.places = take[int64](&c.arena, at), take[int64](&c.arena, at)
	c.columnsIn(e, func(w *worker, _, first, end int64) {
		ev := evaluatorOf[I](w, c)
		for ; first < end; first++ {
			from := e.from[e.indptr[first]:e.indptr[first+1]]
			if len(from) == 0 {
				continue
			}
			begin, places := p.indptr[was[first]], e.places[e.indptr[first]:]
			for k := range from {
				from[k] = begin + int64(k)
			}
			for lo := int64(0); lo < int64(len(from)); lo += tileEdges {
				copy(places[lo:], ev.placesOf(p, begin+lo, min(int64(len(from))-lo, tileEdges)))
			}
		}
	})
	return e
}

// number gives a list's distinct nodes their places in it as numbers.
func (c *call[I]) number(of *list[I]) {
	ids := take[I](&c.arena, int64(len(of.ids)))
	copy(ids, of.ids)
	c.claim(ids, c.numbering(int64(len(ids))), 0)
}

// isIn returns, along a list, 1 for nodes that are in another list, else 0.
func (c *call[I]) isIn(n *program.Node) []float64 {
	of, in := c.listAlong(c.Nodes[n.In[0]].Type.Along).ids, c.distinct(n.In[1])
	c.number(in)
	to := take[float64](&c.arena, int64(len(of)))
	c.ranges(int64(len(of)), func(_ *worker, lo, hi int64) {
		var ids [tileEdges]I
		for ; lo < hi; lo += tileEdges {
			part := ids[:copy(ids[:], of[lo:hi])]
			cpu.Find(&c.numbers, part)
			for k, number := range part {
				to[lo+int64(k)] = 0
				if number >= 0 {
					to[lo+int64(k)] = 1
				}
			}
		}
	})
	return to
}
