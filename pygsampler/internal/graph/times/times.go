// Package times says which edges of a row are valid at a time: it sorts rows by the times of their
// edges, and finds the part of a row that a time bound admits.
package times

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
)

// SortedRows holds the times of a graph whose rows are sorted by time, as keys: integers in the same
// order as the times. They are read-only, and any number of goroutines may read them.
type SortedRows struct {
	Edges []int64 // by position; they ascend in each row
	Of    []int64 // by edge id, or by node
	// ByVertex says that the time of an edge is the time of its source node, and Of is by node.
	ByVertex bool
	Float    bool // times are float64, else int64
}

// Rule says which edges a bound admits.
type Rule struct {
	Before bool    // those before the bound; else those at it, too
	Window float64 // how long before the bound they may be; infinite: any time
	// Carry makes the time of an edge the bound of the node that it reaches; otherwise the bound of
	// a tree is its seed's.
	Carry bool
	Last  bool // of more than the fanout the last ones
}

// Key returns the key of a time: a total order in which -0 equals 0. NaN has no key.
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

// Time returns the time of a key.
func Time(key int64) float64 {
	if key < 0 {
		return math.Float64frombits(uint64(math.MinInt64 - key))
	}
	return math.Float64frombits(uint64(key))
}

// Since returns the key of the first time that a rule admits under a bound.
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

// Within returns the part of degree edges from position start on that a bound admits.
func (r *SortedRows) Within(start, degree, bound int64, rule *Rule) (first, count int64) {
	keys := r.Edges[start : start+degree]
	late, none := rule.late(bound)
	if none {
		return r.since(start, len(keys), bound, rule)
	}
	return r.since(start, below(keys, late), bound, rule)
}

// late returns the key of the first time that is too late; none reports that no time is.
func (rule *Rule) late(bound int64) (key int64, none bool) {
	if rule.Before {
		return bound, false
	}
	return bound + 1, bound == math.MaxInt64
}

// WithinEach computes Within for several rows under one bound, with interleaved searches, so that
// their reads from memory overlap. starts and counts hold the rows, and then the admitted parts.
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

// Side is the number of rows that WithinEach searches at a time.
const Side = 64

// belowEach moves positions, from each of which left keys ascend, to the first key that is not less
// than than.
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

// below returns the number of ascending keys that are less than one.
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
