package run

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Chances are integers, of which whole is 1. Within slack of an integer a sum is that integer, since sums of doubles are none.
const (
	whole = 1 << 62
	slack = whole >> 24
)

// unit is a chance that two edges have left between them: an edge's, by its place in its column. 0: none.
type unit struct {
	chance uint64
	edge   int32
}

// meet settles one of two edges, and leaves what the other has: together they have as much as before, in the mean each of
// them too, and at most one of both is open.
func (a *unit) meet(b unit, draw uint64, chosen []bool) {
	sum := a.chance + b.chance
	if sum < whole {
		if rng.Below(draw, sum) >= a.chance {
			a.edge = b.edge
		}
		a.chance = sum
		return
	}
	if rng.Below(draw, 2*whole-sum) < whole-b.chance {
		chosen[a.edge] = true
		a.edge = b.edge
	} else {
		chosen[b.edge] = true
	}
	a.chance = sum - whole
}

// dependent selects the edges of each column by dependent rounding: each with its chance, and as
// many as the chances sum up to. Gandhi et al., "Dependent rounding and its applications to
// approximation algorithms", J. ACM 53 (2006): two edges are compared, and one is decided. Here
// edges 32 positions apart are compared first, so that each lane of a warp has its own chain.
func (c *call[I]) dependent(n *program.Node) *edges[I] {
	e, stream := c.edgesOf(n.In[0]), c.stream(n.Site, rng.Neighbors)
	return c.byColumn(n, func(degree int64) int64 { return degree }, func(w *worker, col int64, values []float64, to []int64) int64 {
		v := int64(e.columns.ids[col])
		for _, x := range values {
			if !(x >= 0 && x <= 1) {
				fail(request.ErrValue, "%s", program.DependentText(x, v))
			}
		}
		chosen := sized(&w.kept, len(values))
		w.rounded(values, stream.State(uint64(v)), chosen)
		at := int64(0)
		for j, is := range chosen {
			if is {
				to[at] = int64(j)
				at++
			}
		}
		return at
	})
}

// rounded selects elements by their chances p.
func (s *selection) rounded(p []float64, state uint64, chosen []bool) {
	clear(chosen)
	var open [32]unit
	for j, x := range p {
		own, of := unit{uint64(x * whole), int32(j)}, &open[j%32]
		switch {
		case own.chance == whole:
			chosen[j] = true
		case own.chance == 0:
		case of.chance == 0:
			*of = own
		default:
			of.meet(own, rng.Draw(state, j), chosen)
		}
	}
	for h := 16; h > 0; h /= 2 {
		for l := range h {
			switch other := open[l+h]; {
			case other.chance == 0:
			case open[l].chance == 0:
				open[l] = other
			default:
				open[l].meet(other, rng.Draw(state, l+h), chosen)
			}
		}
	}
	switch last := open[0]; {
	case last.chance < slack:
	case last.chance > whole-slack:
		chosen[last.edge] = true
	default:
		chosen[last.edge] = rng.Draw(state, 0)>>2 < last.chance
	}
}
