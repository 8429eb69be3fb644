package source

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// extract writes the columns of a list's nodes, with the edges of c: each column of the list looks up which of c's it is,
// one above its place there, or 0. Steps that there are make it, so that no other program's kernel has anything of it.
func (w *writer) extract(i int, n *program.Node, c string) {
	columns := w.distinct(i, n.In[1])
	place := fmt.Sprintf("(double)%s(k) + 1", columns)
	w.line("m.sync();")
	if w.p.ColumnsOf(w.typeOf(n.In[0]).Edges).Space != program.All {
		w.text.Numberings++
		w.line("m.claim(%[1]s.columns.n, %[1]s.columns);", c)
		place = fmt.Sprintf("m.claimed(%[1]s(k)) ? (double)m.first(%[1]s(k)) + 1 : 0.0", columns)
	}
	w.line("const double* at%d;", i)
	w.apart("store(m, at%d, %s.n, [&](u32 k) -> double { return %s; })", i, columns, place)
	// Other threads read the results of the store at the next barrier, and the map is free once all
	// have passed it.
	w.line("m.barrier();")
	clear(w.loose)
	w.line("Edges of%d = %s;", i, c)
	w.line("of%d.columns = %s;", i, columns)
	w.line("auto count%[1]d = [&](u32 k) -> u32 { u32 at = (u32)at%[1]d[k]; return at ? %[2]s.begins[at] - %[2]s.begins[at - 1] : 0; };", i, c)
	column := fmt.Sprintf("u32 k = column_of(e%d.begins, %s.n, i);", i, columns)
	w.apart("pick(m, e%[1]d, of%[1]d, count%[1]d, [&](u32* parent) { m.each(e%[1]d.n, [&](u32 i) { %[2]s parent[i] = %[3]s.begins[(u32)at%[1]d[k] - 1] + i - e%[1]d.begins[k]; }); return true; })", i, column, c)
	// The function has left c's positions of columns there.
	w.line("m.each(e%[1]d.n, [&](u32 i) { %[2]s ((u32*)e%[1]d.column)[i] = k; });", i, column)
	w.line("m.barrier();")
}

// isIn writes along a list 1 for nodes that are claimed by another.
func (w *writer) isIn(i int, n *program.Node, of string) {
	w.text.Numberings++
	w.line("m.sync();")
	w.line("m.claim(l%[1]d.n, l%[1]d);", n.In[1])
	w.line("const double* s%d;", i)
	w.apart("store(m, s%d, %s.n, [&](u32 i) -> double { return m.claimed(%s(i)); })", i, of, of)
	// Otherwise an early thread would claim nodes again that others still look up.
	w.line("m.barrier();")
	w.stored(i)
	clear(w.loose)
}
