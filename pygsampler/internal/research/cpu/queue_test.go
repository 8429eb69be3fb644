package cpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// idle is a crew with a fixed number of workers to lend.
type idle int

func (n idle) Borrow(want int) int { return min(int(n), max(want, 0)) }
func (n idle) Return(int)          {}

// of is a request for a batch of a graph.
func of(g *csc.Relation, fanouts []int64, seeds []int64) cpu.Request {
	return cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 1 << 63, Epoch: 7, Number: 1 << 39, Seeds: csctest.Array(seeds, 64)}}}
}

// check compares batches of the queue, by so many workers each, with those by tiles.
func check(r cpu.Request, fetchSize int, crews ...idle) error {
	var stop atomic.Bool
	m, err := cpu.Sample(&r, idle(0), &stop)
	if err != nil {
		return err
	}
	want := batchtest.Read(m)
	m.Release()
	for _, crew := range crews {
		m, err := ByQueue(&r, fetchSize, crew, &stop)
		if err != nil {
			return err
		}
		got := batchtest.Read(m)
		m.Release()
		if !got.Equal(want) {
			return fmt.Errorf("%d tasks at a time, %d workers, fanouts %v, replace %v:\n got %.400s\nwant %.400s",
				fetchSize, crew+1, r.Fanouts, r.Replace, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
	return nil
}

// A batch is the same however many tasks a worker fetches: one, the paper's 5, and more
// than there are.
func TestFetchSizes(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(300, 2), 310, 32, 64, false)
	for _, fetchSize := range []int{0, 1, 2, 5, 255, 1 << 20} {
		if err := check(of(g, []int64{3, -1, 4}, csctest.Steps(40, 7)), fetchSize, 0, 3); err != nil {
			t.Error(err)
		}
	}
}

func TestQueueGivesTheBatchOfTiles(t *testing.T) {
	every, all := csctest.EveryDegree()
	for _, bits := range []int{32, 64} {
		g := csctest.Graph(every, 71, bits, 96-bits, bits == 32)
		for fanout := int64(1); fanout <= 40; fanout++ {
			r := of(g, []int64{fanout}, all)
			for _, r.Replace = range []bool{false, true} {
				if err := check(r, 0, 0, 3); err != nil {
					t.Fatal(err)
				}
			}
		}
		g = csctest.Graph(csctest.RandomRows(3000, 1), 3100, bits, 64, bits == 64)
		x, err := g.Exclude(csctest.Steps(1000, 3))
		if err != nil {
			t.Fatal(err)
		}
		for _, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {0, 3}, {10, 0}, {5}, {64, 33}, {2, 2, 2, 2, 2}, {-1}} {
			r := of(g, fanouts, csctest.Squares(300, 3000))
			for _, r.Replace = range []bool{false, true} {
				for _, r.Exclude = range []*csc.Exclusions{nil, x} {
					if err := check(r, 0, 0, 3); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	for name, rows := range csctest.Awkward(5000) {
		n := int64(len(rows))
		for _, withIDs := range []bool{false, true} {
			g := csctest.Graph(rows, n+2, 64, 32, withIDs) // two trailing nodes
			for _, seeds := range [][]int64{{}, {n + 1}, {0, n, 0, 0}} {
				for _, fanouts := range [][]int64{{2, 3}, {-1, -1}, {1500, 1}, {0}} {
					if err := check(of(g, fanouts, seeds), 0, 0, 3); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
				}
			}
		}
	}
}

// A large batch, by every number of workers, whichever comes first; and several at once.
func TestWorkersAgree(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(4000, 11), 4000, 32, 64, true)
	r := of(g, []int64{8, 4, 3}, csctest.Squares(1500, 4000))
	if err := check(r, 0, 0, 0, 0, 1, 1, 1, 7, 7, 7); err != nil {
		t.Fatal(err)
	}
	r.MapBytes = 8 * 4000
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for number := range uint64(6) {
				r := r
				if r.Number = number; number%2 == 0 {
					r.MapBytes = 0
				}
				if err := check(r, 0, idle(w%3)); err != nil {
					t.Errorf("worker %d batch %d: %v", w, number, err)
				}
			}
		})
	}
	wg.Wait()
}

// An array that its owner changes while a batch is made is an error, not a crash.
func TestChangedArrays(t *testing.T) {
	for _, crew := range []idle{0, 3} {
		g := csctest.Graph(csctest.RandomRows(3000, 1), 3000, 64, 64, false)
		for i := range g.Indices.I64 {
			g.Indices.I64[i] = 1 << 40
		}
		var stop atomic.Bool
		r := of(g, []int64{5, 5}, csctest.Steps(3000, 1))
		if _, err := ByQueue(&r, 0, crew, &stop); err == nil {
			t.Fatal("no error")
		}
	}
}

// Cancelled at any moment, a batch ends soon, whole or not at all; it leaves no
// memory behind and a scratch that the next batch can use.
func TestCancelledAtAnyMoment(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(4000, 13), 4000, 64, 64, false)
	r := of(g, []int64{10, 10, 10}, csctest.Squares(1000, 4000))
	var stopped atomic.Bool
	stopped.Store(true)
	if _, err := ByQueue(&r, 0, idle(0), &stopped); err != request.ErrCancelled {
		t.Fatalf("got %v", err)
	}
	live := memory.Count().Live
	for round := range 20 {
		var stop atomic.Bool
		timer := time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, func() { stop.Store(true) })
		deadline.Within(t, time.Minute, func() {
			m, err := ByQueue(&r, 0, idle(round%2*3), &stop)
			if err == nil {
				m.Release()
			} else if err != request.ErrCancelled {
				t.Error(err)
			}
		})
		timer.Stop()
	}
	if now := memory.Count().Live; now != live {
		t.Errorf("%d memories were lost", now-live)
	}
	if err := check(r, 0, 2); err != nil {
		t.Errorf("after cancelled batches: %v", err)
	}
}

// The queue keeps 8 bytes a node and says so where they are too many.
func TestQueueNeedsItsMap(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(60, 5), 60, 32, 32, false)
	var stop atomic.Bool
	r := of(g, []int64{2}, []int64{1})
	r.MapBytes = 1
	_, err := ByQueue(&r, 0, idle(0), &stop)
	if !errors.Is(err, request.ErrValue) || err.Error() != "value error: mode='queue': expected map_bytes of at least 480 bytes (8 a node), got less" {
		t.Error(err)
	}
	fanouts := slices.Repeat([]int64{1}, 64)
	if err := check(of(g, fanouts, []int64{1, 2}), 0, 0, 3); err != nil {
		t.Error(err)
	}
	r = of(g, append(fanouts, 1), []int64{1})
	_, err = ByQueue(&r, 0, idle(0), &stop)
	if !errors.Is(err, request.ErrValue) || err.Error() != "value error: fanouts: expected at most 64 hops with mode='queue', got 65" {
		t.Error(err)
	}
}
