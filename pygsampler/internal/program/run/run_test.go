package run

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// All work of several units is several workers' here.
func init() { worthwhile = 0 }

// lender is a crew that always has so many workers.
type lender int

func (l lender) Borrow(n int) int { return min(n, int(l)) }
func (l lender) Return(int)       {}

// parse is a program whose lines have numbers by their order.
func parse(t testing.TB, weight string, lines ...string) *program.Program {
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

// result is a batch and its arrays beside the blocks.
type result struct {
	batchtest.Batch
	Lists   map[string][]int64
	Vectors map[string][]float32
}

func read(m memory.Memory, p *program.Program) result {
	r := result{batchtest.Read(m), map[string][]int64{}, map[string][]float32{}}
	l, _ := batch.LayoutOf(memory.ViewAt[int64](m, 0, batch.FixedWords))
	words := memory.ViewAt[int64](m, 0, int64(l.Words()))
	for i, e := range p.Extras {
		w := words[l.Extra(i):]
		if length, at := w[batch.ExtraLength], w[batch.ExtraOffset]; w[batch.ExtraKind] == 1 {
			r.Lists[e.Name] = batchtest.Ints(m, at, length, r.IDBits)
		} else {
			r.Vectors[e.Name] = slices.Clone(memory.ViewAt[float32](m, at, length))
		}
	}
	return r
}

func attempt(p *program.Program, g *csc.Relation, of request.Batch, crew csc.Crew) (r result, err error) {
	var stop atomic.Bool
	m, err := Sample(&Request{Program: p, Batch: of, Relation: g}, crew, &stop)
	if err == nil {
		r = read(m, p)
		m.Release()
	}
	return r, err
}

func sampled(t testing.TB, p *program.Program, g *csc.Relation, of request.Batch) result {
	t.Helper()
	r, err := attempt(p, g, of, lender(0))
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	return r
}

// batchOf is a batch of a number with these seeds.
func batchOf(number uint64, seeds ...int64) request.Batch {
	return request.Batch{Seed: 7, Epoch: 3, Number: number, Seeds: csctest.Array(seeds, 64)}
}

// weighted gives a graph weights by edge ids, some of them 0, and an array of vertices.
func weightedGraph(g *csc.Relation) *csc.Relation {
	w, x := make([]float32, g.NumEdges()), make([]int16, g.NumNodes)
	for i := range w {
		w[i] = float32(rng.Mix(uint64(i)) % 5)
	}
	for i := range x {
		x[i] = int16(rng.Mix(uint64(i))%100) + 1
	}
	g.EdgeData = map[string]csc.Values{"w": csc.ValuesOf(w)}
	g.VertexData = map[string]csc.Values{"x": csc.ValuesOf(x)}
	return g
}

// hops is the program whose hops are the lines, in which %S stands for the vertices so far and %0 for the hop's number.
func hops(t testing.TB, weight string, fanouts []int64, replace bool) *program.Program {
	lines, blocks, seeds := []string{"seeds"}, []string{}, 0
	for hop := range fanouts {
		at := len(lines)
		lines = append(lines, fmt.Sprintf("slice %%%d", seeds),
			fmt.Sprintf("individual %%%d k=%d replace=%t site=%d", at, fanouts[len(fanouts)-1-hop], replace, hop),
			fmt.Sprintf("row %%%d", at+1), fmt.Sprintf("union %%%d, %%%d", seeds, at+2))
		blocks = append([]string{fmt.Sprintf("%%%d", at+1)}, blocks...)
		seeds = at + 3
	}
	return parse(t, weight, append(lines, "return blocks "+strings.Join(blocks, ", "))...)
}

// (slice, individual, row, union)^L is PGSampler, byte for byte.
func TestProgramOfPGSampler(t *testing.T) {
	every, all := csctest.EveryDegree()
	graphs := csctest.Awkward(3000)
	graphs["every degree"], graphs["random"] = every, csctest.RandomRows(300, 5)
	for name, rows := range graphs {
		for _, bits := range []int{32, 64} {
			g := csctest.Graph(rows, int64(max(len(rows), 1)), bits, 96-bits, name != "random")
			seeds := csctest.Squares(min(40, len(rows)), g.NumNodes)
			if name == "every degree" {
				seeds = all
			}
			for _, replace := range []bool{false, true} {
				for _, fanouts := range [][]int64{{5, 3}, {-1}, {0}, {2, -1}, {33, 40}, {1, 2, 3}} {
					p, of := hops(t, "", fanouts, replace), batchOf(uint64(len(fanouts)), seeds...)
					got := sampled(t, p, g, of)
					var stop atomic.Bool
					m, err := cpu.Sample(&cpu.Request{Request: request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: replace}, Batch: of}, Relation: g}, lender(0), &stop)
					if err != nil {
						t.Fatal(err)
					}
					want := batchtest.Read(m)
					m.Release()
					for i := range got.Blocks {
						for _, w := range got.Blocks[i].EdgeWeights {
							if w != 1 {
								t.Fatalf("%s: a value %v of a matrix without weights", name, w)
							}
						}
						got.Blocks[i].EdgeWeights = nil
					}
					if !got.Batch.Equal(want) {
						t.Fatalf("%s, %d bits, fanouts %v, replace %v:\n%+v\nPGSampler:\n%+v", name, bits, fanouts, replace, got.Batch, want)
					}
				}
			}
		}
	}
}

// Programs that have all operators among them.
func programs(t testing.TB) map[string]*program.Program {
	return map[string]*program.Program{
		"ladies": parse(t, "w", "seeds", "slice %0", "const value=2", "pow %1, %2", "sum %3 axis=1", "collective %1, %4 k=4 replace=false site=0",
			"div %5, %4 axis=1", "sum %6 axis=0", "div %6, %7 axis=0", "row %8", "union %0, %9", "slice %10", "collective %11 k=9 replace=true site=1",
			"times %12", "mul %12, %13 axis=1", "return blocks %14, %8 \"p\"=%4 \"all\"=%10"),
		"labor": parse(t, "", "seeds", "slice %0", "random site=0", "count %1 axis=0", "const value=3", "div %4, %3", "spread %1, %2 axis=1",
			"le %6, %5 axis=0", "filter %1, %7", "row %8", "union %0, %9", "cross %10, %10", "individual %11, %11 k=2 replace=true site=1",
			"return subgraph %10, %12 \"c\"=%5"),
		"dependent": parse(t, "w", "seeds", "slice %0", "vertices name=\"x\"", "abs %2", "level %1, %3", "mul %1, %4 axis=0", "const value=1",
			"min %5, %6", "dependent %1, %7 site=0", "row %8", "union %0, %9", "slice %10", "const value=0.4", "count %11 axis=0", "mul %12, %13",
			"level %11, %14", "mul %11, %15 axis=0", "min %16, %6", "dependent %17, %17 site=1", "return blocks %18, %8 \"c\"=%4"),
		"shapes": parse(t, "w", "seeds", "unique %0", "slice %1", "vertices name=\"x\"", "gather %3, %1", "largest %2 axis=0", "mean %2 axis=1", "smallest %2 axis=1",
			"const value=4", "lt %5, %8", "pick %1, %9", "row %2", "cap %6 k=3", "draw %12 k=4 replace=false site=0", "concat %10, %13", "degree",
			"draw %15 k=5 replace=true site=1", "union %14, %16", "slice %17", "random %18 site=2", "top_k %18, %19 k=3", "individual %18, %18 k=3 replace=false site=3",
			"merge %20, %21", "exp %22", "data %23 name=\"w\"", "where %24, %23, %22", "sum %4", "mul %25, %26", "whole", "sum %28 axis=1", "spread %27, %29 axis=1",
			"add %27, %30", "abs %31", "return blocks %32 \"least\"=%7 \"x\"=%4 \"cap\"=%12 \"list\"=%14"),
	}
}

// The result is one whatever the width of ids, the number of workers, what is stored and what is kept.
func TestOneResult(t *testing.T) {
	rows := csctest.RandomRows(3000, 9)
	narrow := weightedGraph(csctest.Graph(rows, 3001, 32, 64, true))
	wide := weightedGraph(csctest.Graph(rows, 3001, 64, 32, true))
	for name, p := range programs(t) {
		for number := range uint64(3) {
			of := batchOf(number, csctest.Squares(900, 3001)...)
			want := sampled(t, p, narrow, of)
			if edges := len(want.Blocks[0].Indices); edges < 20 {
				t.Fatalf("%s: a batch of %d edges", name, edges)
			}
			inline := *p
			inline.Nodes = slices.Clone(p.Nodes)
			for i := range inline.Nodes {
				n := &inline.Nodes[i]
				n.Inline, n.Once = n.Maps() || n.Op == program.Slice, n.Op == program.Sum && p.Nodes[n.In[0]].Op == program.Whole || n.Op == program.Degree
			}
			for way, again := range map[string]func() (result, error){
				"4 workers": func() (result, error) { return attempt(p, narrow, of, lender(3)) },
				"inline":    func() (result, error) { return attempt(&inline, narrow, of, lender(1)) },
				"kept":      func() (result, error) { return attempt(&inline, narrow, of, lender(0)) },
				"64 bits": func() (result, error) {
					r, err := attempt(p, wide, of, lender(0))
					r.IDBits, r.EdgeIDBits = 32, 32
					return r, err
				},
			} {
				got, err := again()
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s, %s: %v, got\n%.500v\nwant\n%.500v", name, way, err, got, want)
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	g := weightedGraph(csctest.Graph([][]int64{{1, 2}, {0}, {}}, 3, 64, 64, false))
	g.EdgeData["minus"] = csc.ValuesOf([]float64{1, -1, 1})
	g.EdgeData["inf"] = csc.ValuesOf([]float64{1, math.Inf(1), 1})
	g.EdgeData["short"] = csc.ValuesOf([]float64{1})
	for want, p := range map[string]*program.Program{
		"weight: expected an edge array 'none' of the graph, got none":                              parse(t, "none", "seeds", "slice %0", "return blocks %1"),
		"ndata: expected a node array 'y' of the graph, got none":                                   parse(t, "", "seeds", "vertices name=\"y\"", "gather %1, %0", "return vectors \"y\"=%2"),
		"weight: expected a value for each edge id in 'short', got 1 of them and an edge with id 1": parse(t, "short", "seeds", "slice %0", "return blocks %1"),
		"individual_sample: expected probabilities that are finite and >= 0, got -1 for node 0":     parse(t, "minus", "seeds", "slice %0", "individual %1, %1 k=1 replace=false site=0", "return blocks %2"),
		"collective_sample: expected probabilities that are finite and >= 0, got -1 for node 2":     parse(t, "minus", "seeds", "slice %0", "sum %1 axis=1", "collective %1, %2 k=1 replace=false site=0", "return blocks %3"),
		"sum: expected finite values, got inf":                                                      parse(t, "inf", "seeds", "slice %0", "sum %1 axis=1", "return vectors \"p\"=%2"),
		"draw: expected probabilities that are finite and >= 0, got -1 for node 2":                  parse(t, "minus", "seeds", "slice %0", "sum %1 axis=1", "draw %2 k=1 replace=true site=0", "return vectors \"p\"=%3"),
	} {
		if want[:6] == "return" {
			p = parse(t, "", "seeds", "unique %0", "slice %1", "return subgraph %1, %2")
		}
		if _, err := attempt(p, g, batchOf(0, 0), lender(0)); !errors.Is(err, request.ErrValue) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, seed := range []int64{-1, 3} {
		want := fmt.Sprintf("seeds[1]: expected an id in [0, 3), got %d", seed)
		if _, err := attempt(hops(t, "", []int64{1}, false), g, batchOf(0, 0, seed), lender(0)); !errors.Is(err, request.ErrIndex) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// A thousand gigabytes.
	rows, seeds := csctest.EveryDegree()
	if _, err := attempt(hops(t, "", []int64{math.MaxInt32}, true), csctest.Graph(rows, 71, 64, 64, false), batchOf(0, seeds...), lender(0)); !errors.Is(err, memory.ErrNoMemory) {
		t.Errorf("got %v of 70 rows of 2^31 edges", err)
	}
	var stop atomic.Bool
	stop.Store(true)
	if _, err := Sample(&Request{Program: programs(t)["ladies"], Batch: batchOf(0, 0), Relation: g}, lender(0), &stop); !errors.Is(err, request.ErrCancelled) {
		t.Errorf("got %v of a batch that was stopped", err)
	}
}

// Arrays that shrink or change under a batch end in an error, and leave no memory behind.
func TestChangedArrays(t *testing.T) {
	g := weightedGraph(csctest.Graph(csctest.RandomRows(300, 5), 300, 64, 64, true))
	before := memory.Count().Live
	for i := range g.Indices.I64 {
		g.Indices.I64[i] = 1 << 40
	}
	for name, p := range programs(t) {
		if _, err := attempt(p, g, batchOf(0, csctest.Steps(300, 1)...), lender(2)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if after := memory.Count().Live; after != before {
		t.Errorf("%d memories, %d before", after, before)
	}
}

// The allocations of a batch do not grow with it.
func TestSteadyState(t *testing.T) {
	if testing.Short() {
		t.Skip("allocations are counted without the race detector")
	}
	g := weightedGraph(csctest.Graph(csctest.RandomRows(20_000, 9), 20_000, 32, 64, true))
	for name, p := range programs(t) {
		few := func(seeds int) float64 {
			of := batchOf(1, csctest.Steps(seeds, 1)...)
			return testing.AllocsPerRun(5, func() {
				var stop atomic.Bool
				m, err := Sample(&Request{Program: p, Batch: of, Relation: g}, lender(0), &stop)
				if err != nil {
					t.Fatal(err)
				}
				m.Release()
			})
		}
		few(20_000)
		if small, large := few(2000), few(20_000); large > small+30 || small > 400 {
			t.Errorf("%s: %v allocations, and %v of ten times the seeds", name, small, large)
		}
	}
}
