package walk_test

import (
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/walktest"
	. "github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// cut is rows of vertices cut at those bounds, with weights by the places of edges where weight is given: the graph
// without rows, and who answers for its parts.
func cut(t *testing.T, rows [][]int64, nodes int64, bits int, bounds []int64, rule *Rule, weight func(int) float64) (*csc.Relation, *cpu.Partition) {
	hollow := walktest.Graph(nil, nodes, bits, 64, false, nil)
	hollow.EdgeIDs = csctest.Array([]int64{}, bits)
	hollow.EdgeIDs.Bits = bits
	var parts []*csc.Relation
	var edges []int64
	at := 0
	for p := range len(bounds) - 1 {
		first, last := min(bounds[p], int64(len(rows))), min(bounds[p+1], int64(len(rows)))
		before, ofPart := at, weight
		if weight != nil {
			ofPart = func(p int) float64 { return weight(before + p) }
		}
		parts = append(parts, walktest.Graph(rows[first:last], nodes, bits, 64, false, ofPart))
		edges = append(edges, int64(at))
		for _, row := range rows[first:last] {
			at += len(row)
		}
	}
	return hollow, &cpu.Partition{Bounds: bounds, Ask: func(a *cpu.RowRequest) (answers []cpu.RowReply, err error) {
		for p, g := range parts {
			lo, hi := a.Starts[p], a.Starts[p+1]
			ask := PartEdges{Rule: rule, Relation: g, First: bounds[p], Hop: int64(a.Hop), Vertices: between(a.Vertices, lo, hi), Edge: edges[p], EdgeBits: bits}
			if a.Trees.Len() > 0 {
				ask.Last = between(a.Trees, lo, hi)
			}
			if len(a.Bounds) > 0 {
				ask.Draws = a.Bounds[lo:hi]
			}
			m, err := Take(&ask)
			if err != nil {
				return nil, err
			}
			t.Cleanup(m.Release)
			words := memory.ViewAt[int64](m, 0, 1)
			answers = append(answers, cpu.RowReply{Address: int64(uintptr(unsafe.Pointer(&words[0]))), Size: memory.View[int64](m.Address(), 3)[2]})
		}
		return answers, nil
	}}
}

// between is some elements of an array.
func between(a csc.Array, lo, hi int64) csc.Array {
	if a.Bits == 32 {
		return csc.ArrayOf(a.I32[lo:hi])
	}
	return csc.ArrayOf(a.I64[lo:hi])
}

// Cut anywhere, a graph has the walks of the whole one.
func TestPartsMakeTheWalks(t *testing.T) {
	graphs := csctest.Awkward(500)
	graphs["random"] = csctest.RandomRows(200, 3)
	// Along its edges walks of node2vec may go back, and to common neighbours.
	both := make([][]int64, 60)
	for v, row := range csctest.RandomRows(60, 5) {
		for _, x := range row {
			both[v], both[x] = append(both[v], x), append(both[x], int64(v))
		}
	}
	graphs["both ways"] = both
	for name, rows := range graphs {
		nodes := int64(len(rows)) + 2
		for _, row := range rows {
			for _, v := range row {
				nodes = max(nodes, v+1)
			}
		}
		third := nodes / 3
		for _, bounds := range [][]int64{{0, nodes}, {0, third, nodes}, {0, 0, third, third, 2 * third, nodes, nodes}} {
			for _, bits := range []int{32, 64} {
				for i, rule := range []Rule{
					{Length: 5, EdgeIDs: true}, {Length: 4, PerSeed: 3, Stop: .3, EdgeIDs: true}, {Length: 6, Restart: .4},
					{Length: 6, Restart: .4, Stop: .1, Jumps: true, EdgeIDs: true}, {Length: 4, PerSeed: 5, Every: 2, Top: 3}, {},
					{Length: 6, P: 4, Q: .5, EdgeIDs: true}, {Length: 6, P: .25, Q: 2, EdgeIDs: true, PerSeed: 2},
					{Length: 5, P: .01, Q: 1, Restart: .2, Stop: .1, EdgeIDs: true}, {Length: 5, P: 1, Q: 1e6, Restart: .2, Jumps: true},
					// Tries that other parts decide, one after another, and such as are all refused.
					{Length: 5, P: 1e9, Q: 1e-9, EdgeIDs: true}, {Length: 5, P: 1e-9, Q: 1e9, EdgeIDs: true}, {Length: 5, P: 1e9, Q: 1e9},
					{Length: 5, P: 1e9, Q: 1e9, EdgeIDs: true},
					{Length: 7, Roots: 3, EdgeIDs: true}, {Length: 4, Roots: 30}, {Roots: 5},
				} {
					var weight func(int) float64
					if i%2 == 1 && rule.Roots == 0 {
						weight = func(p int) float64 { return float64(p%4 + 1) }
					}
					seeds := make([]int64, 30)
					for i := range seeds {
						seeds[i] = int64(i*7) % nodes
					}
					r := Request{Rule: rule, Batch: request.Batch{Seed: 3, Epoch: 2, Number: 9, Seeds: csctest.Array(seeds, bits)}}
					r.Relation = walktest.Graph(rows, nodes, bits, 64, false, weight)
					want := walks(t, r)
					var parts *cpu.Partition
					r.Relation, parts = cut(t, rows, nodes, bits, bounds, &rule, weight)
					m, err := SampleParts(&r, parts, walktest.Alone, new(atomic.Bool))
					if err != nil {
						t.Fatal(err)
					}
					if got := walktest.Read(m); !reflect.DeepEqual(got, want) {
						t.Fatalf("%s, bounds %v, %d bits, %+v: other walks", name, bounds, bits, rule)
					}
					m.Release()
				}
			}
		}
	}
}

// Answers from a network are checked before they are read, and rules that walks of parts cannot
// follow are refused.
func TestAnswersToWalks(t *testing.T) {
	rows, rule := csctest.RandomRows(60, 4), Rule{Length: 3, EdgeIDs: true}
	ask := func(rule Rule, spoil func(words []int64, a *cpu.RowReply)) error {
		r := Request{Rule: rule, Batch: request.Batch{Seeds: csctest.Array([]int64{1, 2, 3}, 64)}}
		var parts *cpu.Partition
		r.Relation, parts = cut(t, rows, 60, 64, []int64{0, 60}, &rule, nil)
		honest := parts.Ask
		parts.Ask = func(a *cpu.RowRequest) ([]cpu.RowReply, error) {
			answers, err := honest(a)
			if err == nil && spoil != nil {
				spoil(memory.View[int64](answers[0].Address, 12), &answers[0])
			}
			return answers, err
		}
		m, err := SampleParts(&r, parts, walktest.Alone, new(atomic.Bool))
		if err == nil {
			m.Release()
		}
		return err
	}
	if err := ask(rule, nil); err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]struct {
		spoil func(words []int64, a *cpu.RowReply)
		want  string
	}{
		"cut":         {func(_ []int64, a *cpu.RowReply) { a.Size = 16 }, "an answer of 16 bytes"},
		"cut later":   {func(_ []int64, a *cpu.RowReply) { a.Size = 80 }, "another question"},
		"unaligned":   {func(_ []int64, a *cpu.RowReply) { a.Address += 4 }, "at a multiple of 8"},
		"other words": {func(w []int64, _ *cpu.RowReply) { w[0] = batch.Magic }, "another question"},
		"other width": {func(w []int64, _ *cpu.RowReply) { w[1] = 32 }, "another question"},
		"no width":    {func(w []int64, _ *cpu.RowReply) { w[2] = 1 << 60 }, "another question"},
		"other ids":   {func(w []int64, _ *cpu.RowReply) { w[2] = 32 }, "another question"},
		"other rows":  {func(w []int64, _ *cpu.RowReply) { w[3]++ }, "another question"},
		"no vertex":   {func(w []int64, _ *cpu.RowReply) { w[8] = 60 }, "expected nodes in [0, 60), got 60"},
	} {
		if err := ask(rule, k.spoil); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", name, err, k.want)
		}
	}
	second, roots := Rule{Length: 3, P: 2, Q: .5, EdgeIDs: true}, Rule{Length: 3, Roots: 3}
	for name, k := range map[string]struct {
		rule  Rule
		spoil func(words []int64, a *cpu.RowReply)
		want  string
	}{
		"cut":           {second, func(_ []int64, a *cpu.RowReply) { a.Size = 16 }, "an answer of 16 bytes"},
		"cut later":     {second, func(_ []int64, a *cpu.RowReply) { a.Size = 80 }, "another question"},
		"unaligned":     {roots, func(_ []int64, a *cpu.RowReply) { a.Address += 4 }, "at a multiple of 8"},
		"other words":   {roots, func(w []int64, _ *cpu.RowReply) { w[0] = batch.WalkMagic }, "another question"},
		"other width":   {second, func(w []int64, _ *cpu.RowReply) { w[1] = 32 }, "another question"},
		"no width":      {second, func(w []int64, _ *cpu.RowReply) { w[2] = 1 << 60 }, "another question"},
		"other rows":    {roots, func(w []int64, _ *cpu.RowReply) { w[3]++ }, "another question"},
		"many edges":    {second, func(w []int64, _ *cpu.RowReply) { w[4] = 1 << 40 }, "another question"},
		"weights":       {second, func(w []int64, _ *cpu.RowReply) { w[5] = 1 }, "another question"},
		"no rows":       {second, func(w []int64, _ *cpu.RowReply) { w[8] = 1 << 30 }, "whose rows are no rows"},
		"settled by no": {second, func(w []int64, _ *cpu.RowReply) { w[8] = 1 }, "whose rows are no rows"},
		"never settled": {second, func(w []int64, _ *cpu.RowReply) { w[8], w[9], w[10] = 2, 2, 2 }, "never settle"},
		"no degree":     {roots, func(w []int64, _ *cpu.RowReply) { w[8] = -1 }, "a degree of -1"},
		"no edge":       {roots, func(w []int64, _ *cpu.RowReply) { w[8] += 1 << 30 }, "an edge of"},
	} {
		if err := ask(k.rule, k.spoil); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", name, err, k.want)
		}
	}
	bare := walktest.Graph(rows, 60, 64, 64, false, nil)
	bare.Back = nil
	for _, k := range []struct {
		ask  PartEdges
		want string
	}{
		{PartEdges{Rule: &second, Relation: bare, Hop: 2, Draws: []int64{1}, Last: csctest.Array([]int64{-1}, 64)}, "expected a part with adjacency"},
		{PartEdges{Rule: &second, Relation: bare, Hop: 2, Draws: []int64{1}}, "expected draws true and nodes before true, got 1 and 0 of 1 rows"},
		{PartEdges{Rule: &second, Relation: bare, Hop: 0, Draws: []int64{1}, Last: csctest.Array([]int64{-1}, 64)}, "expected draws false"},
		{PartEdges{Rule: &roots, Relation: bare, Hop: 1}, "expected draws true and nodes before false"},
		{PartEdges{Rule: &rule, Relation: bare, Draws: []int64{1}, Last: csctest.Array([]int64{-1}, 64)}, "nodes before false, got 1 and 1"},
	} {
		k.ask.Vertices, k.ask.EdgeBits = csctest.Array([]int64{3}, 64), 64
		if _, err := Take(&k.ask); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v: %v, want %q", k.ask, err, k.want)
		}
	}
	_, err := Take(&PartEdges{Rule: &rule, Relation: walktest.Graph(rows[20:], 60, 64, 64, false, nil), First: 20,
		Vertices: csctest.Array([]int64{30, 19}, 64), Draws: []int64{0, 0}, EdgeBits: 64})
	if !errors.Is(err, request.ErrIndex) || !strings.Contains(err.Error(), "nodes[1]: expected one in [20, ") {
		t.Error(err)
	}
}
