package smallmap

import (
	"math/rand/v2"
	"testing"
)

// A table is a map, and after Clear an empty one.
func TestAsAMap(t *testing.T) {
	var table Table
	random := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{0, 5000, 3, 300} {
		want := map[int64]int32{}
		if table.Find(0) != -1 {
			t.Fatal("expected no vertices")
		}
		for range count {
			v := random.Int64N(4000) << random.IntN(40)
			number, fresh := table.Number(v)
			known, there := want[v]
			if fresh == there || there && number != known || fresh && int(number) != len(want) {
				t.Fatalf("vertex %d: got %d, %t, known %d, %t", v, number, fresh, known, there)
			}
			want[v] = number
		}
		for v, number := range want {
			if table.Find(v) != number || table.Vertices[number] != v {
				t.Fatalf("vertex %d: expected %d, got %d", v, number, table.Find(v))
			}
		}
		for range count {
			v := random.Int64()
			if _, there := want[v]; !there && table.Find(v) != -1 {
				t.Fatalf("vertex %d: expected none, got %d", v, table.Find(v))
			}
		}
		table.Clear()
	}
}
