package layout

import (
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
)

// What edges take of vertices, but arrays, what is kept, and what lists take alone; and A[R, S].
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
	if got := Of(p); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	c := costs.Costs{Map: 1, Exp: 10, Random: 100, Gather: 1000, Look: 3, Out: 7, Turn: 5}
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
	if usual, other := Cross(c, 10, 20); usual != 30 || other != 140 {
		t.Errorf("got %v and %v", usual, other)
	}
}
