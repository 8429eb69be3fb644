package walk

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Request says which walks to sample, on the rows of a graph. It is read-only meanwhile.
type Request struct {
	Rule
	request.Batch
	Relation *csc.Relation
	// Pack makes uniform steps read packed edges, which the first call builds and the graph caches.
	// It changes no walk.
	Pack bool
	// Lean makes walks of node2vec avoid the table of the pairs that edges join. It changes no walk
	// either.
	Lean bool
}

// unitWalks is the number of walks that a worker runs at a time, interleaved: a step of one waits
// for memory twice, so a core keeps as many reads in flight as its caches support.
const unitWalks = 256

// Sample samples the walks and returns their memory, with one reference. It returns
// request.ErrCancelled soon after stop is set.
func Sample(r *Request, crew csc.Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the graph's arrays changed while walks were sampled, or a fault of pygsampler: %v", p)
		}
	}()
	g := r.Relation
	if r.Second() && g.Back == nil {
		return m, fmt.Errorf("walks with p, q: expected a graph with adjacency, got none: a fault of pygsampler")
	}
	if r.Roots > 0 && r.Seeds.Len()%r.Roots != 0 {
		return m, r.WrongRoots(r.Seeds.Len())
	}
	if err := r.CheckSeeds(g.NumNodes); err != nil {
		return m, err
	}
	idBits, edgeBits := int64(g.Indices.Bits), int64(g.EdgeIDBits())
	if err := r.Affordable(r.Seeds.Len(), idBits, edgeBits); err != nil {
		return m, err
	}
	var made *packed
	if r.packable() {
		if made, err = packedOf(g, crew, stop); err != nil {
			return m, err
		}
		// Its pages go with it.
		defer runtime.KeepAlive(made)
	}
	var joined *pairs
	if r.Second() && !r.Lean {
		if joined, err = pairsOf(g, crew, stop); err != nil {
			return m, err
		}
		defer runtime.KeepAlive(joined)
	}
	words := r.Words(r.Seeds.Len(), idBits, edgeBits)
	if m, err = memory.New(words[batch.WordSize]); err != nil {
		return m, err
	}
	m.SetSize(words[batch.WordSize])
	copy(memory.ViewAt[int64](m, 0, batch.WalkWords), words[:])
	defer func() {
		if err != nil {
			m.Release()
			m = memory.Memory{}
		}
	}()
	switch [2]int{g.Indptr.Bits, g.Indices.Bits} {
	case [2]int{32, 32}:
		run[int32, int32](r, made, joined, &words, m, crew, stop)
	case [2]int{64, 32}:
		run[int64, int32](r, made, joined, &words, m, crew, stop)
	case [2]int{32, 64}:
		run[int32, int64](r, made, joined, &words, m, crew, stop)
	default:
		run[int64, int64](r, made, joined, &words, m, crew, stop)
	}
	if stop.Load() {
		return m, request.ErrCancelled
	}
	return m, nil
}

// engine is the state of one call. P is the type of offsets, I the type of ids.
type engine[P, I csc.Index] struct {
	*Request
	chance  Chances
	stream  rng.Stream
	indptr  []P
	indices []I
	kinds   int64
	edges   []uint64 // packed; nil: none
	joined  *pairs   // of node2vec; nil: none
	nodes   []I      // [steps + 1][walks]
	edges32 []int32
	edges64 []int64 // [steps][walks]; nil where they are narrow, or not asked for
	lengths []int32
	walks   int64
	slots   []int32 // [steps][walks], of walks of several roots
	top     []I     // [seeds][top]
	visits  []int32 // likewise
}

func run[P, I csc.Index](r *Request, made *packed, joined *pairs, words *[batch.WalkWords]int64, m memory.Memory, crew csc.Crew, stop *atomic.Bool) {
	e := &engine[P, I]{
		Request: r, edges: edgesOf(made), joined: joined, chance: r.Chances(), walks: words[batch.WalkNumWalks],
		stream: rng.NewStream(r.Seed, r.Epoch, r.Number, 0, rng.Walking),
		indptr: csc.Elements[P](r.Relation.Indptr), indices: csc.Elements[I](r.Relation.Indices), kinds: max(r.Relation.Kinds, 1),
		nodes:   memory.ViewAt[I](m, words[batch.WalkNodes], words[batch.WalkNumNodes]),
		lengths: memory.ViewAt[int32](m, words[batch.WalkLengths], words[batch.WalkNumWalks]),
	}
	e.edgesAt(words, m)
	if e.Roots > 0 {
		e.slots = memory.ViewAt[int32](m, words[batch.WalkSlots], words[batch.WalkNumEdges])
		e.inUnits(crew, stop, 1, func() func(first, n int64) { return new(frontier[P, I]).of(e) })
		return
	}
	pool := poolOf[P, I]()
	e.inUnits(crew, stop, unitWalks, func() func(first, n int64) {
		u, _ := pool.Get().(*unit[P, I])
		if u == nil {
			u = new(unit[P, I])
		}
		return func(first, n int64) {
			u.walk(e, first, n)
			if first+n == e.walks {
				// The worker's last unit. Others leave theirs to the collector.
				u.engine = nil
				pool.Put(u)
			}
		}
	})
	e.mostVisited(words, m, crew, stop)
}

// edgesAt finds the edge arrays, if they were requested.
func (e *engine[P, I]) edgesAt(words *[batch.WalkWords]int64, m memory.Memory) {
	if at := words[batch.WalkEdgeIDs]; at != 0 && words[batch.WalkEdgeIDBits] == 32 {
		e.edges32 = memory.ViewAt[int32](m, at, words[batch.WalkNumEdges])
	} else if at != 0 {
		e.edges64 = memory.ViewAt[int64](m, at, words[batch.WalkNumEdges])
	}
}

// mostVisited finds the nodes that the walks of each seed have visited most, if they were
// requested.
func (e *engine[P, I]) mostVisited(words *[batch.WalkWords]int64, m memory.Memory, crew csc.Crew, stop *atomic.Bool) {
	if e.Top == 0 {
		return
	}
	e.top = memory.ViewAt[I](m, words[batch.WalkTopNodes], words[batch.WalkNumTop])
	e.visits = memory.ViewAt[int32](m, words[batch.WalkVisits], words[batch.WalkNumTop])
	per := max(e.PerSeed, 1)
	e.inUnits(crew, stop, per*(unitWalks/min(per, unitWalks)), func() func(first, n int64) {
		var t tally[P, I]
		return func(first, n int64) {
			for w := first; w < first+n; w += per {
				t.seed(e, w/per)
			}
		}
	})
}

// inUnits runs walks in units of a size, on workers that each create one function for it.
func (e *engine[P, I]) inUnits(crew csc.Crew, stop *atomic.Bool, size int64, worker func() func(first, n int64)) {
	units := (e.walks + size - 1) / size
	var next atomic.Int64
	csc.Crewed(crew, units, func() {
		do := worker()
		for i := next.Add(1) - 1; i < units && !stop.Load(); i = next.Add(1) - 1 {
			do(i*size, min(e.walks-i*size, size))
		}
	})
}

// pools keep units of finished calls, by the widths of offsets and ids: one is larger than a small graph, and
// to make one for each call had the collector run every hundred calls.
var pools [2][2]sync.Pool

func poolOf[P, I csc.Index]() *sync.Pool {
	return &pools[unsafe.Sizeof(P(0))/8][unsafe.Sizeof(I(0))/8]
}

// unit is some walks that go side by side. Lists of places are by the walks still under way.
type unit[P, I csc.Index] struct {
	*engine[P, I]
	first int64 // the first walk
	state [unitWalks]uint64
	root  [unitWalks]I
	at    [unitWalks]I
	last  [unitWalks]I // where the walk came from by an edge; -1: it did not

	lists         [7][unitWalks]int32
	alive, moving []int32 // those that stand at a node, and of them those that take an edge now
	step          [unitWalks]int64
	draws         [unitWalks]uint64
	start, degree [unitWalks]int64 // of the row
	pos           [unitWalks]int64 // of the edge to take
	scratch, rows [unitWalks]int64

	// State of node2vec: walks without an edge so far, the number of tries and the draws of the
	// step; walks that test whether two nodes are adjacent, the proposal, its coin, the size and
	// the bound of the area of the edges back, the positions of these, and where to look.
	open, asking     []int32
	tried            [unitWalks]int
	begun            [unitWalks]uint64
	proposed         [unitWalks]I
	mask             [unitWalks]uint32
	coin, area, most [unitWalks]uint64
	back, backs      [unitWalks]int64
	lo, hi, edge     [unitWalks]int64
}

// walk samples n walks from the number first on.
func (u *unit[P, I]) walk(e *engine[P, I], first, n int64) {
	u.engine, u.first = e, first
	u.alive, u.moving, u.open, u.asking = u.lists[0][:0], u.lists[1][:0], u.lists[2][:0], u.lists[3][:0]
	per := max(e.PerSeed, 1)
	for i := range n {
		v := I(e.Seeds.Element((first + i) / per))
		u.state[i] = e.stream.State(uint64(e.FirstWalk + first + i))
		u.root[i], u.at[i], u.last[i] = v, v, -1
		e.nodes[first+i] = v
		u.alive = append(u.alive, int32(i))
	}
	step := u.plainly(n)
	for i := range n {
		u.step[i] = step
	}
	for len(u.alive) > 0 || len(u.open) > 0 {
		u.begin()
		u.choose()
		u.move()
	}
}

// plainly runs the steps of walks that all continue and depend on the row only, up to the first
// step at which one does not: in two loops, each of which prefetches the reads of the other. It
// takes half of the time of the general steps.
func (u *unit[P, I]) plainly(n int64) (step int64) {
	e := u.engine
	if !e.plain() {
		return 0
	}
	if e.edges != nil {
		return u.byPacked(n)
	}
	at, pos, state := u.at[:n], u.pos[:n], u.state[:n]
	edges := e.edges32 != nil || e.edges64 != nil
	for ; step < e.Length; step++ {
		for i, v := range at {
			if int64(v)+1 >= int64(len(e.indptr)) {
				return step
			}
			start := e.indptr[v]
			degree := e.indptr[v+1] - start
			if degree == 0 {
				return step
			}
			pos[i] = int64(start) + int64(rng.Below(rng.Draw(state[i], int(step)), uint64(degree)))
		}
		prefetch.Elements(e.indices, pos)
		out := e.nodes[(step+1)*e.walks+u.first:][:n]
		for i, p := range pos {
			v := e.indices[p]
			at[i], out[i] = v, v
		}
		prefetch.Elements(e.indptr, at)
		if edges {
			for i, p := range pos {
				u.putEdge(step, u.first+int64(i), u.id(p))
			}
		}
	}
	return step
}

// byPacked is plainly on packed edges: a step is one read, of the edge that is taken.
func (u *unit[P, I]) byPacked(n int64) (step int64) {
	e, words := u.engine, u.engine.edges
	at, pos, state := u.at[:n], u.pos[:n], u.state[:n]
	edges := e.edges32 != nil || e.edges64 != nil
	for i, v := range at {
		start, degree := e.row(int64(v))
		if degree == 0 {
			return 0
		}
		pos[i] = 2 * (start + int64(rng.Below(rng.Draw(state[i], 0), uint64(degree))))
	}
	for ; step < e.Length; step++ {
		prefetch.Elements(words, pos)
		if edges {
			for i, p := range pos {
				u.putEdge(step, u.first+int64(i), u.id(p/2))
			}
		}
		out := e.nodes[(step+1)*e.walks+u.first:][:n]
		ends := false
		for i, p := range pos {
			edge := words[p : p+2 : p+2]
			start, both := edge[0], edge[1]
			v, degree := I(uint32(both)), both>>32
			at[i], out[i] = v, v
			ends = ends || degree == 0
			pos[i] = 2 * int64(start+rng.Below(rng.Draw(state[i], int(step+1)), degree))
		}
		if ends {
			return step + 1
		}
	}
	return step
}

// end finishes a walk before a step.
func (u *unit[P, I]) end(i int32, step int64) { u.engine.end(u.first+int64(i), step) }

func (e *engine[P, I]) end(w, step int64) {
	e.lengths[w] = int32(step)
	for s := step; s < e.Length; s++ {
		e.nodes[(s+1)*e.walks+w] = -1
		e.putEdge(s, w, -1)
	}
}

func (e *engine[P, I]) putEdge(step, w, id int64) {
	if e.edges32 != nil {
		e.edges32[step*e.walks+w] = int32(id)
	} else if e.edges64 != nil {
		e.edges64[step*e.walks+w] = id
	}
}

// id is the edge at a place.
func (e *engine[P, I]) id(place int64) int64 {
	if e.Relation.EdgeIDs.Bits == 0 {
		return place
	}
	return e.Relation.EdgeIDs.Element(place)
}

// row is the first place and the number of the edges of a row.
func (e *engine[P, I]) row(r int64) (start, degree int64) {
	if r+1 >= int64(len(e.indptr)) {
		return 0, 0
	}
	start = int64(e.indptr[r])
	return start, int64(e.indptr[r+1]) - start
}

// begin decides for each walk at a node whether it continues, and from which row.
func (u *unit[P, I]) begin() {
	u.moving = u.moving[:0]
	left := u.alive[:0]
	simple := u.chance.Stop == 0 && u.chance.Restart == 0
	for _, i := range u.alive {
		step := u.step[i]
		if step == u.Length {
			u.lengths[u.first+int64(i)] = int32(step)
			continue
		}
		draw, kind := rng.Draw(u.state[i], int(step)), u.Kind(step)
		u.draws[i] = draw
		if !simple {
			if u.MayStop(step) && Coin(rng.Draw(draw, stopDraw)) < u.chance.Stop {
				u.end(i, step)
				continue
			}
			if Coin(rng.Draw(draw, restartDraw)) < u.chance.Restart {
				u.at[i], u.last[i] = u.root[i], -1
				if u.Jumps {
					u.jump(i, step)
					left = append(left, i)
					continue
				}
			}
		}
		start, degree := u.row(int64(u.at[i])*u.kinds + kind)
		if degree == 0 && u.Restart > 0 && u.at[i] != u.root[i] {
			// A walk with restarts goes back from a node without edges.
			u.at[i], u.last[i] = u.root[i], -1
			if u.Jumps {
				u.jump(i, step)
				left = append(left, i)
				continue
			}
			start, degree = u.row(int64(u.at[i])*u.kinds + kind)
		}
		if degree == 0 {
			u.end(i, step)
			continue
		}
		u.start[i], u.degree[i] = start, degree
		u.moving = append(u.moving, i)
	}
	u.alive = left
}

// jump notes that a step went back to the root.
func (u *unit[P, I]) jump(i int32, step int64) {
	w := u.first + int64(i)
	u.nodes[(step+1)*u.walks+w] = u.root[i]
	u.putEdge(step, w, -1)
	u.step[i] = step + 1
}

// choose finds the position of each edge to take. Walks of node2vec without one yet remain.
func (u *unit[P, I]) choose() {
	if u.Second() {
		u.chooseSecond()
		return
	}
	u.propose(u.moving)
}

// propose chooses an edge for each of some walks, by its draw only.
func (u *unit[P, I]) propose(walks []int32) {
	for _, i := range walks {
		u.pos[i] = u.start[i] + int64(rng.Below(u.draws[i], uint64(u.degree[i])))
	}
	if u.Relation.Alias == nil {
		return
	}
	fetchAt(u.Relation.Alias, u.pos[:], walks, u.scratch[:])
	for _, i := range walks {
		u.pos[i] = u.start[i] + u.Relation.Weights(u.start[i], u.degree[i]).AliasPosition(u.draws[i])
	}
}

// move takes the edges.
func (u *unit[P, I]) move() {
	fetchAt(u.indices, u.pos[:], u.moving, u.scratch[:])
	edges := u.edges32 != nil || u.edges64 != nil
	rows := u.rows[:0]
	for _, i := range u.moving {
		step, v := u.step[i], u.indices[u.pos[i]]
		u.last[i], u.at[i] = u.at[i], v
		u.nodes[(step+1)*u.walks+u.first+int64(i)] = v
		if edges {
			u.putEdge(step, u.first+int64(i), u.id(u.pos[i]))
		}
		u.step[i] = step + 1
		rows = append(rows, int64(v)*u.kinds+u.Kind(step+1))
	}
	prefetch.Elements(u.indptr, rows)
	u.alive = append(u.alive, u.moving...)
}

// fetchAt prefetches a table's elements at the positions of some walks.
func fetchAt[T prefetch.Element](table []T, places []int64, of []int32, scratch []int64) {
	list := scratch[:0]
	for _, i := range of {
		list = append(list, places[i])
	}
	prefetch.Elements(table, list)
}

// indicesOf are a graph's ids, of the type that walks have.
func indicesOf[I csc.Index](g *csc.Relation) []I { return csc.Elements[I](g.Indices) }
