package run

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// roots draws graph nodes, uniformly and with replacement.
func (c *call[I]) roots(n *program.Node) *list[I] {
	if c.Relation.NumNodes == 0 {
		return &list[I]{}
	}
	ids := take[I](&c.arena, n.K)
	stream := c.stream(n.Site, rng.Negatives)
	c.ranges(n.K, func(w *worker, lo, hi int64) {
		numbered(stream, w, lo, hi, func(states []uint64, lo int64) {
			for k, state := range states {
				ids[lo+int64(k)] = I(rng.Below(rng.Draw(state, 0), uint64(c.Relation.NumNodes)))
			}
		})
	})
	return &list[I]{ids}
}

// walk returns the position of a walker from each node of a list, at first and after each step
// against an edge, step by step. A walker without an edge stays.
func (c *call[I]) walk(n *program.Node, from []I) *list[I] {
	walkers := int64(len(from))
	if walkers > 0 && n.K >= math.MaxInt64/64/walkers {
		panic(failure{memory.ErrNoMemory})
	}
	ids := take[I](&c.arena, walkers*(n.K+1))
	copy(ids, from)
	stream := c.stream(n.Site, rng.Walking)
	// A walker's steps wait for memory, while different walkers are independent: several advance
	// together, with their next reads prefetched. A step took 300 ns, and takes 40.
	c.units((walkers+tileEdges-1)/tileEdges, func(w *worker, unit int64) {
		numbered(stream, w, unit*tileEdges, min((unit+1)*tileEdges, walkers), func(states []uint64, lo int64) {
			for step := range n.K {
				c.check()
				at := ids[step*walkers+lo:][:len(states)]
				to := ids[(step+1)*walkers+lo:][:len(states)]
				places := w.places[:len(states)]
				c.fetchRows(at)
				for k, v := range at {
					start, degree := c.row(int64(v))
					if places[k] = -1; degree > 0 {
						places[k] = start + int64(rng.Below(rng.Draw(states[k], int(step)), uint64(degree)))
					}
				}
				for lo := 0; lo < len(places); lo += prefetch.Step {
					prefetch.Ahead(c.indices, places, lo)
					for k := lo; k < min(lo+prefetch.Step, len(places)); k++ {
						if to[k] = at[k]; places[k] >= 0 {
							to[k] = c.indices[places[k]]
						}
					}
				}
			}
		})
	})
	return &list[I]{ids}
}

// numbered passes the states of "nodes" lo to hi - 1 to tell, some at a time.
func numbered(stream rng.Stream, w *worker, lo, hi int64, tell func(states []uint64, lo int64)) {
	for ; lo < hi; lo += tileEdges {
		states := w.states[:min(hi-lo, tileEdges)]
		for k := range states {
			states[k] = uint64(lo + int64(k))
		}
		stream.States(states)
		tell(states, lo)
	}
}

// fetchRows prefetches the reads of row.
func (c *call[I]) fetchRows(vertices []I) {
	if p := c.Relation.Indptr; p.Bits == 32 {
		prefetch.Elements(p.I32, vertices)
	} else {
		prefetch.Elements(p.I64, vertices)
	}
}

// row returns the offset and the number of the in-edges of a node.
func (c *call[I]) row(v int64) (start, degree int64) {
	p := c.Relation.Indptr
	if v >= c.Relation.NumRows() {
		return 0, 0
	}
	start = p.Element(v)
	return start, p.Element(v+1) - start
}
