package run

import (
	"sort"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/lanes"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// list is nodes in an order.
type list[I csc.Index] struct{ ids []I }

// edges is a matrix without its values: columns, and edges column by column. Edges of whole columns
// are ranges of the CSC; others are listed in places.
type edges[I csc.Index] struct {
	node    int       // that computed it
	parent  *edges[I] // whose edges these are some of; nil: the graph's
	columns *list[I]
	indptr  []int64 // where each column's edges begin
	ranged  bool    // edge k of column c is at k + shift[c] of the CSC; no shift: at k
	shift   []int64
	places  []int64 // where they are not ranged
	from    []int64 // and, where the parent's are not either: which of the parent's edges they are
	inRow   []I     // of a Cross: where their rows stand in its list
	// The parent's column of each column of an Extract; -1: none. Others have their parent's
	// columns.
	wasColumn []I
	whole     bool // all edges of the graph
	all       bool // all nodes are its rows, with edges and without

	// The results of rowsOf: the rows, and the row of each edge.
	rows  *list[I]
	local []I
	was   []I // of chosen edges whose parent has rows: which of those each row is; nil: not known
}

func (e *edges[I]) count() int64 { return e.indptr[len(e.indptr)-1] }

// columnAt is the column of an edge.
func (e *edges[I]) columnAt(edge int64) int64 {
	return int64(sort.Search(len(e.indptr)-1, func(c int) bool { return e.indptr[c+1] > edge }))
}

// makeEdges makes the matrix of a node that chooses edges.
func (c *call[I]) makeEdges(i int) {
	n := &c.Nodes[i]
	var e *edges[I]
	switch n.Op {
	case program.Whole:
		e = c.wholeEdges()
	case program.Slice:
		e = c.slice(c.distinct(n.In[0]))
	case program.Cross:
		e = c.between(i)
	case program.Individual:
		if len(n.In) == 1 {
			e = c.uniform(n)
		} else {
			e = c.weighted(n)
		}
	case program.Collective:
		e = c.collective(i)
	case program.Dependent:
		e = c.dependent(n)
	case program.Filter:
		e = c.filter(n)
	case program.TopK:
		e = c.topK(n)
	case program.Extract:
		e = c.extract(n)
	case program.Merge:
		e = c.merge(n)
	}
	if e.whole { // it is many programs'
		own := *e
		e = &own
	}
	e.node = i
	c.values[i].edges = e
}

// distinct is the list of a node without repeats.
func (c *call[I]) distinct(i int) *list[I] {
	if l := c.values[i].list; !c.Nodes[i].Type.Distinct {
		return c.unique(l)
	}
	return c.values[i].list
}

// wholeEdges returns all edges: cached with the graph, since offsets of another type need an array.
func (c *call[I]) wholeEdges() *edges[I] {
	g := c.Relation
	text := "whole 64"
	if g.Indices.Bits == 32 {
		text = "whole 32"
	}
	if kept, ok := g.Kept.Get(text).(*edges[I]); ok {
		return kept
	}
	e := &edges[I]{ranged: true, whole: true, indptr: g.Indptr.I64, columns: &list[I]{make([]I, g.NumNodes)}}
	for v := range e.columns.ids {
		e.columns.ids[v] = I(v)
	}
	if int64(len(e.indptr)) != g.NumNodes+1 {
		e.indptr = make([]int64, g.NumNodes+1)
		for v := range e.indptr {
			e.indptr[v] = g.Indptr.Element(min(int64(v), g.NumRows()))
		}
	}
	e.rows, e.local = e.columns, c.indices
	return g.Kept.Put(text, e).(*edges[I])
}

// slice is all in-edges of a list's nodes.
func (c *call[I]) slice(columns *list[I]) *edges[I] {
	n := int64(len(columns.ids))
	e := &edges[I]{ranged: true, columns: columns, indptr: take[int64](&c.arena, n+1), shift: take[int64](&c.arena, n)}
	if c.near != nil {
		c.bring(e)
		return e
	}
	if c.Relation.Indptr.Bits == 32 {
		readColumns(c.Relation.Indptr.I32, c.Relation.NumEdges(), e)
	} else {
		readColumns(c.Relation.Indptr.I64, c.Relation.NumEdges(), e)
	}
	return e
}

// bring requests the remote columns of a slice, and finds their offsets.
func (c *call[I]) bring(e *edges[I]) {
	if err := c.near.Bring(e.columns.ids, c.Parts.Ask); err != nil {
		panic(failure{err})
	}
	c.indices = csc.Elements[I](c.near.Relation.Indices)
	if c.tellsCopies() {
		c.copies = c.near.Copies()
	}
	c.near.Locate(e.columns.ids, e.shift, e.indptr)
	at := int64(0)
	for i, start := range e.shift {
		degree := e.indptr[i]
		e.indptr[i], e.shift[i] = at, start-at
		at += degree
	}
	e.indptr[len(e.indptr)-1] = at
}

// readColumns finds the offsets of the columns of a slice.
func readColumns[I, P csc.Index](indptr []P, edges int64, e *edges[I]) {
	rows, at := int64(len(indptr))-1, int64(0)
	for i, v := range e.columns.ids {
		if i%tileEdges == 0 {
			prefetch.Elements(indptr, e.columns.ids[i:min(i+tileEdges, len(e.columns.ids))])
		}
		start, end := int64(0), int64(0)
		if int64(v) < rows {
			start, end = int64(indptr[v]), int64(indptr[v+1])
		}
		if uint64(start) > uint64(end) || end > edges {
			panic("offsets of a row that descend")
		}
		e.indptr[i], e.shift[i] = at, start-at
		at += end - start
	}
	e.indptr[len(e.indptr)-1] = at
}

// numbering starts a numbering of at most most nodes, and returns a list with room for them.
func (c *call[I]) numbering(most int64) []I {
	most = min(most, c.Relation.NumNodes)
	if err := c.numbers.Begin(c.Relation.NumNodes, most); err != nil {
		panic(failure{err})
	}
	return take[I](&c.arena, most+1)
}

// claim numbers ids in place.
func (c *call[I]) claim(ids, nodes []I, n int64) int64 {
	if words, tag, limit, ok := c.numbers.Narrow(); ok && len(ids) >= leastLanes {
		if n, ok = lanes.Claim(ids, words, tag, limit, nodes, n); !ok {
			panic("an edge from a node that the graph does not have")
		}
		return n
	}
	n, err := cpu.Claim(&c.numbers, ids, nodes, n)
	if err != nil {
		panic(failure{err})
	}
	return n
}

// claimed is the number of edges that are numbered at a time: their nodes stay in the cache.
const claimed = 1 << 12

// rowsOf finds the rows of a matrix, by first occurrence, and which one each edge has.
func (c *call[I]) rowsOf(e *edges[I]) *edges[I] {
	if e.rows != nil {
		return e
	}
	if c.wide(e) {
		return c.rowsBeside(e, func(*worker, int64, int64) {})
	}
	count := e.count()
	local := take[I](&c.arena, count)
	switch p := e.parent; {
	case e.inRow != nil:
		lists := c.values[c.Nodes[e.node].In[0]].list
		e.rows, _ = c.renumbered(local, lists.ids, func(lo, hi int64) { copy(local[lo:hi], e.inRow[lo:hi]) })
	case p != nil && !p.whole && !p.all && p.rows != nil:
		ev := evaluatorOf[I](c.worker(0), c)
		e.rows, e.was = c.renumbered(local, p.rows.ids, func(lo, hi int64) {
			for ; lo < hi; lo += tileEdges {
				t := ev.begin(e, lo, min(tileEdges, hi-lo))
				for k, from := range ev.from(t) {
					local[lo+int64(k)] = p.local[from]
				}
			}
		})
	default:
		e.rows = &list[I]{c.numberedSources(e, local, c.numbering(count))}
	}
	e.local = local
	return e
}

// numberedSources numbers the nodes that edges come from.
func (c *call[I]) numberedSources(e *edges[I], local, nodes []I) []I {
	n, count := int64(0), int64(len(local))
	for lo := int64(0); lo < count; lo += claimed {
		c.check()
		hi := min(lo+claimed, count)
		c.sources(e, lo, hi, local[lo:hi])
		n = c.claim(local[lo:hi], nodes, n)
	}
	return nodes[:n]
}

// numberedBeside is the number of edges from which on it takes long enough to number them, with the
// work next to it, to call a worker.
const numberedBeside = 1 << 16

// rowsBeside runs rowsOf and, at the same time, ranges of the edges for work that takes no memory
// and does not use the rows: numbering is the work of one worker, which the others need not wait
// for.
func (c *call[I]) rowsBeside(e *edges[I], work func(w *worker, lo, hi int64)) *edges[I] {
	count := e.count()
	if e.rows == nil && c.wide(e) {
		e.rows, e.local, e.all = c.wholeEdges().columns, take[I](&c.arena, count), true
		c.ranges(count, func(w *worker, lo, hi int64) {
			c.sources(e, lo, hi, e.local[lo:hi])
			work(w, lo, hi)
		})
		return e
	}
	if e.rows != nil || e.inRow != nil || e.parent != nil && !e.parent.whole && !e.parent.all && e.parent.rows != nil {
		c.ranges(count, work)
		return c.rowsOf(e)
	}
	local, nodes := take[I](&c.arena, count), c.numbering(count)
	if count >= numberedBeside || worthwhile == 0 {
		c.together(0, (count+unitEdges-1)/unitEdges+1, func(w *worker, unit int64) {
			if unit == 0 {
				nodes = c.numberedSources(e, local, nodes)
				return
			}
			work(w, (unit-1)*unitEdges, min(unit*unitEdges, count))
		})
	} else {
		nodes = c.numberedSources(e, local, nodes)
		c.ranges(count, work)
	}
	e.rows, e.local = &list[I]{nodes}, local
	return e
}

// renumbered renumbers rows by first occurrence in the order that fill writes them. It returns the
// old number of each row.
func (c *call[I]) renumbered(local, rows []I, fill func(lo, hi int64)) (of *list[I], was []I) {
	numbers := take[I](&c.arena, int64(len(rows)))
	for i := range numbers {
		numbers[i] = -1
	}
	most := int64(min(len(rows), len(local)))
	nodes, was := take[I](&c.arena, most), take[I](&c.arena, most)
	n := I(0)
	for lo := int64(0); lo < int64(len(local)); lo += claimed {
		hi := min(lo+claimed, int64(len(local)))
		fill(lo, hi)
		for k, r := range local[lo:hi] {
			if numbers[r] < 0 {
				numbers[r] = n
				nodes[n], was[n] = rows[r], r
				n++
			}
			local[lo+int64(k)] = numbers[r]
		}
	}
	return &list[I]{nodes[:n]}, was[:n]
}

// sources writes the nodes that edges come from.
func (c *call[I]) sources(e *edges[I], lo, hi int64, to []I) {
	if !e.ranged {
		places := e.places[lo:hi]
		for lo := 0; lo < len(places); lo += prefetch.Step {
			prefetch.Ahead(c.indices, places, lo)
			for k := lo; k < min(lo+prefetch.Step, len(places)); k++ {
				to[k] = c.indices[places[k]]
			}
		}
		return
	}
	column := e.columnAt(lo)
	for at := lo; at < hi; at += tileEdges {
		end := min(at+tileEdges, hi)
		column = e.runs(column, at, end, func(at, n, place int64) { copy(to[at-lo:at-lo+n], c.indices[place:place+n]) })
		fetchNext(c.indices, e, column, end)
	}
}

// fetchNext prefetches the elements of an array along the CSC for the next tile of whole columns.
// Columns of a slice are anywhere in the graph, and each would begin with a wait of some 100 ns:
// edges between 10,000 nodes of 50 edges took 2.4 ms of one core, and take 0.8.
func fetchNext[T any, I csc.Index](array []T, e *edges[I], column, lo int64) {
	if hi := min(lo+tileEdges, e.count()); e.shift != nil && lo < hi {
		e.runs(column, lo, hi, func(_, n, place int64) { prefetch.All(array[place : place+n]) })
	}
}

// runs passes the parts of a range of the edges of whole columns that are contiguous in the CSC to
// run: the position of each among the edges, its length, and its position in the CSC. It takes the
// column of the first edge and returns that of the last.
func (e *edges[I]) runs(column, lo, hi int64, run func(at, n, place int64)) int64 {
	if e.shift == nil {
		run(lo, hi-lo, lo)
		return column
	}
	for ; ; column++ {
		end := min(e.indptr[column+1], hi)
		if end > lo {
			run(lo, end-lo, lo+e.shift[column])
		}
		if lo = max(lo, end); lo >= hi {
			return column
		}
	}
}

// cross selects the edges of whole columns that come from a list's nodes. Most edges of the columns
// come from other nodes: a bit of their row, which the cache holds, decides that, and only the
// others are looked up in the map.
func (c *call[I]) cross(all *edges[I], rows *list[I]) *edges[I] {
	nodes, own := c.numbering(int64(len(rows.ids))), take[I](&c.arena, int64(len(rows.ids)))
	copy(own, rows.ids)
	c.claim(own, nodes, 0)
	members := c.membersOf(c.Relation.NumNodes)
	for _, v := range rows.ids {
		members[v>>6] |= 1 << (v & 63)
	}
	defer func() {
		for _, v := range rows.ids {
			members[v>>6] = 0
		}
	}()
	count := all.count()
	places, inRow := take[int64](&c.arena, count), take[I](&c.arena, count)
	e := &edges[I]{columns: all.columns, indptr: take[int64](&c.arena, int64(len(all.indptr)))}
	// The edges of each unit are written at the offset of its columns, and moved together
	// afterwards.
	type part struct{ from, n int64 }
	parts := make([]part, c.columnUnits(all))
	c.columnsIn(all, func(w *worker, unit, first, end int64) {
		begin, stop, ev := all.indptr[first], all.indptr[end], evaluatorOf[I](w, c)
		at := begin
		for lo := begin; lo < stop; lo += tileEdges {
			ev.begin(all, lo, min(stop-lo, tileEdges))
			n, ok := lanes.Sift(ev.sourceVertices(), members, c.Relation.NumNodes, lo, places[at:], inRow[at:])
			if !ok {
				panic("an edge from a node that the graph does not have")
			}
			at += n
		}
		k := begin
		for col := first; col < end; col++ {
			before, next, shift := k, all.indptr[col+1], all.shift[col]
			for ; k < at && places[k] < next; k++ {
				places[k] += shift
			}
			e.indptr[col+1] = k - before
		}
		cpu.Find(&c.numbers, inRow[begin:at])
		parts[unit] = part{begin, at - begin}
	})
	at := int64(0)
	for _, p := range parts {
		copy(places[at:], places[p.from:p.from+p.n])
		copy(inRow[at:], inRow[p.from:p.from+p.n])
		at += p.n
	}
	e.indptr[0] = 0
	for col := 1; col < len(e.indptr); col++ {
		e.indptr[col] += e.indptr[col-1]
	}
	e.places, e.inRow = places[:at], inRow[:at]
	return e
}

// merge concatenates, for each column, the edges of two matrices.
func (c *call[I]) merge(n *program.Node) *edges[I] {
	a, b := c.edgesOf(n.In[0]), c.edgesOf(n.In[1])
	e := &edges[I]{columns: a.columns, indptr: take[int64](&c.arena, int64(len(a.indptr)))}
	for col := range a.indptr {
		e.indptr[col] = a.indptr[col] + b.indptr[col]
	}
	e.places = take[int64](&c.arena, e.count())
	ev := evaluatorOf[I](c.worker(0), c)
	place := func(m *edges[I], lo, hi, to int64) {
		for ; lo < hi; lo += tileEdges {
			n := min(hi-lo, tileEdges)
			to += int64(copy(e.places[to:], ev.placesOf(m, lo, n)))
		}
	}
	for col := range len(a.indptr) - 1 {
		to := e.indptr[col]
		place(a, a.indptr[col], a.indptr[col+1], to)
		place(b, b.indptr[col], b.indptr[col+1], to+a.indptr[col+1]-a.indptr[col])
	}
	return e
}

// mergeValues are the values of a merged matrix.
func (c *call[I]) mergeValues(i int) {
	n, e := &c.Nodes[i], c.values[i].edges
	to, at := take[float64](&c.arena, e.count()), int64(0)
	a, b := c.edgesOf(n.In[0]), c.edgesOf(n.In[1])
	x, y := c.stored(n.In[0]), c.stored(n.In[1])
	for col := range len(a.indptr) - 1 {
		at += int64(copy(to[at:], x[a.indptr[col]:a.indptr[col+1]]))
		at += int64(copy(to[at:], y[b.indptr[col]:b.indptr[col+1]]))
	}
	c.values[i].matrix, c.values[i].made = to, true
}

// stored returns the values of a matrix in an array: its own, or a new one.
func (c *call[I]) stored(i int) []float64 {
	if m := c.values[i].matrix; m != nil {
		return m
	}
	return c.materialise(i)
}

// array is a named array of the graph.
func array(of map[string]csc.Values, kind, what, name string) csc.Values {
	v, there := of[name]
	if !there {
		fail(request.ErrValue, "%s: expected %s array '%s' of the graph, got none", what, kind, name)
	}
	return v
}
