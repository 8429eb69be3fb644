package cuda

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// sameSample compares two batches but for the numbers of vertices beyond the seeds:
// every hop has the same destinations before its other vertices, and each of them
// the same edges, in draw order, by original ids.
func sameSample(got, want [][]int64) error {
	nodes := [2][]int64{got[1], want[1]}
	if !slices.Equal(got[0], want[0]) || !slices.Equal(got[2], want[2]) || !slices.Equal(got[3], want[3]) {
		return errors.New("widths, seeds or their places differ")
	}
	sorted := [2][]int64{slices.Sorted(slices.Values(nodes[0])), slices.Sorted(slices.Values(nodes[1]))}
	if !slices.Equal(sorted[0], sorted[1]) {
		return errors.New("the vertices differ")
	}
	for block := 0; 4+4*block < len(want); block++ {
		var rows [2]map[int64]string
		at := 4 + 4*block
		sizes := want[at]
		if !slices.Equal(got[at], sizes) {
			return fmt.Errorf("block %d: sizes %v, want %v", block, got[at], sizes)
		}
		for k, batch := range [2][][]int64{got, want} {
			rows[k] = make(map[int64]string)
			indptr, ids, edgeIDs := batch[at+1], batch[at+2], batch[at+3]
			if indptr[0] != 0 || indptr[sizes[1]] != sizes[2] || !slices.IsSorted(indptr) {
				return fmt.Errorf("block %d: indptr %.100s", block, fmt.Sprint(indptr))
			}
			for r := range sizes[1] {
				var text strings.Builder
				for e := indptr[r]; e < indptr[r+1]; e++ {
					if uint64(ids[e]) >= uint64(sizes[0]) {
						return fmt.Errorf("block %d: edge %d: number %d of %d", block, e, ids[e], sizes[0])
					}
					fmt.Fprint(&text, nodes[k][ids[e]], ":", edgeIDs[e], " ")
				}
				rows[k][nodes[k][r]] = text.String()
			}
		}
		if !maps.Equal(rows[0], rows[1]) {
			return fmt.Errorf("block %d: rows %.300s, want %.300s", block, fmt.Sprint(rows[0]), fmt.Sprint(rows[1]))
		}
	}
	return nil
}

// sameSample sees an edge, an edge id or a row that is off.
func TestSameSample(t *testing.T) {
	batch := func() [][]int64 {
		return [][]int64{{32, 32, 1}, {7, 8, 9}, {7}, {0}, {3, 1, 2}, {0, 2}, {1, 2}, {5, 6}}
	}
	moved := batch()
	moved[1], moved[6] = []int64{7, 9, 8}, []int64{2, 1}
	if err := sameSample(moved, batch()); err != nil {
		t.Errorf("a renumbered batch: %v", err)
	}
	for array, value := range map[int]int64{1: 10, 2: 8, 3: 1, 4: 4, 5: 1, 6: 0, 7: 7} {
		other := batch()
		other[array][0] = value
		if sameSample(other, batch()) == nil {
			t.Errorf("array %d: %v passes", array, other[array])
		}
	}
}
