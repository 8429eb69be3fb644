package rng

import "github.com/pygsampler/pygsampler/pygsampler/internal/real"

// Exponential is the exponential variate, of mean 1, that a draw gives: -log(u), where u is
// the middle of one of 2^52 parts of (0, 1), so that it is neither 0 nor infinite.
func Exponential(x uint64) float64 {
	return -real.Log(float64(x>>12<<1|1) * 0x1p-53)
}

// Factors are the Horvitz-Thompson factors of what Weighted has chosen, with the same
// arguments and all of a row's choices (with replace: any of them): by these y of the
// chosen edges is to be multiplied so that its sum is, in the mean, that of y over all
// edges that are not excluded.
//
// With replace that is W / (fanout w). Without, the order in which edges are drawn is that
// in which they arrive if edge i comes after a time that is exponential with the rate w of
// i. Given the others' times, i is among the first K where it comes before the K-th of the
// others. If it is, that one is the next arrival of all, at tau, so one over the chance of
// that is 1 / (1 - exp(-w tau)) (rank conditioning). Given the order, the gaps between
// arrivals are exponential too, with the rates of what is left, and independent of it and
// of each other: so tau takes no more than fanout + 1 further draws.
//
// Which choices are first draws is found by making these again, so that the rows of those
// who ask for no factors need not remember it.
func (w Weights) Factors(to []float32, pos []int64, state uint64, excluded []int64, replace bool, fanout int64) {
	total := w.Sums[len(w.Sums)-1]
	for _, p := range excluded {
		total -= w.of(p)
	}
	if replace {
		for j, p := range pos {
			to[j] = float32(float64(total) / float64(float64(fanout)*float64(w.of(p))))
		}
		return
	}
	tau := w.next(pos, state, total, fanout)
	for j, p := range pos {
		to[j] = float32(1 / real.OneMinusExp(float64(float64(w.of(p))*tau)))
	}
}

// next is when the first edge arrives that was not chosen. First draws that were accepted
// came first, in order, then what took the places of the refused ones, in order. A choice
// is such a draw where it is equal to it: the place of a refused one has another.
func (w Weights) next(pos []int64, state, total uint64, fanout int64) (tau float64) {
	later := uint64(0) // the weights of those before the next refused draw's place
	for j, p := range pos {
		if w.at(Draw(state, j)) == p {
			later += w.of(p)
		}
	}
	// The sum has a fixed tree over places, 32 at a time, as a warp adds them up.
	var gap [32]float64
	earlier := uint64(0)
	for j := 0; j <= len(pos); j++ {
		before := later
		if j < len(pos) {
			p := pos[j]
			if weight := w.of(p); w.at(Draw(state, j)) == p {
				before = earlier
				earlier += weight
			} else {
				later += weight
			}
		}
		gap[j%32] = Exponential(Draw(state, int(gaps*fanout)+j)) / float64(total-before)
		if j%32 == 31 || j == len(pos) {
			for half := 16; half > 0; half /= 2 {
				for i := range half {
					gap[i] += gap[i+half]
				}
			}
			tau += gap[0]
			clear(gap[:])
		}
	}
	return tau
}
