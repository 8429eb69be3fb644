// Package source generates CUDA from programs: one kernel each, whose steps are those of
// kernels/program/program.cuh and whose values are functors. A text is a function of the program's
// nodes only: it contains no names of arrays and results, so that no user text becomes code, and
// programs that differ in names only share a kernel.
package source

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
)

// Array is an array that a kernel reads, by its index in the list: an array of the graph, a cached
// value of the graph, or an input.
type Array struct {
	Name   string
	Vertex bool            // of nodes; else of edges, by their ids
	Rows   bool            // so many numbers of each node
	Input  *program.Tensor // nil: no input
	Once   int             // the place among the text's Once, from 1 on; 0: none of them
	Copies bool            // csc.Copies of the graph, or null
}

// Text is the source of a kernel, and the arguments of its launches.
type Text struct {
	Source     string
	Arrays     []Array
	Cells      int   // counters, 0 at first
	Numberings int   // tags of the node map
	Between    bool  // A[R, S] may be found by the out-edges of R
	ByRows     bool  // and is in any case, at one node at least
	Once       []int // nodes that are computed once for a graph: a double, or one or a row of them for each graph node
}

// Kernel is the kernel's name.
const Kernel = "program"

// types are the names of array types in kernels/program/program.cuh.
var types = [...]string{
	csc.Bool: "Bool", csc.Int8: "Int8", csc.Uint8: "UInt8", csc.Int16: "Int16", csc.Int32: "Int32", csc.Int64: "Int64",
	csc.Float32: "Float32", csc.Float64: "Float64",
}

// Widths are the bits of the integers that a kernel reads and writes: ids, positions in the CSC,
// its arrays (edge ids: 0 for none), and the edge ids of a batch. They are fixed at compile time,
// since a branch at each read is code, and code has to be fetched.
type Widths struct{ ID, Place, Indptr, EdgeID, OutEdge int }

// Type is the type of an array: numbers of a type, and the number of columns if it has rows.
type Type struct {
	DType csc.DType
	Width int64
}

// Program returns the kernel for these widths, and for arrays of these types.
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
	once    bool   // values that are cached with a graph are read instead of computed
	between []bool // for A[R, S]: the layout is chosen per batch, or fixed
	named   []bool // of the whole graph: its columns alone are taken, and its edges are not written down
	drawn   []bool // of a slice: nothing but uniform draws takes it, and it is not written down
	sieve   []bool // of a slice: what takes it is a filter and its test, and its edges are not written down
	cost    []int  // of an element, as far as its reader computes it
	reads   []marks
	loose   marks // what was written since all threads have surely met
	shared  int   // bytes of the variables in shared memory
	text    Text
	err     error

	raw     []bool       // a list of rows: those of all edges, one behind another, as who takes it has each once in any case
	made    map[int]bool // the offsets of the edges of a list's nodes were computed with the list, for the operators that choose among them
	claimed int          // the node whose nodes are claimed where they are written, all numberings before it being done; -1: none
	nests   bool         // the nodes of a batch have been claimed
	crossed marked       // the last A[list, list], whose rows are claimed by their places until the next numbering
}

// marked is a node, and how many numberings there had been.
type marked struct{ node, numberings int }

// marks are nodes whose values, or whose numbers of rows, are in memory.
type marks map[string]bool

// Code before and after a kernel's steps.
const (
	opening = "__device__ __forceinline__ void steps(Machine& m) {\n"
	closing = `}
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) ` + Kernel + `(const __grid_constant__ ProgramArgs a) {
  Machine m(a);
  steps(m);
  m.end();
}
`
)

// Turning returns the text that finds the out-edges of a graph.
func Turning() Text {
	return Text{Source: "#include \"program/result.cuh\"\n#include \"program/submatrix.cuh\"\n" + opening + "  if (!turn(m)) return;\n" + closing}
}

// Generate returns the program's text, or an error. The text reads the values that are cached with a
// graph.
func Generate(p *program.Program) (Text, error) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; (n.Op == program.Project || n.Op == program.Item) && n.Tensor == nil {
			return Text{}, fmt.Errorf("%%%d: %s: expected an input %q, got none", i, n.Op, n.Name)
		}
	}
	return write(p, p.Wants(func(i int) bool { return p.Nodes[i].Once }), true)
}

// NodeValues returns the text that computes the cached values for another text: the values of nodes,
// one after another, each aligned to a cache line.
func NodeValues(p *program.Program, nodes []int) (Text, error) {
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
	w.WriteString("#include \"program/result.cuh\"\n")
	if p.Dense() {
		w.WriteString("#include \"program/dense.cuh\"\n")
	}
	if w.text.Between {
		w.WriteString("#include \"program/submatrix.cuh\"\n")
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
		w.line("char* to = m.a().out;")
		for _, e := range p.Extras {
			w.keep(e.Node)
		}
	}
	w.WriteString(closing)
	w.text.Source = w.String()
	return w.text, w.err
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, "  "+format+"\n", args...) }

// Bytes of shared memory for the variables of a program, in addition to those of each kernel
// (ProgramShared). Both together are half of the shared memory of a multiprocessor of compute
// capability 7.5, so that two blocks run there.
const mostShared = 11 << 10

// sizes are the sizes of the declared types; kernels/program/result.cuh asserts them.
var sizes = map[string]int{"Edges": 96, "Ranges": 32, "Draws": 56, "List": 16, "Nested": 48, "const u32*": 8, "u32": 8}

// declare writes a variable of a step. It is in shared memory; in a long program, whose variables
// do not all fit, the last ones are private to each thread.
func (w *writer) declare(kind, name string, args ...any) {
	if w.shared+sizes[kind] <= mostShared {
		w.shared += sizes[kind]
		kind = "__shared__ " + kind
	}
	w.line(kind+" "+name+";", args...)
}

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

// keep writes the code that caches a node's values with a graph.
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

// recalls reports whether a node is read from the values that are cached with the graph.
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
		w.line("auto r%d = [&](u32 i, u32 k) -> float { return ((const float*)m.a().arrays[%d])[(u64)i * %s + k]; };", i, at, w.width(i))
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
	return "m.all()"
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
