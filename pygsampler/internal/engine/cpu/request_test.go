package cpu

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// A batch that many tiles make: every number of workers gives the reference, in
// both engines, whichever worker comes first.
func TestWorkersAgree(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(4000, 11), 4000, 32, 64, true)
	r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{8, 4, 3}}, Batch: request.Batch{Seed: 6, Seeds: csctest.Array(upTo(1500, 3999), 32)}}}
	if want := int64(7 * teamEdges); r.Expected() < want {
		t.Fatalf("only %d edges are expected: no team of 8", r.Expected())
	}
	want := reference(&r)
	for engine := range engines {
		for _, r.MapBytes = range []int64{0, 1} {
			if engine == 1 && r.MapBytes == 1 {
				continue
			}
			for _, workers := range []int{1, 2, 8} {
				for range 3 {
					if got := sampleBy(t, engine, &r, idle(workers-1)); !got.Equal(want) {
						t.Fatalf("engine %d limit=%d %d workers: another batch", engine, r.MapBytes, workers)
					}
				}
			}
		}
	}
}

// Several batches at once share nothing but the graph.
func TestBatchesAtOnce(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(2000, 12), 2000, 64, 64, false)
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for b := range 6 {
				r := Request{
					Relation: g,
					MapBytes: int64((w + b) % 2 * 16000),
					Request:  request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Number: uint64(b), Seeds: csctest.Array(upTo(400, 1999), 64)}},
				}
				want := reference(&r)
				engine := 0
				if (w+b)%3 == 0 {
					engine = 1
				}
				if got := sampleBy(t, engine, &r, idle(w%3)); !got.Equal(want) {
					t.Errorf("worker %d batch %d: another batch", w, b)
				}
			}
		})
	}
	wg.Wait()
}

// Cancelled at any moment, a batch ends soon, whole or not at all; it leaves no
// memory behind and a scratch that the next batch can use.
func TestCancelledAtAnyMoment(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(4000, 13), 4000, 64, 64, false)
	live := memory.Count().Live
	rounds, cancelled := 60, 0
	r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{10, 10, 10}}, Batch: request.Batch{Seeds: csctest.Array(upTo(1000, 3999), 64)}}}
	want := reference(&r)
	for round := range rounds {
		engine := engines[0]
		if round%3 == 2 {
			engine = engines[1]
		}
		var stop atomic.Bool
		timer := time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, func() { stop.Store(true) })
		deadline.Within(t, time.Minute, func() {
			m, err := engine(&r, idle(round%2*3), &stop)
			switch {
			case err == request.ErrCancelled:
				cancelled++
			case err != nil:
				t.Error(err)
			default:
				if got := batchtest.Read(m); !got.Equal(want) {
					t.Error("another batch")
				}
				m.Release()
			}
		})
		timer.Stop()
	}
	if now := memory.Count().Live; now != live {
		t.Errorf("%d memories were lost", now-live)
	}
	t.Logf("%d of %d cancelled", cancelled, rounds)
	for engine := range engines {
		if got := sampleBy(t, engine, &r, idle(2)); !got.Equal(want) {
			t.Error("another batch after cancelled ones")
		}
	}
}

// Stopped between two hops, at the first check of the second.
func TestCancelledBetweenHops(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(4000, 13), 4000, 64, 64, false)
	for _, crew := range []idle{0, 3} {
		var stop atomic.Bool
		r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seeds: csctest.Array(upTo(1000, 3999), 64)}}}
		s := &sampling[int64]{Request: &r, scratch: &scratch{}, team: muster(crew, many), stop: &stop}
		if err := s.begin(); err != nil {
			t.Fatal(err)
		}
		s.rows, _ = s.tiles()
		if err := s.hop(0); err != nil {
			t.Fatal(err)
		}
		n := s.n
		stop.Store(true)
		if err := s.hop(1); err != request.ErrCancelled || s.n != n {
			t.Errorf("got %v; %d vertices, then %d", err, n, s.n)
		}
		s.out.Discard()
		s.team.dismiss()
	}
}

// The guess that decides how many workers a batch gets, and on which thread.
func TestExpected(t *testing.T) {
	g := csctest.Graph(slices.Repeat([][]int64{{1, 2, 3, 4}}, 1000), 1000, 64, 64, false)
	empty := csctest.Graph(nil, 0, 64, 64, false)
	for _, k := range []struct {
		graph   *csc.Relation
		seeds   int64
		fanouts []int64
		replace bool
		want    int64
	}{
		{g, 10, []int64{2}, false, 20},
		{g, 10, []int64{9}, false, 40},
		{g, 10, []int64{9}, true, 90},
		{g, 10, []int64{-1}, true, 40},
		{g, 10, []int64{3, 2}, false, 20 + 90},
		{g, 10, []int64{0, 2}, false, 20},
		{g, 500, []int64{4, 4, 4}, false, 2000 + 4000 + 4000},
		{g, 0, []int64{4, 4}, false, 0},
		{empty, 0, []int64{4, -1}, true, 0},
		{g, 10, slices.Repeat([]int64{1<<31 - 1}, 256), true, 10*(1<<31-1) + 255*1000*(1<<31-1)},
	} {
		r := Request{Relation: k.graph, Request: request.Request{Hops: request.Hops{Fanouts: k.fanouts, Replace: k.replace}, Batch: request.Batch{Seeds: csctest.Array(make([]int64, k.seeds), 64)}}}
		if got := r.Expected(); got != k.want {
			t.Errorf("%d seeds, %.40v, replace=%v: got %d, want %d", k.seeds, k.fanouts, k.replace, got, k.want)
		}
	}
}

// A bound on a hop's edges ends the batch before it draws them.
func TestMost(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(3000, 1), 3000, 64, 64, false)
	r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seeds: csctest.Array(upTo(100, 2999), 64)}}}
	edges := int64(len(reference(&r).Blocks[0].Indices))
	live := memory.Count().Live
	for _, crew := range []idle{0, 3} {
		var stop atomic.Bool
		r.Most = edges - 1
		if _, err := Sample(&r, crew, &stop); err != request.ErrLarge {
			t.Errorf("got %v", err)
		}
		r.Most = edges
		sample(t, &r, crew)
	}
	if now := memory.Count().Live; now != live {
		t.Errorf("%d memories were lost", now-live)
	}
}

// A block that int32 cannot count, and blocks that no machine can hold, are errors
// before anything is allocated for them.
func TestTooLarge(t *testing.T) {
	live := memory.Count().Live
	rows := slices.Repeat([][]int64{{1, 2}}, 1000)
	for _, k := range []struct {
		bits  int
		seeds int64
		want  string
	}{
		{32, 2, "overflow: a block of 4294967294 edges needs int64 ids"},
		{32, 1000, "overflow: a block of 2147483647000 edges needs int64 ids"},
		{64, 1000, "out of memory: wanted 34359738360008 bytes"},
	} {
		for _, crew := range []idle{0, 2} {
			r := Request{
				Relation: csctest.Graph(rows, 1000, k.bits, 64, false),
				Request:  request.Request{Hops: request.Hops{Fanouts: []int64{1<<31 - 1}, Replace: true}, Batch: request.Batch{Seeds: csctest.Array(upTo(max(k.seeds, 2), 999)[:k.seeds], 64)}},
			}
			var stop atomic.Bool
			_, err := Sample(&r, crew, &stop)
			if err == nil || len(err.Error()) < len(k.want) || err.Error()[:len(k.want)] != k.want {
				t.Errorf("%d bits: got %v, want %s", k.bits, err, k.want)
			}
		}
	}
	if now := memory.Count().Live; now != live {
		t.Errorf("%d memories were lost", now-live)
	}
}

// Rows drawn with replacement in pieces, and whole rows copied in one, around the
// size where that begins.
func TestLongRows(t *testing.T) {
	rows := [][]int64{{}, {3}, nil, {4, 4}, nil}
	for _, n := range []int{longRow - 1, longRow, longRow + 1, 3*longRow + 7} {
		var row []int64
		for i := range n {
			row = append(row, int64(i%5))
		}
		rows = append(rows, row)
	}
	g := csctest.Graph(rows, int64(len(rows)), 64, 32, true)
	x, err := g.Exclude([]int64{5, 6, 7, 2000})
	if err != nil {
		t.Fatal(err)
	}
	for _, fanout := range []int64{-1, longRow - 1, longRow, longRow + 1, 2 * longRow, 5*longRow + 3} {
		for _, replace := range []bool{false, true} {
			for _, exclude := range []*csc.Exclusions{nil, x} {
				check(t, Request{
					Relation: g,
					Exclude:  exclude,
					Request:  request.Request{Hops: request.Hops{Fanouts: []int64{fanout}, Replace: replace}, Batch: request.Batch{Seeds: csctest.Array(upTo(int64(len(rows)), int64(len(rows)-1)), 64)}},
				})
			}
		}
	}
}
