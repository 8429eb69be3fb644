package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/khop"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/khoptest"
)

// hopsAlike compares samples of the GPU, by each execution and grid, with the CPU's.
func hopsAlike(e *cuda.Engine, s gpu.Stream, d *cuda.Graph, r *khop.Request, grids ...int) error {
	want, err := khoptest.Sample(r)
	if err != nil {
		return err
	}
	for _, execution := range []string{"sample", ByTransits, UncachedTransits, PlainTransits} {
		if (r.Collective || r.Unique) && GroupsTransits(execution) {
			continue
		}
		for _, grid := range grids {
			plan := &KHop{Rule: r.Rule, Execution: execution}
			b, err := sample(e, d, cuda.Call{Plan: plan, Batch: r.Batch, Stream: s.Handle(), Grid: grid})
			if err != nil {
				return fmt.Errorf("%s, grid %d: %w", execution, grid, err)
			}
			m, err := b.Download(s)
			if err != nil {
				return err
			}
			got := khoptest.Read(m)
			m.Release()
			if err := b.Memory.Free(s); err != nil {
				return err
			}
			for i := range want.Nodes {
				if got.Nodes[i] != want.Nodes[i] {
					return fmt.Errorf("%s, grid %d: vertex %d of %d is %d, want %d", execution, grid, i, len(want.Nodes), got.Nodes[i], want.Nodes[i])
				}
			}
			if !slices.Equal(got.Edges, want.Edges) {
				return fmt.Errorf("%s, grid %d: edges are others than the CPU's", execution, grid)
			}
		}
	}
	return nil
}

// Every small degree and awkward graphs; fanouts below, at and above degrees; ids of both widths.
func TestKHop(t *testing.T) {
	e, s := device(t)
	every, _ := csctest.EveryDegree()
	graphs := csctest.Awkward(3000)
	graphs["every degree"], graphs["random"] = every, csctest.RandomRows(500, 3)
	for name, rows := range graphs {
		for _, bits := range []int{32, 64} {
			nodes := int64(len(rows)) + 3
			for _, row := range rows {
				for _, v := range row {
					nodes = max(nodes, v+1)
				}
			}
			g := csctest.Graph(rows, nodes, bits, 96-bits, bits == 32)
			d := upload(t, e, g)
			var seeds []int64
			for i := range int64(75) {
				seeds = append(seeds, i%nodes)
			}
			rules := []khop.Rule{
				{Counts: []int64{5, 3}}, {Counts: []int64{2, 1, 7}, Distinct: true, EdgeIDs: true}, {Counts: []int64{40}, Distinct: true},
				{Counts: []int64{2, 1, 7}, Unique: true, EdgeIDs: true}, {Counts: []int64{40}, Unique: true}, {Counts: []int64{6, 50, 6}, Unique: true, EdgeIDs: true},
				{Counts: []int64{40, 3}, EdgeIDs: true, FirstSample: 1<<33 + 7}, {Counts: []int64{20, 30, 1}, Collective: true, EdgeIDs: true},
				{Counts: []int64{20, 30, 1}, Collective: true, Unique: true, EdgeIDs: true},
			}
			if name == "every degree" {
				for k := range int64(40) {
					rules = append(rules, khop.Rule{Counts: []int64{k + 1}, Unique: k%4 == 0, Distinct: k%4 == 2, EdgeIDs: true})
				}
			}
			for _, rule := range rules {
				r := khop.Request{Rule: rule, Relation: g, Batch: request.Batch{Seed: 1 << 40, Epoch: 3, Number: 1<<39 + 1, Seeds: csctest.Array(seeds, bits)}}
				if err := hopsAlike(e, s, d, &r, 0, 2); err != nil {
					t.Fatalf("%s, %d bits, %+v: %v", name, bits, rule, err)
				}
			}
		}
	}
}

// Transits of every class: few on a vertex, a block's, and several blocks'; rows that fit into shared
// memory and such that do not. Layers of more transits than have their sums in shared memory.
func TestKHopOfEveryClass(t *testing.T) {
	e, s := device(t)
	const nodes = 6000
	rows := make([][]int64, nodes)
	for v, degree := range []int{1, 2, 40, transitRow, transitRow + 1} {
		for i := range degree {
			rows[v] = append(rows[v], int64(i*3%7))
		}
	}
	for v := 7; v < nodes-10; v++ {
		rows[v] = []int64{int64(v % 7), int64(v * 7 % nodes), int64(v+1) % nodes}
	}
	g := csctest.Graph(rows, nodes, 32, 64, false)
	d := upload(t, e, g)
	var seeds []int64
	for i := range int64(2 * transitPiece) {
		seeds = append(seeds, 3, i%5, 5900+i%100)
	}
	for _, rule := range []khop.Rule{{Counts: []int64{1}}, {Counts: []int64{3, 2}, EdgeIDs: true}, {Counts: []int64{2, 3}, Distinct: true}, {Counts: []int64{2, 3}, Unique: true}} {
		r := khop.Request{Rule: rule, Relation: g, Batch: request.Batch{Seed: 7, Seeds: csctest.Array(seeds, 32)}}
		if err := hopsAlike(e, s, d, &r, 0, 3); err != nil {
			t.Fatalf("%+v: %v", rule, err)
		}
	}
	for _, unique := range []bool{false, true} {
		r := khop.Request{
			Rule:     khop.Rule{Counts: []int64{transitRow + 100, 50, transitRow, 20}, Collective: true, Unique: unique},
			Relation: g, Batch: request.Batch{Seed: 7, Seeds: csctest.Array([]int64{3, 5, 8, 5999}, 32)},
		}
		if err := hopsAlike(e, s, d, &r, 0, 1); err != nil {
			t.Fatalf("unique %v: %v", unique, err)
		}
	}
}

// A seed that is no vertex is told, and the next call is right; so is one without seeds.
func TestKHopFromNowhere(t *testing.T) {
	e, s := device(t)
	g := csctest.Graph(csctest.RandomRows(50, 1), 50, 32, 64, false)
	d := upload(t, e, g)
	rule := khop.Rule{Counts: []int64{3, 2}}
	for _, execution := range []string{"sample", "transit"} {
		plan := &KHop{Rule: rule, Execution: execution}
		_, err := sample(e, d, cuda.Call{Plan: plan, Batch: request.Batch{Seeds: csctest.Array([]int64{3, 50, -1}, 32)}, Stream: s.Handle()})
		if err == nil || err.Error() != "index error: seeds[1]: expected an id in [0, 50), got 50" {
			t.Errorf("%s: %v", execution, err)
		}
	}
	for _, seeds := range [][]int64{{3, 49}, {}} {
		r := khop.Request{Rule: rule, Relation: g, Batch: request.Batch{Seeds: csctest.Array(seeds, 32)}}
		if err := hopsAlike(e, s, d, &r, 0); err != nil {
			t.Error(err)
		}
	}
	plan := &KHop{Rule: rule, Execution: "transit"}
	if err := plan.Check(&cuda.Graph{Arrays: cuda.Arrays{Nodes: 1 << 32}}, &cuda.Call{NumSeeds: 1}); err == nil || !strings.Contains(err.Error(), "got 'transit'") {
		t.Errorf("%v", err)
	}
	if err := plan.Check(d, &cuda.Call{NumSeeds: 1 << 28}); err == nil || !strings.Contains(err.Error(), "2^31") {
		t.Errorf("%v", err)
	}
}
