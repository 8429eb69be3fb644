package passes

import (
	"fmt"
	"strings"
	"testing"
)

// sage is two hops of GraphSAGE.
const sage = `
	%0 = seeds
	%1 = slice %0
	%2 = individual %1 k=10 replace=false site=0
	%3 = row %2
	%4 = union %0, %3
	%5 = slice %4
	%6 = individual %5 k=25 replace=false site=1
	return blocks %6, %2`

func TestNeighbors(t *testing.T) {
	change := func(old, by string) string {
		if !strings.Contains(sage, old) {
			t.Fatalf("no %q", old)
		}
		text := strings.ReplaceAll(sage, old, by)
		if strings.Contains(text, "%7 =") {
			text = strings.Replace(text, "blocks %6", "blocks %7", 1)
		}
		return text
	}
	for _, k := range []struct{ what, text, weight, want string }{
		{"two hops, outermost first", sage, "", "[25 10] false"},
		{"one hop", "%0 = seeds\n%1 = slice %0\n%2 = individual %1 k=-1 replace=true site=0\nreturn blocks %2", "", "[-1] true"},
		{"columns of the slice", change("union %0, %3\n\t%5 = slice %4\n\t%6 = individual %5", "column %1\n\t%5 = union %4, %3\n\t%6 = slice %5\n\t%7 = individual %6"), "", "[25 10] false"},
		{"weights", sage, "w", ""},
		{"another site", change("site=1", "site=2"), "", ""},
		{"sites the other way round", strings.NewReplacer("site=0", "site=1", "site=1", "site=0").Replace(sage), "", ""},
		{"one hop with replacement", change("k=25 replace=false", "k=25 replace=true"), "", ""},
		{"blocks the other way round", change("%6, %2", "%2, %6"), "", ""},
		{"rows alone", change("union %0, %3", "unique %3"), "", ""},
		{"rows before the rest", change("union %0, %3", "union %3, %0"), "", ""},
		{"something beside it", change("%6, %2", `%6, %2 "x"=%3`), "", ""},
		{"a draw by weight", change("individual %5 k", "individual %5, %5 k"), "", ""},
		{"distinct seeds", "%0 = seeds\n%1 = unique %0\n%2 = slice %1\n%3 = individual %2 k=1 replace=false site=0\nreturn blocks %3", "", ""},
		{"the same block twice", change("%6, %2", "%2, %2"), "", ""},
	} {
		t.Run(k.what, func(t *testing.T) {
			hops, is := Neighbors(parsed(t, k.text, k.weight))
			got := ""
			if is {
				got = fmt.Sprint(hops.Fanouts, hops.Replace)
			}
			if got != k.want {
				t.Errorf("got %q, want %q", got, k.want)
			}
		})
	}
}

// labor2 is two hops of LABOR-2, once equal nodes are one.
const labor2 = `
	%0 = seeds
	%1 = random site=0
	%2 = slice %0
	%3 = labor %2, %2 k=4
	%4 = const value=1.0715086071862673e+301
	%5 = min %3, %4
	%6 = mul %2, %5 axis=0
	%7 = largest %6 axis=1
	%8 = min %7, %4
	%9 = spread %2, %8 axis=1
	%10 = labor %2, %9 k=4
	%11 = min %10, %4
	%12 = spread %2, %11 axis=0
	%13 = largest %12 axis=1
	%14 = mul %8, %13
	%15 = min %14, %4
	%16 = spread %2, %15 axis=1
	%17 = labor %2, %16 k=4
	%18 = min %17, %4
	%19 = mul %16, %18 axis=0
	%20 = const value=1
	%21 = min %19, %20
	%22 = spread %2, %1 axis=1
	%23 = le %22, %21
	%24 = div %2, %21
	%25 = filter %24, %23
	%26 = row %25
	%27 = union %0, %26
	%28 = random site=1
	%29 = slice %27
	%30 = labor %29, %29 k=3
	%31 = min %30, %4
	%32 = mul %29, %31 axis=0
	%33 = largest %32 axis=1
	%34 = min %33, %4
	%35 = spread %29, %34 axis=1
	%36 = labor %29, %35 k=3
	%37 = min %36, %4
	%38 = spread %29, %37 axis=0
	%39 = largest %38 axis=1
	%40 = mul %34, %39
	%41 = min %40, %4
	%42 = spread %29, %41 axis=1
	%43 = labor %29, %42 k=3
	%44 = min %43, %4
	%45 = mul %42, %44 axis=0
	%46 = min %45, %20
	%47 = spread %29, %28 axis=1
	%48 = le %47, %46
	%49 = div %29, %46
	%50 = filter %49, %48
	return blocks %50, %25`

// labor1 is a hop of LABOR-1 whose values are over their mean, and labor0 one of LABOR-0.
const labor1 = `
	%0 = seeds
	%1 = random site=0
	%2 = slice %0
	%3 = labor %2, %2 k=4
	%4 = const value=1.0715086071862673e+301
	%5 = min %3, %4
	%6 = mul %2, %5 axis=0
	%7 = largest %6 axis=1
	%8 = min %7, %4
	%9 = spread %2, %8 axis=1
	%10 = labor %2, %9 k=4
	%11 = min %10, %4
	%12 = mul %9, %11 axis=0
	%13 = const value=1
	%14 = min %12, %13
	%15 = spread %2, %1 axis=1
	%16 = le %15, %14
	%17 = div %2, %14
	%18 = filter %17, %16
	%19 = count %18 axis=0
	%20 = sum %18 axis=0
	%21 = div %19, %20
	%22 = mul %18, %21 axis=0
	return blocks %22`

const labor0 = `
	%0 = seeds
	%1 = random site=0
	%2 = slice %0
	%3 = count %2 axis=0
	%4 = const value=4
	%5 = div %4, %3
	%6 = const value=1
	%7 = min %5, %6
	%8 = spread %2, %7 axis=0
	%9 = spread %2, %1 axis=1
	%10 = le %9, %8
	%11 = filter %2, %10
	%12 = div %6, %7
	%13 = spread %11, %12 axis=0
	return blocks %13`

func TestPoisson(t *testing.T) {
	const two, means, zero = "LABOR-2 [4 3] sites [0 1] values 1", "LABOR-1 [4] sites [0] values 2", "LABOR-0 [4] sites [0] values 1"
	for _, k := range []struct {
		of     string
		change []string // what is replaced, and by what, in turns
		weight string
		want   string
	}{
		{of: labor2, want: two},
		{of: labor2, change: []string{"k=4", "k=0"}, want: "LABOR-2 [0 3] sites [0 1] values 1"},
		{of: labor2, change: []string{"random site=0", "random site=2"}, want: "LABOR-2 [4 3] sites [2 1] values 1"},
		{of: labor2, change: []string{"spread %29, %28", "spread %29, %1"}, want: "LABOR-2 [4 3] sites [0 0] values 1"},
		{of: labor2, change: []string{"filter %24", "filter %2", "filter %49", "filter %29"}, want: "LABOR-2 [4 3] sites [0 1] values 0"},
		{of: labor1, want: means},
		{of: labor1, change: []string{"blocks %22", "blocks %18"}, want: "LABOR-1 [4] sites [0] values 1"},
		{of: labor0, want: zero},
		{of: labor0, change: []string{"blocks %13", "blocks %11"}, want: "LABOR-0 [4] sites [0] values 0"},

		{of: labor2, weight: "w"},
		{of: labor1, weight: "w"},
		{of: labor0, weight: "w"},
		// Other numbers.
		{of: labor2, change: []string{"e+301", "e+300"}},
		{of: labor2, change: []string{"const value=1\n", "const value=0.5\n"}},
		{of: labor2, change: []string{"labor %2, %2 k=4", "labor %2, %2 k=5"}},
		{of: labor2, change: []string{"labor %2, %9 k=4", "labor %2, %9 k=5"}},
		{of: labor2, change: []string{"labor %2, %16 k=4", "labor %2, %16 k=5"}},
		{of: labor2, change: []string{"k=4", "k=-1"}},
		{of: labor2, change: []string{"site=1", "site=1 batches=2"}},
		{of: labor0, change: []string{"value=4", "value=4.5"}},
		{of: labor0, change: []string{"value=4", "value=-4"}},
		// Other values are capped.
		{of: labor2, change: []string{"mul %16, %18", "mul %16, %17"}},
		{of: labor2, change: []string{"spread %2, %15", "spread %2, %14"}},
		{of: labor2, change: []string{"spread %2, %11", "spread %2, %10"}},
		{of: labor2, change: []string{"mul %8, %13", "mul %7, %13"}},
		{of: labor2, change: []string{"mul %2, %5", "mul %2, %3"}},
		{of: labor1, change: []string{"spread %2, %8", "spread %2, %7"}},
		{of: labor2, change: []string{"le %22, %21", "le %22, %19"}},
		{of: labor0, change: []string{"spread %2, %7", "spread %2, %5"}},
		// Other operators, sides and axes.
		{of: labor2, change: []string{"largest %6", "smallest %6"}},
		{of: labor2, change: []string{"largest %12", "sum %12"}},
		{of: labor2, change: []string{"mul %8, %13", "add %8, %13"}},
		{of: labor2, change: []string{"mul %8, %13", "mul %13, %8"}},
		{of: labor2, change: []string{"= min %19", "= max %19"}},
		{of: labor2, change: []string{"le %22, %21", "lt %22, %21"}},
		{of: labor2, change: []string{"le %22, %21", "le %21, %22"}},
		{of: labor2, change: []string{"div %2, %21", "div %21, %2"}},
		{of: labor2, change: []string{"div %2, %21", "div %2, %19"}},
		{of: labor2, change: []string{"spread %2, %1 axis=1", "random %2 site=2"}},
		{of: labor2, change: []string{"labor %2, %9", "labor %9, %9"}},
		{of: labor2, change: []string{"labor %2, %9", "labor %2, %2"}},
		{of: labor2, change: []string{"labor %2, %16", "labor %2, %9"}},
		{of: labor0, change: []string{"count %2 axis=0", "sum %2 axis=0"}},
		{of: labor0, change: []string{"div %6, %7", "div %6, %5"}},
		// Operands of another hop, and hops that differ.
		{of: labor2, change: []string{"filter %24", "filter %2"}},
		{of: labor2, change: []string{"mul %42, %44", "mul %35, %37"}},
		{of: labor2, change: []string{"union %0, %26", "union %26, %0"}},
		{of: labor2, change: []string{"union %0, %26", "unique %26"}},
		{of: labor2, change: []string{"%50, %25", "%25, %50"}},
		{of: labor2, change: []string{"%50, %25", `%50, %25 "x"=%26`}},
		// Other means.
		{of: labor1, change: []string{"count %18", "count %2"}},
		{of: labor1, change: []string{"count %18", "sum %18"}},
		{of: labor1, change: []string{"sum %18", "sum %17"}},
		{of: labor1, change: []string{"div %19, %20", "div %20, %19"}},
		{of: labor1, change: []string{"mul %18", "div %18"}},
	} {
		name := fmt.Sprint(strings.Count(k.of, "\n"), k.change, k.weight)
		t.Run(name, func(t *testing.T) {
			text := k.of
			for i := 0; i < len(k.change); i += 2 {
				text = strings.ReplaceAll(text, k.change[i], k.change[i+1])
			}
			if text == k.of && len(k.change) > 0 {
				t.Fatalf("nothing is replaced by %q", k.change)
			}
			got := ""
			if hops := Poisson(parsed(t, text, k.weight)); hops != nil {
				got = fmt.Sprintf("LABOR-%d %v sites %v values %d", hops.Rounds, hops.K, hops.Sites, hops.Values)
			}
			if got != k.want {
				t.Errorf("got %q, want %q", got, k.want)
			}
		})
	}
}
