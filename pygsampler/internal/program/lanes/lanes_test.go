package lanes

import (
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// each runs a test for lengths about those of vectors, with and without wide ones.
func each(t *testing.T, test func(t *testing.T, n int, draw func(i int) uint64)) {
	t.Helper()
	defer func() { widest = 512 }()
	for _, widest = range []int{0, 512} {
		for _, n := range []int{0, 1, 7, 8, 9, 31, 32, 33, 64, 100, 517} {
			state := rng.NewStream(3, 0, uint64(n), 0, rng.Shuffling).State(1)
			test(t, n, func(i int) uint64 { return rng.Draw(state, i) })
		}
	}
}

func TestSift(t *testing.T) {
	each(t, func(t *testing.T, n int, draw func(i int) uint64) { siftOf[int32](t, n, draw) })
	each(t, func(t *testing.T, n int, draw func(i int) uint64) { siftOf[int64](t, n, draw) })
}

func siftOf[I int32 | int64](t *testing.T, n int, draw func(i int) uint64) {
	const size = 1000
	members := make([]uint64, (size+63)/64)
	for i := range members {
		members[i] = draw(i) & draw(i+100)
	}
	ids, want, kept := make([]I, n), []int64{}, []I{}
	for i := range ids {
		ids[i] = I(rng.Below(draw(i+200), size))
		if members[ids[i]/64]>>(ids[i]%64)&1 != 0 {
			want, kept = append(want, 40+int64(i)), append(kept, ids[i])
		}
	}
	places, of := make([]int64, n), make([]I, n)
	for _, with := range [][]I{nil, of} {
		got, ok := Sift(ids, members, size, 40, places, with)
		if !ok || !slices.Equal(places[:got], want) || with != nil && !slices.Equal(of[:got], kept) {
			t.Fatalf("%d ids of %T: expected %v %v, got %v %v", n, ids, want, kept, places[:got], of[:got])
		}
	}
	for _, wrong := range []I{-1, size} {
		for i := range ids {
			own := slices.Clone(ids)
			own[i] = wrong
			if _, ok := Sift(own, members, size, 0, places, nil); ok {
				t.Fatalf("id %d of %d: expected that it is refused", wrong, n)
			}
		}
	}
}

func TestClaim(t *testing.T) {
	each(t, func(t *testing.T, n int, draw func(i int) uint64) { claimOf[int32](t, n, draw) })
	each(t, func(t *testing.T, n int, draw func(i int) uint64) { claimOf[int64](t, n, draw) })
}

// claimOf numbers ids in two calls, of few vertices and of many: vectors have none twice, or several.
func claimOf[I int32 | int64](t *testing.T, n int, draw func(i int) uint64) {
	for _, size := range []uint64{3, 50, 100_000} {
		const tag, limit = 5 << 20, 1 << 20
		words, nodes := make([]uint32, size), make([]I, 2*n+1)
		for i := range words {
			words[i] = uint32(draw(i)) &^ tag // of other numberings
		}
		numbers, want, numbered := map[I]I{}, []I{}, int64(0)
		for call := range 2 {
			ids, expect := make([]I, n), make([]I, n)
			for i := range ids {
				ids[i] = I(rng.Below(draw(1000*(call+1)+i), size))
				if _, there := numbers[ids[i]]; !there {
					numbers[ids[i]] = I(len(want))
					want = append(want, ids[i])
				}
				expect[i] = numbers[ids[i]]
			}
			var ok bool
			if numbered, ok = Claim(ids, words, tag, limit, nodes, numbered); !ok || !slices.Equal(ids, expect) || !slices.Equal(nodes[:numbered], want) {
				t.Fatalf("%d ids of %T among %d: expected %v of %v, got %v of %v", n, nodes, size, expect, want, ids, nodes[:numbered])
			}
		}
		for i := range n {
			for _, wrong := range []I{-1, I(size)} {
				ids := make([]I, n)
				for k := range ids {
					ids[k] = I(k % 3)
				}
				ids[i] = wrong
				if _, ok := Claim(ids, words, tag, limit, nodes, 0); ok {
					t.Fatalf("id %d at %d of %d: expected that it is refused", wrong, i, n)
				}
			}
		}
	}
}

// integers are the two of a value, by their definition.
func integers(x float64, powers [4]float64) (first, second int64) {
	first = int64(x * powers[0])
	return first, int64((x - float64(float64(first)*powers[1])) * powers[2])
}

func TestRowSums(t *testing.T) {
	each(t, func(t *testing.T, n int, draw func(i int) uint64) {
		for _, among := range []uint64{1, 4, 40, 100_000} {
			for _, bits := range []int{10, 30, 50} { // few lose much of a value
				const top = 3 // of values below 8
				powers := [4]float64{math.Ldexp(1, bits-top), math.Ldexp(1, top-bits), math.Ldexp(1, 2*bits-top), math.Ldexp(1, top-2*bits)}
				values, narrow, wide := make([]float64, n), make([]int32, n), make([]int64, n)
				numbers, sums := map[uint64]int{}, [][2]int64{}
				for i := range values {
					values[i] = math.Ldexp(float64(int64(draw(i)))/(1<<63), int(draw(i+1000)%80)-77+top)
					if draw(i+2000)%9 == 0 {
						values[i] = math.Copysign(0, -1)
					}
					key := rng.Below(draw(i+3000), among)
					row, there := numbers[key]
					if !there {
						row = len(sums)
						numbers[key], sums = row, append(sums, [2]int64{})
					}
					narrow[i], wide[i] = int32(row), int64(row)
					a, b := integers(values[i], powers)
					sums[row][0] += a
					sums[row][1] += b
				}
				want := make([]uint64, len(sums))
				for row, of := range sums {
					want[row] = math.Float64bits(float64(float64(of[0])*powers[1]) + float64(float64(of[1])*powers[3]))
				}
				rows := int64(len(sums))
				several := max(min(int64(n)-rows, rows), 0)
				made := func(narrow []int32, wide []int64) ([]float64, bool) {
					s := RowSums{Powers: powers, To: make([]float64, rows+1)[:rows], Parts: make([]int64, 2*several), Slots: make([]int64, several)}
					half := n / 2
					if narrow != nil {
						if !s.Add(values[:half], narrow[:half], nil) || !s.Add(values[half:], narrow[half:], nil) {
							return nil, false
						}
					} else if !s.Add(values[:half], nil, wide[:half]) || !s.Add(values[half:], nil, wide[half:]) {
						return nil, false
					}
					s.End()
					return s.To, true
				}
				for _, with32 := range []bool{false, true} {
					of32 := narrow
					if !with32 {
						of32 = nil
					}
					got, ok := made(of32, wide)
					if !ok {
						t.Fatalf("%d values: expected sums, got none", n)
					}
					for row, x := range got {
						if math.Float64bits(x) != want[row] {
							t.Fatalf("%d values, %d bits, row %d: expected %v, got %v", n, bits, row, math.Float64frombits(want[row]), x)
						}
					}
				}
				for i := range wide {
					for _, wrong := range []int64{-1, rows, rows + 7} {
						own := slices.Clone(wide)
						own[i] = wrong
						if _, ok := made(nil, own); ok && n > 0 {
							t.Fatalf("row %d at %d of %d: expected that it is refused", wrong, i, n)
						}
					}
				}
			}
		}
	})
}

func TestRace(t *testing.T) {
	each(t, func(t *testing.T, n int, draw func(i int) uint64) {
		states, weights, bound := make([]uint64, n), make([]float64, n), 0.25
		draws, places := []uint64{}, []int64{}
		for i := range states {
			states[i], weights[i] = draw(i), rng.Uniform(draw(i+1000))
			x := rng.Draw(states[i], 0)
			if 1-rng.Uniform(x) <= bound*weights[i] {
				draws, places = append(draws, x), append(places, 7+int64(i))
			}
		}
		gotDraws, gotPlaces := make([]uint64, n), make([]int64, n)
		got := Race(states, weights, bound, 7, gotDraws, gotPlaces)
		if !slices.Equal(gotDraws[:got], draws) || !slices.Equal(gotPlaces[:got], places) {
			t.Fatalf("%d: expected %v at %v, got %v at %v", n, draws, places, gotDraws[:got], gotPlaces[:got])
		}
	})
}

func TestDraw(t *testing.T) {
	each(t, func(t *testing.T, n int, draw func(i int) uint64) {
		sums, total := make([]uint64, n+1), uint64(0)
		for i := range sums {
			total += 1 + draw(i)%5
			sums[i] = total
		}
		for _, m := range []int{0, 1, 15, 16, 33, 200} {
			got, want := make([]uint64, m), make([]uint64, m)
			for k := range got {
				got[k] = draw(k + 1000)
				x := rng.Below(got[k], total)
				want[k] = uint64(sort.Search(len(sums), func(i int) bool { return sums[i] > x }))
			}
			if Draw(sums, got); !slices.Equal(got, want) {
				t.Fatalf("%d sums: expected %v, got %v", len(sums), want, got)
			}
		}
	})
}

func TestReductions(t *testing.T) {
	each(t, func(t *testing.T, n int, draw func(i int) uint64) {
		values, most := make([]float64, n), 0.0
		for i := range values {
			values[i] = rng.Uniform(draw(i)) - 0.25
			most = max(most, math.Abs(values[i]))
		}
		if got := Largest(values); got != math.Float64bits(most) {
			t.Fatalf("largest of %d: expected %v, got %v", n, most, math.Float64frombits(got))
		}
		powers := [3]float64{0x1p40, 0x1p-40, 0x1p80}
		first, second, parts, sums := int64(0), int64(0), make([]int64, 2*n), make([]float64, n)
		for i, x := range values {
			q := int64(x * powers[0])
			parts[2*i], parts[2*i+1] = q, int64((x-float64(float64(q)*powers[1]))*powers[2])
			first, second = first+parts[2*i], second+parts[2*i+1]
			sums[i] = float64(float64(q)*powers[1]) + float64(float64(parts[2*i+1])*0x1p-80)
		}
		if a, b := Sums(values, powers); a != first || b != second {
			t.Fatalf("sums of %d: expected %d and %d, got %d and %d", n, first, second, a, b)
		}
		got := make([]float64, n)
		if Values(parts, [2]float64{0x1p-40, 0x1p-80}, got); !slices.Equal(got, sums) {
			t.Fatalf("values of %d: expected %v, got %v", n, sums, got)
		}
		for i := range values {
			values[i] = math.Abs(values[i]) + math.SmallestNonzeroFloat64
		}
		if n > 0 {
			values[n-1] = math.MaxFloat64
		}
		if Outside(values) {
			t.Fatalf("%d positive values: expected none outside", n)
		}
		for i, x := range []float64{0, math.Copysign(0, -1), -1, math.Inf(1), math.NaN()} {
			if n > 0 {
				if values[n*i/5] = x; !Outside(values) {
					t.Fatalf("%v among %d: expected that it is outside", x, n)
				}
				values[n*i/5] = 1
			}
		}
	})
}

func TestMap(t *testing.T) {
	want := map[Op]func(a, b float64) float64{
		Add: func(a, b float64) float64 { return a + b }, Sub: func(a, b float64) float64 { return a - b },
		Mul: func(a, b float64) float64 { return a * b }, Div: func(a, b float64) float64 { return a / b },
		Sqrt: func(a, _ float64) float64 { return math.Sqrt(a) },
		Min: func(a, b float64) float64 {
			if b < a {
				return b
			}
			return a
		},
		Max: func(a, b float64) float64 {
			if b > a {
				return b
			}
			return a
		},
		Relu: func(a, _ float64) float64 {
			if a > 0 {
				return a
			}
			return 0
		},
	}
	special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, math.SmallestNonzeroFloat64, math.MaxFloat64}
	each(t, func(t *testing.T, n int, draw func(i int) uint64) {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = special[draw(i)%9], special[draw(i+1000)%9]
		}
		for op, of := range want {
			for which := range 3 { // an array of its own, or one of the others
				to, a, b := make([]float64, n), slices.Clone(x), slices.Clone(y)
				switch which {
				case 1:
					to = a
				case 2:
					to = b
				}
				Map(op, to, a, b)
				for i := range to {
					if w := of(x[i], y[i]); math.Float64bits(to[i]) != math.Float64bits(w) && (w == w || to[i] == to[i]) {
						t.Fatalf("op %d of %v and %v: expected %v, got %v", op, x[i], y[i], w, to[i])
					}
				}
			}
		}
	})
}
