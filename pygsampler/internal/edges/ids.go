package edges

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

const (
	segmentBits = 20
	// Ids below this are bits; a bit for each id up to the largest takes 1 GiB at most.
	mostBitID = 1 << 33
	// mostTable keeps the size of a table far from where products overflow.
	mostTable = 1 << 56
)

// idSet is the set of distinct ids of a file and, once ranked, their numbers from 0 by ascending
// id. Small ids are bits in segments that are allocated on demand, all others are in a hash table:
// 40 to 72 bytes for each of these, and at most 1.5 GiB for all bits. The zero value is an empty
// set.
type idSet struct {
	segments []*segment
	large    table
	order    []int64 // the large ids, ascending, once ranked
	small    int64   // how many are bits, once ranked
	scratch  []*memory.Pages
}

type segment struct {
	words  []uint64
	before []uint32 // bits of the segment before each word
	base   int64    // ids before the segment
}

// add puts ids into the set.
func (s *idSet) add(ids []int64) error {
	for _, id := range ids {
		if id >= mostBitID {
			if err := s.large.add(id); err != nil {
				return err
			}
			continue
		}
		k := int(id >> segmentBits)
		if k >= len(s.segments) || s.segments[k] == nil {
			if err := s.open(k); err != nil {
				return err
			}
		}
		at := id & (1<<segmentBits - 1)
		s.segments[k].words[at>>6] |= 1 << (at & 63)
	}
	return nil
}

func (s *idSet) open(k int) error {
	if k >= len(s.segments) {
		s.segments = append(s.segments, make([]*segment, k+1-len(s.segments))...)
	}
	p, err := memory.Map(1 << (segmentBits - 3))
	if err != nil {
		return err
	}
	s.scratch = append(s.scratch, p)
	s.segments[k] = &segment{words: memory.Slice[uint64](p, 1<<(segmentBits-6))}
	return nil
}

// count is the number of ids.
func (s *idSet) count() int64 {
	n := s.large.used
	for _, g := range s.segments {
		if g != nil {
			for _, w := range g.words {
				n += int64(bits.OnesCount64(w))
			}
		}
	}
	return n
}

// rank numbers the ids.
func (s *idSet) rank() error {
	for _, g := range s.segments {
		if g == nil {
			continue
		}
		p, err := memory.Map(int64(len(g.words)) * 4)
		if err != nil {
			return err
		}
		s.scratch = append(s.scratch, p)
		g.base, g.before = s.small, memory.Slice[uint32](p, int64(len(g.words)))
		n := uint32(0)
		for i, w := range g.words {
			g.before[i] = n
			n += uint32(bits.OnesCount64(w))
		}
		s.small += int64(n)
	}
	p, err := memory.Map(s.large.used * 8)
	if err != nil {
		return err
	}
	s.scratch = append(s.scratch, p)
	s.order = s.large.sorted(memory.Slice[int64](p, s.large.used))
	return s.large.number(s.order)
}

// of returns the number of an id; -1 if it is not in the set.
func (s *idSet) of(id int64) int64 {
	if id >= mostBitID {
		if n := s.large.of(id); n >= 0 {
			return s.small + n
		}
		return -1
	}
	k := int(id >> segmentBits)
	if k >= len(s.segments) || s.segments[k] == nil {
		return -1
	}
	g, at := s.segments[k], id&(1<<segmentBits-1)
	w, bit := g.words[at>>6], uint64(1)<<(at&63)
	if w&bit == 0 {
		return -1
	}
	return g.base + int64(g.before[at>>6]) + int64(bits.OnesCount64(w&(bit-1)))
}

// each calls f with each id and its number, by ascending id.
func (s *idSet) each(f func(id, number int64)) {
	n := int64(0)
	for k, g := range s.segments {
		if g == nil {
			continue
		}
		for i, w := range g.words {
			for ; w != 0; w &= w - 1 {
				f(int64(k)<<segmentBits|int64(i)<<6|int64(bits.TrailingZeros64(w)), n)
				n++
			}
		}
	}
	for _, id := range s.order {
		f(id, n)
		n++
	}
}

func (s *idSet) free() {
	for _, p := range s.scratch {
		p.Free()
	}
	s.large.free()
	*s = idSet{}
}

// table is a set of ids by open addressing, at most half full.
type table struct {
	keys    []uint64 // id + 1; 0: free
	numbers []int64
	pages   *memory.Pages
	ranks   *memory.Pages
	used    int64
}

func (t *table) place(id int64) uint64 {
	// The high bits of a product with 2^64 / phi spread ids that lie in rows.
	at := uint64(id) * 0x9E3779B97F4A7C15 >> (64 - bits.Len(uint(len(t.keys)-1)))
	for t.keys[at] != 0 && t.keys[at] != uint64(id)+1 {
		at = (at + 1) & uint64(len(t.keys)-1)
	}
	return at
}

func (t *table) add(id int64) error {
	if t.used*2 >= int64(len(t.keys)) {
		if err := t.grow(); err != nil {
			return err
		}
	}
	if at := t.place(id); t.keys[at] == 0 {
		t.keys[at] = uint64(id) + 1
		t.used++
	}
	return nil
}

func (t *table) grow() error {
	size := max(int64(len(t.keys))*2, 1<<12)
	if size > mostTable {
		return fmt.Errorf("%w: wanted a table of %d ids", memory.ErrNoMemory, size)
	}
	if err := memory.Affordable(size * 8); err != nil {
		return err
	}
	p, err := memory.Map(size * 8)
	if err != nil {
		return err
	}
	old, oldPages := t.keys, t.pages
	t.keys, t.pages = memory.Slice[uint64](p, size), p
	for _, key := range old {
		if key != 0 {
			t.keys[t.place(int64(key-1))] = key
		}
	}
	if oldPages != nil {
		oldPages.Free()
	}
	return nil
}

func (t *table) sorted(out []int64) []int64 {
	n := 0
	for _, key := range t.keys {
		if key != 0 {
			out[n] = int64(key - 1)
			n++
		}
	}
	slices.Sort(out)
	return out
}

func (t *table) number(order []int64) (err error) {
	if len(order) == 0 {
		return nil
	}
	if t.ranks, err = memory.Map(int64(len(t.keys)) * 8); err != nil {
		return err
	}
	t.numbers = memory.Slice[int64](t.ranks, int64(len(t.keys)))
	for i, id := range order {
		t.numbers[t.place(id)] = int64(i)
	}
	return nil
}

func (t *table) of(id int64) int64 {
	if t.used == 0 {
		return -1
	}
	if at := t.place(id); t.keys[at] != 0 {
		return t.numbers[at]
	}
	return -1
}

func (t *table) free() {
	for _, p := range []*memory.Pages{t.pages, t.ranks} {
		if p != nil {
			p.Free()
		}
	}
}
