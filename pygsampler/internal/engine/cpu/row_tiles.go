package cpu

import (
	"fmt"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// tiled are the rows of one graph, drawn when their tile's turn comes.
type tiled[I csc.Index] struct {
	*Request
	*hopRows
	trees *disjointMap[I] // of the rows' nodes; nil: trees share nodes
	// If mixed, the states of rows depend on the edge type, whose hash is salt.
	salt  uint64
	mixed bool
}

func (s *sampling[I]) tiles() (rows[I], error) {
	s.tiled = tiled[I]{Request: s.Request, hopRows: &s.hopRows, trees: s.trees}
	return &s.tiled, nil
}

func (s *tiled[I]) count(frontier []I, lo, hi int64, hop int) (edges int64) {
	rule := s.Rule(hop)
	starts, degrees := s.starts[lo:hi], s.degrees[lo:hi]
	if s.Relation.Indptr.Bits == 32 {
		readRows(s.Relation.Indptr.I32, s.Relation.NumEdges(), frontier[lo:hi], s.First, starts, degrees)
	} else {
		readRows(s.Relation.Indptr.I64, s.Relation.NumEdges(), frontier[lo:hi], s.First, starts, degrees)
	}
	if s.Times != nil {
		s.within(frontier, lo, starts, degrees, rule)
	}
	for i, v := range frontier[lo:hi] {
		if s.Exclude != nil && s.Times == nil {
			degrees[i] -= int64(len(s.Exclude.Offsets(int64(v) - s.First)))
		}
		edges += rule.Take(degrees[i])
	}
	return edges
}

// within leaves of the rows from lo on what there is at their bounds, of whose edges those that are excluded do not
// count.
func (s *tiled[I]) within(frontier []I, lo int64, starts, degrees []int64, rule request.Rule) {
	t := s.Times
	bounds := s.trees.bounds[s.trees.first+lo:]
	// The first probes of all searches, adjacent in memory.
	var middles [tileRows]int64
	for i, start := range starts {
		middles[i] = start + degrees[i]/2
	}
	prefetch.Elements(t.Edges, middles[:len(starts)])
	for i := range starts {
		starts[i], degrees[i] = t.Within(starts[i], degrees[i], bounds[i], &t.Rule)
		excluded := s.excludedOf(int64(frontier[lo+int64(i)])-s.First, starts[i])
		out, _ := slices.BinarySearch(excluded, degrees[i])
		degrees[i] -= int64(out)
		if more := degrees[i] - rule.Fanout; t.Last && rule.Fanout >= 0 && more > 0 {
			starts[i], degrees[i] = starts[i]+csc.Skip(excluded, more), rule.Fanout
		}
	}
}

// excludedOf is the excluded edges of row v from a CSC position on, counted from there.
func (r *Request) excludedOf(v, start int64) []int64 {
	if r.Exclude == nil {
		return nil
	}
	excluded := r.Exclude.Offsets(v)
	if r.Times == nil || len(excluded) == 0 {
		return excluded
	}
	before := start - r.Relation.Indptr.Element(v)
	first, _ := slices.BinarySearch(excluded, before)
	from := slices.Clone(excluded[first:])
	for i := range from {
		from[i] -= before
	}
	return from
}

// readRows is the first position and the degree of each node; those beyond
// indptr, which begins at node first, have no edges.
func readRows[I, P csc.Index](indptr []P, edges int64, vertices []I, first int64, starts, degrees []int64) {
	rows := int64(len(indptr)) - 1
	// The rows of a partition have other positions, so a prefetch would miss.
	if first == 0 {
		prefetch.Elements(indptr, vertices)
	}
	for i, id := range vertices {
		start, end := int64(0), int64(0)
		if v := int64(id) - first; v < rows {
			start, end = int64(indptr[v]), int64(indptr[v+1])
			checkRow(int64(id), start, end, edges)
		}
		starts[i], degrees[i] = start, end-start
	}
}

// checkRow panics on a row that no validated graph has: the caller has changed the
// arrays, or they are of a damaged file. Memory would be asked for by such a degree.
func checkRow(v, start, end, edges int64) {
	if uint64(start) > uint64(end) || uint64(end) > uint64(edges) {
		refuseRow(v, start, end, edges)
	}
}

// refuseRow is apart, so that the check is inlined.
//
//go:noinline
func refuseRow(v, start, end, edges int64) {
	panic(fmt.Sprintf("row %d: expected offsets in [0, %d], ascending, got %d and %d", v, edges, start, end))
}

// longRow is the size from which a row is copied, or drawn with replacement, on its
// own instead of by way of the tile's positions, which stay small that way: nothing
// but the fanout bounds a row drawn with replacement.
const longRow = 1024

func (s *tiled[I]) draw(w *worker, stream rng.Stream, frontier []I, lo, hi, first int64, hop int, b block[I]) {
	rule := s.Rule(hop)
	starts, degrees := s.starts[lo:hi], s.degrees[lo:hi]
	if s.plain(rule) {
		s.drawPlain(w, stream, frontier, lo, hi, first, rule, b)
		return
	}
	chosen := w.rows[:len(degrees)]
	k := 0
	for i, degree := range degrees {
		chosen[k] = int32(i)
		if !rule.TakesAll(degree) {
			k++
		}
	}
	states := s.states(w, stream, frontier, lo, chosen[:k])
	next := 0
	flushed, at := first, first
	positions := w.positions[:0]
	for i, degree := range degrees {
		b.indptr[lo+int64(i)] = I(at)
		take := rule.Take(degree)
		whole := next >= k || int(chosen[next]) != i
		if whole && take >= longRow && s.Exclude == nil {
			s.settleWeighted(w, positions, rule, b)
			gather(s.Relation, positions, flushed, b)
			positions = positions[:0]
			copyRow(s.Relation, starts[i], take, at, b)
			fill(b.weightsOf(at, int(take)), 1)
			at += take
			flushed = at
			continue
		}
		state := uint64(0)
		if !whole {
			state = states[next]
			next++
		}
		if !whole && s.Replace && take >= longRow {
			s.settleWeighted(w, positions, rule, b)
			gather(s.Relation, positions, flushed, b)
			positions = positions[:0]
			for ; take > 0; state = rng.Advance(state, longRow) {
				row := grow(&positions, min(take, longRow))
				s.choose(&w.chooser, row, int64(frontier[lo+int64(i)])-s.First, state, starts[i], degree, rule, rule.Fanout-take, whole, b.weightsOf(at, len(row)))
				gather(s.Relation, row, at, b)
				positions = positions[:0]
				at += int64(len(row))
				take -= int64(len(row))
			}
			flushed = at
			continue
		}
		row := grow(&positions, take)
		if s.Relation.Alias != nil && !whole && s.Times == nil {
			v := int64(frontier[lo+int64(i)]) - s.First
			s.beginWeighted(w, positions, len(positions)-len(row), v, starts[i], degree, at, state)
			at += take
			continue
		}
		s.choose(&w.chooser, row, int64(frontier[lo+int64(i)])-s.First, state, starts[i], degree, rule, 0, whole, b.weightsOf(at, len(row)))
		at += take
	}
	s.settleWeighted(w, positions, rule, b)
	gather(s.Relation, positions, flushed, b)
	w.positions = positions[:0]
}

// plain reports whether rows are drawn without replacement, from all their edges, and few of each.
func (s *tiled[I]) plain(rule request.Rule) bool {
	return s.Exclude == nil && !s.Replace && s.Draw == nil && (s.Relation.Alias == nil || s.Times == nil) &&
		0 < rule.Fanout && rule.Fanout <= rng.DistinctMost
}

// drawPlain is draw of such rows, all of a tile's at a time.
func (s *tiled[I]) drawPlain(w *worker, stream rng.Stream, frontier []I, lo, hi, first int64, rule request.Rule, b block[I]) {
	starts, degrees, indptr := s.starts[lo:hi], s.degrees[lo:hi], b.indptr[lo:hi]
	rows := w.rows[:len(degrees)]
	k, at := 0, first
	for i, degree := range degrees {
		indptr[i] = I(at)
		at += min(degree, rule.Fanout)
		rows[k] = int32(i)
		if degree > rule.Fanout {
			k++
		}
	}
	rows = rows[:k]
	states := s.states(w, stream, frontier, lo, rows)
	// If the positions are the ids, they are written once.
	inPlace := s.Relation.EdgeIDs.Bits == 0 && b.ids64 != nil
	var positions []int64
	if inPlace {
		positions = b.ids64[first:at:at]
	} else {
		w.positions = w.positions[:0]
		positions = grow(&w.positions, at-first)
	}
	if b.edgeWeights != nil {
		for i, degree := range degrees {
			fill(b.weightsOf(int64(indptr[i]), int(min(degree, rule.Fanout))), rule.Factor(degree))
		}
	}
	if s.Relation.Alias == nil {
		rng.DistinctRows(positions, starts, degrees, states, rule.Fanout)
	} else {
		rng.FullRows(positions, starts, degrees, rule.Fanout)
		for j, i := range rows {
			edge := int64(indptr[i])
			place := edge - first
			s.beginWeighted(w, positions[:place+rule.Fanout], int(place), int64(frontier[lo+int64(i)])-s.First, starts[i], degrees[i], edge, states[j])
		}
		s.settleWeighted(w, positions, rule, b)
	}
	if inPlace {
		gatherSources(s.Relation, positions, first, b)
	} else {
		gather(s.Relation, positions, first, b)
	}
}

// states returns the states of the drawing rows, counted from lo.
func (s *tiled[I]) states(w *worker, stream rng.Stream, frontier []I, lo int64, rows []int32) []uint64 {
	states := w.states[:len(rows)]
	for j, i := range rows {
		states[j] = uint64(frontier[lo+int64(i)])
	}
	stream.States(states)
	if s.mixed {
		for j := range states {
			states[j] = rng.OfType(states[j], s.salt)
		}
	}
	if s.trees != nil {
		s.trees.part(states, rows, lo)
	}
	return states
}

// choose fills row with the CSC positions of the edges that row v contributes; state is the row's
// at the first of them, start and degree are the results of count. It fills factors, too, if there
// are any.
func (r *Request) choose(c *rng.Chooser, row []int64, v int64, state uint64, start, degree int64, rule request.Rule, first int64, whole bool, factors []float32) {
	if r.Relation.Alias != nil && !whole && r.Times != nil {
		before := uint64(0)
		if start > r.Relation.Indptr.Element(v) {
			before = r.Relation.Sums[start-1]
		}
		excluded := r.excludedOf(v, start)
		out := 0
		for out < len(excluded) && excluded[out] < degree+int64(out) {
			out++
		}
		sums := r.Relation.Sums[start : start+degree+int64(out)]
		c.Part(row, sums, before, state, excluded[:out], r.Replace)
		if factors != nil {
			c.Factors(factors, row, rng.Weights{Sums: sums, Before: before}, state, excluded[:out], r.Replace, rule.Fanout)
		}
		for j := range row {
			row[j] += start
		}
		return
	}
	if r.Relation.Alias != nil && !whole {
		excluded := r.Exclude.Offsets(v)
		weights := r.Relation.Weights(start, degree+int64(len(excluded)))
		c.Weighted(row, weights, state, excluded, r.Replace, rule.Fanout, first)
		if factors != nil {
			c.Factors(factors, row, weights, state, excluded, r.Replace, rule.Fanout)
		}
		for j := range row {
			row[j] += start
		}
		return
	}
	if factors != nil {
		fill(factors, rule.Factor(degree))
	}
	switch {
	case whole:
		for j := range row {
			row[j] = int64(j)
		}
	case r.Replace:
		rng.Repeated(row, state, degree)
	case r.Draw != nil:
		r.Draw.Choose(row, state, degree)
	default:
		c.Distinct(row, state, degree)
	}
	if r.Exclude != nil {
		if excluded := r.excludedOf(v, start); len(excluded) > 0 {
			for j, p := range row {
				row[j] = csc.Skip(excluded, p)
			}
		}
	}
	for j := range row {
		row[j] += start
	}
}

// fill sets all of a list.
func fill(a []float32, value float32) {
	for i := range a {
		a[i] = value
	}
}

// grow appends n elements of any value to a and returns them.
func grow(a *[]int64, n int64) []int64 {
	old := int64(len(*a))
	if int64(cap(*a)) < old+n {
		larger := make([]int64, old, 2*(old+n)+tileRows)
		copy(larger, *a)
		*a = larger
	}
	*a = (*a)[:old+n]
	return (*a)[old:]
}

// gather fetches the neighbors and edge ids at CSC positions into the block from
// edge at on.
func gather[I csc.Index](g *csc.Relation, positions []int64, at int64, b block[I]) {
	to := at + int64(len(positions))
	switch g.EdgeIDs.Bits {
	case 32:
		prefetch.Elements(g.EdgeIDs.I32, positions)
	case 64:
		prefetch.Elements(g.EdgeIDs.I64, positions)
	}
	gatherSources(g, positions, at, b)
	switch {
	case g.EdgeIDs.Bits == 32:
		for k, dst := 0, b.ids32[at:to]; k < len(dst) && k < len(positions); k++ {
			dst[k] = g.EdgeIDs.I32[positions[k]]
		}
	case g.EdgeIDs.Bits == 64:
		for k, dst := 0, b.ids64[at:to]; k < len(dst) && k < len(positions); k++ {
			dst[k] = g.EdgeIDs.I64[positions[k]]
		}
	case b.ids32 != nil:
		for k, dst := 0, b.ids32[at:to]; k < len(dst) && k < len(positions); k++ {
			dst[k] = int32(positions[k])
		}
	default:
		copy(b.ids64[at:to], positions)
	}
}

// gatherSources is gather for the neighbors only. Its loads are independent, so their cache misses
// overlap.
func gatherSources[I csc.Index](g *csc.Relation, positions []int64, at int64, b block[I]) {
	source := csc.Elements[I](g.Indices)
	// A quarter of a uniform batch's time went by waiting for these, on a graph that no cache has room for.
	prefetch.Elements(source, positions)
	for k, dst := 0, b.indices[at:at+int64(len(positions))]; k < len(dst) && k < len(positions); k++ {
		dst[k] = source[positions[k]]
	}
}

// copyRow is gather for a whole row of n edges from CSC position start on.
func copyRow[I csc.Index](g *csc.Relation, start, n, at int64, b block[I]) {
	copy(b.indices[at:at+n], csc.Elements[I](g.Indices)[start:start+n])
	switch {
	case g.EdgeIDs.Bits == 32:
		copy(b.ids32[at:at+n], g.EdgeIDs.I32[start:start+n])
	case g.EdgeIDs.Bits == 64:
		copy(b.ids64[at:at+n], g.EdgeIDs.I64[start:start+n])
	case b.ids32 != nil:
		for j, ids := int64(0), b.ids32[at:at+n]; j < n; j++ {
			ids[j] = int32(start + j)
		}
	default:
		for j, ids := int64(0), b.ids64[at:at+n]; j < n; j++ {
			ids[j] = start + j
		}
	}
}
