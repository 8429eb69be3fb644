package times

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Keys ascend as times do, and tell which they are of.
func TestKeys(t *testing.T) {
	ascending := []float64{math.Inf(-1), -math.MaxFloat64, -2.5, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, 2.5, math.MaxFloat64, math.Inf(1)}
	keys := make([]int64, len(ascending))
	for i, x := range ascending {
		if keys[i] = Key(x); Time(keys[i]) != x {
			t.Errorf("expected the time %v, got %v", x, Time(keys[i]))
		}
	}
	if !slices.IsSorted(keys) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
		t.Errorf("expected keys that ascend, got %v", keys)
	}
	if Key(math.Copysign(0, -1)) != Key(0) {
		t.Error("expected one key of 0 and -0")
	}
}

// A bound leaves the same edges as a comparison of every edge, at the ends of the integers,
// too.
func TestWithin(t *testing.T) {
	row := []int64{math.MinInt64, math.MinInt64, -7, -7, 0, 3, 3, 3, 9, math.MaxInt64}
	for _, float := range []bool{false, true} {
		r := SortedRows{Edges: slices.Clone(row), Float: float}
		if float {
			for i, x := range row {
				r.Edges[i] = Key(float64(x))
			}
		}
		for _, bound := range append([]int64{-8, 1, 4, 10}, row...) {
			for _, window := range []float64{0, 1, 3, 10, 1 << 61, math.Inf(1)} {
				for _, before := range []bool{false, true} {
					key := bound
					if float {
						key = Key(float64(bound))
					}
					first, count := r.Within(0, int64(len(row)), key, &Rule{Before: before, Window: window})
					for i, x := range row {
						there := x < bound || x == bound && !before
						if float {
							there = there && float64(x) >= float64(bound)-window
						} else if !math.IsInf(window, 1) && bound >= math.MinInt64+int64(window) {
							there = there && x >= bound-int64(window)
						}
						if got := int64(i) >= first && int64(i) < first+count; got != there {
							t.Fatalf("float %v, time %d, bound %d, window %v, before %v: expected %v, got %v", float, x, bound, window, before, there, got)
						}
					}
				}
			}
		}
	}
}

// Rows that are searched side by side are the rows that are searched one by one, of every length and number.
func TestWithinEach(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	for _, rows := range []int{0, 1, 2, Side - 1, Side, Side + 1, 3*Side + 7} {
		r := SortedRows{}
		var starts, counts []int64
		for i := range rows {
			n := random.Int64N(40)
			if i%7 == 0 {
				n *= 50
			}
			starts, counts = append(starts, int64(len(r.Edges))), append(counts, n)
			key := int64(-30)
			for range n {
				key += random.Int64N(3)
				r.Edges = append(r.Edges, key)
			}
		}
		for _, rule := range []Rule{{Window: math.Inf(1)}, {Window: 4}, {Window: 0, Before: true}, {Window: math.Inf(1), Before: true}} {
			for _, bound := range []int64{math.MinInt64, -40, -20, 0, 7, math.MaxInt64} {
				first, count := slices.Clone(starts), slices.Clone(counts)
				r.WithinEach(first, count, bound, &rule)
				for i := range starts {
					f, n := r.Within(starts[i], counts[i], bound, &rule)
					if n != count[i] || n > 0 && f != first[i] {
						t.Fatalf("rows %d, rule %+v, bound %d, row %d: expected %d edges from %d on, got %d from %d on", rows, rule, bound, i, n, f, count[i], first[i])
					}
				}
			}
		}
	}
}
