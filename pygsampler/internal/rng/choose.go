package rng

// Chooser draws the positions of a row's sampled edges within [0, degree). It owns the working
// memory that large fanouts need; its zero value is ready, and one goroutine at a time may use it.
type Chooser struct {
	table   []slot
	stamp   uint32
	refused []int32  // weighted draws to repeat
	out     []part   // and what they may not take
	used    int64    // spare draws that the row has used
	chosen  []uint64 // weights of a row's choices
}

// slot is an entry of the open-addressing set that large fanouts use; it is
// live while its stamp is the set's, so that no row pays for clearing.
type slot struct {
	value uint64
	stamp uint32
}

// scanned is the largest fanout whose earlier choices are found by a scan after a 64-bit filter;
// above it the filter fills up and a hash set is cheaper.
const scanned = 32

// Distinct fills pos with len(pos) distinct positions of [0, degree) by Robert
// Floyd's algorithm, in draw order. It needs degree > len(pos); its cost is
// O(len(pos)) whatever the degree.
func (c *Chooser) Distinct(pos []int64, state uint64, degree int64) {
	if len(pos) > scanned {
		c.distinctHashed(pos, state, degree)
		return
	}
	first := uint64(degree) - uint64(len(pos))
	if degree <= 64 {
		distinctInWord(pos, state, first)
		return
	}
	// First all draws as if none met another: the loop has no branch to mispredict,
	// and few rows need the second one.
	var filter [8]uint64
	met := uint64(0)
	for j := range pos {
		state += golden
		t := Below(Mix(state), first+uint64(j)+1)
		pos[j] = int64(t)
		word := &filter[t>>6&7]
		met |= *word >> (t & 63)
		*word |= 1 << (t & 63)
	}
	if met&1 != 0 {
		replaceRepeated(pos, int64(first))
	}
}

// distinctInWord is Floyd's algorithm with the set in one word, for degrees up to
// 64, where draws meet so often that a branch would be mispredicted.
func distinctInWord(pos []int64, state, first uint64) {
	var set uint64
	for j := range pos {
		state += golden
		top := first + uint64(j)
		t := Below(Mix(state), top+1)
		taken := -(set >> (t & 63) & 1)
		t ^= (t ^ top) & taken
		set |= 1 << (t & 63)
		pos[j] = int64(t)
	}
}

// replaceRepeated finishes Floyd's algorithm: a draw that was chosen before gives
// way to the largest position of its step, which is above every earlier choice.
func replaceRepeated(pos []int64, first int64) {
	var filter uint64
	for j, t := range pos {
		bit := uint64(1) << (t & 63)
		if filter&bit != 0 && contains(pos[:j], t) {
			t = first + int64(j)
			pos[j] = t
			bit = 1 << (t & 63)
		}
		filter |= bit
	}
}

func contains(a []int64, x int64) bool {
	for _, v := range a {
		if v == x {
			return true
		}
	}
	return false
}

func (c *Chooser) distinctHashed(pos []int64, state uint64, degree int64) {
	mask := c.reset(len(pos))
	first := uint64(degree) - uint64(len(pos))
	for j := range pos {
		state += golden
		top := first + uint64(j)
		t := Below(Mix(state), top+1)
		if !c.insert(t, mask) {
			// top is above every earlier choice, so it is always new.
			t = top
			c.insert(t, mask)
		}
		pos[j] = int64(t)
	}
}

// reset empties the set and makes it at least twice as large as n.
func (c *Chooser) reset(n int) uint64 {
	size := 64
	for size < 2*n {
		size *= 2
	}
	if len(c.table) < size {
		c.table = make([]slot, size)
		c.stamp = 0
	}
	c.stamp++
	if c.stamp == 0 {
		clear(c.table)
		c.stamp = 1
	}
	return uint64(size - 1)
}

func (c *Chooser) insert(x, mask uint64) bool {
	for i := x * golden >> 32 & mask; ; i = (i + 1) & mask {
		s := &c.table[i]
		if s.stamp != c.stamp {
			*s = slot{x, c.stamp}
			return true
		}
		if s.value == x {
			return false
		}
	}
}

// Repeated fills pos with len(pos) independent positions of [0, degree).
func Repeated(pos []int64, state uint64, degree int64) {
	for j := range pos {
		state += golden
		pos[j] = int64(Below(Mix(state), uint64(degree)))
	}
}
