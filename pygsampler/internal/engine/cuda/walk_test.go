package cuda

import (
	"errors"
	"fmt"
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

// walksAlike compares walks of the GPU, by each layout and grid, with the CPU's.
func walksAlike(e *Engine, s gpu.Stream, d *Graph, r *walk.Request, grids ...int) error {
	want, err := walktest.Sample(r)
	if err != nil {
		return err
	}
	for _, layout := range []string{"csr", "packed"} {
		if layout == "packed" && r.Relation.Kinds > 1 {
			continue
		}
		for _, grid := range grids {
			b, err := sample(e, d, Call{Plan: &Walks{Rule: r.Rule, Layout: layout}, Batch: r.Batch, Stream: s.Handle(), Grid: grid})
			if err != nil {
				return fmt.Errorf("%s, grid %d: %w", layout, grid, err)
			}
			m, err := b.Download(s)
			if err != nil {
				return err
			}
			got := walktest.Read(m)
			m.Release()
			if err := errors.Join(b.Memory.Free(s), got.Compare(want)); err != nil {
				return fmt.Errorf("%s, grid %d: %w", layout, grid, err)
			}
		}
	}
	return nil
}

// Every small degree, awkward and random graphs; ids of both widths, given edge ids or none, by
// weight and uniformly.
func TestWalks(t *testing.T) {
	e, s := device(t)
	k, err := Cached(e, "walk", loadWalks)
	if err != nil {
		t.Fatal(err)
	}
	walktest.Graphs(func(name string, g *csc.Relation, seeds []int64) {
		d := walker(t, e, g)
		for _, rule := range walktest.Rules {
			if rule.Roots > 0 && g.Alias != nil {
				continue
			}
			r := walktest.Request(rule, g, seeds)
			// With few 0 as many walks are made.
			for _, k.few = range []int64{fewWalks, 0} {
				if err := walksAlike(e, s, d, &r, 0, 1); err != nil {
					t.Fatalf("%s, few %d, %+v: %v", name, k.few, rule, err)
				}
				if rule.Stop == 0 {
					break
				}
			}
		}
	})
}

// Metapaths over rows by kinds of edges.
func TestWalksOfKinds(t *testing.T) {
	e, s := device(t)
	g, requests := walktest.Kinds()
	d := walker(t, e, g)
	for _, r := range requests {
		if err := walksAlike(e, s, d, &r, 0, 2); err != nil {
			t.Fatalf("%v, restart %g: %v", r.Path, r.Restart, err)
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
