// Package calibrate measures the cost of the CPU executor's operations on this machine: it samples
// batches of small programs and times their nodes one by one.
package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/run"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// The graph, and a batch of some 260,000 edges, as layer-wise samplers have.
const (
	vertices = 1 << 16
	degree   = 16
	seeds    = 1 << 14
	few      = 1 << 10 // of which out-edges are found
	drawn    = 8
	large    = 1 << 21 // nodes whose arrays no second-level cache holds
	repeats  = 9       // of which the fastest counts: what else the machine does only adds
)

// chain is the number of operations that are timed together, since one operation takes little
// compared to reading its input.
const chain = 16

// Measure returns the costs of this machine, in about a second of one core; out-edges are found by
// all cores.
func Measure() (c costs.Costs, err error) {
	g := graph()
	on := func(g *csc.Relation, w way, lines ...string) []float64 {
		var times []float64
		if err == nil {
			times, err = timed(g, w, lines)
		}
		if err != nil {
			times = make([]float64, len(lines)+1)
		}
		return times
	}
	within := func(w way, lines ...string) []float64 { return on(g, w, lines...) }
	of := func(lines ...string) []float64 { return within(way{seeds: seeds}, lines...) }
	const edges = seeds * degree
	maps := func(op string, count int) (lines []string) {
		lines = []string{"seeds", "slice %0", "const value=1.5"}
		last := 1
		for range count {
			line := fmt.Sprintf("%s %%%d", op, last)
			if op == "add" {
				line += ", %2"
			}
			lines, last = append(lines, line), len(lines)
		}
		return append(lines, fmt.Sprintf("sum %%%d axis=0", last), fmt.Sprintf("return vectors \"a\"=%%%d", len(lines)))
	}
	column := of(maps("add", 0)...)
	// Sums along rows, which a choice takes.
	sums := []string{"seeds", "slice %0", "sum %1 axis=1", fmt.Sprintf("collective %%1, %%2 k=%d replace=false site=0", drawn), "return blocks %3"}
	row, wide := of(sums...), within(way{seeds: seeds, other: true}, sums...)
	// Rows without edges take memory time, so there are enough of them for a measurement, and a
	// choice reads each of them, too.
	none := on(empty(), way{seeds: 1, other: true}, sums...)
	one, many, exp := of(maps("add", 1)...), of(maps("add", 1+chain)...), of(maps("exp", 1)...)
	stored := within(way{seeds: seeds, stores: true}, maps("add", 1)...)
	draw := of("seeds", "slice %0", fmt.Sprintf("individual %%1 k=%d replace=false site=0", drawn), "return blocks %2")
	race := of("seeds", "slice %0", fmt.Sprintf("individual %%1, %%1 k=%d replace=false site=0", drawn), "return blocks %2")
	// Elements of vectors, and out-edges.
	along := func(vector string) []float64 {
		return of("seeds", "slice %0", vector, "spread %1, %2 axis=1", "sum %3 axis=0", `return vectors "a"=%4`)
	}
	random, gather := along("random site=0"), along(`vertices name="x"`)
	between := []string{"seeds", "unique %0", "whole", "column %2", "cross %1, %3", "count %4 axis=0", `return vectors "a"=%5`}
	look, out := within(way{seeds: few}, between...), within(way{seeds: few, other: true}, between...)
	turn := 0.0
	if err == nil {
		turn, err = turned(g)
	}
	if err != nil {
		return c, err
	}
	// The sum is the last node before the result; it evaluates maps on the fly.
	sum := func(times []float64) float64 { return times[len(times)-2] * 1e3 }
	least := func(ns float64) float64 { return math.Max(ns, 0.01) }
	c.Column = least(column[3] * 1e3 / edges)
	c.Row = least(row[2] * 1e3 / edges)
	c.Map = least((sum(many) - sum(one)) / edges / chain)
	c.Exp = least((sum(exp) - column[3]*1e3) / edges)
	c.Store = least((stored[3]*1e3 + sum(stored) - sum(one)) / edges)
	c.Draw = least(draw[2] * 1e3 / (seeds * drawn))
	c.Race = least(race[2] * 1e3 / edges)
	c.Write = least(draw[3] * 1e3 / (seeds * drawn))
	c.Random = least((random[4] - column[3]) * 1e3 / edges)
	c.Gather = least((gather[4] - column[3]) * 1e3 / edges)
	c.Vertex = least((none[2] + none[3]) * 1e3 / large)
	c.Wide = least(wide[2]*1e3/edges - c.Vertex*vertices/edges)
	c.Look = least(look[4] * 1e3 / (vertices * degree))
	c.Out = least(out[4] * 1e3 / (few * degree))
	c.Turn = least(turn / (vertices * degree))
	return c, nil
}

// turned is the nanoseconds in which all out-edges of a graph are found.
func turned(g *csc.Relation) (float64, error) {
	best := math.Inf(1)
	for range repeats {
		t, begin := &csc.Transposition{Relation: g}, time.Now()
		m, err := t.Run()
		if err != nil {
			return 0, err
		}
		best = min(best, float64(time.Since(begin).Nanoseconds()))
		m.Release()
	}
	return best, nil
}

// way says how a program is run: the number of seeds, with stored maps, in the other layouts.
type way struct {
	seeds         int
	stores, other bool
}

// timed are the microseconds of a program's nodes, and of writing what it returns.
func timed(g *csc.Relation, w way, lines []string) ([]float64, error) {
	var text strings.Builder
	for i, line := range lines[:len(lines)-1] {
		fmt.Fprintf(&text, "%%%d = %s\n", i, line)
	}
	p, err := program.Parse(text.String()+lines[len(lines)-1], "w")
	if err != nil {
		return nil, err
	}
	p = p.Marked(func(i int, n *program.Node) {
		n.Inline = n.Op == program.Slice && strings.HasPrefix(lines[len(lines)-2], "individual %1 k") ||
			!w.stores && n.Type.Kind == program.Matrix && n.Maps()
		if w.other && (n.Op == program.Cross || n.Op == program.Slice) {
			n.Layout = program.Other
		}
	})
	p.Timed = true
	all := make([]int64, w.seeds)
	for i := range all {
		all[i] = int64(i) * int64(vertices/w.seeds)
	}
	var best []float64
	for range repeats {
		var stop atomic.Bool
		m, err := run.Sample(&run.Request{Program: p, Batch: request.Batch{Seeds: csc.Array{Bits: 64, I64: all}}, Relation: g}, nil, &stop)
		if err != nil {
			return nil, err
		}
		found := timesOf(m, p)
		m.Release()
		if best == nil {
			best = found
		}
		for i, us := range found {
			best[i] = min(best[i], us)
		}
	}
	return best, nil
}

// timesOf are the times in a batch: its last array.
func timesOf(m memory.Memory, p *program.Program) []float64 {
	blocks, extras := len(p.Matrices), p.NumExtras()
	l := batch.Homogeneous(blocks)
	l.Extras = extras
	at := memory.ViewAt[int64](m, 0, int64(l.Words()))[l.Extra(extras-1):]
	var times []float64
	for _, x := range memory.ViewAt[float32](m, at[batch.ExtraOffset], at[batch.ExtraLength]) {
		times = append(times, float64(x))
	}
	return times
}

// empty is a graph of one edge and many nodes.
func empty() *csc.Relation {
	indptr := make([]int64, large+1)
	for v := range indptr[1:] {
		indptr[v+1] = 1
	}
	return &csc.Relation{
		NumNodes: large, Indptr: csc.Array{Bits: 64, I64: indptr}, Indices: csc.Array{Bits: 32, I32: make([]int32, 1)},
		EdgeData: map[string]csc.Values{"w": csc.ValuesOf([]float64{1})},
	}
}

// graph is one of nodes that all have the same degree, and neighbors anywhere.
func graph() *csc.Relation {
	indptr, indices := make([]int64, vertices+1), make([]int32, vertices*degree)
	weights := make([]float64, len(indices))
	x := uint32(1)
	for i := range indices {
		x = x*1664525 + 1013904223
		indices[i] = int32(x >> 16)
		weights[i] = 1 + float64(x>>8&1023)/1024
	}
	for v := range indptr {
		indptr[v] = int64(v) * degree
	}
	for v := range vertices {
		slices.Sort(indices[v*degree : (v+1)*degree])
	}
	return &csc.Relation{
		NumNodes: vertices, Indptr: csc.Array{Bits: 64, I64: indptr}, Indices: csc.Array{Bits: 32, I32: indices},
		EdgeData:   map[string]csc.Values{"w": csc.ValuesOf(weights)},
		VertexData: map[string]csc.Values{"x": csc.ValuesOf(weights[:vertices])},
	}
}
