package rng

import (
	"math/bits"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
)

// Weights holds the tables that a row of positive weights is drawn by. Both lists have an element
// for each edge; internal/graph/weights builds them.
type Weights struct {
	// Alias is Vose's table: a position in the high half, which replaces the slot's own if a coin
	// of 32 bits is not below the low half. M. Vose, "A linear algorithm for generating random
	// numbers with a given distribution", IEEE Transactions on Software Engineering 17 (9), 1991.
	Alias []uint64
	// Sums are the cumulative integer weights up to and including each edge.
	Sums []uint64
	// Before is the cumulative sum before the first edge of a part of a row, which has no table.
	Before uint64
}

// below is the sum of the weights before position p.
func (w Weights) below(p int64) uint64 {
	if p == 0 {
		return w.Before
	}
	return w.Sums[p-1]
}

// of is the weight at position p.
func (w Weights) of(p int64) uint64 { return w.Sums[p] - w.below(p) }

// AliasPosition returns the position of a draw by the alias table: one product yields slot and coin.
func (w Weights) AliasPosition(x uint64) int64 {
	slot, rest := bits.Mul64(x, uint64(len(w.Alias)))
	return toss(w.Alias[slot], slot, rest>>32)
}

// toss is the position that a coin of 32 bits chooses in a slot.
func toss(entry, slot, coin uint64) int64 {
	// All ones if the coin is below the threshold.
	own := uint64(int64(coin-entry&low) >> 63)
	return int64(entry>>32 ^ (entry>>32^slot)&own)
}

// Slots is the first step of Weighted, for callers who run it for many rows before the next step,
// so that the second has many reads in flight: it computes slots and coins of the draws of a row of
// degree edges.
func Slots(pos []int64, coins []uint32, state uint64, degree int64) {
	for j := range pos {
		state += golden
		slot, rest := bits.Mul64(Mix(state), uint64(degree))
		pos[j], coins[j] = int64(slot), uint32(rest>>32)
	}
}

// Toss is the second step: it computes the positions that the slots and coins choose.
func (w Weights) Toss(pos []int64, coins []uint32) {
	for j, slot := range pos {
		pos[j] = toss(w.Alias[slot], uint64(slot), uint64(coins[j]))
	}
}

// TossOnce is Toss for up to Scanned draws without replacement. It returns a bit for each
// that repeats an earlier one, which Again then makes again.
func (w Weights) TossOnce(pos []int64, coins []uint32) (refused uint32) {
	if len(w.Alias) <= 64 {
		return w.tossInWord(pos, coins)
	}
	var filter [filterBits / 64]uint64
	for j, slot := range pos {
		p := toss(w.Alias[slot], uint64(slot), uint64(coins[j]))
		pos[j] = p
		word := &filter[p/64%(filterBits/64)]
		refused |= uint32(*word>>(p&63)&1) << (j & (Scanned - 1))
		*word |= 1 << (p & 63)
	}
	if refused != 0 && len(w.Alias) > filterBits {
		refused = repeated(pos, refused)
	}
	return refused
}

// tossInWord is TossOnce for a row of up to 64 edges.
func (w Weights) tossInWord(pos []int64, coins []uint32) (refused uint32) {
	taken := uint64(0)
	for j, slot := range pos {
		p := toss(w.Alias[slot], uint64(slot), uint64(coins[j]))
		pos[j] = p
		refused |= uint32(taken>>(p&63)&1) << (j & (Scanned - 1))
		taken |= 1 << (p & 63)
	}
	return refused
}

// repeated returns a bit for each draw that repeats an earlier one.
func repeated(pos []int64, of uint32) (refused uint32) {
	for ; of != 0; of &= of - 1 {
		j := bits.TrailingZeros32(of)
		if contains(pos[:j], pos[j]) {
			refused |= 1 << j
		}
	}
	return refused
}

// FetchSpare prefetches the first reads of Again in a row of more than Short edges, refused of
// whose draws are refused: a few more spare draws than that, since some are refused, too.
func (w Weights) FetchSpare(refused int, state uint64, fanout int64) {
	var at [8]int64
	n := min(refused+refused/2+1, len(at), int(spare*fanout))
	for i := range at[:n] {
		at[i] = int64(Below(Draw(state, int(fanout)+i), uint64(len(w.Alias))))
	}
	prefetch.Elements(w.Alias, at[:n])
}

// Again is the last step after TossOnce: it repeats the refused draws of a row with a fanout of
// len(pos) and without exclusions.
func (c *Chooser) Again(pos []int64, w Weights, state uint64, refused uint32) {
	fanout := int64(len(pos))
	if len(w.Sums) <= short {
		DrawPending(pos, w.Sums, []PendingRow{{Fanout: fanout, Edges: int64(len(w.Sums)), State: state, Refused: uint64(refused)}})
		return
	}
	s := set{taken: pos}
	for _, p := range pos {
		s.filter[p/64%(filterBits/64)] |= 1 << (p & 63)
	}
	c.refused = c.refused[:0]
	for ; refused != 0; refused &= refused - 1 {
		c.refused = append(c.refused, int32(bits.TrailingZeros32(refused)))
	}
	c.again(pos, w, state, &s, false, fanout, 0)
}

// filterBits is the number of bits of the filter of few draws, which is exact up to this degree.
const filterBits = 512

// Scanned is the most draws that TossOnce makes, Short the most edges of a row that makes
// no spare draws.
const (
	Scanned = scanned
	Short   = short
)

// Weighted fills pos with positions of a row, drawn one after another by weight, each once unless
// replace is set, and none of the excluded ones, which are sorted. There are more than len(pos)
// others (with replace: any number). pos holds the positions from first on of the fanout positions
// that the row contributes, and state is advanced to there.
//
// Draw j is position j by the alias table. A draw that is excluded, or was drawn before, is
// refused. The next spare * fanout draws replace the refused ones, in order, unless they are
// refused, too; the rest is drawn by the sums over the remaining edges. This is successive sampling
// exactly, since a rejected draw carries no information about the remaining edges, and it is
// bounded for any weights. A short row makes no such spare draws.
func (c *Chooser) Weighted(pos []int64, w Weights, state uint64, excluded []int64, replace bool, fanout, first int64) {
	for j := range pos {
		pos[j] = w.AliasPosition(Draw(state, j))
	}
	c.Settle(pos, w, state, excluded, replace, fanout, first)
}

// Settle is the last step of Weighted: it repeats refused draws.
func (c *Chooser) Settle(pos []int64, w Weights, state uint64, excluded []int64, replace bool, fanout, first int64) {
	if replace && len(excluded) == 0 {
		return
	}
	s := set{taken: pos, excluded: excluded}
	switch {
	case replace:
		s.taken = nil
		c.refused = c.refused[:0]
		for j, p := range pos {
			if s.isExcluded(p) {
				c.refused = append(c.refused, int32(j))
			}
		}
	case len(pos) > scanned:
		s.table, s.mask = c, c.reset(len(pos)+len(excluded))
		c.refused = c.refused[:0]
		for _, p := range excluded {
			c.insert(uint64(p), s.mask)
		}
		for j, p := range pos {
			if !c.insert(uint64(p), s.mask) {
				c.refused = append(c.refused, int32(j))
			}
		}
	default:
		met := uint64(0)
		for _, p := range pos {
			word := &s.filter[p>>6&7]
			met |= *word >> (p & 63)
			*word |= 1 << (p & 63)
		}
		if met&1 == 0 && len(excluded) == 0 {
			return
		}
		c.refused = c.refused[:0]
		for j, p := range pos {
			if contains(pos[:j], p) || s.isExcluded(p) {
				c.refused = append(c.refused, int32(j))
			}
		}
	}
	c.again(pos, w, state, &s, replace, fanout, first)
}

// set is the positions that a row may not choose any more.
type set struct {
	taken, excluded []int64
	filter          [8]uint64 // of few taken ones
	table           *Chooser  // of many, and of the excluded ones then
	mask            uint64
}

func (s *set) isExcluded(p int64) bool {
	if len(s.excluded) == 0 {
		return false
	}
	_, is := slices.BinarySearch(s.excluded, p)
	return is
}

// add takes a position unless it may not be chosen.
func (s *set) add(p int64) bool {
	switch {
	case s.table != nil:
		return s.table.insert(uint64(p), s.mask)
	case s.isExcluded(p):
		return false
	case s.taken == nil:
		return true
	}
	word, bit := &s.filter[p>>6&7], uint64(1)<<(p&63)
	if *word&bit != 0 && contains(s.taken, p) {
		return false
	}
	*word |= bit
	return true
}

// part is the contribution of an excluded position to the sums.
type part struct{ below, weight uint64 }

// again fills the places of the refused draws.
func (c *Chooser) again(pos []int64, w Weights, state uint64, s *set, replace bool, fanout, first int64) {
	if first == 0 {
		c.used = 0
	}
	// state is the state of draw first of the row.
	refused := c.refused
	for ; len(refused) > 0 && c.used < spare*fanout && len(w.Sums) > short; c.used++ {
		if p := w.AliasPosition(Draw(state, int(fanout+c.used-first))); s.add(p) {
			pos[refused[0]] = p
			refused = refused[1:]
		}
	}
	if len(refused) == 0 {
		return
	}
	if len(w.Sums) <= short {
		againShort(pos, w, state, s, replace, refused, fanout)
		return
	}
	c.out = c.out[:0]
	total := w.Sums[len(w.Sums)-1]
	leave := func(p int64) {
		below := w.below(p)
		c.out = append(c.out, part{below, w.Sums[p] - below})
		total -= w.Sums[p] - below
	}
	for _, p := range s.excluded {
		leave(p)
	}
	left := refused
	for k, p := range pos {
		if len(left) > 0 && int(left[0]) == k {
			left = left[1:]
		} else if !replace {
			leave(p)
		}
	}
	for _, j := range refused {
		x := Below(Draw(state, int(fanout*(1+spare)+int64(j))), total)
		pos[j] = c.at(x, w.Sums)
		if !replace {
			leave(pos[j])
		}
	}
}

// at is the position at which the sums of what is not left out reach x.
func (c *Chooser) at(x uint64, sums []uint64) int64 {
	// The least y that has x in addition to all that is left out up to there. Each iteration but
	// the last finds one more; sums that do not ascend, of a damaged file, would loop for ever.
	y, before := x, x+1
	for looks := 0; y != before && looks <= len(c.out); looks++ {
		before, y = y, x
		for _, o := range c.out {
			if o.below <= before {
				y += o.weight
			}
		}
	}
	lo, hi := int64(0), int64(len(sums))
	for lo < hi {
		if middle := (lo + hi) / 2; sums[middle] > y {
			hi = middle
		} else {
			lo = middle + 1
		}
	}
	return lo
}

// Part fills pos with positions of a part of a row, whose sums these are; before is the sum before
// the part. There is no alias table for a part, so that each draw searches the sums: successive
// sampling by Draw j of the state for choice j. excluded are positions of the part that are not
// chosen, in ascending order.
func (c *Chooser) Part(pos []int64, sums []uint64, before, state uint64, excluded []int64, replace bool) {
	// The sum before the part is left out, from the first position of the sums on.
	c.out = append(c.out[:0], part{0, before})
	total := sums[len(sums)-1] - before
	leave := func(p int64) {
		below := before
		if p > 0 {
			below = sums[p-1]
		}
		c.out = append(c.out, part{below, sums[p] - below})
		total -= sums[p] - below
	}
	for _, p := range excluded {
		leave(p)
	}
	for j := range pos {
		pos[j] = min(c.at(Below(Draw(state, j), total), sums), int64(len(sums))-1)
		if !replace {
			leave(pos[j])
		}
	}
}

// againShort draws by the sums of a short row.
func againShort(pos []int64, w Weights, state uint64, s *set, replace bool, refused []int32, fanout int64) {
	var left [short]uint64
	total, before := w.Sums[len(w.Sums)-1], uint64(0)
	for i, sum := range w.Sums {
		left[i&(short-1)] = sum - before
		before = sum
	}
	gone := func(p int64) {
		total -= left[p&(short-1)]
		left[p&(short-1)] = 0
	}
	for _, p := range s.excluded {
		gone(p)
	}
	next := refused
	for k, p := range pos {
		if len(next) > 0 && int(next[0]) == k {
			next = next[1:]
		} else if !replace {
			gone(p)
		}
	}
	for _, j := range refused {
		x := Below(Draw(state, int(fanout*(1+spare)+int64(j))), total)
		p := int64(0)
		for upTo := left[0]; upTo <= x && p < short-1; upTo += left[p&(short-1)] {
			p++
		}
		pos[j] = p
		if !replace {
			gone(p)
		}
	}
}
