package run

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// laid is a program whose choices of layouts are these.
func laid(p *program.Program, way program.Layout) *program.Program {
	ways := layout.Choose(p)
	return p.Marked(func(i int, n *program.Node) {
		if ways[i] != (layout.Ways{}) {
			n.Layout = way
		}
	})
}

// costing has batches choose by costs, until the test ends.
func costing(t *testing.T, change func(c *costs.Costs)) {
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	before, here := costs.Measured()
	c := costs.Elsewhere
	change(&c)
	if _, err := c.Keep(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !here {
			before = costs.Elsewhere
		}
		if _, err := before.Keep(); err != nil {
			t.Fatal(err)
		}
	})
}

// Layouts, whichever costs less, change no byte: of programs with all operators, and of A[R, S] of few columns and of all.
func TestLayouts(t *testing.T) {
	all := programs(t)
	all["out-edges"] = parse(t, "w", "seeds", "unique %0", "whole", "column %2", "cross %1, %3", "sum %4 axis=1", "random site=0", "spread %4, %6 axis=0",
		"mul %7, %4", "collective %8, %5 k=20 replace=false site=1", "return blocks %9, %4 \"p\"=%5")
	all["some columns"] = parse(t, "", "seeds", "unique %0", "slice %1", "row %2", "cross %1, %3", "return blocks %4")
	all["layers"] = parse(t, "w", "seeds", "slice %0", "const value=2", "pow %1, %2", "sum %3 axis=1", "collective %1, %4 k=400 replace=false site=0",
		"div %5, %4 axis=1", "row %6", "union %0, %7", "slice %8", "collective %9 k=90 replace=false site=1", "sum %9 axis=1", "sqrt %11", "mul %9, %12 axis=1",
		"sum %13 axis=0", "mul %10, %14 axis=0", "return blocks %15, %6 \"all\"=%8")
	met := map[layout.Ways]bool{}
	for _, p := range all {
		for _, ways := range layout.Choose(p) {
			met[ways] = true
		}
	}
	for name, ways := range layout.Forced {
		if !met[ways] {
			t.Fatalf("no program has a choice of %s", name)
		}
	}
	rows := csctest.RandomRows(3000, 9)
	rows[7] = append(rows[7], 49, 49, 7, 0, 49) // parallel edges, in no order
	for bits, g := range map[int]*csc.Relation{
		32: weightedGraph(csctest.Graph(rows, 3001, 32, 64, true)),
		64: weightedGraph(csctest.Graph(rows, 3001, 64, 32, false)),
	} {
		for name, p := range all {
			of := batchOf(1, csctest.Squares(60, 3001)...)
			if name == "layers" { // edges enough for all vertices to be rows
				of = batchOf(1, csctest.Steps(3000, 1)...)
			}
			want := sampled(t, p, g, of)
			for _, way := range []program.Layout{program.Other, program.Cheaper} {
				for _, crew := range []lender{0, 3} {
					got, err := attempt(laid(p, way), g, of, crew)
					if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%s, %d bits, layout %d, %d workers: %v, got\n%.500v\nwant\n%.500v", name, bits, way, crew, err, got, want)
					}
				}
			}
		}
	}
}

// A vector is stored once edges take more elements than it has, by what both cost.
func TestElementsAreStored(t *testing.T) {
	costing(t, func(c *costs.Costs) { c.Random, c.Gather = 10, 1 })
	g := csctest.Graph(csctest.RandomRows(300, 9), 300, 32, 32, true)
	p := laid(parse(t, "", "seeds", "slice %0", "random site=0", "spread %1, %2 axis=1", "sum %3 axis=1", "return vectors \"s\"=%4"), program.Cheaper)
	edges := func(seeds []int64) (n float64) {
		for _, v := range seeds {
			n += float64(g.Indptr.Element(v+1) - g.Indptr.Element(v))
		}
		return n
	}
	for _, seeds := range [][]int64{csctest.Steps(3, 1), csctest.Steps(300, 1)} {
		var stop atomic.Bool
		r := &Request{Program: p, Batch: batchOf(0, seeds...), Relation: g}
		c := &call[int32]{Request: r, scratch: takeScratch(), stop: &stop, indices: g.Indices.I32, values: make([]value[int32], len(p.Nodes)), need: p.Wants(nil)}
		c.all()
		if stored, want := c.values[2].made, 10*edges(seeds) > 10*300+edges(seeds); stored != want {
			t.Errorf("%v edges: stored %t", edges(seeds), stored)
		}
		c.scratch.put()
	}
	if edges(csctest.Steps(300, 1)) < 400 || edges(csctest.Steps(3, 1)) > 300 {
		t.Error("a graph that tells nothing")
	}
}

// If the values of a matrix are left out, nothing is stored that only they need.
func TestValuesThatAreLeftOut(t *testing.T) {
	costing(t, func(c *costs.Costs) { c.Map, c.Gather = 100, 1 })
	g := csctest.Graph(csctest.RandomRows(300, 9), 300, 32, 32, true)
	for _, text := range []string{"return blocks ~%6", "return blocks %6"} {
		lines := []string{"seeds", "number", "cap %1 k=7", "add %2, %2", "slice %0", "spread %4, %3 axis=1", "mul %5, %5", text}
		p := laid(parse(t, "", lines...), program.Cheaper)
		var stop atomic.Bool
		r := &Request{Program: p, Batch: batchOf(0, csctest.Steps(300, 1)...), Relation: g}
		c := &call[int32]{Request: r, scratch: takeScratch(), stop: &stop, indices: g.Indices.I32, values: make([]value[int32], len(p.Nodes)), need: p.Wants(nil)}
		c.all()
		if stored, want := c.values[3].made, text == "return blocks %6"; stored != want {
			t.Errorf("%s: stored %t", text, stored)
		}
		c.scratch.put()
	}
}

// Out-edges are found when batches have lost what that takes, and not for rows that have as many edges as the columns.
func TestOutEdgesAreFound(t *testing.T) {
	costing(t, func(c *costs.Costs) { c.Look, c.Out, c.Turn = 1, 1, 1.5 })
	g := csctest.Graph(csctest.RandomRows(3000, 9), 3000, 32, 32, true)
	there := func() bool {
		kept, _ := g.Kept.Get("out-edges").(*turning)
		return kept != nil && kept.out.Load() != nil
	}
	from := func(lines ...string) *program.Program { return laid(parse(t, "", lines...), program.Cheaper) }
	same := from("seeds", "unique %0", "cross %1, %1", "return blocks %2")
	for range 5 {
		sampled(t, same, g, batchOf(0, csctest.Steps(3000, 1)...))
	}
	if there() {
		t.Fatal("found for as many rows as columns")
	}
	few := from("seeds", "unique %0", "whole", "column %2", "cross %1, %3", "return blocks %4")
	for batch := range 3 {
		if sampled(t, few, g, batchOf(0, 1, 2)); there() != (batch > 0) {
			t.Fatalf("batch %d: found %t", batch, there())
		}
	}
}

// Errors name the same node, whatever the rows are.
func TestLayoutsTellTheSameError(t *testing.T) {
	rows := csctest.RandomRows(300, 9)
	g := csctest.Graph(rows, 300, 32, 32, true)
	w := make([]float64, g.NumEdges())
	for i := range w {
		w[i] = float64(i%3) - 1
	}
	g.EdgeData = map[string]csc.Values{"w": csc.ValuesOf(w)}
	p := parse(t, "w", "seeds", "slice %0", "smallest %1 axis=1", "collective %1, %2 k=5 replace=false site=0", "return blocks %3")
	_, want := attempt(p, g, batchOf(0, 200, 7, 3), lender(0))
	_, got := attempt(laid(p, program.Other), g, batchOf(0, 200, 7, 3), lender(0))
	if want == nil || got == nil || got.Error() != want.Error() {
		t.Errorf("got %v, want %v", got, want)
	}
}
