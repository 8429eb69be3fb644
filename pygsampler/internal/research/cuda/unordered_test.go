package cuda

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
)

// sameSample compares two batches but for the numbers of vertices beyond the seeds:
// every hop has the same destinations before its other vertices, and each of them
// the same edges, in draw order, by original ids.
func sameSample(got, want batchtest.Batch) error {
	if got.IDBits != want.IDBits || got.EdgeIDBits != want.EdgeIDBits || !slices.Equal(got.Output, want.Output) ||
		!slices.Equal(got.OutputIndex, want.OutputIndex) || len(got.Blocks) != len(want.Blocks) {
		return errors.New("widths, seeds, their places or hops differ")
	}
	if !slices.Equal(slices.Sorted(slices.Values(got.Nodes)), slices.Sorted(slices.Values(want.Nodes))) {
		return errors.New("the vertices differ")
	}
	if got.Trees != nil || want.Trees != nil {
		return errors.New("trees have an order")
	}
	for i := range want.Blocks {
		a, b := got.Blocks[i], want.Blocks[i]
		if a.Src != b.Src || a.Dst != b.Dst || a.First != b.First || len(a.Indices) != len(b.Indices) {
			return fmt.Errorf("block %d: sizes %d, %d from %d on, %d, want %d, %d from %d on, %d",
				i, a.Src, a.Dst, a.First, len(a.Indices), b.Src, b.Dst, b.First, len(b.Indices))
		}
		var rows [2]map[int64]string
		for k, nodes := range [2][]int64{got.Nodes, want.Nodes} {
			b := [2]batchtest.Block{a, b}[k]
			rows[k] = make(map[int64]string)
			if b.Indptr[0] != 0 || b.Indptr[b.Dst] != int64(len(b.Indices)) || !slices.IsSorted(b.Indptr) {
				return fmt.Errorf("block %d: indptr %.100s", i, fmt.Sprint(b.Indptr))
			}
			for r := range b.Dst {
				var text strings.Builder
				for e := b.Indptr[r]; e < b.Indptr[r+1]; e++ {
					if uint64(b.Indices[e]) >= uint64(b.Src) {
						return fmt.Errorf("block %d: edge %d: number %d of %d", i, e, b.Indices[e], b.Src)
					}
					fmt.Fprint(&text, nodes[b.Indices[e]], ":", b.EdgeIDs[e], " ")
				}
				rows[k][nodes[b.First+r]] = text.String()
			}
		}
		if !maps.Equal(rows[0], rows[1]) {
			return fmt.Errorf("block %d: rows %.300s, want %.300s", i, fmt.Sprint(rows[0]), fmt.Sprint(rows[1]))
		}
	}
	return nil
}

// sameSample sees an edge, an edge id or a row that is off.
func TestSameSample(t *testing.T) {
	batch := func() batchtest.Batch {
		return batchtest.Batch{
			IDBits: 32, EdgeIDBits: 32, Nodes: []int64{7, 8, 9}, Output: []int64{7}, OutputIndex: []int64{0},
			Blocks: []batchtest.Block{{Src: 3, Dst: 1, Indptr: []int64{0, 2}, Indices: []int64{1, 2}, EdgeIDs: []int64{5, 6}}},
		}
	}
	moved := batch()
	moved.Nodes, moved.Blocks[0].Indices = []int64{7, 9, 8}, []int64{2, 1}
	if err := sameSample(moved, batch()); err != nil {
		t.Errorf("a renumbered batch: %v", err)
	}
	other := batch()
	hop := &other.Blocks[0]
	for name, place := range map[string]*int64{
		"id bits": &other.IDBits, "edge id bits": &other.EdgeIDBits, "nodes": &other.Nodes[0], "output": &other.Output[0],
		"output index": &other.OutputIndex[0], "sources": &hop.Src, "destinations": &hop.Dst, "first": &hop.First,
		"indptr": &hop.Indptr[0], "indices": &hop.Indices[0], "edge ids": &hop.EdgeIDs[0],
	} {
		*place ^= 1
		if sameSample(other, batch()) == nil {
			t.Errorf("%s: %v passes", name, other)
		}
		*place ^= 1
	}
	trees, fewer := batch(), batch()
	trees.Trees, fewer.Blocks = []int64{0, 0, 0}, nil
	if sameSample(trees, batch()) == nil || sameSample(fewer, batch()) == nil {
		t.Error("trees or a hop less pass")
	}
}
