package cuda

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/contexts"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// contextBytes are the words of contexts, and each array.
func contextBytes(m memory.Memory) (parts [][]byte) {
	words := memory.ViewAt[int64](m, 0, batch.ContextWords)
	at := func(offset, n int64) []byte { return bytes.Clone(memory.ViewAt[byte](m, offset, n)) }
	parts = append(parts, at(0, 8*batch.ContextWords))
	for _, row := range batch.ContextRows {
		if words[row.Offset] != 0 {
			size := map[string]int64{"int64": 8, "int32": 4, "bool": 1}[row.DType]
			parts = append(parts, at(words[row.Offset], size*words[row.Length]))
		}
	}
	return parts
}

// contextsAlike compares contexts of the GPU, by several grids, with the CPU's.
func contextsAlike(e *Engine, s gpu.Stream, d *Graph, r *contexts.Request, grids ...int) error {
	m, err := contexts.Sample(r, alone{}, new(atomic.Bool))
	if err != nil {
		return err
	}
	want := contextBytes(m)
	m.Release()
	plan := &Contexts{Rule: r.Rule, Seeds: r.SeedCounts}
	if r.SeedKeys != nil {
		plan.Times = &Times{Rule: r.Times, Seeds: r.SeedKeys, Keys: make([]gpu.Address, len(r.Rows))}
		for i, rows := range r.Rows {
			if rows == nil {
				continue
			}
			if plan.Times.Keys[i], err = d.relations[i].Keys(rows.Edges); err != nil {
				return err
			}
		}
	}
	for _, grid := range grids {
		b, err := sample(e, d, Call{Plan: plan, Batch: r.Batch, Stream: s.Handle(), Grid: grid})
		if err != nil {
			return fmt.Errorf("grid %d: %w", grid, err)
		}
		m, err := b.Download(s)
		if err != nil {
			return err
		}
		got := contextBytes(m)
		m.Release()
		if err := b.Memory.Free(s); err != nil {
			return err
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				return fmt.Errorf("grid %d: array %d of %d:\n got %.200v\nwant %.200v", grid, i, len(want), got[i], want[i])
			}
		}
	}
	return nil
}

// Random schemas of 1 to 12 types, of relations with times and without; budgets of rows and of cells, widths, windows.
func TestContexts(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(15, 8))
	for turn, types := range []int{1, 1, 2, 3, 5, 12} {
		for _, bits := range []int{32, 64} {
			g := randomTypes(random, types, bits)
			d := uploadHetero(t, e, g)
			r := &contexts.Request{Graph: g, Rows: make([]*times.SortedRows, len(g.Relations))}
			for i, relation := range g.Relations {
				if random.IntN(4) == 0 {
					continue
				}
				keys := make([]int64, relation.NumEdges())
				for v := range relation.NumRows() {
					key := int64(-3)
					for at := relation.Indptr.Element(v); at < relation.Indptr.Element(v+1); at++ {
						key += random.Int64N(2)
						keys[at] = key
					}
				}
				r.Rows[i] = &times.SortedRows{Edges: keys}
			}
			for variant := range 5 {
				r.Rule = contexts.Rule{Budget: []int64{1, 9, 40, 130, 700}[variant], Width: []int64{0, 2, 5}[variant%3]}
				r.Rule.Times = times.Rule{Window: []float64{math.Inf(1), 4}[variant%2], Before: variant == 3}
				r.SeedCounts, r.SeedKeys = nil, nil
				var seeds []int64
				for _, kind := range g.NodeTypes {
					count := random.Int64N(7)
					r.SeedCounts = append(r.SeedCounts, count)
					for range count {
						seeds = append(seeds, random.Int64N(kind.Nodes))
						r.SeedKeys = append(r.SeedKeys, random.Int64N(12)-4)
					}
					if variant > 1 && turn%2 == 0 {
						r.Cells = append(r.Cells, 1+random.Int64N(6))
					}
				}
				r.Seeds = csctest.Array(seeds, bits)
				if r.SeedKeys == nil {
					r.SeedKeys = []int64{}
				}
				if err := contextsAlike(e, s, d, r, 0, 1, 2); err != nil {
					t.Fatalf("types %d, bits %d, variant %d: %v", types, bits, variant, err)
				}
			}
		}
	}
}

// The lowest of wrong seeds is named, and the next contexts are as ever.
func TestContextSeeds(t *testing.T) {
	e, s := device(t)
	g := randomTypes(rand.New(rand.NewPCG(2, 2)), 2, 64)
	d := uploadHetero(t, e, g)
	r := &contexts.Request{Rule: contexts.Rule{Budget: 8}, Graph: g, SeedCounts: []int64{1, 2}, Rows: make([]*times.SortedRows, len(g.Relations))}
	r.Seeds = csctest.Array([]int64{0, g.NodeTypes[1].Nodes, -1}, 64)
	_, err := sample(e, d, Call{Plan: &Contexts{Rule: r.Rule, Seeds: r.SeedCounts}, Batch: r.Batch, Stream: s.Handle()})
	if want := fmt.Sprintf(`seeds["t1"][0]: expected an id in [0, %d)`, g.NodeTypes[1].Nodes); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("expected %q, got %v", want, err)
	}
	r.Seeds = csctest.Array([]int64{0, 0, 0}, 64)
	if err := contextsAlike(e, s, d, r, 0); err != nil {
		t.Error(err)
	}
}
