package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// uploadHetero is a heterogeneous graph on the device, until the end of the test.
func uploadHetero(t *testing.T, e *Engine, g *csc.Graph) *Graph {
	t.Helper()
	var relations []*Graph
	for _, r := range g.Relations {
		relations = append(relations, upload(t, e, r))
	}
	return e.NewHetero(g.Schema, relations)
}

// heteroPlan is the plan of a request to a graph that is on the device, and the positions that it samples around.
func heteroPlan(d *Graph, r *cpu.HeteroRequest) (p *Hetero, positions []int64, err error) {
	p = &Hetero{Fanouts: r.Fanouts, Replace: r.Replace, OnlyNew: r.OnlyNew, Disjoint: r.Disjoint, EdgeWeights: r.EdgeWeights, Seeds: r.Seeds}
	for i := range r.Exclude {
		own := excluded(&cpu.Request{Relation: r.Graph.Relations[i], Exclude: r.Exclude[i]})
		p.Excluded = append(p.Excluded, int64(len(own)))
		positions = append(positions, own...)
	}
	for i, t := range r.Times {
		if p.Times == nil {
			p.Times = &Times{Seeds: r.SeedTimes, Keys: make([]gpu.Address, len(r.Times))}
		}
		if t == nil {
			continue
		}
		p.Times.Rule, p.Times.Float = t.Rule, t.Float
		if p.Times.Keys[i], err = d.relations[i].Keys(t.Edges); err != nil {
			return nil, nil, err
		}
	}
	return p, positions, nil
}

// heteroAlike compares batches of the GPU, by several grids, with the CPU's: every word and every array.
func heteroAlike(e *Engine, s gpu.Stream, d *Graph, r *cpu.HeteroRequest, grids ...int) error {
	var stop atomic.Bool
	m, err := cpu.SampleHetero(r, alone{}, &stop)
	if err != nil {
		return err
	}
	plan, positions, err := heteroPlan(d, r)
	if err != nil {
		m.Release()
		return err
	}
	return madeAlike(e, s, d, m, Call{Plan: plan, Batch: r.Batch, Exclude: positions}, plan.layout(), grids...)
}

// madeAlike compares batches of a call by several grids with one of the CPU's, which it releases.
func madeAlike(e *Engine, s gpu.Stream, d *Graph, m memory.Memory, c Call, l batch.Layout, grids ...int) error {
	words, arrays := batchtest.Arrays(m, l)
	m.Release()
	for _, grid := range grids {
		c.Stream, c.Grid = s.Handle(), grid
		b, err := sample(e, d, c)
		if err != nil {
			return fmt.Errorf("grid %d: %w", grid, err)
		}
		m, err := b.Download(s)
		if err != nil {
			return err
		}
		gotWords, got := batchtest.Arrays(m, l)
		m.Release()
		if err := b.Memory.Free(s); err != nil {
			return err
		}
		if !slices.Equal(gotWords, words) {
			return fmt.Errorf("grid %d: words\n got %v\nwant %v", grid, gotWords, words)
		}
		for i := range arrays {
			if !slices.Equal(got[i], arrays[i]) {
				return fmt.Errorf("grid %d: array %d of %d:\n got %.300s\nwant %.300s", grid, i, len(arrays), fmt.Sprint(got[i]), fmt.Sprint(arrays[i]))
			}
		}
	}
	return nil
}

// someExcluded leaves out one edge in so many, at random.
func someExcluded(t *testing.T, g *csc.Relation, random *rand.Rand, in int) *csc.Exclusions {
	t.Helper()
	var ids []int64
	for id := range g.NumEdges() {
		if random.IntN(in) == 0 {
			ids = append(ids, id)
		}
	}
	x, err := g.Exclude(ids)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// randomTypes is a graph of so many types and twice as many relations, some of them empty, with self loops and
// parallel edges; rows have 0 to 70 edges.
func randomTypes(random *rand.Rand, types, bits int) *csc.Graph {
	g := &csc.Graph{Schema: new(csc.Schema)}
	for t := range types {
		g.NodeTypes = append(g.NodeTypes, csc.NodeType{Name: fmt.Sprint("t", t), Nodes: 1 + random.Int64N(90), Salt: rng.Mix(uint64(t) + 99)})
	}
	for i := range max(2*types-1, 1) {
		src, dst := random.IntN(types), random.IntN(types)
		rows := make([][]int64, random.Int64N(g.NodeTypes[dst].Nodes+1))
		for v := range rows {
			for range random.IntN(1 + []int{0, 3, 12, 70}[random.IntN(4)]) {
				rows[v] = append(rows[v], random.Int64N(g.NodeTypes[src].Nodes))
			}
		}
		nodes := max(g.NodeTypes[src].Nodes, g.NodeTypes[dst].Nodes)
		name := fmt.Sprintf("t%d__r%d__t%d", src, i, dst)
		relation := csctest.Graph(rows, nodes, bits, 32<<random.IntN(2), random.IntN(2) == 0)
		g.Add(csc.EdgeType{Name: name, Src: src, Dst: dst, Salt: rng.Mix(uint64(i))}, relation)
	}
	return g
}

// Random schemas of 1 to 40 types: seeds of several types, some repeated; fanouts of every kind by relation
// and hop; both frontiers, replacement, exclusions, factors, ids of both widths.
func TestHetero(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(15, 2))
	for i, types := range []int{1, 1, 2, 3, 4, 7, 12, 40} {
		for _, bits := range []int{32, 64} {
			g := randomTypes(random, types, bits)
			testHetero(t, e, s, random, uploadHetero(t, e, g), g, uint64(i+1), bits)
			if bits == 64 {
				continue
			}
			// Every second relation draws by weight.
			for j := 0; j < len(g.Relations); j += 2 {
				weigh(g.Relations[j], csctest.Weightings[[]string{"ramp", "heavy"}[j/2%2]])
			}
			testHetero(t, e, s, random, uploadHetero(t, e, g), g, uint64(i+1), bits)
		}
	}
}

// testHetero compares requests of all kinds to a graph.
func testHetero(t *testing.T, e *Engine, s gpu.Stream, random *rand.Rand, d *Graph, g *csc.Graph, seed uint64, bits int) {
	t.Helper()
	for variant := range 16 {
		r := &cpu.HeteroRequest{
			Batch: request.Batch{Seed: seed, Epoch: 2, Number: 1<<39 + 1}, Graph: g,
			Replace: variant&1 == 1, OnlyNew: variant&2 == 2, Disjoint: variant&4 == 4, EdgeWeights: variant&8 == 8,
		}
		var seeds []int64
		for range g.NodeTypes {
			r.Seeds = append(r.Seeds, 0)
		}
		for k := range g.NodeTypes {
			if random.IntN(3) == 0 && len(g.NodeTypes) > 1 {
				continue
			}
			if r.Seeds[k] = random.Int64N(2 * g.NodeTypes[k].Nodes); r.Disjoint {
				r.Seeds[k] = min(r.Seeds[k], 5)
			}
			for range r.Seeds[k] {
				seeds = append(seeds, random.Int64N(g.NodeTypes[k].Nodes))
			}
		}
		r.Batch.Seeds = csctest.Array(seeds, bits)
		hops := 1 + random.IntN(3)
		for range g.Relations {
			var fanouts []int64
			for range hops {
				n := []int64{0, 1, 3, 40, -1, random.Int64N(40)}[random.IntN(6)]
				if r.Replace {
					n = max(n, 0)
				}
				fanouts = append(fanouts, n)
			}
			r.Fanouts = append(r.Fanouts, fanouts)
		}
		if variant%4 == 3 || variant%4 == 0 {
			for _, rel := range g.Relations {
				r.Exclude = append(r.Exclude, someExcluded(t, rel, random, 4))
			}
		}
		if err := heteroAlike(e, s, d, r, 0, 1+random.IntN(3)); err != nil {
			t.Fatalf("%d types, %d bits, variant %d, fanouts %v: %v", len(g.NodeTypes), bits, variant, r.Fanouts, err)
		}
	}
}

// Every small degree with every small fanout by weight.
func TestHeteroEveryDegreeAndFanoutByWeight(t *testing.T) {
	e, s := device(t)
	rows, seeds := csctest.EveryDegree()
	for _, name := range []string{"ramp", "heavy", "equal"} {
		g := &csc.Graph{Schema: &csc.Schema{NodeTypes: []csc.NodeType{{Name: "a", Nodes: 71}}}}
		g.Add(csc.EdgeType{Name: "a__to__a"}, weigh(csctest.Graph(rows, 71, 32, 64, true), csctest.Weightings[name]))
		d := uploadHetero(t, e, g)
		for fanout := int64(1); fanout <= 40; fanout++ {
			for _, replace := range []bool{false, true} {
				r := &cpu.HeteroRequest{
					Graph: g, Fanouts: [][]int64{{fanout}}, Replace: replace, EdgeWeights: true, Seeds: []int64{int64(len(seeds))},
					Batch: request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(seeds, 64)},
				}
				if err := heteroAlike(e, s, d, r, 0); err != nil {
					t.Fatalf("%s, fanout %d, replace %v: %v", name, fanout, replace, err)
				}
			}
		}
	}
}

// A row of more edges than a warp takes alone, and one of more than a tile.
func TestHeteroHub(t *testing.T) {
	e, s := device(t)
	star := csctest.Awkward(9000)["star"]
	g := &csc.Graph{Schema: &csc.Schema{NodeTypes: []csc.NodeType{{Name: "a", Nodes: 5001}, {Name: "b", Nodes: 5001}}}}
	for i, dst := range []int{0, 1} {
		g.Add(csc.EdgeType{Name: fmt.Sprint("r", i), Src: 1 - i, Dst: dst, Salt: uint64(i) + 9}, csctest.Graph(star, 5001, 32, 32, i == 1))
	}
	d := uploadHetero(t, e, g)
	for _, fanouts := range [][][]int64{{{-1, -1}, {-1, 2}}, {{700, 2}, {3, 1000}}} {
		r := &cpu.HeteroRequest{Graph: g, Fanouts: fanouts, EdgeWeights: true, Seeds: []int64{2, 1}, Batch: request.Batch{Seed: 1, Seeds: csctest.Array([]int64{0, 7, 0}, 64)}}
		if err := heteroAlike(e, s, d, r, 0); err != nil {
			t.Fatalf("fanouts %v: %v", fanouts, err)
		}
	}
}

// A seed that is no vertex names its type and its place there, and harms no later batch.
func TestHeteroRefuses(t *testing.T) {
	e, s := device(t)
	g := randomTypes(rand.New(rand.NewPCG(4, 4)), 3, 64)
	d := uploadHetero(t, e, g)
	r := &cpu.HeteroRequest{Graph: g, Seeds: []int64{1, 0, 3}, Batch: request.Batch{Seed: 1, Seeds: csctest.Array([]int64{0, 0, 0, 1000}, 64)}}
	for range g.Relations {
		r.Fanouts = append(r.Fanouts, []int64{2, 2})
	}
	plan, _, err := heteroPlan(d, r)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sample(e, d, Call{Plan: plan, Batch: r.Batch, Stream: s.Handle()})
	want := fmt.Sprintf(`seeds["t2"][2]: expected an id in [0, %d), got 1000`, g.NodeTypes[2].Nodes)
	if !errors.Is(err, request.ErrIndex) || !strings.Contains(fmt.Sprint(err), want) {
		t.Fatalf("got %v, want %s", err, want)
	}
	r.Batch.Seeds = csctest.Array([]int64{0, 0, 0, 0}, 64)
	if err := heteroAlike(e, s, d, r, 0); err != nil {
		t.Fatal(err)
	}
	_, plain := graphOf(t, e, [][]int64{{0}}, 1, 64, 64, false)
	if _, err := sample(e, plain, Call{Plan: plan, Batch: r.Batch, Stream: s.Handle()}); !errors.Is(err, request.ErrValue) {
		t.Fatalf("a homogeneous graph: got %v", err)
	}
}
