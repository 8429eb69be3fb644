package pygsampler

import (
	"math"
	"slices"
	"testing"
)

func TestNewOptions(t *testing.T) {
	fanouts := []int64{10, -1, 0, 1<<31 - 1}
	o, err := NewOptions(address(fanouts), 4, Options{Replace: true, Seed: math.MaxUint64 - 4, Mode: "queue", MapLimit: 7, Ordered: true})
	if err != nil {
		t.Fatal(err)
	}
	fanouts[0] = 99 // copied
	if !slices.Equal(o.Fanouts, []int64{10, -1, 0, 1<<31 - 1}) || !o.Replace || o.Seed != 1<<64-5 || o.Mode != "queue" || o.MapLimit != 7 {
		t.Errorf("got %+v", o)
	}
	for _, k := range []struct {
		fanouts []int64
		options Options
		text    string
	}{
		{nil, Options{Mode: "auto"}, "fanouts: expected 1 to 256 hops, got 0"},
		{make([]int64, 257), Options{Mode: "auto"}, "fanouts: expected 1 to 256 hops, got 257"},
		{[]int64{3, -2}, Options{Mode: "auto"}, "fanouts[1]: expected an integer >= -1, got -2"},
		{[]int64{1 << 31}, Options{Mode: "auto"}, "fanouts[0]: expected at most 2147483647 (-1 for all), got 2147483648"},
		{[]int64{1<<63 - 1}, Options{Mode: "auto"}, "fanouts[0]: expected at most 2147483647 (-1 for all), got 9223372036854775807"},
		{[]int64{3}, Options{Mode: "fast"}, "mode: expected 'auto', 'persistent', 'fused', 'bsp' or 'queue', got 'fast'"},
		{[]int64{3}, Options{Mode: "bsp", OnlyNew: true}, "mode: expected 'auto' or 'persistent' with frontier='new' or disjoint=True, got 'bsp'"},
		{[]int64{3}, Options{Mode: "queue", Disjoint: true}, "mode: expected 'auto' or 'persistent' with frontier='new' or disjoint=True, got 'queue'"},
		{[]int64{3}, Options{Mode: "auto", MapLimit: -1}, "map_limit: expected at least 0, got -1"},
	} {
		_, err := NewOptions(address(k.fanouts), int64(len(k.fanouts)), k.options)
		if kind, text := KindOf(err); kind != KindValue || text != k.text {
			t.Errorf("got %s: %s, want %s", kind, text, k.text)
		}
	}
}

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
