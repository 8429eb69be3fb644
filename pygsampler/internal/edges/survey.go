package edges

import (
	"errors"
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Numbering says when nodes are renumbered.
type Numbering int

// Anew means from 0 by ascending id, with a map to the ids of the file.
const (
	IfGaps Numbering = iota // where some id below the largest does not occur
	Never
	Always
)

// If nodes may be renumbered, degrees are counted by the ids of the file up to this bound, in 2
// GiB, even if few of those ids occur; above it another pass over the file counts them once the
// numbers are known. Tests lower the bound.
var mostCounted int64 = 1 << 28

// survey is the result of the first scans of a file: the nodes and their degrees.
type survey struct {
	plan     *Plan
	edges    int64
	loops    int64
	loopsAt  []int64 // positions of self loops from the last scan; with Data and both directions
	largest  int64
	sorted   bool   // no target is less than the one before
	ids      *idSet // nil if nodes are not renumbered
	forward  tally
	backward tally
	counting bool
	anew     bool
	nodes    int64
	last     int64
}

// look makes the passes that are needed to know all degrees.
func (s *survey) look(source *spool, m *Meter) error {
	s.largest, s.sorted, s.counting, s.last = -1, true, true, -1
	numbering := s.plan.Numbering
	if numbering == IfGaps && s.plan.NumNodes >= 0 {
		numbering = Never
	}
	if numbering != Never {
		s.ids = new(idSet)
	}
	if err := source.Scan(m, s.take); err != nil {
		return err
	}
	if s.ids != nil {
		known := s.ids.count()
		if s.anew = numbering == Always || known <= s.largest; s.anew {
			return s.number(known, source, m)
		}
		s.ids.free()
		s.ids = nil
	}
	s.nodes = s.largest + 1
	if s.plan.NumNodes >= 0 {
		s.nodes = s.plan.NumNodes
	}
	// Nodes after the last node with edges have counts, too.
	if err := memory.Affordable(s.nodes * 8); err != nil {
		return err
	}
	if err := s.forward.reach(s.nodes); err != nil {
		return err
	}
	if err := s.backward.reach(s.nodes); err != nil || s.counting {
		return err
	}
	s.loops = 0
	source.more(m)
	return source.Scan(m, func(b *Batch) error {
		for i, u := range b.Src {
			if max(u, b.Dst[i]) > s.largest {
				return errors.New(changed)
			}
		}
		return s.count(b, s.largest)
	})
}

// take counts the edges of a batch by the ids of the file.
func (s *survey) take(b *Batch) error {
	top := int64(-1)
	for i, u := range b.Src {
		top = max(top, u, b.Dst[i])
	}
	if err := s.check(b, top); err != nil {
		return err
	}
	s.largest = max(s.largest, top)
	s.edges += int64(len(b.Src))
	for _, v := range b.Dst {
		if v < s.last {
			s.sorted = false
		}
		s.last = v
	}
	if s.ids != nil {
		if err := s.ids.add(b.Src); err != nil {
			return err
		}
		if err := s.ids.add(b.Dst); err != nil {
			return err
		}
		if s.counting && s.largest >= mostCounted {
			s.counting = false
			s.forward.free()
			s.backward.free()
		}
	}
	if !s.counting {
		s.countLoops(b)
		return nil
	}
	return s.count(b, s.largest)
}

// check refuses ids that the graph has no node for.
func (s *survey) check(b *Batch, top int64) error {
	limit, what := int64(math.MaxInt64), ""
	switch {
	case s.plan.NumNodes >= 0:
		limit, what = s.plan.NumNodes, "as num_nodes says"
	case s.plan.Numbering == Never && s.plan.Bits == 32:
		limit, what = csc.MaxNodes32, "as int32 asks for; renumber=True numbers nodes from 0"
	case s.plan.Numbering == Never:
		limit, what = csc.MaxNodes, "as nodes have; renumber=True numbers them from 0"
		if top < limit && memory.Affordable(top*8) != nil {
			limit, what = csc.MaxNodes32, "as this machine has memory for; renumber=True numbers nodes from 0"
		}
	}
	if what != "" && top >= limit {
		for i, u := range b.Src {
			if id := max(u, b.Dst[i]); id >= limit {
				return valueError("%s: expected ids below %d, %s, got %d", b.where(i), limit, what, id)
			}
		}
	}
	return nil
}

func (s *survey) countLoops(b *Batch) {
	if s.plan.Undirected {
		for i, u := range b.Src {
			if u == b.Dst[i] {
				s.loops++
			}
		}
	}
}

// count adds the edges of a batch, whose ids are at most largest, to the degrees.
func (s *survey) count(b *Batch, largest int64) error {
	if err := s.forward.reach(largest); err != nil {
		return err
	}
	n := s.forward.n
	for _, v := range b.Dst {
		n[v]++
	}
	if !s.plan.Undirected {
		return nil
	}
	if err := s.backward.reach(largest); err != nil {
		return err
	}
	n = s.backward.n
	for i, u := range b.Src {
		// A self loop is its own reverse.
		if u != b.Dst[i] {
			n[u]++
		} else {
			s.loops++
		}
	}
	return nil
}

// number ranks the ids, and turns degrees by id into degrees by number.
func (s *survey) number(known int64, source *spool, m *Meter) error {
	s.nodes = known
	if err := s.ids.rank(); err != nil {
		return err
	}
	if s.counting {
		// Ascending, and a number is never more than its id: in place.
		s.ids.each(func(id, number int64) {
			for _, t := range []*tally{&s.forward, &s.backward} {
				if id < int64(len(t.n)) {
					n := t.n[id]
					t.n[id] = 0
					t.n[number] = n
				}
			}
		})
		if err := s.forward.reach(known); err != nil {
			return err
		}
		return s.backward.reach(known)
	}
	if err := s.forward.reach(known); err != nil {
		return err
	}
	if err := s.backward.reach(known); err != nil {
		return err
	}
	s.loops = 0
	source.more(m)
	return source.Scan(m, func(b *Batch) error {
		if err := s.rename(b); err != nil {
			return err
		}
		return s.count(b, known-1)
	})
}

const changed = "the file changed while it was read"

func (s *survey) free() {
	if s.ids != nil {
		s.ids.free()
	}
	s.forward.free()
	s.backward.free()
}

// total is the edges of the graph.
func (s *survey) total() int64 {
	if s.plan.Undirected {
		return 2*s.edges - s.loops
	}
	return s.edges
}
