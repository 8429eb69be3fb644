package csc_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// form is what a Transposition's memory holds.
type form struct {
	rows, edges, idBits, edgeIDBits, kinds int64
	indptr, indices, ids                   []int64
}

func readForm(m memory.Memory) (f form) {
	w := memory.ViewAt[int64](m, 0, csc.TransposedWords)
	f.rows, f.edges, f.idBits, f.edgeIDBits = w[csc.TransposedNumRows], w[csc.TransposedNumEdges], w[csc.TransposedIDBits], w[csc.TransposedEdgeIDBits]
	f.kinds = w[csc.TransposedKinds]
	f.indptr = batchtest.Ints(m, w[csc.TransposedIndptr], f.rows+1, 64)
	f.indices = batchtest.Ints(m, w[csc.TransposedIndices], f.edges, f.idBits)
	if w[csc.TransposedEdgeIDs] != 0 {
		f.ids = batchtest.Ints(m, w[csc.TransposedEdgeIDs], f.edges, f.edgeIDBits)
	}
	return f
}

// csc is the form as a graph.
func (f form) csc(nodes int64) *csc.Relation {
	return &csc.Relation{
		Indptr: csctest.Array(f.indptr, 64), Indices: csctest.Array(f.indices, int(f.idBits)),
		EdgeIDs: csctest.Array(f.ids, int(f.edgeIDBits)), NumNodes: nodes, Kinds: f.kinds,
	}
}

// transposed is the form by sorting a list of all edges, stably.
func transposed(g *csc.Relation, kind func(id int64) int64, kinds int64) form {
	type edge struct{ row, to, id int64 }
	var edges []edge
	for v := range g.NumRows() {
		for p := g.Indptr.Element(v); p < g.Indptr.Element(v+1); p++ {
			e := edge{g.Indices.Element(p), v, p}
			if g.EdgeIDs.Bits != 0 {
				e.id = g.EdgeIDs.Element(p)
			}
			if kind != nil {
				e.row = e.row*kinds + kind(e.id)
			}
			edges = append(edges, e)
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if a.row != b.row {
			return int(a.row - b.row)
		}
		return int(a.to - b.to)
	})
	f := form{g.NumNodes * max(kinds, 1), int64(len(edges)), int64(g.Indices.Bits), int64(g.EdgeIDBits()), kinds, []int64{0}, nil, nil}
	at := 0
	for row := range f.rows {
		for ; at < len(edges) && edges[at].row == row; at++ {
			f.indices, f.ids = append(f.indices, edges[at].to), append(f.ids, edges[at].id)
		}
		f.indptr = append(f.indptr, int64(at))
	}
	return f
}

// graphs are those that tests transpose, by name: with parallel edges, self loops, vertices
// without edges and behind the last row.
func graphs(idBits, indptrBits int, withIDs bool) map[string]*csc.Relation {
	found := make(map[string]*csc.Relation)
	for name, rows := range csctest.Awkward(9000) {
		found[name] = csctest.Graph(rows, max(int64(len(rows)), 3), idBits, indptrBits, withIDs)
	}
	rows := csctest.RandomRows(700, 5)
	found["random"] = csctest.Graph(rows, 700, idBits, indptrBits, withIDs)
	found["more nodes"] = csctest.Graph(rows, 1300, idBits, indptrBits, withIDs)
	// So many edges for so few rows are sorted in several parts, whose bounds lie within rows.
	r := rand.New(rand.NewPCG(3, 4))
	rows = make([][]int64, 20)
	for v := range rows {
		for range 20_000 {
			rows[v] = append(rows[v], min(r.Int64N(25), r.Int64N(25)))
		}
	}
	rows[7] = nil
	found["several parts"] = csctest.Graph(rows, 25, idBits, indptrBits, withIDs)
	return found
}

func run(t *testing.T, b *csc.Transposition) form {
	t.Helper()
	m, err := b.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	if done, total := b.Progress(); done != total {
		t.Errorf("%d of %d looks were done", done, total)
	}
	return readForm(m)
}

func expect(t *testing.T, what string, got, want form) {
	t.Helper()
	words := func(f form) [5]int64 { return [5]int64{f.rows, f.edges, f.idBits, f.edgeIDBits, f.kinds} }
	if words(got) != words(want) {
		t.Errorf("%s: got words %v, want %v", what, words(got), words(want))
	}
	for _, k := range []struct {
		name      string
		got, want []int64
	}{{"indptr", got.indptr, want.indptr}, {"indices", got.indices, want.indices}, {"edge ids", got.ids, want.ids}} {
		if !slices.Equal(k.got, k.want) {
			t.Errorf("%s: got %s %v, want %v", what, k.name, k.got[:min(len(k.got), 50)], k.want[:min(len(k.want), 50)])
		}
	}
}

func TestTransposition(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(5)) // as many parts, however few cores
	before := memory.Count().Live
	kind := func(id int64) int64 { return id * id % 7 % 3 }
	widths := [][2]int{{32, 32}, {32, 64}, {64, 32}, {64, 64}}
	if testing.Short() { // under the race detector, to which they are alike
		widths = widths[2:3]
	}
	for _, bits := range widths {
		for _, withIDs := range []bool{false, true} {
			for name, g := range graphs(bits[0], bits[1], withIDs) {
				what := fmt.Sprintf("%s, ids of %d bits, indptr of %d, own edge ids %v", name, bits[0], bits[1], withIDs)
				plain := run(t, &csc.Transposition{Relation: g})
				expect(t, what, plain, transposed(g, nil, 0))
				bare := run(t, &csc.Transposition{Relation: g, Bare: true})
				if bare.ids != nil {
					t.Errorf("%s: edge ids that nobody asked for", what)
				}
				bare.ids = plain.ids
				expect(t, what+", bare", bare, plain)
				// Twice: the rows of the graph, sorted.
				sorted := plain.csc(g.NumNodes)
				if err := sorted.Validate(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				expect(t, what+", twice", run(t, &csc.Transposition{Relation: sorted}), transposed(sorted, nil, 0))
				for _, kinds := range []int64{3, 5} {
					b := &csc.Transposition{Relation: g, Kind: kind, Len: g.NumEdges(), Kinds: kinds, Name: "t"}
					hetero := run(t, b)
					expect(t, fmt.Sprintf("%s, %d types", what, kinds), hetero, transposed(g, kind, kinds))
					if err := hetero.csc(g.NumNodes).Validate(); err != nil {
						t.Errorf("%s, %d types: %v", what, kinds, err)
					}
				}
			}
		}
	}
	if n := memory.Count().Live; n != before {
		t.Errorf("%d memories were lost", n-before)
	}
}

func TestTranspositionFindsHowManyTypes(t *testing.T) {
	g := csctest.Graph([][]int64{{0, 1, 1}, {2}}, 3, 64, 64, true) // ids 3, 2, 1, 0
	for _, k := range []struct {
		types []int64
		kinds int64
	}{{[]int64{0, 0, 0, 0}, 1}, {[]int64{0, 4, 0, 1}, 5}, {[]int64{1, 1, 1, 1 << 14}, 1<<14 + 1}, {[]int64{0, 0, 0, 1<<15 - 1}, 1 << 15}} {
		kind := func(id int64) int64 { return k.types[id] }
		got := run(t, &csc.Transposition{Relation: g, Kind: kind, Len: 4, Name: "t"})
		expect(t, fmt.Sprint(k.types), got, transposed(g, kind, k.kinds))
	}
	none := csctest.Graph(nil, 2, 64, 64, false)
	got := run(t, &csc.Transposition{Relation: none, Kind: func(int64) int64 { return 0 }, Name: "t"})
	expect(t, "no edges", got, transposed(none, nil, 1))
}

func TestTranspositionErrors(t *testing.T) {
	before := memory.Count().Live
	g := csctest.Graph([][]int64{{0, 1, 1}, {2}}, 3, 64, 64, true)
	wide := &csc.Relation{Indptr: csctest.Array([]int64{0}, 64), Indices: csctest.Array(nil, 64), NumNodes: 1 << 47}
	huge := &csc.Relation{Indptr: csctest.Array([]int64{0}, 64), Indices: csctest.Array(nil, 64), NumNodes: 1 << 44}
	split := &csc.Relation{Indptr: csctest.Array([]int64{0, 0, 0}, 64), Indices: csctest.Array(nil, 64), NumNodes: 1, Kinds: 2}
	for _, k := range []struct {
		graph      *csc.Relation
		types      []int64
		kinds, len int64
		want       string
	}{
		{g, []int64{0, 1, -1, -5}, 0, 4, "t[2]: expected a type in [0, 32768), got -1"},
		{g, []int64{0, 1 << 15, 0, 0}, 0, 4, "t[1]: expected a type in [0, 32768), got 32768"},
		{g, []int64{0, 1, 2, 2}, 2, 4, "t[2]: expected a type in [0, 2), got 2"},
		{g, []int64{0, 0, 0}, 0, 3, "t: expected a type for each edge id, got 3 of them and an edge with id 3"},
		{wide, nil, 3, 0, "t: expected at most 2^48 rows, got 140737488355328 nodes by 3 types"},
		{split, nil, 0, 0, "graph: expected one whose rows are not split by type, got 2 types"},
	} {
		_, err := (&csc.Transposition{Relation: k.graph, Kind: func(id int64) int64 { return k.types[id] }, Len: k.len, Kinds: k.kinds, Name: "t"}).Run()
		var value *csc.ValueError
		if !errors.As(err, &value) || err.Error() != k.want {
			t.Errorf("got %v, want %s", err, k.want)
		}
	}
	if _, err := (&csc.Transposition{Relation: huge}).Run(); !errors.Is(err, memory.ErrNoMemory) {
		t.Errorf("2^44 rows: got %v", err)
	}
	if n := memory.Count().Live; n != before {
		t.Errorf("%d memories were lost", n-before)
	}
}

func TestTranspositionStops(t *testing.T) {
	before := memory.Count().Live
	g := graphs(64, 64, false)["several parts"]
	if done := (&csc.Transposition{Relation: g}); true {
		done.Halt()
		if _, err := done.Run(); !errors.Is(err, csc.ErrStopped) {
			t.Errorf("before it began: %v", err)
		}
	}
	// Once types are read, and at the first and the last look at an edge.
	for _, at := range []int64{0, g.NumEdges() - 1} {
		b := &csc.Transposition{Relation: g, Len: g.NumEdges(), Name: "t"}
		b.Kind = func(id int64) int64 {
			if id == at {
				b.Halt()
			}
			return 0
		}
		if _, err := b.Run(); !errors.Is(err, csc.ErrStopped) {
			t.Errorf("at edge %d: %v", at, err)
		}
	}
	if n := memory.Count().Live; n != before {
		t.Errorf("%d memories were lost", n-before)
	}
}

// Files are not read before they are used, so that anything may stand in their arrays.
func TestTranspositionOfDamagedArrays(t *testing.T) {
	before := memory.Count().Live
	for name, g := range map[string]*csc.Relation{
		"a source that is no vertex": {Indptr: csctest.Array([]int64{0, 2}, 64), Indices: csctest.Array([]int64{0, 9}, 64), NumNodes: 2},
		"a negative source":          {Indptr: csctest.Array([]int64{0, 2}, 64), Indices: csctest.Array([]int64{0, -9}, 32), NumNodes: 2},
		"rows that end too early":    {Indptr: csctest.Array([]int64{0, 1}, 64), Indices: csctest.Array([]int64{0, 1}, 64), NumNodes: 2},
	} {
		if m, err := (&csc.Transposition{Relation: g}).Run(); err == nil {
			m.Release()
			t.Errorf("%s: expected an error", name)
		}
	}
	if n := memory.Count().Live; n != before {
		t.Errorf("%d memories were lost", n-before)
	}
}

func TestAscends(t *testing.T) {
	for _, bits := range []int{32, 64} {
		for _, k := range []struct {
			rows [][]int64
			want bool
		}{
			{nil, true},
			{[][]int64{{}, {2, 2, 3}, {0}, {0, 1}}, true},
			{[][]int64{{3}, {0}, {2, 1}}, false},
			{[][]int64{{0, 1, 3, 2}, {0}}, false},
		} {
			if got := csctest.Graph(k.rows, 4, bits, bits, false).Ascends(); got != k.want {
				t.Errorf("%v, %d bits: got %v", k.rows, bits, got)
			}
		}
	}
}

func TestSameRows(t *testing.T) {
	rows := [][]int64{{1, 2}, {0}, {0, 0}}
	a := csctest.Graph(rows, 3, 64, 64, true)
	for _, k := range []struct {
		name string
		b    *csc.Relation
		want bool
	}{
		{"without edge ids", csctest.Graph(rows, 3, 64, 64, false), true},
		{"another neighbour", csctest.Graph([][]int64{{1, 2}, {0}, {0, 1}}, 3, 64, 64, true), false},
		{"other rows", csctest.Graph([][]int64{{1}, {2, 0}, {0, 0}}, 3, 64, 64, true), false},
		{"fewer edges", csctest.Graph([][]int64{{1, 2}, {0}, {0}}, 3, 64, 64, true), false},
		{"more vertices", csctest.Graph(rows, 4, 64, 64, true), false},
		{"other widths", csctest.Graph(rows, 3, 32, 64, true), false},
		{"other offsets", csctest.Graph(rows, 3, 64, 32, true), false},
	} {
		if got := csc.EqualRows(a, k.b); got != k.want {
			t.Errorf("%s: got %v", k.name, got)
		}
	}
	empty := csctest.Graph(nil, 0, 32, 32, false)
	if !csc.EqualRows(empty, empty) {
		t.Error("a graph without rows is not the same as itself")
	}
}
