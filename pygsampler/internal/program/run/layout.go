package run

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// known returns the costs of this machine, and of the elements of this program's vectors.
func (c *call[I]) known() (costs.Costs, []layout.Work) {
	if c.works == nil {
		c.costs, _ = costs.Measured()
		c.works = layout.Works(c.Program, c.costs)
	}
	return c.costs, c.works
}

// layoutOf returns the layout of a node. The inputs of the choice are unavailable if rows are remote.
func (c *call[I]) layoutOf(i int) program.Layout {
	if c.near != nil {
		return program.Usual
	}
	return c.Nodes[i].Layout
}

// settle stores a vector over all graph nodes whose elements edges read one by one, if that costs
// less.
func (c *call[I]) settle(i int) {
	n := &c.Nodes[i]
	if n.Type.Kind == program.Matrix && !n.Chooses() {
		if c.need[i]&program.WantValues != 0 && (c.stores(i) || n.Op == program.Dot) {
			c.settleValues(i, c.edgesOf(i).count())
		}
		return
	}
	for k, in := range n.In {
		if c.Nodes[in].Type.Kind == program.Matrix && c.TakesValues(i, k, c.need[i]) {
			c.settleValues(in, c.edgesOf(in).count())
		}
	}
}

// settleValues is settle for the values of a matrix, some of which are computed.
func (c *call[I]) settleValues(i int, count int64) {
	n := &c.Nodes[i]
	if c.values[i].matrix != nil || n.Op == program.Dot {
		return
	}
	for k, in := range n.In {
		switch of := &c.Nodes[in]; {
		case of.Type.Kind == program.Matrix && (n.Maps() && n.Op != program.Spread && n.Op != program.Independent && n.Op != program.Random || n.Chooses() && k == 0):
			c.settleValues(in, count)
		case c.layoutOf(in) == program.Cheaper && of.Type.Kind == program.Vector && !c.values[in].made:
			known, works := c.known()
			if usual, other := works[in].Elements(known, float64(count), float64(c.Relation.NumNodes)); other < usual {
				c.values[in].vector, c.values[in].made = c.vectorOf(in), true
			}
		}
	}
}

// wide reports whether all graph nodes are the rows of a slice: if that costs less for the number
// of its edges, or if forced.
func (c *call[I]) wide(e *edges[I]) bool {
	n := &c.Nodes[e.node]
	way := c.layoutOf(e.node)
	if n.Op != program.Slice || way == program.Usual {
		return false
	}
	known, _ := c.known()
	usual, other := layout.AsRows(known, float64(e.count()), float64(c.Relation.NumNodes))
	return way == program.Other || other < usual
}

// between is the edges from a list's nodes to another's, by either way.
func (c *call[I]) between(i int) *edges[I] {
	n, way := &c.Nodes[i], c.layoutOf(i)
	rows, columns := c.values[n.In[0]].list, c.values[n.In[1]].list
	var all *edges[I]
	if way != program.Usual {
		in := c.Relation.NumEdges()
		if len(columns.ids) < int(c.Relation.NumNodes) {
			all = c.slice(columns)
			in = all.count()
		}
		if out := c.outEdges(way == program.Other, rows, in); out != nil {
			return c.crossByRows(out, rows, columns)
		}
	}
	if all == nil {
		all = c.slice(columns)
	}
	return c.cross(all, rows)
}

// outEdges is a graph by the other end of its edges: the edges from node u are at indptr[u] to
// indptr[u+1], with their destinations in to, ascending, and their CSC positions in places. Its
// memory lives as long as the object.
type outEdges struct {
	indptr     []int64
	to, places csc.Array
}

// turning is the out-edges of a graph, which are cached with it, or the progress towards them: once
// batches have lost the time that finding all of them takes, they are found, so that no loss is
// ever more than twice the minimum.
type turning struct {
	mu      sync.Mutex
	out     atomic.Pointer[outEdges]
	lost    float64 // nanoseconds
	refused bool    // there is no memory for them
}

// outEdges returns a graph's out-edges if A[R, S] is to be found among those of its rows: if
// forced, or if that costs less than searching in in-edges of its columns, and they exist or have
// become worthwhile. One batch computes them; others do without meanwhile.
func (c *call[I]) outEdges(forced bool, rows *list[I], in int64) *outEdges {
	t := c.Relation.Kept.Put("out-edges", new(turning)).(*turning)
	out, edges := t.out.Load(), float64(c.Relation.NumEdges())
	if out != nil && forced {
		return out
	}
	known, _ := c.known()
	taken := float64(len(rows.ids)) * edges / float64(max(c.Relation.NumNodes, 1))
	if out != nil {
		taken = float64(degreesOf(out, rows.ids))
	}
	usual, other := layout.Cross(known, float64(in), taken)
	if !forced && other >= usual {
		return nil
	}
	if out != nil {
		return out
	}
	if forced {
		t.mu.Lock()
	} else if !t.mu.TryLock() {
		return nil
	}
	defer t.mu.Unlock()
	if t.out.Load() == nil && !t.refused {
		if t.lost += usual - other; forced || t.lost >= layout.Transpose(known, edges) {
			t.out.Store(c.turned())
			t.refused = t.out.Load() == nil
		}
	}
	return t.out.Load()
}

// degreesOf returns the sum of the out-degrees of nodes.
func degreesOf[I csc.Index](out *outEdges, vertices []I) (sum int64) {
	for _, u := range vertices {
		sum += out.indptr[u+1] - out.indptr[u]
	}
	return sum
}

// turned finds the out-edges of the graph; nil: there is no memory for them.
func (c *call[I]) turned() *outEdges {
	g := c.Relation
	// Without ids an edge is called by its place.
	t := &csc.Transposition{Relation: &csc.Relation{Indptr: g.Indptr, Indices: g.Indices, NumNodes: g.NumNodes}}
	done := make(chan struct{})
	go func() {
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
				if c.stop.Load() {
					t.Halt()
				}
			}
		}
	}()
	m, err := t.Run()
	close(done)
	switch {
	case errors.Is(err, memory.ErrNoMemory):
		return nil
	case errors.Is(err, csc.ErrStopped):
		panic(failure{request.ErrCancelled})
	case err != nil:
		panic(failure{err})
	}
	words := memory.ViewAt[int64](m, 0, csc.TransposedWords)
	array := func(at, bits int64) csc.Array {
		if bits == 32 {
			return csc.ArrayOf(memory.ViewAt[int32](m, at, words[csc.TransposedNumEdges]))
		}
		return csc.ArrayOf(memory.ViewAt[int64](m, at, words[csc.TransposedNumEdges]))
	}
	out := &outEdges{
		indptr: memory.ViewAt[int64](m, words[csc.TransposedIndptr], words[csc.TransposedNumRows]+1),
		to:     array(words[csc.TransposedIndices], words[csc.TransposedIDBits]),
		places: array(words[csc.TransposedEdgeIDs], words[csc.TransposedEdgeIDBits]),
	}
	runtime.AddCleanup(out, func(m memory.Memory) { m.Release() }, m)
	return out
}

// found is an edge of A[R, S]: its CSC position, and the position of its row in R.
type found struct{ place, row int64 }

// crossByRows is cross by the out-edges of the rows, which are put in the order of columns and places.
func (c *call[I]) crossByRows(out *outEdges, rows, columns *list[I]) *edges[I] {
	most := degreesOf(out, rows.ids)
	places, inRow, inColumn := take[int64](&c.arena, most), take[I](&c.arena, most), take[I](&c.arena, most)
	n := int64(0)
	isColumn := func(I) uint64 { return 1 }
	whole := len(columns.ids) == int(c.Relation.NumNodes) && slices.IsSorted(columns.ids)
	if !whole {
		c.claim(slices.Clone(columns.ids), c.numbering(int64(len(columns.ids))), 0)
		members := c.membersOf(c.Relation.NumNodes)
		for _, v := range columns.ids {
			members[v>>6] |= 1 << (v & 63)
		}
		defer func() {
			for _, v := range columns.ids {
				members[v>>6] = 0
			}
		}()
		isColumn = func(v I) uint64 { return members[v>>6] >> (v & 63) & 1 }
	}
	to := csc.Elements[I](out.to)
	for k, u := range rows.ids {
		if k%claimed == 0 {
			c.check()
		}
		for at := out.indptr[u]; at < out.indptr[u+1]; at++ {
			places[n], inRow[n], inColumn[n] = out.places.Element(at), I(k), to[at]
			n += int64(isColumn(to[at]))
		}
	}
	runtime.KeepAlive(out)
	places, inRow, inColumn = places[:n], inRow[:n], inColumn[:n]
	if !whole {
		cpu.Find(&c.numbers, inColumn)
	}
	count := int64(len(columns.ids))
	e := &edges[I]{columns: columns, indptr: take[int64](&c.arena, count+1), places: places, inRow: inRow}
	clear(e.indptr)
	for _, column := range inColumn {
		e.indptr[column+1]++
	}
	for column := range count {
		e.indptr[column+1] += e.indptr[column]
	}
	next, all := take[int64](&c.arena, count), take[found](&c.arena, n)
	copy(next, e.indptr)
	for k, column := range inColumn {
		all[next[column]] = found{places[k], int64(inRow[k])}
		next[column]++
	}
	c.columnsIn(e, func(_ *worker, _, first, end int64) {
		for column := first; column < end; column++ {
			of := all[e.indptr[column]:e.indptr[column+1]]
			slices.SortFunc(of, func(a, b found) int { return cmp.Compare(a.place, b.place) })
		}
		for k := e.indptr[first]; k < e.indptr[end]; k++ {
			places[k], inRow[k] = all[k].place, I(all[k].row)
		}
	})
	return e
}
