package cpu

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// wholeRows answers with whole rows of parts and what stands beside their edges, of which each asks without.
func wholeRows(t *testing.T, parts []*csc.Relation, bounds, edges []int64, without []int64, weights bool, asks *[]int64) func(*RowRequest) ([]RowReply, error) {
	return func(a *RowRequest) (answers []RowReply, err error) {
		*asks = append(*asks, a.Vertices.Len())
		for p, g := range parts {
			r := &Request{Relation: g, First: bounds[p], Exclude: g.ExcludeOf(without, edges[p])}
			r.Hops = request.Hops{Fanouts: []int64{-1}}
			part := &PartRows{Request: r, Edge: edges[p], EdgeBits: 64, Weights: weights, Ask: &RowRequest{Vertices: slice(a.Vertices, a.Starts[p], a.Starts[p+1])}}
			if !weights {
				part.Beside = []csc.Values{g.EdgeData["x"], g.EdgeData["y"]}
			}
			m, err := SampleRows(part, idle(p), new(atomic.Bool))
			if err != nil {
				return nil, err
			}
			t.Cleanup(m.Release)
			answers = append(answers, bytesOf(m))
		}
		return answers, nil
	}
}

// cut is a graph of rows in parts whose edges have two arrays and weights, which the ids of edges tell.
func cut(rows [][]int64, bounds []int64) (parts []*csc.Relation, edges []int64) {
	_, parts, edges = inParts(rows, int64(len(rows)), 64, bounds)
	for p, g := range parts {
		x, y := make([]int32, g.NumEdges()), make([]float64, g.NumEdges())
		g.Alias, g.Sums = make([]uint64, len(x)), make([]uint64, len(x))
		for v := range g.NumRows() {
			sum := uint64(0)
			for e := g.Indptr.Element(v); e < g.Indptr.Element(v+1); e++ {
				id := edges[p] + e
				x[e], y[e] = int32(id), float64(id)/4
				sum += uint64(id)%5 + 1
				g.Sums[e] = sum
			}
		}
		g.EdgeData = map[string]csc.Values{"x": csc.ValuesOf(x), "y": csc.ValuesOf(y)}
	}
	return parts, edges
}

// Rows come once, whatever is asked for again, without excluded edges, and with what stands beside them.
func TestWholeRowsOfParts(t *testing.T) {
	rows := csctest.RandomRows(200, 5)
	nodes := int64(len(rows))
	bounds := []int64{0, 0, nodes / 3, nodes}
	parts, edges := cut(rows, bounds)
	without := csctest.Steps(300, 3)
	for _, weights := range []bool{false, true} {
		var asks []int64
		ask := wholeRows(t, parts, bounds, edges, without, weights, &asks)
		var numbers NodeMap
		names := []string{"x", "y"}
		if weights {
			names = nil
		}
		near, err := NewRemoteRows[int64](nodes, nodes, bounds, batch.Widths{ID: 8, EdgeID: 8}, names, &numbers)
		if err != nil {
			t.Fatal(err)
		}
		for _, lists := range [][]int64{{150, 3, 77}, {}, {3, 150}, {9, 77, 9, 199}, {9}} {
			if err := near.Bring(lists, ask); err != nil {
				t.Fatal(err)
			}
			starts, degrees := make([]int64, len(lists)), make([]int64, len(lists))
			near.Locate(lists, starts, degrees)
			for i, v := range lists {
				first := int64(0)
				for _, row := range rows[:v] {
					first += int64(len(row))
				}
				at := starts[i]
				for j, u := range rows[v] {
					id := first + int64(j)
					if slices.Contains(without, id) {
						continue
					}
					g := &near.Relation
					if g.Indices.I64[at] != u || g.EdgeIDs.I64[at] != id {
						t.Fatalf("vertex %d: edge %d from %d, expected %d from %d", v, g.EdgeIDs.I64[at], g.Indices.I64[at], id, u)
					}
					if !weights && (g.EdgeData["x"].Float64(at) != float64(id) || g.EdgeData["y"].Float64(at) != float64(id)/4) {
						t.Fatalf("edge %d: %v and %v", id, g.EdgeData["x"].Float64(at), g.EdgeData["y"].Float64(at))
					}
					if weights && (g.Alias == nil || weightAt(g, starts[i], at) != uint64(id)%5+1) {
						t.Fatalf("edge %d: a weight of %d", id, weightAt(g, starts[i], at))
					}
					at++
				}
				if at != starts[i]+degrees[i] {
					t.Fatalf("vertex %d: %d edges, expected %d", v, degrees[i], at-starts[i])
				}
			}
		}
		if !slices.Equal(asks, []int64{3, 2}) {
			t.Errorf("asked for %v rows", asks)
		}
		numbers.Free()
	}
}

// Arrays next to edges are checked before they are read.
func TestWholeRowsOfOthers(t *testing.T) {
	rows := csctest.RandomRows(60, 4)
	bounds := []int64{0, 30, 60}
	parts, edges := cut(rows, bounds)
	vertices := []int64{3, 50}
	for name, k := range map[string]struct {
		names []string
		spoil func(header []int64, a *RowReply)
		want  string
	}{
		"fewer arrays": {[]string{"x", "y"}, func(h []int64, _ *RowReply) { h[wordArrays] = 1 }, "expected 2"},
		"no arrays":    {[]string{"x", "y"}, func(h []int64, _ *RowReply) { h[wordArrays] = 0 }, "with 0 additional arrays"},
		"many arrays":  {[]string{"x"}, func(h []int64, _ *RowReply) { h[wordArrays] = 1 << 60 }, "expected 1"},
		"outside":      {[]string{"x", "y"}, func(h []int64, a *RowReply) { h[wordKeys] = a.Size - 8 }, "arrays of"},
		"no weights":   {nil, func(h []int64, _ *RowReply) { h[wordArrays] = 0 }, "expected weights of all edges"},
		"weight 0":     {nil, func(h []int64, a *RowReply) { memory.View[int64](a.Address+h[wordKeys], 1)[0] = 0 }, "weights above 0"},
		"other vertex": {nil, func(h []int64, a *RowReply) {
			memory.View[int64](a.Address+batch.Block(h, 0)[batch.BlockIndices], 1)[0] = 60
		}, "expected nodes in [0, 60), got 60"},
	} {
		var asks []int64
		good := wholeRows(t, parts, bounds, edges, nil, k.names == nil, &asks)
		var numbers NodeMap
		near, err := NewRemoteRows[int64](60, 60, bounds, batch.Widths{ID: 8, EdgeID: 8}, k.names, &numbers)
		if err != nil {
			t.Fatal(err)
		}
		err = near.Bring(vertices, func(a *RowRequest) ([]RowReply, error) {
			answers, err := good(a)
			if err == nil {
				k.spoil(memory.View[int64](answers[1].Address, int64(batch.Homogeneous(1).Words())), &answers[1])
			}
			return answers, err
		})
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, expected %q", name, err, k.want)
		}
		numbers.Free()
	}
}
