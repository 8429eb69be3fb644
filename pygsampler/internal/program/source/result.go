package source

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// result writes the batch.
func (w *writer) result() {
	blocks := len(w.p.Matrices)
	w.line("Batching b(m, %d, %d);", blocks, w.p.NumExtras())
	before := w.text.Numberings
	w.text.Numberings++
	if w.p.Result == program.Subgraph {
		w.subgraph(w.crossed.numberings == before)
	} else {
		w.blocks()
	}
	for k, x := range w.p.Extras {
		t := w.typeOf(x.Node)
		switch t.Kind {
		case program.Matrix:
			w.edgeValues(k, x)
		case program.List:
			w.step("extra_list(m, b, %d, %d, l%d)", blocks, k, x.Node)
		case program.Vector:
			w.step("extra_values(m, b, %d, %d, %s.n, v%d)", blocks, k, list(t.Along), x.Node)
		case program.Dense:
			w.step("extra_rows<%s>(m, b, %d, %d, %s.n, r%d)", w.width(x.Node), blocks, k, list(t.Along), x.Node)
		default:
			if w.err == nil {
				w.err = fmt.Errorf("return: %q: expected a vector or a list, got %s", x.Name, t.Kind)
			}
		}
	}
	if w.p.Timed {
		w.mark(len(w.p.Nodes))
		w.step("extra_times(m, b, %d, %d, %d)", blocks, len(w.p.Extras), len(w.p.Nodes)+1)
	}
	if w.text.Between {
		// On its way the word has what the batch lost by its layouts.
		w.line("b.set(WORD_CAPACITY, (u64)lost);")
	}
	w.step("b.end()")
}

// valuesOf returns the functor of the k-th matrix's values, which may be absent if they are left
// out.
func (w *writer) valuesOf(k int) string {
	if w.p.Bare[k] {
		return "[](u32) -> double { return 1.0; }"
	}
	return fmt.Sprintf("v%d", w.p.Matrices[k])
}

// edgeValues writes values of a block's edges, in the order that they have there.
func (w *writer) edgeValues(extra int, x program.Extra) {
	blocks, k := len(w.p.Matrices), x.Block-1
	e := w.edges(x.Node)
	switch {
	case w.p.Result == program.Subgraph || w.nested():
		w.step("extra_values(m, b, %d, %d, %s.n, v%d)", blocks, extra, e, x.Node)
	default:
		w.step("extra_edges(m, b, %d, %d, dst%d, %s, %s, v%d)", blocks, extra, k, e, w.destination(k), x.Node)
	}
}

// destination returns the functor from a column of a matrix to a destination of its block.
func (w *writer) destination(k int) string {
	return fmt.Sprintf("[&](u32 c) { return o.before[m.first(%s.columns(c))]; }", w.edges(w.p.Matrices[k]))
}

// blocks numbers the nodes by first occurrence, the innermost matrix's first, and writes the blocks.
func (w *writer) blocks() {
	if w.nested() {
		w.nest()
		return
	}
	total := "(u64)seeds.n"
	for _, m := range w.p.Matrices {
		e := w.edges(m)
		total += fmt.Sprintf(" + %s.columns.n + %s.n", e, e)
	}
	w.line("Occurrences o;")
	w.step("room(m, o, %s)", total)
	w.line("occur(m, o, seeds.n, seeds);")
	for k := len(w.p.Matrices) - 1; k >= 0; k-- {
		e := w.edges(w.p.Matrices[k])
		w.line("occur(m, o, %s.columns.n, %s.columns);", e, e)
		w.line("const u32 from%d = o.n;", k)
		w.line("occur(m, o, %s.n, [&](u32 i) { return %s.row[i]; });", e, e)
		w.line("const u32 to%d = o.n;", k)
		w.line("Destinations dst%d;", k)
		w.apart("dst%d.room(m, from%d)", k, k)
	}
	w.declare("u32", "numbered")
	w.step("number(m, o, numbered)")
	for k, m := range w.p.Matrices {
		w.line("dst%d.count(m, o.before[from%d], %s, %s);", k, k, w.edges(m), w.destination(k))
	}
	w.destinations(len(w.p.Matrices))
	for k, m := range w.p.Matrices {
		e := w.edges(m)
		w.step("block(m, b, %d, o.before[to%d], dst%d, %s, %s, [&](u32 i) { return o.before[m.first(%s.row[i])]; }, %t, %s)",
			k, k, k, e, w.destination(k), e, w.p.Valued(k), w.valuesOf(k))
	}
	w.step("vertices(m, b, o, numbered, seeds, o.before[seeds.n])")
}

// columns returns the list that the columns of a matrix come from; -1: another kind of matrix.
func (w *writer) columns(matrix int) int {
	edges := w.typeOf(matrix).Edges
	for {
		switch n := &w.p.Nodes[edges]; {
		case n.Op == program.Slice, n.Op == program.Extract:
			return w.p.ColumnList(edges)
		case n.Op >= program.Individual && n.Op <= program.Merge:
			edges = w.typeOf(n.In[0]).Edges
		default:
			return -1
		}
	}
}

// nested reports whether the columns of each matrix are the nodes that were numbered before, in
// their order: the seeds, or the columns followed by the rows of the next matrix.
func (w *writer) nested() bool {
	seeds := func(list int) bool {
		n := &w.p.Nodes[list]
		return n.Op == program.Seeds || n.Op == program.Unique && w.p.Nodes[n.In[0]].Op == program.Seeds
	}
	before := -1
	for k := len(w.p.Matrices) - 1; k >= 0; k-- {
		list := w.columns(w.p.Matrices[k])
		if list < 0 {
			return false
		}
		if before < 0 {
			if !seeds(list) {
				return false
			}
		} else {
			n := &w.p.Nodes[list]
			if n.Op != program.Union || n.In[0] != before && !(seeds(n.In[0]) && seeds(before)) {
				return false
			}
			row := &w.p.Nodes[n.In[1]]
			if row.Op != program.Row || w.typeOf(row.In[0]).Edges != w.typeOf(w.p.Matrices[k+1]).Edges {
				return false
			}
		}
		before = list
	}
	return before >= 0
}

// nest writes such blocks: an edge has its position in the matrix.
func (w *writer) nest() {
	outer := w.edges(w.p.Matrices[0])
	rows := fmt.Sprintf("List{%s.n, %s.row}", outer, outer)
	if w.rows[w.typeOf(w.p.Matrices[0]).Edges] {
		rows = outer + ".rows"
	}
	w.declare("Nested", "o")
	w.declare("u32", "numbered")
	w.step("nest(m, o, %s.columns, %s, numbered, %t)", outer, rows, w.nests)
	sources := "numbered"
	for k, m := range w.p.Matrices {
		e := w.edges(m)
		w.step("block_in_place(m, b, %d, %s, %s, [&](u32 i) { return o.number(m, %s.row[i]); }, %t, %s)", k, sources, e, e, w.p.Valued(k), w.valuesOf(k))
		sources = e + ".columns.n"
	}
	w.step("vertices(m, b, o, numbered, seeds, %s)", sources)
}

// destinations writes the offsets of the edges of each destination, for a number of blocks: three
// per barrier.
func (w *writer) destinations(blocks int) {
	w.line("m.loosen();")
	for k := 0; k < blocks; k += 3 {
		of := [3]string{}
		for j := range of {
			if of[j] = fmt.Sprintf("dst%d", k+j); k+j >= blocks {
				of[j] = fmt.Sprintf("none%d", k+j)
				w.line("Destinations %s;", of[j])
			}
		}
		w.step("destinations(m, %s, %s, %s)", of[0], of[1], of[2])
	}
}

// subgraph has the nodes of a list, in order: they are the columns of the matrix, and claimed by their numbers.
func (w *writer) subgraph(claimed bool) {
	m := w.p.Matrices[0]
	e, of := w.edges(m), fmt.Sprintf("l%d", w.p.List)
	// They remain valid if nothing was numbered after their edges were found.
	if !claimed || w.crossed.node != w.chosenFrom(m) {
		w.line("m.sync();")
		w.line("m.claim(%s.n, %s);", of, of)
		clear(w.loose)
	}
	w.step("block_in_place(m, b, 0, %s.n, %s, [&](u32 i) { return m.first(%s.row[i]); }, %t, %s)", of, e, e, w.p.Valued(0), w.valuesOf(0))
	w.step("subgraph_vertices(m, b, %s, seeds)", of)
}

// chosenFrom is the node of which a matrix has some of the edges.
func (w *writer) chosenFrom(matrix int) int {
	e := w.typeOf(matrix).Edges
	for w.p.Parent(e) >= 0 {
		e = w.p.Parent(e)
	}
	return e
}
