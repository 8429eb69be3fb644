package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// mag is a graph with the counts of ogbn-mag: eight relations, of which each second is the reverse of the one before.
func mag(b *testing.B) *csc.Graph {
	const paper, author, institution, field = 0, 1, 2, 3
	g := &csc.Graph{Schema: &csc.Schema{NodeTypes: []csc.NodeType{
		{Name: "paper", Nodes: 736_389}, {Name: "author", Nodes: 1_134_649},
		{Name: "institution", Nodes: 8_740}, {Name: "field", Nodes: 59_965},
	}}}
	draw := rand.New(rand.NewPCG(1, 2))
	on := func(n int64) []int64 {
		pages, err := memory.Map(n * 8)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(pages.Free)
		return memory.Slice[int64](pages, n)
	}
	add := func(src, dst int, indptr, indices []int64) {
		g.Add(csc.EdgeType{Src: src, Dst: dst, Salt: draw.Uint64()}, &csc.Relation{
			Indptr: csc.Array{Bits: 64, I64: indptr}, Indices: csc.Array{Bits: 64, I64: indices},
			NumNodes: max(g.NodeTypes[src].Nodes, g.NodeTypes[dst].Nodes),
		})
	}
	for _, about := range []struct {
		src, dst int
		edges    int64
	}{{author, paper, 7_145_660}, {author, institution, 1_043_998}, {paper, paper, 5_416_271}, {paper, field, 7_505_078}} {
		from, to := g.NodeTypes[about.src].Nodes, g.NodeTypes[about.dst].Nodes
		degrees, total := make([]float64, to), 0.0
		for v := range degrees {
			degrees[v] = min(math.Pow(1-draw.Float64(), -1/1.4), float64(to)/20)
			total += degrees[v]
		}
		counts := make([]int64, to)
		left := about.edges
		for v, d := range degrees {
			counts[v] = int64(d * float64(about.edges) / total)
			left -= counts[v]
		}
		for ; left > 0; left-- {
			counts[draw.Int64N(to)]++
		}
		indptr, indices := on(to+1), on(about.edges)
		back, sources := on(from+1), on(about.edges)
		by := draw.Perm(int(from))
		at := int64(0)
		for v, n := range counts {
			for range n {
				u := draw.Float64()
				indices[at] = int64(by[int(u*u*float64(from))])
				back[indices[at]+1]++
				at++
			}
			indptr[v+1] = at
		}
		for v := range from {
			back[v+1] += back[v]
		}
		next := slices.Clone(back)
		for v := range to {
			for _, u := range indices[indptr[v]:indptr[v+1]] {
				sources[next[u]] = v
				next[u]++
			}
		}
		add(about.src, about.dst, indptr, indices)
		add(about.dst, about.src, back, sources)
	}
	return g
}

// BenchmarkHetero is batches of 1024 papers of a graph like ogbn-mag, uniform and by weight, on one core and on two: of the
// batches the least time that the processor has spent and that has passed, and the medians.
func BenchmarkHetero(b *testing.B) {
	uniform := mag(b)
	weighted := &csc.Graph{Schema: uniform.Schema, Relations: slices.Clone(uniform.Relations)}
	pareto := some(func(u float64) float64 { return math.Pow(u, -1/1.2) })
	r := HeteroRequest{Seeds: []int64{1024, 0, 0, 0}}
	for i := range weighted.Relations {
		weighted.Relations[i] = byWeight(b, weighted.Relations[i], pareto)
		r.Fanouts = append(r.Fanouts, []int64{10, 10})
	}
	for _, c := range []struct {
		name  string
		graph *csc.Graph
		extra int
	}{{"one", uniform, 0}, {"two", uniform, 1}, {"weighted one", weighted, 0}, {"weighted two", weighted, 1}} {
		b.Run(c.name, func(b *testing.B) {
			var stop atomic.Bool
			draw := rand.New(rand.NewPCG(3, 4))
			seeds := make([]int64, 1024)
			var spent, passed []float64
			r.Graph = c.graph
			for b.Loop() {
				for i := range seeds {
					seeds[i] = draw.Int64N(c.graph.NodeTypes[0].Nodes)
				}
				r.Batch = request.Batch{Seeds: csc.Array{Bits: 64, I64: seeds}, Number: r.Number + 1}
				start, begun := processTime(), time.Now()
				m, err := SampleHetero(&r, idle(c.extra), &stop)
				spent = append(spent, float64((processTime() - start).Microseconds()))
				passed = append(passed, float64(time.Since(begun).Microseconds()))
				if err != nil {
					b.Fatal(err)
				}
				m.Release()
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(slices.Min(spent), "us-cpu/least")
			b.ReportMetric(median(spent), "us-cpu/median")
			b.ReportMetric(slices.Min(passed), "us/least")
			b.ReportMetric(median(passed), "us/median")
		})
	}
}

// processTime is what this process has used.
func processTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
