package khop_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	. "github.com/pygsampler/pygsampler/pygsampler/internal/research/khop"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/khoptest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
)

// tree is the test graph of undirected edges 0-1, 0-2, 1-2, 2-3 and 3-4.
var tree = [][]int64{{1, 2}, {0, 2}, {0, 1, 3}, {2, 4}, {3}}

// reference is the rules of docs/developer/walk-draws.md, slot by slot.
func reference(rows [][]int64, seeds []int64, r *Request) khoptest.Samples {
	var s khoptest.Samples
	firsts := []int64{0}
	for _, row := range rows {
		firsts = append(firsts, firsts[len(firsts)-1]+int64(len(row)))
	}
	rowOf := func(v int64) []int64 {
		if v < 0 || v >= int64(len(rows)) {
			return nil
		}
		return rows[v]
	}
	s.Nodes = slices.Clone(seeds)
	before := make([][]int64, len(seeds))
	for w, v := range seeds {
		before[w] = []int64{v}
	}
	for step, count := range r.Counts {
		for w := range seeds {
			state := rng.NewStream(r.Seed, r.Epoch, r.Number, uint8(step+1), rng.Walking).State(uint64(r.FirstSample) + uint64(w))
			lists := [][]int64{before[w]}
			if !r.Collective {
				lists = nil
				for _, v := range before[w] {
					lists = append(lists, []int64{v})
				}
			}
			var next []int64
			draw := 0
			for _, list := range lists {
				// The places of all edges of the list's vertices.
				var places, to []int64
				for _, v := range list {
					for i, u := range rowOf(v) {
						places, to = append(places, firsts[v]+int64(i)), append(to, u)
					}
				}
				if r.Unique {
					for range count {
						at := leftFor(state, int64(draw), r.Widths()[step], to, next)
						draw++
						if at < 0 {
							next, s.Edges = append(next, -1), append(s.Edges, -1)
						} else {
							next, s.Edges = append(next, to[at]), append(s.Edges, places[at])
						}
					}
					continue
				}
				for j := range count {
					at, n := int64(0), int64(len(places))
					switch {
					case r.Distinct && j < n:
						at = j + int64(rng.Below(rng.Draw(state, draw), uint64(n-j)))
						places[at], places[j], to[at], to[j] = places[j], places[at], to[j], to[at]
						at = j
					case r.Distinct || n == 0:
						at = -1
					default:
						at = int64(rng.Below(rng.Draw(state, draw), uint64(n)))
					}
					draw++
					if at < 0 {
						next, s.Edges = append(next, -1), append(s.Edges, -1)
					} else {
						next, s.Edges = append(next, to[at]), append(s.Edges, places[at])
					}
				}
			}
			before[w] = next
			s.Nodes = append(s.Nodes, next...)
		}
	}
	return s
}

// leftFor is what slot t of a unique step takes of its transit's edges, which lead to these nodes, where the
// slots before it have taken others; -1 where nothing is left.
func leftFor(state uint64, t, width int64, to, others []int64) int {
	d := len(to)
	for try := range min(Tries, d) {
		at := int(rng.Below(rng.Draw(state, try*int(width)+int(t)), uint64(d)))
		if !slices.Contains(others, to[at]) {
			return at
		}
	}
	best := -1
	keys := rng.Part(state, uint64(t))
	for at, v := range to {
		if !slices.Contains(others, v) && (best < 0 || rng.Draw(keys, at) < rng.Draw(keys, best)) {
			best = at
		}
	}
	return best
}

func TestSamplesAreTheReference(t *testing.T) {
	every, _ := csctest.EveryDegree()
	graphs := csctest.Awkward(300)
	graphs["every degree"], graphs["random"], graphs["tree"] = every, csctest.RandomRows(200, 3), tree
	for name, rows := range graphs {
		nodes := int64(len(rows)) + 2
		for _, row := range rows {
			for _, v := range row {
				nodes = max(nodes, v+1)
			}
		}
		var seeds []int64
		for i := range int64(40) {
			seeds = append(seeds, i*7%nodes)
		}
		for _, bits := range []int{32, 64} {
			g := csctest.Graph(rows, nodes, bits, 96-bits, false)
			for _, rule := range []Rule{
				{Counts: []int64{1}}, {Counts: []int64{3, 2, 4}, FirstSample: 1<<33 + 7}, {Counts: []int64{70, 2}, Distinct: true}, {Counts: []int64{2, 5, 1}, Distinct: true},
				{Counts: []int64{70, 2}, Unique: true}, {Counts: []int64{2, 5, 1}, Unique: true}, {Counts: []int64{4, 300}, Unique: true},
				{Counts: []int64{1, 1}, Collective: true}, {Counts: []int64{40, 300, 7}, Collective: true},
				{Counts: []int64{1, 1}, Collective: true, Unique: true, FirstSample: 1<<33 + 7}, {Counts: []int64{40, 300, 7}, Collective: true, Unique: true},
			} {
				rule.EdgeIDs = true
				r := &Request{Rule: rule, Relation: g, Batch: request.Batch{Seed: 1 << 40, Epoch: 3, Number: 5, Seeds: csctest.Array(seeds, bits)}}
				got, err := khoptest.Sample(r)
				if err != nil {
					t.Fatal(err)
				}
				want := reference(rows, seeds, r)
				if !slices.Equal(got.Nodes, want.Nodes) || !slices.Equal(got.Edges, want.Edges) {
					t.Fatalf("%s, %d bits, %+v: samples are others than the reference's", name, bits, rule)
				}
			}
		}
	}
}

// Laws on the tree: ordered pairs from 2; pooled lists of a sample; roots that are one vertex are independent.
func TestLaws(t *testing.T) {
	const n = 90000
	g := csctest.Graph(tree, 5, 32, 64, false)
	seeds := make([]int64, n)
	for i := range seeds {
		seeds[i] = 2
	}
	count := func(rule Rule, cell func(s []int64, w int) int, cells int) []int {
		t.Helper()
		got, err := khoptest.Sample(&Request{Rule: rule, Relation: g, Batch: request.Batch{Seed: 11, Seeds: csctest.Array(seeds, 64)}})
		if err != nil {
			t.Fatal(err)
		}
		counts := make([]int, cells)
		for w := range n {
			counts[cell(got.Nodes[n:], w)]++
		}
		return counts
	}
	place := map[int64]int{0: 0, 1: 1, 3: 2}
	pair := func(s []int64, w int) int { return 3*place[s[2*w]] + place[s[2*w+1]] }
	check := func(name string, counts []int, law []float64) {
		t.Helper()
		x, cells := 0., 0
		for i, p := range law {
			if p == 0 && counts[i] > 0 {
				t.Errorf("%s: counts %v for %v", name, counts, law)
			} else if p > 0 {
				off := float64(counts[i]) - p*n
				x += off * off / (p * n)
				cells++
			}
		}
		uniformity.Plausible(t, x, cells-1, "%s: counts %v for %v", name, counts, law)
	}
	ninth := []float64{1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9}
	check("with replacement", count(Rule{Counts: []int64{2}}, pair, 9), ninth)
	check("two samples", count(Rule{Counts: []int64{1}}, func(s []int64, w int) int { return 3*place[s[w]] + place[s[(w+1)%n]] }, 9), ninth)
	sixth := 1. / 6
	for _, rule := range []Rule{{Counts: []int64{2}, Distinct: true}, {Counts: []int64{2}, Unique: true}} {
		distinct := count(rule, pair, 9)
		check("distinct", []int{distinct[1], distinct[2], distinct[3], distinct[5], distinct[6], distinct[7]}, []float64{sixth, sixth, sixth, sixth, sixth, sixth})
	}
	// From 2 all of 0, 1, 3 are in a layer of four, and then all nodes but those that nothing leads from.
	check("layer of three nodes", count(Rule{Counts: []int64{4}, Collective: true, Unique: true}, func(s []int64, w int) int {
		if s[4*w+3] != -1 {
			return 8
		}
		return 3*place[s[4*w]] + place[s[4*w+1]]
	}, 9), []float64{0, sixth, sixth, sixth, 0, sixth, sixth, sixth, 0})
	// Each pair from 2 has four edges, of nodes 1, 2, 0, 2 or 1, 2, 2, 4 or 0, 2, 2, 4: 2 is
	// the first with 1/2, each other with 1/4, and the second draws from the rest.
	check("unique layer", count(Rule{Counts: []int64{2, 2}, Collective: true, Unique: true}, func(s []int64, w int) int {
		return 5*int(s[2*n+2*w]) + int(s[2*n+2*w+1])
	}, 25), uniquePairs())
	// From 2 two of {0, 1, 3}: all have two edges, so any of four, to 1, 2 or 0, 2 or 2, 4.
	check("layer", count(Rule{Counts: []int64{2, 1}, Collective: true}, func(s []int64, w int) int { return int(s[2*n+w]) }, 5),
		[]float64{sixth, sixth, .5, 0, sixth})
}

// uniquePairs is the law of a unique layer of two nodes, below one of two nodes below vertex 2.
func uniquePairs() []float64 {
	law := make([]float64, 25)
	for a, u := range tree[2] {
		for b, v := range tree[2] {
			if a == b {
				continue
			}
			list := slices.Concat(tree[u], tree[v])
			for _, x := range list {
				left := slices.DeleteFunc(slices.Clone(list), func(y int64) bool { return y == x })
				for _, y := range left {
					law[5*x+y] += 1. / 6 / float64(len(list)) / float64(len(left))
				}
			}
		}
	}
	return law
}

func TestErrors(t *testing.T) {
	g := csctest.Graph(tree, 5, 32, 64, false)
	_, err := khoptest.Sample(&Request{Rule: Rule{Counts: []int64{2}}, Relation: g, Batch: request.Batch{Seeds: csctest.Array([]int64{0, 5}, 32)}})
	if !errors.Is(err, request.ErrIndex) || !strings.Contains(err.Error(), "seeds[1]: expected an id in [0, 5), got 5") {
		t.Errorf("%v", err)
	}
	if err := (&Rule{Counts: []int64{1 << 20, 1 << 12}}).Check(); !errors.Is(err, request.ErrValue) {
		t.Errorf("%v", err)
	}
	huge := make([]int64, 1000)
	if _, err := khoptest.Sample(&Request{Rule: Rule{Counts: []int64{1 << 20, 1 << 10}}, Relation: g, Batch: request.Batch{Seeds: csctest.Array(huge, 32)}}); err == nil {
		t.Error("4 TB of samples")
	}
}
