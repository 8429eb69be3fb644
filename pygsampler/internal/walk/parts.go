package walk

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Walks of a graph in parts toss their coins here, and have each edge chosen where its row lies: all walks of a batch
// ask for a step together, by the draw that decides it, so that the walks are those of the whole graph.

// Words before the edges that Take has chosen: Magic, how wide ids are, and how many rows there are.
const (
	takenIDBits = 1 + iota
	takenEdgeIDBits
	takenRows
	takenWords
)

// CheckParts refuses walks whose steps depend on more than one row.
func (r *Rule) CheckParts() error {
	if r.Second() || r.Roots > 0 {
		return fmt.Errorf("%w: sampler: expected walks of first order from one root for a graph in parts, got others", request.ErrValue)
	}
	return nil
}

// SampleParts makes the walks of a graph in parts, which has no rows itself, as Sample does of the whole graph.
func SampleParts(r *Request, parts *cpu.Parts, crew csc.Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	if err := r.CheckParts(); err != nil {
		return m, err
	}
	for i := range r.Seeds.Len() {
		if v := r.Seeds.At(i); v < 0 || v >= r.Graph.NumNodes {
			return m, fmt.Errorf("%w: seeds[%d]: expected an id in [0, %d), got %d", request.ErrIndex, i, r.Graph.NumNodes, v)
		}
	}
	idBits, edgeBits := int64(r.Graph.Indices.Bits), int64(r.Graph.EdgeIDBits())
	if err := r.Affordable(r.Seeds.Len(), idBits, edgeBits); err != nil {
		return m, err
	}
	words := r.Words(r.Seeds.Len(), idBits, edgeBits)
	if m, err = memory.New(words[batch.WordSize]); err != nil {
		return m, err
	}
	m.SetSize(words[batch.WordSize])
	copy(memory.At[int64](m, 0, batch.WalkWords), words[:])
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
	parts    *cpu.Parts
	state    []uint64
	root, at []I
	draws    []uint64 // of the step

	// Of those that ask: who has their rows, and the rows and draws, part by part.
	part, order []int32
	starts      []int64
	vertices    []I
	bounds      []int64
}

// underWay is the length of a walk that has not ended.
const underWay = -1

func walkParts[I csc.Index](r *Request, parts *cpu.Parts, words *[batch.WalkWords]int64, m memory.Memory, crew csc.Crew, stop *atomic.Bool) error {
	e := &engine[int64, I]{
		Request: r, chance: r.Chances(), walks: words[batch.WalkNumWalks],
		stream:  rng.NewStream(r.Seed, r.Epoch, r.Number, 0, rng.Walking),
		nodes:   memory.At[I](m, words[batch.WalkNodes], words[batch.WalkNumNodes]),
		lengths: memory.At[int32](m, words[batch.WalkLengths], words[batch.WalkNumWalks]),
	}
	e.edgesAt(words, m)
	p := &party[I]{engine: e, parts: parts, state: make([]uint64, e.walks), root: make([]I, e.walks), at: make([]I, e.walks),
		draws: make([]uint64, e.walks), starts: make([]int64, len(parts.Bounds))}
	alive := make([]int32, e.walks)
	for w := range e.walks {
		v := I(r.Seeds.At(w / max(r.PerSeed, 1)))
		p.state[w], p.root[w], p.at[w], p.nodes[w] = e.stream.State(uint64(w)), v, v, v
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
	// Where there is no edge a walk with restarts goes back.
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

// back puts a walk at its root, and says whether that was the step.
func (p *party[I]) back(w int32, step int64) bool {
	p.at[w] = p.root[w]
	if p.Jumps {
		p.nodes[(step+1)*p.walks+int64(w)] = p.root[w]
		p.putEdge(step, int64(w), -1)
	}
	return p.Jumps
}

// ask has walks take edges of the rows that they stand at, and says which of them there was none for.
func (p *party[I]) ask(walks []int32, step int64) (without []int32, err error) {
	n := len(walks)
	if n == 0 {
		return nil, nil
	}
	p.part, p.order = slices.Grow(p.part[:0], n)[:n], slices.Grow(p.order[:0], n)[:n]
	p.vertices, p.bounds = slices.Grow(p.vertices[:0], n)[:n], slices.Grow(p.bounds[:0], n)[:n]
	ends := p.parts.Bounds[1:]
	clear(p.starts)
	for i, w := range walks {
		// The last part that begins at or before it: others that begin there have no rows.
		part, _ := slices.BinarySearch(ends, int64(p.at[w])+1)
		p.part[i] = int32(part)
		p.starts[part+1]++
	}
	for i := range ends {
		p.starts[i+1] += p.starts[i]
	}
	next := slices.Clone(p.starts)
	for i, w := range walks {
		at := next[p.part[i]]
		next[p.part[i]]++
		p.order[at], p.vertices[at], p.bounds[at] = w, p.at[w], int64(p.draws[w])
	}
	answers, err := p.parts.Ask(&cpu.Ask{Hop: int(step), Starts: p.starts, Vertices: csc.ArrayOf(p.vertices), Bounds: p.bounds})
	if err != nil {
		return nil, err
	}
	if len(answers) != len(ends) {
		return nil, fmt.Errorf("%w: an answer of %d parts, expected %d", request.ErrValue, len(answers), len(ends))
	}
	for part, answer := range answers {
		first, end := p.starts[part], p.starts[part+1]
		if first == end {
			continue
		}
		vertices, ids, err := takenOf[I](answer, end-first, p.edgeBits())
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", part, err)
		}
		for i, w := range p.order[first:end] {
			v := vertices[i]
			if v < 0 {
				without = append(without, w)
				continue
			}
			if int64(v) >= p.Graph.NumNodes {
				return nil, fmt.Errorf("part %d: %w: expected vertices in [0, %d), got %d", part, request.ErrValue, p.Graph.NumNodes, v)
			}
			p.at[w], p.nodes[(step+1)*p.walks+int64(w)] = v, v
			if ids.Bits != 0 {
				p.putEdge(step, int64(w), ids.At(int64(i)))
			}
		}
	}
	return without, nil
}

// edgeBits is how wide the ids of edges are that the walks have; 0: they have none.
func (e *engine[P, I]) edgeBits() int {
	switch {
	case e.edges32 != nil:
		return 32
	case e.edges64 != nil:
		return 64
	}
	return 0
}

// takenOf are the edges of an answer, which may have come over a network: it is as large as it says. Behind the edges
// are their ids, of so many bits; 0: they are not looked at.
func takenOf[I csc.Index](a cpu.Answer, rows int64, edgeBits int) (vertices []I, ids csc.Array, err error) {
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

// PartEdges asks for an edge of each of some rows of a part of a graph.
type PartEdges struct {
	*Rule
	Graph    *csc.Graph // row i is of vertex First + i
	First    int64
	Step     int64
	Vertices csc.Array
	Draws    []int64 // of the walks' steps
	// IDs, Edge and EdgeBits are as cpu.PartRows has them.
	IDs      csc.Array
	Edge     int64
	EdgeBits int
}

// Take chooses the edges as the walks of the whole graph choose them: by each the vertex that it leads to, -1 where
// the row has none, and its id.
func Take(p *PartEdges) (m memory.Memory, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the graph's arrays changed while walks were made, or a fault of pygsampler: %v", fault)
		}
	}()
	rows, bits := p.Vertices.Len(), int64(p.Graph.Indices.Bits)
	for i := range rows {
		if v := p.Vertices.At(i); v < p.First || v >= p.Graph.NumNodes {
			return m, fmt.Errorf("%w: vertices[%d]: expected one in [%d, %d), got %d", request.ErrIndex, i, p.First, p.Graph.NumNodes, v)
		}
	}
	place := batch.Place(8 * takenWords)
	first := place.Next(rows * bits / 8)
	behind := place.Next(rows * int64(p.EdgeBits) / 8)
	if m, err = memory.New(place.Aligned()); err != nil {
		return m, err
	}
	m.SetSize(place.Aligned())
	copy(memory.At[int64](m, 0, takenWords), []int64{batch.WalkMagic, bits, int64(p.EdgeBits), rows})
	if bits == 32 {
		taken(p, memory.At[int32](m, first, rows), m, behind)
	} else {
		taken(p, memory.At[int64](m, first, rows), m, behind)
	}
	return m, nil
}

func taken[I csc.Index](p *PartEdges, vertices []I, m memory.Memory, behind int64) {
	var ids32 []int32
	var ids64 []int64
	if p.EdgeBits == 32 {
		ids32 = memory.At[int32](m, behind, int64(len(vertices)))
	} else {
		ids64 = memory.At[int64](m, behind, int64(len(vertices)))
	}
	g, kinds, kind := p.Graph, max(p.Graph.Kinds, 1), p.Kind(p.Step)
	indices := csc.Of[I](g.Indices)
	for i := range vertices {
		row := (p.Vertices.At(int64(i))-p.First)*kinds + kind
		id := int64(-1)
		vertices[i] = -1
		if row < g.Rows() && g.Indptr.At(row) < g.Indptr.At(row+1) {
			start := g.Indptr.At(row)
			degree, draw := g.Indptr.At(row+1)-start, uint64(p.Draws[i])
			at := start + int64(rng.Below(draw, uint64(degree)))
			if g.Alias != nil {
				at = start + g.Weights(start, degree).At(draw)
			}
			vertices[i], id = indices[at], p.id(at)
		}
		if ids32 != nil {
			ids32[i] = int32(id)
		} else {
			ids64[i] = id
		}
	}
}

// id is that of the edge at a place, in the whole graph.
func (p *PartEdges) id(place int64) int64 {
	if p.Graph.EdgeIDs.Bits != 0 {
		place = p.Graph.EdgeIDs.At(place)
	}
	if p.IDs.Bits != 0 {
		return p.IDs.At(place)
	}
	return p.Edge + place
}
