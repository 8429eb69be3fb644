package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
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
	rows, seeds := everyDegree()
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, rows, 71, bits, 96-bits, bits == 32)
		for fanout := int64(1); fanout <= 40; fanout++ {
			for _, replace := range []bool{false, true} {
				checkOnce(t, e, s, d, cpu.Request{Graph: g, Fanouts: []int64{2, fanout}, Replace: replace, Seed: uint64(fanout), Seeds: array(seeds, bits)}, 0)
			}
		}
	}
}

func TestOnceRandomGraphs(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, randomRows(3000, 1), 3060, bits, 64, bits == 32)
		for _, size := range []int{0, 1, 33, 700} {
			seeds := make([]int64, size)
			for i := range seeds {
				seeds[i] = int64(i * i % 3060) // some are repeated
			}
			for _, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {0, 3}, {10, 0}, {64, 33}, {2, 2, 2, 2, 2}, {40, -1}} {
				for _, replace := range []bool{false, true} {
					checkOnce(t, e, s, d, cpu.Request{Graph: g, Fanouts: fanouts, Replace: replace, Seed: 1 << 63, Epoch: 7, Batch: 5, Seeds: array(seeds, bits)}, 0, 1, 7)
				}
			}
		}
	}
}

func TestOnceAwkwardGraphs(t *testing.T) {
	e, s := device(t)
	hub := make([]int64, 50000)
	for i := range hub {
		hub[i] = int64(i % 5001)
	}
	star := append([][]int64{hub}, make([][]int64, 5000)...)
	for name, rows := range map[string][][]int64{
		"star": star, "isolated": make([][]int64, 5), "self loops": {{0, 0}, {1}, {2, 2, 2}},
		"parallel": {{1, 1, 1, 1, 1, 1}, {0, 0}}, "path": {{1}, {2}, {3}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			n := int64(len(rows))
			g, d := graphOf(t, e, rows, n+2, 64, 32, true) // two trailing vertices
			for _, seeds := range [][]int64{{}, {n + 1}, {0, n, 0, 0}} {
				for _, fanouts := range [][]int64{{2, 3}, {-1, -1}, {1500, 1}, {0}} {
					checkOnce(t, e, s, d, cpu.Request{Graph: g, Fanouts: fanouts, Seed: 3, Seeds: array(seeds, 64)}, 0, 3)
				}
			}
		})
	}
}

// Batches that outgrow every buffer several times, with new rows enough to be dealt
// anew.
func TestOnceLargeBatches(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, randomRows(600000, 5), 600000, 32, 64, false)
	seeds := make([]int64, 100000)
	for i := range seeds {
		seeds[i] = int64(i * 3)
	}
	checkOnce(t, e, s, d, cpu.Request{Graph: g, Fanouts: []int64{2, 10}, Seed: 8, Seeds: array(seeds, 32)}, 0, 132)
}

func TestOnceExcluded(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, randomRows(500, 9), 500, 64, 64, false)
	var ids []int64
	for id := int64(0); id < g.NumEdges(); id += 3 {
		ids = append(ids, id)
	}
	x, err := g.Exclude(ids)
	if err != nil {
		t.Fatal(err)
	}
	r := cpu.Request{Graph: g, Fanouts: []int64{3, 4}, Seed: 4, Seeds: array([]int64{1, 2, 3, 50, 60}, 64), Exclude: x}
	r.OnlyNew = true
	for _, r.Disjoint = range []bool{false, true} {
		modeCheck(t, e, s, d, Call{Request: r, Exclude: ids}, "auto", 0, 2)
	}
}

// Both engines refuse what no key can tell apart.
func TestTreesOfTooManyVertices(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, [][]int64{{0}}, 1<<47, 64, 64, false)
	r := cpu.Request{Graph: g, Fanouts: []int64{1}, Disjoint: true, Seeds: array([]int64{0, 0, 0}, 64)}
	_, want := onCPU(&r)
	d.Nodes = 1 // no map of 2^47 words
	w, err := e.take(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Nodes = 1 << 47
	err = w.trees.fit(&Flight{call: Call{Request: r, NumSeeds: 3}, graph: d, space: w, stream: s})
	e.put(w)
	if !errors.Is(err, cpu.ErrValue) || want == nil || err.Error() != want.Error() || !strings.Contains(err.Error(), "at most 2^1 ") {
		t.Errorf("got %v, want %v", err, want)
	}
}
