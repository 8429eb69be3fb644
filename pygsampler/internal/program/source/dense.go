package source

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// dense writes the functor of dense rows: number k of row i.
func (w *writer) dense(i int, n *program.Node) {
	if w.reads[i] == nil {
		w.reads[i] = marks{}
	}
	functor := func(expression string) {
		w.line("auto r%d = [&](u32 i, u32 k) -> float { return %s; };", i, expression)
	}
	switch n.Op {
	case program.Features:
		functor(fmt.Sprintf("(float)m.named<ARRAY_%[1]d>(%[1]d, (u64)i * ARRAY_%[1]d_WIDTH + k)", w.rowsOf(n.Name)))
	case program.Take:
		w.takes(i, n.In[0])
		if w.typeOf(n.In[0]).Along.Space != program.All {
			functor(fmt.Sprintf("r%d(i, k)", n.In[0]))
			return
		}
		functor(fmt.Sprintf("r%d((u32)l%d(i), k)", n.In[0], n.In[1]))
	case program.Project:
		d, h := n.Tensor.Matrix()
		p := fmt.Sprintf("p%d", i)
		w.line("const float* %s;", p)
		w.reader(n.In[0], "project<%d, %d>(m, %s, %s.n, (const float*)m.a().arrays[%d], r%d)",
			d, h, p, list(n.Type.Along), w.input(n), n.In[0])
		w.product(i, p, fmt.Sprint(h))
	case program.Multiply:
		w.multiply(i, n)
	}
}

// product writes the functor of rows that a step has left in p.
func (w *writer) product(i int, p, width string) {
	w.loose[p] = true
	w.reads[i] = marks{p: true}
	w.line("auto r%d = [&](u32 i, u32 k) -> float { return %s[(u64)i * %s + k]; };", i, p, width)
}

// multiply writes the rows that a matrix times others makes, for each of its columns or of its rows.
func (w *writer) multiply(i int, n *program.Node) {
	matrix, x, e := n.In[0], n.In[1], w.edges(n.In[0])
	edges, h, p := w.typeOf(n.In[0]).Edges, w.width(n.In[1]), fmt.Sprintf("p%d", i)
	from := fmt.Sprintf("[&](u32 i) { return (u32)%s; }", w.place(x, edges, 1-n.Axis))
	w.line("const float* %s;", p)
	w.text.Cells += 4
	if n.Axis == 0 {
		w.step("multiply_columns<%s>(m, %s, %s, v%d, %s, r%d)", h, p, e, matrix, from, x)
	} else {
		rows, row := w.groups(edges)
		w.step("multiply_rows<%s>(m, %s, %s.n, %s.n, %d, %s, v%d, %s, r%d)", h, p, rows, e, i, row, matrix, from, x)
	}
	w.product(i, p, h)
}

// dot writes the products of edges' rows, of as many numbers as P has.
func (w *writer) dot(i int, n *program.Node) {
	e, p, q := w.typeOf(i).Edges, n.In[1], n.In[2]
	w.takes(i, p)
	w.takes(i, q)
	if a := w.typeOf(p).Along; a.Space == program.Rows {
		w.reads[i][fmt.Sprintf("e%d", a.Node)] = true
	}
	w.line("const double* s%d;", i)
	w.reader(i, "dot<%s>(m, s%d, e%d.n, r%d, r%d, [&](u32 i) { return %s; }, [&](u32 i) { return %s; })",
		w.width(p), i, e, p, q, w.place(p, e, 1), w.place(q, e, 0))
	w.stored(i)
}

// width returns the number of columns of a row, as an expression: the width of an array is known
// only with the graph.
func (w *writer) width(i int) string {
	n := &w.p.Nodes[i]
	switch n.Op {
	case program.Take:
		return w.width(n.In[0])
	case program.Multiply:
		return w.width(n.In[1])
	case program.Project:
		_, h := n.Tensor.Matrix()
		return fmt.Sprint(h)
	}
	return fmt.Sprintf("ARRAY_%d_WIDTH", w.rowsOf(n.Name))
}

// rowsOf is the place of an array of rows.
func (w *writer) rowsOf(name string) int {
	return w.placeOf(Array{Name: name, Vertex: true, Rows: true})
}

// input is the place of an input.
func (w *writer) input(n *program.Node) int { return w.placeOf(Array{Name: n.Name, Input: n.Tensor}) }
