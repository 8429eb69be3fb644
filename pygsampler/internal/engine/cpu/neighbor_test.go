package cpu

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// idle is a crew with a fixed number of workers to lend.
type idle int

func (n idle) Borrow(want int) int { return min(int(n), max(want, 0)) }
func (n idle) Return(int)          {}

// reference samples row by row with maps, straight from the contract.
func reference(r *Request) (s batchtest.Batch) {
	s.IDBits, s.EdgeIDBits = int64(r.Relation.Indices.Bits), int64(r.Relation.EdgeIDBits())
	number := map[[2]int64]int64{}
	claim := func(tree, v int64) int64 {
		n, ok := number[[2]int64{tree, v}]
		if !ok {
			n = int64(len(s.Nodes))
			number[[2]int64{tree, v}] = n
			s.Nodes = append(s.Nodes, v)
			if r.Disjoint {
				s.Trees = append(s.Trees, tree)
			}
		}
		return n
	}
	treeOf := func(i int) int64 {
		if r.Disjoint {
			return s.Trees[i]
		}
		return -1
	}
	for i := range r.Seeds.Len() {
		tree := int64(-1)
		if r.Disjoint {
			tree = i
		}
		s.Output = append(s.Output, r.Seeds.Element(i))
		s.OutputIndex = append(s.OutputIndex, claim(tree, r.Seeds.Element(i)))
	}
	expanded := 0
	for hop := range r.Fanouts {
		fanout := r.Fanouts[len(r.Fanouts)-1-hop]
		first := 0
		if r.OnlyNew {
			first, expanded = expanded, len(s.Nodes)
		}
		frontier := slices.Clone(s.Nodes[first:])
		b := batchtest.Block{Dst: int64(len(frontier)), First: int64(first), Indptr: []int64{0}}
		for i, v := range frontier {
			tree := treeOf(first + i)
			for _, p := range referenceRow(r, tree, v, hop, fanout) {
				b.Indices = append(b.Indices, claim(tree, r.Relation.Indices.Element(p)))
				if r.Relation.EdgeIDs.Bits != 0 {
					p = r.Relation.EdgeIDs.Element(p)
				}
				b.EdgeIDs = append(b.EdgeIDs, p)
			}
			b.Indptr = append(b.Indptr, int64(len(b.Indices)))
		}
		b.Src = int64(len(s.Nodes))
		s.Blocks = append([]batchtest.Block{b}, s.Blocks...)
	}
	return s
}

func referenceRow(r *Request, tree, v int64, hop int, fanout int64) (chosen []int64) {
	start, degree := int64(0), int64(0)
	if v < r.Relation.NumRows() {
		start = r.Relation.Indptr.Element(v)
		degree = r.Relation.Indptr.Element(v+1) - start
	}
	kept := func(i int64) int64 { return start + i }
	if r.Exclude != nil {
		var rest []int64
		for i := range degree {
			if !slices.Contains(r.Exclude.Offsets(v), i) {
				rest = append(rest, start+i)
			}
		}
		degree, kept = int64(len(rest)), func(i int64) int64 { return rest[i] }
	}
	if fanout < 0 || degree == 0 || !r.Replace && degree <= fanout {
		for i := range degree {
			chosen = append(chosen, kept(i))
		}
		return chosen
	}
	state := rng.NewStream(r.Seed, r.Epoch, r.Number, uint8(hop), rng.Neighbors).State(uint64(v))
	if tree >= 0 {
		state = rng.Part(state, uint64(tree))
	}
	taken := map[int64]bool{}
	for j := range fanout {
		x := rng.Draw(state, int(j))
		t := int64(rng.Below(x, uint64(degree)))
		if !r.Replace {
			top := degree - fanout + j
			if t = int64(rng.Below(x, uint64(top+1))); taken[t] {
				t = top
			}
			taken[t] = true
		}
		chosen = append(chosen, kept(t))
	}
	return chosen
}

// engines are the ways to make a batch: by tiles, and of rows that were chosen before.
var engines = []func(*Request, Crew, *atomic.Bool) (memory.Memory, error){Sample, backward}

// rowsByNode are rows by node and hop.
type rowsByNode struct {
	at        map[[2]int64][2]int64
	positions []int64
}

func (r *rowsByNode) Place(node int64, hop int) (first, take int64) {
	row := r.at[[2]int64{node, int64(hop)}]
	return row[0], row[1]
}

func (r *rowsByNode) Positions() []int64 { return r.positions }

// backward chooses the rows of each hop from the last one to the first.
func backward(r *Request, crew Crew, stop *atomic.Bool) (memory.Memory, error) {
	return SampleChosen(r, crew, stop, func(b *Batch) (ChosenRows, error) {
		rows, nodes, known := &rowsByNode{at: map[[2]int64][2]int64{}}, slices.Clone(b.Seeds), map[int64]bool{}
		for _, v := range nodes {
			known[v] = true
		}
		var c rng.Chooser
		for hop := range r.Fanouts {
			for _, v := range slices.Backward(nodes) {
				row, first := b.EdgesOf(v, hop), int64(len(rows.positions))
				rows.positions = append(rows.positions, make([]int64, row.Take)...)
				rows.at[[2]int64{v, int64(hop)}] = [2]int64{first, row.Take}
				b.Choose(&c, rows.positions[first:], row)
				for _, p := range rows.positions[first:] {
					if source := r.Relation.Indices.Element(p); !known[source] {
						known[source] = true
						nodes = append(nodes, source)
					}
				}
			}
		}
		return rows, nil
	})
}

func sample(t *testing.T, r *Request, crew Crew) batchtest.Batch {
	t.Helper()
	return sampleBy(t, 0, r, crew)
}

// sampleBy is sample by one of engines.
func sampleBy(t *testing.T, engine int, r *Request, crew Crew) batchtest.Batch {
	t.Helper()
	var stop atomic.Bool
	m, err := engines[engine](r, crew, &stop)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	return batchtest.Read(m)
}

// check compares every engine, crew and numbering with the reference.
func check(t *testing.T, r Request) {
	t.Helper()
	want := reference(&r)
	for engine := range engines {
		for _, crew := range []idle{0, 3} {
			for _, r.MapBytes = range []int64{0, 1} {
				if engine == 1 && r.MapBytes == 1 {
					continue // the queue needs its map
				}
				if got := sampleBy(t, engine, &r, crew); !got.Equal(want) {
					t.Fatalf("engine=%d crew=%d limit=%d fanouts=%v replace=%v:\n got %.400s\nwant %.400s",
						engine, crew, r.MapBytes, r.Fanouts, r.Replace, fmt.Sprint(got), fmt.Sprint(want))
				}
			}
		}
	}
}

// checkOnce is check, and then again where each vertex is expanded once, and where
// each seed has a tree of its own.
func checkOnce(t *testing.T, r Request) {
	t.Helper()
	check(t, r)
	for _, r.Disjoint = range []bool{false, true} {
		for _, r.OnlyNew = range []bool{false, true} {
			want := reference(&r)
			for _, crew := range []idle{0, 3} {
				if got := sample(t, &r, crew); !got.Equal(want) {
					t.Fatalf("new=%v disjoint=%v crew=%d fanouts=%v replace=%v:\n got %.400s\nwant %.400s",
						r.OnlyNew, r.Disjoint, crew, r.Fanouts, r.Replace, fmt.Sprint(got), fmt.Sprint(want))
				}
			}
		}
	}
}

// Every small degree with every small fanout, with and without replacement.
func TestEveryDegreeAndFanout(t *testing.T) {
	rows, seeds := csctest.EveryDegree()
	for _, bits := range []int{32, 64} {
		g := csctest.Graph(rows, 71, bits, 96-bits, bits == 32)
		step := int64(1)
		if testing.Short() { // under the race detector, which has nothing to find here
			step = 13
		}
		for fanout := int64(1); fanout <= 40; fanout += step {
			for _, replace := range []bool{false, true} {
				check(t, Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{fanout}, Replace: replace}, Batch: request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(seeds, 64)}}})
			}
		}
	}
}

func TestRandomGraphs(t *testing.T) {
	g64 := csctest.Graph(csctest.RandomRows(3000, 1), 3100, 64, 64, true)
	g32 := csctest.Graph(csctest.RandomRows(3000, 2), 3000, 32, 32, false)
	seeds := csctest.Squares(300, 3000)
	for i, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {0, 3}, {10, 0}, {5}, {64, 33}, {2, 2, 2, 2, 2}, {-1}} {
		for _, replace := range []bool{false, true} {
			for _, g := range []*csc.Relation{g32, g64} {
				checkOnce(t, Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: replace}, Batch: request.Batch{Seed: 1 << 63, Epoch: 7, Number: 1 << 39, Seeds: csctest.Array(seeds, 32+32*(i%2))}}})
			}
		}
	}
}

func TestAwkwardGraphs(t *testing.T) {
	for name, rows := range csctest.Awkward(5000) {
		t.Run(name, func(t *testing.T) {
			n := int64(len(rows))
			for _, withIDs := range []bool{false, true} {
				g := csctest.Graph(rows, n+2, 64, 32, withIDs) // two trailing vertices
				for _, seeds := range [][]int64{{}, {n + 1}, {0, n, 0, 0}} {
					for _, fanouts := range [][]int64{{2, 3}, {-1, -1}, {1500, 1}, {0}} {
						checkOnce(t, Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 3, Seeds: csctest.Array(seeds, 64)}}})
					}
				}
			}
		})
	}
}

func TestExcludedEdges(t *testing.T) {
	rows := csctest.RandomRows(500, 9)
	for _, withIDs := range []bool{false, true} {
		g := csctest.Graph(rows, 500, 64, 64, withIDs)
		var ids []int64
		for e := int64(0); e < g.NumEdges(); e += 3 {
			ids = append(ids, e, e)
		}
		x, err := g.Exclude(ids)
		if err != nil {
			t.Fatal(err)
		}
		for _, fanouts := range [][]int64{{3, 3}, {-1, 5}} {
			r := Request{Relation: g, Exclude: x, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array([]int64{1, 2, 3, 50, 60}, 64)}}}
			checkOnce(t, r)
			for _, b := range sample(t, &r, idle(0)).Blocks {
				for _, id := range b.EdgeIDs {
					if id%3 == 0 {
						t.Fatalf("edge %d was excluded", id)
					}
				}
			}
		}
	}
}

func TestSeedOutOfRange(t *testing.T) {
	g := csctest.Graph([][]int64{{1}, {0}}, 2, 64, 64, false)
	var stop atomic.Bool
	for _, bad := range []int64{-1, 2, 1 << 40} {
		_, err := Sample(&Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{1}}, Batch: request.Batch{Seeds: csctest.Array([]int64{0, bad}, 64)}}}, idle(0), &stop)
		if want := fmt.Sprintf("index error: seeds[1]: expected an id in [0, 2), got %d", bad); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// An array that its owner changes while a batch is made is an error, not a crash.
func TestChangedArrays(t *testing.T) {
	for _, crew := range []idle{0, 3} {
		for _, engine := range engines {
			g := csctest.Graph(csctest.RandomRows(3000, 1), 3000, 64, 64, false)
			for i := range g.Indices.I64 {
				g.Indices.I64[i] = 1 << 40
			}
			var stop atomic.Bool
			r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seeds: csctest.Array(csctest.Steps(3000, 1), 64)}}}
			if _, err := engine(&r, crew, &stop); err == nil {
				t.Fatal("no error")
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(3000, 1), 3000, 64, 64, false)
	var stop atomic.Bool
	stop.Store(true)
	for _, engine := range engines {
		r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seeds: csctest.Array([]int64{1, 2}, 64)}}}
		if _, err := engine(&r, idle(0), &stop); err != request.ErrCancelled {
			t.Fatalf("got %v", err)
		}
	}
}

// The state of a batch that ended in a panic does not reach the next batch.
func TestAfterAPanic(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(300, 1), 300, 64, 64, false)
	damaged := csctest.Graph(csctest.RandomRows(300, 1), 300, 64, 64, false)
	damaged.Alias = slices.Repeat([]uint64{1 << 52}, int(g.NumEdges())) // every coin goes to an edge far away
	damaged.Sums = make([]uint64, g.NumEdges())
	for i := range damaged.Sums {
		damaged.Sums[i] = uint64(i + 1)
	}
	r := Request{Request: request.Request{Hops: request.Hops{Fanouts: []int64{3, 3}}, Batch: request.Batch{Seeds: csctest.Array(csctest.Steps(300, 1), 64)}}}
	var stop atomic.Bool
	for range 3 {
		r.Relation = damaged
		if m, err := Sample(&r, idle(0), &stop); err == nil {
			m.Release()
			t.Fatal("no error")
		}
		r.Relation = g
		if want := reference(&r); !sample(t, &r, idle(0)).Equal(want) {
			t.Fatal("another batch after a panic")
		}
	}
}
