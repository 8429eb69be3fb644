package khop

import (
	"fmt"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Request says which samples to make, on the rows of a graph. It is read-only meanwhile.
type Request struct {
	Rule
	request.Batch
	Relation *csc.Relation
}

// side is how many reads a worker has under way, and unitSlots about how many vertices of a step it takes at
// a time.
const (
	side      = 256
	unitSlots = 4096
)

// Sample makes the samples and hands their memory, with one reference, to the caller. It returns
// request.ErrCancelled soon after stop is set.
func Sample(r *Request, crew csc.Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the graph's arrays changed while samples were drawn, or a fault of pygsampler: %v", p)
		}
	}()
	g := r.Relation
	if err := r.CheckSeeds(g.NumNodes); err != nil {
		return m, err
	}
	idBits, edgeBits := int64(g.Indices.Bits), int64(g.EdgeIDBits())
	if err := r.Affordable(r.Seeds.Len(), idBits, edgeBits); err != nil {
		return m, err
	}
	words := r.Words(r.Seeds.Len(), idBits, edgeBits)
	if m, err = memory.New(words[batch.WordSize]); err != nil {
		return m, err
	}
	m.SetSize(words[batch.WordSize])
	copy(memory.ViewAt[int64](m, 0, batch.StepWords), words[:])
	defer func() {
		if err != nil {
			m.Release()
			m = memory.Memory{}
		}
	}()
	switch [2]int{g.Indptr.Bits, g.Indices.Bits} {
	case [2]int{32, 32}:
		run[int32, int32](r, &words, m, crew, stop)
	case [2]int{64, 32}:
		run[int64, int32](r, &words, m, crew, stop)
	case [2]int{32, 64}:
		run[int32, int64](r, &words, m, crew, stop)
	default:
		run[int64, int64](r, &words, m, crew, stop)
	}
	if stop.Load() {
		return m, request.ErrCancelled
	}
	return m, nil
}

// engine is the work of one call. P is the type of offsets, I that of ids.
type engine[P, I csc.Index] struct {
	*Request
	indptr  []P
	indices []I
	nodes   []I
	edges32 []int32
	edges64 []int64 // nil where they are narrow, or not asked for
}

func run[P, I csc.Index](r *Request, words *[batch.StepWords]int64, m memory.Memory, crew csc.Crew, stop *atomic.Bool) {
	e := &engine[P, I]{
		Request: r, indptr: csc.Elements[P](r.Relation.Indptr), indices: csc.Elements[I](r.Relation.Indices),
		nodes: memory.ViewAt[I](m, words[batch.StepNodes], words[batch.StepNumNodes]),
	}
	if at := words[batch.StepEdgeIDs]; at != 0 && words[batch.StepEdgeIDBits] == 32 {
		e.edges32 = memory.ViewAt[int32](m, at, words[batch.StepNumEdges])
	} else if at != 0 {
		e.edges64 = memory.ViewAt[int64](m, at, words[batch.StepNumEdges])
	}
	samples := r.Seeds.Len()
	for i := range samples {
		e.nodes[i] = I(r.Seeds.Element(i))
	}
	before, first, of := int64(0), samples, int64(1)
	for s, width := range r.Widths() {
		step := step{
			number: s, stream: Stream(&r.Batch, s), count: r.Counts[s],
			before: before, of: of, first: first, width: width, edges: first - samples,
		}
		e.step(&step, samples, crew, stop)
		before, first, of = first, first+samples*width, width
	}
}

// step is one of the samples' steps.
type step struct {
	number int
	stream rng.Stream
	count  int64
	// The first place and the number per sample of the nodes before it and of its own nodes,
	// and the first place of its edges.
	before, of, first, width, edges int64
}

// step makes one of all samples, by workers that take some transits, or samples, at a time.
func (e *engine[P, I]) step(s *step, samples int64, crew csc.Crew, stop *atomic.Bool) {
	items, each := samples*s.of, s.count
	if e.Collective || e.Unique {
		items, each = samples, s.width
	}
	size := max(unitSlots/max(each, 1), 1)
	units := (items + size - 1) / size
	var next atomic.Int64
	csc.Crewed(crew, units, func() {
		u := &unit[P, I]{engine: e, step: s}
		for i := next.Add(1) - 1; i < units && !stop.Load(); i = next.Add(1) - 1 {
			first := i * size
			n := min(items-first, size)
			switch {
			case e.Unique:
				for w := first; w < first+n; w++ {
					u.unique(w, stop)
				}
			case e.Collective:
				for w := first; w < first+n; w++ {
					u.together(w)
				}
			default:
				u.apart(first, n)
			}
			u.flush()
		}
	})
}

// unit is what a worker has: draws whose edges have not been read yet.
type unit[P, I csc.Index] struct {
	*engine[P, I]
	step   *step
	n      int
	places [side]int64 // of the edges
	slots  [side]int64 // of the step's vertices
	// For joined transits, the edges up to each, and the shift from a number among all edges to
	// its place.
	sums, shifts []int64
	swaps        []int64 // of a transit whose draws are distinct
	met          nodeSet[I]
}

// put notes that a slot takes the edge at a place.
func (u *unit[P, I]) put(slot, place int64) {
	u.places[u.n], u.slots[u.n] = place, slot
	if u.n++; u.n == side {
		u.flush()
	}
}

// flush takes the edges.
func (u *unit[P, I]) flush() {
	places, out := u.places[:u.n], u.nodes[u.step.first:]
	prefetch.Elements(u.indices, places)
	for i, p := range places {
		out[u.slots[i]] = u.indices[p]
	}
	if u.edges32 != nil || u.edges64 != nil {
		for i, p := range places {
			u.putEdge(u.slots[i], u.id(p))
		}
	}
	u.n = 0
}

// none notes that slots from one on take no edge.
func (u *unit[P, I]) none(slot, n int64) {
	for i := slot; i < slot+n; i++ {
		u.nodes[u.step.first+i] = -1
		u.putEdge(i, -1)
	}
}

func (u *unit[P, I]) putEdge(slot, id int64) {
	if u.edges32 != nil {
		u.edges32[u.step.edges+slot] = int32(id)
	} else if u.edges64 != nil {
		u.edges64[u.step.edges+slot] = id
	}
}

// id is the edge at a place.
func (e *engine[P, I]) id(place int64) int64 {
	if e.Relation.EdgeIDs.Bits == 0 {
		return place
	}
	return e.Relation.EdgeIDs.Element(place)
}

// row is the first place and the number of the edges of a vertex, or of none.
func (e *engine[P, I]) row(v I) (start, degree int64) {
	if v < 0 || int64(v)+1 >= int64(len(e.indptr)) {
		return 0, 0
	}
	start = int64(e.indptr[v])
	return start, int64(e.indptr[v+1]) - start
}

// apart has n transits from the given one on draw, each for itself.
func (u *unit[P, I]) apart(first, n int64) {
	s := u.step
	transits := u.nodes[s.before+first:][:n]
	state, sample := uint64(0), int64(-1)
	for i, v := range transits {
		if i%side == 0 {
			// -1 reads nothing: places beyond a table do no harm.
			prefetch.Elements(u.indptr, transits[i:min(i+side, len(transits))])
		}
		t := first + int64(i)
		if w := t / s.of; w != sample {
			sample, state = w, s.stream.State(uint64(u.FirstSample+w))
		}
		start, degree := u.row(v)
		draw, slot := t%s.of*s.count, t*s.count
		switch {
		case degree == 0:
			u.none(slot, s.count)
		case u.Distinct:
			u.distinct(state, draw, slot, start, degree)
		default:
			for j := range s.count {
				u.put(slot+j, start+int64(rng.Below(rng.Draw(state, int(draw+j)), uint64(degree))))
			}
		}
	}
}

// distinct has a transit draw distinct edges, as Distinct says.
func (u *unit[P, I]) distinct(state uint64, draw, slot, start, degree int64) {
	count := min(u.step.count, degree)
	u.swaps = u.swaps[:0]
	for j := range count {
		at := j + int64(rng.Below(rng.Draw(state, int(draw+j)), uint64(degree-j)))
		u.swaps = append(u.swaps, at)
		for i := j - 1; i >= 0; i-- {
			if u.swaps[i] == at {
				at = i
			}
		}
		u.put(slot+j, start+at)
	}
	u.none(slot+count, u.step.count-count)
}

// join puts the edges of some transits one list behind another, and returns how many they are.
func (u *unit[P, I]) join(transits []I) (total int64) {
	u.sums, u.shifts = u.sums[:0], u.shifts[:0]
	for i, v := range transits {
		if i%side == 0 && len(transits) > 1 {
			prefetch.Elements(u.indptr, transits[i:min(i+side, len(transits))])
		}
		start, degree := u.row(v)
		u.shifts = append(u.shifts, start-total)
		total += degree
		u.sums = append(u.sums, total)
	}
	return total
}

// joined is the place in the graph of edge rank of the list that join made.
func (u *unit[P, I]) joined(rank int64) int64 {
	// The first sum above the rank is in [at, at + n).
	at := 0
	for n := len(u.sums); n > 1; {
		half := n / 2
		if u.sums[at+half-1] <= rank {
			at += half
		}
		n -= half
	}
	return u.shifts[at] + rank
}

// together has all transits of a sample draw from their edges as from one list.
func (u *unit[P, I]) together(w int64) {
	s := u.step
	total := u.join(u.nodes[s.before+w*s.of:][:s.of])
	if total == 0 {
		u.none(w*s.width, s.width)
		return
	}
	state := s.stream.State(uint64(u.FirstSample + w))
	for j := range s.width {
		u.put(w*s.width+j, u.joined(int64(rng.Below(rng.Draw(state, int(j)), uint64(total)))))
	}
}
