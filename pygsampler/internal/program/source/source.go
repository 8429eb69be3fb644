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
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
)

// Array is an array that a kernel reads, by its place in the list: one of the graph's, what was made of the
// graph once, or an input.
type Array struct {
	Name   string
	Vertex bool            // of vertices; else of edges, by their ids
	Rows   bool            // so many numbers of each vertex
	Input  *program.Tensor // nil: no input
	Once   int             // the place among the text's Once, from 1 on; 0: none of them
}

// Text is a kernel, and what its launches have to bring.
type Text struct {
	Source     string
	Arrays     []Array
	Cells      int   // counters, 0 at first
	Numberings int   // tags of the vertex map
	Between    bool  // A[R, S] may be found by the out-edges of R
	ByRows     bool  // and is in any case, at one node at least
	Once       []int // nodes that are made once for a graph, doubles of all vertices or one, or rows of them
}

// Kernel is the kernel's name.
const Kernel = "program"

// types are what kernels/program.cuh calls the types of arrays.
var types = [...]string{
	csc.Bool: "Bool", csc.Int8: "Int8", csc.Uint8: "UInt8", csc.Int16: "Int16", csc.Int32: "Int32", csc.Int64: "Int64",
	csc.Float32: "Float32", csc.Float64: "Float64",
}

// Widths are the bits of what a kernel reads and writes: ids, places in the CSC, its arrays (edge ids: 0 for none), and
// the edge ids of a batch. They are known when it is compiled, since a choice at each read is code, and code has to be fetched.
type Widths struct{ ID, Place, Indptr, EdgeID, OutEdge int }

// Type is what an array has: numbers of a type, and of those that are rows so many in each.
type Type struct {
	DType csc.DType
	Width int64
}

// Program is the kernel for these widths, and for arrays of these types.
func (t Text) Program(bits Widths, arrays []Type) compiler.Program {
	options := []string{
		fmt.Sprintf("-DPROGRAM_ID_BITS=%d", bits.ID), fmt.Sprintf("-DPROGRAM_PLACE_BITS=%d", bits.Place),
		fmt.Sprintf("-DPROGRAM_INDPTR_BITS=%d", bits.Indptr), fmt.Sprintf("-DPROGRAM_EDGE_ID_BITS=%d", bits.EdgeID),
		fmt.Sprintf("-DPROGRAM_OUT_EDGE_BITS=%d", bits.OutEdge), "--fmad=false",
	}
	for i, array := range arrays {
		options = append(options, fmt.Sprintf("-DARRAY_%d=%s", i, types[array.DType]))
		if t.Arrays[i].Rows {
			options = append(options, fmt.Sprintf("-DARRAY_%d_WIDTH=%d", i, array.Width))
		}
	}
	return compiler.Program{Name: Kernel, Source: t.Source, Options: options}
}

// selectCells is SELECT_CELLS of the kernels, which give counters out by fours.
const selectCells = 3 * 7 * 1024

// writer is a text in the making.
type writer struct {
	strings.Builder
	p       *program.Program
	wants   []program.Want
	uses    []int  // how many nodes take a node's values
	rows    []bool // of a matrix of edges: its rows are numbered
	once    bool   // what is made once for a graph is read, and not made
	between []bool // of A[R, S]: which way it is found is chosen, or given
	named   []bool // of the whole graph: its columns alone are taken, and its edges are not written down
	drawn   []bool // of a slice: nothing but uniform draws takes it, and it is not written down
	sieve   []bool // of a slice: what takes it is a filter and its test, and its edges are not written down
	cost    []int  // of an element, as far as it is made where it is taken
	reads   []marks
	loose   marks // what was written since all threads have surely met
	text    Text
	err     error

	raw     []bool       // a list of rows: those of all edges, one behind another, as who takes it has each once in any case
	made    map[int]bool // what chooses edges of a list's vertices finds where those are, since it was made with the list
	claimed int          // the node whose vertices are claimed where they are written, all numberings before it being done; -1: none
	nests   bool         // the vertices of a batch have been claimed
	crossed marked       // the last A[list, list], whose rows are claimed by their places until the next numbering
}

// marked is a node, and how many numberings there had been.
type marked struct{ node, numberings int }

// marks are nodes whose values, or whose numbers of rows, are in memory.
type marks map[string]bool

// What is before and behind a kernel's steps.
const (
	opening = "__device__ __forceinline__ void steps(Machine& m) {\n"
	closing = `}
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) ` + Kernel + `(const __grid_constant__ ProgramArgs a) {
  __shared__ ProgramShared shared;
  Machine m(a, shared);
  steps(m);
  m.end();
}
`
)

// Turning is the text that finds the out-edges of a graph.
func Turning() Text {
	return Text{Source: "#include \"program_result.cuh\"\n#include \"program_between.cuh\"\n" + opening + "  if (!turn(m)) return;\n" + closing}
}

// Of is the program's text, or says what is wrong with it. What is made once for a graph it reads.
func Of(p *program.Program) (Text, error) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; (n.Op == program.Project || n.Op == program.Item) && n.Tensor == nil {
			return Text{}, fmt.Errorf("%%%d: %s: expected an input %q, got none", i, n.Op, n.Name)
		}
	}
	return write(p, p.Wants(func(i int) bool { return p.Nodes[i].Once }), true)
}

// Making is the text that makes what another reads: the values of nodes, one behind another, each on a line
// of the cache.
func Making(p *program.Program, nodes []int) (Text, error) {
	q := *p
	q.Result, q.Matrices, q.Extras, q.Timed = program.Vectors, nil, nil, false
	for _, node := range nodes {
		q.Extras = append(q.Extras, program.Extra{Node: node})
	}
	return write(&q, q.Wants(nil), false)
}

func write(p *program.Program, wants []program.Want, once bool) (Text, error) {
	n := len(p.Nodes)
	w := &writer{
		p: p, wants: wants, once: once, uses: make([]int, n), rows: make([]bool, n), drawn: make([]bool, n), sieve: make([]bool, n), named: make([]bool, n), cost: make([]int, n),
		reads: make([]marks, n), loose: marks{}, between: make([]bool, n), raw: make([]bool, n), made: map[int]bool{}, claimed: -1,
	}
	w.survey()
	for i, ways := range layout.OnDevice(p) {
		w.between[i] = ways == layout.Between && p.Nodes[i].Layout != program.Usual
		w.text.Between = w.text.Between || w.between[i] && w.wants[i] != 0
	}
	w.WriteString("#include \"program_result.cuh\"\n")
	if slices.ContainsFunc(p.Nodes, func(n program.Node) bool { return n.Type.Kind == program.Dense }) {
		w.WriteString("#include \"program_dense.cuh\"\n")
	}
	if w.text.Between {
		w.WriteString("#include \"program_between.cuh\"\n")
	}
	w.WriteString(opening + "  List seeds;\n")
	if w.text.Between {
		w.line("float lost = 0;")
	}
	if p.Timed {
		w.step("m.time(%d)", len(p.Nodes)+1)
	}
	w.claimed = w.ofSeeds()
	w.step("m.seeds(seeds, %t)", w.claimed >= 0)
	for i := range p.Nodes {
		if w.wants[i] != 0 {
			w.node(i)
			w.mark(i)
		}
	}
	if once {
		w.result()
	} else {
		w.line("char* to = m.a.out;")
		for _, e := range p.Extras {
			w.keep(e.Node)
		}
	}
	w.WriteString(closing)
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
		if w.recalls(n) {
			continue
		}
		for k, in := range n.In {
			if w.p.TakesValues(i, k, w.wants[i]) {
				w.uses[in]++
			}
			if n.Op == program.Multiply {
				// Each lot of numbers of a row asks for the value again.
				w.uses[in]++
			}
		}
		if n.Type.Kind != program.Matrix && n.Type.Kind != program.Scalar && !w.united(i) {
			number(n.Type.Along)
		}
		if n.Op == program.Collective {
			number(w.p.RowsOf(w.p.Nodes[n.In[0]].Type.Edges))
		}
	}
	for i := range w.p.Nodes {
		w.raw[i] = w.united(i) && !w.rows[w.typeOf(i).Along.Node]
	}
	for k, m := range w.p.Matrices {
		if !w.p.Bare[k] {
			w.uses[m]++
		}
	}
	for _, e := range w.p.Extras {
		w.uses[e.Node]++
	}
	for i := range w.p.Nodes {
		w.drawn[i] = w.p.Nodes[i].Op == program.Slice && !w.rows[i]
	}
	taken := func(i int) { w.drawn[w.typeOf(i).Edges] = false }
	for i := range w.p.Nodes {
		n := &w.p.Nodes[i]
		if w.wants[i] == 0 || w.recalls(n) {
			continue
		}
		if a := n.Type.Along; n.Type.Kind != program.Matrix && n.Type.Kind != program.Scalar && a.Space == program.Columns {
			w.drawn[a.Node] = false
		}
		for _, in := range n.In {
			if w.typeOf(in).Kind == program.Matrix && (n.Op != program.Individual || len(n.In) > 1 || w.p.Nodes[in].Op != program.Slice) {
				taken(in)
			}
		}
	}
	for _, m := range w.p.Matrices {
		taken(m)
	}
	for _, e := range w.p.Extras {
		if w.typeOf(e.Node).Kind == program.Matrix {
			taken(e.Node)
		}
	}
	for i := range w.p.Nodes {
		w.sieve[i] = w.sieved(i)
		w.named[i] = w.p.Nodes[i].Op == program.Whole && !w.listed(i)
	}
	for i := range w.p.Nodes {
		// The edges that stay have their values from the graph.
		if n := &w.p.Nodes[i]; n.Op == program.Filter && w.wants[i] != 0 && w.sieve[n.In[0]] && w.p.TakesValues(i, 0, w.wants[i]) {
			w.uses[n.In[0]]--
		}
	}
}

// listed says that somebody takes edges of the whole graph, and not its columns alone, as A[R, :] does.
func (w *writer) listed(whole int) bool {
	of := func(i int) bool { t := w.typeOf(i); return t.Kind == program.Matrix && t.Edges == whole }
	for i := range w.p.Nodes {
		if n := &w.p.Nodes[i]; w.wants[i] != 0 && !w.recalls(n) && n.Op != program.Column && slices.ContainsFunc(n.In, of) {
			return true
		}
	}
	return slices.ContainsFunc(w.p.Matrices, of) || slices.ContainsFunc(w.p.Extras, func(e program.Extra) bool { return of(e.Node) })
}

// sieved says that a slice is taken by one filter and by what that asks of each edge alone, once; what is of columns
// may be asked for too. Its weights, and maps of them, are made where the filter looks at an edge.
func (w *writer) sieved(slice int) bool {
	s := &w.p.Nodes[slice]
	if s.Op != program.Slice || w.wants[slice] == 0 || w.drawn[slice] || w.rows[slice] {
		return false
	}
	of := func(i int) bool { t := w.typeOf(i); return t.Kind == program.Matrix && t.Edges == slice }
	filters := 0
	for i := range w.p.Nodes {
		n := &w.p.Nodes[i]
		if w.wants[i] == 0 || w.recalls(n) || !slices.ContainsFunc(n.In, of) {
			continue
		}
		switch {
		case n.Op == program.Filter && n.In[0] == slice && of(n.In[1]):
			filters++
		case n.Op == program.Dot:
			return false
		case of(i):
			if w.uses[i] > 1 {
				return false
			}
		case n.Op != program.Column && (n.Op != program.Count || n.Axis != 0 || n.Type.Kind != program.Vector):
			return false
		}
	}
	given := slices.ContainsFunc(w.p.Matrices, of)
	return filters == 1 && !given && !slices.ContainsFunc(w.p.Extras, func(e program.Extra) bool { return of(e.Node) })
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, "  "+format+"\n", args...) }

// step is a line that may end the program. All threads meet before it where something was written since they did.
func (w *writer) step(format string, args ...any) {
	w.line("m.sync();")
	clear(w.loose)
	w.apart(format, args...)
}

// apart is a step that reads nothing of what was written since then, before all threads meet in it.
func (w *writer) apart(format string, args ...any) {
	w.line("if (!"+format+") return;", args...)
}

// reader is a step that reads the values of a node, and nothing else that may be new.
func (w *writer) reader(node int, format string, args ...any) {
	for name := range w.reads[node] {
		if w.loose[name] {
			w.step(format, args...)
			return
		}
	}
	w.apart(format, args...)
}

// keep writes what makes a node's values those of a graph.
func (w *writer) keep(i int) {
	n, v := "1", fmt.Sprintf("[&](u32) -> double { return x%d; }", i)
	if t := w.typeOf(i); t.Kind == program.Dense {
		w.step("keep_rows<%s>(m, to, %s.n, r%d)", w.width(i), list(t.Along), i)
		return
	}
	if w.typeOf(i).Kind == program.Vector {
		n, v = list(w.typeOf(i).Along)+".n", fmt.Sprintf("v%d", i)
	}
	w.step("keep(m, to, %s, %s)", n, v)
}

// recalls says that a node is read where it was made for the graph.
func (w *writer) recalls(n *program.Node) bool {
	return w.once && n.Keeps()
}

// recalled writes what reads them.
func (w *writer) recalled(i int) {
	w.text.Once = append(w.text.Once, i)
	at := len(w.text.Arrays)
	w.text.Arrays = append(w.text.Arrays, Array{Once: len(w.text.Once)})
	if w.typeOf(i).Kind == program.Dense {
		w.reads[i] = marks{}
		w.line("auto r%d = [&](u32 i, u32 k) -> float { return ((const float*)m.a.arrays[%d])[(u64)i * %s + k]; };", i, at, w.width(i))
		return
	}
	if w.typeOf(i).Kind == program.Scalar {
		w.line("const double x%[1]d = m.named<ARRAY_%[2]d>(%[2]d, 0);", i, at)
		return
	}
	w.values(i, "", fmt.Sprintf("m.named<ARRAY_%[1]d>(%[1]d, i)", at), 1, true)
}

// mark ends the time of a node.
func (w *writer) mark(i int) {
	if w.p.Timed {
		w.line("m.mark(%d);", i)
	}
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
	return w.placeOf(Array{Name: name, Vertex: vertex})
}

func (w *writer) placeOf(a Array) int {
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
	if w.recalls(n) {
		w.recalled(i)
		return
	}
	switch n.Type.Kind {
	case program.List:
		w.list(i, n)
	case program.Matrix:
		w.matrix(i, n)
	case program.Vector:
		w.vector(i, n)
	case program.Scalar:
		w.scalar(i, n)
	case program.Dense:
		w.dense(i, n)
	}
}

func (w *writer) list(i int, n *program.Node) {
	l := fmt.Sprintf("l%d", i)
	w.line("List %s;", l)
	switch n.Op {
	case program.Seeds:
		w.line("%s = seeds;", l)
	case program.Column:
		of := w.edges(n.In[0]) + ".columns"
		if n.Type.Along.Space == program.All {
			of = "m.all"
		}
		w.line("%s = %s;", l, of)
	case program.Row:
		if w.raw[i] {
			w.line("%[1]s = List{e%[2]d.n, e%[2]d.row};", l, n.Type.Along.Node)
			break
		}
		w.line("%s = %s;", l, list(n.Type.Along))
	case program.Unique:
		w.distinctOf(i, i, l, "unique", fmt.Sprintf("l%d", n.In[0]))
	case program.Union:
		w.distinctOf(i, i, l, "unite", fmt.Sprintf("l%d, l%d", n.In[0], n.In[1]))
	case program.Concat:
		w.step("join(m, %s, l%d, l%d)", l, n.In[0], n.In[1])
	case program.Pick:
		w.step("some(m, %s, l%d, [&](u32 i) -> u32 { return v%d(i) != 0; })", l, n.In[0], n.In[1])
	case program.Draw:
		if n.Replace && n.K >= 0 {
			w.text.Cells += 8
			w.step("draw_again(m, %s, %s, %d, %d, %d, v%d)", l, list(w.typeOf(n.In[0]).Along), n.K, i, n.Site, n.In[0])
			return
		}
		w.text.Cells += selectCells + 8
		w.step("draw(m, %s, %s, %d, %d, %d, v%d)", l, list(w.typeOf(n.In[0]).Along), n.K, i, n.Site, n.In[0])
	case program.Roots:
		w.step("roots(m, %s, %d, %d)", l, n.K, n.Site)
		if !w.next(i, func(next int) bool { n := &w.p.Nodes[next]; return n.Op == program.Walk && n.In[0] == i }) {
			w.line("m.sync();")
		}
	case program.Walk:
		// A root is read by the thread that makes it.
		step := w.step
		if w.p.Nodes[n.In[0]].Op == program.Roots && n.In[0] == i-1 {
			step = w.apart
		}
		claims := w.next(i, func(next int) bool {
			n := &w.p.Nodes[next]
			if n.Op != program.Unique || n.In[0] != i {
				return false
			}
			w.claimed = next
			return true
		})
		step("walk(m, %s, l%d, %d, %d, %t)", l, n.In[0], n.K, n.Site, claims)
	}
}

// matrix writes the edges of a matrix that has its own, and its values.
func (w *writer) matrix(i int, n *program.Node) {
	if n.Chooses() {
		if w.drawn[i] || w.named[i] {
			return
		}
		if w.sieve[i] {
			w.line("Sieve e%d;", i)
		} else {
			w.line("Edges e%d;", i)
		}
		if w.rows[i] {
			w.text.Numberings++
		}
		if numbered := w.choose(i, n); w.rows[i] {
			if !numbered {
				w.step("number_rows(m, e%d)", i)
			}
			w.loose[fmt.Sprintf("e%d", i)] = true
		}
	}
	if w.wants[i]&program.WantValues == 0 || w.sieve[i] && w.uses[i] == 0 {
		return
	}
	w.reads[i] = marks{}
	if n.Op == program.Dot {
		w.dot(i, n)
		return
	}
	expression, cost := w.element(i, n)
	w.values(i, w.edges(i)+".n", expression, cost, w.sieve[w.typeOf(i).Edges] || cost <= 6 || w.uses[i] <= 1 && cost <= 40)
}

// distinct is a list of the distinct vertices of list l, for node i.
func (w *writer) distinct(i, l int) string {
	if w.typeOf(l).Distinct {
		return fmt.Sprintf("l%d", l)
	}
	d := fmt.Sprintf("d%d", i)
	w.line("List %s;", d)
	w.distinctOf(i, -1, d, "unique", fmt.Sprintf("l%d", l))
	return d
}

// choose writes the edges of a matrix, and says whether their rows are numbered where that is asked for.
func (w *writer) choose(i int, n *program.Node) (numbered bool) {
	c := ""
	if n.Op >= program.Individual {
		c = w.edges(n.In[0])
	}
	switch n.Op {
	case program.Whole:
		w.ranges(i, "m.all")
		w.step("slice(m, e%[1]d, m.all, w%[1]d, %[2]t)", i, w.rows[i])
		return w.rows[i]
	case program.Slice:
		columns := w.distinct(i, n.In[0])
		w.ranges(i, columns)
		if w.sieve[i] {
			w.line("m.sync();")
			w.line("sieve(e%[1]d, %[2]s, w%[1]d);", i, columns)
			return false
		}
		w.step("slice(m, e%[1]d, %[2]s, w%[1]d, %[3]t)", i, columns, w.rows[i])
		return w.rows[i]
	case program.Cross:
		w.text.Numberings++
		if w.between[i] {
			w.text.Numberings++
			w.text.ByRows = w.text.ByRows || n.Layout == program.Other
			w.line("const u32* c%d;", i)
			w.step("between(m, e%d, c%d, lost, l%d, l%d, %t)", i, i, n.In[0], n.In[1], n.Layout == program.Other)
			break
		}
		if !w.rows[i] {
			w.crossed = marked{i, w.text.Numberings}
		}
		w.ranges(i, fmt.Sprintf("l%d", n.In[1]))
		w.line("const u32* c%d;", i)
		w.apart("cross(m, e%[1]d, c%[1]d, l%[2]d, l%[3]d, w%[1]d)", i, n.In[0], n.In[1])
	case program.Dependent:
		w.text.Cells += 4
		w.step("dependent(m, e%d, %s, %d, %d, v%d)", i, c, i, n.Site, n.In[1])
	case program.Filter:
		if w.sieve[n.In[0]] {
			w.step("sift(m, e%d, %s, [&](u32 i) -> u32 { return v%d(i) != 0; })", i, c, n.In[1])
			return false
		}
		w.step("filter(m, e%d, %s, [&](u32 i) -> u32 { return v%d(i) != 0; })", i, c, n.In[1])
	case program.TopK:
		w.text.Cells += 4
		w.step("top_k(m, e%d, %s, %d, v%d)", i, c, n.K, n.In[1])
	case program.Merge:
		w.step("merge(m, e%d, %s, %s)", i, c, w.edges(n.In[1]))
	case program.Individual:
		switch {
		case w.drawn[n.In[0]]:
			w.neighbors(i, n)
		case len(n.In) == 1:
			w.step("individual(m, e%d, %s, %d, %t, %d)", i, c, n.K, n.Replace, n.Site)
		case n.Replace && n.K >= 0:
			w.text.Cells += 4
			w.step("individual_again(m, e%d, %s, %d, %d, %d, v%d)", i, c, n.K, i, n.Site, n.In[1])
		default:
			w.text.Cells += 8
			w.step("individual_by(m, e%d, %s, %d, %d, %d, v%d)", i, c, n.K, i, n.Site, n.In[1])
		}
	case program.Collective:
		return w.collective(i, n, c)
	}
	return false
}

// collective chooses rows: those of C, or all vertices where C is the whole graph.
func (w *writer) collective(i int, n *program.Node, c string) (numbered bool) {
	edges := w.typeOf(n.In[0]).Edges
	numbered = w.rows[i] && w.p.RowsOf(edges).Space != program.All
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
		w.text.Cells += 8
		w.line("const u32* t%d;", i)
		w.step("collective_again(m, e%d, t%d, %s, %s, %d, %d, %d, %t, %s, %s, %s)", i, i, c, rows, n.K, i, n.Site, numbered, w.claims(i, numbered, c+".columns"), row, p)
		return numbered
	}
	w.text.Cells += selectCells + 8
	w.step("collective(m, e%d, %s, %s.n, %d, %d, %d, %t, %s, %s, %s, %s)", i, c, rows, n.K, i, n.Site, numbered, w.claims(i, numbered, c+".columns"), rows, row, p)
	return numbered
}

// groups are the rows of edges: their list, and of an edge its row's place.
func (w *writer) groups(edges int) (rows, row string) {
	e := fmt.Sprintf("e%d", edges)
	if w.p.RowsOf(edges).Space == program.All {
		return "m.all", fmt.Sprintf("[&](u32 i) -> u32 { return (u32)%s.row[i]; }", e)
	}
	return e + ".rows", fmt.Sprintf("[&](u32 i) -> u32 { return %s.number[i]; }", e)
}
