package cuda

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/walktest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// walksAlike compares walks of the GPU, by each execution and grid, with the CPU's.
func walksAlike(e *cuda.Engine, s gpu.Stream, d *cuda.Graph, r *walk.Request, grids ...int) error {
	want, err := walktest.Sample(r)
	if err != nil {
		return err
	}
	for _, execution := range Executions {
		for _, grid := range grids {
			plan := &cuda.Walks{Rule: r.Rule, Layout: "auto", Execution: Transits(execution)}
			b, err := sample(e, d, cuda.Call{Plan: plan, Batch: r.Batch, Stream: s.Handle(), Grid: grid})
			if err != nil {
				return fmt.Errorf("%s, grid %d: %w", execution, grid, err)
			}
			m, err := b.Download(s)
			if err != nil {
				return err
			}
			got := walktest.Read(m)
			m.Release()
			if err := errors.Join(b.Memory.Free(s), got.Compare(want)); err != nil {
				return fmt.Errorf("%s, grid %d: %w", execution, grid, err)
			}
		}
	}
	return nil
}

func TestTransits(t *testing.T) {
	e, s := device(t)
	walktest.Graphs(func(name string, g *csc.Relation, seeds []int64) {
		d := upload(t, e, g)
		for _, rule := range walktest.Rules {
			if rule.Roots > 0 {
				continue
			}
			r := walktest.Request(rule, g, seeds)
			if err := walksAlike(e, s, d, &r, 0, 1); err != nil {
				t.Fatalf("%s, %+v: %v", name, rule, err)
			}
		}
	})
	g, requests := walktest.Kinds()
	d := upload(t, e, g)
	for _, r := range requests {
		if err := walksAlike(e, s, d, &r, 0, 2); err != nil {
			t.Fatalf("%v, restart %g: %v", r.Path, r.Restart, err)
		}
	}
}

// Transits of every class: with as many walkers as share a warp and one more, as a block takes and
// one more, all of them on one hub, and some on each of many vertices; rows that a block reads into
// shared memory, that are too long for it, and too long for so few walkers; vertices of which few
// have a walker.
func TestTransitsOfEveryClass(t *testing.T) {
	e, s := device(t)
	const nodes = 12000
	// Rows of vertices 0 to 5 lead to each other, so that walkers stay together; all others to them.
	rows := make([][]int64, nodes)
	for v, degree := range []int{1, 2, 40, transitRow, transitRow + 1, 9000} {
		for i := range degree {
			rows[v] = append(rows[v], int64(i*5%6))
		}
	}
	for v := 6; v < nodes-10; v++ {
		rows[v] = []int64{int64(v % 6), int64(v * 7 % nodes), int64(v+1) % nodes}
	}
	for _, weights := range []string{"", "ramp"} {
		bits := 32
		if weights != "" {
			bits = 64
		}
		g := walktest.Graph(rows, nodes, bits, 64, false, csctest.Weightings[weights])
		d := upload(t, e, g)
		for name, on := range map[string][]struct{ vertex, walkers int }{
			"one":      {{2, 1}},
			"warp":     {{0, transitWarp - 1}, {1, transitWarp}, {2, transitWarp + 1}, {7, 3}},
			"block":    {{2, transitPiece - 1}, {3, transitPiece}, {4, transitPiece + 1}},
			"hub":      {{5, 3*transitPiece + 5}},
			"two hubs": {{4, 2 * transitPiece}, {11999, 40}, {5, 2*transitPiece + 33}, {11998, 2000}},
		} {
			var seeds []int64
			// Walkers of a vertex are apart from each other.
			for i, left := 0, true; left; i++ {
				left = false
				for _, one := range on {
					if i < one.walkers {
						seeds, left = append(seeds, int64(one.vertex)), true
					}
				}
			}
			for _, rule := range []walk.Rule{{Length: 4, EdgeIDs: true}, {Length: 5, Stop: .2, Restart: .3, Jumps: true}, {Length: 3, P: 2, Q: .5}} {
				r := walk.Request{Rule: rule, Relation: g, Batch: request.Batch{Seed: 7, Seeds: csctest.Array(seeds, bits)}}
				if err := walksAlike(e, s, d, &r, 0, 3); err != nil {
					t.Fatalf("%s, weights %q, %+v: %v", name, weights, rule, err)
				}
			}
		}
		every := csctest.Steps(nodes, 1)
		r := walk.Request{Rule: walk.Rule{Length: 6, EdgeIDs: true}, Relation: g, Batch: request.Batch{Seeds: csctest.Array(every, bits)}}
		if err := walksAlike(e, s, d, &r, 0); err != nil {
			t.Fatalf("all vertices, weights %q: %v", weights, err)
		}
	}
}

// A seed that is no vertex leaves nothing behind for the next walks.
func TestTransitsFromNowhere(t *testing.T) {
	e, s := device(t)
	g := walktest.Graph(csctest.RandomRows(50, 1), 50, 32, 64, false, nil)
	d := upload(t, e, g)
	plan := &cuda.Walks{Rule: walk.Rule{Length: 4}, Execution: Transits(ByTransits)}
	_, err := sample(e, d, cuda.Call{Plan: plan, Batch: request.Batch{Seeds: csctest.Array([]int64{3, 50, -1}, 32)}, Stream: s.Handle()})
	if err == nil || err.Error() != "index error: seeds[1]: expected an id in [0, 50), got 50" {
		t.Errorf("%v", err)
	}
	for _, seeds := range [][]int64{{3, 49}, {}} {
		r := walk.Request{Rule: plan.Rule, Relation: g, Batch: request.Batch{Seeds: csctest.Array(seeds, 32)}}
		if err := walksAlike(e, s, d, &r, 0); err != nil {
			t.Error(err)
		}
	}
}

// Counts are 32 bits for each vertex.
func TestTransitsAreFewerThanWords(t *testing.T) {
	g := &cuda.Graph{Arrays: cuda.Arrays{Nodes: 1 << 32}}
	plan := &cuda.Walks{Rule: walk.Rule{Length: 4}, Execution: Transits(ByTransits)}
	if err := plan.Check(g, &cuda.Call{NumSeeds: 1}); err == nil || !strings.Contains(err.Error(), "got 'transit'") {
		t.Errorf("%v", err)
	}
	plan.Execution = nil
	if err := plan.Check(g, &cuda.Call{NumSeeds: 1}); err != nil {
		t.Error(err)
	}
}
