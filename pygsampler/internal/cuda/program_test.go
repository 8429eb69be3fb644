package cuda

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/run"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// parsed is a program of lines without their numbers.
func parsed(t testing.TB, weight string, lines ...string) *program.Program {
	t.Helper()
	for i := range lines[:len(lines)-1] {
		lines[i] = fmt.Sprintf("%%%d = %s", i, lines[i])
	}
	p, err := program.Parse(strings.Join(lines, "\n"), weight)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ladies is so many hops of layer-wise sampling, of k rows each.
func ladies(t testing.TB, hops, k int) *program.Program {
	var lines, blocks []string
	at := func(line string, args ...any) int {
		lines = append(lines, fmt.Sprintf(line, args...))
		return len(lines) - 1
	}
	seeds := at("seeds")
	two := at("const value=2")
	for hop := range hops {
		c := at("slice %%%d", seeds)
		p := at("sum %%%d axis=1", at("pow %%%d, %%%d", c, two))
		b := at("collective %%%d, %%%d k=%d replace=false site=%d", c, p, k, hop)
		scaled := at("div %%%d, %%%d axis=1", b, p)
		scaled = at("div %%%d, %%%d axis=0", scaled, at("sum %%%d axis=0", scaled))
		blocks = append([]string{fmt.Sprintf("%%%d", scaled)}, blocks...)
		seeds = at("union %%%d, %%%d", seeds, at("row %%%d", scaled))
	}
	return parsed(t, "w", append(lines, "return blocks "+strings.Join(blocks, ", "))...)
}

// withData is a graph's arrays: w of edges, positive and of many sizes, t that is 0 to 4, n of
// vertices.
func withData(g *csc.Graph) *csc.Graph {
	n := int(g.NumEdges())
	w, kinds, x := make([]float64, n), make([]int8, n), make([]float32, g.NumNodes)
	for i := range w {
		w[i] = math.Ldexp(1+float64(i*37%101)/101, i*13%9-4)
		kinds[i] = int8(i * 7 % 5)
	}
	for v := range x {
		x[v] = float32(v*29%17) / 4
	}
	g.EdgeData = map[string]csc.Values{"w": csc.ValuesOf(w), "t": csc.ValuesOf(kinds)}
	g.VertexData = map[string]csc.Values{"x": csc.ValuesOf(x)}
	return g
}

// outcome is all of a batch as text, with the arrays beside its blocks; equal numbers are equal texts.
func outcome(m memory.Memory) string {
	b := batchtest.Read(m)
	text := fmt.Sprint(b)
	words := memory.At[int64](m, 0, batch.HeaderWords)
	blocks, extras := int(words[batch.WordHops]), int(words[batch.WordExtras])
	words = memory.At[int64](m, 0, int64(batch.ProgramWords(blocks, extras)))
	for i := range extras {
		at := words[batch.ExtraAt(blocks, i):]
		if length, offset := at[batch.ExtraLength], at[batch.ExtraOffset]; at[batch.ExtraKind] == 1 {
			text += fmt.Sprint(" list", batchtest.Ints(m, offset, length, b.IDBits))
		} else {
			text += fmt.Sprint(" vector", memory.At[float32](m, offset, length))
		}
	}
	return text
}

// programDevice is device, where programs can be compiled.
func programDevice(t testing.TB) (*Engine, gpu.Stream) {
	e, s := device(t)
	if r := compiler.Default.Report(); r.Error != "" {
		t.Skip(r.Error)
	}
	return e, s
}

// checkProgram compares a batch of a device, made by several grids, with the CPU's.
func checkProgram(t *testing.T, e *Engine, s gpu.Stream, g *csc.Graph, d *Graph, p *program.Program, seeds []int64, grids ...int) {
	t.Helper()
	b := request.Batch{Seed: 5, Epoch: 1, Number: 2, Seeds: csctest.Array(seeds, 64)}
	var stop atomic.Bool
	m, wrong := run.Sample(&run.Request{Program: p, Batch: b, Graph: g}, nil, &stop)
	want := ""
	if wrong == nil {
		want = outcome(m)
		m.Release()
	}
	plan := NewProgram(p)
	for _, grid := range grids {
		grid = min(grid, 2*e.context.Properties().Multiprocessors)
		made, err := sample(e, d, Call{Plan: plan, Batch: b, Stream: s.Handle(), Grid: grid})
		if (err == nil) != (wrong == nil) || err != nil && err.Error() != wrong.Error() {
			t.Fatalf("grid %d: expected error %v, got %v\n%s", grid, wrong, err, p)
		}
		if err != nil {
			continue
		}
		got, err := made.Download(s)
		if err != nil {
			t.Fatal(err)
		}
		if found := outcome(got); found != want {
			t.Fatalf("grid %d, seeds %v:\n got %.1000s\nwant %.1000s\n%s", grid, seeds, found, want, p)
		}
		got.Release()
		if err := made.Memory.Free(s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProgramLadies(t *testing.T) {
	e, s := programDevice(t)
	g := withData(csctest.Graph(csctest.RandomRows(300, 1), 300, 64, 32, true))
	d := upload(t, e, g)
	checkProgram(t, e, s, g, d, ladies(t, 2, 20), []int64{3, 9, 3, 200, 150, 7}, 1, 4)
}
