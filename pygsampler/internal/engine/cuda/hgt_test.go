package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// hgtPlan is the plan of a request, and the positions that it samples around.
func hgtPlan(r *cpu.HGTRequest) (p *HGT, positions []int64) {
	var excluded, salts = []int64(nil), make([]uint64, len(r.Graph.NodeTypes))
	for i, x := range r.Exclude {
		own := positionsOf(r.Graph.Relations[i], x)
		excluded = append(excluded, int64(len(own)))
		positions = append(positions, own...)
	}
	for t, k := range r.Graph.NodeTypes {
		salts[t] = k.Salt
	}
	return NewHGT(len(r.Graph.Relations), r.MaxNeighbors, salts, r.Samples, r.Seeds, excluded), positions
}

// positionsOf is the CSC positions that are excluded of a relation.
func positionsOf(g *csc.Relation, x *csc.Exclusions) []int64 {
	return excluded(&cpu.Request{Relation: g, Exclude: x})
}

// hgtAlike compares subgraphs of the GPU, by several grids, with the CPU's: every word and every array.
func hgtAlike(e *Engine, s gpu.Stream, d *Graph, r *cpu.HGTRequest, grids ...int) error {
	l := batch.Layout{Hops: 1, Types: len(r.Graph.NodeTypes), Relations: len(r.Graph.Relations)}
	var stop atomic.Bool
	m, err := cpu.SampleHGT(r, &stop)
	if err != nil {
		return err
	}
	plan, positions := hgtPlan(r)
	return madeAlike(e, s, d, m, Call{Plan: plan, Batch: r.Batch, Exclude: positions}, l, grids...)
}

// Random schemas of 1 to 40 types: seeds of several types, some repeated; numbers of vertices of every kind by type
// and iteration; bounds of rows, exclusions, ids of both widths.
func TestHGT(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(15, 3))
	for i, types := range []int{1, 1, 2, 3, 4, 7, 12, 40} {
		for _, bits := range []int{32, 64} {
			g := randomTypes(random, types, bits)
			for k := range g.NodeTypes {
				g.NodeTypes[k].Salt = rng.Mix(uint64(100 + k))
			}
			d := uploadHetero(t, e, g)
			for variant := range 6 {
				r := &cpu.HGTRequest{
					Batch: request.Batch{Seed: uint64(i + 1), Epoch: 2, Number: 1<<39 + 1}, Graph: g, MaxNeighbors: []int64{-1, 1, 3, 50}[variant%4],
				}
				var seeds []int64
				iterations := random.IntN(4)
				for _, k := range g.NodeTypes {
					count := random.Int64N(2*k.Nodes) * int64(random.IntN(2))
					for range count {
						seeds = append(seeds, random.Int64N(k.Nodes))
					}
					samples := make([]int64, iterations)
					for i := range samples {
						samples[i] = []int64{-1, 0, 1, 4, random.Int64N(60)}[random.IntN(5)]
					}
					r.Seeds, r.Samples = append(r.Seeds, count), append(r.Samples, samples)
				}
				r.Batch.Seeds = csctest.Array(seeds, bits)
				for _, rel := range g.Relations {
					x := someExcluded(t, rel, random, 4)
					if variant >= 4 {
						r.Exclude = append(r.Exclude, x)
					}
				}
				if err := hgtAlike(e, s, d, r, 0, 1+random.IntN(3)); err != nil {
					t.Fatalf("%d types, %d bits, variant %d, samples %v: %v", types, bits, variant, r.Samples, err)
				}
			}
		}
	}
}

// Vertices of more tiles than one merge takes, of which an iteration chooses few, many, or all, beside types that
// have one tile, and none. Hubs have so many edges, and most vertices none, that a guess of room by degrees is too small.
func TestHGTManyCandidates(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(15, 4))
	const most = 17 * threads
	g := &csc.Graph{Schema: &csc.Schema{NodeTypes: []csc.NodeType{{Name: "a", Nodes: 1 << 20}, {Name: "b", Nodes: most + 99, Salt: 5}, {Name: "c", Nodes: 700, Salt: 6}, {Name: "d", Nodes: 3, Salt: 7}}}}
	for i, src := range []int{1, 2, 1, 0} {
		rows := make([][]int64, 4)
		for v := range rows {
			// The first is a hub, whose neighbours come in any order, some twice.
			count := []int64{min(g.NodeTypes[src].Nodes, most), 40, 0, 3}[v]
			for range count {
				rows[v] = append(rows[v], random.Int64N(g.NodeTypes[src].Nodes))
			}
			if v == 0 && i == 0 {
				for u := range g.NodeTypes[src].Nodes {
					rows[v] = append(rows[v], u)
				}
			}
		}
		nodes := max(g.NodeTypes[src].Nodes, 1<<20)
		g.Add(csc.EdgeType{Name: fmt.Sprint("r", i), Src: src, Salt: uint64(i) + 9}, csctest.Graph(rows, nodes, 32, 64, i == 1))
	}
	d := uploadHetero(t, e, g)
	for i, samples := range [][]int64{{1, 600}, {513, -1}, {most, 5}, {-1, -1}} {
		r := &cpu.HGTRequest{
			Graph: g, MaxNeighbors: -1, Seeds: []int64{2, 0, 0, 1}, Samples: [][]int64{{0, 1}, samples, {samples[1], samples[0]}, {3, 3}},
			Batch: request.Batch{Seed: 1, Seeds: csctest.Array([]int64{0, 3, 1}, 64)},
		}
		for again := range 2 {
			plan, _ := hgtPlan(r)
			f, err := e.Start(d, &Call{Plan: plan, Batch: r.Batch, Stream: s.Handle()})
			if err != nil {
				t.Fatal(err)
			}
			b, _, err := f.Wait(-1)
			if err = errors.Join(err, b.Memory.Free(s)); err != nil {
				t.Fatal(err)
			}
			// The needs of a batch are known by then.
			if i == 0 && (again == 0 && f.tries < 3 || again == 1 && f.tries > 1) {
				t.Errorf("batch %d: made by %d launches", again, f.tries)
			}
		}
		if err := hgtAlike(e, s, d, r, 0, 1); err != nil {
			t.Fatalf("samples %v: %v", samples, err)
		}
	}
}

// A seed that is no vertex names its type and its place there, and harms no later batch.
func TestHGTRefuses(t *testing.T) {
	e, s := device(t)
	g := randomTypes(rand.New(rand.NewPCG(4, 4)), 3, 64)
	d := uploadHetero(t, e, g)
	r := &cpu.HGTRequest{
		Graph: g, Seeds: []int64{1, 0, 3}, Samples: [][]int64{{2}, {2}, {2}}, MaxNeighbors: 2,
		Batch: request.Batch{Seed: 1, Seeds: csctest.Array([]int64{0, 0, 0, 1000}, 64)},
	}
	plan, _ := hgtPlan(r)
	_, err := sample(e, d, Call{Plan: plan, Batch: r.Batch, Stream: s.Handle()})
	want := fmt.Sprintf(`seeds["t2"][2]: expected an id in [0, %d), got 1000`, g.NodeTypes[2].Nodes)
	if !errors.Is(err, request.ErrIndex) || !strings.Contains(fmt.Sprint(err), want) {
		t.Fatalf("got %v, want %s", err, want)
	}
	r.Batch.Seeds = csctest.Array([]int64{0, 0, 0, 0}, 64)
	if err := hgtAlike(e, s, d, r, 0); err != nil {
		t.Fatal(err)
	}
	_, plain := graphOf(t, e, [][]int64{{0}}, 1, 64, 64, false)
	if _, err := sample(e, plain, Call{Plan: plan, Batch: r.Batch, Stream: s.Handle()}); !errors.Is(err, request.ErrValue) {
		t.Fatalf("a homogeneous graph: got %v", err)
	}
}
