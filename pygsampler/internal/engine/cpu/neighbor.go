package cpu

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// DefaultMapBytes is the default bound of the direct map of a running batch: 256 MiB suffice for 64
// million nodes.
const DefaultMapBytes = 256 << 20

// sampling is one batch in the making; I is the type of the graph's ids.
type sampling[I csc.Index] struct {
	*Request
	*scratch
	team *team
	stop *atomic.Bool

	out      *batch.Builder
	offNodes int64
	n        int64 // distinct nodes so far
	expanded int64 // those whose rows were drawn, where each is drawn once
	numbers  numbering
	trees    *disjointMap[I] // nil: trees share nodes
	rows     rows[I]
	tiled    tiled[I] // the rows, where they are tiles
	// edgeIDBits is the width of edge ids if the graph is a partition of another; 0: the width of
	// the graph.
	edgeIDBits int
}

// rows is the source of a hop's rows: drawn in the order of tiles, or drawn before, in another
// order. Each call returns the rows [lo, hi) of the hop's frontier.
type rows[I csc.Index] interface {
	// count reads the offset and the length of each row, and returns the number of edges that the
	// hop takes.
	count(frontier []I, lo, hi int64, hop int) (edges int64)
	// draw writes the edges, as original ids, into the block from edge first on.
	draw(w *worker, stream rng.Stream, frontier []I, lo, hi, first int64, hop int, b block[I])
}

// prepared are rows that have to know a hop's whole frontier before any of them is counted.
type prepared[I csc.Index] interface {
	prepare(frontier []I, hop int) error
}

// sampleHops makes a batch of rows that begin prepares once the seeds are numbered.
func sampleHops[I csc.Index](req *Request, crew Crew, stop *atomic.Bool, begin func(*sampling[I]) (rows[I], error)) (memory.Memory, error) {
	s := &sampling[I]{Request: req, scratch: takeScratch(req.Relation.NumNodes), team: muster(crew, req.Expected()), stop: stop}
	defer s.scratch.put()
	defer s.team.dismiss()
	complete := false
	defer func() {
		if !complete && s.out != nil {
			s.out.Discard()
		}
	}()
	if err := s.begin(); err != nil {
		return memory.Memory{}, err
	}
	var err error
	if s.rows, err = begin(s); err != nil {
		return memory.Memory{}, err
	}
	for hop := range req.Fanouts {
		if err := s.hop(hop); err != nil {
			return memory.Memory{}, err
		}
	}
	s.out.Set(batch.WordNumNodes, s.n)
	// The list of nodes is as long as its bound; what lies beyond was not touched.
	untouched := s.widths().Nodes(s.bound() - s.n)
	if s.trees != nil {
		if err := s.trees.finish(s); err != nil {
			return memory.Memory{}, err
		}
		untouched = 0
	}
	complete = true
	return s.out.Finish(untouched), nil
}

// numbering says how a batch's local numbers are assigned.
type numbering uint8

const (
	narrowMap numbering = iota // 4 bytes a node, for batches below 2^24 nodes
	wideMap                    // 8 bytes a node
	hashed                     // the table sized to the batch
)

// numberBy chooses the numbering: a direct map while it is within the limit.
func (r *Request) numberBy() numbering {
	limit := r.MapBytes
	if limit == 0 {
		limit = DefaultMapBytes
	}
	switch narrow := r.bound() <= narrowNumbers; {
	case narrow && r.Relation.NumNodes*4 <= limit:
		return narrowMap
	case !narrow && r.bound() <= wideNumbers && r.Relation.NumNodes*8 <= limit:
		return wideMap
	}
	return hashed
}

// Expected estimates the number of edges of a batch from the mean degree. Rows that are scanned
// count with all of their edges.
func (r *Request) Expected() int64 {
	total := 0.0
	degree := float64(r.Relation.NumEdges()) / float64(max(r.Relation.NumNodes, 1))
	r.Expect(r.Seeds.Len(), r.Relation.NumNodes, degree, func(rows, edges float64) {
		if r.Draw != nil {
			edges = rows * degree
		}
		total += edges
	})
	return int64(min(total, 1<<62))
}

// bound is the most distinct nodes that a batch can hold; beyond it lies one
// element of slack that claimDirect stores to.
func (r *Request) bound() int64 {
	most := float64(r.Seeds.Len())
	for hop := range r.Fanouts {
		edges, bounded := r.Rule(hop).Most()
		if !bounded {
			return r.Relation.NumNodes + 1
		}
		most *= float64(1 + edges)
	}
	return int64(min(most, float64(r.Relation.NumNodes))) + 1
}

func idBits[I csc.Index]() int64 { return int64(unsafe.Sizeof(I(0))) * 8 }

// widths returns the widths of the batch's arrays.
func (s *sampling[I]) widths() batch.Widths {
	edgeIDs := s.edgeIDBits
	if edgeIDs == 0 {
		edgeIDs = s.Relation.EdgeIDBits()
	}
	return batch.Widths{ID: idBits[I]() / 8, EdgeID: int64(edgeIDs) / 8}
}

// begin checks and numbers the seeds.
func (s *sampling[I]) begin() error {
	g, seeds := s.Relation, s.Seeds.Len()
	if err := s.CheckSeeds(g.NumNodes); err != nil {
		return err
	}
	if s.numbers = s.numberBy(); s.Disjoint {
		s.numbers = hashed
		return s.plant()
	}
	var err error
	switch s.numbers {
	case narrowMap:
		err = s.narrow.begin(g.NumNodes, narrowNumbers)
	case wideMap:
		err = s.wide.begin(g.NumNodes, wideNumbers)
	case hashed:
		s.table.begin()
	}
	if err != nil {
		return err
	}
	widths, bound := s.widths(), s.bound()
	if s.out, err = batch.NewBuilder(batch.Homogeneous(len(s.Fanouts)), widths.Nodes(bound+2*seeds)+4096); err != nil {
		return err
	}
	if s.offNodes, err = s.out.Alloc(widths.Nodes(bound)); err != nil {
		return err
	}
	local, err := s.output()
	if err != nil {
		return err
	}
	if err := s.reserve(seeds); err != nil {
		return err
	}
	s.claim(local)
	s.out.Set(s.out.Count(0, 0), s.n)
	s.out.Set(batch.WordNodes, s.offNodes)
	if s.n == seeds {
		s.out.Set(batch.WordOutputNodes, s.offNodes)
	}
	return nil
}

// output allocates the arrays for the seeds and for their local numbers, and returns the latter,
// which still hold the seeds.
func (s *sampling[I]) output() ([]I, error) {
	widths, seeds := s.widths(), s.Seeds.Len()
	index, err := s.out.Alloc(widths.Nodes(seeds))
	if err != nil {
		return nil, err
	}
	given, err := s.out.Alloc(widths.Nodes(seeds))
	if err != nil {
		return nil, err
	}
	local, ids := memory.ViewAt[I](s.out.Memory, index, seeds), memory.ViewAt[I](s.out.Memory, given, seeds)
	for i := range seeds {
		ids[i] = I(s.Seeds.Element(i))
	}
	copy(local, ids)
	for _, of := range [...]struct {
		word  int
		value int64
	}{
		{batch.WordIDBits, widths.ID * 8}, {s.out.EdgeIDBits(0), widths.EdgeID * 8},
		{batch.WordNumOutput, seeds}, {batch.WordOutputNodes, given}, {batch.WordOutputIndex, index},
	} {
		s.out.Set(of.word, of.value)
	}
	return local, nil
}

// nodes is the list of distinct nodes with its slack.
func (s *sampling[I]) nodes() []I {
	if s.trees != nil {
		return s.trees.vertices
	}
	return memory.ViewAt[I](s.out.Memory, s.offNodes, s.bound())
}

// reserve prepares the numbering for up to more new nodes.
func (s *sampling[I]) reserve(more int64) error {
	if s.numbers != hashed {
		return nil
	}
	if s.trees != nil {
		return s.trees.reserve(&s.lists, &s.table, s.n, more)
	}
	nodes := s.nodes()
	return s.table.reserve(min(s.n+more, s.Relation.NumNodes), s.n, func(i int64) uint64 { return uint64(nodes[i]) })
}

// claim numbers ids, in order, in place.
func (s *sampling[I]) claim(ids []I) {
	switch s.numbers {
	case narrowMap:
		s.n = claimDirect(&s.narrow, ids, s.nodes(), s.n)
	case wideMap:
		s.n = claimDirect(&s.wide, ids, s.nodes(), s.n)
	case hashed:
		s.n = claimHashed(&s.table, ids, s.nodes(), s.n)
	}
}

// hop samples the rows of all nodes found so far, or of those that the last hop
// found; hop 0 is next to the seeds.
func (s *sampling[I]) hop(hop int) error {
	depth := len(s.Fanouts)
	first := int64(0)
	if s.OnlyNew {
		first, s.expanded = s.expanded, s.n
	}
	if s.trees != nil {
		s.trees.first = first
	}
	rows := s.n - first
	frontier := s.nodes()[first : first+rows]
	if p, is := s.rows.(prepared[I]); is {
		if err := p.prepare(frontier, hop); err != nil {
			return err
		}
	}
	edges, err := s.countRows(frontier, hop)
	if err != nil {
		return err
	}
	if idBits[I]() == 32 && s.trees != nil && s.n+edges > math.MaxInt32 {
		return tooManyEdges(edges)
	}
	block, err := s.newBlock(depth-1-hop, rows, edges, first)
	if err != nil {
		return err
	}
	if s.Parts != nil && s.carries() {
		block.keys = make([]int64, edges)
	}
	if err := s.reserve(edges); err != nil {
		return err
	}
	frontier = s.nodes()[first : first+rows]
	if s.trees == nil && s.team.byRank(edges) {
		err = s.drawRanked(frontier, hop, block)
	} else {
		err = s.drawClaimed(frontier, hop, block)
	}
	if err != nil {
		return err
	}
	block.indptr[rows] = I(edges)
	s.out.Set(s.out.Block(depth-1-hop, 0)+batch.BlockNumSrc, s.n)
	s.out.Set(s.out.Count(0, hop+1), s.n)
	return nil
}

// drawClaimed draws the rows of a hop, and numbers their neighbors tile by tile.
func (s *sampling[I]) drawClaimed(frontier []I, hop int, block block[I]) error {
	rows := int64(len(frontier))
	return s.drawRows(frontier, hop, block, func(t int64) {
		if s.trees != nil {
			lo, hi := t*tileRows, min((t+1)*tileRows, rows)
			s.n = s.trees.claim(&s.table, block, s.Times, lo, hi, s.offsets[t+1], s.n)
			return
		}
		s.claim(block.indices[s.offsets[t]:s.offsets[t+1]])
	})
}

// drawRanked is drawClaimed with numbers by rank.
func (s *sampling[I]) drawRanked(frontier []I, hop int, block block[I]) error {
	list := &ranked[I]{
		by: s.numbers, narrow: &s.narrow, wide: &s.wide, table: &s.table, nodes: s.nodes(), n: s.n,
	}
	tiles := rankedTiles[I]{
		count: int64(len(s.offsets) - 1), lists: []*ranked[I]{list}, last: hop == len(s.Fanouts)-1,
		list: func(int64) *ranked[I] { return list },
		size: func(t int64) int64 { return s.offsets[t+1] - s.offsets[t] },
		ids:  func(t int64) []I { return block.indices[s.offsets[t]:s.offsets[t+1]] },
		draw: s.drawTile(frontier, hop, block),
	}
	err := tiles.number(s.team, s.stop, &s.ranks)
	s.n = list.n
	if err == nil && s.stop.Load() {
		err = request.ErrCancelled
	}
	return err
}

// countRows counts the rows of a hop, tile by tile, and returns the number of edges that it takes.
func (s *sampling[I]) countRows(frontier []I, hop int) (edges int64, err error) {
	rows := int64(len(frontier))
	tiles := (rows + tileRows - 1) / tileRows
	s.hopRows.size(rows)
	s.offsets, s.drawn = sized(s.offsets, tiles+1), sized(s.drawn, tiles)
	err = s.team.each(tiles, s.stop, func(_ int, t int64) {
		lo, hi := t*tileRows, min((t+1)*tileRows, rows)
		s.offsets[t] = s.rows.count(frontier, lo, hi, hop)
	})
	if err != nil {
		return 0, err
	}
	if s.stop.Load() {
		return 0, request.ErrCancelled
	}
	for t, n := range s.offsets[:tiles] {
		s.offsets[t] = edges
		edges += n
	}
	s.offsets[tiles] = edges
	if s.Most > 0 && edges > s.Most {
		return 0, request.ErrLarge
	}
	if idBits[I]() == 32 && edges > math.MaxInt32 {
		return 0, tooManyEdges(edges)
	}
	return edges, nil
}

// drawRows draws the rows of countRows into a block, and claims those of each tile in order.
func (s *sampling[I]) drawRows(frontier []I, hop int, block block[I], claim func(tile int64)) error {
	err := s.team.pipeline(s.drawn[:len(s.offsets)-1], s.stop, s.drawTile(frontier, hop, block), claim)
	if err == nil && s.stop.Load() {
		err = request.ErrCancelled
	}
	return err
}

// drawTile has workers draw the rows of a tile into a block.
func (s *sampling[I]) drawTile(frontier []I, hop int, block block[I]) func(w int, tile int64) {
	rows := int64(len(frontier))
	purpose := rng.Neighbors
	if s.Draw != nil {
		purpose = s.Draw.Purpose
	}
	stream := rng.NewStream(s.Seed, s.Epoch, s.Number, uint8(hop), purpose)
	for w := range s.team.size {
		s.worker(w)
	}
	return func(w int, t int64) {
		lo, hi := t*tileRows, min((t+1)*tileRows, rows)
		s.rows.draw(s.workers[w], stream, frontier, lo, hi, s.offsets[t], hop, block)
	}
}

func tooManyEdges(edges int64) error {
	return fmt.Errorf("%w: a block of %d edges needs int64 ids", request.ErrOverflow, edges)
}

// block is the arrays of a hop in the making; the edge ids are in one of two.
type block[I csc.Index] struct {
	indptr, indices []I
	ids32           []int32
	ids64           []int64
	edgeWeights     []float32 // nil where nobody asked for factors
	keys            []int64   // of the edges' times, where rows that lie elsewhere bound the next hop; else nil
}

// weightsOf returns the factors of n edges from one on, nil if there are none.
func (b block[I]) weightsOf(at int64, n int) []float32 {
	if b.edgeWeights == nil {
		return nil
	}
	return b.edgeWeights[at : at+int64(n)]
}

func (s *sampling[I]) newBlock(i int, rows, edges, first int64) (b block[I], err error) {
	offsets, err := placeBlock(s.out, s.widths(), rows, edges, s.EdgeWeights)
	if err != nil {
		return b, err
	}
	s.out.SetBlock(i, [batch.BlockWords]int64{0, rows, edges, offsets[0], offsets[1], offsets[2], first, offsets[3]})
	return blockAt[I](s.out.Memory, s.widths(), offsets, rows, edges), nil
}

// placeBlock allocates the arrays of a block, the factors last, at offset 0 if there are none.
func placeBlock(out *batch.Builder, widths batch.Widths, rows, edges int64, factors bool) (offsets [4]int64, err error) {
	// A count that overflowed is negative here, or too large even for a bound.
	if edges < 0 || edges > math.MaxInt64/32 {
		return offsets, fmt.Errorf("%w: wanted a block of more than 2^58 edges", memory.ErrNoMemory)
	}
	indptr, indices, edgeIDs := widths.Block(rows, edges)
	sizes, arrays := [4]int64{indptr, indices, edgeIDs}, 3
	if factors {
		sizes[3], arrays = batch.EdgeWeights(edges), 4
	}
	if err := memory.Affordable(sizes[0] + sizes[1] + sizes[2] + sizes[3]); err != nil {
		return offsets, err
	}
	for k, bytes := range sizes[:arrays] {
		if offsets[k], err = out.Alloc(bytes); err != nil {
			return offsets, err
		}
	}
	return offsets, nil
}

// blockAt is the arrays of a block at the offsets that placeBlock gave.
func blockAt[I csc.Index](m memory.Memory, widths batch.Widths, offsets [4]int64, rows, edges int64) (b block[I]) {
	b.indptr, b.indices = memory.ViewAt[I](m, offsets[0], rows+1), memory.ViewAt[I](m, offsets[1], edges)
	if widths.EdgeID == 4 {
		b.ids32 = memory.ViewAt[int32](m, offsets[2], edges)
	} else {
		b.ids64 = memory.ViewAt[int64](m, offsets[2], edges)
	}
	if offsets[3] != 0 {
		b.edgeWeights = memory.ViewAt[float32](m, offsets[3], edges)
	}
	return b
}
