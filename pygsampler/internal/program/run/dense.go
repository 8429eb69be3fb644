package run

import (
	"math"
	"sync"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/dense"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// unitRows is the number of dense rows that a worker processes at a time.
const unitRows = 64

// denseRows is a set of rows of numbers: in data, or in the graph's array if that has another type.
type denseRows struct {
	width, count int64
	data         []float32
	array        csc.Values
}

// makeDense makes dense rows.
func (c *call[I]) makeDense(i int) *denseRows {
	n := &c.Nodes[i]
	switch n.Op {
	case program.Features:
		return c.features(n.Name)
	case program.Take:
		return c.takeRows(n)
	case program.Project:
		return c.project(n)
	case program.Multiply:
		if n.Axis == 0 {
			return c.multiplyColumns(n)
		}
		return c.multiplyRows(n)
	}
	panic("no dense rows: " + n.Op.String())
}

func (c *call[I]) features(name string) *denseRows {
	of, nodes := array(c.Relation.VertexData, "a node", "features", name), c.Relation.NumNodes
	d := &denseRows{count: nodes, array: of}
	if nodes == 0 {
		return d
	}
	if of.Len()%nodes != 0 {
		fail(request.ErrValue, "features: expected a row for each of %d nodes in '%s', got %d values", nodes, name, of.Len())
	}
	if d.width = of.Len() / nodes; d.width == 0 {
		fail(request.ErrValue, "features: '%s': expected a number of each node at least, got none", name)
	}
	if of.DType == csc.Float32 && of.Len() > 0 {
		d.data = unsafe.Slice((*float32)(of.Pointer()), of.Len())
	}
	return d
}

// row writes row u.
func (d *denseRows) row(to []float32, u int64, wide []float64) {
	if d.data != nil {
		copy(to, d.data[u*d.width:(u+1)*d.width])
		return
	}
	d.array.Range(wide, u*d.width)
	for k, x := range wide {
		to[k] = float32(x)
	}
}

// takeRows is the rows of a list's nodes.
func (c *call[I]) takeRows(n *program.Node) *denseRows {
	from := c.values[n.In[0]].dense
	if c.Nodes[n.In[0]].Type.Along.Space != program.All {
		return from
	}
	ids := c.values[n.In[1]].list.ids
	return c.copied(from, int64(len(ids)), func(k int64) int64 { return int64(ids[k]) })
}

// copied is some of the rows as float32.
func (c *call[I]) copied(from *denseRows, count int64, of func(k int64) int64) *denseRows {
	width := from.width
	to := &denseRows{width: width, count: count, data: take[float32](&c.arena, count*width)}
	c.units((count+unitRows-1)/unitRows, func(_ *worker, unit int64) {
		wide := make([]float64, width)
		for k := unit * unitRows; k < min((unit+1)*unitRows, count); k++ {
			from.row(to.data[k*width:(k+1)*width], of(k), wide)
		}
	})
	return to
}

// singles is the rows as float32, of all of them.
func (c *call[I]) singles(d *denseRows) []float32 {
	if d.data == nil && d.width*d.count > 0 {
		d.data = c.copied(d, d.count, func(k int64) int64 { return k }).data
	}
	return d.data
}

// project is each row times an input.
func (c *call[I]) project(n *program.Node) *denseRows {
	x, w := c.values[n.In[0]].dense, n.Tensor
	d, h := w.Matrix()
	if x.width != d {
		fail(request.ErrValue, "@: expected rows of %d numbers for '%s' of shape (%s), got %d", d, n.Name, w.ShapeText(), x.width)
	}
	from := c.singles(x)
	to := &denseRows{width: h, count: x.count, data: take[float32](&c.arena, x.count*h)}
	c.units((x.count+unitRows-1)/unitRows, func(_ *worker, unit int64) {
		lo, hi := unit*unitRows, min((unit+1)*unitRows, x.count)
		dense.Project(to.data[lo*h:hi*h], from[lo*d:hi*d], w.Data, hi-lo, d, h)
	})
	return to
}

// entry writes a number of each row.
func (ev *evaluator[I]) entry(n *program.Node, s span[I], to []float64) {
	d := ev.values[n.In[0]].dense
	if n.K >= d.width && ev.Relation.NumNodes > 0 {
		fail(request.ErrValue, "[:, %d]: expected rows of more numbers, got %d", n.K, d.width)
	}
	of := ev.Nodes[n.In[0]].Type.Along.Space
	for k := range to {
		row := s.lo + int64(k)
		switch {
		case of == program.All && s.ids != nil:
			row = int64(s.ids[k])
		case s.at != nil:
			row = int64(s.at[k])
		}
		if at := row*d.width + n.K; d.data != nil {
			to[k] = float64(d.data[at])
		} else {
			d.array.Range(to[k:k+1], at)
			to[k] = float64(float32(to[k]))
		}
	}
}

// multiplied is the output of a product of a matrix and dense rows: rows of zeros, and the rows
// that it reads.
func (c *call[I]) multiplied(n *program.Node, count int64) (to *denseRows, from []float32) {
	x := c.values[n.In[1]].dense
	to = &denseRows{width: x.width, count: count, data: take[float32](&c.arena, count*x.width)}
	return to, c.singles(x)
}

// multiplyColumns is for each column of a matrix the sum of its edges' values times rows.
func (c *call[I]) multiplyColumns(n *program.Node) *denseRows {
	e, along := c.edgesOf(n.In[0]), c.Nodes[n.In[1]].Type.Along
	to, from := c.multiplied(n, int64(len(e.indptr))-1)
	h := to.width
	c.columnsIn(e, func(w *worker, _, first, end int64) {
		ev := evaluatorOf[I](w, c)
		sums, col := dense.NewSums(h), first
		for lo, hi := e.indptr[first], e.indptr[end]; lo < hi; lo += tileEdges {
			size := min(hi-lo, tileEdges)
			t, values := ev.begin(e, lo, size), w.values[:size]
			ev.fill(n.In[0], t, values)
			at := ev.ints.take(size)
			for k, u := range ev.rowPlaces(t, along) {
				at[k] = int64(u)
			}
			for k := int64(0); k < size; {
				if stop := min(e.indptr[col+1]-lo, size); stop > k {
					sums.Add(values[k:stop], from, at[k:stop])
					k = stop
				}
				for col < end && e.indptr[col+1] == lo+k {
					sums.End(to.data[col*h : (col+1)*h])
					col++
				}
			}
		}
		for ; col < end; col++ {
			sums.End(to.data[col*h : (col+1)*h])
		}
	})
	return to
}

// numbersAtOnce is the number of columns that a worker sums up at a time: a cache line for each
// sum.
const numbersAtOnce = 4

// multiplyRows is for each row of a matrix the sum of its edges' values times rows, in which the order of the edges does
// not count.
func (c *call[I]) multiplyRows(n *program.Node) *denseRows {
	e, along := c.edgesOf(n.In[0]), c.Nodes[n.In[1]].Type.Along
	c.rowsOf(e)
	count := int64(len(e.rows.ids))
	to, from := c.multiplied(n, count)
	h, values, at := to.width, c.stored(n.In[0]), take[int64](&c.arena, e.count())
	most := make([]uint64, h)
	var merging sync.Mutex
	c.tiles(e, func(w *worker, lo, hi int64) {
		ev, own := evaluatorOf[I](w, c), make([]uint64, h)
		for lo := lo; lo < hi; lo += tileEdges {
			size := min(hi-lo, tileEdges)
			ev.begin(e, lo, size)
			if along.Space != program.All {
				copy(at[lo:], ev.columns())
				continue
			}
			for k, v := range ev.columnVertices() {
				at[lo+int64(k)] = int64(v)
			}
		}
		for i := lo; i < hi; i++ {
			row := from[at[i]*h:][:h]
			for k, x := range row {
				own[k] = max(own[k], math.Float64bits(values[i]*float64(x))&^(1<<63))
			}
		}
		merging.Lock()
		defer merging.Unlock()
		for k, x := range own {
			most[k] = max(most[k], x)
		}
	})
	for _, x := range most {
		if x >= math.Float64bits(math.Inf(1)) {
			c.refuseProduct(values, from, at, h)
		}
	}
	parts := take[int64](&c.arena, 2*count*h)
	clear(parts)
	c.units((h+numbersAtOnce-1)/numbersAtOnce, func(_ *worker, unit int64) {
		for k := unit * numbersAtOnce; k < min(h, (unit+1)*numbersAtOnce); k++ {
			b := bins{largest: most[k]}
			if !b.scale(e.count()) {
				for row := range count {
					to.data[row*h+k] = 0
				}
				continue
			}
			for i, row := range e.local {
				q1, q2 := b.parts(values[i] * float64(from[at[i]*h+k]))
				sum := parts[2*(int64(row)*h+k):][:2]
				sum[0] += q1
				sum[1] += q2
			}
			for row := range count {
				sum := parts[2*(row*h+k):][:2]
				to.data[row*h+k] = float32(b.value(sum[0], sum[1]))
			}
		}
	})
	return to
}

// refuseProduct names the first product that is not finite: the first one of the first edge that
// has some.
func (c *call[I]) refuseProduct(values []float64, from []float32, at []int64, h int64) {
	for i, value := range values {
		for _, x := range from[at[i]*h:][:h] {
			if x := float64(value * float64(x)); x-x != 0 {
				fail(request.ErrValue, "@: expected finite values, got %s", program.ValueText(x))
			}
		}
	}
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
	dense.Dot(to, p.data, at, q.data, lead, p.width)
}

// rowPlaces is which element each edge's row is of what runs along rows, or of all nodes.
func (ev *evaluator[I]) rowPlaces(t *tile[I], along program.Along) []I {
	if along.Space == program.All {
		return ev.sourceVertices()
	}
	return ev.rowsAlong(t, along)
}
