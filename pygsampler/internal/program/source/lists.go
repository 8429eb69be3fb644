package source

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// list writes a list of nodes.
func (w *writer) list(i int, n *program.Node) {
	l := fmt.Sprintf("l%d", i)
	w.declare("List", "%s", l)
	switch n.Op {
	case program.Seeds:
		w.put(l, "seeds")
	case program.Column:
		of := w.edges(n.In[0]) + ".columns"
		if n.Type.Along.Space == program.All {
			of = "m.all()"
		}
		w.put(l, of)
	case program.Row:
		if w.raw[i] {
			w.put(l, fmt.Sprintf("List{e%[1]d.n, e%[1]d.row}", n.Type.Along.Node))
			break
		}
		w.put(l, list(n.Type.Along))
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
		w.apart("roots(m, %s, %d, %d)", l, n.K, n.Site)
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

// Properties of a list's nodes that are computed with the list save barriers later: where their
// edges are, or their draws, is counted where the nodes are written; and the next list to number is
// claimed where it is written.

// united reports whether a list is the rows of edges that only unions read: it need not be
// distinct. Rows that are chosen are distinct, and few.
func (w *writer) united(list int) bool {
	n := &w.p.Nodes[list]
	if n.Op != program.Row || n.Type.Along.Space != program.Rows || w.p.Nodes[n.Type.Along.Node].Op == program.Collective {
		return false
	}
	for i := range w.p.Nodes {
		taker := &w.p.Nodes[i]
		for k, in := range taker.In {
			if in == list && w.wants[i] != 0 && !(taker.Op == program.Union && k == 1) {
				return false
			}
		}
	}
	for _, e := range w.p.Extras {
		if e.Node == list {
			return false
		}
	}
	return w.p.Result != program.Subgraph || w.p.List != list
}

// next reports whether the next step that computes a list or edges, or that numbers nodes,
// satisfies a test; lists that exist already are no step.
func (w *writer) next(i int, is func(next int) bool) bool {
	for i++; i < len(w.p.Nodes); i++ {
		n := &w.p.Nodes[i]
		if w.wants[i] == 0 || w.recalls(n) || n.Op == program.Row || n.Op == program.Column || w.drawn[i] || n.Type.Kind == program.Matrix && !n.Chooses() {
			continue
		}
		if k := n.Type.Kind; k == program.List || k == program.Matrix || n.Op == program.IsIn {
			return is(i)
		}
	}
	return false
}

// ofSeeds is the first node that numbers nodes, where those are the seeds: they are claimed as they are read.
func (w *writer) ofSeeds() int {
	for i := range w.p.Nodes {
		n, of := &w.p.Nodes[i], -1
		if w.wants[i] == 0 || w.recalls(n) {
			continue
		}
		switch {
		case n.Op == program.Unique || n.Op == program.Slice && !w.drawn[i]:
			of = n.In[0]
		case n.Op == program.Individual && w.drawn[n.In[0]]:
			of = w.p.Nodes[n.In[0]].In[0]
		case n.Op == program.Union || n.Op == program.Extract || n.Op == program.IsIn || n.Op == program.Cross || n.Op == program.Walk || n.Op == program.Whole && w.rows[i]:
			return -1
		case w.rows[i]:
			return -1
		default:
			continue
		}
		if n.Op == program.Unique || !w.typeOf(of).Distinct {
			if w.p.Nodes[of].Op == program.Seeds {
				return i
			}
			return -1
		}
		if w.rows[i] {
			return -1
		}
	}
	return -1
}

// chooser returns the first reader of the columns of a list, whose edges or draws are then counted
// with the list; -1: there is none.
func (w *writer) chooser(list int) int {
	for i := list + 1; i < len(w.p.Nodes); i++ {
		n := &w.p.Nodes[i]
		if w.wants[i] == 0 || w.recalls(n) {
			continue
		}
		switch {
		case n.Op == program.Slice && !w.drawn[i] && n.In[0] == list, n.Op == program.Cross && n.In[1] == list && !w.between[i],
			n.Op == program.Individual && w.drawn[n.In[0]] && w.p.Nodes[n.In[0]].In[0] == list:
			return i
		}
	}
	return -1
}

// put writes what all threads know into what was declared, and lets the block meet.
func (w *writer) put(name, value string) {
	w.line("m.put(%s, %s);", name, value)
	w.line("m.meet();")
}

// where declares the offsets of the edges, or of the draws, of a chooser's columns, and which
// properties of them are known; a cross of a list that has just been computed may have it claimed.
func (w *writer) where(chooser int, claims bool) (about string) {
	if n := &w.p.Nodes[chooser]; n.Op == program.Individual {
		w.declare("Draws", "w%d", chooser)
		return fmt.Sprintf("DrawsAbout{Uniform{%d, %t}, %d}", n.K, n.Replace, n.Site)
	}
	w.declare("Ranges", "w%d", chooser)
	return fmt.Sprint(claims)
}

// distinct is a list of the distinct nodes of list l, for node i.
func (w *writer) distinct(i, l int) string {
	if w.typeOf(l).Distinct {
		return fmt.Sprintf("l%d", l)
	}
	d := fmt.Sprintf("d%d", i)
	w.declare("List", "%s", d)
	w.distinctOf(i, -1, d, "unique", fmt.Sprintf("l%d", l))
	return d
}

// distinctOf writes the distinct nodes of lists, for node i; as a list of the program's where list is not negative, else for
// what node i chooses.
func (w *writer) distinctOf(i, list int, name, step, lists string) {
	w.text.Numberings++
	claimed := w.claimed == i
	if claimed {
		w.claimed = -1
	}
	chooser := i
	if list >= 0 {
		chooser = w.chooser(list)
	} else if w.p.Nodes[i].Op == program.Extract {
		chooser = -1
	}
	if chooser < 0 {
		w.line("Alone w%d;", i)
		w.step("%s(m, %s, %s, %t, w%d, 0)", step, name, lists, claimed, i)
		return
	}
	n := &w.p.Nodes[chooser]
	about := w.where(chooser, list >= 0 && n.Op == program.Cross && n.In[0] == list && w.next(list, func(next int) bool { return next == chooser }))
	w.step("%s(m, %s, %s, %t, w%d, %s)", step, name, lists, claimed, chooser, about)
	w.made[chooser] = true
}

// ranges writes the offsets of the edges of a chooser's columns, unless they are known.
func (w *writer) ranges(chooser int, columns string) {
	if w.made[chooser] {
		return
	}
	w.step("ranges(m, w%d, %s, %s)", chooser, columns, w.where(chooser, false))
}

// neighbors writes draws from the edges of a list's nodes.
func (w *writer) neighbors(i int, n *program.Node) {
	of := w.p.Nodes[n.In[0]].In[0]
	columns := w.distinct(i, of)
	if !w.made[i] {
		w.step("draws(m, w%d, %s, %s)", i, columns, w.where(i, false))
	}
	w.step("neighbors(m, e%[1]d, %[2]s, w%[1]d, %[3]s)", i, columns, w.claims(i, !w.rows[i], columns))
}

// claims returns the part of the next numbering that the step with the edges of node i may claim: a
// list and the rows of those edges, or the nodes of the batch.
func (w *writer) claims(i int, may bool, columns string) string {
	before := ""
	if may && w.next(i, func(next int) bool {
		n := &w.p.Nodes[next]
		if n.Op != program.Union || w.p.Nodes[n.In[1]].Op != program.Row || w.typeOf(n.In[1]).Along.Node != i || n.In[0] > i {
			return false
		}
		before, w.claimed = fmt.Sprintf("l%d", n.In[0]), next
		return true
	}) {
		return fmt.Sprintf("Claims{true, %s}", before)
	}
	last := !w.next(i, func(int) bool { return true })
	if may && last && w.once && w.p.Result == program.Blocks && len(w.p.Matrices) > 0 && w.typeOf(w.p.Matrices[0]).Edges == i && w.nested() {
		w.nests = true
		return fmt.Sprintf("Claims{true, %s}", columns)
	}
	return "Claims{false}"
}
