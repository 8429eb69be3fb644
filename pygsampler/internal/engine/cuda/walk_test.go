package cuda

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/walktest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// walker is a graph on the device, with adjacency, until the end of the test.
func walker(t *testing.T, e *Engine, g *csc.Relation) *Graph {
	t.Helper()
	d := upload(t, e, g)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// walksAlike compares walks of the GPU, by each layout, execution and grid, with the CPU's.
func walksAlike(e *Engine, s gpu.Stream, d *Graph, r *walk.Request, grids ...int) error {
	want, err := walktest.Sample(r)
	if err != nil {
		return err
	}
	for _, layout := range []string{"csr", "packed", ByTransits, UncachedTransits, PlainTransits} {
		plan := &Walks{Rule: r.Rule, Layout: layout}
		switch {
		case GroupsTransits(layout) && r.Roots > 0:
			continue
		case GroupsTransits(layout):
			plan.Layout, plan.Execution = "auto", layout
		case layout == "packed" && r.Relation.Kinds > 1:
			continue
		}
		for _, grid := range grids {
			b, err := sample(e, d, Call{Plan: plan, Batch: r.Batch, Stream: s.Handle(), Grid: grid})
			if err != nil {
				return fmt.Errorf("%s, grid %d: %w", layout, grid, err)
			}
			m, err := b.Download(s)
			if err != nil {
				return err
			}
			got := walktest.Read(m)
			m.Release()
			if err := b.Memory.Free(s); err != nil {
				return err
			}
			if !reflect.DeepEqual(got, want) {
				for i := range want.Nodes {
					if !reflect.DeepEqual(got.Nodes[i], want.Nodes[i]) || got.Lengths[i] != want.Lengths[i] || want.EdgeIDs != nil && !reflect.DeepEqual(got.EdgeIDs[i], want.EdgeIDs[i]) {
						return fmt.Errorf("%s, grid %d: walk %d is %v of length %d, want %v of %d", layout, grid, i, got.Nodes[i], got.Lengths[i], want.Nodes[i], want.Lengths[i])
					}
				}
				return fmt.Errorf("%s, grid %d: visits %v %v, slots %v, want %v %v, %v", layout, grid, got.Top, got.Visits, got.Slots, want.Top, want.Visits, want.Slots)
			}
		}
	}
	return nil
}

var walkRules = []walk.Rule{
	{Length: 11}, {Length: 9, EdgeIDs: true, PerSeed: 3}, {Length: 0}, {Length: 12, Stop: .2, EdgeIDs: true},
	{Length: 12, Restart: .3}, {Length: 12, Restart: .3, Stop: .05, Jumps: true, EdgeIDs: true}, {Length: 3, Stop: 1},
	{Length: 8, P: 2, Q: .5, EdgeIDs: true}, {Length: 8, P: .25, Q: 4, PerSeed: 2}, {Length: 8, P: 4, Q: .25}, {Length: 8, P: 1, Q: 2, Restart: .1},
	{Length: 8, Every: 2, Stop: .5, PerSeed: 10, Top: 3}, {Length: 5, PerSeed: 3, Top: 40, Restart: .5}, {Length: 100, PerSeed: 20, Top: 7, Stop: .01},
	{Length: 20, Roots: 5, EdgeIDs: true}, {Length: 300, Roots: 130}, {Length: 0, Roots: 1},
	{Length: 6, P: 1e9, Q: 1e10}, {Length: 6, P: 1e-9, Q: 1}, {Length: 5, P: 1e90, Q: 1e-90, Stop: .1},
}

// Every small degree, awkward and random graphs; ids of both widths, given edge ids or none, by
// weight and uniformly.
func TestWalks(t *testing.T) {
	e, s := device(t)
	k, err := Cached(e, "walk", loadWalks)
	if err != nil {
		t.Fatal(err)
	}
	every, _ := csctest.EveryDegree()
	graphs := csctest.Awkward(3000)
	graphs["every degree"], graphs["random"] = every, csctest.RandomRows(500, 3)
	for name, rows := range graphs {
		for _, bits := range []int{32, 64} {
			for _, weights := range []string{"", "ramp", "heavy"} {
				if bits == 64 && weights == "heavy" {
					continue
				}
				nodes := int64(len(rows)) + 3
				for _, row := range rows {
					for _, v := range row {
						nodes = max(nodes, v+1)
					}
				}
				g := walktest.Graph(rows, nodes, bits, 96-bits, bits == 32, weightings[weights])
				d := walker(t, e, g)
				var seeds []int64
				for i := range 130 {
					seeds = append(seeds, int64(i*7)%nodes)
				}
				for _, rule := range walkRules {
					some := seeds
					if rule.Top > 0 && rule.Visits() > 200 {
						some = seeds[:7] // a block of threads sorts them, which the emulator has one after another
					}
					r := walk.Request{Rule: rule, Relation: g, Batch: request.Batch{Seed: 1 << 40, Epoch: 3, Number: 1<<39 + 1, Seeds: csctest.Array(some, bits)}}
					if rule.Roots > 0 && weights != "" {
						continue
					}
					// With few 0 as many walks are made.
					for _, k.few = range []int64{fewWalks, 0} {
						if err := walksAlike(e, s, d, &r, 0, 1); err != nil {
							t.Fatalf("%s, %d bits, weights %q, few %d, %+v: %v", name, bits, weights, k.few, rule, err)
						}
						if rule.Stop == 0 {
							break
						}
					}
				}
			}
		}
	}
}

// Metapaths over rows by kinds of edges.
func TestWalksOfKinds(t *testing.T) {
	e, s := device(t)
	rows := csctest.RandomRows(600, 8)
	for _, row := range rows {
		for i := range row {
			row[i] %= 200
		}
	}
	g := csctest.Graph(rows, 600, 32, 64, true)
	g.NumNodes, g.Kinds = 200, 3
	d := walker(t, e, g)
	var seeds []int64
	for v := range int64(200) {
		seeds = append(seeds, v)
	}
	for _, path := range [][]int64{{0}, {1, 2}, {2, 0, 0, 1, 2}} {
		for _, restart := range []float64{0, .2} {
			r := walk.Request{Rule: walk.Rule{Length: 13, Path: path, Restart: restart, EdgeIDs: true}, Relation: g, Batch: request.Batch{Seeds: csctest.Array(seeds, 32)}}
			if err := walksAlike(e, s, d, &r, 0, 2); err != nil {
				t.Fatalf("%v, restart %g: %v", path, restart, err)
			}
		}
	}
}

// A seed that is no vertex is told, and the next call is right.
func TestWalksFromNowhere(t *testing.T) {
	e, s := device(t)
	g := walktest.Graph(csctest.RandomRows(50, 1), 50, 32, 64, false, nil)
	d := walker(t, e, g)
	plan := &Walks{Rule: walk.Rule{Length: 4}, Layout: "auto"}
	_, err := sample(e, d, Call{Plan: plan, Batch: request.Batch{Seeds: csctest.Array([]int64{3, 50, -1}, 32)}, Stream: s.Handle()})
	if err == nil || err.Error() != "index error: seeds[1]: expected an id in [0, 50), got 50" {
		t.Errorf("%v", err)
	}
	r := walk.Request{Rule: plan.Rule, Relation: g, Batch: request.Batch{Seeds: csctest.Array([]int64{3, 49}, 32)}}
	if err := walksAlike(e, s, d, &r, 0); err != nil {
		t.Error(err)
	}
	if _, err := sample(e, d, Call{Plan: &Walks{Rule: walk.Rule{Length: 1, PerSeed: 1 << 30}}, Batch: request.Batch{Seeds: csctest.Array([]int64{3, 49}, 32)}, Stream: s.Handle()}); err == nil {
		t.Error("2^31 walks in a call")
	}
}
