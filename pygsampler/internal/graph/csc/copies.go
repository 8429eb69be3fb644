package csc

import (
	"cmp"
	"slices"
	"sync"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Copies holds, for each edge by its CSC position, the distance to the previous edge of its row
// from the same node; 0: there is none. It is nil if no row of the graph has parallel edges.
type Copies []uint32

// Is reports whether an earlier edge of the row comes from the same node. Edges for which out is
// true do not count; nil: all edges count.
func (c Copies) Is(position int64, out func(position int64) bool) bool {
	if c == nil {
		return false
	}
	for back := c[position]; back > 0; back = c[position] {
		if position -= int64(back); out == nil || !out(position) {
			return true
		}
	}
	return false
}

// Copies returns the copies of the graph, which are computed once, on all cores.
func (g *Relation) Copies() (Copies, error) {
	g.copying.Lock()
	defer g.copying.Unlock()
	if !g.copied {
		of, err := g.findCopies()
		if err != nil {
			return nil, err
		}
		g.copies, g.copied = of, true
	}
	return g.copies, nil
}

func (g *Relation) findCopies() (Copies, error) {
	if g.Indices.Bits == 32 {
		return findCopies(g.Indptr, g.Indices.I32)
	}
	return findCopies(g.Indptr, g.Indices.I64)
}

func findCopies[I Index](indptr Array, indices []I) (found Copies, err error) {
	// Most graphs have none, and take no memory.
	room := sync.OnceFunc(func() {
		if err = memory.Affordable(int64(len(indices)) * 4); err == nil {
			found = make(Copies, len(indices))
		}
	})
	Parallel(0, indptr.Len()-1, func(lo, hi int64) {
		var scratch RowCopies[I]
		for row := lo; row < hi; row++ {
			start, end := indptr.Element(row), indptr.Element(row+1)
			scratch.Each(indices[start:end], func(i, back int) {
				if room(); found != nil {
					found[start+int64(i)] = uint32(back)
				}
			})
		}
	})
	return found, err
}

// RowCopies finds the copies of a row after another; its zero value is ready.
type RowCopies[I Index] struct {
	ids   []I
	order []placed[I]
}

type placed[I Index] struct {
	v  I
	at int32
}

// Each calls f for each edge of a row with an earlier edge from the same node, with its position
// and the distance to the earlier edge.
func (c *RowCopies[I]) Each(row []I, f func(i, back int)) {
	sorted := true
	for i := 1; i < len(row) && sorted; i++ {
		sorted = row[i-1] <= row[i]
	}
	if sorted {
		for i := 1; i < len(row); i++ {
			if row[i] == row[i-1] {
				f(i, 1)
			}
		}
		return
	}
	// Most rows have no copies, and ids without positions sort three times as fast.
	c.ids = append(c.ids[:0], row...)
	slices.Sort(c.ids)
	if len(slices.Compact(c.ids)) == len(row) {
		return
	}
	c.order = c.order[:0]
	for i, v := range row {
		c.order = append(c.order, placed[I]{v, int32(i)})
	}
	slices.SortFunc(c.order, func(a, b placed[I]) int { return cmp.Or(cmp.Compare(a.v, b.v), cmp.Compare(a.at, b.at)) })
	for i := 1; i < len(c.order); i++ {
		if a, b := c.order[i-1], c.order[i]; a.v == b.v {
			f(int(b.at), int(b.at-a.at))
		}
	}
}
