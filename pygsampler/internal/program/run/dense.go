package run

import (
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/rows"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// unitRows is how many dense rows a worker takes at a time.
const unitRows = 64

// dense is rows of so many numbers each: in data, or in the graph's array where that is of another type.
type dense struct {
	width, count int64
	data         []float32
	array        csc.Values
}

// makeDense makes dense rows.
func (c *call[I]) makeDense(i int) *dense {
	n := &c.Nodes[i]
	switch n.Op {
	case program.Features:
		return c.features(n.Name)
	case program.Take:
		return c.takeRows(n)
	case program.Project:
		return c.project(n)
	}
	panic("no dense rows: " + n.Op.String())
}

func (c *call[I]) features(name string) *dense {
	of, nodes := array(c.Graph.VertexData, "a vertex", "features", name), c.Graph.NumNodes
	d := &dense{count: nodes, array: of}
	if nodes == 0 {
		return d
	}
	if of.Len()%nodes != 0 {
		fail(request.ErrValue, "features: expected a row for each of %d vertices in '%s', got %d values", nodes, name, of.Len())
	}
	d.width = of.Len() / nodes
	if of.DType == csc.Float32 && of.Len() > 0 {
		d.data = unsafe.Slice((*float32)(of.Pointer()), of.Len())
	}
	return d
}

// row writes row u.
func (d *dense) row(to []float32, u int64, wide []float64) {
	if d.data != nil {
		copy(to, d.data[u*d.width:(u+1)*d.width])
		return
	}
	d.array.Range(wide, u*d.width)
	for k, x := range wide {
		to[k] = float32(x)
	}
}

// takeRows is the rows of a list's vertices.
func (c *call[I]) takeRows(n *program.Node) *dense {
	from := c.values[n.In[0]].dense
	if c.Nodes[n.In[0]].Type.Along.Space != program.All {
		return from
	}
	ids := c.values[n.In[1]].list.ids
	return c.copied(from, int64(len(ids)), func(k int64) int64 { return int64(ids[k]) })
}

// copied is some of the rows as float32.
func (c *call[I]) copied(from *dense, count int64, of func(k int64) int64) *dense {
	width := from.width
	to := &dense{width: width, count: count, data: take[float32](&c.arena, count*width)}
	c.units((count+unitRows-1)/unitRows, func(_ *worker, unit int64) {
		wide := make([]float64, width)
		for k := unit * unitRows; k < min((unit+1)*unitRows, count); k++ {
			from.row(to.data[k*width:(k+1)*width], of(k), wide)
		}
	})
	return to
}

// singles is the rows as float32, of all of them.
func (c *call[I]) singles(d *dense) []float32 {
	if d.data == nil && d.width*d.count > 0 {
		d.data = c.copied(d, d.count, func(k int64) int64 { return k }).data
	}
	return d.data
}

// project is each row times an input.
func (c *call[I]) project(n *program.Node) *dense {
	x, w := c.values[n.In[0]].dense, n.Tensor
	d, h := w.Shape[0], w.Shape[1]
	if x.width != d {
		fail(request.ErrValue, "@: expected rows of %d numbers for '%s' of shape (%d, %d), got %d", d, n.Name, d, h, x.width)
	}
	from := c.singles(x)
	to := &dense{width: h, count: x.count, data: take[float32](&c.arena, x.count*h)}
	c.units((x.count+unitRows-1)/unitRows, func(_ *worker, unit int64) {
		lo, hi := unit*unitRows, min((unit+1)*unitRows, x.count)
		rows.Project(to.data[lo*h:hi*h], from[lo*d:hi*d], w.Data, hi-lo, d, h)
	})
	return to
}

// ready makes the rows of a Dot float32 before workers share them.
func (c *call[I]) ready(n *program.Node) {
	p, q := c.values[n.In[1]].dense, c.values[n.In[2]].dense
	if p.width != q.width {
		fail(request.ErrValue, "dot: expected rows of one length, got %d and %d numbers", p.width, q.width)
	}
	c.singles(p)
	c.singles(q)
}

// dot writes for each edge the product of two rows.
func (ev *evaluator[I]) dot(n *program.Node, t *tile[I], to []float64) {
	p, q := ev.values[n.In[1]].dense, ev.values[n.In[2]].dense
	at, lead := ev.ints.take(t.n), ev.columns()
	along := ev.Nodes[n.In[1]].Type.Along
	from := ev.rowPlaces(t, along)
	for k, u := range from {
		at[k] = int64(u)
	}
	if ev.Nodes[n.In[2]].Type.Along.Space == program.All {
		lead = ev.ints.take(t.n)
		for k, v := range ev.columnVertices() {
			lead[k] = int64(v)
		}
	}
	rows.Dot(to, p.data, at, q.data, lead, p.width)
}

// rowPlaces is which element each edge's row is of what runs along rows, or of all vertices.
func (ev *evaluator[I]) rowPlaces(t *tile[I], along program.Along) []I {
	if along.Space == program.All {
		return ev.sourceVertices()
	}
	return ev.rowsAlong(t, along)
}
