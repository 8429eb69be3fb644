package cpu

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// inParts is rows of vertices cut at those bounds: the graph without rows, and its parts, with the place of the first
// edge of each.
func inParts(rows [][]int64, nodes int64, bits int, bounds []int64) (hollow *csc.Relation, parts []*csc.Relation, edges []int64) {
	at := int64(0)
	for p := range len(bounds) - 1 {
		own := rows[min(bounds[p], int64(len(rows))):min(bounds[p+1], int64(len(rows)))]
		parts = append(parts, csctest.Graph(own, nodes, bits, 64, false))
		edges = append(edges, at)
		at += parts[p].NumEdges()
	}
	hollow = csctest.Graph(nil, nodes, bits, 64, false)
	hollow.EdgeIDs = csctest.Array([]int64{}, bits)
	hollow.EdgeIDs.Bits = bits
	return hollow, parts, edges
}

// bytesOf is where a memory's batch lies, and how many bytes it has.
func bytesOf(m memory.Memory) RowReply {
	words := memory.ViewAt[int64](m, 0, 1)
	return RowReply{int64(uintptr(unsafe.Pointer(&words[0]))), memory.View[int64](m.Address(), 3)[2]}
}

// asked answers by the parts themselves.
func asked(t *testing.T, r *Request, parts []*csc.Relation, bounds, edges []int64, bits int) func(*RowRequest) ([]RowReply, error) {
	return func(a *RowRequest) (answers []RowReply, err error) {
		for p, g := range parts {
			lo, hi := a.Starts[p], a.Starts[p+1]
			own := *r
			own.Relation, own.Parts, own.First, own.Exclude = g, nil, bounds[p], nil
			part := &PartRows{Request: &own, Edge: edges[p], EdgeBits: bits, Ask: &RowRequest{Hop: a.Hop, Vertices: slice(a.Vertices, lo, hi)}}
			if a.Trees.Bits != 0 {
				part.Ask.Trees = slice(a.Trees, lo, hi)
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

func slice(a csc.Array, lo, hi int64) csc.Array {
	if a.Bits == 32 {
		return csc.Array{Bits: 32, I32: a.I32[lo:hi]}
	}
	return csc.Array{Bits: 64, I64: a.I64[lo:hi]}
}

// Every small degree and awkward graph, cut anywhere, gives the batch of the whole graph.
func TestPartsMakeTheBatch(t *testing.T) {
	graphs := csctest.Awkward(3000)
	graphs["random"] = csctest.RandomRows(700, 5)
	graphs["degrees"], _ = csctest.EveryDegree()
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
				hollow, parts, edges := inParts(rows, nodes, bits, bounds)
				whole := csctest.Graph(rows, nodes, bits, 64, false)
				for _, hops := range []request.Hops{
					{Fanouts: []int64{2, 3}}, {Fanouts: []int64{2, 40}, Replace: true}, {Fanouts: []int64{1, -1}, OnlyNew: true},
					{Fanouts: []int64{3, 0, 5}, Disjoint: true},
				} {
					r := Request{Relation: whole, Request: request.Request{Hops: hops, Batch: request.Batch{
						Seed: 3, Epoch: 2, Number: 9, Seeds: csctest.Array(upTo(40, nodes-1), bits),
					}}}
					want := sampleBy(t, 0, &r, idle(0))
					far := r
					far.Relation = hollow
					far.Parts = &Partition{Bounds: bounds, Ask: asked(t, &far, parts, bounds, edges, bits)}
					if got := sampleBy(t, 0, &far, idle(1)); !got.Equal(want) {
						t.Fatalf("%s, bounds %v, %d bits, %+v: another batch", name, bounds, bits, hops)
					}
				}
			}
		}
	}
}

// Answers from a network are checked before they are read.
func TestAnswersOfOthers(t *testing.T) {
	rows := csctest.RandomRows(60, 4)
	bounds := []int64{0, 60}
	hollow, parts, edges := inParts(rows, 60, 64, bounds)
	for name, k := range map[string]struct {
		spoil func(words []int64, about []int64, a *RowReply)
		want  string
	}{
		"cut":         {func(_, _ []int64, a *RowReply) { a.Size = 16 }, "an answer of 16 bytes"},
		"cut later":   {func(_, _ []int64, a *RowReply) { a.Size -= 64 }, "expected"},
		"unaligned":   {func(_, _ []int64, a *RowReply) { a.Address += 4 }, "at a multiple of 8"},
		"other words": {func(w, _ []int64, _ *RowReply) { w[batch.WordSignature] = 1 }, "another question"},
		"other width": {func(w, _ []int64, _ *RowReply) { w[batch.WordIDBits] = 32 }, "another question"},
		"other rows":  {func(_, b []int64, _ *RowReply) { b[batch.BlockNumDst]++ }, "another question"},
		"weights":     {func(_, b []int64, _ *RowReply) { b[batch.BlockEdgeWeights] = 64 }, "another question"},
		"more edges":  {func(_, b []int64, _ *RowReply) { b[batch.BlockNumEdges] += 1 << 20 }, "expected"},
		"place":       {func(_, b []int64, _ *RowReply) { b[batch.BlockIndices] = 1 << 40 }, "expected"},
		"negative":    {func(_, b []int64, _ *RowReply) { b[batch.BlockIndptr] = -64 }, "expected"},
		"no rows": {func(_, b []int64, a *RowReply) {
			memory.View[int64](a.Address+b[batch.BlockIndptr], 3)[1] = 1 << 40
		}, "rows are no rows"},
		"no vertex": {func(_, b []int64, a *RowReply) {
			memory.View[int64](a.Address+b[batch.BlockIndices], 1)[0] = 60
		}, "expected nodes in [0, 60), got 60"},
		"too few": {func(_, _ []int64, a *RowReply) { *a = RowReply{} }, "an answer of 0 bytes"},
	} {
		r := Request{Relation: hollow, Request: request.Request{
			Hops:  request.Hops{Fanouts: []int64{4}},
			Batch: request.Batch{Seeds: csctest.Array(upTo(20, 59), 64)},
		}}
		honest := asked(t, &r, parts, bounds, edges, 64)
		r.Parts = &Partition{Bounds: bounds, Ask: func(a *RowRequest) ([]RowReply, error) {
			answers, err := honest(a)
			words := memory.View[int64](answers[0].Address, int64(batch.Homogeneous(1).Words()))
			k.spoil(words, batch.Block(words, 0), &answers[0])
			return answers, err
		}}
		_, err := Sample(&r, idle(0), new(atomic.Bool))
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", name, err, k.want)
		}
	}
	refused := errors.New("nobody there")
	for _, answers := range [][]RowReply{nil, {{}, {}}} {
		r := Request{Relation: hollow, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4}}, Batch: request.Batch{Seeds: csctest.Array([]int64{3}, 64)}}}
		r.Parts = &Partition{Bounds: bounds, Ask: func(*RowRequest) ([]RowReply, error) {
			if answers == nil {
				return nil, refused
			}
			return answers, nil
		}}
		if _, err := Sample(&r, idle(0), new(atomic.Bool)); err == nil || answers == nil && !errors.Is(err, refused) {
			t.Error(fmt.Sprint(answers), err)
		}
	}
}

// An answer has the times of edges if they bound the next hop.
func TestAnswersWithoutTimes(t *testing.T) {
	rows := csctest.RandomRows(60, 4)
	hollow, parts, edges := inParts(rows, 60, 64, []int64{0, 60})
	r := Request{Relation: hollow, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4}}}}
	answers, err := asked(t, &r, parts, []int64{0, 60}, edges, 64)(&RowRequest{Starts: []int64{0, 2}, Vertices: csctest.Array([]int64{3, 4}, 64)})
	if err != nil {
		t.Fatal(err)
	}
	widths := batch.Widths{ID: 8, EdgeID: 8}
	if _, err := answered[int64](answers[0], 2, widths, false, 0); err != nil {
		t.Error(err)
	}
	header := memory.View[int64](answers[0].Address, int64(batch.Homogeneous(1).Words()))
	for _, at := range []int64{0, -64, 12, 1 << 40} {
		header[wordKeys] = at
		if _, err := answered[int64](answers[0], 2, widths, false, 1); err == nil || !strings.Contains(err.Error(), "additional arrays of its edges") {
			t.Errorf("at %d: %v", at, err)
		}
	}
}

// Vertices of other parts are refused, and none of another part's rows is read.
func TestRowsOfOtherParts(t *testing.T) {
	_, parts, edges := inParts(csctest.RandomRows(60, 4), 60, 64, []int64{0, 20, 60})
	for _, v := range []int64{19, 60, -1} {
		r := &Request{Relation: parts[1], First: 20, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4}}}}
		_, err := SampleRows(&PartRows{Request: r, Edge: edges[1], EdgeBits: 64, Ask: &RowRequest{Vertices: csctest.Array([]int64{30, v}, 64)}}, idle(0), new(atomic.Bool))
		if !errors.Is(err, request.ErrIndex) || !strings.Contains(err.Error(), "nodes[1]: expected one in [20, ") {
			t.Errorf("%d: %v", v, err)
		}
	}
}
