package contexts

import (
	"math"
	"math/bits"

	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
)

// merge is the edges with times that lead into the rows of a hop, by row and relation: lists in the order of time, of
// which a heap has the latest edge at its top.
type merge struct {
	lists []list // of row i and relation j of its type, at i * most + j: their order where times are equal
	most  int
	heap  []item
}

// list holds the remaining edges of a row and a relation: a number of edges up to a position.
type list struct {
	at, left int64
	parent   int32
	of       *relation
}

// item is a list in the heap, and its latest edge's key in the order of the heap: of later times the smaller.
type item struct{ order, number uint64 }

func orderOf(key int64) uint64 { return uint64(math.MaxInt64) - uint64(key) }

// before returns 1 if the edge of item x comes before that of y, else 0: the borrow of a
// subtraction, since processors mispredict every other branch.
func (x *item) before(y *item) uint64 {
	_, borrow := bits.Sub64(x.number, y.number, 0)
	_, borrow = bits.Sub64(x.order, y.order, borrow)
	return borrow
}

// addTimed takes what edges with times lead from, latest first, into the rows of a hop.
func (w *worker) addTimed(begin, end, bound int64) bool {
	g := &w.merge
	if g.most == 0 {
		return true
	}
	if need := int(end-begin) * g.most; cap(g.lists) < need {
		g.lists = make([]list, need)
	}
	g.lists, g.heap = g.lists[:cap(g.lists)], g.heap[:0]
	for base := begin; base < end; base += blockRows {
		w.byType(base, min(end-base, blockRows), func(kind int, members []int64) {
			for j := range w.timed[kind] {
				w.begin(&w.timed[kind][j], base, base-begin, j, members, bound)
			}
		})
	}
	for i := len(g.heap)/2 - 1; i >= 0; i-- {
		g.down(i)
	}
	for len(g.heap) > 0 {
		top := &g.heap[0]
		l := &g.lists[top.number]
		order := top.order
		// While its edges are of one time the list stays at the top.
		for ; l.left > 0 && order == top.order; l.left-- {
			if !w.add(l.of.src, l.of.Indices.Element(l.at), l.parent) {
				return false
			}
			if l.left > 1 {
				l.at--
				order = orderOf(l.of.rows.Edges[l.at])
			}
		}
		if top.order = order; l.left == 0 {
			last := len(g.heap) - 1
			g.heap[0] = g.heap[last]
			g.heap = g.heap[:last]
		}
		g.down(0)
	}
	return true
}

// lineOfKeys is the number of keys in a cache line.
const lineOfKeys = 8

// begin puts the lists of some rows of a block, which begins at a place of the context and of the hop, and of relation j
// of their type into the heap.
func (w *worker) begin(r *relation, base, inHop int64, j int, members []int64, bound int64) {
	b, g := &w.rows, &w.merge
	w.readRows(r, base, members)
	n := len(members)
	first, counts, last := b.first[:n], b.degrees[:n], b.last[:n]
	r.rows.WithinEach(first, counts, bound, &w.Times)
	for m := range last {
		last[m] = first[m] + counts[m] - 1
	}
	// A list is read from its end on: the line of memory there, and the one before it, which a few steps reach.
	for range 2 {
		prefetch.Elements(r.rows.Edges, last)
		fetch(r.Indices, last)
		for m := range last {
			last[m] -= lineOfKeys
		}
	}
	for m, i := range members {
		if counts[m] == 0 {
			continue
		}
		number := int(inHop+i)*g.most + j
		at := first[m] + counts[m] - 1
		g.lists[number] = list{at: at, left: w.looked(counts[m]), parent: int32(base + i), of: r}
		g.heap = append(g.heap, item{orderOf(r.rows.Edges[at]), uint64(number)})
	}
}

// down sinks an item of the heap: to the end along the earlier one of two children, and up from
// there, which is not far.
func (g *merge) down(i int) {
	h := g.heap
	if i >= len(h) {
		return
	}
	moved, first, child := h[i], i, 2*i+1
	for ; child+1 < len(h); child = 2*i + 1 {
		child += int(h[child+1].before(&h[child]))
		h[i] = h[child]
		i = child
	}
	if child < len(h) {
		h[i] = h[child]
		i = child
	}
	for i > first {
		parent := (i - 1) / 2
		if moved.before(&h[parent]) == 0 {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = moved
}
