package run

import (
	"math"
	"slices"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// tileEdges is the number of elements that are computed at a time: their arrays stay in the
// first-level cache.
const tileEdges = 512

// tile is a set of edges of a matrix: consecutive ones from lo on, or those in at.
type tile[I csc.Index] struct {
	set    *edges[I]
	n, lo  int64
	at     []int64
	parent *tile[I] // the same edges among those of the parent
}

// span is a set of elements of a list: from lo on, or those at places; ids are their nodes, nil if
// the list is all graph nodes.
type span[I csc.Index] struct {
	n, lo int64
	ids   []I
	at    []I
}

// evaluator makes values of tiles; one goroutine uses it.
type evaluator[I csc.Index] struct {
	*call[I]
	// The tile, and properties of its edges, computed on demand: their columns, positions in the
	// CSC, original ids, and source nodes.
	root               tile[I]
	column, place, ids []int64
	source             []I
	tiles              []*tile[I]
	depth              int
	ints               pool[int64]
	numbers            pool[I]
	floats             pool[float64]
	guess              int64 // the column of the last edge of the last tile
}

// pool is a stack of buffers of a tile's length, which are freed all at once or in reverse order.
type pool[T any] struct {
	buffers [][]T
	used    int
}

func (p *pool[T]) take(n int64) []T {
	if p.used == len(p.buffers) {
		p.buffers = append(p.buffers, make([]T, tileEdges))
	}
	p.used++
	return p.buffers[p.used-1][:n]
}

// worker is the scratch of one goroutine within a batch.
type worker struct {
	evaluator interface{ forget() } // of the type of ids that it was last used for
	selection
}

func (c *call[I]) worker(i int) *worker {
	for len(c.workers) <= i {
		c.workers = append(c.workers, &worker{})
	}
	return c.workers[i]
}

// forget lets go of the batch and of its graph, which the scratch outlives.
func (ev *evaluator[I]) forget() {
	ev.begin(nil, 0, 0)
	for _, t := range ev.tiles {
		*t = tile[I]{}
	}
	ev.call = nil
}

// evaluatorOf is a worker's.
func evaluatorOf[I csc.Index](w *worker, c *call[I]) *evaluator[I] {
	ev, ok := w.evaluator.(*evaluator[I])
	if !ok {
		ev = &evaluator[I]{}
		w.evaluator = ev
	}
	ev.call = c
	return ev
}

// begin is n edges of a matrix from lo on. Tiles before it are void.
func (ev *evaluator[I]) begin(e *edges[I], lo, n int64) *tile[I] {
	ev.ints.used, ev.numbers.used, ev.floats.used, ev.depth = 0, 0, 0, 0
	ev.column, ev.place, ev.ids, ev.source = nil, nil, nil, nil
	ev.root = tile[I]{set: e, n: n, lo: lo}
	return &ev.root
}

// up returns the same edges among those of the matrix that they were chosen from.
func (ev *evaluator[I]) up(t *tile[I]) *tile[I] {
	if t.parent == nil {
		if ev.depth == len(ev.tiles) {
			ev.tiles = append(ev.tiles, &tile[I]{})
		}
		p := ev.tiles[ev.depth]
		ev.depth++
		*p = tile[I]{set: t.set.parent, n: t.n, at: ev.from(t)}
		t.parent = p
	}
	return t.parent
}

// from is which of the parent's edges a tile's are.
func (ev *evaluator[I]) from(t *tile[I]) []int64 {
	e := t.set
	if e.from != nil {
		return pick(&ev.ints, e.from, t)
	}
	places, shift := ev.places(), e.parent.shift
	if shift == nil {
		return places
	}
	from := ev.ints.take(t.n)
	for i, column := range ev.columnsOf(e) {
		from[i] = places[i] - shift[column]
	}
	return from
}

// pick is the elements of an array along the edges of a tile.
func pick[T any, I csc.Index](p *pool[T], of []T, t *tile[I]) []T {
	if t.at == nil {
		return of[t.lo : t.lo+t.n]
	}
	to := p.take(t.n)
	for i, k := range t.at {
		to[i] = of[k]
	}
	return to
}

// firstColumn returns the column of the tile's first edge.
func (ev *evaluator[I]) firstColumn() int64 {
	t, indptr := &ev.root, ev.root.set.indptr
	col := ev.guess
	if col+1 >= int64(len(indptr)) || indptr[col] > t.lo || indptr[col+1] <= t.lo && t.lo-indptr[col] > tileEdges {
		return t.set.columnAt(t.lo)
	}
	return col
}

// columns is which column of the tile's matrix each edge is in.
func (ev *evaluator[I]) columns() []int64 {
	t := &ev.root
	if ev.column != nil || t.n == 0 {
		return ev.column
	}
	to, indptr := ev.ints.take(t.n), t.set.indptr
	ev.column = to
	col := ev.firstColumn()
	for i := int64(0); i < t.n; {
		for indptr[col+1] <= t.lo+i {
			col++
		}
		for end := min(indptr[col+1]-t.lo, t.n); i < end; i++ {
			to[i] = col
		}
	}
	ev.guess = col
	return to
}

// columnsOf is which column of a matrix each edge is in: of the tile's, or of one that its edges were chosen from.
func (ev *evaluator[I]) columnsOf(e *edges[I]) []int64 {
	columns := ev.columns()
	for set := ev.root.set; set != e; set = set.parent {
		if set.wasColumn == nil {
			continue
		}
		own := columns
		columns = ev.ints.take(int64(len(own)))
		for k, column := range own {
			columns[k] = int64(set.wasColumn[column])
		}
	}
	return columns
}

// places returns the CSC positions of the edges.
func (ev *evaluator[I]) places() []int64 {
	t := &ev.root
	if ev.place != nil || t.n == 0 {
		return ev.place
	}
	if !t.set.ranged {
		ev.place = t.set.places[t.lo : t.lo+t.n]
		return ev.place
	}
	to := ev.ints.take(t.n)
	ev.place = to
	for i := range to {
		to[i] = t.lo + int64(i)
	}
	if t.set.shift != nil {
		for i, column := range ev.columns() {
			to[i] += t.set.shift[column]
		}
	}
	return to
}

// placesOf is places of a range of edges.
func (ev *evaluator[I]) placesOf(e *edges[I], lo, n int64) []int64 {
	ev.begin(e, lo, n)
	return ev.places()
}

// edgeIDs are the original ids of the edges.
func (ev *evaluator[I]) edgeIDs() []int64 {
	if ev.ids != nil {
		return ev.ids
	}
	places, of := ev.places(), ev.Relation.EdgeIDs
	ev.ids = places
	if of.Bits == 0 || len(places) == 0 {
		return places
	}
	ev.ids = ev.ints.take(int64(len(places)))
	if of.Bits == 32 {
		for i, p := range places {
			ev.ids[i] = int64(of.I32[p])
		}
	} else {
		for i, p := range places {
			ev.ids[i] = of.I64[p]
		}
	}
	return ev.ids
}

// sourceVertices are the nodes that the edges come from.
func (ev *evaluator[I]) sourceVertices() []I {
	if ev.source == nil {
		ev.source = ev.numbers.take(ev.root.n)
		if t := &ev.root; t.set.ranged && t.n > 0 {
			ev.guess = t.set.runs(ev.firstColumn(), t.lo, t.lo+t.n, func(at, n, place int64) {
				copy(ev.source[at-t.lo:][:n], ev.indices[place:place+n])
			})
			fetchNext(ev.indices, t.set, ev.guess, t.lo+t.n)
			return ev.source
		}
		for i, p := range ev.places() {
			ev.source[i] = ev.indices[p]
		}
	}
	return ev.source
}

// columnVertices are the nodes that the edges lead to.
func (ev *evaluator[I]) columnVertices() []I {
	to, ids := ev.numbers.take(ev.root.n), ev.root.set.columns.ids
	for i, column := range ev.columns() {
		to[i] = ids[column]
	}
	return to
}

// rowsAlong returns the positions of the rows of the edges in the list that a vector runs along.
func (ev *evaluator[I]) rowsAlong(t *tile[I], along program.Along) []I {
	for {
		e := t.set
		switch {
		case along == (program.Along{Space: program.Rows, Node: e.node}):
			return pick(&ev.numbers, e.local, t)
		case e.inRow != nil && along == ev.Nodes[ev.Nodes[e.node].In[0]].Type.Along:
			return pick(&ev.numbers, e.inRow, t)
		case e.parent == nil:
			panic("a vector along rows that no matrix here has")
		}
		t = ev.up(t)
	}
}

// edgeArray writes the elements of an edge array.
func (ev *evaluator[I]) edgeArray(what, name string, t *tile[I], to []float64) {
	v := array(ev.Relation.EdgeData, "an edge", what, name)
	if lo, e := ev.root.lo, ev.root.set; e.ranged && (ev.Relation.EdgeIDs.Bits == 0 || ev.near != nil) && v.Len() >= ev.Relation.NumEdges() && t.n > 0 {
		ev.guess = e.runs(ev.firstColumn(), lo, lo+t.n, func(at, n, place int64) { v.Range(to[at-lo:at-lo+n], place) })
		if hi := min(lo+t.n+tileEdges, e.count()); e.shift != nil && lo+t.n < hi {
			e.runs(ev.guess, lo+t.n, hi, func(_, n, place int64) { v.Fetch(place, n) })
		}
		return
	}
	ids, wrong := ev.places(), int64(0)
	if ev.near == nil { // else arrays came with the rows
		ids = ev.edgeIDs()
	}
	for _, id := range ids {
		wrong |= id | (v.Len() - 1 - id)
	}
	if wrong < 0 {
		for _, id := range ids {
			if id < 0 || id >= v.Len() {
				fail(request.ErrValue, "%s: expected a value for each edge id in '%s', got %d of them and an edge with id %d", what, name, v.Len(), id)
			}
		}
	}
	csc.Gather(v, to, ids)
}

// kept writes 1 for each edge that is not excluded from the batch, else 0.
func (ev *evaluator[I]) kept(to []float64) {
	broadcast(to, 1)
	if ev.Exclude == nil {
		return
	}
	places, of := ev.places(), ev.root.set.columns.ids
	column, start, excluded := int64(-1), int64(0), []int64(nil)
	for k, c := range ev.columns() {
		if c != column {
			column, excluded = c, ev.Exclude.Offsets(int64(of[c]))
			if len(excluded) > 0 {
				start = ev.Relation.Indptr.Element(int64(of[c]))
			}
		}
		if len(excluded) > 0 {
			if _, found := slices.BinarySearch(excluded, places[k]-start); found {
				to[k] = 0
			}
		}
	}
}

// fill writes the values of a matrix.
func (ev *evaluator[I]) fill(i int, t *tile[I], to []float64) {
	n := &ev.Nodes[i]
	if m := ev.values[i].matrix; m != nil {
		if t.at == nil {
			copy(to, m[t.lo:t.lo+t.n])
			return
		}
		for k, at := range t.at {
			to[k] = m[at]
		}
		return
	}
	switch n.Op {
	case program.Whole, program.Slice, program.Cross:
		if ev.Weight != "" {
			ev.edgeArray("weight", ev.Weight, t, to)
			return
		}
		broadcast(to, 1)
	case program.Individual, program.Collective, program.Dependent, program.Filter, program.TopK, program.Extract:
		ev.fill(n.In[0], ev.up(t), to)
	case program.Data:
		ev.edgeArray("edata", n.Name, t, to)
	case program.Kept:
		ev.kept(to)
	case program.Random:
		uniforms(ev.numbersOf(n, rng.Edges), span[int64]{ids: ev.edgeIDs()}, to)
	case program.Dot:
		ev.dot(n, t, to)
	case program.Spread:
		ev.along(n.In[1], n.Axis, t, to)
	case program.Independent:
		ev.along(n.In[1], n.Axis, t, to)
		if ev.copies != nil {
			ev.numberCopies(&ev.Nodes[n.In[1]], to)
		}
	default:
		ev.mapped(n, to, func(in int, buffer []float64) []float64 {
			switch kind := ev.Nodes[in].Type.Kind; {
			case kind == program.Matrix && ev.values[in].matrix != nil && t.at == nil:
				return ev.values[in].matrix[t.lo : t.lo+t.n]
			case kind == program.Matrix:
				ev.fill(in, t, buffer)
			case kind == program.Vector:
				ev.along(in, n.Axis, t, buffer)
			default:
				broadcast(buffer, ev.values[in].scalar)
			}
			return buffer
		})
	}
}

// numberCopies writes the numbers of parallel edges, of all but the first of a column from a node.
func (ev *evaluator[I]) numberCopies(n *program.Node, to []float64) {
	numbers := ev.numbersOf(n, rng.Candidates)
	next, between := numbers.Next()
	var out func(int64) bool
	for k, p := range ev.places() {
		if ev.copies[p] == 0 {
			continue
		}
		if ev.Exclude != nil {
			v := int64(ev.root.set.columns.ids[ev.columns()[k]])
			start, excluded := ev.Relation.Indptr.Element(v), ev.Exclude.Offsets(v)
			out = func(p int64) bool {
				_, is := slices.BinarySearch(excluded, p-start)
				return is
			}
		}
		if !ev.copies.Is(p, out) {
			continue
		}
		id := ev.edgeIDs()[k]
		of := func(stream rng.Stream) float64 {
			return rng.Uniform(rng.Draw(stream.State(uint64(ev.indices[p])), int(id)+1))
		}
		if to[k] = of(numbers.Stream); between {
			to[k] = numbers.Between(to[k], of(next))
		}
	}
}

// uniforms computes the uniform numbers of nodes or edges.
func uniforms[I csc.Index](numbers rng.Dependent, of span[I], to []float64) {
	// A number takes the place of its node.
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(to))), len(to))
	of.numbers(0, words)
	numbers.Uniforms(words)
	next, ok := numbers.Next()
	if !ok {
		return
	}
	var others [128]uint64
	for lo := 0; lo < len(to); lo += len(others) {
		part := others[:min(len(others), len(to)-lo)]
		of.numbers(lo, part)
		next.Uniforms(part)
		for k, u := range part {
			to[lo+k] = numbers.Between(to[lo+k], math.Float64frombits(u))
		}
	}
}

// numbers writes the ids from a place of the span on.
func (s *span[I]) numbers(from int, to []uint64) {
	for k := range to {
		if s.ids == nil {
			to[k] = uint64(s.lo + int64(from+k))
		} else {
			to[k] = uint64(s.ids[from+k])
		}
	}
}

// along writes the elements of a vector for each edge.
func (ev *evaluator[I]) along(i, axis int, t *tile[I], to []float64) {
	n := &ev.Nodes[i]
	switch {
	case n.Type.Along.Space == program.All && axis == 0:
		ev.vector(i, span[I]{n: t.n, ids: ev.columnVertices()}, to)
	case n.Type.Along.Space == program.All:
		ev.vector(i, span[I]{n: t.n, ids: ev.sourceVertices()}, to)
	case !ev.values[i].made:
		ev.elements(i, axis, t, to)
	case axis == 0:
		of := ev.values[i].vector
		for k, column := range ev.columnsOf(t.set) {
			to[k] = of[column]
		}
	default:
		of := ev.values[i].vector
		for k, row := range ev.rowsAlong(t, n.Type.Along) {
			to[k] = of[row]
		}
	}
}

// elements computes the elements of a vector that is not stored, for each edge.
func (ev *evaluator[I]) elements(i, axis int, t *tile[I], to []float64) {
	along := ev.Nodes[i].Type.Along
	list, s := ev.listAlong(along).ids, span[I]{n: t.n, ids: ev.numbers.take(t.n)}
	if axis == 0 {
		s.at = ev.numbers.take(t.n)
		for k, column := range ev.columnsOf(t.set) {
			s.at[k] = I(column)
		}
	} else {
		s.at = ev.rowsAlong(t, along)
	}
	for k, at := range s.at {
		s.ids[k] = list[at]
	}
	ev.vector(i, s, to)
}

// vector writes the elements of a vector for some of a list.
func (ev *evaluator[I]) vector(i int, s span[I], to []float64) {
	n, v := &ev.Nodes[i], &ev.values[i]
	if v.made {
		if n.Type.Along.Space != program.All && s.at != nil {
			for k, at := range s.at {
				to[k] = v.vector[at]
			}
			return
		}
		if n.Type.Along.Space != program.All || s.ids == nil {
			copy(to, v.vector[s.lo:s.lo+s.n])
			return
		}
		words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v.vector))), len(v.vector))
		for lo := 0; lo < len(s.ids); lo += prefetch.Step {
			prefetch.Ahead(words, s.ids, lo)
			for k := lo; k < min(lo+prefetch.Step, len(s.ids)); k++ {
				to[k] = v.vector[s.ids[k]]
			}
		}
		return
	}
	switch n.Op {
	case program.Vertices:
		of := array(ev.Relation.VertexData, "a node", "ndata", n.Name)
		if of.Len() != ev.Relation.NumNodes {
			fail(request.ErrValue, "ndata: expected a value for each of %d nodes in '%s', got %d", ev.Relation.NumNodes, n.Name, of.Len())
		}
		if s.ids == nil {
			of.Range(to, s.lo)
			return
		}
		csc.Gather(of, to, s.ids)
	case program.Degree:
		for k := range to {
			to[k] = float64(ev.degree(s.node(k)))
		}
	case program.Number:
		for k := range to {
			to[k] = float64(s.node(k))
		}
	case program.Random:
		uniforms(ev.numbersOf(n, rng.Candidates), s, to)
	case program.Gather:
		ev.vector(n.In[0], s, to)
	case program.Entry:
		ev.entry(n, s, to)
	default:
		ev.mapped(n, to, func(in int, buffer []float64) []float64 {
			if ev.Nodes[in].Type.Kind == program.Scalar {
				broadcast(buffer, ev.values[in].scalar)
			} else {
				ev.vector(in, s, buffer)
			}
			return buffer
		})
	}
}

// node is element k of a span.
func (s span[I]) node(k int) int64 {
	if s.ids == nil {
		return s.lo + int64(k)
	}
	return int64(s.ids[k])
}

func (c *call[I]) degree(v int64) int64 {
	if p := c.Relation.Indptr; v < c.Relation.NumRows() {
		return p.Element(v+1) - p.Element(v)
	}
	return 0
}

// mapped writes what an operator makes of its inputs, each of which operand writes into a buffer, or has.
func (ev *evaluator[I]) mapped(n *program.Node, to []float64, operand func(in int, buffer []float64) []float64) {
	used := ev.floats.used
	x := operand(n.In[0], to)
	if len(n.In) == 1 {
		unary(n.Op, to, x)
		return
	}
	if n.Op == program.Pow && ev.Nodes[n.In[1]].Type.Kind == program.Scalar {
		powers(to, x, ev.values[n.In[1]].scalar)
		return
	}
	y := x
	if n.In[1] != n.In[0] {
		y = operand(n.In[1], ev.floats.take(int64(len(to))))
	}
	if n.Op == program.Where {
		where(to, x, y, operand(n.In[2], ev.floats.take(int64(len(to)))))
	} else {
		binary(n.Op, to, x, y)
	}
	ev.floats.used = used
}

func broadcast(to []float64, x float64) {
	for i := range to {
		to[i] = x
	}
}

// single is a value as results have it.
func single(x float64) float32 {
	if x != x {
		return float32(math.NaN())
	}
	return float32(x)
}
