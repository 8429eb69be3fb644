package cpu

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// disjointMap is the state of a disjoint batch outside of its region: each node belongs to the tree
// of one seed, and the pair has the number. The number of pairs is not known beforehand, so the
// lists grow here and are copied into the region at the end.
type disjointMap[I csc.Index] struct {
	vertices, of []I   // by local number; one more than used, as claimDirect has it
	shift        int   // a pair's key is tree << shift | node
	first        int64 // local number of the hop's first row
	// The key of each node's time bound, by local number, if edges have times.
	timed  bool
	bounds []int64
}

// plant begins a disjoint batch: every seed, also a repeated one, is a root.
func (s *sampling[I]) plant() error {
	g, seeds := s.Relation, s.Seeds.Len()
	shift, err := request.TreeShift(g.NumNodes, seeds)
	if err != nil {
		return err
	}
	t := &disjointMap[I]{shift: shift, timed: s.Times != nil}
	s.trees = t
	s.table.begin()
	if s.out, err = batch.NewBuilder(batch.Homogeneous(len(s.Fanouts)), s.widths().Nodes(2*seeds)+4096); err != nil {
		return err
	}
	local, err := s.output()
	if err != nil {
		return err
	}
	if err := s.reserve(seeds); err != nil {
		return err
	}
	t.root(&s.table, local, 0)
	if s.Times != nil {
		copy(t.bounds, s.Times.Seeds)
	}
	s.n = seeds
	s.out.Set(s.out.Count(0, 0), s.n)
	return nil
}

// root numbers seeds in place, each a node of its own tree; trees are numbered from first on.
func (t *disjointMap[I]) root(h *hashTable, seeds []I, first int64) {
	for i, v := range seeds {
		t.vertices[i], t.of[i] = v, I(first+int64(i))
		slot, _ := h.find(t.key(int64(i)))
		h.enter(slot, t.key(int64(i)), int64(i))
		seeds[i] = I(i)
	}
}

func (t *disjointMap[I]) key(i int64) uint64 { return uint64(t.of[i])<<t.shift | uint64(t.vertices[i]) }

// reserve allocates space for up to more new pairs after n.
func (t *disjointMap[I]) reserve(l *lists, h *hashTable, n, more int64) error {
	count := n + more + 1
	if err := memory.Affordable(count * (2*idBits[I]()/8 + 32)); err != nil {
		return err
	}
	var err error
	if t.vertices, err = longer(&l.vertices, t.vertices[:n], count); err != nil {
		return err
	}
	if t.of, err = longer(&l.trees, t.of[:n], count); err != nil {
		return err
	}
	if t.timed {
		if t.bounds, err = longer(&l.bounds, t.bounds[:n], count); err != nil {
			return err
		}
	}
	return h.reserve(count, n, t.key)
}

// longer returns a list with room for count, on new pages if the old ones are too short.
func longer[I csc.Index](pages **memory.Pages, list []I, count int64) ([]I, error) {
	old := *pages
	if old != nil {
		if all := memory.All[I](old); int64(len(all)) >= count {
			return all, nil
		}
	}
	fresh, err := memory.Map(2 * count * idBits[I]() / 8)
	if err != nil {
		return nil, err
	}
	all := memory.All[I](fresh)
	copy(all, list)
	if old != nil {
		old.Free()
	}
	*pages = fresh
	return all, nil
}

// part gives rows that draw, by their places after lo in the hop, the states of their
// disjointMap.
func (t *disjointMap[I]) part(states []uint64, rows []int32, lo int64) {
	for j, i := range rows {
		states[j] = rng.Part(states[j], uint64(t.of[t.first+lo+int64(i)]))
	}
}

// claim numbers the edges of the rows [lo, hi) of a hop, in order, in place; n pairs
// have numbers, and it returns how many have them then.
func (t *disjointMap[I]) claim(h *hashTable, b block[I], times *Times, lo, hi, end, n int64) int64 {
	return t.claimFrom(t, h, b, times, lo, hi, end, n)
}

// claimFrom is claim for rows whose nodes belong to another list; times are the times of the edges,
// nil: none.
func (t *disjointMap[I]) claimFrom(rows *disjointMap[I], h *hashTable, b block[I], times *Times, lo, hi, end, n int64) int64 {
	for row := lo; row < hi; row++ {
		to := end
		if row+1 < hi {
			to = int64(b.indptr[row+1])
		}
		tree, bound := rows.of[rows.first+row], int64(0)
		if t.timed {
			bound = rows.bounds[rows.first+row]
		}
		ids := b.indices[b.indptr[row]:to]
		for k, v := range ids {
			key := uint64(tree)<<t.shift | uint64(v)
			slot, found := h.find(key)
			if !found {
				h.enter(slot, key, n)
				t.vertices[n], t.of[n] = v, tree
				if t.timed {
					if t.bounds[n] = bound; times != nil && times.Carry {
						t.bounds[n] = timeOf(times, &b, int64(b.indptr[row])+int64(k), int64(v))
					}
				}
				n++
			}
			ids[k] = I(h.number(slot))
		}
	}
	return n
}

// timeOf is the key of an edge of a block, which leads from a node.
func timeOf[I csc.Index](t *Times, b *block[I], edge, from int64) int64 {
	switch {
	case b.keys != nil:
		return b.keys[edge]
	case t.ByVertex:
		return t.Of[from]
	case b.ids32 != nil:
		return t.Of[b.ids32[edge]]
	}
	return t.Of[b.ids64[edge]]
}

// finish copies the lists into the region.
func (t *disjointMap[I]) finish(s *sampling[I]) error {
	for _, list := range []struct {
		word   int
		values []I
	}{{batch.WordNodes, t.vertices}, {batch.WordSubgraphIDs, t.of}} {
		if err := putList(s.out, list.word, list.values[:s.n]); err != nil {
			return err
		}
	}
	return nil
}

// putList copies a list into the region, and writes its offset to a word.
func putList[I csc.Index](out *batch.Builder, word int, values []I) error {
	offset, err := out.Alloc(int64(len(values)) * idBits[I]() / 8)
	if err != nil {
		return err
	}
	copy(memory.ViewAt[I](out.Memory, offset, int64(len(values))), values)
	out.Set(word, offset)
	return nil
}
