package cpu

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// powerLaw is a graph of about so many edges whose degrees and popularity are skewed, on
// huge pages as NumPy's arrays are.
func powerLaw(b *testing.B, nodes, edges int64) *csc.Relation {
	draw := rand.New(rand.NewPCG(uint64(nodes), 1))
	degrees, total := make([]float64, nodes), 0.0
	for v := range degrees {
		degrees[v] = min(math.Pow(1-draw.Float64(), -1/1.2), float64(nodes)/20)
		total += degrees[v]
	}
	indptr := make([]int64, nodes+1)
	for v, d := range degrees {
		indptr[v+1] = indptr[v] + int64(d*float64(edges)/total)
	}
	pages, err := memory.Map(indptr[nodes] * 8)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pages.Free)
	indices := memory.Slice[int64](pages, indptr[nodes])
	by := draw.Perm(int(nodes))
	for p := range indices {
		u := draw.Float64()
		indices[p] = int64(by[int(u*u*float64(nodes))])
	}
	return &csc.Relation{
		Indptr: csc.Array{Bits: 64, I64: indptr}, Indices: csc.Array{Bits: 64, I64: indices}, NumNodes: nodes,
	}
}

// byWeight is the graph with tables of weights that draw gives.
func byWeight(b *testing.B, g *csc.Relation, draw func(id int64) float64) *csc.Relation {
	build := weights.Build{Relation: g, Value: draw, Len: g.NumEdges(), Name: "weight"}
	m, err := build.Run()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Release)
	words := memory.ViewAt[int64](m, 0, weights.TablesSums+1)
	weighted := &csc.Relation{Indptr: g.Indptr, Indices: g.Indices, NumNodes: g.NumNodes}
	weighted.Alias = memory.ViewAt[uint64](m, words[weights.TablesAlias], g.NumEdges())
	weighted.Sums = memory.ViewAt[uint64](m, words[weights.TablesSums], g.NumEdges())
	return weighted
}

// some is a weight for an edge, one of 2^16 that law gives for numbers in (0, 1).
func some(law func(u float64) float64) func(id int64) float64 {
	var values [1 << 16]float64
	for i := range values {
		values[i] = law((float64(i) + 0.5) / (1 << 16))
	}
	return func(id int64) float64 { return values[uint64(id)*0x9E3779B97F4A7C15>>48] }
}

// turn is how many batches a graph has at a time, so that caches are its own.
const turn = 4

// BenchmarkWeighted is what weights cost: uniform batches and weighted ones in turns, on one
// core, and the median of their ratios.
func BenchmarkWeighted(b *testing.B) {
	for _, k := range []struct {
		name         string
		nodes, edges int64
	}{{"products", 160_000, 8_000_000}, {"reddit", 16_000, 8_000_000}} {
		g := powerLaw(b, k.nodes, k.edges)
		graphs := []*csc.Relation{
			g, byWeight(b, g, some(func(u float64) float64 { return 1 + 4*u })),
			byWeight(b, g, some(func(u float64) float64 { return math.Pow(u, -1/1.2) })),
		}
		for _, fanouts := range [][]int64{{10, 10}, {15, 10, 5}} {
			for _, replace := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%v/replace=%v", k.name, fanouts, replace), func(b *testing.B) {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					var stop atomic.Bool
					draw := rand.New(rand.NewPCG(3, 4))
					r := Request{Request: request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: replace}}}
					var spent, ratios [3][]float64
					seeds := make([]int64, 1024)
					for round := 0; b.Loop(); round++ {
						for i := range graphs {
							which := (i + round) % 3
							r.Relation = graphs[which]
							total := time.Duration(0)
							for range turn {
								for i := range seeds {
									seeds[i] = draw.Int64N(k.nodes)
								}
								r.Seeds = csc.Array{Bits: 64, I64: seeds}
								r.Number++
								start := ownTime()
								m, err := Sample(&r, idle(0), &stop)
								total += ownTime() - start
								if err != nil {
									b.Fatal(err)
								}
								m.Release()
							}
							spent[which] = append(spent[which], float64(total.Microseconds())/turn)
						}
						for which := range graphs {
							ratios[which] = append(ratios[which], spent[which][round]/spent[0][round])
						}
					}
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(median(spent[0]), "us/uniform")
					b.ReportMetric(median(ratios[1]), "x[1,5)")
					b.ReportMetric(median(ratios[2]), "xPareto")
				})
			}
		}
	}
}

// ownTime is what this thread has used: other programs do not count.
func ownTime() time.Duration {
	var now syscall.Timespec
	const threadTime = 3 // CLOCK_THREAD_CPUTIME_ID
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadTime, uintptr(unsafe.Pointer(&now)), 0); err != 0 {
		panic(err)
	}
	return time.Duration(now.Nano())
}

func median[T cmp.Ordered](a []T) T {
	slices.Sort(a)
	return a[len(a)/2]
}
