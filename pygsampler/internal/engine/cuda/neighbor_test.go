package cuda

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// Every small degree with every small fanout, with and without replacement.
func TestEveryDegreeAndFanout(t *testing.T) {
	e, s := device(t)
	rows, seeds := csctest.EveryDegree()
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, rows, 71, bits, 96-bits, bits == 32)
		for fanout := int64(1); fanout <= 40; fanout++ {
			for _, replace := range []bool{false, true} {
				check(t, e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{fanout}, Replace: replace}, Batch: request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(seeds, bits)}}}, 0)
			}
		}
	}
}

func TestRandomGraphs(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		for _, withIDs := range []bool{false, true} {
			g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3060, bits, 64, withIDs)
			for _, size := range []int{0, 1, 31, 32, 33, 700, 10240} {
				for _, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {0, 3}, {10, 0}, {5}, {64, 33}, {2, 2, 2, 2, 2}, {-1}, {40, -1}} {
					for _, replace := range []bool{false, true} {
						r := &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: replace}, Batch: request.Batch{Seed: 1 << 63, Epoch: 7, Number: 1<<39 + 5, Seeds: csctest.Array(csctest.Mixed(size), bits)}}}
						check(t, e, s, d, r, 0, 1, 7, 264)
					}
				}
			}
		}
	}
}

func TestAwkwardGraphs(t *testing.T) {
	e, s := device(t)
	awkward(t, e, func(t *testing.T, d *Graph, r cpu.Request) { check(t, e, s, d, &r, 0, 3) })
}

// A batch that outgrows every buffer several times, and one of enough rows to be
// dealt anew.
func TestLargeBatches(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(600000, 5), 600000, 32, 64, false)
	for _, fanouts := range [][]int64{{10, 10}, {3, 2, 4}, {-1}} {
		check(t, e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array(csctest.Steps(200000, 3), 32)}}}, 0, 132)
	}
}

// All hops use bins, or only the hops after hops on the map. If a node occurs too often for a
// bin, the batch is sampled again without bins.
func TestBins(t *testing.T) {
	e, s := device(t)
	hub := make([]int64, 9000)
	star := append([][]int64{hub, hub}, make([][]int64, 50)...)
	for _, edges := range []uint64{0, 500} {
		for _, bits := range []int{32, 64} {
			g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3060, bits, 64, bits == 32)
			k := kernels(t, d)
			k.binEdges, k.binBytes = edges, 0
			for _, seeds := range [][]int64{{}, {5}, {1, 2, 3, 500, 9, 9}, {7, 70, 700, 1700, 2700, 3001}} {
				for _, fanouts := range [][]int64{{5}, {9, 8, 7}, {4, 4, 4, 4}} {
					check(t, e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array(seeds, bits)}}}, 0, 1, 2)
				}
			}
			g, d = graphOf(t, e, star, 52, bits, 64, false)
			check(t, e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{32, 32}, Replace: true}, Batch: request.Batch{Seeds: csctest.Array([]int64{0, 1}, bits)}}}, 0, 1)
		}
	}
}

// Hops that look for vertices that have numbers, small ones and large ones.
func TestKnownVertices(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, csctest.RandomRows(400, 1), 410, bits, 64, bits == 32)
		kernels(t, d).knownEdges = 0
		seeds := make([]int64, 300)
		for i := range seeds {
			seeds[i] = int64(i * 7 % 410)
		}
		for _, fanouts := range [][]int64{{5}, {9, 8, 7}, {4, 4, 4, 4}, {20, 20, 20}, {40, -1, 3}} {
			check(t, e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array(seeds, bits)}}}, 0, 1, 2)
		}
	}
}

func TestManyRepeats(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 32, false)
	grids := make([]int, 1000)
	check(t, e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array([]int64{1, 2, 3, 500, 9, 9}, 32)}}}, grids...)
}

// Tags that run out begin anew, with a cleared map.
func TestTagsRunOut(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 32, false)
	r := &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array([]int64{1, 2, 3}, 32)}}}
	check(t, e, s, d, r, 0)
	SpaceOf[hopSpace](e.idle[0]).narrow.next = 2
	check(t, e, s, d, r, 0, 0, 0, 0, 0)
	if SpaceOf[hopSpace](e.idle[0]).narrow.next != 1<<8-1-3 {
		t.Errorf("%d tags are left", SpaceOf[hopSpace](e.idle[0]).narrow.next)
	}
}

// Ranks that outgrow their bits take some of the tags', and in the end the map of
// 64-bit words.
func TestRanksOutgrowTheirBits(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 32, false)
	r := &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array([]int64{1, 2, 3}, 32)}}}
	check(t, e, s, d, r, 0)
	w := SpaceOf[hopSpace](e.idle[0])
	w.narrow.shift, w.narrow.next = 4, 0 // as if 2^4 ranks were the fewest
	for shift := 4; shift <= leastShift; shift++ {
		w.narrow.shift, w.narrow.next = shift, 0
		d.needs = make(map[shape]Needs)
		check(t, e, s, d, r, 0, 0)
	}
	p := &Neighbors{Hops{r.Hops}}
	for ranks, want := range map[int64]int{0: plain, 1 << 30: withAll, 1<<30 - 1: plain} {
		if kind := p.kind(kernels(t, d), d, new(Call), Needs{Ranks: ranks}); kind != want {
			t.Errorf("%d ranks: kernel %d, want %d", ranks, kind, want)
		}
	}
}

func TestSeedOutOfRange(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, [][]int64{{1}, {0}}, 2, 64, 64, false)
	for _, bad := range []int64{-1, 2, 1 << 40} {
		r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{1}}, Batch: request.Batch{Seeds: csctest.Array([]int64{0, bad, bad}, 64)}}}
		_, err := sample(e, d, with(Call{Stream: s.Handle()}, r.Request))
		want := fmt.Sprintf("seeds[1]: expected an id in [0, 2), got %d", bad)
		if !errors.Is(err, request.ErrIndex) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		check(t, e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{1}}, Batch: request.Batch{Seeds: csctest.Array([]int64{0, 1}, 64)}}}, 0)
	}
}

// Batches in flight on streams of their own do not disturb each other, and the
// pool holds no more after them than before.
func TestTogether(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	var wg sync.WaitGroup
	for worker := range 8 {
		stream, err := e.context.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		wg.Go(func() {
			for i := range 20 {
				r := &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4, 6}}, Batch: request.Batch{Seed: uint64(worker), Number: uint64(i), Seeds: csctest.Array([]int64{1, 2, 3, int64(40 * worker)}, 32)}}}
				if err := compare(e, stream, d, r, 16); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	used := e.pool.Used()
	for range 50 {
		check(t, e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4, 6}}, Batch: request.Batch{Seeds: csctest.Array([]int64{1, 2}, 32)}}}, 0)
	}
	if after := e.pool.Used(); after != used {
		t.Errorf("the pool held %d bytes, then %d", used, after)
	}
}
