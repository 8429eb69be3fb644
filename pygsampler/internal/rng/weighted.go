package rng

import (
	"math/bits"
	"slices"
	"sort"
)

// Weights is what a row of positive weights is drawn by. Both lists have an element
// for each edge; internal/weights makes them.
type Weights struct {
	// Alias is Vose's table: a position in the high half, which takes the place of the
	// slot's own where a coin of 32 bits is not below the low half. M. Vose, "A linear
	// algorithm for generating random numbers with a given distribution", IEEE
	// Transactions on Software Engineering 17 (9), 1991.
	Alias []uint64
	// Sums are those of the integer weights up to and with each edge.
	Sums []uint64
}

// below is the sum of the weights before position p.
func (w Weights) below(p int64) uint64 {
	if p == 0 {
		return 0
	}
	return w.Sums[p-1]
}

// at is the position of a draw by the alias table: one product gives slot and coin.
func (w Weights) at(x uint64) int64 {
	slot, rest := bits.Mul64(x, uint64(len(w.Alias)))
	entry := w.Alias[slot]
	// All ones where the coin is below the threshold.
	own := uint64(int64(rest>>32-entry&low) >> 63)
	return int64(entry>>32 ^ (entry>>32^slot)&own)
}

// Weighted fills pos with positions of a row, drawn one after another by weight, each
// once unless replace says so, and none of those that excluded lists in order. There
// are more than len(pos) others (with replace: any). The row gives fanout positions in
// all, of which these are the first, or, by an advanced state, further ones.
//
// Draw j is position j by the alias table. Where that is excluded, or was drawn before,
// draw fanout + j takes its place, once all have been made, by the sums over what is
// left: that is successive sampling exactly, since a draw that is thrown away tells
// nothing of those that are left, and it is bounded whatever the weights are.
func (c *Chooser) Weighted(pos []int64, w Weights, state uint64, excluded []int64, replace bool, fanout int64) {
	for j := range pos {
		pos[j] = w.at(Draw(state, j))
	}
	if replace && len(excluded) == 0 {
		return
	}
	c.refused = c.refused[:0]
	if replace {
		for j, p := range pos {
			if _, is := slices.BinarySearch(excluded, p); is {
				c.refused = append(c.refused, j)
			}
		}
	} else {
		c.refuse(pos, excluded)
	}
	if len(c.refused) == 0 {
		return
	}
	// What is left out of the sums, in order.
	c.out = append(c.out[:0], excluded...)
	if !replace {
		next := 0
		for j, p := range pos {
			if next < len(c.refused) && c.refused[next] == j {
				next++
				continue
			}
			c.out = append(c.out, p)
		}
		slices.Sort(c.out)
	}
	total := w.Sums[len(w.Sums)-1]
	for _, p := range c.out {
		total -= w.Sums[p] - w.below(p)
	}
	for _, j := range c.refused {
		x := Below(Draw(state, int(fanout)+j), total)
		at := 0
		for ; at < len(c.out) && w.below(c.out[at]) <= x; at++ {
			x += w.Sums[c.out[at]] - w.below(c.out[at])
		}
		p := int64(sort.Search(len(w.Sums), func(i int) bool { return w.Sums[i] > x }))
		pos[j] = p
		if !replace {
			c.out = slices.Insert(c.out, at, p)
			total -= w.Sums[p] - w.below(p)
		}
	}
}

// refuse finds the draws that are excluded, or equal to an earlier one.
func (c *Chooser) refuse(pos, excluded []int64) {
	if len(pos) > scanned {
		mask := c.reset(len(pos) + len(excluded))
		for _, p := range excluded {
			c.insert(uint64(p), mask)
		}
		for j, p := range pos {
			if !c.insert(uint64(p), mask) {
				c.refused = append(c.refused, j)
			}
		}
		return
	}
	// A branch that is taken for few rows only, and no scan for most.
	var filter [8]uint64
	met := uint64(0)
	for _, p := range pos {
		word := &filter[p>>6&7]
		met |= *word >> (p & 63)
		*word |= 1 << (p & 63)
	}
	if met&1 == 0 && len(excluded) == 0 {
		return
	}
	for j, p := range pos {
		_, is := slices.BinarySearch(excluded, p)
		if is || contains(pos[:j], p) {
			c.refused = append(c.refused, j)
		}
	}
}
