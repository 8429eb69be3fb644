package cpu

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Partition describes a graph that is partitioned into ranges of contiguous nodes: batches request
// the rows of each hop from the partitions, and number the neighbors of the replies.
type Partition struct {
	Bounds []int64 // the node that each part begins at, and behind the last one the number of nodes
	// Ask requests the sampled rows of a hop from their partitions. It is called once for each hop,
	// and returns early, with an error, if the batch is to end.
	Ask func(*RowRequest) ([]RowReply, error)
	// Along holds, for walks on a heterogeneous graph, the relation of each edge type of their
	// rule. Bounds then holds the bounds of all Relations, one relation after another, and a
	// request concerns one of them.
	Along     []WalkRelation
	Relations int
}

// WalkRelation is a relation that walks follow, and the number of nodes of its destination type.
type WalkRelation struct{ Relation, Nodes int64 }

// RowRequest holds the rows that a hop needs, grouped by partition, in the frontier's order.
type RowRequest struct {
	Hop      int
	Starts   []int64 // where the rows of each part begin, and how many there are in all
	Vertices csc.Array
	// Trees holds, for a disjoint batch, the tree of each row, and Bounds the key of its time bound
	// if edges have times.
	Trees  csc.Array
	Bounds []int64
}

// A reply has no nodes. Their words hold the number and the offsets of arrays with a word per edge,
// one after another: the keys of their times, if they bound the next hop, or for whole rows weights
// or other values.
const (
	wordArrays = batch.WordNumNodes
	wordKeys   = batch.WordNodes
)

// optional stands for at most one additional array of the edges in a reply.
const optional = -1

// RowReply is the result of Rows for a partition: an address and a number of bytes.
type RowReply struct{ Address, Size int64 }

// remoteSource are rows of a graph, or of one relation, that are asked for, a hop at a time.
type remoteSource[I csc.Index] struct {
	bounds  []int64 // as Partition has them
	nodes   int64   // that edges lead from
	widths  batch.Widths
	weights bool  // whether edges have factors
	beside  int64 // number of additional arrays of a reply; optional: one, or none

	part, row []int32 // of each row of the frontier: who has it, and the how manieth of the answer it is
	blocks    []block[I]
	starts    []int64
	vertices  []I
	of        []I
	limits    []int64
}

// ByRelation returns the bounds of each relation.
func (p *Partition) ByRelation(relations int) [][]int64 {
	return slices.Collect(slices.Chunk(p.Bounds, len(p.Bounds)/relations))
}

// sort puts a frontier in the order of the parts that have its rows.
func (r *remoteSource[I]) sort(frontier []I, t *disjointMap[I]) error {
	if len(frontier) > math.MaxInt32 {
		return fmt.Errorf("%w: a frontier of %d nodes, more than 2^31 - 1", request.ErrOverflow, len(frontier))
	}
	ends := r.bounds[1:]
	n := int64(len(frontier))
	r.part, r.row, r.vertices = sized(r.part, n), sized(r.row, n), sized(r.vertices, n)
	r.starts = sized(r.starts, int64(len(r.bounds)))
	clear(r.starts)
	for i, v := range frontier {
		// The last part that begins at or before it: others that begin there have no rows.
		part, _ := slices.BinarySearch(ends, int64(v)+1)
		r.part[i], r.row[i] = int32(part), int32(r.starts[part+1])
		r.starts[part+1]++
	}
	for p := range ends {
		r.starts[p+1] += r.starts[p]
	}
	for i, v := range frontier {
		r.vertices[r.starts[r.part[i]]+int64(r.row[i])] = v
	}
	r.of, r.limits = r.of[:0], r.limits[:0]
	if t == nil {
		return nil
	}
	r.of = sized(r.of, n)
	for i, tree := range t.of[t.first : t.first+n] {
		r.of[r.starts[r.part[i]]+int64(r.row[i])] = tree
	}
	if t.timed {
		r.limits = sized(r.limits, n)
		for i, bound := range t.bounds[t.first : t.first+n] {
			r.limits[r.starts[r.part[i]]+int64(r.row[i])] = bound
		}
	}
	return nil
}

// take reads the answers of the parts.
func (r *remoteSource[I]) take(answers []RowReply) error {
	if len(answers) != len(r.bounds)-1 {
		return fmt.Errorf("%w: an answer of %d parts, expected %d", request.ErrValue, len(answers), len(r.bounds)-1)
	}
	r.blocks = r.blocks[:0]
	for p, answer := range answers {
		b, err := answered[I](answer, r.starts[p+1]-r.starts[p], r.widths, r.weights, r.beside)
		if err != nil {
			return fmt.Errorf("part %d: %w", p, err)
		}
		r.blocks = append(r.blocks, b)
	}
	return nil
}

func (r *remoteSource[I]) count(_ []I, lo, hi int64, _ int) (edges int64) {
	for i := lo; i < hi; i++ {
		b, row := &r.blocks[r.part[i]], r.row[i]
		edges += int64(b.indptr[row+1] - b.indptr[row])
	}
	return edges
}

func (r *remoteSource[I]) draw(_ *worker, _ rng.Stream, _ []I, lo, hi, first int64, _ int, b block[I]) {
	at := first
	for i := lo; i < hi; i++ {
		from, row := &r.blocks[r.part[i]], r.row[i]
		b.indptr[i] = I(at)
		start, end := int64(from.indptr[row]), int64(from.indptr[row+1])
		to := at + end - start
		for _, v := range from.indices[start:end] {
			if uint64(v) >= uint64(r.nodes) {
				panic(fmt.Sprintf("part %d: expected nodes in [0, %d), got %d", r.part[i], r.nodes, v))
			}
		}
		copy(b.indices[at:to], from.indices[start:end])
		if b.ids32 != nil {
			copy(b.ids32[at:to], from.ids32[start:end])
		} else {
			copy(b.ids64[at:to], from.ids64[start:end])
		}
		if b.edgeWeights != nil {
			copy(b.edgeWeights[at:to], from.edgeWeights[start:end])
		}
		if b.keys != nil {
			copy(b.keys[at:to], from.keys[start:end])
		}
		at = to
	}
}

// remote are the rows of a homogeneous graph.
type remote[I csc.Index] struct {
	remoteSource[I]
	s *sampling[I]
}

func (s *sampling[I]) remote() (rows[I], error) {
	return &remote[I]{s: s, remoteSource: remoteSource[I]{
		bounds: s.Parts.Bounds, nodes: s.Relation.NumNodes, widths: s.widths(), weights: s.EdgeWeights, beside: s.arrays(),
	}}, nil
}

// prepare sorts a frontier by the partitions that have its rows, and requests them.
func (r *remote[I]) prepare(frontier []I, hop int) error {
	if err := r.sort(frontier, r.s.trees); err != nil {
		return err
	}
	return askTogether(&RowRequest{Hop: hop}, r.s.Parts.Ask, []*remoteSource[I]{&r.remoteSource})
}

// bring requests the rows of a hop, of all relations together.
func (s *heteroBatch[I]) bring(hop int) error {
	of := make([]*remoteSource[I], len(s.rels))
	for i := range s.rels {
		r := &s.rels[i]
		frontier, trees := r.dst.frontier(), r.dst.trees
		if r.Rule(hop).Fanout == 0 {
			frontier, trees = nil, nil
		}
		if err := r.far.sort(frontier, trees); err != nil {
			return err
		}
		of[i] = &r.far
	}
	return askTogether(&RowRequest{Hop: hop}, s.Ask, of)
}

// askTogether requests the sorted rows of several relations: the partitions of the first one, then
// those of the second, and so on. It requests nothing if none has rows.
func askTogether[I csc.Index](about *RowRequest, ask func(*RowRequest) ([]RowReply, error), of []*remoteSource[I]) error {
	about.Starts = []int64{0}
	var vertices, trees []I
	var limits []int64
	for _, r := range of {
		before := int64(len(vertices))
		for _, end := range r.starts[1:] {
			about.Starts = append(about.Starts, before+end)
		}
		vertices, trees, limits = append(vertices, r.vertices...), append(trees, r.of...), append(limits, r.limits...)
	}
	if len(vertices) == 0 {
		return nil
	}
	if about.Vertices = csc.ArrayOf(vertices); len(trees) > 0 {
		about.Trees = csc.ArrayOf(trees)
	}
	about.Bounds = limits
	answers, err := ask(about)
	if err != nil {
		return err
	}
	if len(answers) != len(about.Starts)-1 {
		return fmt.Errorf("%w: an answer of %d parts, expected %d", request.ErrValue, len(answers), len(about.Starts)-1)
	}
	for _, r := range of {
		parts := len(r.bounds) - 1
		if err := r.take(answers[:parts]); err != nil {
			return err
		}
		answers = answers[parts:]
	}
	return nil
}

// answered parses the block of a reply, which may have come over a network: it validates its size
// and its number of rows.
func answered[I csc.Index](a RowReply, rows int64, widths batch.Widths, weights bool, beside int64) (b block[I], err error) {
	if rows == 0 {
		b.indptr = make([]I, 1)
		return b, nil
	}
	l := batch.Homogeneous(1)
	words := int64(l.Words())
	if a.Size < words*8 || a.Address%8 != 0 {
		return b, fmt.Errorf("%w: an answer of %d bytes at %#x, expected at least %d at a multiple of 8", request.ErrValue, a.Size, a.Address, words*8)
	}
	header := memory.View[int64](a.Address, words)
	about := batch.Block(header, 0)
	edges := about[batch.BlockNumEdges]
	if header[batch.WordSignature] != batch.Magic || header[batch.WordNumHops] != 1 ||
		header[batch.WordIDBits] != widths.ID*8 || header[l.EdgeIDBits(0)] != widths.EdgeID*8 ||
		about[batch.BlockNumDst] != rows || edges < 0 || edges > a.Size || weights != (about[batch.BlockEdgeWeights] != 0) {
		return b, fmt.Errorf("%w: an answer to another question: expected %d rows of ids of %d and %d bits, got %d of %d and %d",
			request.ErrValue, rows, widths.ID*8, widths.EdgeID*8, about[batch.BlockNumDst], header[batch.WordIDBits], header[l.EdgeIDBits(0)])
	}
	indptr, indices, edgeIDs := widths.Block(rows, edges)
	sizes := [4]int64{indptr, indices, edgeIDs, batch.EdgeWeights(edges)}
	places := [4]int64{about[batch.BlockIndptr], about[batch.BlockIndices], about[batch.BlockEdgeIDs], about[batch.BlockEdgeWeights]}
	for i, size := range sizes {
		if at := places[i]; at < 0 || at%8 != 0 || at > a.Size-size && (i < 3 || weights) {
			return b, fmt.Errorf("%w: an answer of %d bytes, expected %d more at %d", request.ErrValue, a.Size, size, at)
		}
	}
	b.indptr, b.indices = memory.View[I](a.Address+places[0], rows+1), memory.View[I](a.Address+places[1], edges)
	if widths.EdgeID == 4 {
		b.ids32 = memory.View[int32](a.Address+places[2], edges)
	} else {
		b.ids64 = memory.View[int64](a.Address+places[2], edges)
	}
	if weights {
		b.edgeWeights = memory.View[float32](a.Address+places[3], edges)
	}
	if n, at := header[wordArrays], header[wordKeys]; n != 0 || beside > 0 {
		switch {
		case n != beside && (beside != optional || n != 1):
			return b, fmt.Errorf("%w: an answer with %d additional arrays of its edges, expected %d", request.ErrValue, n, max(beside, 0))
		case edges > 0 && (at <= 0 || at%8 != 0 || n > a.Size/8/edges || at > a.Size-8*edges*n):
			return b, fmt.Errorf("%w: an answer of %d bytes, expected %d arrays of %d edges at %d", request.ErrValue, a.Size, n, edges, at)
		case edges > 0:
			b.keys = memory.View[int64](a.Address+at, edges*n)
		}
	}
	last := I(0)
	for i, end := range b.indptr {
		if end < last || i == 0 && end != 0 || int64(end) > edges {
			return b, fmt.Errorf("%w: an answer whose rows are no rows: %d after %d", request.ErrValue, end, last)
		}
		last = end
	}
	return b, nil
}

// PartRows requests rows of a partition of a graph: the nodes of a RowRequest, as for a whole hop.
type PartRows struct {
	*Request             // its seeds do not count; First is the first node of the part
	Ask      *RowRequest // its Starts do not count
	// IDs are the ids of the partition's edges by their positions, if they have ids; otherwise the
	// ids are Edge and the numbers that follow it.
	IDs      csc.Array
	Edge     int64
	EdgeBits int // the width of ids of edges of the whole graph
	// Salt and the fields after it describe a relation of a heterogeneous graph, as for tiles of
	// rows.
	Salt  uint64
	Mixed bool
	// Beside holds arrays of the partition's edges, by their local ids; a reply has their elements
	// as doubles. Weights asks for the integer weights that rows draw by. Both require whole rows.
	Beside  []csc.Values
	Weights bool
}

// arrays returns the number of arrays that a reply has in addition to its edges.
func (p *PartRows) arrays() int64 {
	if p.Weights {
		return 1
	}
	return max(p.Request.arrays(), int64(len(p.Beside)))
}

// SampleRows samples rows of a partition exactly as a batch of the whole graph samples them. It returns a
// batch of one block whose neighbors are not numbered.
func SampleRows(p *PartRows, crew Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	defer recovered(&err)
	if p.Relation.Indices.Bits == 32 {
		return rowsOf[int32](p, crew, stop)
	}
	return rowsOf[int64](p, crew, stop)
}

func rowsOf[I csc.Index](p *PartRows, crew Crew, stop *atomic.Bool) (memory.Memory, error) {
	frontier := csc.Elements[I](p.Ask.Vertices)
	rows := int64(len(frontier))
	for i, v := range frontier {
		if int64(v) < p.First || int64(v) >= p.Relation.NumNodes {
			return memory.Memory{}, fmt.Errorf("%w: nodes[%d]: expected one in [%d, %d), got %d", request.ErrIndex, i, p.First, p.Relation.NumNodes, v)
		}
	}
	req := *p.Request
	req.Seeds = p.Ask.Vertices
	s := &sampling[I]{Request: &req, scratch: takeScratch(0), team: muster(crew, req.Expected()), stop: stop, edgeIDBits: p.EdgeBits}
	defer s.scratch.put()
	defer s.team.dismiss()
	if of := csc.Elements[I](p.Ask.Trees); of != nil {
		s.trees = &disjointMap[I]{of: of, bounds: p.Ask.Bounds, timed: p.Ask.Bounds != nil}
	}
	var err error
	if s.rows, err = s.tiles(); err != nil {
		return memory.Memory{}, err
	}
	s.tiled.salt, s.tiled.mixed = p.Salt, p.Mixed
	edges, err := s.countRows(frontier, p.Ask.Hop)
	if err != nil {
		return memory.Memory{}, err
	}
	if s.out, err = batch.NewBuilder(batch.Homogeneous(1), 0); err != nil {
		return memory.Memory{}, err
	}
	complete := false
	defer func() {
		if !complete {
			s.out.Discard()
		}
	}()
	arrays, keys := p.arrays(), int64(0)
	if arrays > 0 {
		if keys, err = s.out.Alloc(8 * edges * arrays); err != nil {
			return memory.Memory{}, err
		}
		s.out.Set(wordArrays, arrays)
		s.out.Set(wordKeys, keys)
	}
	b, err := s.newBlock(0, rows, edges, 0)
	if err != nil {
		return memory.Memory{}, err
	}
	if err := s.drawRows(frontier, p.Ask.Hop, b, func(int64) {}); err != nil {
		return memory.Memory{}, err
	}
	b.indptr[rows] = I(edges)
	if arrays > 0 {
		s.beside(p, frontier, b, keys)
	}
	switch {
	case p.IDs.Bits != 0 && b.ids32 != nil:
		for i, at := range b.ids32 {
			b.ids32[i] = p.IDs.I32[at]
		}
	case p.IDs.Bits != 0:
		for i, at := range b.ids64 {
			b.ids64[i] = p.IDs.I64[at]
		}
	case p.Edge != 0:
		for i := range b.ids32 {
			b.ids32[i] += int32(p.Edge)
		}
		for i := range b.ids64 {
			b.ids64[i] += p.Edge
		}
	}
	s.out.Set(batch.WordIDBits, idBits[I]())
	s.out.Set(s.out.EdgeIDBits(0), s.widths().EdgeID*8)
	complete = true
	return s.out.Finish(0), nil
}

// beside writes the additional arrays of a reply, whose edges still have their local ids.
func (s *sampling[I]) beside(p *PartRows, frontier []I, b block[I], place int64) {
	edges := int64(len(b.indices))
	switch to := memory.ViewAt[int64](s.out.Memory, place, edges); {
	case s.carries():
		for i := range to {
			to[i] = timeOf(s.Times, &b, int64(i), int64(b.indices[i]))
		}
	case p.Weights:
		at := 0
		for i, v := range frontier {
			excluded := s.Exclude.Offsets(int64(v) - s.First)
			for j := range s.degrees[i] {
				to[at] = int64(weightAt(s.Relation, s.starts[i], s.starts[i]+csc.Skip(excluded, j)))
				at++
			}
		}
	default:
		for k, values := range p.Beside {
			if of := memory.ViewAt[float64](s.out.Memory, place+8*edges*int64(k), edges); b.ids32 != nil {
				csc.Gather(values, of, b.ids32)
			} else {
				csc.Gather(values, of, b.ids64)
			}
		}
	}
}
