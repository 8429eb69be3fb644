package layout

import (
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
)

// Slices whose rows may be all vertices: those of whose rows nobody sees the order or the number.
func TestRows(t *testing.T) {
	for more, want := range map[string]bool{
		"%3 = collective %1, %2 k=2 replace=false site=0\n%4 = div %3, %2 axis=1\nreturn blocks %4":                     true,
		"%3 = collective %1, %2 k=-1 replace=true site=0\nreturn blocks %3":                                             true,
		"%3 = collective %1 k=2 replace=false site=0\nreturn blocks %3":                                                 true,
		"%3 = sqrt %2\n%4 = mul %1, %3 axis=1\n%5 = sum %4 axis=0\nreturn vectors \"s\"=%5":                             true,
		"%3 = collective %1, %2 k=2 replace=false site=0\n%4 = row %3\nreturn vectors \"l\"=%4":                         true,
		"%3 = collective %1, %2 k=2 replace=true site=0\nreturn blocks %3":                                              false,
		"%3 = sqrt %2\n%4 = collective %1, %3 k=2 replace=false site=0\nreturn blocks %4":                               false,
		"%3 = vertices name=\"x\"\n%4 = collective %1, %3 k=2 replace=false site=0\nreturn blocks %4 \"p\"=%3":          false,
		"%3 = row %1\n%4 = collective %1, %2 k=2 replace=false site=0\nreturn blocks %4 \"l\"=%3":                       false,
		"%3 = sum %2\n%4 = collective %1, %2 k=2 replace=false site=0\n%5 = mul %4, %3\nreturn blocks %5":               false,
		"%3 = collective %1, %2 k=2 replace=false site=0\nreturn blocks %3 \"p\"=%2":                                    false,
		"%3 = draw %2 k=2 replace=false site=0\nreturn vectors \"l\"=%3":                                                false,
		"%3 = collective %1, %2 k=2 replace=false site=0\nreturn blocks %1, %3":                                         false,
		"%3 = individual %1, %1 k=2 replace=false site=0\nreturn blocks %3":                                             true,
		"%3 = individual %1 k=2 replace=false site=0\n%4 = collective %3, %2 k=2 replace=true site=1\nreturn blocks %4": true,
	} {
		p, err := program.Parse("%0 = seeds\n%1 = slice %0\n%2 = sum %1 axis=1\n"+more, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := Choose(p)[1] == Rows; got != want {
			t.Errorf("%s: got %t", more, got)
		}
	}
}

// Edges take values of nodes except arrays, stored values, and values that only lists take;
// also with A[R, S].
func TestOf(t *testing.T) {
	p, err := program.Parse(`%0 = seeds
%1 = slice %0
%2 = random site=0
%3 = vertices name="x"
%4 = exp %3
%5 = mul %2, %4
%6 = spread %1, %5 axis=1
%7 = mul %6, %3 axis=0
%8 = gather %2, %0
%9 = sqrt %3
%10 = mul %7, %9 axis=0
%11 = row %10
%12 = cross %11, %11
return blocks %12, %10 "v"=%8`, "")
	if err != nil {
		t.Fatal(err)
	}
	p = p.Marked(func(i int, n *program.Node) { n.Once = i == 9 })
	want := make([]Ways, 13)
	want[5], want[12] = Elements, Between
	if got := Choose(p); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	c := costs.Costs{Map: 1, Exp: 10, Random: 100, Gather: 1000, Look: 3, Out: 7, Turn: 5, Row: 9, Wide: 2, Vertex: 4}
	works := Works(p, c)
	if got, want := works[5], (Work{1 + 100 + 10 + 1000, 1 + 100 + 10 + 1}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := works[9]; got != (Work{1000, 1}) {
		t.Errorf("got %v of what is kept", got)
	}
	if usual, other := works[5].Elements(c, 10, 20); usual != 11110 || other != 20*112+10*1000 {
		t.Errorf("got %v and %v", usual, other)
	}
	if usual, other := AsRows(c, 10, 20); usual != 90 || other != 100 {
		t.Errorf("got %v and %v", usual, other)
	}
	if usual, other := Cross(c, 10, 20); usual != 30 || other != 140 {
		t.Errorf("got %v and %v", usual, other)
	}
}
