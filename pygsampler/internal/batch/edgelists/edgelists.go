// Package edgelists joins the hops of a batch on the CPU into one list of edges for each edge type,
// the seeds' edges first, as PyG stores a subgraph.
package edgelists

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// kind is the nodes of one type.
type kind struct {
	// Words per node type: the number of nodes, of seeds with repetitions, and of distinct seeds;
	// the offsets of the arrays of the first three rows of a type, and of the trees, 0 for none.
	nodes, seeds, distinct    int64
	list, given, place, trees int64
	// The number of nodes when each hop began, and at the end.
	ends []int64
}

// more is the number of rows that a type has in addition to the rows of the batch: one for each
// repetition of a seed.
func (k *kind) more() int64 { return k.seeds - k.distinct }

// relation is the edges between two types.
type relation struct {
	from, to *kind
	bits     int64
	// Words of a block for each hop, the hop of the seeds first.
	blocks [][]int64
	// The number of edges of each hop in this list, in all hops, and the number of edges with a
	// factor; -1 for none.
	of             []int64
	edges, weights int64
	row, ids, at   int64
}

// edgeList is a batch and its edge list.
type edgeList struct {
	data      int64
	bits      int64
	hops      int
	types     []kind
	relations []relation
}

// Concatenate returns a memory, with one reference, of the joined hops of the batch at an address: the
// words of package batch for edge lists, and the arrays that they describe. ends holds the source
// and target types of each relation, two for each of Relations.
//
// A batch holds a repeated seed once. In the result each occurrence has a row of its own, at the
// front, with the edges that were sampled for it, in every hop that expands it. Edges out of it
// come from the first occurrence.
func Concatenate(data int64, ends []int64) (m memory.Memory, err error) {
	j, err := read(data, ends)
	if err != nil {
		return m, err
	}
	if j.bits == 32 {
		return made[int32](j)
	}
	return made[int64](j)
}

// Relations returns the number of relations of the batch at an address whose ends Joined needs: 0
// if there is one node type.
func Relations(data int64) int64 {
	head := memory.View[int64](data, batch.FixedWords)
	if l, is := batch.LayoutOf(head); is && l.Types > 1 {
		return int64(l.Relations)
	}
	return 0
}

// read parses the words of a batch.
func read(data int64, ends []int64) (*edgeList, error) {
	head := memory.View[int64](data, batch.FixedWords)
	l, is := batch.LayoutOf(head)
	if !is {
		return nil, &csc.ValueError{Text: "words: expected those of a batch of blocks, got others"}
	}
	words := memory.View[int64](data, int64(l.Words()))
	j := &edgeList{
		data: data, bits: head[batch.WordIDBits], hops: l.Hops,
		types: make([]kind, l.Types), relations: make([]relation, l.Relations),
	}
	for t := range j.types {
		of := words[l.Type(t):l.Type(t+1)]
		counts := words[l.Count(t, 0):l.Count(t+1, 0)]
		j.types[t] = kind{
			nodes: of[batch.TypeNumNodes], seeds: of[batch.TypeNumOutput], distinct: counts[0],
			list: of[batch.TypeNodes], given: of[batch.TypeOutputNodes],
			place: of[batch.TypeOutputIndex], trees: of[batch.TypeSubgraphIDs],
			ends: counts,
		}
	}
	if l.Types == 1 && l.Relations == 1 {
		j.types[0].ofBlocks(j, words)
	}
	for r := range j.relations {
		made := relation{from: &j.types[0], to: &j.types[0], bits: words[l.EdgeIDBits(r)]}
		if l.Types > 1 {
			made.from, made.to = &j.types[ends[2*r]], &j.types[ends[2*r+1]]
		}
		for i := l.Hops - 1; i >= 0; i-- {
			at := l.Block(i, r)
			made.blocks = append(made.blocks, words[at:at+batch.BlockWords])
		}
		j.relations[r] = made
	}
	return j, nil
}

// ofBlocks counts by the seeds and by the sources of blocks: the destinations of a program's blocks
// need not be the nodes that the words count.
func (k *kind) ofBlocks(j *edgeList, words []int64) {
	k.distinct = k.seeds
	if k.given != k.list {
		k.distinct = 0
		for i := range k.seeds {
			k.distinct = max(k.distinct, j.at(k.place, i)+1)
		}
	}
	k.ends = []int64{k.distinct}
	for i := j.hops - 1; i >= 0; i-- {
		k.ends = append(k.ends, batch.Block(words, i)[batch.BlockNumSrc])
	}
}

// at is an id of an array of the batch.
func (j *edgeList) at(offset, i int64) int64 {
	if j.bits == 32 {
		return int64(view[int32](j, offset, i+1)[i])
	}
	return view[int64](j, offset, i+1)[i]
}

// view is an array of the batch.
func view[T any](j *edgeList, offset, n int64) []T { return memory.View[T](j.data+offset, n) }

// again reports whether a block has rows of repeated seeds.
func (r *relation) again(block []int64) bool {
	return r.to.more() != 0 && block[batch.BlockFirstDst] == 0 && block[batch.BlockNumDst] != 0
}

// count finds how many edges, and factors, a relation has.
func count[T csc.Index](j *edgeList, r *relation) {
	r.weights = -1
	for _, block := range r.blocks {
		n := block[batch.BlockNumEdges]
		if r.again(block) {
			k, indptr := r.to, view[T](j, block[batch.BlockIndptr], block[batch.BlockNumDst]+1)
			n -= int64(indptr[k.distinct])
			for _, row := range view[T](j, k.place, k.seeds) {
				n += int64(indptr[row+1] - indptr[row])
			}
		}
		r.of = append(r.of, n)
		r.edges += n
		if block[batch.BlockEdgeWeights] != 0 {
			r.weights = max(r.weights, 0) + n
		}
	}
}

// inOrder returns 1 if the destinations of consecutive hops are in order.
func (j *edgeList) inOrder() int64 {
	for r := range j.relations {
		first := int64(0)
		for _, block := range j.relations[r].blocks {
			if block[batch.BlockFirstDst] != first {
				return 0
			}
			first += block[batch.BlockNumDst]
		}
	}
	return 1
}

// pieces divides a memory into arrays of integers of one width.
type pieces struct {
	width, end int64
	lengths    []int64
}

// skip is up to a byte of the memory.
func (p *pieces) skip(to int64) { p.add(to/p.width - p.end) }

// add appends an array of n integers.
func (p *pieces) add(n int64) {
	p.lengths = append(p.lengths, n)
	p.end += n
}

func made[T csc.Index](j *edgeList) (m memory.Memory, err error) {
	types, relations, hops := int64(len(j.types)), int64(len(j.relations)), int64(j.hops)
	head := [batch.HopsWords]int64{
		batch.HopsIDBits: j.bits, batch.HopsNumHops: hops,
		batch.HopsNumTypes: types, batch.HopsNumRelations: relations,
		batch.HopsInOrder: j.inOrder(),
	}
	vertices, edges, wide, narrow, factors := int64(0), int64(0), int64(0), int64(0), int64(0)
	for t := range j.types {
		k := &j.types[t]
		vertices += k.nodes + k.more()
		if k.trees != 0 {
			head[batch.HopsTrees] = 1
		}
	}
	for i := range j.relations {
		r := &j.relations[i]
		count[T](j, r)
		r.row, r.at = edges, factors
		edges += r.edges
		factors += max(r.weights, 0)
		if r.bits == 64 {
			r.ids, wide = wide, wide+r.edges
		} else {
			r.ids, narrow = narrow, narrow+r.edges
		}
	}
	// Four lengths that are not used of either width, and at most these of one.
	most := 2*4 + 1 + 4*relations
	words := batch.HopsWords + types*(hops+2) + relations*(hops+2)
	ids := vertices*(1+head[batch.HopsTrees]) + 2*edges
	place := batch.Place(8 * (words + most))
	idsAt := place.Next(j.bits / 8 * ids)
	wideAt := place.Next(8 * wide)
	narrowAt := place.Next(4 * narrow)
	factorsAt := place.Next(4 * factors)
	size := max(place.Aligned(), 8*batch.HopsRoom)

	in64, in32 := j.pieces(8, idsAt, wideAt, 0, ids-2*edges), j.pieces(4, idsAt, narrowAt, factorsAt, ids-2*edges)
	in64.skip(size)
	in32.skip(size)
	if j.bits == 64 && j.none(32) {
		in32.lengths = nil
	}
	head[batch.HopsSize] = size
	head[batch.HopsWide], head[batch.HopsNarrow] = int64(len(in64.lengths)), int64(len(in32.lengths))
	head[batch.HopsNumWords] = words + head[batch.HopsWide] + head[batch.HopsNarrow]
	if m, err = memory.New(size); err != nil {
		return m, err
	}
	m.SetSize(size)
	rest := memory.ViewAt[int64](m, 0, head[batch.HopsNumWords])
	rest = rest[j.tell(rest, head):]
	copy(rest[copy(rest, in64.lengths):], in32.lengths)

	all := memory.ViewAt[T](m, idsAt, ids)
	nodes, ends := all[:vertices], all[ids-2*edges:]
	for t := range j.types {
		nodes = nodes[list[T](j, &j.types[t], nodes):]
	}
	if head[batch.HopsTrees] != 0 {
		of := all[vertices:]
		for t := range j.types {
			// Trees have a root for each seed: none is there twice.
			k := &j.types[t]
			of = of[copy(of, view[T](j, k.trees, k.nodes)):]
		}
	}
	firsts := make(map[*kind][]T, 1)
	for t := range j.types {
		if k := &j.types[t]; k.more() != 0 {
			firsts[k] = first[T](j, k)
		}
	}
	for i := range j.relations {
		r := &j.relations[i]
		row, col := ends[r.row:][:r.edges], ends[edges+r.row:][:r.edges]
		of := memory.ViewAt[float32](m, factorsAt+4*r.at, max(r.weights, 0))
		if r.bits == 32 {
			join(j, r, row, col, memory.ViewAt[int32](m, narrowAt+4*r.ids, r.edges), of)
		} else {
			join(j, r, row, col, memory.ViewAt[int64](m, wideAt+8*r.ids, r.edges), of)
		}
		if known, ok := firsts[r.from]; ok {
			for i, v := range row {
				row[i] = moved(known, v, T(r.from.more()))
			}
		}
	}
	return m, nil
}

// pieces returns the arrays of integers of a width in bytes, without the last one: of the ids, of
// the edge ids, and of the factors, 0 if there are none of this width.
func (j *edgeList) pieces(width, ids, edgeIDs, factors, vertices int64) *pieces {
	p := &pieces{width: width}
	if j.bits == 8*width {
		p.skip(ids)
		p.add(vertices)
		for range 2 {
			for r := range j.relations {
				p.add(j.relations[r].edges)
			}
		}
	} else {
		p.skip(0)
	}
	p.skip(edgeIDs)
	for r := range j.relations {
		if j.relations[r].bits == 8*width {
			p.add(j.relations[r].edges)
		}
	}
	if factors != 0 {
		p.skip(factors)
		for r := range j.relations {
			if n := j.relations[r].weights; n >= 0 {
				p.add(n)
			}
		}
	}
	return p
}

// none reports whether no relation has edge ids of a width, or factors.
func (j *edgeList) none(bits int64) bool {
	for r := range j.relations {
		if j.relations[r].bits == bits || j.relations[r].weights >= 0 {
			return false
		}
	}
	return true
}

// tell writes the words before those of pieces, and returns their number.
func (j *edgeList) tell(words []int64, head [batch.HopsWords]int64) int64 {
	end := copy(words, head[:])
	put := func(n int64) { words[end] = n; end++ }
	for t := range j.types {
		k := &j.types[t]
		put(k.seeds)
		for i := range j.hops {
			put(k.ends[i+1] - k.ends[i])
		}
	}
	for t := range j.types {
		put(j.types[t].nodes + j.types[t].more())
	}
	for r := range j.relations {
		end += copy(words[end:], j.relations[r].of)
	}
	for r := range j.relations {
		put(j.relations[r].bits)
	}
	for r := range j.relations {
		put(j.relations[r].weights)
	}
	return int64(end)
}

// list writes the nodes of a type, and returns their number.
func list[T csc.Index](j *edgeList, k *kind, out []T) int {
	nodes := view[T](j, k.list, k.nodes)
	if k.more() == 0 {
		return copy(out, nodes)
	}
	n := copy(out, view[T](j, k.given, k.seeds))
	return n + copy(out[n:], nodes[k.distinct:])
}

// first returns the first position of each distinct seed.
func first[T csc.Index](j *edgeList, k *kind) []T {
	found, places := make([]T, k.distinct), view[T](j, k.place, k.seeds)
	for i := len(places) - 1; i >= 0; i-- {
		found[places[i]] = T(i)
	}
	return found
}

// moved returns the position of a node once each seed has its own row.
func moved[T csc.Index](firsts []T, v, more T) T {
	if int64(v) < int64(len(firsts)) {
		return firsts[v]
	}
	return v + more
}

// join writes the edges of a relation, but for what becomes of their sources.
func join[T csc.Index, E int32 | int64](j *edgeList, r *relation, row, col []T, ids []E, factors []float32) {
	for _, block := range r.blocks {
		rows, edges := block[batch.BlockNumDst], block[batch.BlockNumEdges]
		indptr := view[T](j, block[batch.BlockIndptr], rows+1)
		indices := view[T](j, block[batch.BlockIndices], edges)
		edgeIDs := view[E](j, block[batch.BlockEdgeIDs], edges)
		var weights []float32
		if block[batch.BlockEdgeWeights] != 0 {
			weights = view[float32](j, block[batch.BlockEdgeWeights], edges)
		}
		// take writes the edges of rows, which stand together.
		take := func(begin, end T) {
			row = row[copy(row, indices[begin:end]):]
			ids = ids[copy(ids, edgeIDs[begin:end]):]
			if weights != nil {
				factors = factors[copy(factors, weights[begin:end]):]
			}
		}
		more := T(r.to.more())
		if !r.again(block) {
			csc.Expand(indptr, col, T(block[batch.BlockFirstDst])+more)
			col = col[edges:]
			take(0, T(edges))
			continue
		}
		for i, of := range view[T](j, r.to.place, r.to.seeds) {
			begin, end := indptr[of], indptr[of+1]
			for e := range col[:end-begin] {
				col[e] = T(i)
			}
			col = col[end-begin:]
			take(begin, end)
		}
		others := T(r.to.distinct)
		begin := indptr[others]
		for v := others; v < T(rows); v++ {
			for e := indptr[v]; e < indptr[v+1]; e++ {
				col[e-begin] = v + more
			}
		}
		col = col[T(edges)-begin:]
		take(begin, T(edges))
	}
}
