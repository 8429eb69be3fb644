package passes

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// parsed is the program of indented lines.
func parsed(t testing.TB, text, weight string) *program.Program {
	t.Helper()
	p, err := program.Parse(trimmed(text), weight)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

func trimmed(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// marked is the program's text, "inline" or "once" behind the lines of nodes that are.
func marked(p *program.Program) string {
	lines := strings.Split(p.String(), "\n")
	for i, n := range p.Nodes {
		if n.Inline {
			lines[i] += " inline"
		}
		if n.Once {
			lines[i] += " once"
		}
		lines[i] += [...]string{"", " cheaper", " other"}[n.Layout]
	}
	return strings.Join(lines, "\n")
}

// Each pass alone: what it makes of a text; with no text behind the arrow, the same.
func TestPasses(t *testing.T) {
	for _, k := range []struct{ pass, what, in, out string }{
		{"fold", "constants", `
			%0 = seeds
			%1 = slice %0
			%2 = const value=3
			%3 = const value=4
			%4 = mul %2, %3
			%5 = neg %4
			%6 = mul %1, %5
			return blocks %6`, `
			%0 = seeds
			%1 = slice %0
			%2 = const value=3
			%3 = const value=4
			%4 = const value=12
			%5 = const value=-12
			%6 = mul %1, %5
			return blocks %6`},
		{"fold", "a scalar that is none, and exp", `
			%0 = seeds
			%1 = slice %0
			%2 = count %1 axis=0
			%3 = sum %2
			%4 = const value=4
			%5 = mul %3, %4
			%6 = exp %4
			%7 = mul %1, %5
			%8 = mul %7, %6
			return blocks %8`, ""},
		{"cse", "equal nodes", `
			%0 = seeds
			%1 = slice %0
			%2 = slice %0
			%3 = const value=2
			%4 = const value=2
			%5 = pow %1, %3
			%6 = pow %2, %4
			%7 = sum %5 axis=1
			%8 = sum %6 axis=1
			%9 = collective %1, %7 k=5 replace=false site=0
			return blocks %9 "s"=%8`, `
			%0 = seeds
			%1 = slice %0
			%2 = const value=2
			%3 = pow %1, %2
			%4 = sum %3 axis=1
			%5 = collective %1, %4 k=5 replace=false site=0
			return blocks %5 "s"=%4`},
		{"cse", "equal sampling calls, other axes and names", `
			%0 = seeds
			%1 = slice %0
			%2 = individual %1 k=5 replace=false site=0
			%3 = individual %1 k=5 replace=false site=1
			%4 = random %1 site=2
			%5 = random %1 site=3
			%6 = add %4, %5
			%7 = sum %6 axis=0
			%8 = sum %6 axis=1
			%9 = data %1 name="a"
			%10 = data %1 name="b"
			%11 = add %9, %10
			return blocks %3, %2, %11 "c"=%7 "r"=%8`, ""},
		{"cse", "zeros of both signs", `
			%0 = seeds
			%1 = slice %0
			%2 = const value=0
			%3 = const value=-0
			%4 = div %1, %2
			%5 = div %1, %3
			return blocks %4, %5`, ""},
		{"dce", "draws too; sites stay", `
			%0 = seeds
			%1 = slice %0
			%2 = individual %1 k=5 replace=false site=0
			%3 = row %2
			%4 = slice %3
			%5 = individual %1 k=5 replace=false site=1
			return blocks %5`, `
			%0 = seeds
			%1 = slice %0
			%2 = individual %1 k=5 replace=false site=1
			return blocks %2`},
		{"dce", "what is returned by name, and a subgraph's list", `
			%0 = seeds
			%1 = unique %0
			%2 = cross %1, %1
			%3 = degree
			return subgraph %1, %2 "d"=%3`, ""},
		{"preprocess", "reductions of the graph and maps of them, the last ones", `
			%0 = whole
			%1 = const value=2
			%2 = pow %0, %1
			%3 = sum %2 axis=1
			%4 = sum %3
			%5 = div %3, %4
			%6 = degree
			%7 = sqrt %6
			%8 = mul %5, %7
			%9 = seeds
			%10 = gather %8, %9
			%11 = slice %9
			%12 = mul %11, %7 axis=0
			return blocks %12 "p"=%10`, `
			%0 = whole
			%1 = const value=2
			%2 = pow %0, %1
			%3 = sum %2 axis=1
			%4 = sum %3
			%5 = div %3, %4
			%6 = degree
			%7 = sqrt %6 once
			%8 = mul %5, %7 once
			%9 = seeds
			%10 = gather %8, %9
			%11 = slice %9
			%12 = mul %11, %7 axis=0
			return blocks %12 "p"=%10`},
		{"preprocess", "reads, what draws, and what hangs on seeds", `
			%0 = seeds
			%1 = slice %0
			%2 = degree
			%3 = vertices name="x"
			%4 = random site=0
			%5 = mul %4, %2
			%6 = mul %1, %2 axis=1
			%7 = mul %6, %3 axis=1
			%8 = mul %7, %5 axis=1
			%9 = sum %8 axis=0
			return blocks %8 "s"=%9`, ""},
		{"extract_select", "a uniform draw", `
			%0 = seeds
			%1 = slice %0
			%2 = individual %1 k=5 replace=false site=0
			return blocks %2`, `
			%0 = seeds
			%1 = slice %0 inline
			%2 = individual %1 k=5 replace=false site=0
			return blocks %2`},
		{"extract_select", "a draw by weight, of several, of one that is returned", `
			%0 = seeds
			%1 = slice %0
			%2 = individual %1, %1 k=5 replace=false site=0
			%3 = row %2
			%4 = slice %3
			%5 = individual %4 k=5 replace=false site=1
			%6 = individual %4 k=5 replace=false site=2
			%7 = row %5
			%8 = slice %7
			%9 = individual %8 k=5 replace=false site=3
			%10 = column %6
			%11 = slice %10
			%12 = collective %11 k=5 replace=false site=4
			return blocks %8, %9, %5, %6, %12`, ""},
		{"vector_map", "a chain that ends at edges that were drawn, but what several or all edges take", `
			%0 = seeds
			%1 = slice %0
			%2 = sum %1 axis=1
			%3 = number
			%4 = row %1
			%5 = gather %3, %4
			%6 = add %2, %5
			%7 = sqrt %6
			%8 = collective %1, %7 k=5 replace=false site=0
			%9 = exp %7
			%10 = neg %9
			%11 = mul %8, %10 axis=1
			%12 = abs %2
			%13 = mul %1, %12 axis=1
			%14 = sum %13 axis=0
			%15 = neg %14
			return blocks %11 "s"=%15`, `
			%0 = seeds
			%1 = slice %0
			%2 = sum %1 axis=1
			%3 = number
			%4 = row %1
			%5 = gather %3, %4 inline
			%6 = add %2, %5 inline
			%7 = sqrt %6
			%8 = collective %1, %7 k=5 replace=false site=0
			%9 = exp %7 inline
			%10 = neg %9 inline
			%11 = mul %8, %10 axis=1
			%12 = abs %2
			%13 = mul %1, %12 axis=1
			%14 = sum %13 axis=0
			%15 = neg %14
			return blocks %11 "s"=%15`},
		{"layout", "vectors of all vertices that edges take, but what is there, and edges between lists", `
			%0 = seeds
			%1 = slice %0
			%2 = random site=0
			%3 = degree
			%4 = add %2, %3
			%5 = mul %1, %4 axis=1
			%6 = mul %5, %3 axis=0
			%7 = sum %6 axis=1
			%8 = mul %6, %7 axis=1
			%9 = column %8
			%10 = cross %9, %9
			return blocks %10, %8`, `
			%0 = seeds
			%1 = slice %0
			%2 = random site=0
			%3 = degree
			%4 = add %2, %3 cheaper
			%5 = mul %1, %4 axis=1
			%6 = mul %5, %3 axis=0
			%7 = sum %6 axis=1
			%8 = mul %6, %7 axis=1
			%9 = column %8
			%10 = cross %9, %9 cheaper
			return blocks %10, %8`},
		{"edge_map", "a chain, but what is returned and what draws", `
			%0 = seeds
			%1 = slice %0
			%2 = random %1 site=0
			%3 = abs %2
			%4 = exp %3
			%5 = sum %4 axis=0
			%6 = neg %1
			%7 = sqrt %5
			return blocks %6 "s"=%7`, `
			%0 = seeds
			%1 = slice %0
			%2 = random %1 site=0
			%3 = abs %2 inline
			%4 = exp %3 inline
			%5 = sum %4 axis=0
			%6 = neg %1
			%7 = sqrt %5
			return blocks %6 "s"=%7`},
		{"edge_map", "what two take", `
			%0 = seeds
			%1 = slice %0
			%2 = abs %1
			%3 = sum %2 axis=0
			%4 = sum %2 axis=1
			return vectors "c"=%3 "r"=%4`, ""},
		{"edge_map_reduce", "cheap values", `
			%0 = seeds
			%1 = slice %0
			%2 = abs %1
			%3 = sum %2 axis=1
			%4 = individual %1, %2 k=3 replace=false site=0
			return blocks %4 "r"=%3`, `
			%0 = seeds
			%1 = slice %0
			%2 = abs %1 inline
			%3 = sum %2 axis=1
			%4 = individual %1, %2 k=3 replace=false site=0
			return blocks %4 "r"=%3`},
		{"edge_map_reduce", "dear ones, none that are reduced, and what is returned", `
			%0 = seeds
			%1 = slice %0
			%2 = exp %1
			%3 = sum %2 axis=1
			%4 = neg %2
			%5 = top_k %1, %4 k=3
			%6 = individual %1, %4 k=3 replace=false site=0
			%7 = abs %1
			%8 = sum %7 axis=1
			return blocks %5, %6, %7 "r"=%3 "s"=%8`, ""},
		{"edge_map_reduce", "dear ones of all edges", `
			%0 = whole
			%1 = exp %0
			%2 = sum %1 axis=0
			%3 = sum %1 axis=1
			return vectors "c"=%2 "r"=%3`, `
			%0 = whole
			%1 = exp %0 inline
			%2 = sum %1 axis=0
			%3 = sum %1 axis=1
			return vectors "c"=%2 "r"=%3`},
	} {
		t.Run(k.pass+" "+k.what, func(t *testing.T) {
			p := parsed(t, k.in, "")
			i := slices.IndexFunc(Table, func(pass Pass) bool { return pass.Name == k.pass })
			before := p.String()
			q, err := Table[i].run(p)
			if err != nil {
				t.Fatal(err)
			}
			want := trimmed(k.out)
			if k.out == "" {
				want = before
			}
			if got := marked(q); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if p.String() != before || marked(p) != before {
				t.Errorf("the program that it was made of is another now:\n%s", marked(p))
			}
			if err := checkMarks(q); err != nil {
				t.Error(err)
			}
		})
	}
}

// Constants are what the operators' page says, at the edges too.
func TestFolded(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, k := range []struct {
		op      program.Op
		a, b, c float64
		want    float64
	}{
		{program.Relu, nan, 0, 0, 0}, {program.Relu, -1, 0, 0, 0}, {program.Relu, 2, 0, 0, 2},
		{program.Not, nan, 0, 0, 0}, {program.Not, 0, 0, 0, 1}, {program.Not, 3, 0, 0, 0},
		{program.Min, nan, 1, 0, nan}, {program.Min, 1, nan, 0, 1}, {program.Min, 2, 1, 0, 1},
		{program.Max, nan, 1, 0, nan}, {program.Max, 1, nan, 0, 1}, {program.Max, 1, 2, 0, 2},
		{program.Less, nan, 1, 0, 0}, {program.LessEqual, 1, 1, 0, 1}, {program.Equal, nan, nan, 0, 0}, {program.NotEqual, nan, nan, 0, 1},
		{program.Where, nan, 1, 2, 1}, {program.Where, 0, 1, 2, 2}, {program.Where, -1, 1, 2, 1},
		{program.Div, 1, 0, 0, inf}, {program.Sqrt, -1, 0, 0, nan}, {program.Neg, 0, 0, 0, math.Copysign(0, -1)},
		{program.Sub, 1, 0x1p-60, 0, 1}, {program.Abs, -3, 0, 0, 3}, {program.Add, 1, 2, 0, 3}, {program.Mul, 3, 4, 0, 12},
	} {
		got, known := folded(k.op, [3]float64{k.a, k.b, k.c})
		if !known || math.Float64bits(got) != math.Float64bits(k.want) && (got == got || k.want == k.want) {
			t.Errorf("%s %v, %v, %v: expected %v, got %v", k.op, k.a, k.b, k.c, k.want, got)
		}
	}
	if _, known := folded(program.Exp, [3]float64{}); known {
		t.Error("exp: expected none, got a constant")
	}
}

// ladies is two hops of LADIES as it is traced.
const ladies = `
	%0 = seeds
	%1 = slice %0
	%2 = const value=2
	%3 = pow %1, %2
	%4 = sum %3 axis=1
	%5 = collective %1, %4 k=512 replace=false site=0
	%6 = div %5, %4 axis=1
	%7 = sum %6 axis=0
	%8 = div %6, %7 axis=0
	%9 = row %8
	%10 = const value=2
	%11 = slice %9
	%12 = pow %11, %10
	%13 = sum %12 axis=1
	%14 = collective %11, %13 k=512 replace=false site=1
	%15 = div %14, %13 axis=1
	%16 = sum %15 axis=0
	%17 = div %15, %16 axis=0
	return blocks %17, %8`

// All of them, and each one off: the others still run, and nothing of it is left.
func TestRun(t *testing.T) {
	p := parsed(t, ladies, "w")
	q, steps, err := Run(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := trimmed(`
		%0 = seeds
		%1 = slice %0 cheaper
		%2 = const value=2
		%3 = pow %1, %2 inline
		%4 = sum %3 axis=1
		%5 = collective %1, %4 k=512 replace=false site=0
		%6 = div %5, %4 axis=1 inline
		%7 = sum %6 axis=0
		%8 = div %6, %7 axis=0
		%9 = row %8
		%10 = slice %9 cheaper
		%11 = pow %10, %2 inline
		%12 = sum %11 axis=1
		%13 = collective %10, %12 k=512 replace=false site=1
		%14 = div %13, %12 axis=1 inline
		%15 = sum %14 axis=0
		%16 = div %14, %15 axis=0
		return blocks %16, %8`)
	if got := marked(q); got != want || q.Weight != "w" {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var ran []string
	for _, s := range steps {
		ran = append(ran, s.Pass.Name)
	}
	if !slices.Equal(ran, []string{"cse", "edge_map", "edge_map_reduce", "layout"}) {
		t.Errorf("got steps %v", ran)
	}
	for _, off := range Names() {
		_, steps, err := Run(p, []string{off})
		if err != nil {
			t.Errorf("without %s: %v", off, err)
		}
		for _, s := range steps {
			if s.Pass.Name == off {
				t.Errorf("without %s: it ran", off)
			}
		}
	}
	if q, steps, err = Run(p, Names()); err != nil || len(steps) != 0 || marked(q) != p.String() {
		t.Errorf("without any: got steps %v, %v and\n%s", steps, err, marked(q))
	}
}

// Choices that are forced, one kind and another.
func TestForced(t *testing.T) {
	p := parsed(t, `
		%0 = seeds
		%1 = unique %0
		%2 = cross %1, %1
		%3 = random site=0
		%4 = mul %2, %3 axis=0
		return blocks %4`, "")
	for _, k := range []struct {
		names       []string
		edges, each program.Layout
	}{{nil, 0, 0}, {[]string{"out_edges"}, program.Other, 0}, {[]string{"vertices"}, 0, program.Other}, {[]string{"out_edges", "vertices"}, program.Other, program.Other}} {
		q := Forced(p, k.names)
		if q.Nodes[2].Layout != k.edges || q.Nodes[3].Layout != k.each || q.Nodes[4].Layout != 0 || checkMarks(q) != nil {
			t.Errorf("%v: got\n%s", k.names, marked(q))
		}
	}
}

// The table says what must come before each, and has it there.
func TestOrder(t *testing.T) {
	var before []string
	for _, pass := range Table {
		for _, name := range pass.After {
			if !slices.Contains(before, name) {
				t.Errorf("%s: expected %s before it", pass.Name, name)
			}
		}
		if (len(pass.After) > 0) != (pass.Why != "") || pass.Rule == "" {
			t.Errorf("%s: expected a rule, and why others come before it", pass.Name)
		}
		before = append(before, pass.Name)
	}
}

// Marks where they may not be.
func TestCheckMarks(t *testing.T) {
	p := parsed(t, `
		%0 = seeds
		%1 = slice %0
		%2 = abs %1
		%3 = sum %2 axis=0
		%4 = degree
		%5 = sqrt %4
		return blocks %2 "s"=%3 "d"=%5`, "")
	if err := checkMarks(p.Marked(func(i int, n *program.Node) { n.Layout = program.Layout(i / 5) })); err == nil ||
		err.Error() != "%5: expected layouts to be chosen where there are two, got sqrt" {
		t.Errorf("got %v of a layout where there is one", err)
	}
	for _, k := range []struct {
		node         int
		inline, once bool
		want         string
	}{
		{2, true, false, "%2: expected what is returned to be stored"},
		{3, false, true, "%3: expected a cached value to depend on the graph only"},
		{0, true, false, "%0: expected values of edges, or a slice, to be inlined, got seeds"},
		{5, true, true, "%5: expected a value to be cached or inlined, got both"},
		{5, false, true, ""},
		{1, true, false, ""},
	} {
		q := p.Marked(func(i int, n *program.Node) {
			if i == k.node {
				n.Inline, n.Once = k.inline, k.once
			}
		})
		if err := checkMarks(q); fmt.Sprint(err) != k.want && (err != nil || k.want != "") {
			t.Errorf("got %v, want %q", err, k.want)
		}
	}
}
