package cuda

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// vertexMap has a word for every node: above, the tag of the launch that wrote it,
// below, the node's rank or number. An empty word is all ones, and tags fall from
// launch to launch, so an old word is larger than any new one, and the map is emptied
// only when the tags run out.
type vertexMap struct {
	gpu.Memory
	nodes int64  // words
	bits  int    // of a word, 32 or 64
	shift int    // bits below the tag
	next  uint32 // tags that are left; 0: the map is to be emptied
}

// A map of 32-bit words takes half of the caches and of the memory of one of 64.
// Their tags begin above leastShift bits and give way to ranks up to mostShift.
const (
	leastShift = 24
	mostShift  = 30
)

// shift returns the number of bits of a rank in a map of 32-bit words.
func (n Needs) shift() int { return max(bits.Len64(uint64(n.Ranks)), leastShift) }

// emptyWord is half a word that no launch wrote.
const emptyWord = ^uint32(0)

// tag returns a new tag for the next launch, on a graph of nodes nodes, with ranks of up to shift
// bits; its work is in stream s, and no other launch uses the map meanwhile.
func (m *vertexMap) tag(w *Workspace, nodes int64, shift int, s gpu.Stream) (uint32, error) {
	if m.nodes < nodes || m.Size == 0 {
		m.nodes, m.next = 0, 0
		if err := m.Free(s); err != nil {
			return 0, err
		}
		var err error
		if m.Memory, err = w.engine.pool.Alloc(s, uint64(max(nodes, 1))*uint64(m.bits/8)); err != nil {
			return 0, err
		}
		m.nodes = nodes
	}
	if shift > m.shift {
		m.shift, m.next = shift, 0
	}
	if m.next == 0 {
		if err := s.Fill32(m.Address, emptyWord, uint64(m.nodes)*uint64(m.bits/32)); err != nil {
			return 0, err
		}
		m.next = uint32(uint64(1)<<(m.bits-m.shift) - 1)
	}
	m.next--
	return m.next, nil
}

// tags is tag for so many numberings of one launch: the first has the tag below the one that is returned,
// and those after it the next lower ones.
func (m *vertexMap) tags(w *Workspace, nodes int64, shift int, s gpu.Stream, n uint32) (uint32, error) {
	if m.next < n {
		m.next = 0
	}
	first, err := m.tag(w, nodes, shift, s)
	if err != nil {
		return 0, err
	}
	m.next = first + 1 - n
	return first + 1, nil
}
