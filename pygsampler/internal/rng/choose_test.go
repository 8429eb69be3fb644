package rng

import (
	"slices"
	"testing"
)

// floyd is Robert Floyd's algorithm with a map, in draw order.
func floyd(n int, state uint64, degree int64) []int64 {
	chosen := map[int64]bool{}
	var out []int64
	for j := range n {
		top := degree - int64(n) + int64(j)
		p := int64(Below(Draw(state, j), uint64(top+1)))
		if chosen[p] {
			p = top
		}
		chosen[p] = true
		out = append(out, p)
	}
	return out
}

// law fails unless pos is distinct positions of [0, degree).
func law(t *testing.T, pos []int64, degree int64) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(pos))
	if len(sorted) > 0 && (sorted[0] < 0 || sorted[len(sorted)-1] >= degree) {
		t.Fatalf("degree %d: %v leaves [0, degree)", degree, pos)
	}
	if len(slices.Compact(sorted)) != len(pos) {
		t.Fatalf("degree %d: %v repeats a position", degree, pos)
	}
}

// Every degree to 70 and every fanout to 40 that draws at all, by every path: one
// word, the scanned filter, the hash set.
func TestDistinctEveryDegreeAndFanout(t *testing.T) {
	var c Chooser
	for degree := int64(1); degree <= 70; degree++ {
		for n := 0; n < int(min(degree, 41)); n++ {
			pos, hashed := make([]int64, n), make([]int64, n)
			for i := range 200 {
				state := Mix(uint64(i) + uint64(degree)<<32 + uint64(n)<<48)
				want := floyd(n, state, degree)
				c.Distinct(pos, state, degree)
				c.distinctHashed(hashed, state, degree)
				if !slices.Equal(pos, want) || !slices.Equal(hashed, want) {
					t.Fatalf("degree %d fanout %d: got %v and %v, want %v", degree, n, pos, hashed, want)
				}
				law(t, pos, degree)
			}
		}
	}
}

// Degrees around the switches of paths, and far above 2^31, with fanouts on both
// sides of every limit. One Chooser serves all, as it does a worker.
func TestDistinctLarge(t *testing.T) {
	var c Chooser
	for _, n := range []int{1, 2, 31, 32, 33, 34, 64, 65, 500, 1024, 2000, 40, 3, 1999} {
		for _, extra := range []int64{1, 2, 30, 64, 1000, 1 << 20, 1<<31 - 1, 1 << 31, 1 << 40, 1<<62 - 1} {
			degree := int64(n) + extra
			for i := range 20 {
				pos, state := make([]int64, n), Mix(uint64(i)*golden+uint64(degree))
				c.Distinct(pos, state, degree)
				if want := floyd(n, state, degree); !slices.Equal(pos, want) {
					t.Fatalf("degree %d fanout %d: got %.200v, want %.200v", degree, n, pos, want)
				}
				law(t, pos, degree)
			}
		}
	}
}

// Between 65 and a few hundred, every fanout that is scanned: draws meet often
// there, through every word of the filter.
func TestDistinctScanned(t *testing.T) {
	var c Chooser
	for degree := int64(65); degree <= 600; degree += 5 {
		for n := 1; n <= scanned; n++ {
			for i := range 10 {
				pos, state := make([]int64, n), Mix(uint64(i)+uint64(degree)<<20+uint64(n))
				c.Distinct(pos, state, degree)
				if want := floyd(n, state, degree); !slices.Equal(pos, want) {
					t.Fatalf("degree %d fanout %d: got %v, want %v", degree, n, pos, want)
				}
			}
		}
	}
}

// The set of the hashed path is emptied by a stamp; when stamps run out, old
// entries must not come back to life.
func TestDistinctStampWraps(t *testing.T) {
	var c Chooser
	pos, want := make([]int64, 40), floyd(40, 7, 1000)
	for range 3 {
		c.Distinct(pos, 7, 1000)
		if !slices.Equal(pos, want) || c.stamp != 1 {
			t.Fatalf("stamp %d: got %v, want %v", c.stamp, pos, want)
		}
		c.stamp = 1<<32 - 1
	}
}

func TestRepeated(t *testing.T) {
	for _, degree := range []int64{1, 2, 7, 64, 1 << 31, 1 << 40} {
		pos := make([]int64, 50)
		Repeated(pos, 99, degree)
		for j, p := range pos {
			if want := int64(Below(Draw(99, j), uint64(degree))); p != want || p < 0 || p >= degree {
				t.Fatalf("degree %d draw %d: got %d, want %d", degree, j, p, want)
			}
		}
	}
}

// Rows are drawn by the million: none may allocate once the set is as large as its
// largest row.
func TestChooserDoesNotAllocate(t *testing.T) {
	var c Chooser
	small, large := make([]int64, 32), make([]int64, 3000)
	c.Distinct(large, 1, 1<<20)
	if n := testing.AllocsPerRun(100, func() {
		c.Distinct(small, 1, 1<<20)
		c.Distinct(large, 1, 1<<20)
		Repeated(large, 1, 1<<20)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
