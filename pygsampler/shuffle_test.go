package pygsampler

import (
	"slices"
	"testing"
)

func TestShuffle(t *testing.T) {
	narrow, wide := make([]int32, 1000), make([]int64, 1000)
	for i := range wide {
		narrow[i], wide[i] = int32(i), int64(i)
	}
	if err := Shuffle(address(narrow), 1000, 32, 3, 4); err != nil {
		t.Fatal(err)
	}
	if err := Shuffle(address(wide), 1000, 64, 3, 4); err != nil {
		t.Fatal(err)
	}
	for i, v := range wide {
		if int64(narrow[i]) != v {
			t.Fatal("the order depends on the width")
		}
	}
	if slices.IsSorted(wide) {
		t.Error("not shuffled")
	}
	if slices.Sort(wide); wide[0] != 0 || wide[999] != 999 || len(slices.Compact(wide)) != 1000 {
		t.Error("no permutation")
	}
	if err := Shuffle(0, 0, 64, 0, 0); err != nil {
		t.Error(err)
	}
	for _, k := range []struct {
		length, epoch int64
		bits          int
		kind          Kind
		text          string
	}{
		{5, 1 << 24, 64, KindValue, "epoch: expected an integer in [0, 16777215], got 16777216"},
		{5, -1, 64, KindValue, "epoch: expected an integer in [0, 16777215], got -1"},
		{-5, 0, 64, KindValue, "array: expected a length >= 0, got -5"},
		{5, 0, 16, KindType, "array: expected 32 or 64 bits, got 16"},
	} {
		err := Shuffle(address(wide), k.length, k.bits, 0, k.epoch)
		if kind, text := KindOf(err); kind != k.kind || text != k.text {
			t.Errorf("got %s: %s, want %s: %s", kind, text, k.kind, k.text)
		}
	}
}
