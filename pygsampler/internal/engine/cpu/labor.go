package cpu

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/labor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/real"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Labor says which edges stay (M. F. Balin, U. V. Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion
// in GNNs", NeurIPS 2023). A node has one number for all relations of a hop.
//
// CUDA twin: kernels/hetero/labor.cuh.
type Labor struct {
	Rounds     int64  // of LABOR-i; -1: until the expected number of nodes hardly falls
	Exact      bool   // the edges of the smallest numbers over weights, as many as the fanout says
	SameLayers bool   // the numbers of all hops are the same
	Batches    uint64 // of a period of rng.Dependent
	// Scaled divides weights by chances and scales them so that a row sums to the number of its
	// edges; otherwise a factor is one over the chance.
	Scaled bool
}

// LaborRequest is the request for a batch of LABOR; its fanouts are the expected fanouts of rows.
type LaborRequest struct {
	HeteroRequest
	Labor
}

// laborLarge is the maximal factor, so that a product with a weight is finite.
const laborLarge = 0x1p1000

// laborBatch is a batch in the making, by one goroutine: which edges a row has depends on its hop's other rows.
type laborBatch[I csc.Index] struct {
	heteroBatch[I]
	Labor
	kept []laborKept      // of each relation, in a hop
	near []*RemoteRows[I] // likewise, where rows lie elsewhere
	laborRows[I]
}

// laborKept is the edges of a relation that stay.
type laborKept struct {
	positions []int64
	ends      []int64 // of each row
	weights   []float32
}

// laborRows is the edges that a relation's rows have in a hop.
type laborRows[I csc.Index] struct {
	positions []int64
	ends      []int64
	sources   []I
	weights   []float64 // over the largest of the row
	chances   []float64
	uniforms  []float64 // the sources'
	numbers   []I       // the sources' among them
	vertices  []I       // by these numbers
	q         []float64 // of each edge
	factors   []float64 // of each row
	pi, most  []float64 // of each of the nodes
	keys      []laborKey
}

// laborKey is a row's edge by when it comes.
type laborKey struct {
	late float64
	edge int64
}

// SampleLabor samples the batch of a request.
func SampleLabor(req *LaborRequest, crew Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	defer recovered(&err)
	if req.Graph.IDBits() == 32 {
		return sampleLabor[int32](req, crew, stop)
	}
	return sampleLabor[int64](req, crew, stop)
}

func sampleLabor[I csc.Index](req *LaborRequest, crew Crew, stop *atomic.Bool) (memory.Memory, error) {
	g := req.Graph
	s := &laborBatch[I]{Labor: req.Labor, kept: make([]laborKept, len(g.Relations))}
	s.heteroBatch = heteroBatch[I]{
		HeteroRequest: &req.HeteroRequest, heteroScratch: takeHeteroScratch(len(g.NodeTypes), len(g.Relations)),
		team: muster(crew, 0), stop: stop, hops: req.Hops(),
	}
	return s.made(s.hop)
}

// hop is the hop of heteroBatch, except that edges are chosen before there is room for them.
func (s *laborBatch[I]) hop(hop int) error {
	s.advance()
	if s.Ask != nil {
		if err := s.bringWhole(hop); err != nil {
			return err
		}
	}
	total := int64(0)
	for i := range s.rels {
		r := &s.rels[i]
		if err := s.choose(i, hop); err != nil {
			return err
		}
		r.edges = int64(len(s.kept[i].positions))
		r.src.coming += r.edges
		if total += r.edges; s.Most > 0 && total > s.Most {
			return request.ErrLarge
		}
	}
	if err := s.place(hop); err != nil {
		return err
	}
	for i := range s.rels {
		r, kept := &s.rels[i], &s.kept[i]
		gather(r.Relation, kept.positions, 0, r.block)
		copy(r.block.edgeWeights, kept.weights)
		r.block.indptr[0] = 0
		for row, end := range kept.ends {
			r.block.indptr[row+1] = I(end)
		}
		s.claim(&tile{relation: int64(i), hi: r.dst.rows, edges: r.edges})
	}
	s.tell(hop)
	return nil
}

// bringWhole requests the whole rows of a hop, of all relations together, that no hop has
// requested.
func (s *laborBatch[I]) bringWhole(hop int) error {
	for i := len(s.near); i < len(s.rels); i++ {
		r := &s.rels[i]
		rows := s.rowsHere(i)
		rows.Limit = s.MapBytes
		near, err := NewRemoteRows[I](r.dst.Nodes, r.src.Nodes, s.Bounds[i], r.widths, nil, rows)
		if err != nil {
			return err
		}
		s.near, r.req.Relation = append(s.near, near), &near.Relation
	}
	of := make([]*remoteSource[I], len(s.near))
	for i, near := range s.near {
		r, frontier := &s.rels[i], []I(nil)
		if r.Rule(hop).Fanout != 0 {
			frontier = r.dst.frontier()
		}
		if err := near.want(frontier); err != nil {
			return err
		}
		of[i] = &near.remoteSource
	}
	if err := askTogether(&RowRequest{}, s.Ask, of); err != nil {
		return err
	}
	for _, near := range s.near {
		if err := near.keep(); err != nil {
			return err
		}
	}
	return nil
}

// choose selects the edges of a relation.
func (s *laborBatch[I]) choose(i, hop int) error {
	r, kept := &s.rels[i], &s.kept[i]
	fanout := r.Rule(hop).Fanout
	kept.positions, kept.weights, kept.ends = kept.positions[:0], kept.weights[:0], kept.ends[:0]
	if fanout == 0 || r.dst.rows == 0 {
		kept.ends = append(kept.ends, make([]int64, r.dst.rows)...)
		return nil
	}
	if err := s.read(i); err != nil {
		return err
	}
	site := hop
	if s.SameLayers {
		site = 0
	}
	numbers := rng.NewGradual(s.Seed, s.Epoch, s.Number, s.Batches, uint8(site), rng.Candidates)
	s.number(numbers, r)
	if s.Exact && fanout > 0 {
		if err := s.numberCopies(numbers, i); err != nil {
			return err
		}
	}
	if !s.Exact {
		if err := s.weigh(r, fanout); err != nil {
			return err
		}
	}
	lo := int64(0)
	for row, hi := range s.ends {
		if row%tileRows == 0 && s.stop.Load() {
			return request.ErrCancelled
		}
		first := len(kept.positions)
		if s.Exact {
			s.nearest(kept, lo, hi, fanout)
		} else {
			for e := lo; e < hi; e++ {
				if s.uniforms[e] <= s.chances[e] {
					s.keep(kept, e)
				}
			}
		}
		if s.EdgeWeights && s.Scaled {
			scale(kept.weights[first:])
		}
		kept.ends = append(kept.ends, int64(len(kept.positions)))
		lo = hi
	}
	return nil
}

// number makes the numbers of all edges, which are their sources'.
func (s *laborBatch[I]) number(numbers rng.Dependent, r *relation[I]) {
	rows := &s.laborRows
	rows.uniforms = slices.Grow(rows.uniforms[:0], len(rows.sources))[:len(rows.sources)]
	next, between := numbers.Next()
	var first, second [tileRows]float64
	for lo := 0; lo < len(rows.sources); lo += tileRows {
		part := rows.sources[lo:min(lo+tileRows, len(rows.sources))]
		draw(numbers.Stream, r, part, first[:])
		if between {
			draw(next, r, part, second[:])
			for k := range part {
				first[k] = numbers.Between(first[k], second[k])
			}
		}
		copy(rows.uniforms[lo:], first[:len(part)])
	}
}

// numberCopies gives parallel edges numbers of their own, all but the first of those that a row has from a node: with one
// number for all, the bound of an edge could be another's that moves with it, and its factor would be wrong.
func (s *laborBatch[I]) numberCopies(numbers rng.Dependent, relation int) error {
	r, rows := &s.rels[relation], &s.laborRows
	var copies csc.Copies
	if s.Ask != nil {
		copies = s.near[relation].Copies()
	} else {
		var err error
		if copies, err = r.Relation.Copies(); err != nil {
			return err
		}
	}
	if copies == nil {
		return nil
	}
	next, between := numbers.Next()
	of := func(stream rng.Stream, v I, id int64) float64 {
		state := stream.State(uint64(v))
		if r.mixed {
			state = rng.OfType(state, r.src.Salt)
		}
		return rng.Uniform(rng.Draw(state, int(id)+1))
	}
	lo := int64(0)
	for row, hi := range rows.ends {
		var out func(int64) bool
		if excluded := r.req.Exclude.Offsets(int64(r.dst.frontier()[row])); len(excluded) > 0 && s.Ask == nil {
			start := r.starts[row]
			out = func(p int64) bool {
				_, is := slices.BinarySearch(excluded, p-start)
				return is
			}
		}
		for e := lo; e < hi; e++ {
			p := rows.positions[e]
			if !copies.Is(p, out) {
				continue
			}
			id := p
			if r.Relation.EdgeIDs.Bits != 0 {
				id = r.Relation.EdgeIDs.Element(p)
			}
			rows.uniforms[e] = of(numbers.Stream, rows.sources[e], id)
			if between {
				rows.uniforms[e] = numbers.Between(rows.uniforms[e], of(next, rows.sources[e], id))
			}
		}
		lo = hi
	}
	return nil
}

// draw writes the numbers that a stream has for sources, at most a tile of them.
func draw[I csc.Index](stream rng.Stream, r *relation[I], sources []I, to []float64) {
	var states [tileRows]uint64
	of := states[:len(sources)]
	for k, u := range sources {
		of[k] = uint64(u)
	}
	stream.States(of)
	for k, state := range of {
		if r.mixed {
			state = rng.OfType(state, r.src.Salt)
		}
		to[k] = rng.Uniform(rng.Draw(state, 0))
	}
}

// keep appends an edge.
func (s *laborBatch[I]) keep(kept *laborKept, e int64) {
	kept.positions = append(kept.positions, s.laborRows.positions[e])
	switch {
	case s.EdgeWeights && s.Scaled:
		kept.weights = append(kept.weights, float32(s.laborRows.weights[e]/s.chances[e]))
	case s.EdgeWeights:
		kept.weights = append(kept.weights, float32(1/s.chances[e]))
	}
}

// scale makes the sum of weights their number.
func scale(weights []float32) {
	var of real.Sum
	var part [32]float64
	for some := range slices.Chunk(weights, len(part)) {
		for i, w := range some {
			part[i] = float64(w)
		}
		of.Take(part[:len(some)])
	}
	sum := of.End()
	for i, w := range weights {
		weights[i] = float32(float64(w) * float64(len(weights)) / sum)
	}
}

// read finds the edges of a relation's rows, without those that are excluded.
func (s *laborBatch[I]) read(relation int) error {
	r := &s.rels[relation]
	frontier := r.dst.frontier()
	r.hopRows.size(int64(len(frontier)))
	if s.Ask != nil {
		s.near[relation].Locate(frontier, r.starts, r.degrees)
	}
	for lo := int64(0); lo < int64(len(frontier)) && s.Ask == nil; lo += tileRows {
		r.count(frontier, lo, min(lo+tileRows, int64(len(frontier))), 0)
	}
	total := int64(0)
	for _, degree := range r.degrees[:len(frontier)] {
		total += degree
	}
	if idBits[I]() == 32 && total > math.MaxInt32 {
		return fmt.Errorf("%w: rows of %d edges need int64 ids", request.ErrOverflow, total)
	}
	// Positions, sources, weights, chances and numbers of each.
	if err := memory.Affordable(total * 40); err != nil {
		return err
	}
	rows := &s.laborRows
	rows.positions, rows.weights = slices.Grow(rows.positions[:0], int(total)), slices.Grow(rows.weights[:0], int(total))
	rows.sources, rows.ends = slices.Grow(rows.sources[:0], int(total)), rows.ends[:0]
	neighbours := csc.Elements[I](r.Relation.Indices)
	for i, v := range frontier {
		if i%tileRows == 0 && s.stop.Load() {
			return request.ErrCancelled
		}
		start, excluded := r.starts[i], r.req.Exclude.Offsets(int64(v))
		first, largest := len(rows.positions), uint64(0)
		for p := start; p < start+r.degrees[i]+int64(len(excluded)); p++ {
			if _, out := slices.BinarySearch(excluded, p-start); out {
				continue
			}
			rows.positions = append(rows.positions, p)
			rows.sources = append(rows.sources, neighbours[p])
			if r.Relation.Alias != nil {
				largest = max(largest, weightAt(r.Relation, start, p))
			}
		}
		for _, p := range rows.positions[first:] {
			weight := 1.0
			if r.Relation.Alias != nil {
				weight = float64(weightAt(r.Relation, start, p)) / float64(largest)
			}
			rows.weights = append(rows.weights, weight)
		}
		rows.ends = append(rows.ends, int64(len(rows.positions)))
	}
	return nil
}

// weightAt is the integer weight of an edge, of whose row the first position is start.
func weightAt(g *csc.Relation, start, p int64) uint64 {
	if p == start {
		return g.Sums[p]
	}
	return g.Sums[p] - g.Sums[p-1]
}

// weigh makes the chances of all edges: min(1, c q), q the weights, or of LABOR-i what its rounds make of them.
func (s *laborBatch[I]) weigh(r *relation[I], fanout int64) error {
	rows := &s.laborRows
	n := len(rows.positions)
	rows.chances = slices.Grow(rows.chances[:0], n)[:n]
	if fanout < 0 {
		for e := range rows.chances {
			rows.chances[e] = 1
		}
		return nil
	}
	rows.factors = slices.Grow(rows.factors[:0], len(rows.ends))[:len(rows.ends)]
	q := rows.weights
	if r.Relation.Alias == nil {
		lo := int64(0)
		for row, hi := range rows.ends {
			rows.factors[row] = min(float64(fanout)/float64(hi-lo), 1)
			lo = hi
		}
	} else {
		rows.solve(q, fanout)
	}
	if s.Rounds != 0 {
		if err := s.importance(r, fanout); err != nil {
			return err
		}
		q = rows.q
	}
	lo := int64(0)
	for row, hi := range rows.ends {
		for e := lo; e < hi; e++ {
			rows.chances[e] = min(rows.factors[row]*q[e], 1)
		}
		lo = hi
	}
	return nil
}

// solve makes the factors of all rows.
func (rows *laborRows[I]) solve(q []float64, fanout int64) {
	lo := int64(0)
	for row, hi := range rows.ends {
		c := labor.Factor(rows.weights[lo:hi], q[lo:hi], fanout)
		rows.factors[row] = min(c, laborLarge)
		lo = hi
	}
}

// importance computes q in rounds: the q of an edge belongs to its source.
func (s *laborBatch[I]) importance(r *relation[I], fanout int64) error {
	rows := &s.laborRows
	n := len(rows.positions)
	rows.numbers = append(rows.numbers[:0], rows.sources...)
	// One more than there are, as Claim requires.
	rows.vertices = slices.Grow(rows.vertices[:0], n+1)[:n+1]
	around := &r.src.around
	around.Limit = s.MapBytes
	if err := around.Begin(r.src.Nodes, int64(n)); err != nil {
		return err
	}
	count, err := Claim(around, rows.numbers, rows.vertices, 0)
	if err != nil {
		return err
	}
	rows.q = slices.Grow(rows.q[:0], n)[:n]
	rows.pi = slices.Grow(rows.pi[:0], int(count))[:count]
	rows.most = slices.Grow(rows.most[:0], int(count))[:count]
	clear(rows.pi)
	rows.largest(rows.pi, rows.weights)
	var falls labor.Falls
	for round := int64(0); s.Rounds < 0 || round < s.Rounds; round++ {
		if s.stop.Load() {
			return request.ErrCancelled
		}
		if round > 0 {
			for u, most := range rows.most {
				rows.pi[u] *= most
			}
		}
		for u := range rows.pi {
			rows.pi[u] = min(rows.pi[u], laborLarge)
		}
		for e, u := range rows.numbers {
			rows.q[e] = rows.pi[u]
		}
		rows.solve(rows.q, fanout)
		clear(rows.most)
		rows.largest(rows.most, nil)
		if s.Rounds >= 0 {
			continue
		}
		expected := uint64(0)
		for u, most := range rows.most {
			expected += labor.Expect(rows.pi[u] * most)
		}
		if !falls.Continues(expected) {
			break
		}
	}
	return nil
}

// largest computes for each node the largest factor of its rows, times the edge's value if there
// are values.
func (rows *laborRows[I]) largest(to, values []float64) {
	lo := int64(0)
	for row, hi := range rows.ends {
		for e := lo; e < hi; e++ {
			c := rows.factors[row]
			if values != nil {
				c *= values[e]
			}
			to[rows.numbers[e]] = max(to[rows.numbers[e]], c)
		}
		lo = hi
	}
}

// nearest keeps of a row the edges with the smallest numbers over weights, in their order:
// sequential Poisson sampling (E. Ohlsson, "Sequential Poisson Sampling", Journal of Official
// Statistics 14 (2), 1998). Conditioned on the others, an edge is selected with the chance min(1, a
// t), t being the smallest that is not: all numbers of a row are independent.
func (s *laborBatch[I]) nearest(kept *laborKept, lo, hi, fanout int64) {
	rows := &s.laborRows
	rows.chances = slices.Grow(rows.chances[:0], int(hi))[:hi]
	if fanout < 0 || hi-lo <= fanout {
		for e := lo; e < hi; e++ {
			rows.chances[e] = 1
			s.keep(kept, e)
		}
		return
	}
	keys := rows.keys[:0]
	for e := lo; e < hi; e++ {
		keys = append(keys, laborKey{rows.uniforms[e] / rows.weights[e], e})
	}
	rows.keys = keys
	slices.SortFunc(keys, func(a, b laborKey) int { return cmp.Or(cmp.Compare(a.late, b.late), cmp.Compare(a.edge, b.edge)) })
	last := keys[fanout].late
	keys = keys[:fanout]
	slices.SortFunc(keys, func(a, b laborKey) int { return cmp.Compare(a.edge, b.edge) })
	for _, key := range keys {
		rows.chances[key.edge] = min(rows.weights[key.edge]*last, 1)
		s.keep(kept, key.edge)
	}
}
