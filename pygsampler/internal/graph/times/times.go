// Package times says which edges of a row there are at a time: rows in the order of their edges' times,
// and the part of them that a bound leaves.
package times

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
)

// SortedRows are the times of a graph whose rows are in their order, as keys: integers that ascend as the times
// do. They are read-only, and any number of goroutines may read them.
type SortedRows struct {
	Edges []int64 // by position; they ascend in each row
	Of    []int64 // by edge id, or by vertex
	// ByVertex says that an edge is as old as the vertex that it leads from, and Of is by vertex.
	ByVertex bool
	Float    bool // times are float64, else int64
}

// Rule says which edges a bound leaves.
type Rule struct {
	Before bool    // those before the bound; else those at it, too
	Window float64 // how long before the bound they may be; infinite: any time
	// Carry has a vertex that an edge reached bound by that edge's time; else a tree's bound is its seed's.
	Carry bool
	Last  bool // of more than the fanout the last ones
}

// Key is the key of a time: a total order, -0 and 0 alike. NaN has none.
func Key(t float64) int64 {
	if t == 0 {
		return 0
	}
	if bits := int64(math.Float64bits(t)); bits < 0 {
		return math.MinInt64 - bits
	} else {
		return bits
	}
}

// Time is the time of a key.
func Time(key int64) float64 {
	if key < 0 {
		return math.Float64frombits(uint64(math.MinInt64 - key))
	}
	return math.Float64frombits(uint64(key))
}

// Since is the key of the first time that a rule leaves under a bound.
func (r *SortedRows) Since(bound int64, rule *Rule) int64 {
	if math.IsInf(rule.Window, 1) {
		return math.MinInt64
	}
	if r.Float {
		return Key(Time(bound) - rule.Window)
	}
	if window := int64(rule.Window); bound >= math.MinInt64+window {
		return bound - window
	}
	return math.MinInt64
}

// Within is which part of so many edges from a position on a bound leaves.
func (r *SortedRows) Within(start, degree, bound int64, rule *Rule) (first, count int64) {
	keys := r.Edges[start : start+degree]
	late, none := rule.late(bound)
	if none {
		return r.since(start, len(keys), bound, rule)
	}
	return r.since(start, below(keys, late), bound, rule)
}

// late is the key of the first time that is too late; none says that no time is.
func (rule *Rule) late(bound int64) (key int64, none bool) {
	if rule.Before {
		return bound, false
	}
	return bound + 1, bound == math.MaxInt64
}

// WithinEach is Within of several rows under one bound, whose searches go side by side: what they read next is on its
// way from memory for all of them at once. starts and counts say which rows, and then which parts of them.
func (r *SortedRows) WithinEach(starts, counts []int64, bound int64, rule *Rule) {
	var lows, left [Side]int64
	for len(starts) > 0 {
		n := min(len(starts), Side)
		if late, none := rule.late(bound); !none {
			copy(lows[:], starts[:n])
			copy(left[:], counts[:n])
			r.belowEach(lows[:n], left[:n], late)
			for i, start := range starts[:n] {
				counts[i] = lows[i] - start
			}
		}
		if !math.IsInf(rule.Window, 1) {
			for i, start := range starts[:n] {
				starts[i], counts[i] = r.since(start, int(counts[i]), bound, rule)
			}
		}
		starts, counts = starts[n:], counts[n:]
	}
}

// Side is how many rows WithinEach searches at a time.
const Side = 64

// belowEach moves positions, from each of which so many keys ascend, to the first key that is not less than one.
func (r *SortedRows) belowEach(lows, left []int64, than int64) {
	var middles [Side]int64
	for more := true; more; {
		more = false
		for i, n := range left {
			middles[i] = lows[i] + max(n/2-1, 0)
			more = more || n > few
		}
		prefetch.Elements(r.Edges, middles[:len(left)])
		for i, n := range left {
			if n <= few {
				continue
			}
			if r.Edges[middles[i]] < than {
				lows[i] += n / 2
				left[i] -= n / 2
			} else {
				left[i] = n / 2
			}
		}
	}
	for i, n := range left {
		lows[i] += int64(below(r.Edges[lows[i]:lows[i]+n], than))
	}
}

// since leaves out, of the edges up to an end, those that are before a window.
func (r *SortedRows) since(start int64, end int, bound int64, rule *Rule) (first, count int64) {
	begin := 0
	if !math.IsInf(rule.Window, 1) {
		begin = below(r.Edges[start:start+int64(end)], r.Since(bound, rule))
	}
	return start + int64(begin), int64(end - begin)
}

// few is up to how many keys are compared one after the other.
const few = 8

// below is how many of ascending keys are less than one.
func below(keys []int64, than int64) int {
	low, n := 0, len(keys)
	for n > few {
		half := n / 2
		if keys[low+half-1] < than {
			low += half
			n -= half
		} else {
			n = half
		}
	}
	for _, key := range keys[low : low+n] {
		if key >= than {
			break
		}
		low++
	}
	return low
}
