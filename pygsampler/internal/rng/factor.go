package rng

import "github.com/pygsampler/pygsampler/pygsampler/internal/real"

// Exponential returns the exponential variate, of mean 1, of a draw: -log(u), where u is the middle
// of one of 2^52 parts of (0, 1), so that it is neither 0 nor infinite.
func Exponential(x uint64) float64 {
	return -real.Log(Uniform(x))
}

// Uniform returns the middle of one of 2^52 parts of (0, 1) for a draw.
func Uniform(x uint64) float64 { return float64(x>>12<<1|1) * 0x1p-53 }

// Chosen is the first step of Factors, for callers who run it for many rows before the next step,
// so that their reads overlap: it finds the weights of the edges at positions that count from start
// on, and the total weight of all edges that are not excluded.
func (w Weights) Chosen(chosen []uint64, pos []int64, start int64, excluded []int64) (total uint64) {
	for j, p := range pos {
		chosen[j] = w.of(p - start)
	}
	total = w.Sums[len(w.Sums)-1] - w.Before
	for _, p := range excluded {
		total -= w.of(p)
	}
	return total
}

// Factors computes the Horvitz-Thompson factors of the choices of Weighted, or Part, with the same
// arguments and all of a row's choices (with replace: any of them): a sum of y over the chosen
// edges, times these factors, is an unbiased estimate of the sum of y over all edges that are not
// excluded. chosen and total are the results of Chosen.
//
// With replace the factor is W / (fanout w). Without, the order in which edges are drawn is the
// order in which they arrive if edge i arrives after a time that is exponential with the rate w of
// i. Conditioned on the times of the others, i is among the first K if it arrives before the K-th
// of the others. In that case, that one is the next arrival of all, at tau, so one over the chance
// of that is 1 / (1 - exp(-w tau)) (rank conditioning). Conditioned on the order, the gaps between
// arrivals are exponential too, with the rates of the remaining edges, and independent of it and of
// each other: so tau needs at most fanout + 1 further draws.
//
// The choices that are first draws are found by repeating these, so that rows without factors need
// not remember them.
func (w Weights) Factors(to []float32, chosen []uint64, total uint64, pos []int64, start int64, state uint64, replace bool, fanout int64) {
	if replace {
		for j, weight := range chosen {
			to[j] = float32(float64(total) / float64(float64(fanout)*float64(weight)))
		}
		return
	}
	tau := w.next(chosen, pos, start, state, total, fanout)
	for j, weight := range chosen {
		to[j] = float32(1 / real.OneMinusExp(float64(float64(weight)*tau)))
	}
}

// Factors runs both steps for one row, whose positions count from 0 on.
func (c *Chooser) Factors(to []float32, pos []int64, w Weights, state uint64, excluded []int64, replace bool, fanout int64) {
	if cap(c.chosen) < len(pos) {
		c.chosen = make([]uint64, 2*len(pos))
	}
	chosen := c.chosen[:len(pos)]
	total := w.Chosen(chosen, pos, 0, excluded)
	w.Factors(to, chosen, total, pos, 0, state, replace, fanout)
}

// first reports whether choice j, at position p, was the first draw of it.
func (w Weights) first(state uint64, j int, p int64) bool {
	return w.Alias == nil || w.AliasPosition(Draw(state, j)) == p
}

// next returns the time of the first arrival of an edge that was not chosen. First draws that were
// accepted came first, in order, then the replacements of the refused ones, in order. A choice is
// such a draw if it is equal to it: the replacement of a refused draw differs from it. The choices
// of a part were drawn one after another, none of them refused.
func (w Weights) next(chosen []uint64, pos []int64, start int64, state, total uint64, fanout int64) (tau float64) {
	later := uint64(0) // the weights of those before the next refused draw's place
	for j, p := range pos {
		if w.first(state, j, p-start) {
			later += chosen[j]
		}
	}
	// The sum has a fixed tree over places, 32 at a time, as a warp adds them up.
	var gap [32]float64
	earlier := uint64(0)
	for j := 0; j <= len(pos); j++ {
		before := later
		if j < len(pos) {
			if w.first(state, j, pos[j]-start) {
				before = earlier
				earlier += chosen[j]
			} else {
				later += chosen[j]
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
