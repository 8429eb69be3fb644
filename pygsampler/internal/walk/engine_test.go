package walk_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/walktest"
	. "github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// T is the undirected graph of the worked examples, with weights by place.
var (
	treeRows    = [][]int64{{1, 2}, {0, 2}, {0, 1, 3}, {2, 4}, {3}}
	treeWeights = []float64{1, 2, 1, 3, 2, 3, 4, 4, 5, 5}
)

func tree(weighted bool) *csc.Relation {
	var weight func(int) float64
	if weighted {
		weight = func(p int) float64 { return treeWeights[p] }
	}
	return walktest.Graph(treeRows, 5, 32, 64, false, weight)
}

func walks(t *testing.T, r Request) walktest.Walks {
	t.Helper()
	w, err := walktest.Sample(&r)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// many is n walks from a vertex.
func many(t *testing.T, g *csc.Relation, from, n int64, rule Rule) walktest.Walks {
	t.Helper()
	rule.PerSeed = often(n)
	seeds := csctest.Array([]int64{from}, g.Indices.Bits)
	return walks(t, Request{Rule: rule, Relation: g, Batch: request.Batch{Seed: 7, Epoch: 1, Number: 2, Seeds: seeds}})
}

// follows compares counts of outcomes with their chances; none of chance 0 may come.
func follows(t *testing.T, counts map[string]float64, law map[string]float64, about string, args ...any) {
	t.Helper()
	total, x, cells := 0.0, 0.0, 0
	for _, n := range counts {
		total += n
	}
	for key, n := range counts {
		if law[key] == 0 {
			t.Fatalf(about+": %g times %s, which is impossible", append(args, n, key)...)
		}
	}
	for key, p := range law {
		if p > 0 {
			d := counts[key] - p*total
			x += d * d / (p * total)
			cells++
		}
	}
	if cells > 1 {
		uniformity.Plausible(t, x, cells-1, about, args...)
	}
}

func counted(w walktest.Walks, key func(nodes []int64) string) map[string]float64 {
	counts := make(map[string]float64)
	for _, nodes := range w.Nodes {
		if k := key(nodes); k != "" {
			counts[k]++
		}
	}
	return counts
}

func at(i int) func([]int64) string {
	return func(nodes []int64) string { return fmt.Sprint(nodes[i]) }
}

// often is so many walks as show a law, or fewer under the race detector, which has nothing to find
// in their number.
func often(n int64) int64 {
	if testing.Short() {
		return n / 20
	}
	return n
}

const manyWalks = 200_000

// Two steps from 0, and the end of a walk that stops: the exact chances.
func TestFirstOrder(t *testing.T) {
	for weighted, law := range map[bool][]float64{
		false: {5. / 12, 1. / 6, 1. / 4, 1. / 6, 0},
		true:  {25. / 108, 2. / 9, 1. / 4, 8. / 27, 0},
	} {
		w := many(t, tree(weighted), 0, manyWalks, Rule{Length: 2})
		want := make(map[string]float64)
		for v, p := range law {
			want[fmt.Sprint(v)] = p
		}
		follows(t, counted(w, at(2)), want, "two steps, weighted %v", weighted)
	}
	path := walktest.Graph([][]int64{{1}, {0, 2}, {1}}, 3, 64, 32, true, nil)
	w := many(t, path, 0, manyWalks, Rule{Length: 3, Stop: 0.5})
	lengths := make(map[string]float64)
	for _, n := range w.Lengths {
		lengths[fmt.Sprint(n)]++
	}
	follows(t, lengths, map[string]float64{"0": 0.5, "1": 0.25, "2": 0.125, "3": 0.125}, "lengths")
	w = many(t, path, 0, manyWalks, Rule{Length: 60, Stop: 0.5})
	ends := make(map[string]float64)
	for i, nodes := range w.Nodes {
		ends[fmt.Sprint(nodes[w.Lengths[i]])]++
	}
	follows(t, ends, map[string]float64{"0": 7. / 12, "1": 1. / 3, "2": 1. / 12}, "personalised PageRank")
}

// The steps of node2vec from 2, after a step from 0.
func TestSecondOrder(t *testing.T) {
	for _, k := range []struct {
		p, q     float64
		weighted bool
		law      [3]float64 // 0, 1, 3
	}{
		{2, .5, false, [3]float64{1. / 7, 2. / 7, 4. / 7}}, {2, .5, true, [3]float64{1. / 12, 3. / 12, 8. / 12}},
		{.25, 4, false, [3]float64{16. / 21, 4. / 21, 1. / 21}}, {4, .25, false, [3]float64{1. / 21, 4. / 21, 16. / 21}},
		{.25, 4, true, [3]float64{8. / 12, 3. / 12, 1. / 12}},
	} {
		w := many(t, tree(k.weighted), 0, manyWalks, Rule{Length: 2, P: k.p, Q: k.q})
		got := counted(w, func(nodes []int64) string {
			if nodes[1] != 2 {
				return ""
			}
			return fmt.Sprint(nodes[2])
		})
		follows(t, got, map[string]float64{"0": k.law[0], "1": k.law[1], "3": k.law[2]}, "p %g, q %g, weighted %v", k.p, k.q, k.weighted)
	}
	loop := walktest.Graph([][]int64{{1}, {0, 1, 2}, {1}}, 3, 32, 32, false, nil)
	w := many(t, loop, 0, manyWalks, Rule{Length: 3, P: 2, Q: .5})
	follows(t, counted(w, at(2)), map[string]float64{"0": 1. / 7, "1": 2. / 7, "2": 4. / 7}, "a self loop")
	after := counted(w, func(nodes []int64) string {
		if nodes[2] != 1 {
			return ""
		}
		return fmt.Sprint(nodes[3])
	})
	follows(t, after, map[string]float64{"0": 2. / 5, "1": 1. / 5, "2": 2. / 5}, "after a self loop")
	arcs := walktest.Graph([][]int64{{1, 2}, {0, 2, 3}, {}, {0}}, 4, 32, 32, false, nil)
	w = many(t, arcs, 0, manyWalks, Rule{Length: 2, P: 2, Q: .5})
	got := counted(w, func(nodes []int64) string {
		if nodes[1] != 1 {
			return ""
		}
		return fmt.Sprint(nodes[2])
	})
	// The edge from x to t counts: 3 has one to 0, and 2 has none.
	follows(t, got, map[string]float64{"0": 1. / 7, "2": 4. / 7, "3": 2. / 7}, "directed")
}

// exact is the chance of each next vertex, by the definition.
func exact(g *csc.Relation, weight func(p int) float64, p, q float64, t, v int64) map[string]float64 {
	law, total := make(map[string]float64), 0.0
	edge := func(a, b int64) bool {
		return slices.Contains(csctestRow(g, a), b)
	}
	for i, x := range csctestRow(g, v) {
		w := 1.0
		if weight != nil {
			w = weight(int(g.Indptr.Element(v)) + i)
		}
		switch {
		case x == t:
			w /= p
		case edge(x, t):
		default:
			w /= q
		}
		law[fmt.Sprint(x)] += w
		total += w
	}
	for x := range law {
		law[x] /= total
	}
	return law
}

func csctestRow(g *csc.Relation, v int64) (row []int64) {
	if v >= g.NumRows() {
		return nil
	}
	for p := g.Indptr.Element(v); p < g.Indptr.Element(v+1); p++ {
		row = append(row, g.Indices.Element(p))
	}
	return row
}

// Random graphs with parallel edges and self loops, edge to edge, over the grid of p and q.
func TestSecondOrderOfRandomGraphs(t *testing.T) {
	rows := csctest.RandomRows(12, 3)
	for i := range rows {
		rows[i] = rows[i][:min(len(rows[i]), 9)]
	}
	for _, weight := range []func(int) float64{nil, func(p int) float64 { return float64(p%5) + .25 }} {
		g := walktest.Graph(rows, 13, 32, 64, true, weight)
		for _, p := range []float64{.25, .5, 1, 2, 4} {
			for _, q := range []float64{.25, .5, 1, 2, 4} {
				if p == 1 && q == 1 {
					continue
				}
				seen := make(map[[2]int64]map[string]float64)
				// One call, whose walks have random numbers of their own.
				seeds := csctest.Array([]int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 32)
				w := walks(t, Request{Rule: Rule{Length: 4, P: p, Q: q, PerSeed: often(20_000)}, Relation: g, Batch: request.Batch{Seed: 5, Seeds: seeds}})
				for _, nodes := range w.Nodes {
					for s := 2; s < len(nodes) && nodes[s] >= 0; s++ {
						key := [2]int64{nodes[s-2], nodes[s-1]}
						if seen[key] == nil {
							seen[key] = make(map[string]float64)
						}
						seen[key][fmt.Sprint(nodes[s])]++
					}
				}
				for key, counts := range seen {
					total := 0.0
					for _, n := range counts {
						total += n
					}
					if total >= float64(often(2000)) {
						follows(t, counts, exact(g, weight, p, q, key[0], key[1]), "p %g, q %g, weighted %v, %v", p, q, weight != nil, key)
					}
				}
			}
		}
	}
}

// A row whose proposals are nearly all refused is drawn by its sums in the end, by the same law.
func TestGivesUp(t *testing.T) {
	// From 0 to 1, whose other neighbours are 0 and 2 to 9; none of these leads to 0.
	rows := [][]int64{{1}, {0, 2, 3, 4, 5, 6, 7, 8, 9}}
	for range 8 {
		rows = append(rows, []int64{1})
	}
	for _, k := range []struct{ p, q float64 }{{1e6, 1e6}, {1e9, 3e9}, {1e90, 1e91}, {1e6, 1e-6}, {1e-6, 1e6}} {
		g := walktest.Graph(rows, 10, 32, 32, false, nil)
		w := many(t, g, 0, 50_000, Rule{Length: 2, P: k.p, Q: k.q})
		law := exact(g, nil, k.p, k.q, 0, 1)
		for x, p := range law {
			if p < 1e-4 {
				// Too rare to be seen so often.
				n := counted(w, at(2))[x]
				if n > 50 {
					t.Errorf("p %g, q %g: %s came %g times", k.p, k.q, x, n)
				}
			}
		}
		counts := counted(w, at(2))
		for x := range counts {
			if law[x] < 1e-4 {
				delete(counts, x)
				delete(law, x)
			}
		}
		sum := 0.0
		for x, p := range law {
			if p < 1e-4 {
				delete(law, x)
				continue
			}
			sum += p
		}
		for x := range law {
			law[x] /= sum
		}
		follows(t, counts, law, "p %g, q %g", k.p, k.q)
	}
}

// Walks with restarts: visits, jumps counted, are the vertex's personalised PageRank.
func TestRestart(t *testing.T) {
	// Users 0 and 1, items 2, 3, 4.
	rows := [][]int64{{2, 3}, {3, 4}, {0}, {0, 1}, {1}}
	g := walktest.Graph(rows, 5, 32, 64, false, nil)
	w := many(t, g, 0, 20_000, Rule{Length: 200, Restart: .5, Jumps: true})
	// One position of each walk, far from its beginning, since those of one walk depend on each other.
	follows(t, counted(w, at(150)), map[string]float64{"0": 52. / 84, "1": 4. / 84, "2": 13. / 84, "3": 14. / 84, "4": 1. / 84}, "visits")
	w = many(t, g, 0, 100_000, Rule{Length: 1, Restart: .5, EdgeIDs: true})
	for i, nodes := range w.Nodes {
		if nodes[1] < 0 || w.EdgeIDs[i][0] < 0 {
			t.Fatalf("a restart took a step: %v, %v", nodes, w.EdgeIDs[i])
		}
	}
	// A walk goes back from a node without edges; a root without edges ends it.
	dead := walktest.Graph([][]int64{{1}, {}}, 3, 32, 64, false, nil)
	for _, jumps := range []bool{false, true} {
		w = walks(t, Request{Rule: Rule{Length: 3, Restart: 1e-9, Jumps: jumps, EdgeIDs: true}, Relation: dead, Batch: request.Batch{Seeds: csctest.Array([]int64{0, 1, 2}, 32)}})
		want := walktest.Walks{Nodes: [][]int64{{0, 1, 1, 1}, {1, -1, -1, -1}, {2, -1, -1, -1}}, EdgeIDs: [][]int64{{0, 0, 0}, {-1, -1, -1}, {-1, -1, -1}}, Lengths: []int64{3, 0, 0}}
		if jumps {
			want.Nodes[0], want.EdgeIDs[0] = []int64{0, 1, 0, 1}, []int64{0, -1, 0}
		}
		if !reflect.DeepEqual(w, want) {
			t.Errorf("jumps %v: %v, want %v", jumps, w, want)
		}
	}
}

// Every walk is one: each step is an edge, by its id too, and of its kind.
func TestWalksAreWalks(t *testing.T) {
	rows := csctest.RandomRows(300, 5)
	for _, bits := range []int{32, 64} {
		for _, rule := range []Rule{
			{Length: 30}, {Length: 30, Stop: .1}, {Length: 20, Restart: .2}, {Length: 20, Restart: .2, Jumps: true},
			{Length: 20, P: .5, Q: 2}, {Length: 20, P: 4, Q: .25, Stop: .05}, {Length: 0}, {Length: 1}, {Length: 7, P: 1, Q: 1},
		} {
			rule.EdgeIDs, rule.PerSeed = true, 3
			for _, weight := range []func(int) float64{nil, func(p int) float64 { return float64(p%7) + 1 }} {
				g := walktest.Graph(rows, 310, bits, 96-bits, bits == 32, weight)
				var seeds []int64
				for v := range int64(310) {
					seeds = append(seeds, 309-v)
				}
				r := Request{Rule: rule, Relation: g, Batch: request.Batch{Seed: 3, Seeds: csctest.Array(seeds, bits)}}
				w := walks(t, r)
				for i, nodes := range w.Nodes {
					if nodes[0] != seeds[i/3] {
						t.Fatalf("walk %d begins at %d, want %d", i, nodes[0], seeds[i/3])
					}
					for s, v := range nodes[1:] {
						id, before := w.EdgeIDs[i][s], nodes[s]
						if ended := int64(s) >= w.Lengths[i]; ended != (v < 0) || ended && id >= 0 {
							t.Fatalf("walk %v, edges %v of length %d", nodes, w.EdgeIDs[i], w.Lengths[i])
						}
						if v < 0 {
							continue
						}
						if id < 0 {
							if !rule.Jumps || v != nodes[0] {
								t.Fatalf("walk %v, edges %v: a step without an edge", nodes, w.EdgeIDs[i])
							}
							continue
						}
						p := id
						if g.EdgeIDs.Bits != 0 {
							p = g.NumEdges() - 1 - id
						}
						from := before
						if rule.Restart > 0 && !(g.Indptr.Element(min(before, 299)) <= p && p < g.Indptr.Element(min(before, 299)+1)) {
							from = nodes[0]
						}
						if from >= 300 || p < g.Indptr.Element(from) || p >= g.Indptr.Element(from+1) || g.Indices.Element(p) != v {
							t.Fatalf("walk %v: edge %d does not lead from %d to %d", nodes, id, from, v)
						}
					}
					if n := w.Lengths[i]; rule.Stop == 0 && n < rule.Length && nodes[n] < 300 && len(rows[nodes[n]]) > 0 {
						t.Fatalf("walk %v ended where there are edges", nodes)
					}
				}
			}
		}
	}
}

// A metapath takes edges of the kinds that it says, again and again.
func TestKinds(t *testing.T) {
	// Users 0, 1 and items 2, 3, 4; kind 0 leads to items, kind 1 back.
	rows := [][]int64{{2, 3}, {}, {3, 4}, {}, {}, {0}, {}, {0, 1}, {}, {1}}
	g := csctest.Graph(rows, 10, 32, 64, false)
	g.NumNodes, g.Kinds = 5, 2
	w := many(t, g, 0, manyWalks, Rule{Length: 4, Path: []int64{0, 1}})
	follows(t, counted(w, at(2)), map[string]float64{"0": 3. / 4, "1": 1. / 4}, "user to user")
	follows(t, counted(w, at(4)), map[string]float64{"0": 5. / 8, "1": 3. / 8}, "twice")
	w = many(t, g, 0, 10, Rule{Length: 4, Path: []int64{0}})
	for _, nodes := range w.Nodes {
		if nodes[1] < 2 || nodes[2] != -1 {
			t.Fatalf("%v: expected one step", nodes)
		}
	}
}

// PinSAGE's visits: the ends of traversals, of which each but the first comes with a chance.
func TestVisits(t *testing.T) {
	// Users 0, 1 and items 2, 3, 4 without kinds: a traversal of two steps leads from user to user.
	rows := [][]int64{{2, 3}, {3, 4}, {0}, {0, 1}, {1}}
	g := walktest.Graph(rows, 5, 32, 64, false, nil)
	seeds, per := int(often(40_000)), 5
	ids := make([]int64, seeds)
	w := walks(t, Request{
		Rule: Rule{Length: 4, Every: 2, Stop: .5, PerSeed: int64(per), Top: 3}, Relation: g,
		Batch: request.Batch{Seed: 11, Seeds: csctest.Array(ids, 32)},
	})
	sums, lengths := make([]float64, 5), make(map[string]float64)
	for seed := range seeds {
		counts := make(map[int64]int64)
		var order []int64
		for _, nodes := range w.Nodes[seed*per : (seed+1)*per] {
			for s := 2; s <= 4; s += 2 {
				if v := nodes[s]; v >= 0 {
					if counts[v] == 0 {
						order = append(order, v)
					}
					counts[v]++
				}
			}
		}
		slices.SortStableFunc(order, func(a, b int64) int { return int(counts[b] - counts[a]) })
		for k := range 3 {
			v, n := int64(-1), int64(0)
			if k < len(order) {
				v, n = order[k], counts[order[k]]
				sums[v] += float64(n)
			}
			if w.Top[seed*3+k] != v || w.Visits[seed*3+k] != n {
				t.Fatalf("seed %d: %v %v, want %v of %v", seed, w.Top[seed*3:seed*3+3], w.Visits[seed*3:seed*3+3], order, counts)
			}
		}
	}
	for _, n := range w.Lengths {
		lengths[fmt.Sprint(n)]++
	}
	follows(t, lengths, map[string]float64{"2": .5, "4": .5}, "traversals")
	for v, want := range []float64{17. / 16, 7. / 16, 0, 0, 0} {
		// Four standard errors, of at most one visit's variance each.
		if got := sums[v] / float64(seeds*per); math.Abs(got-want) > 4/math.Sqrt(float64(seeds*per)) {
			t.Errorf("%g visits of %d a walk, want %g", got, v, want)
		}
	}
}

// Frontier sampling takes each edge that leaves the roots alike: uniform slots would take the last
// one with 1/2.
func TestRoots(t *testing.T) {
	var seeds []int64
	for range often(100_000) {
		seeds = append(seeds, 2, 4)
	}
	w := walks(t, Request{
		Rule: Rule{Length: 6, Roots: 2, EdgeIDs: true}, Relation: tree(false),
		Batch: request.Batch{Seed: 4, Seeds: csctest.Array(seeds, 32)},
	})
	first := make(map[string]float64)
	for i, nodes := range w.Nodes {
		first[fmt.Sprint(w.Slots[i][0], nodes[1])]++
		at := []int64{2, 4}
		for s, slot := range w.Slots[i] {
			from := at[slot]
			if !slices.Contains(treeRows[from], nodes[s+1]) || tree(false).Indices.Element(w.EdgeIDs[i][s]) != nodes[s+1] {
				t.Fatalf("step %d of %v, slots %v: no edge of %d", s, nodes, w.Slots[i], from)
			}
			at[slot] = nodes[s+1]
		}
	}
	follows(t, first, map[string]float64{"0 0": .25, "0 1": .25, "0 3": .25, "1 3": .25}, "edges of the frontier")
	// A root without edges is never left; where all are such there is no step.
	dead := walktest.Graph([][]int64{{1}, {0}, {}}, 4, 32, 64, false, nil)
	w = walks(t, Request{Rule: Rule{Length: 3, Roots: 2}, Relation: dead, Batch: request.Batch{Seeds: csctest.Array([]int64{2, 0, 3, 2}, 32)}})
	want := walktest.Walks{Nodes: [][]int64{{2, 1, 0, 1}, {3, -1, -1, -1}}, Lengths: []int64{3, 0}, Slots: [][]int64{{1, 1, 1}, {-1, -1, -1}}}
	if !reflect.DeepEqual(w, want) {
		t.Errorf("%v, want %v", w, want)
	}
	_, err := walktest.Sample(&Request{Rule: Rule{Length: 3, Roots: 2}, Relation: dead, Batch: request.Batch{Seeds: csctest.Array([]int64{2, 0, 3}, 32)}})
	if !errors.Is(err, request.ErrValue) {
		t.Error(err)
	}
}

// Two walkers on one vertex are independent: their next steps agree as often as chance says.
func TestIndependence(t *testing.T) {
	rows := [][]int64{{1, 2, 3, 4}}
	for range 4 {
		rows = append(rows, []int64{0})
	}
	g := walktest.Graph(rows, 5, 32, 64, false, nil)
	w := many(t, g, 0, manyWalks, Rule{Length: 3})
	pairs := make(map[string]float64)
	for i := 0; i < len(w.Nodes); i += 2 {
		pairs[fmt.Sprint(w.Nodes[i][1], w.Nodes[i+1][1])]++
	}
	law := make(map[string]float64)
	for a := 1; a < 5; a++ {
		for b := 1; b < 5; b++ {
			law[fmt.Sprint(a, b)] = 1. / 16
		}
	}
	follows(t, pairs, law, "neighbours")
	steps := counted(w, func(nodes []int64) string { return fmt.Sprint(nodes[1], nodes[3]) })
	follows(t, steps, law, "steps of a walk")
}

// The walks are a function of the numbers alone, whatever the width of ids and the place of a
// walk among others.
func TestWidthsAndNumbers(t *testing.T) {
	rows := csctest.RandomRows(200, 9)
	var first walktest.Walks
	for i, bits := range []int{32, 64} {
		g := walktest.Graph(rows, 200, bits, 96-bits, false, nil)
		seeds := csctest.Array([]int64{5, 5, 0, 199, 17}, bits)
		r := Request{Rule: Rule{Length: 50, P: 2, Q: .5, PerSeed: 101}, Relation: g, Batch: request.Batch{Seed: 1 << 63, Epoch: 4, Number: 9, Seeds: seeds}}
		w := walks(t, r)
		if i == 0 {
			first = w
		} else if !reflect.DeepEqual(w, first) {
			t.Error("int64 ids give other walks")
		}
		r.Number++
		if reflect.DeepEqual(walks(t, r), w) {
			t.Error("the next batch is the same")
		}
		r.Number--
		r.PerSeed, r.Seeds = 505, csctest.Array([]int64{5}, bits)
		if more := walks(t, r); !reflect.DeepEqual(more.Nodes[:202], w.Nodes[:202]) {
			t.Error("walks depend on those after them")
		}
	}
}

func TestSeedOutOfRange(t *testing.T) {
	g := tree(false)
	_, err := walktest.Sample(&Request{Rule: Rule{Length: 1}, Relation: g, Batch: request.Batch{Seeds: csctest.Array([]int64{0, 5, -1}, 32)}})
	if !errors.Is(err, request.ErrIndex) || !strings.Contains(err.Error(), "seeds[1]: expected an id in [0, 5), got 5") {
		t.Error(err)
	}
	_, err = walktest.Sample(&Request{Rule: Rule{Length: math.MaxInt32, PerSeed: math.MaxInt32}, Relation: g, Batch: request.Batch{Seeds: csctest.Array([]int64{0, 1}, 32)}})
	if !errors.Is(err, request.ErrOverflow) {
		t.Error(err)
	}
}

// Coins and shares at the ends of what they can be.
func TestChances(t *testing.T) {
	r := Rule{Stop: 1, Restart: 0, P: 1e-100, Q: 1e100}
	c := r.Chances()
	if c.Stop != 1<<63 || Coin(math.MaxUint64) >= c.Stop || c.Restart != 0 || c.Return != 1<<63 {
		t.Errorf("%+v", c)
	}
	if c.Area(1, 1<<62) != 1<<63 || c.Area(0, 5) != 0 {
		t.Errorf("%d, %d", c.Area(1, 1<<62), c.Area(0, 5))
	}
	c = (&Rule{P: .25, Q: 1}).Chances()
	// Three of six parts.
	if got := c.Area(1, 3); got != 1<<62 {
		t.Errorf("%d", got)
	}
	if c.Class(0, 0, 0, 1) != 2 || c.Class(math.MaxUint64, 0, 1, 0) != 1 || c.Class(math.MaxUint64, 1, 0, 0) != 0 {
		t.Error("a class without weight")
	}
}

func BenchmarkSteps(b *testing.B) {
	const nodes, degree, seeds = 1 << 20, 50, 1 << 15
	rows := make([]int64, nodes*degree)
	indptr := make([]int64, nodes+1)
	for i := range rows {
		rows[i] = int64(rng.Below(rng.Mix(uint64(i)), nodes))
	}
	for v := range indptr {
		indptr[v] = int64(v) * degree
		if v > 0 {
			slices.Sort(rows[indptr[v-1]:indptr[v]])
		}
	}
	g := &csc.Relation{Indptr: csctest.Array(indptr, 64), Indices: csctest.Array(rows, 32), NumNodes: nodes}
	g.Back = g
	ids := make([]int64, seeds)
	for i := range ids {
		ids[i] = int64(rng.Below(rng.Mix(uint64(i)+7), nodes))
	}
	for name, rule := range map[string]Rule{"uniform": {Length: 80}, "node2vec": {Length: 80, P: 2, Q: .5}, "ppr": {Length: 80, Stop: .15}} {
		b.Run(name, func(b *testing.B) {
			steps := 0.0
			for range b.N {
				w, err := walktest.Memory(&Request{Rule: rule, Relation: g, Batch: request.Batch{Seeds: csctest.Array(ids, 32)}})
				if err != nil {
					b.Fatal(err)
				}
				steps += seeds * 80
				w.Release()
			}
			b.ReportMetric(steps/b.Elapsed().Seconds()/1e6, "Msteps/s")
		})
	}
}
