package rng

import (
	"math/big"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
)

// The published sequence of SplitMix64 seeded with 1234567.
func TestSplitMix64KnownAnswers(t *testing.T) {
	want := []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
	}
	for j, w := range want {
		if got := Draw(1234567, j); got != w {
			t.Errorf("draw %d: got %d, want %d", j, got, w)
		}
	}
}

func TestAdvance(t *testing.T) {
	for _, state := range []uint64{0, 1234567, 1<<64 - 1} {
		for _, n := range []int{0, 1, 1024, 1 << 40} {
			for j := range 3 {
				if got, want := Draw(Advance(state, n), j), Draw(state, n+j); got != want {
					t.Errorf("draw %d after %d: got %x, want %x", j, n, got, want)
				}
			}
		}
	}
}

// Below is the floor of x * n / 2^64, and so in [0, n).
func TestBelow(t *testing.T) {
	values := []uint64{0, 1, 2, 3, 63, 64, 65, 1<<31 - 1, 1 << 31, 1 << 48, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	for j := range 1000 {
		values = append(values, Draw(3, j))
	}
	for i, x := range values {
		n := max(values[(i*7+5)%len(values)], 1)
		product := new(big.Int).Mul(new(big.Int).SetUint64(x), new(big.Int).SetUint64(n))
		if got, want := Below(x, n), product.Rsh(product, 64).Uint64(); got != want || got >= n {
			t.Errorf("Below(%d, %d) = %d, want %d", x, n, got, want)
		}
	}
}

func ascending(n int) []int32 {
	a := make([]int32, n)
	for i := range a {
		a[i] = int32(i)
	}
	return a
}

func TestShuffle(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 100, 4097} {
		a, again, wide := ascending(n), ascending(n), make([]int64, n)
		for i := range wide {
			wide[i] = int64(i)
		}
		Shuffle(a, 5, 6)
		Shuffle(again, 5, 6)
		Shuffle(wide, 5, 6)
		for i := range wide {
			if a[i] != again[i] || int64(a[i]) != wide[i] {
				t.Fatalf("n=%d: the order of %d depends on more than seed, epoch and length", n, i)
			}
		}
		if slices.Sort(again); !slices.Equal(again, ascending(n)) {
			t.Errorf("n=%d: no permutation", n)
		}
	}
	a, b, c := ascending(100), ascending(100), ascending(100)
	Shuffle(a, 5, 6)
	Shuffle(b, 5, 7)
	Shuffle(c, 6, 6)
	if slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("another epoch or seed gives the same order")
	}
}

// All orders of a short array are equally likely over seeds, and over the epochs
// of a seed.
func TestShuffleIsUniform(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5} {
		orders := 1
		for k := 2; k <= n; k++ {
			orders *= k
		}
		for _, over := range []string{"seeds", "epochs"} {
			counts := map[string]int{}
			trials := 400 * orders
			for i := range trials {
				a := ascending(n)
				if over == "seeds" {
					Shuffle(a, uint64(i), 3)
				} else {
					Shuffle(a, 3, uint32(i))
				}
				key := make([]byte, n)
				for j, x := range a {
					key[j] = byte(x)
				}
				counts[string(key)]++
			}
			x := 0.0
			for _, c := range counts {
				d := float64(c) - 400
				x += d * d / 400
			}
			x += float64(orders-len(counts)) * 400
			uniformity.Plausible(t, x, orders-1, "orders of %d over %s", n, over)
		}
	}
}
