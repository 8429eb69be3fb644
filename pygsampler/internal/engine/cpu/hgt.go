package cpu

import (
	"cmp"
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

// HGTRequest says what to sample of a heterogeneous graph by the budgets of HGT (Z. Hu, Y. Dong, K.
// Wang, Y. Sun, "Heterogeneous Graph Transformer", WWW 2020, algorithms 1 and 2). It is read-only
// while a batch is sampled.
type HGTRequest struct {
	request.Batch // as that of HeteroRequest
	Graph         *csc.Graph
	Seeds         []int64   // how many there are of each type
	Samples       [][]int64 // of each type how many nodes each iteration takes; -1: all
	Exclude       []*csc.Exclusions
	// MaxNeighbors is the maximal number of in-edges of a relation that a row keeps, drawn once for
	// the batch: budgets and edges belong to the graph of these edges. -1: all.
	MaxNeighbors int64
	MapBytes     int64
	Most         int64 // edges of an iteration; 0: any number
	// Bounds and the fields after it describe the rows of each relation of a partitioned graph,
	// like in HeteroRequest; nil: the rows are local.
	Bounds [][]int64
	Ask    func(*RowRequest) ([]RowReply, error)
}

// hgtBatch is an unfinished batch, of one goroutine: rows are drawn once and stored until it is
// known which of their neighbors were chosen.
type hgtBatch[I csc.Index] struct {
	*HGTRequest
	*heteroScratch
	stop      *atomic.Bool
	out       *batch.Builder
	nodeTypes []hgtNodeType[I]
	rels      []hgtRelation[I]
}

// hgtNodeType is the state of a node type in a batch. The numbers of nodeType cover all nodes that
// occurred, chosen or not; the seeds are the first of both.
type hgtNodeType[I csc.Index] struct {
	nodeType[I]
	budget []uint64 // of the nodes that were met
	place  []int64  // of them: where they are among the chosen ones; -1: nowhere
	chosen []I
	done   int64 // of these: their rows have been drawn
}

// hgtRelation holds the drawn rows of a relation, those of chosen nodes in their order.
type hgtRelation[I csc.Index] struct {
	tiled[I]
	req      Request
	src, dst *hgtNodeType[I]
	source   rows[I] // tiled, or far
	far      remoteSource[I]
	widths   batch.Widths
	ends     []int64 // of each row
	from     []I     // numbers of the nodes that were met; -1: one that was not
	ids32    []int32
	ids64    []int64
}

// candidate is a node in the race for the places of an iteration.
type candidate[I csc.Index] struct {
	key    float64
	vertex I
	number int64
}

// SampleHGT samples the batch of a request.
func SampleHGT(req *HGTRequest, stop *atomic.Bool) (m memory.Memory, err error) {
	defer recovered(&err)
	if req.Graph.IDBits() == 32 {
		return sampleHGT[int32](req, stop)
	}
	return sampleHGT[int64](req, stop)
}

// Iterations returns the number of iterations.
func (r *HGTRequest) Iterations() int {
	if len(r.Samples) == 0 {
		return 0
	}
	return len(r.Samples[0])
}

// Expected estimates the number of edges that a batch reads.
func (r *HGTRequest) Expected() int64 {
	total, rule := 0.0, request.Rule{Fanout: r.MaxNeighbors}
	for i, rel := range r.Graph.EdgeTypes {
		nodes := float64(max(r.Graph.NodeTypes[rel.Dst].Nodes, 1))
		rows := float64(r.Seeds[rel.Dst])
		for _, n := range r.Samples[rel.Dst] {
			if n < 0 {
				rows = nodes
			}
			rows += float64(n)
		}
		total += min(rows, nodes) * rule.Mean(float64(r.Graph.Relations[i].NumEdges())/nodes)
	}
	return int64(min(total, 1<<62))
}

func sampleHGT[I csc.Index](req *HGTRequest, stop *atomic.Bool) (memory.Memory, error) {
	g := req.Graph
	s := &hgtBatch[I]{HGTRequest: req, heteroScratch: takeHeteroScratch(len(g.NodeTypes), len(g.Relations)), stop: stop}
	defer s.heteroScratch.put()
	complete := false
	defer func() {
		if !complete && s.out != nil {
			s.out.Discard()
		}
	}()
	if err := s.begin(); err != nil {
		return memory.Memory{}, err
	}
	for i := range req.Iterations() {
		if err := s.expand(true); err != nil {
			return memory.Memory{}, err
		}
		for t := range s.nodeTypes {
			s.choose(&s.nodeTypes[t], s.Samples[t][i], i)
		}
	}
	if err := s.expand(false); err != nil {
		return memory.Memory{}, err
	}
	if err := s.finish(); err != nil {
		return memory.Memory{}, err
	}
	complete = true
	return s.out.Finish(0), nil
}

// begin numbers the seeds.
func (s *hgtBatch[I]) begin() error {
	g := s.Graph
	l := batch.Layout{Hops: 1, Types: len(g.NodeTypes), Relations: len(g.Relations)}
	var err error
	if s.out, err = batch.NewBuilder(l, s.Batch.Seeds.Len()*2*idBits[I]()/8+4096); err != nil {
		return err
	}
	s.out.Set(batch.WordIDBits, idBits[I]())
	s.nodeTypes = make([]hgtNodeType[I], len(g.NodeTypes))
	first := int64(0)
	for t := range s.nodeTypes {
		k := &s.nodeTypes[t]
		k.NodeType, k.nodeTypeScratch = g.NodeTypes[t], s.heteroScratch.nodeTypes[t]
		if err := s.plant(t, first); err != nil {
			return err
		}
		first += s.Seeds[t]
	}
	s.rels = make([]hgtRelation[I], len(g.Relations))
	for i, about := range g.EdgeTypes {
		rel := g.Relations[i]
		r := &s.rels[i]
		r.src, r.dst = &s.nodeTypes[about.Src], &s.nodeTypes[about.Dst]
		r.req = Request{Relation: rel}
		r.req.Batch = s.Batch
		r.req.Hops = request.Hops{Fanouts: []int64{s.MaxNeighbors}}
		if s.Exclude != nil {
			r.req.Exclude = s.Exclude[i]
		}
		r.widths = batch.Widths{ID: idBits[I]() / 8, EdgeID: int64(rel.EdgeIDBits()) / 8}
		r.tiled = tiled[I]{Request: &r.req, hopRows: s.heteroScratch.rows[i], salt: about.Salt, mixed: g.Mixed()}
		if r.source = &r.tiled; s.Ask != nil {
			r.far = remoteSource[I]{bounds: s.Bounds[i], nodes: r.src.Nodes, widths: r.widths}
			r.source = &r.far
		}
		s.out.Set(s.out.EdgeIDBits(i), r.widths.EdgeID*8)
	}
	s.worker(0)
	return nil
}

// plant chooses the seeds of a type, which begin at first among the seeds of the batch.
func (s *hgtBatch[I]) plant(t int, first int64) error {
	k, count, word := &s.nodeTypes[t], s.Seeds[t], s.out.Type(t)
	if err := s.CheckSeedsOf(k.Name, first, count, k.Nodes); err != nil {
		return err
	}
	local, given := make([]I, count), make([]I, count)
	for i := range count {
		given[i] = I(s.Batch.Seeds.Element(first + i))
	}
	copy(local, given)
	k.numbers.Limit = s.MapBytes
	if err := k.numbers.Begin(k.Nodes, k.Nodes); err != nil {
		return err
	}
	if err := k.meet(local); err != nil {
		return err
	}
	for number := range k.n {
		k.place[number] = number
	}
	k.chosen = append(k.chosen, k.vertices[:k.n]...)
	s.out.Set(word+batch.TypeNumOutput, count)
	if err := putList(s.out, word+batch.TypeOutputIndex, local); err != nil {
		return err
	}
	if err := putList(s.out, word+batch.TypeOutputNodes, given); err != nil {
		return err
	}
	s.out.Set(s.out.Count(t, 0), k.n)
	return nil
}

// meet numbers nodes, in place.
func (k *hgtNodeType[I]) meet(ids []I) error {
	if err := k.reserve(int64(len(ids))); err != nil {
		return err
	}
	var err error
	if k.n, err = Claim(&k.numbers, ids, k.vertices, k.n); err != nil {
		return err
	}
	for int64(len(k.place)) < k.n {
		k.place, k.budget = append(k.place, -1), append(k.budget, 0)
	}
	return nil
}

// expand draws the rows of the nodes that were chosen last. With a budget it adds to the budgets of
// their neighbors; without, after the last choice, neighbors are only looked up.
func (s *hgtBatch[I]) expand(budget bool) error {
	if s.Ask != nil {
		if err := s.bring(); err != nil {
			return err
		}
	}
	total := int64(0)
	for i := range s.rels {
		r := &s.rels[i]
		rows := r.dst.coming()
		edges, err := s.draw(r, rows, total)
		if err != nil {
			return err
		}
		total += edges
		drawn := r.from[int64(len(r.from))-edges:]
		if !budget {
			Find(&r.src.numbers, drawn)
			continue
		}
		if err := r.src.meet(drawn); err != nil {
			return err
		}
		r.spend(len(rows))
	}
	for t := range s.nodeTypes {
		s.nodeTypes[t].done = int64(len(s.nodeTypes[t].chosen))
	}
	return nil
}

// coming is the nodes that were chosen and whose rows have not been drawn.
func (k *hgtNodeType[I]) coming() []I { return k.chosen[k.done:] }

// bring requests the rows of the nodes that were chosen last, of all relations together: a row is
// drawn like in a first hop.
func (s *hgtBatch[I]) bring() error {
	of := make([]*remoteSource[I], len(s.rels))
	for i := range s.rels {
		r := &s.rels[i]
		if err := r.far.sort(r.dst.coming(), nil); err != nil {
			return err
		}
		of[i] = &r.far
	}
	return askTogether(&RowRequest{}, s.Ask, of)
}

// draw appends rows to a relation, and returns the number of their edges; before is the number of
// edges of earlier relations.
func (s *hgtBatch[I]) draw(r *hgtRelation[I], rows []I, before int64) (edges int64, err error) {
	n := int64(len(rows))
	r.hopRows.size(n)
	begin := make([]int64, 0, (n+tileRows-1)/tileRows) // of each tile
	for lo := int64(0); lo < n; lo += tileRows {
		if s.stop.Load() {
			return 0, request.ErrCancelled
		}
		begin = append(begin, edges)
		edges += r.source.count(rows, lo, min(lo+tileRows, n), 0)
	}
	if s.Most > 0 && before+edges > s.Most {
		return 0, request.ErrLarge
	}
	first := int64(len(r.from))
	all := first + edges
	if idBits[I]() == 32 && all > math.MaxInt32 {
		return 0, fmt.Errorf("%w: a block of %d edges needs int64 ids", request.ErrOverflow, all)
	}
	if err := memory.Affordable(all * (r.widths.ID + r.widths.EdgeID)); err != nil {
		return 0, err
	}
	r.from = slices.Grow(r.from, int(edges))[:all]
	b := block[I]{indptr: make([]I, n+1), indices: r.from[first:]}
	if r.widths.EdgeID == 4 {
		r.ids32 = slices.Grow(r.ids32, int(edges))[:all]
		b.ids32 = r.ids32[first:]
	} else {
		r.ids64 = slices.Grow(r.ids64, int(edges))[:all]
		b.ids64 = r.ids64[first:]
	}
	// Random numbers are those of hop 0 for every iteration, since a row is drawn once for the
	// batch.
	stream := rng.NewStream(s.Seed, s.Epoch, s.Number, 0, rng.Neighbors)
	for i, at := range begin {
		if s.stop.Load() {
			return 0, request.ErrCancelled
		}
		lo := int64(i) * tileRows
		r.source.draw(s.workers[0], stream, rows, lo, min(lo+tileRows, n), at, 0, b)
	}
	b.indptr[n] = I(edges)
	for _, end := range b.indptr[1:] {
		r.ends = append(r.ends, first+int64(end))
	}
	return edges, nil
}

// spend distributes each of the last rows' budgets to those of its neighbors that are not chosen.
func (r *hgtRelation[I]) spend(rows int) {
	first := len(r.ends) - rows
	start := int64(0)
	if first > 0 {
		start = r.ends[first-1]
	}
	for _, end := range r.ends[first:] {
		if end == start {
			continue
		}
		share := max(request.BudgetUnit/uint64(end-start), 1)
		for _, number := range r.from[start:end] {
			if r.src.place[number] >= 0 {
				continue
			}
			sum := r.src.budget[number] + share
			if sum < share {
				sum = math.MaxUint64
			}
			r.src.budget[number] = sum
		}
		start = end
	}
}

// choose chooses count of the nodes that occurred and are not chosen, successively in proportion to
// the squares of their budgets: those with the smallest keys, which are exponential variates of
// these rates.
func (s *hgtBatch[I]) choose(k *hgtNodeType[I], count int64, iteration int) {
	if count == 0 {
		return
	}
	stream := rng.NewStream(s.Seed, s.Epoch, s.Number, uint8(iteration), rng.Candidates)
	var best []candidate[I]
	for number, place := range k.place {
		if place >= 0 {
			continue
		}
		v, budget := k.vertices[number], float64(k.budget[number])
		state := rng.OfType(stream.State(uint64(v)), k.Salt)
		c := candidate[I]{rng.Exponential(rng.Draw(state, 0)) / (budget * budget), v, int64(number)}
		switch {
		case count < 0 || int64(len(best)) < count:
			best = append(best, c)
			if int64(len(best)) == count {
				for i := len(best)/2 - 1; i >= 0; i-- {
					sink(best, i)
				}
			}
		case compareCandidates(c, best[0]) < 0:
			best[0] = c
			sink(best, 0)
		}
	}
	slices.SortFunc(best, compareCandidates[I])
	for _, c := range best {
		k.place[c.number] = int64(len(k.chosen))
		k.chosen = append(k.chosen, c.vertex)
	}
}

func compareCandidates[I csc.Index](a, b candidate[I]) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.vertex, b.vertex))
}

// sink sinks the element at i of a heap, whose largest is first.
func sink[I csc.Index](heap []candidate[I], i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && compareCandidates(heap[child], heap[child+1]) < 0 {
			child++
		}
		if compareCandidates(heap[i], heap[child]) >= 0 {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// finish writes the edges between chosen nodes, and the lists of these.
func (s *hgtBatch[I]) finish() error {
	for i := range s.rels {
		if err := s.block(i); err != nil {
			return err
		}
	}
	for t := range s.nodeTypes {
		k, word := &s.nodeTypes[t], s.out.Type(t)
		n := int64(len(k.chosen))
		s.out.Set(word+batch.TypeNumNodes, n)
		s.out.Set(s.out.Count(t, 1), n)
		if err := putList(s.out, word+batch.TypeNodes, k.chosen); err != nil {
			return err
		}
	}
	return nil
}

// block writes the edges of a relation, from all chosen nodes of its source to all of its
// destination.
func (s *hgtBatch[I]) block(i int) error {
	r := &s.rels[i]
	edges := int64(0)
	for e, number := range r.from {
		place := int64(-1)
		if number >= 0 {
			place = r.src.place[number]
		}
		if r.from[e] = I(place); place >= 0 {
			edges++
		}
	}
	rows := int64(len(r.ends))
	offsets, err := placeBlock(s.out, r.widths, rows, edges, false)
	if err != nil {
		return err
	}
	b := blockAt[I](s.out.Memory, r.widths, offsets, rows, edges)
	start, at := int64(0), int64(0)
	for row, end := range r.ends {
		b.indptr[row] = I(at)
		for e := start; e < end; e++ {
			if r.from[e] < 0 {
				continue
			}
			b.indices[at] = r.from[e]
			if b.ids32 != nil {
				b.ids32[at] = r.ids32[e]
			} else {
				b.ids64[at] = r.ids64[e]
			}
			at++
		}
		start = end
	}
	b.indptr[rows] = I(at)
	s.out.SetWords(s.out.Block(0, i), int64(len(r.src.chosen)), rows, edges,
		offsets[0], offsets[1], offsets[2], 0, offsets[3])
	return nil
}
