package walk

import (
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// tally finds the nodes that a seed's walks have visited most: PinSAGE (Ying et al., 2018)
// takes these as the seed's neighbors. CUDA twin: kernels/walk/visit_counts.cu.
type tally[P, I csc.Index] struct {
	keys, ranks []uint64
}

// seed writes the most visited nodes of a seed: by descending count, and among equal counts by
// first visit, with the visits of a walk in order after those of the previous walk.
func (t *tally[P, I]) seed(e *engine[P, I], seed int64) {
	per, every := max(e.PerSeed, 1), max(e.Every, 1)
	visits := e.Length / every
	at := func(place int64) I {
		return e.nodes[(place%visits+1)*every*e.walks+seed*per+place/visits]
	}
	t.keys, t.ranks = t.keys[:0], t.ranks[:0]
	for place := range per * visits {
		if v := at(place); v >= 0 {
			t.keys = append(t.keys, uint64(v)<<visitShift|uint64(place))
		}
	}
	slices.Sort(t.keys)
	for i := 0; i < len(t.keys); {
		n := 1
		for i+n < len(t.keys) && t.keys[i+n]>>visitShift == t.keys[i]>>visitShift {
			n++
		}
		// Larger counts come first, then lower places.
		t.ranks = append(t.ranks, uint64(mostVisits-n)<<visitShift|t.keys[i]&(1<<visitShift-1))
		i += n
	}
	slices.Sort(t.ranks)
	for k := range e.Top {
		v, n := I(-1), int32(0)
		if k < int64(len(t.ranks)) {
			v, n = at(int64(t.ranks[k]&(1<<visitShift-1))), int32(mostVisits-int64(t.ranks[k]>>visitShift))
		}
		e.top[seed*e.Top+k], e.visits[seed*e.Top+k] = v, n
	}
}
