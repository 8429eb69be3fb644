package cuda

import (
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

func TestBlocksWithinAShare(t *testing.T) {
	for _, k := range []struct{ share, blocks, resident, want int }{
		{0, 264, 528, 264}, {1000, 264, 528, 264}, {500, 264, 528, 264}, {250, 264, 528, 132}, {1, 264, 528, 1}, {1, 1, 1, 1}, {999, 7, 4, 3},
	} {
		c := Call{Share: k.share}
		if got := c.Within(k.blocks, k.resident); got != k.want {
			t.Errorf("%+v: got %d", k, got)
		}
	}
}

// Launches of one batch and of several take no more blocks than their share, and the batches
// are those of the CPU.
func TestShares(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3060, 64, 64, false)
	r := request.Request{Hops: request.Hops{Fanouts: []int64{3, 4, 5}}, Batch: request.Batch{Seed: 1 << 63, Epoch: 7}}
	k := kernels(t, d)
	for _, share := range []int{0, 1, 30, 500, WholeShare} {
		for _, count := range []int{1, 5, 11} {
			like := with(Call{Stream: s.Handle(), Own: count%2 == 1, Share: share}, r)
			checkMany(t, e, s, g, d, manyCalls(g, manySeeds(count, 3060), like))
			f, err := e.flight(d, &like)
			if err != nil {
				t.Fatal(err)
			}
			most := max(k.resident(d)*share/WholeShare, 1)
			if got := f.Grid(k.together); share > 0 && got > most {
				t.Errorf("share %d: %d blocks of %d", share, got, most)
			}
			// Each of several has one block at least.
			if got := count * k.share(f, count); share > 0 && got > max(most, count) {
				t.Errorf("share %d of %d batches: %d blocks of %d", share, count, got, most)
			}
		}
	}
}
