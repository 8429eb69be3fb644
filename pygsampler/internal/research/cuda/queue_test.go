package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// unordered is a call that may number vertices as they arrive.
func unordered(is bool) cuda.Call { return cuda.Call{Plan: &Queue{Unordered: is}} }

// queueCheck compares batches of the task queue, one for each grid, with the CPU's:
// byte for byte where ordered, else as sameSample does.
func queueCheck(t *testing.T, e *cuda.Engine, s gpu.Stream, d *cuda.Graph, r cpu.Request, c cuda.Call, grids ...int) {
	t.Helper()
	if err := queueCompare(e, s, d, r, c, grids...); err != nil {
		t.Fatal(err)
	}
}

func queueCompare(e *cuda.Engine, s gpu.Stream, d *cuda.Graph, r cpu.Request, c cuda.Call, grids ...int) error {
	want, err := onCPU(&r)
	if err != nil {
		return err
	}
	p := &Queue{Hops: cuda.Hops{Hops: r.Hops}}
	if like, ok := c.Plan.(*Queue); ok {
		p.Unordered, p.FetchSize = like.Unordered, like.FetchSize
	}
	c.Plan, c.Stream = p, s.Handle()
	c = with(c, r.Request, "queue")
	k, err := cuda.Cached(e, "queue", loadQueue)
	if err != nil {
		return err
	}
	for _, c.Grid = range grids {
		c.Grid = min(c.Grid, k.most)
		where := fmt.Sprintf("grid %d, %d seeds, fanouts %v, replace %v, unordered %v, fetch %d, %d excluded",
			c.Grid, r.Seeds.Len(), r.Fanouts, r.Replace, p.Unordered, p.FetchSize, len(c.Exclude))
		b, err := sample(e, d, c)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		got, err := read(b, s)
		if err != nil {
			return err
		}
		if !p.Unordered && !got.Equal(want) {
			return fmt.Errorf("%s:\n got %.300s\nwant %.300s", where, fmt.Sprint(got), fmt.Sprint(want))
		}
		if p.Unordered {
			if err := sameSample(got, want); err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
		}
	}
	return nil
}

// Every small degree with every small fanout, at the first hop and at the second.
func TestQueueEveryDegreeAndFanout(t *testing.T) {
	e, s := device(t)
	rows, seeds := csctest.EveryDegree()
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, rows, 71, bits, 96-bits, bits == 32)
		for fanout := int64(1); fanout <= 40; fanout++ {
			for _, replace := range []bool{false, true} {
				r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{41 - fanout, fanout}, Replace: replace}, Batch: request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(seeds, bits)}}}
				plan := &Queue{Unordered: fanout%4 == 0, FetchSize: fanout % 7}
				queueCheck(t, e, s, d, r, cuda.Call{Plan: plan}, int(1+fanout%5))
			}
		}
	}
}

func TestQueueRandomGraphs(t *testing.T) {
	e, s := device(t)
	deep := slices.Repeat([]int64{1}, cuda.MostHops)
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3060, bits, 64, bits == 32)
		for _, size := range []int{0, 1, 33, 700, 5000} {
			for i, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {0, 3}, {10, 0}, {5}, {64, 33}, {2, 2, 2, 2, 2}, {-1}, {40, -1}, deep} {
				r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: i%2 == 1}, Batch: request.Batch{Seed: 1 << 63, Epoch: 7, Number: 1<<39 + 5, Seeds: csctest.Array(csctest.Mixed(size), bits)}}}
				queueCheck(t, e, s, d, r, cuda.Call{}, 0, 1+i%3)
				queueCheck(t, e, s, d, r, cuda.Call{Plan: &Queue{FetchSize: 5}}, 0)
				r.Replace = !r.Replace
				queueCheck(t, e, s, d, r, cuda.Call{Plan: &Queue{Unordered: true, FetchSize: MostFetched}}, 7)
			}
		}
	}
}

// Vertices of 32 bits and edge ids of 64, and the other way round.
func TestQueueEdgeIDsOfAnotherWidth(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		g := csctest.Graph(csctest.RandomRows(400, 2), 400, bits, 32, false)
		ids := make([]int64, g.NumEdges())
		for i := range ids {
			ids[i] = int64(i*i) % 100000 // some are repeated
			if bits == 32 {
				ids[i] += 1 << 40
			}
		}
		g.EdgeIDs = csctest.Array(ids, 96-bits)
		d := upload(t, e, g)
		seeds := []int64{3, 1, 399, 200, 3}
		for _, fanouts := range [][]int64{{4, 4}, {50, 3}, {-1}} {
			r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 1, Seeds: csctest.Array(seeds, 96-bits)}}}
			queueCheck(t, e, s, d, r, cuda.Call{}, 2)
			queueCheck(t, e, s, d, r, unordered(true), 2)
		}
	}
}

func TestQueueAwkwardGraphs(t *testing.T) {
	e, s := device(t)
	awkward(t, e, func(t *testing.T, d *cuda.Graph, r cpu.Request) {
		queueCheck(t, e, s, d, r, cuda.Call{}, 0, 3)
		queueCheck(t, e, s, d, r, unordered(true), 3)
	}, slices.Repeat([]int64{1}, 9))
}

// Blocks that fetch a number of tasks at a time that a batch does not divide into, or all
// of them at once, find each task, and an end.
func TestQueueFetchSizes(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(300, 2), 310, 32, 64, false)
	r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{3, -1, 4}}, Batch: request.Batch{Seed: 3, Seeds: csctest.Array(csctest.Mixed(40), 32)}}}
	for _, fetchSize := range []int64{1, 5, MostFetched - 1, MostFetched} {
		queueCheck(t, e, s, d, r, cuda.Call{Plan: &Queue{FetchSize: fetchSize}}, 1, 3)
		queueCheck(t, e, s, d, r, cuda.Call{Plan: &Queue{FetchSize: fetchSize, Unordered: true}}, 2)
	}
}

// Graphs in which vertices are found at a late hop first: the tasks of a chain
// overtake those of a wide tree, so the hops before must be queued later.
func TestQueueFindsVerticesLateFirst(t *testing.T) {
	e, s := device(t)
	const wide = 2000
	rows := make([][]int64, wide+5)
	for i := range int64(wide) {
		rows[i] = []int64{wide, wide + i%5, (i * 13) % wide, wide + 4}
	}
	for i := range int64(5) { // a short cycle with ways back into the tree
		rows[wide+i] = []int64{wide + (i+1)%5, i, i * 7}
	}
	g, d := graphOf(t, e, rows, wide+5, 32, 32, false)
	seeds := []int64{wide + 1}
	for i := range int64(900) {
		seeds = append(seeds, i)
	}
	for _, fanouts := range [][]int64{{2, 2, 2, 2}, {-1, -1, -1}, {1, 2, 3, 1, 2, 3}} {
		r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 11, Seeds: csctest.Array(seeds, 32)}}}
		queueCheck(t, e, s, d, r, cuda.Call{}, 1, 2, 5, 0)
		queueCheck(t, e, s, d, r, unordered(true), 1, 2, 5, 0)
	}
}

func TestQueueExcludes(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(500, 3), 500, 32, 64, false)
	for _, every := range []int64{1, 2, 3, 50} {
		var excluded []int64
		for p := every / 2; p < g.NumEdges(); p += every {
			excluded = append(excluded, p)
		}
		x, err := g.Exclude(excluded)
		if err != nil {
			t.Fatal(err)
		}
		for _, fanouts := range [][]int64{{3, 4}, {-1}, {40}} {
			r := cpu.Request{Relation: g, Exclude: x, Request: request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: every == 3}, Batch: request.Batch{Seed: 5, Seeds: csctest.Array(csctest.Steps(300, 1), 32)}}}
			queueCheck(t, e, s, d, r, cuda.Call{Exclude: excluded}, 0, 2)
			queueCheck(t, e, s, d, r, cuda.Call{Exclude: excluded, Plan: &Queue{Unordered: true}}, 3)
		}
	}
}

// Batches that outgrow tasks, vertices, edges and output, none of which a guess
// from the mean degree foresees. Nothing of a launch that gave up is left for the
// next one, of whatever shape.
func TestQueueOverflows(t *testing.T) {
	e, s := device(t)
	const hubs, nodes = 60, 30000
	rows := make([][]int64, nodes)
	for h := range int64(hubs) {
		for j := range int64(1000) {
			rows[h] = append(rows[h], (h*499+j)%nodes)
		}
	}
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, rows, nodes, bits, 64, false)
		for _, fanouts := range [][]int64{{-1}, {3, -1}, {-1, 700, 2}} {
			for _, is := range []bool{false, true} {
				if err := e.Trim(); err != nil {
					t.Fatal(err)
				}
				small := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{2, 2}}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array([]int64{5, 100, 5}, bits)}}}
				large := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array(csctest.Steps(hubs, 1), bits)}}}
				d = e.NewGraph(d.Arrays)
				queueCheck(t, e, s, d, small, cuda.Call{}, 3)
				before := cuda.SpaceOf[queueSpace](idle(t, e, d)).most
				queueCheck(t, e, s, d, large, unordered(is), 3)
				queueCheck(t, e, s, d, small, unordered(is), 5)
				if after := cuda.SpaceOf[queueSpace](idle(t, e, d)).most; after.edges <= before.edges || after.found <= before.found {
					t.Errorf("fanouts %v: room for %v before and %v after: nothing overflowed", fanouts, before, after)
				}
			}
		}
	}
}

// Into memory of the caller's: where it is too small the batch says how much would
// do, and so much does.
func TestQueueIntoMemoryOfTheCaller(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 32, false)
	r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array([]int64{1, 2, 3, 500, 9, 9}, 32)}}}
	for _, unordered := range []bool{false, true} {
		needed := uint64(600) // the header and the seeds, but not the vertices
		for try := 0; ; try++ {
			m, err := e.MemoryPool().Alloc(s, needed)
			if err != nil {
				t.Fatal(err)
			}
			c := with(cuda.Call{Plan: &Queue{Hops: cuda.Hops{Hops: r.Hops}, Unordered: unordered}, Stream: s.Handle(), Out: m.Address, OutBytes: needed}, r.Request, "queue")
			b, err := sample(e, d, c)
			if err != nil {
				t.Fatal(err)
			}
			if b.Needed == 0 {
				want, err := onCPU(&r)
				if err != nil {
					t.Fatal(err)
				}
				b.Memory = m
				host, err := b.Download(s)
				if err != nil {
					t.Fatal(err)
				}
				if err := sameSample(batchtest.Read(host), want); err != nil {
					t.Error(err)
				}
				host.Release()
			}
			if err := m.Free(s); err != nil {
				t.Fatal(err)
			}
			if b.Needed == 0 {
				if try == 0 {
					t.Error("a batch in 600 bytes")
				}
				break
			}
			if try == 2 || b.Needed <= needed {
				t.Fatalf("try %d: %d bytes were too few, %d would do", try, needed, b.Needed)
			}
			needed = b.Needed
		}
	}
}

// A queue with room for few tasks gives up while blocks wait for slots beyond it.
func TestQueueOfFewTasks(t *testing.T) {
	e, s := device(t)
	rows := csctest.RandomRows(3000, 9)
	g, d := graphOf(t, e, rows, 3000, 32, 32, false)
	r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{2, 2, 2, 2, 2, 2, 2, 2}}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array([]int64{5, 100, 7, 8, 9}, 32)}}}
	queueCheck(t, e, s, d, r, cuda.Call{}, 2)
	for _, tasks := range []int64{1, 40, 41, 300, 1000} {
		cuda.SpaceOf[queueSpace](idle(t, e, d)).limit = tasks
		queueCheck(t, e, s, d, r, cuda.Call{}, 4)
		if cuda.SpaceOf[queueSpace](idle(t, e, d)).limit != 0 {
			t.Errorf("%d tasks were room enough", tasks)
		}
	}
}

func TestQueueManyRepeats(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 32, false)
	r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{3, 3}}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array([]int64{1, 2, 3, 500, 9, 9}, 32)}}}
	queueCheck(t, e, s, d, r, cuda.Call{}, make([]int, 300)...)
}

// Tags that run out begin anew, with cleared claims.
func TestQueueTagsRunOut(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 32, false)
	r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array([]int64{1, 2, 3}, 32)}}}
	queueCheck(t, e, s, d, r, cuda.Call{}, 2)
	cuda.SpaceOf[queueSpace](idle(t, e, d)).nextTag = 2
	queueCheck(t, e, s, d, r, cuda.Call{}, 2, 2, 2, 2)
	if tag := cuda.SpaceOf[queueSpace](idle(t, e, d)).nextTag; tag != queueTags-2-2 {
		t.Errorf("next tag %d", tag)
	}
}

func TestQueueSeedOutOfRange(t *testing.T) {
	e, s := device(t)
	rows := csctest.RandomRows(2000, 6)
	g, d := graphOf(t, e, rows, 2000, 64, 64, false)
	seeds := csctest.Steps(1500, 1)
	for _, bad := range []int64{-1, 2000, 1 << 40} {
		for _, at := range []int{0, 700, 1499} {
			wrong := slices.Clone(seeds)
			wrong[at], wrong[1499] = bad, bad
			r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{3, 3}}, Batch: request.Batch{Seeds: csctest.Array(wrong, 64)}}}
			_, err := sample(e, d, with(cuda.Call{Stream: s.Handle()}, r.Request, "queue"))
			want := fmt.Sprintf("seeds[%d]: expected an id in [0, 2000), got %d", at, bad)
			if !errors.Is(err, request.ErrIndex) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{3, 3}}, Batch: request.Batch{Seeds: csctest.Array(seeds, 64)}}}
		queueCheck(t, e, s, d, r, cuda.Call{}, 4)
	}
}

// Batches in flight on streams of their own, in both modes and both orders, do not
// disturb each other, and the pool holds no more after them than before.
func TestQueueTogether(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	var wg sync.WaitGroup
	for worker := range 6 {
		stream, err := e.Context().NewStream()
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		wg.Go(func() {
			for i := range 10 {
				r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4, 6}}, Batch: request.Batch{Seed: uint64(worker), Number: uint64(i), Seeds: csctest.Array([]int64{1, 2, 3, int64(40 * worker)}, 32)}}}
				err := queueCompare(e, stream, d, r, unordered(worker%2 == 1), 16)
				if err == nil && i%3 == 0 {
					err = modeCompare(e, stream, d, r, cuda.Call{}, "auto", 0)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	used := e.MemoryPool().Used()
	for range 20 {
		r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4, 6}}, Batch: request.Batch{Seeds: csctest.Array([]int64{1, 2}, 32)}}}
		queueCheck(t, e, s, d, r, cuda.Call{}, 0)
	}
	if after := e.MemoryPool().Used(); after != used {
		t.Errorf("the pool held %d bytes, then %d", used, after)
	}
}
