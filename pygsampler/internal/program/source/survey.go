package source

import (
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// survey counts the readers of each node, and finds the matrices whose rows are numbered.
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

// listed reports whether a node reads edges of the whole graph, in addition to its columns, as A[R,
// :] does.
func (w *writer) listed(whole int) bool {
	of := func(i int) bool { t := w.typeOf(i); return t.Kind == program.Matrix && t.Edges == whole }
	for i := range w.p.Nodes {
		if n := &w.p.Nodes[i]; w.wants[i] != 0 && !w.recalls(n) && n.Op != program.Column && slices.ContainsFunc(n.In, of) {
			return true
		}
	}
	return slices.ContainsFunc(w.p.Matrices, of) || slices.ContainsFunc(w.p.Extras, func(e program.Extra) bool { return of(e.Node) })
}

// sieved reports whether the only reader of a slice is one filter, together with the filter's
// inputs for each edge, once; values of columns may be read as well. Its weights, and maps of them,
// are computed where the filter reads an edge.
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
