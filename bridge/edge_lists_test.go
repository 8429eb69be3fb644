package bridge

import (
	"slices"
	"testing"
)

// Words that are no batch are refused, and the edge lists have the hops of their batch.
func TestEdgeLists(t *testing.T) {
	r := newRing(t, 100)
	s, err := SamplerNew(document("auto", false, []int64{1}), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	seeds := []int64{5, 7, 5}
	mem, err := sample(r.handle, s, address(seeds), 3, 64, 0, 0, 0, 0, 1)
	if err != nil || mem <= 0 {
		t.Fatal(mem, err)
	}
	joined, err := EdgeLists(view(mem, 2)[1], 0)
	if err != nil {
		t.Fatal(err)
	}
	if words := view(view(joined, 2)[1], 16); words[2] != 64 || words[3] != 1 || words[4] != 1 || words[5] != 1 {
		t.Errorf("got %v", words)
	}
	// The same by the call that samples, at once or by the executor.
	want := view(view(joined, 2)[1], 64)
	want = want[:want[0]]
	for _, flags := range []int64{edgeLists, edgeLists | prompt} {
		mem, err := flagged(flags, r.handle, s, address(seeds), 3, 64, 0, 0, 0, 0, 1)
		for err == nil && mem < 0 {
			mem, err = Wait(-mem, 1000)
		}
		if err != nil || mem == 0 {
			t.Fatal(mem, err)
		}
		if got := view(view(mem, 2)[1], 64)[:len(want)]; !slices.Equal(got, want) {
			t.Errorf("flags %d: got %v, want %v", flags, got, want)
		}
	}
	_, err = flagged(edgeLists|prompt, r.handle, s, address(seeds), -3, 64, 0, 0, 0, 0, 1)
	fails(t, err, "ValueError: seeds: expected a length >= 0, got -3")
	_, err = EdgeLists(address(make([]int64, 16)), 0)
	fails(t, err, "ValueError: words: expected those of a batch of blocks, got others")
	_, err = EdgeLists(address(seeds)+1, 0)
	fails(t, err, "")
	_, err = EdgeLists(0, 0)
	fails(t, err, "")
}
