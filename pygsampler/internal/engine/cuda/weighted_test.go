package cuda

import (
	"fmt"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// weigh gives a graph tables.
func weigh(g *csc.Relation, weight func(p int) float64) *csc.Relation {
	var s weights.Scratch
	g.Alias, g.Sums = make([]uint64, g.NumEdges()), make([]uint64, g.NumEdges())
	for v := range g.NumRows() {
		start, end := g.Indptr.Element(v), g.Indptr.Element(v+1)
		row := make([]float64, end-start)
		for j := range row {
			row[j] = weight(int(start) + j)
		}
		s.BuildTables(row, g.Alias[start:end], g.Sums[start:end])
	}
	return g
}

// weighted is graphOf with weights.
func weighted(t *testing.T, e *Engine, rows [][]int64, nodes int64, bits int, withIDs bool, weight func(p int) float64) (*csc.Relation, *Graph) {
	t.Helper()
	g := weigh(csctest.Graph(rows, nodes, bits, 96-bits, withIDs), weight)
	return g, upload(t, e, g)
}

// Every small degree with every small fanout, whatever the weights.
func TestEveryDegreeAndFanoutByWeight(t *testing.T) {
	e, s := device(t)
	rows, seeds := csctest.EveryDegree()
	for name, weight := range csctest.Weightings {
		for _, bits := range []int{32, 64} {
			if bits == 64 && name != "ramp" {
				continue
			}
			g, d := weighted(t, e, rows, 71, bits, bits == 32, weight)
			for fanout := int64(1); fanout <= 40; fanout++ {
				for _, replace := range []bool{false, true} {
					r := request.Request{Hops: request.Hops{Fanouts: []int64{fanout}, Replace: replace}, Batch: request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(seeds, bits)}}
					if err := compare(e, s, d, &cpu.Request{Relation: g, Request: r}, 0); err != nil {
						t.Fatalf("%s, %d bits, fanout %d, replace %v: %v", name, bits, fanout, replace, err)
					}
				}
			}
		}
	}
}

// Graphs of every kind through every kernel: bins, exclusions, rows drawn once, trees, ranks in
// 32 and 64 bits, and several batches in a launch.
func TestByWeight(t *testing.T) {
	e, s := device(t)
	for _, name := range []string{"ramp", "heavy"} {
		for _, bits := range []int{32, 64} {
			g, d := weighted(t, e, csctest.RandomRows(3000, 1), 3060, bits, bits == 32, csctest.Weightings[name])
			var excluded []int64
			for i := int64(0); i < g.NumEdges(); i += 3 {
				excluded = append(excluded, i)
			}
			x, err := g.Exclude(excluded)
			if err != nil {
				t.Fatal(err)
			}
			for _, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {10, 0}, {64, 33}, {40, -1}, {1000}, {12, 12}} {
				for _, replace := range []bool{false, true} {
					r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: replace}, Batch: request.Batch{Seed: 5, Epoch: 7, Number: 1<<39 + 5, Seeds: csctest.Array(csctest.Mixed(700), bits)}}}
					about := fmt.Sprintf("%s, %d bits, %v, replace %v", name, bits, fanouts, replace)
					for _, change := range []struct {
						name string
						to   func(r *cpu.Request)
					}{
						{"", func(*cpu.Request) {}},
						{"excluded", func(r *cpu.Request) { r.Exclude = x }},
						{"only new", func(r *cpu.Request) { r.OnlyNew = true }},
						{"trees", func(r *cpu.Request) { r.Disjoint, r.Seeds = true, csctest.Array(csctest.Mixed(31), bits) }},
						{"trees, excluded", func(r *cpu.Request) {
							r.Disjoint, r.Exclude, r.Seeds = true, x, csctest.Array(csctest.Mixed(31), bits)
						}},
					} {
						r := r
						change.to(&r)
						if err := compare(e, s, d, &r, 0, 3); err != nil {
							t.Fatalf("%s, %s: %v", about, change.name, err)
						}
					}
				}
			}
			k := kernels(t, d)
			k.binEdges, k.binBytes = 500, 0
			check(t, e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{9, 8, 7}}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array([]int64{1, 2, 3, 500, 9, 9}, bits)}}}, 0, 2)
			k.binEdges, k.binBytes = binFromEdges, binFromBytes
		}
	}
}

func TestAwkwardGraphsByWeight(t *testing.T) {
	e, s := device(t)
	for name, rows := range csctest.Awkward(5000) {
		g, d := weighted(t, e, rows, int64(len(rows)), 32, false, csctest.Weightings["heavy"])
		for _, fanouts := range [][]int64{{2, 2}, {20}, {64, 3}, {-1}} {
			seeds := csctest.Steps(min(len(rows), 50), 1)
			if err := compare(e, s, d, &cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seeds: csctest.Array(seeds, 32)}}}, 0, 3); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}
