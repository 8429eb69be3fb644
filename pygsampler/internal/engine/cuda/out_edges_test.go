package cuda

import (
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// between are programs with A[R, S]: of all columns, of some, of each other's, and of columns that repeat rows.
func between(t *testing.T) map[string]*program.Program {
	return map[string]*program.Program{
		"all": parsed(t, "w", "seeds", "unique %0", "whole", "column %2", "cross %1, %3", "sum %4 axis=1", "random site=0", "spread %4, %6 axis=0",
			"mul %7, %4", "collective %8, %5 k=20 replace=false site=1", `return blocks %9, %4 "p"=%5`),
		"some": parsed(t, "", "seeds", "unique %0", "slice %1", "row %2", "cross %1, %3", "cross %3, %1", "cross %1, %1", "count %5 axis=0",
			`return blocks %4, %5, %6 "n"=%7`),
	}
}

// laid is a program whose choices of layouts are these.
func laid(p *program.Program, way program.Layout) *program.Program {
	ways := layout.Choose(p)
	return p.Marked(func(i int, n *program.Node) {
		if ways[i] != (layout.Ways{}) {
			n.Layout = way
		}
	})
}

// A[R, S] by the out-edges of R is what it is by the in-edges of S, whoever has found the out-edges.
func TestOutEdges(t *testing.T) {
	e, s := programDevice(t)
	graphs := csctest.Awkward(3000)
	graphs["random"] = csctest.RandomRows(600, 1)
	parallel := csctest.RandomRows(300, 9)
	parallel[7] = append(parallel[7], 49, 49, 7, 0, 49) // in no order
	graphs["parallel"] = parallel
	for name, p := range between(t) {
		if plan := NewProgram(p); plan.text.Between {
			t.Fatalf("%s: a choice without the pass", name)
		}
		for of, rows := range graphs {
			n, narrow := int64(len(rows)), of == "random"
			g := withData(csctest.Graph(rows, n+2, 64-32*int(Word(narrow)), 64, !narrow))
			for _, way := range []program.Layout{program.Other, program.Cheaper} {
				d := upload(t, e, g)
				p := laid(p, way)
				for _, seeds := range [][]int64{{}, {0, n, 0, n + 1}} {
					checkProgram(t, e, s, g, d, p, seeds, 3)
				}
				checkProgram(t, e, s, g, d, p, csctest.Steps(int(min(n, 150)), 1), 1, 4)
				if _, there := d.made.of[outEdges]; there != (way == program.Other && g.NumEdges() > 0) {
					t.Errorf("%s of %s, layout %d: out-edges found: %t", name, of, way, there)
				}
			}
		}
	}
}

// Out-edges are found when batches have lost what that takes, and not for rows that are the columns.
func TestOutEdgesAreFound(t *testing.T) {
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	e, s := programDevice(t)
	before, here := costs.MeasuredDevice()
	t.Cleanup(func() {
		if !here {
			before = costs.DeviceElsewhere
		}
		if _, err := before.Keep(); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := (costs.Device{In: 100, Bit: 1, Out: 300, More: 1, Turn: 150}).Keep(); err != nil {
		t.Fatal(err)
	}
	g := csctest.Graph(csctest.RandomRows(3000, 9), 3000, 32, 32, true)
	d := upload(t, e, g)
	there := func() bool { _, is := d.made.of[outEdges]; return is }
	from := func(seeds int, lines ...string) {
		p := laid(parsed(t, "", lines...), program.Cheaper)
		b := request.Batch{Seeds: csctest.Array(csctest.Steps(seeds, 1), 32)}
		f, err := e.Start(d, &Call{Plan: NewProgram(p), Batch: b, Stream: s.Handle(), Own: true})
		if err != nil {
			t.Fatal(err)
		}
		made, _, err := f.Wait(-1)
		if err != nil {
			t.Fatal(err)
		}
		if err := made.Memory.Free(made.Stream); err != nil {
			t.Error(err)
		}
	}
	for range 5 {
		from(3000, "seeds", "unique %0", "cross %1, %1", "return blocks %2")
	}
	if there() || d.made.turning.lost != 0 {
		t.Fatalf("lost %v by as many rows as columns", d.made.turning.lost)
	}
	few := []string{"seeds", "unique %0", "whole", "column %2", "cross %1, %3", "return blocks %4"}
	for batch := range 4 {
		if from(2, append([]string{}, few...)...); there() != (batch > 1) {
			t.Fatalf("batch %d: lost %v, found %t", batch, d.made.turning.lost, there())
		}
	}
	lost := d.made.turning.lost
	if want := 2 * (99*float64(g.NumEdges()) - 600*float64(g.NumEdges())/3000 - 1); lost < 0.99*want || lost > 1.01*want {
		t.Errorf("lost %v, want %v", lost, want)
	}
	// Once they are there nothing is lost, and what few rows have is taken, of all rows what the columns have.
	from(3000, append([]string{}, few...)...)
	if d.made.turning.lost != lost {
		t.Errorf("lost %v more", d.made.turning.lost-lost)
	}
}
