package cpu

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// beyond is a graph of more than 2^31 edges whose indices are a view of memory that
// nobody wrote: its pages read as zero and occupy nothing. It is not validated, as
// that would read them all. Its rows: a hub of more than 2^31 in-neighbours, then,
// from a position above 2^31 on, rows of 3, 0, 2000 and 49,997,545 edges.
func beyond(t *testing.T, idBits int) *csc.Relation {
	t.Helper()
	const edges = 2_200_000_000
	ends := []int64{0, 1<<31 + 100, 1<<31 + 103, 1<<31 + 103, 1<<31 + 2103, edges}
	g := &csc.Relation{Indptr: csctest.Array(ends, 64), NumNodes: 9}
	if idBits == 32 {
		g.Indices = csc.Array{Bits: 32, I32: csctest.Sparse[int32](t, edges)}
		for p := ends[1]; p < ends[4]; p++ {
			g.Indices.I32[p] = int32(p % 9)
		}
	} else {
		g.Indices = csc.Array{Bits: 64, I64: csctest.Sparse[int64](t, edges)}
		for p := ends[1]; p < ends[4]; p++ {
			g.Indices.I64[p] = p % 9
		}
	}
	return g
}

func TestMoreThan2To31Edges(t *testing.T) {
	for _, bits := range []int{32, 64} {
		g := beyond(t, bits)
		for _, k := range []struct {
			seeds, fanouts []int64
		}{
			{[]int64{0, 1, 2, 3, 4, 8}, []int64{5}},
			{[]int64{4, 0, 1}, []int64{7, 40, 3}},
			{[]int64{1, 2, 3}, []int64{-1}},
			{[]int64{3}, []int64{2500}},
			{[]int64{0, 4}, []int64{2000}},
		} {
			for _, replace := range []bool{false, true} {
				if replace && k.fanouts[0] < 0 {
					continue
				}
				check(t, Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: k.fanouts, Replace: replace}, Batch: request.Batch{Seed: 77, Seeds: csctest.Array(k.seeds, 64)}}})
			}
		}
	}
}

// The edge ids are 64 bits wide, though the vertices are not, and stay in the rows
// that they come from.
func TestEdgeIDsBeyondInt32(t *testing.T) {
	g := beyond(t, 32)
	r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{100}}, Batch: request.Batch{Seed: 1, Seeds: csctest.Array([]int64{4, 0, 1, 3}, 32)}}}
	var stop atomic.Bool
	m, err := Sample(&r, idle(0), &stop)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	whole := batchtest.Read(m)
	if whole.IDBits != 32 || whole.EdgeIDBits != 64 {
		t.Fatalf("ids of %d bits, edge ids of %d", whole.IDBits, whole.EdgeIDBits)
	}
	b := whole.Blocks[0]
	above := 0
	for i, v := range []int64{4, 0, 1, 3} {
		for _, id := range b.EdgeIDs[b.Indptr[i]:b.Indptr[i+1]] {
			if id < g.Indptr.Element(v) || id >= g.Indptr.Element(v+1) {
				t.Errorf("edge %d is not in row %d", id, v)
			}
			if id > 1<<31 {
				above++
			}
		}
	}
	if above < 203 {
		t.Errorf("%d edges above 2^31", above)
	}
	// Excluded edges are found up there too.
	if r.Exclude, err = g.Exclude([]int64{1<<31 + 101, 7}); err != nil {
		t.Fatal(err)
	}
	r.Seeds = csctest.Array([]int64{1, 0}, 32)
	got := sample(t, &r, idle(0)).Blocks[0]
	if ids := got.EdgeIDs[:2]; !slices.Equal(ids, []int64{1<<31 + 100, 1<<31 + 102}) || got.Indptr[1] != 2 || got.Indptr[2] != 102 {
		t.Errorf("got %v of %v", ids, got.Indptr)
	}
}

// A hub of ten million in-neighbours costs what its fanout costs: neither the
// scratch nor the batch grows with its degree, and where the row is wanted whole
// only the batch does.
func TestHubCostsItsFanout(t *testing.T) {
	const degree = 10_000_000
	g := &csc.Relation{
		Indptr:   csctest.Array([]int64{0, degree, degree + 100}, 64),
		Indices:  csc.Array{Bits: 32, I32: csctest.Sparse[int32](t, degree+100)},
		NumNodes: 2,
	}
	cost := func(seed int64, r Request) (allocated uint64, size int64) {
		r.Relation, r.Seeds = g, csctest.Array([]int64{seed}, 32)
		var before, after runtime.MemStats
		var stop atomic.Bool
		var bytes int64
		for range 2 { // the first fills the scratch
			runtime.ReadMemStats(&before)
			m, err := Sample(&r, idle(0), &stop)
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			bytes = memory.ViewAt[int64](m, 0, batch.FixedWords)[batch.WordSize]
			m.Release()
		}
		return after.TotalAlloc - before.TotalAlloc, bytes
	}
	for _, fanout := range []int64{1, 10, 32, 64} {
		for _, replace := range []bool{false, true} {
			r := Request{Request: request.Request{Hops: request.Hops{Fanouts: []int64{fanout}, Replace: replace}}}
			hub, hubSize := cost(0, r)
			leaf, leafSize := cost(1, r)
			if hubSize != leafSize || hub > leaf+4096 {
				t.Errorf("fanout %d: the hub takes %d bytes and allocates %d, a vertex of 100 takes %d and %d",
					fanout, hubSize, hub, leafSize, leaf)
			}
		}
	}
	if allocated, size := cost(0, Request{Request: request.Request{Hops: request.Hops{Fanouts: []int64{-1}}}}); allocated > 64<<10 || size < 8*degree {
		t.Errorf("the whole hub takes %d bytes and allocates %d beside", size, allocated)
	}
	if allocated, _ := cost(0, Request{Request: request.Request{Hops: request.Hops{Fanouts: []int64{100_000}, Replace: true}}}); allocated > 64<<10 {
		t.Errorf("100,000 draws allocate %d bytes beside the batch", allocated)
	}
	for _, s := range shelf.free {
		for _, w := range s.workers {
			if cap(w.positions) > 64*tileRows*100 {
				t.Errorf("a worker keeps %d positions", cap(w.positions))
			}
		}
	}
}

// In a steady state a batch allocates a few objects of fixed size, however many
// vertices it holds.
func TestSteadyStateAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("allocations are counted without the race detector")
	}
	g := csctest.Graph(csctest.RandomRows(20000, 21), 20000, 64, 64, false)
	for _, crew := range []idle{0, 1, 3} {
		most, more := 40.0, 8.0
		if crew+1 >= rankedWorkers {
			most, more = 90, 50 // the phases of hops that are numbered by rank are functions of their own
		}
		for _, limit := range []int64{0, 1} {
			var counts []float64
			for _, seeds := range []int64{256, 4096} {
				r := Request{Relation: g, MapBytes: limit, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5, 5}}, Batch: request.Batch{Seeds: csctest.Array(upTo(seeds, 19999), 64)}}}
				var stop atomic.Bool
				run := func() {
					r.Number++
					m, err := Sample(&r, crew, &stop)
					if err != nil {
						t.Fatal(err)
					}
					m.Release()
				}
				for range 5 {
					run()
				}
				// The least of some measurements: how many of the crew meet in a phase, and so what
				// the runtime allocates for goroutines that wait, is up to the scheduler.
				least := testing.AllocsPerRun(10, run)
				for range 4 {
					least = min(least, testing.AllocsPerRun(10, run))
				}
				counts = append(counts, least)
			}
			if counts[0] > most || counts[1] > most || counts[1] > counts[0]+more {
				t.Errorf("%d workers, limit %d: %v allocations a batch of 256 seeds, %v of 4096", crew+1, limit, counts[0], counts[1])
			}
		}
	}
}
