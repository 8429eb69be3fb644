package walk

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Walks of a partitioned graph toss their coins here, and the partition with the row chooses each
// edge: all walks of a batch request a step together, by the draw that decides it, so that the
// walks equal the walks of the whole graph. partitioned_second.go and partitioned_roots.go hold the
// requests of node2vec and of walks of several roots.

// Words before the edges that Take has chosen: Magic, how wide ids are, and how many rows there are.
const (
	takenIDBits = 1 + iota
	takenEdgeIDBits
	takenRows
	takenWords
)

// SampleParts samples the walks of a partitioned graph, which has no rows itself, with the result
// of Sample on the whole graph.
func SampleParts(r *Request, parts *cpu.Partition, crew csc.Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	if r.Roots > 0 && r.Seeds.Len()%r.Roots != 0 {
		return m, r.WrongRoots(r.Seeds.Len())
	}
	if err := r.CheckSeeds(r.Relation.NumNodes); err != nil {
		return m, err
	}
	idBits, edgeBits := int64(r.Relation.Indices.Bits), int64(r.Relation.EdgeIDBits())
	if err := r.Affordable(r.Seeds.Len(), idBits, edgeBits); err != nil {
		return m, err
	}
	words := r.Words(r.Seeds.Len(), idBits, edgeBits)
	if m, err = memory.New(words[batch.WordSize]); err != nil {
		return m, err
	}
	m.SetSize(words[batch.WordSize])
	copy(memory.ViewAt[int64](m, 0, batch.WalkWords), words[:])
	if idBits == 32 {
		err = walkParts[int32](r, parts, &words, m, crew, stop)
	} else {
		err = walkParts[int64](r, parts, &words, m, crew, stop)
	}
	if err != nil {
		m.Release()
		m = memory.Memory{}
	}
	return m, err
}

// party are the walks of a batch, which step together.
type party[I csc.Index] struct {
	*engine[int64, I]
	parts          *cpu.Partition
	state          []uint64
	root, at, last []I      // last as unit has it
	draws          []uint64 // of the step

	// Rows of a request: their partitions, and all data about them, partition by partition.
	part, order []int32
	starts      []int64
	sorted      rows[I]
}

// rows are some that are asked about, and what is said of them, or nothing.
type rows[I csc.Index] struct {
	vertices, last []I
	draws          []int64
}

// underWay is the length of a walk that has not ended.
const underWay = -1

func walkParts[I csc.Index](r *Request, parts *cpu.Partition, words *[batch.WalkWords]int64, m memory.Memory, crew csc.Crew, stop *atomic.Bool) error {
	e := &engine[int64, I]{
		Request: r, chance: r.Chances(), walks: words[batch.WalkNumWalks],
		stream:  rng.NewStream(r.Seed, r.Epoch, r.Number, 0, rng.Walking),
		nodes:   memory.ViewAt[I](m, words[batch.WalkNodes], words[batch.WalkNumNodes]),
		lengths: memory.ViewAt[int32](m, words[batch.WalkLengths], words[batch.WalkNumWalks]),
	}
	e.edgesAt(words, m)
	p := &party[I]{engine: e, parts: parts, state: make([]uint64, e.walks), starts: make([]int64, len(parts.Bounds)-max(parts.Relations, 1)+1)}
	for w := range p.state {
		p.state[w] = e.stream.State(uint64(r.FirstWalk + int64(w)))
	}
	if r.Roots > 0 {
		e.slots = memory.ViewAt[int32](m, words[batch.WalkSlots], words[batch.WalkNumEdges])
		return p.fromRoots(stop)
	}
	p.root, p.at, p.last, p.draws = make([]I, e.walks), make([]I, e.walks), make([]I, e.walks), make([]uint64, e.walks)
	alive := make([]int32, e.walks)
	for w := range e.walks {
		v := I(r.Seeds.Element(w / max(r.PerSeed, 1)))
		p.root[w], p.at[w], p.last[w], p.nodes[w] = v, v, -1, v
		alive[w], e.lengths[w] = int32(w), underWay
	}
	for step := int64(0); step < r.Length && len(alive) > 0; step++ {
		if stop.Load() {
			return request.ErrCancelled
		}
		if err := p.step(alive, step); err != nil {
			return err
		}
		alive = slices.DeleteFunc(alive, func(w int32) bool { return e.lengths[w] != underWay })
	}
	for _, w := range alive {
		e.lengths[w] = int32(r.Length)
	}
	e.mostVisited(words, m, crew, stop)
	return nil
}

// step has walks make one, or end before it: what unit.begin, choose and move do.
func (p *party[I]) step(walks []int32, step int64) error {
	asking := make([]int32, 0, len(walks))
	for _, w := range walks {
		p.draws[w] = rng.Draw(p.state[w], int(step))
		if p.chance.Stop > 0 && p.MayStop(step) && Coin(rng.Draw(p.draws[w], stopDraw)) < p.chance.Stop {
			p.end(int64(w), step)
			continue
		}
		if p.chance.Restart > 0 && Coin(rng.Draw(p.draws[w], restartDraw)) < p.chance.Restart && p.back(w, step) {
			continue
		}
		asking = append(asking, w)
	}
	without, err := p.ask(asking, step)
	if err != nil {
		return err
	}
	// If there is no edge, a walk with restarts goes back.
	asking = asking[:0]
	for _, w := range without {
		switch {
		case p.Restart == 0 || p.at[w] == p.root[w]:
			p.end(int64(w), step)
		case !p.back(w, step):
			asking = append(asking, w)
		}
	}
	if without, err = p.ask(asking, step); err != nil {
		return err
	}
	for _, w := range without {
		p.end(int64(w), step)
	}
	return nil
}

// back moves a walk to its root, and reports whether that was the step.
func (p *party[I]) back(w int32, step int64) bool {
	p.at[w], p.last[w] = p.root[w], -1
	if p.Jumps {
		p.nodes[(step+1)*p.walks+int64(w)] = p.root[w]
		p.putEdge(step, int64(w), -1)
	}
	return p.Jumps
}

// ask requests edges of the rows of walks, and returns the walks without an edge.
func (p *party[I]) ask(walks []int32, step int64) (without []int32, err error) {
	if len(walks) == 0 {
		return nil, nil
	}
	if p.Second() {
		return p.askSecond(walks, step)
	}
	var q rows[I]
	for _, w := range walks {
		q.vertices, q.draws = append(q.vertices, p.at[w]), append(q.draws, int64(p.draws[w]))
	}
	return without, p.put(step, q, func(answer cpu.RowReply, which []int32) error {
		vertices, ids, err := takenOf[I](answer, int64(len(which)), p.edgeBits())
		if err != nil {
			return err
		}
		for i, j := range which {
			switch v := vertices[i]; {
			case v < 0:
				without = append(without, walks[j])
			case int64(v) >= p.nodesAfter(step):
				return p.noVertex(int64(v), p.nodesAfter(step))
			default:
				p.move(walks[j], step, v, ids, int64(i))
			}
		}
		return nil
	})
}

// nodesAfter returns the number of nodes that a step may lead to.
func (p *party[I]) nodesAfter(step int64) int64 {
	if p.parts.Along == nil {
		return p.Relation.NumNodes
	}
	return p.parts.Along[p.Kind(step)].Nodes
}

func (p *party[I]) noVertex(v, nodes int64) error {
	return fmt.Errorf("%w: expected nodes in [0, %d), got %d", request.ErrValue, nodes, v)
}

// move has a walk arrive at a node, along an edge whose id is at a place, if there are ids.
func (p *party[I]) move(w int32, step int64, v I, ids csc.Array, place int64) {
	p.last[w], p.at[w] = p.at[w], v
	p.nodes[(step+1)*p.walks+int64(w)] = v
	if ids.Bits != 0 {
		p.putEdge(step, int64(w), ids.Element(place))
	}
}

// put requests rows from their partitions, and passes the reply of each with the indices of its
// rows to read. The replies are valid until the next request.
func (p *party[I]) put(hop int64, q rows[I], read func(answer cpu.RowReply, which []int32) error) error {
	n := len(q.vertices)
	if n == 0 {
		return nil
	}
	if n > math.MaxInt32 {
		return fmt.Errorf("%w: a question about %d rows, more than 2^31 - 1", request.ErrOverflow, n)
	}
	p.part, p.order = slices.Grow(p.part[:0], n)[:n], slices.Grow(p.order[:0], n)[:n]
	// The bounds of the relation that the step follows.
	each := len(p.parts.Bounds) / max(p.parts.Relations, 1)
	relation := 0
	if p.parts.Along != nil {
		relation = int(p.parts.Along[p.Kind(hop)].Relation)
	}
	ends := p.parts.Bounds[relation*each+1 : (relation+1)*each]
	before := relation * len(ends)
	clear(p.starts)
	for i, v := range q.vertices {
		// The last part that begins at or before it: others that begin there have no rows.
		part, _ := slices.BinarySearch(ends, int64(v)+1)
		part += before
		p.part[i] = int32(part)
		p.starts[part+1]++
	}
	for i := range len(p.starts) - 1 {
		p.starts[i+1] += p.starts[i]
	}
	next := slices.Clone(p.starts)
	for i, part := range p.part {
		p.order[next[part]] = int32(i)
		next[part]++
	}
	s := &p.sorted
	s.vertices = inOrder(s.vertices, q.vertices, p.order)
	s.last, s.draws = inOrder(s.last, q.last, p.order), inOrder(s.draws, q.draws, p.order)
	answers, err := p.parts.Ask(&cpu.RowRequest{Hop: int(hop), Starts: p.starts, Vertices: csc.ArrayOf(s.vertices), Trees: csc.ArrayOf(s.last), Bounds: s.draws})
	if err != nil {
		return err
	}
	if len(answers) != len(p.starts)-1 {
		return fmt.Errorf("%w: an answer of %d parts, expected %d", request.ErrValue, len(answers), len(p.starts)-1)
	}
	for place, answer := range answers {
		if which := p.order[p.starts[place]:p.starts[place+1]]; len(which) > 0 {
			if err := read(answer, which); err != nil {
				return fmt.Errorf("part %d: %w", place-before, err)
			}
		}
	}
	return nil
}

// inOrder permutes values of rows; it is empty if they are.
func inOrder[T any](into, of []T, order []int32) []T {
	into = into[:0]
	if len(of) == 0 {
		return into
	}
	for _, i := range order {
		into = append(into, of[i])
	}
	return into
}

// edgeBits returns the width of the edge ids of the walks; 0: they have none.
func (e *engine[P, I]) edgeBits() int {
	switch {
	case e.edges32 != nil:
		return 32
	case e.edges64 != nil:
		return 64
	}
	return 0
}

// takenOf returns the edges of a reply, which may have come over a network: it validates the size.
// The edges are followed by their ids, of edgeBits bits; 0: they are not read.
func takenOf[I csc.Index](a cpu.RowReply, rows int64, edgeBits int) (vertices []I, ids csc.Array, err error) {
	var word I
	width := int64(unsafe.Sizeof(word))
	if a.Size < 8*takenWords || a.Address%8 != 0 {
		return nil, ids, fmt.Errorf("%w: an answer of %d bytes at %#x, expected at least %d at a multiple of 8", request.ErrValue, a.Size, a.Address, 8*takenWords)
	}
	words := memory.View[int64](a.Address, takenWords)
	place := batch.Place(8 * takenWords)
	first, bits := place.Next(rows*width), words[takenEdgeIDBits]
	behind := place.Next(rows * 8)
	if words[0] != batch.WalkMagic || words[takenIDBits] != 8*width || words[takenRows] != rows || bits != 32 && bits != 64 ||
		edgeBits != 0 && int64(edgeBits) != bits || a.Size < behind+rows*bits/8 {
		return nil, ids, fmt.Errorf("%w: an answer of %d bytes to another question: expected the edges of %d rows, got those of %d",
			request.ErrValue, a.Size, rows, words[takenRows])
	}
	vertices = memory.View[I](a.Address+first, rows)
	if edgeBits != 0 {
		ids = csc.Borrow(a.Address+behind, rows, edgeBits)
	}
	return vertices, ids, nil
}

// PartEdges requests an edge of each of some rows of a partition, or other data that walks need of
// them.
type PartEdges struct {
	*Rule
	Relation *csc.Relation // row i is of node First + i
	First    int64
	Hop      int64     // the step, or what Rule makes of it
	Vertices csc.Array // the nodes of an answer are as wide
	// Rule and Hop say which of these are set: the previous nodes of the walks, and the draws of
	// their steps.
	Last  csc.Array
	Draws []int64
	// IDs, Edge and EdgeBits have the same meaning as in cpu.PartRows.
	IDs      csc.Array
	Edge     int64
	EdgeBits int
}

// Take chooses the edges exactly as the walks of the whole graph choose them: for each row the node
// that its edge leads to, -1 if the row has none, and the id of the edge. For walks of node2vec,
// and of several roots, it returns the data that they request.
func Take(p *PartEdges) (m memory.Memory, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the graph's arrays changed while walks were sampled, or a fault of pygsampler: %v", fault)
		}
	}()
	rows := p.Vertices.Len()
	for i := range rows {
		if v := p.Vertices.Element(i); v < p.First || v >= p.Relation.NumNodes {
			return m, fmt.Errorf("%w: nodes[%d]: expected one in [%d, %d), got %d", request.ErrIndex, i, p.First, p.Relation.NumNodes, v)
		}
	}
	draws, last := p.needs(p.Hop)
	if rows > 0 && (draws != (len(p.Draws) > 0) || last != (p.Last.Len() > 0)) {
		return m, fmt.Errorf("%w: rows: expected draws %t and nodes before %t, got %d and %d of %d rows", request.ErrValue,
			draws, last, len(p.Draws), p.Last.Len(), rows)
	}
	if p.Vertices.Bits == 32 {
		return takeOf[int32](p, rows)
	}
	return takeOf[int64](p, rows)
}

func takeOf[I csc.Index](p *PartEdges, rows int64) (m memory.Memory, err error) {
	switch {
	case p.Roots > 0 && p.Hop == hopDegrees:
		return tellDegrees[I](p)
	case p.Second():
		return tellSecond[I](p)
	}
	bits := int64(p.Vertices.Bits)
	place := batch.Place(8 * takenWords)
	first := place.Next(rows * bits / 8)
	behind := place.Next(rows * int64(p.EdgeBits) / 8)
	if m, err = memory.New(place.Aligned()); err != nil {
		return m, err
	}
	m.SetSize(place.Aligned())
	copy(memory.ViewAt[int64](m, 0, takenWords), []int64{batch.WalkMagic, bits, int64(p.EdgeBits), rows})
	taken(p, memory.ViewAt[I](m, first, rows), m, behind)
	return m, nil
}

// needs says which data a request has for each row in addition to its node.
func (r *Rule) needs(hop int64) (draws, last bool) {
	switch {
	case r.Roots > 0:
		return hop != hopDegrees, false
	case r.Second():
		return hop%secondHops >= hopTries, hop%secondHops != hopWhole
	}
	return true, false
}

func taken[I csc.Index](p *PartEdges, vertices []I, m memory.Memory, behind int64) {
	ids := idsAt(m, behind, int64(len(vertices)), p.EdgeBits)
	for i := range vertices {
		start, degree := p.row(p.Vertices.Element(int64(i)), p.Hop)
		id := int64(-1)
		vertices[i] = -1
		if degree > 0 {
			at := start + p.Draws[i]
			if p.Roots == 0 {
				at = proposed(p.Relation, start, degree, uint64(p.Draws[i]))
			} else if p.Draws[i] < 0 || p.Draws[i] >= degree {
				panic(fmt.Sprintf("an edge of %d, got number %d", degree, p.Draws[i]))
			}
			vertices[i], id = I(p.Relation.Indices.Element(at)), p.id(at)
		}
		setID(ids, int64(i), id)
	}
}

// idsAt returns edge ids at an offset, with a width in bits.
func idsAt(m memory.Memory, place, count int64, bits int) csc.Array {
	if bits == 32 {
		return csc.ArrayOf(memory.ViewAt[int32](m, place, count))
	}
	return csc.ArrayOf(memory.ViewAt[int64](m, place, count))
}

func setID(ids csc.Array, place, id int64) {
	if ids.Bits == 32 {
		ids.I32[place] = int32(id)
	} else {
		ids.I64[place] = id
	}
}

// row is the first place and the number of the edges that a step at a node chooses from.
func (p *PartEdges) row(v, step int64) (start, degree int64) {
	row := (v-p.First)*max(p.Relation.Kinds, 1) + p.Kind(step)
	if row >= p.Relation.NumRows() {
		return 0, 0
	}
	start = p.Relation.Indptr.Element(row)
	return start, p.Relation.Indptr.Element(row+1) - start
}

// proposed returns the position of an edge of a row by a draw only.
func proposed(g *csc.Relation, start, degree int64, draw uint64) int64 {
	if g.Alias != nil {
		return start + g.Weights(start, degree).AliasPosition(draw)
	}
	return start + int64(rng.Below(draw, uint64(degree)))
}

// id returns the id, in the whole graph, of the edge at a position.
func (p *PartEdges) id(place int64) int64 {
	if p.Relation.EdgeIDs.Bits != 0 {
		place = p.Relation.EdgeIDs.Element(place)
	}
	if p.IDs.Bits != 0 {
		return p.IDs.Element(place)
	}
	return p.Edge + place
}
