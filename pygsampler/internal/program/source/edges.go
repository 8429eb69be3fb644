package source

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// matrix writes the edges of a matrix that has its own, and its values.
func (w *writer) matrix(i int, n *program.Node) {
	if n.Chooses() {
		if w.drawn[i] || w.named[i] {
			return
		}
		if w.sieve[i] {
			w.line("Sieve e%d;", i)
		} else {
			w.declare("Edges", "e%d", i)
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

// choose writes the edges of a matrix, and reports whether their rows are numbered, if requested.
func (w *writer) choose(i int, n *program.Node) (numbered bool) {
	c := ""
	if n.Op >= program.Individual {
		c = w.edges(n.In[0])
	}
	switch n.Op {
	case program.Whole:
		w.ranges(i, "m.all()")
		w.step("slice(m, e%[1]d, m.all(), w%[1]d, %[2]t)", i, w.rows[i])
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
		w.cross(i, n)
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
	case program.Extract:
		w.extract(i, n, c)
	case program.Merge:
		w.step("merge(m, e%d, %s, %s)", i, c, w.edges(n.In[1]))
	case program.Individual:
		switch {
		case w.drawn[n.In[0]]:
			w.neighbors(i, n)
		case len(n.In) == 1:
			w.step("individual(m, e%d, %s, %d, %t, %d)", i, c, n.K, n.Replace, n.Site)
		case n.Replace && n.K >= 0:
			w.text.Cells += 8
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

// cross writes A[R, S]: found among the in-edges of S, or among the out-edges of R.
func (w *writer) cross(i int, n *program.Node) {
	w.text.Numberings++
	if w.between[i] {
		w.text.Numberings++
		w.text.ByRows = w.text.ByRows || n.Layout == program.Other
		w.declare("const u32*", "c%d", i)
		w.step("between(m, e%d, c%d, lost, l%d, l%d, %t)", i, i, n.In[0], n.In[1], n.Layout == program.Other)
		return
	}
	if !w.rows[i] {
		w.crossed = marked{i, w.text.Numberings}
	}
	w.ranges(i, fmt.Sprintf("l%d", n.In[1]))
	w.declare("const u32*", "c%d", i)
	w.apart("cross(m, e%[1]d, c%[1]d, l%[2]d, l%[3]d, w%[1]d)", i, n.In[0], n.In[1])
}

// collective chooses rows: those of C, or all graph nodes if C is the whole graph.
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
		return "m.all()", fmt.Sprintf("[&](u32 i) -> u32 { return (u32)%s.row[i]; }", e)
	}
	return e + ".rows", fmt.Sprintf("[&](u32 i) -> u32 { return %s.number[i]; }", e)
}
