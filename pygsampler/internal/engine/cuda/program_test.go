package cuda

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/run"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
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
func withData(g *csc.Relation) *csc.Relation {
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
	l, _ := batch.LayoutOf(memory.ViewAt[int64](m, 0, batch.FixedWords))
	words := memory.ViewAt[int64](m, 0, int64(l.Words()))
	for i := range l.Extras {
		at := words[l.Extra(i):]
		if length, offset := at[batch.ExtraLength], at[batch.ExtraOffset]; at[batch.ExtraKind] == 1 {
			text += fmt.Sprint(" list", batchtest.Ints(m, offset, length, b.IDBits))
		} else {
			text += fmt.Sprint(" vector", memory.ViewAt[float32](m, offset, length))
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
func checkProgram(t *testing.T, e *Engine, s gpu.Stream, g *csc.Relation, d *Graph, p *program.Program, seeds []int64, grids ...int) {
	t.Helper()
	b := request.Batch{Seed: 5, Epoch: 1, Number: 2, Seeds: csctest.Array(seeds, 64)}
	var stop atomic.Bool
	m, wrong := run.Sample(&run.Request{Program: p, Batch: b, Relation: g}, nil, &stop)
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

// programs are samplers of papers, and what these leave out.
func programs(t testing.TB) map[string]*program.Program {
	return map[string]*program.Program{
		"ladies": ladies(t, 2, 20),
		"fastgcn": parsed(t, "w", "seeds", "whole", "const value=2", "pow %1, %2", "sum %3 axis=1", "draw %4 k=40 replace=false site=0",
			"draw %4 k=9 replace=true site=1", "unique %0", "cross %5, %7", "div %8, %4 axis=1", "sum %4", "unique %6",
			`return blocks %9 "q"=%4 "drawn"=%6 "distinct"=%11`),
		"weighted": parsed(t, "w", "seeds", "slice %0", "individual %1, %1 k=4 replace=false site=0", "row %2", "slice %3",
			"individual %4, %4 k=3 replace=true site=1", "union %0, %3", `return blocks %5, %2 "reached"=%6`),
		"labor": parsed(t, "", "seeds", "slice %0", "random site=0", "const value=3", "count %1 axis=0", "div %3, %4",
			"spread %1, %5 axis=0", "le %2, %6 axis=1", "filter %1, %7", "random %8 site=1", "add %8, %9", "return blocks %10"),
		// A factor is a double, of which a result has 24 digits, and what a product leaves of it the others.
		"labor, weighted": parsed(t, "w", "seeds", "slice %0", "labor %1, %1 k=3", "mul %1, %2 axis=0", "largest %3 axis=1", "spread %1, %4 axis=1",
			"labor %1, %5 k=2", "labor %5, %1 k=-1", "const value=134217729", "mul %6, %8", "sub %9, %6", "sub %9, %10", "sub %6, %11",
			`return vectors "c"=%2 "d"=%6 "e"=%7 "f"=%12`),
		// Factors by a number, and by what the columns' vertices say; the hub of some graphs is long.
		"dependent": parsed(t, "w", "seeds", "slice %0", "count %1 axis=0", "const value=2.5", "min %2, %3", "level %1, %4", "mul %1, %5 axis=0",
			"const value=1", "min %6, %7", "dependent %1, %8 site=0", `vertices name="x"`, "abs %10", "level %1, %11", "const value=134217729",
			"mul %5, %13", "sub %14, %5", "sub %14, %15", "sub %5, %16", `return blocks %9 "c"=%5 "d"=%12 "low"=%17`),
		"shadow": parsed(t, "w", "seeds", "unique %0", "slice %1", "individual %2 k=3 replace=false site=0", "row %3", "union %1, %4",
			"cross %5, %5", "degree", "gather %7, %5", `return subgraph %5, %6 "degree"=%8`),
		"again": parsed(t, "w", "seeds", "slice %0", "collective %1 k=7 replace=true site=0", "times %2", "mul %2, %3 axis=1",
			"individual %1 k=5 replace=true site=1", "merge %4, %5", `data %6 name="t"`, "top_k %6, %7 k=4", "return blocks %8"),
		// Rows find their values among the rows that they were chosen from, two steps back, and
		// along a list.
		"inherited": parsed(t, "w", "seeds", "slice %0", "sum %1 axis=1", "individual %1, %1 k=4 replace=false site=0", "row %3", "gather %2, %4",
			"collective %3, %5 k=9 replace=false site=1", "row %6", "gather %2, %7", "sqrt %8", "div %6, %9 axis=1", "unique %0", `vertices name="x"`,
			"gather %12, %4", "cross %4, %11", "individual %14 k=2 replace=true site=2", "row %15", "gather %13, %16", "gather %5, %16", "add %17, %18",
			`return blocks %10, %15 "p"=%5 "q"=%8 "x"=%19 "rows"=%16`),
		"reductions": parsed(t, "w", "seeds", "slice %0", "neg %1", "largest %2 axis=1", "smallest %1 axis=0", "mean %1 axis=1",
			"mean %1 axis=0", "count %1 axis=1", "mean %5", "largest %5", "sub %5, %8", "cap %5 k=3", "exp %10", `vertices name="x"`,
			"row %1", "gather %13, %14", "mul %15, %3", "div %10, %9", "pick %14, %15",
			// Rounding errors, so that a sum in another order shows in float32.
			"const value=3", "mul %1, %19", "sum %20 axis=0", "sum %1 axis=0", "mul %22, %19", "sub %21, %23",
			"sum %20 axis=1", "sum %1 axis=1", "mul %26, %19", "sub %25, %27",
			`return vectors "a"=%3 "b"=%4 "c"=%6 "d"=%7 "e"=%17 "f"=%11 "g"=%12 "h"=%16 "i"=%18 "j"=%24 "k"=%28`),
	}
}

func TestPrograms(t *testing.T) {
	e, s := programDevice(t)
	graphs := csctest.Awkward(3000)
	graphs["random"] = csctest.RandomRows(600, 1)
	for name, p := range programs(t) {
		t.Run(name, func(t *testing.T) {
			for of, rows := range graphs {
				n, narrow := int64(len(rows)), of == "random"
				g := withData(csctest.Graph(rows, n+2, 64-32*int(Word(narrow)), 64, !narrow))
				d := upload(t, e, g)
				for _, seeds := range [][]int64{{}, {0, n, 0, n + 1}} {
					checkProgram(t, e, s, g, d, p, seeds, 3)
				}
				checkProgram(t, e, s, g, d, p, csctest.Steps(int(min(n, 150)), 1), 1, 4)
			}
		})
	}
}

// Maps have the CPU's bits: of each value both halves, since a result has but 24.
func TestProgramNumbers(t *testing.T) {
	e, s := programDevice(t)
	x := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 709.78, 709.79, -745.14, -745.13, -708.4, 5e-324, 0x1p-1022, math.MaxFloat64, 64, 65, -64}
	for i := range 3000 {
		state := uint64(i)*0x9E3779B97F4A7C15 + 1
		x = append(x, math.Ldexp(float64(int64(state))*0x1p-63, i%23-11), math.Float64frombits(state*state))
	}
	g := csctest.Graph(nil, int64(len(x)), 32, 32, false)
	g.VertexData = map[string]csc.Values{"x": csc.ValuesOf(x)}
	lines := []string{"seeds", `vertices name="x"`, "const value=0.3", "const value=-3", "const value=0.5", "const value=134217729",
		"exp %1", "log %1", "sqrt %1", "pow %1, %2", "pow %1, %3", "pow %1, %4", "pow %1, %1", "div %2, %1"}
	returned := "return vectors"
	for made := 6; made < 14; made++ {
		n := len(lines)
		lines = append(lines, fmt.Sprintf("mul %%%d, %%5", made), fmt.Sprintf("sub %%%d, %%%d", n, made), fmt.Sprintf("sub %%%d, %%%d", n, n+1), fmt.Sprintf("sub %%%d, %%%d", made, n+2))
		returned += fmt.Sprintf(` "high%d"=%%%d "low%d"=%%%d`, made, n+2, made, n+3)
	}
	checkProgram(t, e, s, g, upload(t, e, g), parsed(t, "", append(lines, returned)...), []int64{0}, 3)
}

// A batch is made again with more room until it fits, whatever was too small at first; in a caller's memory
// that is too small there is none.
func TestProgramRoom(t *testing.T) {
	e, s := programDevice(t)
	g := withData(csctest.Graph(csctest.RandomRows(600, 3), 600, 32, 32, false))
	d, p := upload(t, e, g), ladies(t, 2, 50)
	plan := NewProgram(p)
	call := Call{Plan: plan, Batch: request.Batch{Seeds: csctest.Array(csctest.Steps(300, 2), 32)}, Stream: s.Handle()}
	make := func(n Needs) (string, int) {
		t.Helper()
		f, err := e.flight(d, &call)
		if err != nil {
			t.Fatal(err)
		}
		f.need = n
		if err := f.start(); err != nil {
			t.Fatal(err)
		}
		b, _, err := f.Wait(-1)
		if err != nil {
			t.Fatal(err)
		}
		m, err := b.Download(s)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Release()
		return outcome(m), f.tries
	}
	small, tries := make(Needs{Out: 64, Work: 64, Rows: 64, Edges: 64})
	// Buffers of 64 KiB, the least there are, are too small for either.
	if tries < 3 {
		t.Errorf("expected to make the batch anew, got it at the first of %d", tries)
	}
	call.Batch.Seeds = csctest.Array(csctest.Steps(300, 2), 32)
	if again, tries := make(d.need(plan, 300)); again != small || tries != 1 {
		t.Errorf("expected the same batch at once, got it after %d", tries)
	}
	region, err := e.pool.Alloc(s, 1<<12)
	if err != nil {
		t.Fatal(err)
	}
	call.Out, call.OutBytes = region.Address, 1<<12
	call.Batch.Seeds = csctest.Array(csctest.Steps(300, 2), 32)
	if b, err := sample(e, d, call); err != nil || b.Needed <= 1<<12 {
		t.Errorf("got %+v, %v", b, err)
	}
	if err := region.Free(s); err != nil {
		t.Error(err)
	}
}

// Batches on their way at once have vertex maps and memory of their own.
func TestProgramsInFlight(t *testing.T) {
	e, s := programDevice(t)
	g := withData(csctest.Graph(csctest.RandomRows(600, 3), 600, 32, 32, true))
	d, p := upload(t, e, g), ladies(t, 2, 50)
	plan := NewProgram(p)
	var flights []*Flight
	for number := range uint64(6) {
		b := request.Batch{Number: number, Seeds: csctest.Array(csctest.Steps(100, 5), 32)}
		f, err := e.Start(d, &Call{Plan: plan, Batch: b, Stream: s.Handle(), Own: true})
		if err != nil {
			t.Fatal(err)
		}
		flights = append(flights, f)
	}
	seen := map[string]bool{}
	for number, f := range flights {
		made, _, err := f.Wait(-1)
		if err != nil {
			t.Fatal(err)
		}
		m, err := made.Download(s)
		if err != nil {
			t.Fatal(err)
		}
		b := request.Batch{Number: uint64(number), Seeds: csctest.Array(csctest.Steps(100, 5), 32)}
		want, err := run.Sample(&run.Request{Program: p, Batch: b, Relation: g}, nil, new(atomic.Bool))
		if err != nil {
			t.Fatal(err)
		}
		if found := outcome(m); found != outcome(want) || seen[found] {
			t.Errorf("batch %d: got %.300s", number, found)
		} else {
			seen[found] = true
		}
		m.Release()
		want.Release()
		if err := made.Memory.Free(made.Stream); err != nil {
			t.Error(err)
		}
	}
}

func TestProgramErrors(t *testing.T) {
	e, s := programDevice(t)
	g := withData(csctest.Graph([][]int64{{1, 2}, {0, 0, 2}, {1}}, 3, 32, 32, false))
	g.EdgeData["bad"] = csc.ValuesOf([]float64{1, 2, -3, math.Inf(1), 1, 1})
	d := upload(t, e, g)
	for want, p := range map[string]*program.Program{
		"individual_sample: expected probabilities that are finite and >= 0, got -3 for node 1": parsed(t, "bad", "seeds", "slice %0", "individual %1, %1 k=-1 replace=false site=0", "return blocks %2"),
		"sum: expected finite values, got inf":                                                  parsed(t, "bad", "seeds", "slice %0", "sum %1 axis=1", `return vectors "a"=%2`),
		"collective_sample: expected probabilities that are finite and >= 0, got -1 for node 1": parsed(t, "", "seeds", "slice %0", "sum %1 axis=1", "const value=1", "sub %3, %2", "collective %1, %4 k=1 replace=true site=0", "return blocks %5"),
	} {
		checkProgram(t, e, s, g, d, p, []int64{2, 1, 0}, 1, 3)
		_, err := sample(e, d, Call{Plan: NewProgram(p), Batch: request.Batch{Seeds: csctest.Array([]int64{2, 1, 0}, 64)}, Stream: s.Handle()})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("expected %s, got %v", want, err)
		}
	}
	// The state of a failed launch does not disturb the next one.
	checkProgram(t, e, s, g, d, ladies(t, 1, 2), []int64{1, 7}, 2)
	checkProgram(t, e, s, g, d, ladies(t, 1, 2), []int64{1, 2}, 2)
	for want, p := range map[string]*program.Program{
		`edata["none"]: expected an edge array of the graph on the device, got none`: parsed(t, "none", "seeds", "slice %0", "return blocks %1"),
		`ndata["w"]: expected a node array of the graph on the device, got none`:     parsed(t, "", "seeds", `vertices name="w"`, `return vectors "a"=%1`),
	} {
		_, err := sample(e, d, Call{Plan: NewProgram(p), Batch: request.Batch{Seeds: csctest.Array([]int64{2}, 64)}, Stream: s.Handle()})
		if !errors.Is(err, request.ErrValue) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("expected %s, got %v", want, err)
		}
	}
}
