package run

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/lanes"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// drawn is the input of draws with replacement: the candidates, and the cumulative sums of their
// weights.
type drawn struct {
	candidates []int64
	sums       []uint64
}

// chosen is the set of elements of a list that a site chooses by chances: in their order, or with
// replacement in the order of the draws. text is the cache key of the sums of such draws, if the
// chances depend on the graph only. Some chances are known to be all positive.
func (c *call[I]) chosen(n *program.Node, by []float64, vertices []I, text string, positive bool) []int64 {
	if n.Replace && n.K >= 0 {
		return c.repeatedly(n, by, text, positive)
	}
	// Nil: all elements are candidates.
	var candidates []int64
	count := int64(len(by))
	if !positive || n.K < 0 || count <= n.K {
		candidates = take[int64](&c.arena, count)[:0]
		for i, x := range by {
			if x > 0 {
				candidates = append(candidates, int64(i))
			}
		}
		count = int64(len(candidates))
	}
	if n.K < 0 || count <= n.K {
		return candidates
	}
	if n.K == 0 {
		return nil
	}
	stream := c.stream(n.Site, rng.Candidates)
	keys, places := take[uint64](&c.arena, count), take[int64](&c.arena, count)
	// race makes the keys of every so many candidates, and packs those up to a limit with their places.
	race := func(step int64, limit uint64) int64 {
		count, bound := (count+step-1)/step, math.Inf(1)
		if limit < math.MaxUint64 {
			bound = ratioAbove(limit)
		}
		parts := make([]int64, (count+unitEdges-1)/unitEdges)
		c.ranges(count, func(w *worker, lo, hi int64) {
			to := lo
			for lo := lo; lo < hi; lo += tileEdges {
				states, of := w.states[:min(hi-lo, tileEdges)], w.places[:min(hi-lo, tileEdges)]
				n := int64(len(states))
				if candidates == nil && step == 1 {
					if _, wide := words(vertices[lo : lo+n]); wide != nil {
						copy(states, unsafe.Slice((*uint64)(unsafe.Pointer(&wide[0])), n))
					} else {
						for k, v := range vertices[lo : lo+n] {
							states[k] = uint64(v)
						}
					}
					stream.States(states)
					n = lanes.Race(states, by[lo:], bound, lo, w.draws[:], of)
				} else {
					for k := range of {
						if of[k] = (lo + int64(k)) * step; candidates != nil {
							of[k] = candidates[of[k]]
						}
						states[k] = uint64(vertices[of[k]])
					}
					stream.States(states)
					n = 0
					for k, state := range states {
						at := of[k]
						w.draws[n], of[n] = rng.Draw(state, 0), at
						n += int64(mask(!tooLate(w.draws[n], by[at], bound)) & 1)
					}
				}
				found := states[:n]
				lanes.Keys(w.draws[:n], by, of[:n], found)
				for k, key := range found {
					keys[to], places[to] = key, of[k]
					to += int64(mask(key <= limit) & 1)
				}
			}
			parts[lo/unitEdges] = to - lo
		})
		at := int64(0)
		for unit, n := range parts {
			lo := int64(unit) * unitEdges
			copy(keys[at:], keys[lo:lo+n])
			at += int64(copy(places[at:], places[lo:lo+n]))
		}
		return at
	}
	// Some keys bound the last chosen one: draws far after it are skipped. If the bound was too
	// low, all are computed.
	order, packed := take[uint64](&c.arena, count), int64(0)
	if step := count / sampledKeys; step > 1 {
		some := order[:copy(order, keys[:race(step, math.MaxUint64)])]
		// Four deviations above the mean.
		mean := float64(n.K) / float64(step)
		if guess := int64(mean + 4*math.Sqrt(mean) + 10); guess < int64(len(some)) {
			packed = race(1, kth(some, int(guess)))
		}
	}
	if packed < n.K {
		packed = race(1, math.MaxUint64)
	}
	keys, places = keys[:packed], places[:packed]
	last := kth(order[:copy(order, keys)], int(n.K)-1)
	to, equal := take[int64](&c.arena, n.K)[:0], []int64(nil)
	for k, i := range places {
		if keys[k] < last {
			to = append(to, i)
		} else if keys[k] == last {
			equal = append(equal, i)
		}
	}
	// Equal keys: the lower node, then the first.
	slices.SortStableFunc(equal, func(a, b int64) int { return cmp.Compare(vertices[a], vertices[b]) })
	to = append(to, equal[:n.K-int64(len(to))]...)
	slices.Sort(to)
	return to
}

// sampledKeys is the number of keys that the bound is estimated from.
const sampledKeys = 2048

func (c *call[I]) repeatedly(n *program.Node, by []float64, text string, positive bool) []int64 {
	if text == "" && len(by) > 0 && positive {
		sums := take[uint64](&c.arena, int64(len(by)))
		weights.Sums(by, sums)
		return c.drawnBy(n, sums, nil)
	}
	of, there := c.Relation.Kept.Get(text).(*drawn)
	if !there || text == "" {
		positive := take[float64](&c.arena, int64(len(by)))[:0]
		for _, x := range by {
			if x > 0 {
				positive = append(positive, x)
			}
		}
		if text != "" { // they outlive the batch
			of = &drawn{make([]int64, 0, len(positive)), make([]uint64, len(positive))}
		} else {
			of = &drawn{take[int64](&c.arena, int64(len(positive)))[:0], take[uint64](&c.arena, int64(len(positive)))}
		}
		for i, x := range by {
			if x > 0 {
				of.candidates = append(of.candidates, int64(i))
			}
		}
		if len(positive) > 0 {
			weights.Sums(positive, of.sums)
		}
		if text != "" {
			c.Relation.Kept.Put(text, of)
		}
	}
	if len(of.candidates) == 0 {
		return nil
	}
	return c.drawnBy(n, of.sums, of.candidates)
}

// drawnBy is so many draws by sums of weights, of candidates; nil: all elements are.
func (c *call[I]) drawnBy(n *program.Node, sums []uint64, candidates []int64) []int64 {
	to, stream := take[int64](&c.arena, n.K), c.stream(n.Site, rng.Negatives)
	c.ranges(n.K, func(w *worker, lo, hi int64) {
		numbered(stream, w, lo, hi, func(states []uint64, lo int64) {
			for k, state := range states {
				states[k] = rng.Draw(state, 0)
			}
			lanes.Draw(sums, states)
			for k, at := range states {
				if to[lo+int64(k)] = int64(at); candidates != nil {
					to[lo+int64(k)] = candidates[at]
				}
			}
		})
	})
	return to
}
