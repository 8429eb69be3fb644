package cpu

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// BenchmarkManyWorkers is batches of 1024 seeds and three hops of a graph with the counts of ogbn-products, by several numbers
// of workers, which take turns: the least time and the median of what passed, of what the processors spent, and of page faults.
// On a machine of fewer cores than workers the time that the processors spend says what more cores would share.
func BenchmarkManyWorkers(b *testing.B) {
	g := powerLaw(b, 2_449_029, 61_859_140)
	sizes := []int{1, 2, 3, 4, 16}
	var stop atomic.Bool
	draw := rand.New(rand.NewPCG(3, 4))
	seeds := make([]int64, 1024)
	for _, mapBytes := range []int64{0, 1} {
		b.Run(fmt.Sprintf("map=%d", mapBytes), func(b *testing.B) {
			passed, spent, faults := make([][]float64, len(sizes)), make([][]float64, len(sizes)), make([][]float64, len(sizes))
			r := Request{Relation: g, MapBytes: mapBytes, Request: request.Request{Hops: request.Hops{Fanouts: []int64{15, 10, 5}}}}
			for b.Loop() {
				for k, size := range sizes {
					for i := range seeds {
						seeds[i] = draw.Int64N(g.NumNodes)
					}
					r.Number++
					r.Batch = request.Batch{Seeds: csc.Array{Bits: 64, I64: seeds}, Number: r.Number}
					before, start, begun := minorFaults(), processTime(), time.Now()
					m, err := Sample(&r, idle(size-1), &stop)
					passed[k] = append(passed[k], time.Since(begun).Seconds()*1e3)
					spent[k] = append(spent[k], (processTime()-start).Seconds()*1e3)
					faults[k] = append(faults[k], float64(minorFaults()-before))
					if err != nil {
						b.Fatal(err)
					}
					m.Release()
				}
			}
			b.ReportMetric(0, "ns/op")
			for k, size := range sizes {
				b.ReportMetric(slices.Min(passed[k]), fmt.Sprintf("ms-least/%d", size))
				b.ReportMetric(median(passed[k]), fmt.Sprintf("ms/%d", size))
				b.ReportMetric(median(spent[k]), fmt.Sprintf("ms-cpu/%d", size))
				b.ReportMetric(median(faults[k]), fmt.Sprintf("faults/%d", size))
			}
		})
	}
}

// minorFaults is how many pages this process has touched for the first time.
func minorFaults() int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return used.Minflt
}

// BenchmarkManyBatches is such batches, several at a time with one worker each, as a loader has them: per batch, what the
// processors spent, page faults, objects of Go's heap and its collections.
func BenchmarkManyBatches(b *testing.B) {
	g := powerLaw(b, 2_449_029, 61_859_140)
	for _, flight := range []int{1, 2, 16, 20} {
		b.Run(fmt.Sprint(flight), func(b *testing.B) {
			sample := func(batches int64) {
				var next atomic.Int64
				var over sync.WaitGroup
				for range flight {
					over.Go(func() {
						var stop atomic.Bool
						seeds := make([]int64, 1024)
						for n := next.Add(1); n <= batches; n = next.Add(1) {
							draw := rand.New(rand.NewPCG(3, uint64(n)))
							for i := range seeds {
								seeds[i] = draw.Int64N(g.NumNodes)
							}
							r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{15, 10, 5}}}}
							r.Batch = request.Batch{Seeds: csc.Array{Bits: 64, I64: seeds}, Number: uint64(n)}
							m, err := Sample(&r, idle(0), &stop)
							if err != nil {
								panic(err)
							}
							m.Release()
						}
					})
				}
				over.Wait()
			}
			sample(2 * int64(flight)) // maps and pools fill
			var stats [2]runtime.MemStats
			runtime.ReadMemStats(&stats[0])
			before, start := minorFaults(), processTime()
			b.ResetTimer()
			sample(int64(b.N))
			spent := processTime() - start
			runtime.ReadMemStats(&stats[1])
			b.ReportMetric(spent.Seconds()*1e3/float64(b.N), "ms-cpu/batch")
			b.ReportMetric(float64(minorFaults()-before)/float64(b.N), "faults/batch")
			b.ReportMetric(float64(stats[1].Mallocs-stats[0].Mallocs)/float64(b.N), "objects/batch")
			b.ReportMetric(float64(stats[1].NumGC-stats[0].NumGC), "collections")
		})
	}
}
