package khop

import (
	"math/bits"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// unique draws a step of sample w in which no node occurs twice: slot after slot, since a slot takes no node
// that an earlier one has. With Collective all slots draw from one list of edges. CUDA twin: khop_unique and
// layer_unique in kernels/research/khop.cu, which come to the same in any order.
func (u *unit[P, I]) unique(w int64, stop *atomic.Bool) {
	s := u.step
	u.met.clear(min(s.width, u.Relation.NumNodes))
	state := s.stream.State(uint64(u.FirstSample + w))
	transits := u.nodes[s.before+w*s.of:][:s.of]
	if u.Collective {
		u.fill(w, 0, state, u.join(transits), stop)
		return
	}
	for i := range transits {
		if stop.Load() {
			return
		}
		if i%side == 0 {
			prefetch.Elements(u.indptr, transits[i:min(i+side, len(transits))])
		}
		u.fill(w, int64(i)*s.count, state, u.join(transits[i:i+1]), stop)
	}
}

// fill has the slots of a sample from the first one on, as many as the step counts, take edges of the list that
// join made, which has so many.
func (u *unit[P, I]) fill(w, first int64, state uint64, edges int64, stop *atomic.Bool) {
	s := u.step
	// Once a slot finds nothing left, the later slots of the list find nothing either. So slot d of d
	// edges need not look.
	filled, most := int64(0), min(s.count, edges)
slots:
	for filled < most {
		tries := u.places[:min(most-filled, side)]
		for k := range tries {
			tries[k] = u.place(int64(rng.Below(rng.Draw(state, int(first+filled)+k), uint64(edges))))
		}
		prefetch.Elements(u.indices, tries)
		for _, place := range tries {
			if !u.met.add(u.indices[place]) {
				if stop.Load() {
					return
				}
				if place = u.again(state, first+filled, edges); place < 0 {
					break slots
				}
			}
			slot := w*s.width + first + filled
			u.nodes[s.first+slot] = u.indices[place]
			u.putEdge(slot, u.id(place))
			filled++
		}
	}
	u.none(w*s.width+first+filled, s.count-filled)
}

// place is joined, without a search where a transit has the list alone.
func (u *unit[P, I]) place(rank int64) int64 {
	if len(u.sums) == 1 {
		return u.shifts[0] + rank
	}
	return u.joined(rank)
}

// again returns the place that slot t of a sample takes after its first try met a node that an earlier slot
// has, or -1 if no node is left, and adds the node of that place to the set.
func (u *unit[P, I]) again(state uint64, t, edges int64) int64 {
	for try := int64(1); try < min(Tries, edges); try++ {
		place := u.place(int64(rng.Below(rng.Draw(state, int(try*u.step.width+t)), uint64(edges))))
		if u.met.add(u.indices[place]) {
			return place
		}
	}
	own, least, at, rank := rng.Part(state, uint64(t)), uint64(0), int64(-1), int64(0)
	for i, end := range u.sums {
		start := u.shifts[i] + rank
		for j, v := range u.indices[start:][:end-rank] {
			if key := rng.Draw(own, int(rank)+j); (at < 0 || key < least) && !u.met.has(v) {
				least, at = key, start+int64(j)
			}
		}
		rank = end
	}
	if at >= 0 {
		u.met.add(u.indices[at])
	}
	return at
}

// nodeSet is an open table of node ids, with -1 where there is none.
type nodeSet[I csc.Index] struct {
	table []I
	shift int
}

// clear makes the set empty, with room for n ids.
func (s *nodeSet[I]) clear(n int64) {
	size := bits.Len64(uint64(max(2*n, 2) - 1))
	s.shift = 64 - size
	if cap(s.table) < 1<<size {
		s.table = make([]I, 1<<size)
	}
	s.table = s.table[:1<<size]
	for i := range s.table {
		s.table[i] = -1
	}
}

// find returns where v is, or would be.
func (s *nodeSet[I]) find(v I) int {
	at := int(uint64(v) * 0x9E3779B97F4A7C15 >> s.shift)
	for range s.table {
		if s.table[at] == v || s.table[at] < 0 {
			return at
		}
		at = (at + 1) & (len(s.table) - 1)
	}
	panic("more nodes than the graph has")
}

func (s *nodeSet[I]) has(v I) bool { return s.table[s.find(v)] == v }

// add returns whether v was not in the set, and puts it there.
func (s *nodeSet[I]) add(v I) bool {
	at := s.find(v)
	added := s.table[at] != v
	s.table[at] = v
	return added
}
