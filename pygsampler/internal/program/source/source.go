// Package source writes programs down as CUDA: one kernel each, whose steps are those of kernels/program.cuh
// and whose values are functors. A text is a function of the program's nodes alone: names of arrays and
// of results are not in it, so that no text of a user's is code, and programs that differ by names alone
// share a kernel.
package source

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// Array is a named array that a kernel reads, by its place in the list.
type Array struct {
	Name   string
	Vertex bool // of vertices; else of edges, by their ids
}

// Text is a kernel, and what its launches have to bring.
type Text struct {
	Source     string
	Arrays     []Array
	Cells      int // counters, 0 at first
	Numberings int // tags of the vertex map
}

// Kernel is the kernel's name.
const Kernel = "program"

// Program is the kernel for ids, and for places in the CSC, of so many bits.
func (t Text) Program(idBits, placeBits int) compiler.Program {
	options := []string{fmt.Sprintf("-DPROGRAM_ID_BITS=%d", idBits), fmt.Sprintf("-DPROGRAM_PLACE_BITS=%d", placeBits), "--fmad=false"}
	return compiler.Program{Name: Kernel, Source: t.Source, Options: options}
}

// selectCells is SELECT_CELLS of the kernels.
const selectCells = 3 * 8 * 256

// writer is a text in the making.
type writer struct {
	strings.Builder
	p     *program.Program
	wants []program.Want
	uses  []int
	rows  []bool // of a matrix of edges: its rows are numbered
	cost  []int  // of an element, as far as it is made where it is taken
	text  Text
	err   error
}

// Of is the program's text, or says which operator has no kernel yet.
func Of(p *program.Program) (Text, error) {
	for i := range p.Nodes {
		if op := p.Nodes[i].Op; op >= program.Features {
			return Text{}, fmt.Errorf("%s: expected a program without dense rows and inputs on a GPU", op)
		}
	}
	w := &writer{p: p, wants: p.Wants(), uses: make([]int, len(p.Nodes)), rows: make([]bool, len(p.Nodes)), cost: make([]int, len(p.Nodes))}
	w.survey()
	w.WriteString(`#include "program_result.cuh"
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) ` + Kernel + `(const __grid_constant__ ProgramArgs a) {
  __shared__ ProgramShared shared;
  Machine m(a, shared);
  List seeds;
`)
	w.step("m.seeds(seeds)")
	for i := range p.Nodes {
		if w.wants[i] != 0 {
			w.node(i)
		}
	}
	w.result()
	w.WriteString("  m.end();\n}\n")
	w.text.Source = w.String()
	return w.text, w.err
}

// survey counts who takes what, and finds the matrices whose rows are numbered.
func (w *writer) survey() {
	number := func(a program.Along) {
		if a.Space == program.Rows {
			w.rows[a.Node] = true
		}
	}
	for i := range w.p.Nodes {
		n := &w.p.Nodes[i]
		if w.wants[i] == 0 {
			continue
		}
		for _, in := range n.In {
			w.uses[in]++
		}
		if n.Type.Kind == program.Vector || n.Type.Kind == program.List {
			number(n.Type.Along)
		}
		if n.Op == program.Collective {
			number(w.p.RowsOf(w.p.Nodes[n.In[0]].Type.Edges))
		}
	}
	for _, m := range w.p.Matrices {
		w.uses[m]++
	}
	for _, e := range w.p.Extras {
		w.uses[e.Node]++
	}
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, "  "+format+"\n", args...) }

// step is a line that may end the program.
func (w *writer) step(format string, args ...any) {
	w.line("if (!"+format+") return m.end();", args...)
}

func (w *writer) typeOf(i int) program.Type { return w.p.Nodes[i].Type }

// edges is the variable of a matrix's edges.
func (w *writer) edges(matrix int) string { return fmt.Sprintf("e%d", w.typeOf(matrix).Edges) }

// list is the list that a vector runs along.
func list(a program.Along) string {
	switch a.Space {
	case program.Columns:
		return fmt.Sprintf("e%d.columns", a.Node)
	case program.Rows:
		return fmt.Sprintf("e%d.rows", a.Node)
	case program.Of:
		return fmt.Sprintf("l%d", a.Node)
	}
	return "m.all"
}

// array is the place of a named array among those that the kernel reads.
func (w *writer) array(name string, vertex bool) int {
	a := Array{name, vertex}
	at := slices.Index(w.text.Arrays, a)
	if at < 0 {
		at = len(w.text.Arrays)
		w.text.Arrays = append(w.text.Arrays, a)
	}
	return at
}

// number is a constant, to the last bit.
func number(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return fmt.Sprintf("of_bits(0x%xull)", math.Float64bits(x))
	}
	return strconv.FormatFloat(x, 'x', -1, 64)
}

// node writes what makes node i.
func (w *writer) node(i int) {
	n := &w.p.Nodes[i]
	switch n.Type.Kind {
	case program.List:
		w.list(i, n)
	case program.Matrix:
		w.matrix(i, n)
	case program.Vector:
		w.vector(i, n)
	case program.Scalar:
		w.scalar(i, n)
	}
}

func (w *writer) list(i int, n *program.Node) {
	l := fmt.Sprintf("l%d", i)
	w.line("List %s;", l)
	switch n.Op {
	case program.Seeds:
		w.line("%s = seeds;", l)
	case program.Column:
		w.line("%s = %s.columns;", l, w.edges(n.In[0]))
	case program.Row:
		w.line("%s = %s;", l, list(n.Type.Along))
	case program.Unique:
		w.text.Numberings++
		w.step("unique(m, %s, l%d)", l, n.In[0])
	case program.Union:
		w.text.Numberings++
		w.step("join(m, %s, l%d, l%d, true)", l, n.In[0], n.In[1])
	case program.Concat:
		w.step("join(m, %s, l%d, l%d, false)", l, n.In[0], n.In[1])
	case program.Pick:
		w.step("some(m, %s, l%d, [&](u32 i) -> u32 { return v%d(i) != 0; })", l, n.In[0], n.In[1])
	case program.Draw:
		if n.Replace && n.K >= 0 {
			w.text.Cells += 4
			w.step("draw_again(m, %s, %s, %d, %d, %d, v%d)", l, list(w.typeOf(n.In[0]).Along), n.K, i, n.Site, n.In[0])
			return
		}
		w.text.Cells += selectCells + 2
		w.step("draw(m, %s, %s, %d, %d, %d, v%d)", l, list(w.typeOf(n.In[0]).Along), n.K, i, n.Site, n.In[0])
	}
}

// matrix writes the edges of a matrix that has its own, and its values.
func (w *writer) matrix(i int, n *program.Node) {
	if n.Chooses() {
		w.line("Edges e%d;", i)
		w.choose(i, n)
		if w.rows[i] {
			w.text.Numberings++
			w.step("number_rows(m, e%d)", i)
		}
	}
	if w.wants[i]&program.WantValues == 0 {
		return
	}
	expression, cost := w.element(i, n)
	w.values(i, w.edges(i)+".n", expression, cost, cost <= 6 || w.uses[i] <= 1 && cost <= 40)
}

func (w *writer) choose(i int, n *program.Node) {
	c := ""
	if n.Op >= program.Individual {
		c = w.edges(n.In[0])
	}
	switch n.Op {
	case program.Whole:
		w.step("slice(m, e%d, m.all)", i)
	case program.Slice:
		columns := fmt.Sprintf("l%d", n.In[0])
		if !w.typeOf(n.In[0]).Distinct {
			w.text.Numberings++
			w.line("List d%d;", i)
			w.step("unique(m, d%d, %s)", i, columns)
			columns = fmt.Sprintf("d%d", i)
		}
		w.step("slice(m, e%d, %s)", i, columns)
	case program.Cross:
		w.text.Numberings++
		w.line("const u32* c%d;", i)
		w.step("cross(m, e%d, c%d, l%d, l%d)", i, i, n.In[0], n.In[1])
	case program.Filter:
		w.step("filter(m, e%d, %s, [&](u32 i) -> u32 { return v%d(i) != 0; })", i, c, n.In[1])
	case program.TopK:
		w.step("top_k(m, e%d, %s, %d, v%d)", i, c, n.K, n.In[1])
	case program.Merge:
		w.step("merge(m, e%d, %s, %s)", i, c, w.edges(n.In[1]))
	case program.Individual:
		switch {
		case len(n.In) == 1:
			w.step("individual(m, e%d, %s, %d, %t, %d)", i, c, n.K, n.Replace, n.Site)
		case n.Replace && n.K >= 0:
			w.text.Cells += 2
			w.step("individual_again(m, e%d, %s, %d, %d, %d, v%d)", i, c, n.K, i, n.Site, n.In[1])
		default:
			w.text.Cells += 2
			w.step("individual_by(m, e%d, %s, %d, %d, %d, v%d)", i, c, n.K, i, n.Site, n.In[1])
		}
	case program.Collective:
		w.collective(i, n, c)
	}
}

// collective chooses rows: those of C, or all vertices where C is the whole graph.
func (w *writer) collective(i int, n *program.Node, c string) {
	edges := w.typeOf(n.In[0]).Edges
	rows, row := w.groups(edges)
	p := ""
	if len(n.In) == 1 {
		w.line("const double* p%d;", i)
		w.step("count_groups(m, p%d, %s.n, %s.n, %s)", i, rows, c, row)
		p = fmt.Sprintf("[&](u32 r) -> double { return p%d[r]; }", i)
	} else {
		// The element of a row, by its first edge.
		v, along := n.In[1], w.typeOf(n.In[1]).Along
		switch {
		case along == w.p.RowsOf(edges):
			p = fmt.Sprintf("v%d", v)
		case along.Space == program.All:
			p = fmt.Sprintf("[&](u32 r) -> double { return v%d((u32)%s(r)); }", v, rows)
		default:
			p = fmt.Sprintf("[&](u32 r) -> double { u32 i = %s.first[r]; return %s; }", c, w.along(v, edges, 1))
		}
	}
	if n.Replace && n.K >= 0 {
		w.text.Cells += 4
		w.line("const u32* t%d;", i)
		w.step("collective_again(m, e%d, t%d, %s, %s, %d, %d, %d, %s, %s)", i, i, c, rows, n.K, i, n.Site, row, p)
		return
	}
	w.text.Cells += selectCells + 2
	w.step("collective(m, e%d, %s, %s.n, %d, %d, %d, %s, %s, %s)", i, c, rows, n.K, i, n.Site, rows, row, p)
}

// groups are the rows of edges: their list, and of an edge its row's place.
func (w *writer) groups(edges int) (rows, row string) {
	e := fmt.Sprintf("e%d", edges)
	if w.p.RowsOf(edges).Space == program.All {
		return "m.all", fmt.Sprintf("[&](u32 i) -> u32 { return (u32)%s.row[i]; }", e)
	}
	return e + ".rows", fmt.Sprintf("[&](u32 i) -> u32 { return %s.number[i]; }", e)
}

// values writes the functor of a node's values: an expression of i, or what is stored of it.
func (w *writer) values(i int, n, expression string, cost int, inline bool) {
	if inline {
		w.cost[i] = cost
		w.line("auto v%d = [&](u32 i) -> double { return %s; };", i, expression)
		return
	}
	w.line("const double* s%d;", i)
	w.step("store(m, s%d, %s, [&](u32 i) -> double { return %s; })", i, n, expression)
	w.stored(i)
}

// stored writes the functor of values that a step has left in s.
func (w *writer) stored(i int) {
	w.cost[i] = 1
	w.line("auto v%d = [&](u32 i) -> double { return s%d[i]; };", i, i)
}

// element is what edge i of a matrix has for a value, and what that costs.
func (w *writer) element(at int, n *program.Node) (expression string, cost int) {
	e := w.edges(at)
	switch n.Op {
	case program.Whole, program.Slice, program.Cross:
		if w.p.Weight == "" {
			return "1.0", 1
		}
		return fmt.Sprintf("m.named(%d, m.edge_id(%s.place[i]))", w.array(w.p.Weight, false), e), 2
	case program.Data:
		return fmt.Sprintf("m.named(%d, m.edge_id(%s.place[i]))", w.array(n.Name, false), e), 2
	case program.Random:
		return fmt.Sprintf("m.random(%d, PURPOSE_EDGES, m.edge_id(%s.place[i]))", n.Site, e), 8
	case program.Individual, program.Collective, program.Filter, program.TopK:
		return fmt.Sprintf("v%d(%s.parent[i])", n.In[0], e), w.cost[n.In[0]] + 1
	case program.Merge:
		c, d, first := n.In[0], n.In[1], w.edges(n.In[0])
		return fmt.Sprintf("%s.parent[i] < %s.n ? v%d(%s.parent[i]) : v%d(%s.parent[i] - %s.n)", e, first, c, e, d, e, first),
			w.cost[c] + w.cost[d] + 1
	}
	edges := n.Type.Edges
	return w.mapped(n, func(in int) string {
		if w.typeOf(in).Kind == program.Vector {
			return w.along(in, edges, n.Axis)
		}
		return fmt.Sprintf("v%d(i)", in)
	})
}

// mapped is a map of elements.
func (w *writer) mapped(n *program.Node, of func(in int) string) (expression string, cost int) {
	var args []string
	cost = 1
	switch n.Op {
	case program.Exp, program.Log, program.Pow, program.Random:
		cost = 8
	}
	for _, in := range n.In {
		if w.typeOf(in).Kind == program.Scalar {
			args = append(args, fmt.Sprintf("x%d", in))
			continue
		}
		cost += w.cost[in]
		args = append(args, of(in))
	}
	if n.Op == program.Spread {
		return args[1], cost
	}
	return fmt.Sprintf("op_%s(%s)", n.Op, strings.Join(args, ", ")), cost
}

// along is the element of a vector that edge i knows.
func (w *writer) along(vector, edges, axis int) string {
	a, e, at := w.typeOf(vector).Along, edges, "i"
	switch {
	case axis == 0 && a.Space == program.All:
		return fmt.Sprintf("v%d((u32)e%d.columns(e%d.column[i]))", vector, e, e)
	case axis == 0:
		return fmt.Sprintf("v%d(e%d.column[i])", vector, e)
	case a.Space == program.All:
		return fmt.Sprintf("v%d((u32)e%d.row[i])", vector, e)
	}
	for ; e >= 0; e = w.p.Parent(e) {
		if a == w.p.RowsOf(e) {
			return fmt.Sprintf("v%d(e%d.number[%s])", vector, e, at)
		}
		if n := &w.p.Nodes[e]; n.Op == program.Cross && a == w.typeOf(n.In[0]).Along {
			return fmt.Sprintf("v%d(c%d[%s])", vector, e, at)
		}
		at = fmt.Sprintf("e%d.parent[%s]", e, at)
	}
	w.err = fmt.Errorf("%%%d: a vector that its edges do not know: a fault of pygsampler", vector)
	return "0"
}

func (w *writer) vector(i int, n *program.Node) {
	of := list(n.Type.Along)
	s := fmt.Sprintf("s%d", i)
	switch n.Op {
	case program.Sum, program.Mean, program.Largest, program.Smallest, program.Count:
		w.reduced(i, n)
		return
	case program.Vertices:
		w.values(i, of+".n", fmt.Sprintf("m.named(%d, i)", w.array(n.Name, true)), 1, true)
		return
	case program.Degree:
		w.values(i, of+".n", "(double)(m.start((u64)i + 1) - m.start(i))", 2, true)
		return
	case program.Random:
		w.values(i, of+".n", fmt.Sprintf("m.random(%d, PURPOSE_CANDIDATES, i)", n.Site), 8, true)
		return
	case program.Times:
		// By the row's first edge.
		b := &w.p.Nodes[n.In[0]]
		if !b.Replace || b.K < 0 {
			w.values(i, of+".n", "1.0", 1, true)
			return
		}
		at, c := fmt.Sprintf("e%d.parent[e%d.first[i]]", n.In[0], n.In[0]), w.typeOf(b.In[0]).Edges
		row := fmt.Sprintf("e%d.number[%s]", c, at)
		if w.p.RowsOf(c).Space == program.All {
			row = fmt.Sprintf("e%d.row[%s]", c, at)
		}
		w.values(i, of+".n", fmt.Sprintf("(double)t%d[%s]", n.In[0], row), 2, true)
		return
	case program.Cap:
		w.text.Cells += 2
		w.line("const double* %s;", s)
		w.step("cap(m, %s, %s, %d, %d, v%d)", s, of, n.K, i, n.In[0])
		w.stored(i)
		return
	}
	element := func(in int) string {
		if w.typeOf(in).Along.Space == program.All && n.Type.Along.Space != program.All {
			return fmt.Sprintf("v%d((u32)%s(i))", in, of)
		}
		return fmt.Sprintf("v%d(i)", in)
	}
	expression, cost := "", 0
	if n.Op == program.Gather {
		expression, cost = element(n.In[0]), w.cost[n.In[0]]+1
	} else {
		expression, cost = w.mapped(n, element)
	}
	w.values(i, of+".n", expression, cost, cost <= 6 || n.Type.Along.Space == program.All && cost <= 64)
}

// reduced is a vector of reductions of a matrix.
func (w *writer) reduced(i int, n *program.Node) {
	matrix, e, edges := n.In[0], w.edges(n.In[0]), w.typeOf(n.In[0]).Edges
	rows, row := w.groups(edges)
	mean, largest := n.Op == program.Mean, n.Op == program.Largest
	if n.Op == program.Count && n.Axis == 0 {
		w.values(i, "", fmt.Sprintf("(double)(%s.begins[i + 1] - %s.begins[i])", e, e), 2, true)
		return
	}
	w.line("const double* s%d;", i)
	switch {
	case n.Op == program.Count:
		w.step("count_groups(m, s%d, %s.n, %s.n, %s)", i, rows, e, row)
	case n.Axis == 0 && (n.Op == program.Sum || mean):
		w.step("sum_columns(m, s%d, %s, %t, v%d)", i, e, mean, matrix)
	case n.Axis == 0:
		w.step("extreme_columns(m, s%d, %s, %t, v%d)", i, e, largest, matrix)
	case n.Op == program.Sum || mean:
		w.text.Cells += 4
		w.step("sum_groups(m, s%d, %s.n, %s.n, %d, %t, %s, v%d)", i, rows, e, i, mean, row, matrix)
	default:
		w.step("extreme_groups(m, s%d, %s.n, %s.n, %t, %s, v%d)", i, rows, e, largest, row, matrix)
	}
	w.stored(i)
}

func (w *writer) scalar(i int, n *program.Node) {
	x := fmt.Sprintf("x%d", i)
	if n.Op < program.Sum || n.Op > program.Count {
		expression := number(n.Value)
		if n.Op != program.Const {
			expression, _ = w.mapped(n, nil)
		}
		w.line("const double %s = %s;", x, expression)
		return
	}
	size := list(w.typeOf(n.In[0]).Along) + ".n"
	switch n.Op {
	case program.Count:
		w.line("const double %s = %s;", x, size)
	case program.Sum, program.Mean:
		w.text.Cells += 8
		w.line("double %s;", x)
		w.step("sum_all(m, m.counters(8), %s, %s, %d, %t, v%d)", x, size, i, n.Op == program.Mean, n.In[0])
	default:
		w.line("const double* s%d;", i)
		w.step("extreme_groups(m, s%d, 1, %s, %t, [](u32) -> u32 { return 0; }, v%d)", i, size, n.Op == program.Largest, n.In[0])
		w.line("const double %s = s%d[0];", x, i)
	}
}
