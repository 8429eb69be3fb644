package contexts

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
)

// blockRows is the number of rows of a hop that are looked up together, so that their reads
// overlap.
const blockRows = times.Side

// rowBlock is some rows of a hop, and where their edges are.
type rowBlock struct {
	// The first position and the number of the edges of row i and relation j of its type, at i *
	// most + j.
	starts, counts []int64
	most           int

	done    [blockRows]bool
	members [blockRows]int64 // the rows of one type
	nodes   [blockRows]int64
	first   [blockRows]int64 // of the edges of these in one relation
	degrees [blockRows]int64
	last    [blockRows]int64
}

// addUntimed takes what edges without times lead from, into the rows of a hop.
func (w *worker) addUntimed(begin, end int64) bool {
	b := &w.rows
	if b.most == 0 {
		return true
	}
	for ; begin < end; begin += blockRows {
		n := min(end-begin, blockRows)
		w.byType(begin, n, func(kind int, members []int64) {
			for j := range w.untimed[kind] {
				r := &w.untimed[kind][j]
				w.readRows(r, begin, members)
				for m, i := range members {
					b.starts[int(i)*b.most+j], b.counts[int(i)*b.most+j] = b.first[m], b.degrees[m]
					b.last[m] = b.first[m] + b.degrees[m] - 1
				}
				fetch(r.Indices, b.last[:len(members)])
			}
		})
		for i := range n {
			of := w.untimed[w.kind(begin+i)]
			for j := range of {
				r := &of[j]
				start, degree := b.starts[int(i)*b.most+j], b.counts[int(i)*b.most+j]
				for at := start + degree - 1; at >= start+degree-w.looked(degree); at-- {
					if !w.add(r.src, r.Indices.Element(at), int32(begin+i)) {
						return false
					}
				}
			}
		}
	}
	return true
}

// byType calls a function for the rows of each type among n rows from begin on, with their
// positions among these.
func (w *worker) byType(begin, n int64, do func(kind int, members []int64)) {
	b := &w.rows
	clear(b.done[:n])
	for i := range n {
		if b.done[i] {
			continue
		}
		kind, members := w.kind(begin+i), b.members[:0]
		for k := i; k < n; k++ {
			if w.kind(begin+k) == kind {
				b.done[k] = true
				members = append(members, k)
			}
		}
		do(kind, members)
	}
}

// readRows finds the edges of some rows of a block in a relation.
func (w *worker) readRows(r *relation, begin int64, members []int64) {
	b := &w.rows
	for m, i := range members {
		b.nodes[m] = w.nodes[w.first+begin+i]
	}
	fetch(r.Indptr, b.nodes[:len(members)])
	rows := r.Indptr.Len() - 1
	for m, v := range b.nodes[:len(members)] {
		b.first[m], b.degrees[m] = 0, 0
		if v < rows {
			b.first[m] = r.Indptr.Element(v)
			b.degrees[m] = r.Indptr.Element(v+1) - b.first[m]
		}
	}
}

// fetch prefetches elements.
func fetch(a csc.Array, at []int64) {
	if a.Bits == 32 {
		prefetch.Elements(a.I32, at)
	} else {
		prefetch.Elements(a.I64, at)
	}
}
