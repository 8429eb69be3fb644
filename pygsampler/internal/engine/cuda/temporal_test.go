package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// timedGraph is a homogeneous graph as one of one type, on the device, with the keys of its edges there.
func timedGraph(t *testing.T, e *Engine, s gpu.Stream, g *csc.Relation, keys []int64) (*Graph, gpu.Address) {
	t.Helper()
	m, err := e.pool.Alloc(s, uint64(len(keys))*8)
	if err == nil {
		err = s.Upload(m.Address, unsafe.Pointer(unsafe.SliceData(keys)), uint64(len(keys))*8)
	}
	if err == nil {
		err = s.Synchronize()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(s); err != nil {
			t.Error(err)
		}
	})
	return upload(t, e, g).SingleType(), m.Address
}

// Graphs of every kind under every rule, with times that are often alike, at the ends of the integers
// and of the floating-point numbers; with excluded edges, weights, both, and factors, too.
func TestTimes(t *testing.T) {
	e, s := device(t)
	random, turn := rand.New(rand.NewPCG(15, 3)), 0
	graphs := csctest.Awkward(300)
	graphs["random"] = csctest.RandomRows(200, 1)
	for name, rows := range graphs {
		for i, bits := range []int{32, 64} {
			float := i == 1
			g := csctest.Graph(rows, int64(len(rows)+2), bits, 96-bits, bits == 32)
			some := []int64{math.MinInt64, -5, 0, 1, 2, 3, 3, 4, 1 << 40, math.MaxInt64}
			if float {
				for i, x := range []float64{math.Inf(-1), -2.5, -0.5, 0, 0.25, 1, 1, 2, 1e300, math.Inf(1)} {
					some[i] = times.Key(x)
				}
			}
			of := make([]int64, g.NumEdges())
			for id := range of {
				of[id] = some[random.IntN(len(some))]
			}
			// A row's times ascend; those of edge ids follow them.
			keys := make([]int64, g.NumEdges())
			for v := range g.NumRows() {
				start, end := g.Indptr.Element(v), g.Indptr.Element(v+1)
				row := keys[start:end]
				for j := range row {
					row[j] = some[random.IntN(len(some))]
				}
				slices.Sort(row)
				for p := start; p < end; p++ {
					id := p
					if g.EdgeIDs.Bits != 0 {
						id = g.EdgeIDs.Element(p)
					}
					of[id] = keys[p]
				}
			}
			d, address := timedGraph(t, e, s, g, keys)
			byWeight := weigh(csctest.Graph(rows, int64(len(rows)+2), bits, 96-bits, bits == 32), csctest.Weightings[[]string{"ramp", "heavy"}[i]])
			weighed, _ := timedGraph(t, e, s, byWeight, keys)
			var without []int64
			for id := range g.NumEdges() {
				if random.IntN(3) == 0 {
					without = append(without, id)
				}
			}
			x, err := g.Exclude(without)
			if err != nil {
				t.Fatal(err)
			}
			seeds := csctest.Steps(min(len(rows), 25), 1)
			seeds = append(seeds, seeds[:min(len(seeds), 1)]...)
			bounds := make([]int64, len(seeds))
			for i := range bounds {
				bounds[i] = some[random.IntN(len(some))]
			}
			// Five of the seven combinations of weights, excluded edges and factors, others for each graph.
			turn++
			for variant := range 16 * 5 {
				rule := times.Rule{Before: variant&1 == 1, Carry: variant&2 == 2, Last: variant&4 == 4, Window: math.Inf(1)}
				if variant&8 == 8 {
					rule.Window = 2
				}
				how := (variant/16 + turn) % 7
				fanouts := [][]int64{{3, 4}, {-1, 2}, {40, 1}, {2, 2, 2}}[(variant+how+i)%4]
				hops := request.Hops{Fanouts: fanouts, Disjoint: true, Replace: random.IntN(3) == 0 && fanouts[0] > 0, OnlyNew: variant%3 == 0}
				batch := request.Batch{Seed: 7, Epoch: 1, Number: uint64(variant), Seeds: csctest.Array(seeds, bits)}
				given := times.SortedRows{Edges: keys, Of: of, Float: float}
				r, on := &cpu.Request{
					Relation: g, Request: request.Request{Hops: hops, Batch: batch}, Times: &cpu.Times{SortedRows: given, Rule: rule, Seeds: bounds},
					EdgeWeights: how >= 4,
				}, d
				if how == 1 || how == 3 || how == 4 && variant%2 == 0 || how == 6 {
					r.Exclude = x
				}
				if how == 2 || how == 3 || how > 4 {
					r.Relation, on = byWeight, weighed
				}
				want, err := onCPU(r)
				if err != nil {
					t.Fatal(err)
				}
				positions := excluded(r)
				plan := &Hetero{
					Fanouts: [][]int64{fanouts}, Replace: hops.Replace, OnlyNew: hops.OnlyNew, Disjoint: true, Seeds: []int64{int64(len(seeds))},
					Times:       &Times{Rule: rule, Float: float, Keys: []gpu.Address{address}, Seeds: bounds},
					EdgeWeights: r.EdgeWeights, Excluded: []int64{int64(len(positions))},
				}
				b, err := sample(e, on, Call{Plan: plan, Batch: batch, Exclude: positions, Stream: s.Handle(), Grid: variant % 3})
				if err != nil {
					t.Fatal(err)
				}
				got, err := read(b, s)
				if err != nil {
					t.Fatal(err)
				}
				if !got.Equal(want) {
					t.Fatalf("%s, %d bits, rule %+v, %d, fanouts %v:\n got %.300s\nwant %.300s", name, bits, rule, how, fanouts, fmt.Sprint(got), fmt.Sprint(want))
				}
			}
		}
	}
}

// Random schemas of which some relations have times, some weights, and some both: under every rule, with
// excluded edges, and with factors.
func TestHeteroTimes(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(15, 4))
	for round := range 12 {
		bits, weights, float := 32<<(round%2), round%3 > 0, round%4 > 1
		g := randomTypes(random, 1+random.IntN(6), bits)
		var timed []*times.SortedRows
		for i, r := range g.Relations {
			if weights && i%2 == 0 {
				weigh(r, csctest.Weightings[[]string{"ramp", "heavy"}[i/2%2]])
			}
			timed = append(timed, nil)
			if i > 0 && random.IntN(3) == 0 {
				continue
			}
			rows := &times.SortedRows{Edges: make([]int64, r.NumEdges()), Of: make([]int64, r.NumEdges()), Float: float}
			for v := range r.NumRows() {
				own := rows.Edges[r.Indptr.Element(v):r.Indptr.Element(v+1)]
				for j := range own {
					if own[j] = random.Int64N(20); float {
						own[j] = times.Key(float64(own[j]) / 2)
					}
				}
				slices.Sort(own)
			}
			for p, key := range rows.Edges {
				id := int64(p)
				if r.EdgeIDs.Bits != 0 {
					id = r.EdgeIDs.Element(id)
				}
				rows.Of[id] = key
			}
			timed[i] = rows
		}
		d := uploadHetero(t, e, g)
		for variant := range 24 {
			rule := times.Rule{Before: variant&1 == 1, Carry: variant&2 == 2, Last: variant&4 == 4, Window: math.Inf(1)}
			if random.IntN(2) == 0 {
				rule.Window = 4
			}
			r := &cpu.HeteroRequest{
				Batch: request.Batch{Seed: 15, Epoch: 2, Number: uint64(variant)}, Graph: g, Disjoint: true,
				Replace: random.IntN(3) == 0, OnlyNew: random.IntN(2) == 0, EdgeWeights: variant >= 8,
			}
			var seeds []int64
			for _, k := range g.NodeTypes {
				count := random.Int64N(5)
				r.Seeds = append(r.Seeds, count)
				for range count {
					seeds = append(seeds, random.Int64N(k.Nodes))
					key := random.Int64N(20)
					if float {
						key = times.Key(float64(key) / 2)
					}
					r.SeedTimes = append(r.SeedTimes, key)
				}
			}
			r.Batch.Seeds = csctest.Array(seeds, bits)
			for i, rel := range g.Relations {
				var told *cpu.Times
				if timed[i] != nil {
					told = &cpu.Times{SortedRows: *timed[i], Rule: rule, Seeds: r.SeedTimes}
				}
				r.Times = append(r.Times, told)
				fanouts := []int64{[]int64{1, 3, 40}[random.IntN(3)], []int64{0, 2, 5, -1}[random.IntN(4)]}
				if r.Replace {
					fanouts[1] = max(fanouts[1], 0)
				}
				r.Fanouts = append(r.Fanouts, fanouts)
				if variant >= 16 {
					r.Exclude = append(r.Exclude, someExcluded(t, rel, random, 3))
				}
			}
			if err := heteroAlike(e, s, d, r, 0, 1+random.IntN(3)); err != nil {
				t.Fatalf("round %d, variant %d, rule %+v, fanouts %v: %v", round, variant, rule, r.Fanouts, err)
			}
		}
	}
}
