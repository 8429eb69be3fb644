package cuda

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// laborAlike is heteroAlike for LABOR.
func laborAlike(e *Engine, s gpu.Stream, d *Graph, r *cpu.LaborRequest, grids ...int) error {
	r.Poisson = true
	var stop atomic.Bool
	m, err := cpu.SampleLabor(r, alone{}, &stop)
	if err != nil {
		return err
	}
	hetero, positions, err := heteroPlan(d, &r.HeteroRequest)
	if err != nil {
		m.Release()
		return err
	}
	var salts []uint64
	for _, k := range r.Graph.NodeTypes {
		salts = append(salts, k.Salt)
	}
	plan := NewLabor(Labor{Salts: salts, Hetero: *hetero, Rounds: r.Rounds, Exact: r.Exact, SameLayers: r.SameLayers, Batches: r.Batches, Scaled: r.Scaled})
	return madeAlike(e, s, d, m, Call{Plan: plan, Batch: r.Batch, Exclude: positions}, plan.layout(), grids...)
}

// laborKinds is every way in which edges stay.
var laborKinds = []cpu.Labor{
	{}, {Exact: true}, {Rounds: 1}, {Rounds: 3, SameLayers: true}, {Rounds: -1}, {Batches: 3}, {Exact: true, SameLayers: true, Batches: 5},
}

// Random schemas of 1 to 40 types, as TestHetero has them.
func TestLabor(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(15, 3))
	for i, types := range []int{1, 1, 3, 3, 7, 12, 40} {
		bits := 32 << (i % 2)
		g := randomTypes(random, types, bits)
		testLabor(t, e, s, random, uploadHetero(t, e, g), g, uint64(i+1), bits)
		// Every second relation has weights.
		for j := 0; j < len(g.Relations); j += 2 {
			weigh(g.Relations[j], csctest.Weightings[[]string{"ramp", "heavy"}[j/2%2]])
		}
		testLabor(t, e, s, random, uploadHetero(t, e, g), g, uint64(i+1), bits)
	}
}

func testLabor(t *testing.T, e *Engine, s gpu.Stream, random *rand.Rand, d *Graph, g *csc.Graph, seed uint64, bits int) {
	t.Helper()
	for i, about := range laborKinds {
		r := &cpu.LaborRequest{Labor: about}
		r.Batch = request.Batch{Seed: seed, Epoch: 3, Number: 1<<39 + uint64(i)}
		r.Graph, r.OnlyNew, r.EdgeWeights = g, i%2 == 1, i%3 > 0
		r.Scaled = i%3 == 2
		var seeds []int64
		for _, k := range g.NodeTypes {
			n := random.Int64N(2 * k.Nodes)
			if random.IntN(3) == 0 && len(g.NodeTypes) > 1 {
				n = 0
			}
			r.Seeds = append(r.Seeds, n)
			for range n {
				seeds = append(seeds, random.Int64N(k.Nodes))
			}
		}
		r.Batch.Seeds = csctest.Array(seeds, bits)
		hops := 1 + random.IntN(3)
		for _, rel := range g.Relations {
			var fanouts []int64
			for range hops {
				fanouts = append(fanouts, []int64{0, 1, 3, 40, -1, random.Int64N(40)}[random.IntN(6)])
			}
			r.Fanouts = append(r.Fanouts, fanouts)
			if i%2 == 0 {
				r.Exclude = append(r.Exclude, someExcluded(t, rel, random, 4))
			}
		}
		if err := laborAlike(e, s, d, r, []int{0, 1, 3}[random.IntN(3)]); err != nil {
			t.Fatalf("%d types, %d bits, %+v, fanouts %v: %v", len(g.NodeTypes), bits, about, r.Fanouts, err)
		}
	}
}

// Every small degree with small fanouts, with weights and without.
func TestLaborEveryDegree(t *testing.T) {
	e, s := device(t)
	rows, seeds := csctest.EveryDegree()
	for _, name := range []string{"", "ramp", "heavy"} {
		graph := csctest.Graph(rows, 71, 32, 64, true)
		if name != "" {
			weigh(graph, csctest.Weightings[name])
		}
		g := &csc.Graph{Schema: &csc.Schema{NodeTypes: []csc.NodeType{{Name: "a", Nodes: 71}}}}
		g.Add(csc.EdgeType{Name: "a__to__a"}, graph)
		d := uploadHetero(t, e, g)
		for _, fanout := range []int64{1, 2, 11, 36} {
			for i, about := range laborKinds[:5] {
				about.Scaled = i%2 == 1
				r := &cpu.LaborRequest{Labor: about}
				r.Graph, r.Fanouts, r.EdgeWeights, r.Seeds = g, [][]int64{{fanout}}, true, []int64{int64(len(seeds))}
				r.Batch = request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(seeds, 64)}
				if err := laborAlike(e, s, d, r, 0); err != nil {
					t.Fatalf("%q, fanout %d, %+v: %v", name, fanout, about, err)
				}
			}
		}
	}
}

// Rows that are cut into pieces: one of more edges than a warp searches, or looks for the smallest keys of, alone.
func TestLaborHub(t *testing.T) {
	e, s := device(t)
	star := csctest.Awkward(9000)["star"]
	for _, weighted := range []bool{false, true} {
		g := &csc.Graph{Schema: &csc.Schema{NodeTypes: []csc.NodeType{{Name: "a", Nodes: 5001, Salt: 4}, {Name: "b", Nodes: 5001, Salt: 5}}}}
		for i, dst := range []int{0, 1} {
			graph := csctest.Graph(star, 5001, 32, 32, i == 1)
			if weighted {
				weigh(graph, csctest.Weightings["heavy"])
			}
			g.Add(csc.EdgeType{Name: fmt.Sprint("r", i), Src: 1 - i, Dst: dst, Salt: uint64(i) + 9}, graph)
		}
		d := uploadHetero(t, e, g)
		for i, about := range laborKinds[:5] {
			about.Scaled = i%2 == 0
			r := &cpu.LaborRequest{Labor: about}
			r.Graph, r.Fanouts, r.EdgeWeights, r.Seeds = g, [][]int64{{-1, 1000}, {700, 2}}, true, []int64{2, 1}
			r.Batch = request.Batch{Seed: 1, Seeds: csctest.Array([]int64{0, 7, 0}, 64)}
			if err := laborAlike(e, s, d, r, 0); err != nil {
				t.Fatalf("weighted %v, %+v: %v", weighted, about, err)
			}
		}
	}
}
