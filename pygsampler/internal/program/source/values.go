package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// values writes the functor of a node's values: an expression of i, or what is stored of it.
func (w *writer) values(i int, n, expression string, cost int, inline bool) {
	if inline {
		w.cost[i] = cost
		w.line("auto v%d = [&](u32 i) -> double { return %s; };", i, expression)
		return
	}
	w.line("const double* s%d;", i)
	w.reader(i, "store(m, s%d, %s, [&](u32 i) -> double { return %s; })", i, n, expression)
	w.stored(i)
}

// stored writes the functor of values that a step has left in s.
func (w *writer) stored(i int) {
	w.cost[i] = 1
	name := fmt.Sprintf("s%d", i)
	w.loose[name], w.reads[i] = true, marks{name: true}
	w.line("auto v%d = [&](u32 i) -> double { return s%d[i]; };", i, i)
}

// random is the number of a node or an edge.
func random(n *program.Node, purpose, of string) string {
	if n.Batches > 1 {
		return fmt.Sprintf("m.random(%d, %s, %s, %d)", n.Site, purpose, of, n.Batches)
	}
	return fmt.Sprintf("m.random(%d, %s, %s)", n.Site, purpose, of)
}

// element returns the value of edge i of a matrix as an expression, and its cost.
func (w *writer) element(at int, n *program.Node) (expression string, cost int) {
	e := w.edges(at)
	switch n.Op {
	case program.Whole, program.Slice, program.Cross:
		if w.p.Weight == "" {
			return "1.0", 1
		}
		return fmt.Sprintf("m.named<ARRAY_%[1]d>(%[1]d, m.edge_id(%[2]s.place[i]))", w.array(w.p.Weight, false), e), 2
	case program.Data:
		return fmt.Sprintf("m.named<ARRAY_%[1]d>(%[1]d, m.edge_id(%[2]s.place[i]))", w.array(n.Name, false), e), 2
	case program.Kept:
		return fmt.Sprintf("m.kept(%s.place[i])", e), 12
	case program.Random:
		return random(n, "PURPOSE_EDGES", "m.edge_id("+e+".place[i])"), 8
	case program.Individual, program.Collective, program.Dependent, program.Filter, program.TopK, program.Extract:
		if w.drawn[n.In[0]] || w.sieve[n.In[0]] {
			return w.element(at, &program.Node{Op: program.Slice})
		}
		w.takes(at, n.In[0])
		return fmt.Sprintf("v%d(%s.parent[i])", n.In[0], e), w.cost[n.In[0]] + 1
	case program.Merge:
		c, d, first := n.In[0], n.In[1], w.edges(n.In[0])
		w.takes(at, c)
		w.takes(at, d)
		return fmt.Sprintf("%s.parent[i] < %s.n ? v%d(%s.parent[i]) : v%d(%s.parent[i] - %s.n)", e, first, c, e, d, e, first),
			w.cost[c] + w.cost[d] + 1
	}
	edges := n.Type.Edges
	if n.Op == program.Independent {
		r := &w.p.Nodes[n.In[1]]
		w.takes(at, n.In[1])
		return fmt.Sprintf("m.copy(%[1]d, %[2]s.place[i]) ? m.random_of_copy(%[3]d, %[2]s.row[i], %[2]s.place[i], %[4]d) : %[5]s",
			w.placeOf(Array{Copies: true}), e, r.Site, max(r.Batches, 1), w.along(n.In[1], edges, 1)), w.cost[n.In[1]] + 1
	}
	return w.mapped(n, func(in int) string {
		w.takes(at, in)
		if w.typeOf(in).Kind == program.Vector {
			return w.along(in, edges, n.Axis)
		}
		return fmt.Sprintf("v%d(i)", in)
	})
}

// takes notes that node i reads what node `in` does.
func (w *writer) takes(i, in int) {
	if w.reads[i] == nil {
		w.reads[i] = marks{}
	}
	for name := range w.reads[in] {
		w.reads[i][name] = true
	}
	if t := w.typeOf(in); t.Kind == program.Vector && t.Along.Space == program.Rows {
		// An edge's row is asked for.
		w.reads[i][fmt.Sprintf("e%d", t.Along.Node)] = true
	}
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
	return fmt.Sprintf("v%d(%s)", vector, w.place(vector, edges, axis))
}

// place is which element of a vector, or which of dense rows, edge i knows.
func (w *writer) place(node, edges, axis int) string { return w.placeOfEdge(node, edges, axis, "i") }

// placeOfEdge is place of the edge at `at`.
func (w *writer) placeOfEdge(node, edges, axis int, at string) string {
	a, e := w.typeOf(node).Along, edges
	switch {
	case axis == 0 && a.Space == program.All:
		return fmt.Sprintf("(u32)e%d.columns(e%d.column[%s])", e, e, at)
	case axis == 0:
		return fmt.Sprintf("e%d.column[%s]", e, at)
	case a.Space == program.All:
		return fmt.Sprintf("(u32)e%d.row[%s]", e, at)
	}
	for ; e >= 0; e = w.p.Parent(e) {
		if a == w.p.RowsOf(e) {
			return fmt.Sprintf("e%d.number[%s]", e, at)
		}
		if n := &w.p.Nodes[e]; n.Op == program.Cross && a == w.typeOf(n.In[0]).Along {
			return fmt.Sprintf("c%d[%s]", e, at)
		}
		at = fmt.Sprintf("e%d.parent[%s]", e, at)
	}
	w.err = fmt.Errorf("%%%d: what its edges do not know: a fault of pygsampler", node)
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
		w.values(i, of+".n", fmt.Sprintf("m.named<ARRAY_%[1]d>(%[1]d, i)", w.array(n.Name, true)), 1, true)
		return
	case program.Degree:
		w.values(i, of+".n", "(double)(m.start((u64)i + 1) - m.start(i))", 2, true)
		return
	case program.Number:
		w.values(i, of+".n", "(double)i", 1, true)
		return
	case program.Random:
		made := random(n, "PURPOSE_CANDIDATES", "i")
		if n.Batches <= 1 && slices.Contains(w.sieve, true) {
			made = fmt.Sprintf("m.random_here(%d, PURPOSE_CANDIDATES, i)", n.Site)
		}
		w.values(i, of+".n", made, 8, true)
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
	case program.IsIn:
		w.isIn(i, n, of)
		return
	case program.Cap:
		w.text.Cells += 4
		w.line("const double* %s;", s)
		w.step("cap(m, %s, %s, %d, %d, v%d)", s, of, n.K, i, n.In[0])
		w.stored(i)
		return
	}
	if n.Op == program.Labor {
		w.line("const double* %s;", s)
		if w.p.Ones(n.In[0]) && w.p.Ones(n.In[1]) {
			w.step("labor_of_ones(m, %s, %s, %d)", s, w.edges(n.In[0]), n.K)
		} else {
			w.text.Cells += 12
			w.step("labor(m, %s, %s, %d, %d, v%d, v%d)", s, w.edges(n.In[0]), n.K, i, n.In[0], n.In[1])
		}
		w.stored(i)
		return
	}
	if n.Op == program.Level {
		w.text.Cells += 12
		w.line("const double* %s;", s)
		k := fmt.Sprintf("v%d(c)", n.In[1])
		if w.typeOf(n.In[1]).Along.Space == program.All {
			k = fmt.Sprintf("v%d((u32)%s.columns(c))", n.In[1], w.edges(n.In[0]))
		}
		w.step("level(m, %s, %s, %d, v%d, [&](u32 c) -> double { return %s; })", s, w.edges(n.In[0]), i, n.In[0], k)
		w.stored(i)
		return
	}
	element := func(in int) string {
		w.takes(i, in)
		if w.typeOf(in).Along.Space == program.All && n.Type.Along.Space != program.All {
			return fmt.Sprintf("v%d((u32)%s(i))", in, of)
		}
		return fmt.Sprintf("v%d(i)", in)
	}
	expression, cost := "", 0
	if n.Op == program.Entry {
		w.takes(i, n.In[0])
		expression, cost = fmt.Sprintf("(double)r%d(i, %d)", n.In[0], n.K), 2
	} else if w.p.Inherits(n) {
		// By the row's first edge.
		edges := n.Type.Along.Node
		w.takes(i, n.In[0])
		w.reads[i][fmt.Sprintf("e%d", edges)] = true
		expression, cost = fmt.Sprintf("v%d(%s)", n.In[0], w.placeOfEdge(n.In[0], edges, 1, fmt.Sprintf("e%d.first[i]", edges))), w.cost[n.In[0]]+3
	} else if n.Op == program.Gather {
		expression, cost = element(n.In[0]), w.cost[n.In[0]]+1
	} else {
		expression, cost = w.mapped(n, element)
	}
	// All edges that a sieve looks at would make it again.
	most := 6
	if a := n.Type.Along; a.Space == program.Columns && w.sieve[a.Node] {
		most = 3
	}
	w.values(i, of+".n", expression, cost, cost <= most || n.Type.Along.Space == program.All && cost <= 64)
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
	if n.Axis != 0 && (n.Op == program.Sum || mean) {
		w.text.Cells += 4
		w.line("GroupSums g%d;", i)
		w.reader(matrix, "sum_groups(m, g%d, %s.n, %s.n, %d, %t, %s, v%d)", i, rows, e, i, mean, row, matrix)
		clear(w.loose)
		w.values(i, "", fmt.Sprintf("group_sum(g%d, i)", i), 4, true)
		return
	}
	w.line("const double* s%d;", i)
	switch {
	case n.Op == program.Count:
		w.step("count_groups(m, s%d, %s.n, %s.n, %s)", i, rows, e, row)
	case n.Axis == 0 && (n.Op == program.Sum || mean):
		w.text.Cells += 4
		w.reader(matrix, "sum_columns(m, s%d, %s, %t, v%d)", i, e, mean, matrix)
	case n.Axis == 0:
		w.step("extreme_columns(m, s%d, %s, %t, v%d)", i, e, largest, matrix)
	default:
		w.step("extreme_groups(m, s%d, %s.n, %s.n, %t, %s, v%d)", i, rows, e, largest, row, matrix)
	}
	w.stored(i)
}

func (w *writer) scalar(i int, n *program.Node) {
	x := fmt.Sprintf("x%d", i)
	if n.Op == program.Item {
		w.line("const double %s = (double)((const float*)m.a().arrays[%d])[%d];", x, w.input(n), n.K)
		return
	}
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
