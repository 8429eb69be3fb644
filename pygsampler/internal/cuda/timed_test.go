package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/times"
)

// timedGraph is a graph without types as one of one type, on the device, with the keys of its edges there.
func timedGraph(t *testing.T, e *Engine, s gpu.Stream, g *csc.Graph, keys []int64) (*Graph, gpu.Address) {
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
	return e.NewTyped(Schema{Names: []string{""}, Nodes: []int64{g.NumNodes}, Relations: []Relation{{Graph: upload(t, e, g)}}}), m.Address
}

// Graphs of every kind under every rule, with times that are often alike, at the ends of the integers
// and of the floating-point numbers; with excluded edges, weights, both, and factors, too.
func TestTimes(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(15, 3))
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
			for v := range g.Rows() {
				start, end := g.Indptr.At(v), g.Indptr.At(v+1)
				row := keys[start:end]
				for j := range row {
					row[j] = some[random.IntN(len(some))]
				}
				slices.Sort(row)
				for p := start; p < end; p++ {
					id := p
					if g.EdgeIDs.Bits != 0 {
						id = g.EdgeIDs.At(p)
					}
					of[id] = keys[p]
				}
			}
			d, address := timedGraph(t, e, s, g, keys)
			byWeight := weigh(csctest.Graph(rows, int64(len(rows)+2), bits, 96-bits, bits == 32), weightings[[]string{"ramp", "heavy"}[i]])
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
			for variant := range 16 * 5 {
				rule := times.Rule{Before: variant&1 == 1, Carry: variant&2 == 2, Last: variant&4 == 4, Window: math.Inf(1)}
				if variant&8 == 8 {
					rule.Window = 2
				}
				how := variant / 16
				fanouts := [][]int64{{3, 4}, {-1, 2}, {40, 1}, {2, 2, 2}}[(variant+how+i)%4]
				hops := request.Hops{Fanouts: fanouts, Disjoint: true, Replace: random.IntN(3) == 0 && fanouts[0] > 0, OnlyNew: variant%3 == 0}
				batch := request.Batch{Seed: 7, Epoch: 1, Number: uint64(variant), Seeds: csctest.Array(seeds, bits)}
				given := times.Rows{Edges: keys, Of: of, Float: float}
				r, on := &cpu.Request{
					Graph: g, Request: request.Request{Hops: hops, Batch: batch}, Times: &cpu.Times{Rows: given, Rule: rule, Seeds: bounds},
					EdgeWeights: how == 4,
				}, d
				if how == 1 || how == 3 || how == 4 && variant%2 == 0 {
					r.Exclude = x
				}
				if how == 2 || how == 3 {
					r.Graph, on = byWeight, weighed
				}
				want, err := onCPU(r)
				if err != nil {
					t.Fatal(err)
				}
				positions := excluded(r)
				plan := &Typed{
					Fanouts: [][]int64{fanouts}, Replace: hops.Replace, OnlyNew: hops.OnlyNew, Disjoint: true, Seeds: []int64{int64(len(seeds))},
					Times: &Times{Rule: rule, Float: float, Keys: []gpu.Address{address}, Seeds: bounds}, Alone: true,
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
