package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// checkOnce checks what only neighbor.cu does: rows drawn once, disjoint trees, both.
func checkOnce(t *testing.T, e *Engine, s gpu.Stream, d *Graph, r cpu.Request, grids ...int) {
	t.Helper()
	for _, r.Disjoint = range []bool{false, true} {
		for _, r.OnlyNew = range []bool{false, true} {
			if r.OnlyNew || r.Disjoint {
				check(t, e, s, d, &r, grids...)
			}
		}
	}
}

func TestOnceEveryDegreeAndFanout(t *testing.T) {
	e, s := device(t)
	rows, seeds := csctest.EveryDegree()
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, rows, 71, bits, 96-bits, bits == 32)
		for fanout := int64(1); fanout <= 40; fanout++ {
			for _, replace := range []bool{false, true} {
				checkOnce(t, e, s, d, cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{2, fanout}, Replace: replace}, Batch: request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(seeds, bits)}}}, 0)
			}
		}
	}
}

func TestOnceRandomGraphs(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3060, bits, 64, bits == 32)
		for _, size := range []int{0, 1, 33, 700} {
			seeds := csctest.Squares(size, 3060)
			for _, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {0, 3}, {10, 0}, {64, 33}, {2, 2, 2, 2, 2}, {40, -1}} {
				for _, replace := range []bool{false, true} {
					checkOnce(t, e, s, d, cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: replace}, Batch: request.Batch{Seed: 1 << 63, Epoch: 7, Number: 5, Seeds: csctest.Array(seeds, bits)}}}, 0, 1, 7)
				}
			}
		}
	}
}

func TestOnceAwkwardGraphs(t *testing.T) {
	e, s := device(t)
	awkward(t, e, func(t *testing.T, d *Graph, r cpu.Request) { checkOnce(t, e, s, d, r, 0, 3) })
}

// Batches that outgrow every buffer several times, with new rows enough to be dealt
// anew.
func TestOnceLargeBatches(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(600000, 5), 600000, 32, 64, false)
	checkOnce(t, e, s, d, cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{2, 10}}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array(csctest.Steps(100000, 3), 32)}}}, 0, 132)
}

func TestOnceExcluded(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(500, 9), 500, 64, 64, false)
	var ids []int64
	for id := int64(0); id < g.NumEdges(); id += 3 {
		ids = append(ids, id)
	}
	x, err := g.Exclude(ids)
	if err != nil {
		t.Fatal(err)
	}
	r := cpu.Request{Relation: g, Exclude: x, Request: request.Request{Hops: request.Hops{Fanouts: []int64{3, 4}}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array([]int64{1, 2, 3, 50, 60}, 64)}}}
	r.OnlyNew = true
	for _, r.Disjoint = range []bool{false, true} {
		check(t, e, s, d, &r, 0, 2)
	}
}

// Both engines refuse what no key can tell apart.
func TestTreesOfTooManyVertices(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, [][]int64{{0}}, 1<<47, 64, 64, false)
	r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{1}, Disjoint: true}, Batch: request.Batch{Seeds: csctest.Array([]int64{0, 0, 0}, 64)}}}
	_, want := onCPU(&r)
	d.Nodes = 1 // no map of 2^47 words
	w, err := e.take(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Nodes = 1 << 47
	err = SpaceOf[disjointSpace](w).fit(&Flight{call: Call{NumSeeds: 3}, graph: d, space: w, stream: s}, 1)
	e.put(w)
	if !errors.Is(err, request.ErrValue) || want == nil || err.Error() != want.Error() || !strings.Contains(err.Error(), "at most 2^1 ") {
		t.Errorf("got %v, want %v", err, want)
	}
}
