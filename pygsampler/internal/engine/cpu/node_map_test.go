package cpu

import (
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Each of the maps numbers vertices by first occurrence, over several numberings and calls.
func TestVertexMap(t *testing.T) {
	var m NodeMap
	defer m.Free()
	for _, k := range []struct{ nodes, most int64 }{{1000, 1000}, {1000, 40}, {1 << 40, 500}, {3 << 20, 2 << 20}, {3 << 20, 40}, {30 << 20, 20 << 20}} {
		for round := range uint64(3) {
			if err := m.Begin(k.nodes, k.most); err != nil {
				t.Fatal(err)
			}
			// Tags have run out in between, more than once, and what stands in the map has them again.
			for range 4200 {
				if err := m.Begin(k.nodes, k.most); err != nil {
					t.Fatal(err)
				}
			}
			nodes, n := make([]int64, 2001), int64(0)
			want, numbers := []int64{}, map[int64]int64{}
			for part := range uint64(4) {
				ids, expect := make([]int64, 10), make([]int64, 10)
				for i := range ids {
					ids[i] = int64(rng.Below(rng.Mix(round<<20|part<<10|uint64(i)), 60)) * (k.nodes / 60)
					if _, there := numbers[ids[i]]; !there {
						numbers[ids[i]] = int64(len(want))
						want = append(want, ids[i])
					}
					expect[i] = numbers[ids[i]]
				}
				asked := slices.Clone(ids)
				var err error
				if n, err = Claim(&m, ids, nodes, n); err != nil {
					t.Fatal(err)
				}
				if words, tag, limit, ok := m.Narrow(); ok {
					for i, v := range asked {
						if number := words[v] ^ tag; number >= limit || int64(number) != expect[i] {
							t.Fatalf("%+v: expected that %d has the number %d, got %d of less than %d", k, v, expect[i], number, limit)
						}
					}
				}
				asked = append(asked, 1)
				Find(&m, asked)
				if !slices.Equal(ids, expect) || !slices.Equal(asked, append(expect, -1)) || !slices.Equal(nodes[:n], want) {
					t.Fatalf("%+v: numbers %v, found %v, want %v; nodes %v, want %v", k, ids, asked, expect, nodes[:n], want)
				}
			}
		}
	}
	if m.Bytes() == 0 {
		t.Error("a map without memory")
	}
}
