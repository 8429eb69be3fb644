package rng

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
)

// Mix returns SplitMix64's finalizer of z, a bijection of 64-bit words.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * mixFirst
	z = (z ^ z>>27) * mixSecond
	return z ^ z>>31
}

// Draw returns draw j (from 0) of a row with a state.
func Draw(state uint64, j int) uint64 {
	return Mix(state + uint64(j+1)*golden)
}

// Advance returns the state whose draw 0 is draw n of a state.
func Advance(state uint64, n int) uint64 { return state + uint64(n)*golden }

// Part returns the state of a row in tree t of a disjoint batch, from the state of the row when all
// trees are one.
func Part(state, t uint64) uint64 { return Mix(state ^ (t+1)*golden) }

// OfType returns the state of a row for edges of a type, whose hash is h, from the state of the row
// in a homogeneous graph.
func OfType(state, h uint64) uint64 { return Mix(state ^ h) }

// Below reduces a draw to [0, n) by the high half of a 64-bit multiplication.
// The bias is below n / 2^64, which no test of a sampler can see.
func Below(x, n uint64) uint64 {
	hi, _ := bits.Mul64(x, n)
	return hi
}

// ahead is the number of elements that a shuffle prefetches at a time.
const ahead = 256

// Shuffle permutes a by Fisher and Yates from the back; the permutation depends on seed, epoch and
// len(a) only. Draws do not depend on the elements, so that several elements are prefetched at
// once: otherwise an array that exceeds the caches waits for memory at each element.
func Shuffle[T prefetch.Element](a []T, seed uint64, epoch uint32) {
	state := NewStream(seed, epoch, 0, 0, Shuffling).State(0)
	var places [ahead]uint64
	for i := len(a) - 1; i > 0; {
		of := places[:min(ahead, i)]
		for k := range of {
			of[k] = Below(Draw(state, len(a)-1-i+k), uint64(i-k+1))
		}
		prefetch.Elements(a, of)
		for _, j := range of {
			a[i], a[j] = a[j], a[i]
			i--
		}
	}
}
