package contexts_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	. "github.com/pygsampler/pygsampler/pygsampler/internal/engine/contexts"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

type crew int

func (c crew) Borrow(int) int { return int(c) }
func (crew) Return(int)       {}

// row is a row of a context: its type and node, its hop and the place of its parent.
type row struct {
	kind        int
	node        int64
	hop, parent int32
}

// rows are those of each context.
func rows(t *testing.T, r *Request, workers crew) (all [][]row) {
	t.Helper()
	m, err := Sample(r, workers, new(atomic.Bool))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	w := memory.ViewAt[int64](m, 0, batch.ContextWords)
	places, places32 := w[batch.ContextPlaces], w[batch.ContextNumPlaces]
	nodes := memory.ViewAt[int64](m, w[batch.ContextNodes], places32)
	array := func(word int) []int32 { return memory.ViewAt[int32](m, w[word], places32) }
	kinds, hops, parents := array(batch.ContextTypes), array(batch.ContextHops), array(batch.ContextParents)
	mask := memory.ViewAt[bool](m, w[batch.ContextMask], places32)
	for seed, n := range memory.ViewAt[int32](m, w[batch.ContextLengths], w[batch.ContextNumSeeds]) {
		one := []row{}
		for i := range places {
			at := int64(seed)*places + i
			if mask[at] != (i < int64(n)) {
				t.Fatalf("seed %d, place %d of %d: expected a mask of the rows, got %v", seed, i, n, mask[at])
			}
			if mask[at] {
				one = append(one, row{int(kinds[at]), nodes[at], hops[at], parents[at]})
			} else if nodes[at] != -1 || kinds[at] != -1 || hops[at] != -1 || parents[at] != -1 {
				t.Fatalf("seed %d, place %d of %d: expected -1, got %v", seed, i, n, nodes[at])
			}
		}
		all = append(all, one)
	}
	return all
}

// candidate is an edge that a hop looks at, with what it is taken by.
type candidate struct {
	late             float64
	parent, relation int
	at               int64
	row              row
}

// lawful are the rows of a seed by the law, one edge after another.
func lawful(r *Request, kind int, node, bound int64) []row {
	left := r.Budget - r.Cost(kind)
	found := []row{{kind, node, 0, -1}}
	for hop, begin := int32(1), 0; begin < len(found); hop++ {
		end := len(found)
		var all []candidate
		for parent := begin; parent < end; parent++ {
			for i, e := range r.Graph.EdgeTypes {
				g := r.Graph.Relations[i]
				if e.Dst != found[parent].kind || found[parent].node >= g.NumRows() {
					continue
				}
				looked := int64(0)
				for at := g.Indptr.Element(found[parent].node+1) - 1; at >= g.Indptr.Element(found[parent].node); at-- {
					late := math.Inf(1)
					if r.Rows[i] != nil {
						if r.Rows[i].Edges[at] > bound {
							continue
						}
						late = float64(r.Rows[i].Edges[at])
					}
					if looked++; r.Width > 0 && looked > r.Width {
						break
					}
					all = append(all, candidate{late, parent, i, at, row{e.Src, g.Indices.Element(at), hop, int32(parent)}})
				}
			}
		}
		slices.SortFunc(all, func(x, y candidate) int {
			switch {
			case x.late != y.late:
				return map[bool]int{true: -1, false: 1}[x.late > y.late]
			case x.parent != y.parent:
				return x.parent - y.parent
			case x.relation != y.relation:
				return x.relation - y.relation
			}
			return int(y.at - x.at)
		})
		for _, c := range all {
			if slices.ContainsFunc(found, func(f row) bool { return f.kind == c.row.kind && f.node == c.row.node }) {
				continue
			}
			if left < r.Cost(c.row.kind) {
				return found
			}
			left -= r.Cost(c.row.kind)
			found = append(found, c.row)
		}
		begin = end
	}
	return found
}

// random is a graph with types, some of whose relations have times.
func random(random *rand.Rand, types int) (*csc.Graph, []*times.SortedRows) {
	g, timed := &csc.Graph{Schema: new(csc.Schema)}, []*times.SortedRows{}
	for k := range types {
		g.NodeTypes = append(g.NodeTypes, csc.NodeType{Name: fmt.Sprint(k), Nodes: 1 + random.Int64N(60)})
	}
	for i := range 2 * types {
		src, dst := random.IntN(types), random.IntN(types)
		lists := make([][]int64, random.Int64N(g.NodeTypes[dst].Nodes+1))
		keys := []int64{}
		for v := range lists {
			key := int64(-5)
			for range random.IntN(1 + []int{0, 2, 9, 80}[random.IntN(4)]) {
				key += random.Int64N(2)
				keys, lists[v] = append(keys, key), append(lists[v], random.Int64N(g.NodeTypes[src].Nodes))
			}
		}
		nodes := max(g.NodeTypes[src].Nodes, g.NodeTypes[dst].Nodes)
		g.Add(csc.EdgeType{Name: fmt.Sprint(i), Src: src, Dst: dst}, csctest.Graph(lists, nodes, 32<<random.IntN(2), 32<<random.IntN(2), false))
		if random.IntN(3) == 0 {
			keys = nil
			timed = append(timed, nil)
			continue
		}
		timed = append(timed, &times.SortedRows{Edges: keys})
	}
	return g, timed
}

// Contexts are those of the law, whoever makes them and however many.
func TestSample(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 9))
	longest := 0
	for turn := range 150 {
		g, timed := random(source, 1+turn%5)
		r := &Request{
			Rule:  Rule{Budget: 1 + source.Int64N(150), Width: source.Int64N(6), Times: times.Rule{Window: math.Inf(1)}},
			Graph: g, Rows: timed,
		}
		if turn%3 == 0 {
			for range g.NodeTypes {
				r.Cells = append(r.Cells, 1+source.Int64N(min(r.Budget, 7)))
			}
		}
		var seeds []int64
		for _, kind := range g.NodeTypes {
			n := source.Int64N(5)
			r.SeedCounts = append(r.SeedCounts, n)
			for range n {
				seeds = append(seeds, source.Int64N(kind.Nodes))
				r.SeedKeys = append(r.SeedKeys, source.Int64N(12)-6)
			}
		}
		r.Seeds = csctest.Array(seeds, 64)
		one, several := rows(t, r, 0), rows(t, r, 3)
		first := int64(0)
		for kind, n := range r.SeedCounts {
			for i := first; i < first+n; i++ {
				want := lawful(r, kind, seeds[i], r.SeedKeys[i])
				longest = max(longest, len(want))
				if !slices.Equal(one[i], want) || !slices.Equal(several[i], want) {
					t.Fatalf("turn %d, seed %d:\n got %v\n and %v\nwant %v", turn, i, one[i], several[i], want)
				}
			}
			first += n
		}
	}
	if longest < 90 {
		t.Errorf("expected contexts of some hundred rows, got at most %d", longest)
	}
}

// Impossible contexts are refused, and a canceled context ends early.
func TestRefused(t *testing.T) {
	g := csc.Homogeneous(csctest.Graph([][]int64{{1}, {0}}, 2, 32, 32, false))
	r := &Request{Rule: Rule{Budget: 3, Cells: []int64{4}}, Graph: g}
	r.Seeds = csctest.Array([]int64{1, 2}, 64)
	if _, err := Sample(r, crew(0), new(atomic.Bool)); !errors.Is(err, request.ErrValue) {
		t.Errorf("expected an error of the budget, got %v", err)
	}
	r.Cells = nil
	if _, err := Sample(r, crew(0), new(atomic.Bool)); !errors.Is(err, request.ErrIndex) {
		t.Errorf("expected an error of a seed, got %v", err)
	}
	r.Seeds = csctest.Array([]int64{1}, 64)
	var stop atomic.Bool
	stop.Store(true)
	if _, err := Sample(r, crew(0), &stop); !errors.Is(err, request.ErrCancelled) {
		t.Errorf("expected the end, got %v", err)
	}
	if err := (&Rule{Budget: MaxBudget}).Affordable(1 << 40); err == nil {
		t.Error("expected no room for 2^56 places")
	}
}
