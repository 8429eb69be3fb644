package run

import (
	"slices"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// block is an unfinished block of the batch.
type block[I csc.Index] struct {
	values   []edgeValues
	edges    *edges[I]
	dst, src int64
	columns  []I // local numbers of the columns; nil: their places
	rows     []I // local numbers of the matrix's rows, or
	sources  []I // of the edges
}

// edgeValues is an array of a block's edges in the batch.
type edgeValues struct {
	node int
	at   int64
}

// result writes what the program returns.
func (c *call[I]) result() (m memory.Memory, err error) {
	var nodes, index []I
	var blocks []block[I]
	distinct := false
	if c.Result == program.Subgraph {
		nodes, index, blocks = c.subgraph()
	} else {
		nodes, index, blocks, distinct = c.numbered()
	}
	for i, matrix := range c.Matrices {
		if c.Valued(i) {
			c.settleValues(matrix, c.edgesOf(matrix).count())
		}
	}
	for _, e := range c.Extras {
		if e.Block > 0 {
			c.settleValues(e.Node, c.edgesOf(e.Node).count())
		}
	}
	width := batch.Widths{ID: int64(unsafe.Sizeof(I(0))), EdgeID: int64(c.Relation.EdgeIDBits()) / 8}
	extras := make([]extra[I], c.NumExtras())
	size := width.Nodes(int64(len(nodes))+2*int64(len(index))) + 3*batch.Alignment
	for i, e := range c.Extras {
		if e.Block > 0 {
			size += batch.EdgeWeights(blocks[e.Block-1].edges.count()) + batch.Alignment
			continue
		}
		extras[i] = c.extra(e.Node)
		size += width.Nodes(extras[i].length()) + batch.Alignment
	}
	if c.Timed {
		e := &extras[len(c.Extras)]
		e.values = c.clock
		size += width.Nodes(e.length()) + batch.Alignment
	}
	for i := range blocks {
		if err := fits32[I](blocks[i].edges.count()); err != nil {
			return m, err
		}
		indptr, indices, ids := width.Block(blocks[i].dst, blocks[i].edges.count())
		size += indptr + indices + ids + batch.EdgeWeights(blocks[i].edges.count()) + 4*batch.Alignment
	}
	if err := memory.Affordable(size); err != nil {
		return m, err
	}
	out, err := batch.NewBuilder(batch.Layout{Hops: len(blocks), Types: 1, Relations: 1, Extras: len(extras)}, size)
	if err != nil {
		return m, err
	}
	complete := false
	defer func() {
		if !complete {
			out.Discard()
		}
	}()
	// There is room for all: no array moves any more.
	place := func(bytes int64) int64 {
		offset, err := out.Alloc(bytes)
		if err != nil {
			panic(failure{err})
		}
		return offset
	}
	putIDs := func(ids []I) int64 {
		offset := place(width.Nodes(int64(len(ids))))
		copy(memory.ViewAt[I](out.Memory, offset, int64(len(ids))), ids)
		return offset
	}
	out.Set(batch.WordIDBits, width.ID*8)
	out.Set(out.EdgeIDBits(0), width.EdgeID*8)
	out.Set(batch.WordNumOutput, c.Seeds.Len())
	out.Set(batch.WordNumNodes, int64(len(nodes)))
	out.Set(out.Count(0, len(blocks)), int64(len(nodes)))
	at := putIDs(nodes)
	out.Set(batch.WordNodes, at)
	out.Set(batch.WordOutputIndex, putIDs(index))
	if !distinct {
		at = place(width.Nodes(c.Seeds.Len()))
		for i, seeds := int64(0), memory.ViewAt[I](out.Memory, at, c.Seeds.Len()); i < c.Seeds.Len(); i++ {
			seeds[i] = I(c.Seeds.Element(i))
		}
	}
	out.Set(batch.WordOutputNodes, at)
	for i := range blocks {
		c.check()
		b := &blocks[i]
		n := b.edges.count()
		indptr, indices, ids := width.Block(b.dst, n)
		words := [batch.BlockWords]int64{b.src, b.dst, n, place(indptr), place(indices), place(ids)}
		if c.Valued(i) {
			words[batch.BlockEdgeWeights] = place(batch.EdgeWeights(n))
			b.values = append(b.values, edgeValues{c.Matrices[i], words[batch.BlockEdgeWeights]})
		}
		for k, e := range c.Extras {
			if e.Block == i+1 {
				v := edgeValues{e.Node, place(batch.EdgeWeights(n))}
				b.values = append(b.values, v)
				out.SetExtra(k, false, n, v.at)
			}
		}
		out.SetBlock(i, words)
		out.Set(out.Count(0, len(blocks)-1-i), b.dst)
		c.write(b, out.Memory, &words)
	}
	c.mark(len(c.Nodes))
	for i := range extras {
		if i < len(c.Extras) && c.Extras[i].Block > 0 {
			continue
		}
		e := &extras[i]
		offset := int64(0)
		switch {
		case e.list:
			offset = putIDs(e.ids)
		case e.dense != nil:
			offset = place(e.length() * 4)
			out.SetRows(i, e.dense.width)
			for k, to := 0, memory.ViewAt[float32](out.Memory, offset, e.length()); k < len(to); k++ {
				to[k] = single(float64(e.dense.data[k]))
			}
		default:
			offset = place(e.length() * 4)
			for k, to := 0, memory.ViewAt[float32](out.Memory, offset, e.length()); k < len(to); k++ {
				to[k] = single(e.values[k])
			}
		}
		out.SetExtra(i, e.list, e.length(), offset)
	}
	complete = true
	return out.Finish(0), nil
}

// numbered gives all nodes their numbers: the seeds, then of each matrix, from the innermost on, the columns, then
// the rows.
func (c *call[I]) numbered() (nodes, index []I, blocks []block[I], distinct bool) {
	most := c.Seeds.Len()
	for _, m := range c.Matrices {
		e := c.edgesOf(m)
		most += int64(len(e.columns.ids)) + e.count()
	}
	nodes = c.numbering(most)
	index = take[I](&c.arena, c.Seeds.Len())
	for i := range index {
		index[i] = I(c.Seeds.Element(int64(i)))
	}
	n := c.claim(index, nodes, 0)
	distinct = n == c.Seeds.Len()
	claim := func(of []I) []I {
		ids := take[I](&c.arena, int64(len(of)))
		copy(ids, of)
		n = c.claim(ids, nodes, n)
		return ids
	}
	blocks = make([]block[I], len(c.Matrices))
	for i := len(c.Matrices) - 1; i >= 0; i-- {
		e := c.edgesOf(c.Matrices[i])
		b := block[I]{edges: e, columns: claim(e.columns.ids), dst: n}
		if c.check(); e.rows != nil {
			b.rows = claim(e.rows.ids)
		} else {
			b.sources = take[I](&c.arena, e.count())
			for lo := int64(0); lo < e.count(); lo += claimed {
				part := b.sources[lo:min(lo+claimed, e.count())]
				c.sources(e, lo, lo+int64(len(part)), part)
				n = c.claim(part, nodes, n)
			}
		}
		b.src = n
		blocks[i] = b
	}
	return nodes[:n], index, blocks, distinct
}

// subgraph returns the nodes of a list, the positions of the seeds among them, and one block of
// edges between them.
func (c *call[I]) subgraph() (nodes, index []I, blocks []block[I]) {
	ids := c.values[c.List].list.ids
	nodes = c.numbering(int64(len(ids)))
	own := take[I](&c.arena, int64(len(ids)))
	copy(own, ids)
	n := c.claim(own, nodes, 0)
	index = take[I](&c.arena, c.Seeds.Len())
	for i := range index {
		index[i] = I(c.Seeds.Element(int64(i)))
	}
	cpu.Find(&c.numbers, index)
	b := block[I]{edges: c.edgesOf(c.Matrices[0]), dst: n, src: n}
	b.sources = take[I](&c.arena, b.edges.count())
	for lo := int64(0); lo < b.edges.count(); lo += claimed {
		part := b.sources[lo:min(lo+claimed, b.edges.count())]
		c.sources(b.edges, lo, lo+int64(len(part)), part)
		cpu.Find(&c.numbers, part)
		if slices.Min(part) < 0 {
			panic("an edge of a subgraph from a node outside")
		}
	}
	return nodes[:n], index, []block[I]{b}
}

// write writes the arrays of a block: destination by destination, the edges of each in the matrix's order.
func (c *call[I]) write(b *block[I], m memory.Memory, words *[batch.BlockWords]int64) {
	e, n := b.edges, b.edges.count()
	indptr := memory.ViewAt[I](m, words[batch.BlockIndptr], b.dst+1)
	move := c.moves(b, indptr)
	indices := memory.ViewAt[I](m, words[batch.BlockIndices], n)
	weights := make([][]float32, len(b.values))
	for i, v := range b.values {
		weights[i] = memory.ViewAt[float32](m, v.at, n)
	}
	var narrow []int32
	var wide []int64
	if c.Relation.EdgeIDBits() == 32 {
		narrow = memory.ViewAt[int32](m, words[batch.BlockEdgeIDs], n)
	} else {
		wide = memory.ViewAt[int64](m, words[batch.BlockEdgeIDs], n)
	}
	c.tiles(e, func(w *worker, lo, hi int64) {
		ev := evaluatorOf[I](w, c)
		for ; lo < hi; lo += tileEdges {
			size := min(hi-lo, tileEdges)
			t, values := ev.begin(e, lo, size), w.values[:size]
			for i, to := range weights {
				ev.fill(b.values[i].node, t, values)
				if move == nil {
					for k, x := range values {
						to[lo+int64(k)] = single(x)
					}
					continue
				}
				for k, column := range ev.columns() {
					to[lo+int64(k)+move[column]] = single(values[k])
				}
			}
			ids, sources := ev.edgeIDs(), b.sources
			if b.rows != nil {
				sources = ev.numbers.take(size)
				for k, row := range e.local[lo : lo+size] {
					sources[k] = b.rows[row]
				}
			} else {
				sources = sources[lo : lo+size]
			}
			if move == nil {
				copy(indices[lo:], sources)
				if narrow != nil {
					for k, id := range ids {
						narrow[lo+int64(k)] = int32(id)
					}
				} else {
					copy(wide[lo:], ids)
				}
				continue
			}
			for k, column := range ev.columns() {
				to := lo + int64(k) + move[column]
				indices[to] = sources[k]
				if narrow != nil {
					narrow[to] = int32(ids[k])
				} else {
					wide[to] = ids[k]
				}
			}
		}
	})
}

// moves writes the offsets of the edges of each destination, and returns by how much those of each
// column move; nil: none does.
func (c *call[I]) moves(b *block[I], indptr []I) []int64 {
	e := b.edges
	ordered := true
	for col, number := range b.columns {
		ordered = ordered && int64(number) == int64(col)
	}
	columns := len(e.indptr) - 1
	if ordered {
		for col, at := range e.indptr[:columns] {
			indptr[col] = I(at)
		}
		for i := columns; i < len(indptr); i++ {
			indptr[i] = I(e.count())
		}
		return nil
	}
	clear(indptr)
	for col, number := range b.columns {
		indptr[number] = I(e.indptr[col+1] - e.indptr[col])
	}
	at := I(0)
	for i, degree := range indptr {
		indptr[i] = at
		at += degree
	}
	move := take[int64](&c.arena, int64(columns))
	for col, number := range b.columns {
		move[col] = int64(indptr[number]) - e.indptr[col]
	}
	return move
}

// extra is a value that is returned by a name in addition to the blocks.
type extra[I csc.Index] struct {
	list   bool
	ids    []I
	values []float64
	dense  *denseRows
}

func (e *extra[I]) length() int64 {
	if e.dense != nil {
		return e.dense.width * e.dense.count
	}
	return int64(max(len(e.ids), len(e.values)))
}

func (c *call[I]) extra(i int) extra[I] {
	switch c.Nodes[i].Type.Kind {
	case program.List:
		return extra[I]{list: true, ids: c.values[i].list.ids}
	case program.Vector:
		return extra[I]{values: c.vectorOf(i)}
	case program.Matrix:
		return extra[I]{values: c.stored(i)}
	case program.Dense:
		d := c.values[i].dense
		c.singles(d)
		return extra[I]{dense: d}
	}
	return extra[I]{values: []float64{c.values[i].scalar}}
}
