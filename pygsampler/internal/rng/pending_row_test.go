package rng

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Rows of every number of edges and every fanout, by vectors of every width: as Settle has each.
func TestDrawPendingIsThatOfEach(t *testing.T) {
	var c Chooser
	draw := rand.New(rand.NewPCG(1, 2))
	var sums []uint64
	var positions, want []int64
	var rows []PendingRow
	for edges := int64(2); edges <= short; edges++ {
		for fanout := int64(1); fanout < edges; fanout++ {
			start := int64(len(sums))
			for total := uint64(0); int64(len(sums)) < start+edges; sums = append(sums, total) {
				total += 1 + draw.Uint64()>>(32+draw.IntN(32))
			}
			pos := make([]int64, fanout)
			row := PendingRow{At: int64(len(positions)), Fanout: fanout, Start: start, Edges: edges, State: draw.Uint64()}
			for j := range pos {
				pos[j] = draw.Int64N(min(edges, 5+int64(j)))
				if contains(pos[:j], pos[j]) {
					row.Refused |= 1 << j
				}
			}
			positions, rows = append(positions, pos...), append(rows, row)
			c.Settle(pos, Weights{Sums: sums[start:]}, row.State, nil, false, fanout, 0)
			want = append(want, pos...)
		}
	}
	for _, widest := range []int{64, 512} {
		got := slices.Clone(positions)
		if drawLeft(got, sums, rows, widest); !slices.Equal(got, want) {
			t.Errorf("%d bits: other positions", widest)
		}
	}
}
