package edges

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
)

// Plan says how the edges of a file become a graph.
type Plan struct {
	NumNodes   int64 // -1: what the file says, else the largest id plus one
	Undirected bool  // each edge that is no self loop also stands for its reverse
	Numbering  Numbering
	Bits       int   // of the ids, 32 or 64; 0: as the file has them
	Keep       int64 // bytes that may hold edges, to spare reading the file again
	Data       []ArrayColumn
	Window     int64 // bytes of indices and edge ids that a scan of the file writes; 0: as many as memory has room for
}

// Build reads the source and builds its CSC in the target: row v lists v's in-neighbors in the
// order of the file, and an edge's id is its position in the file. With both directions, the edges
// of E that are no self loops are repeated backwards, in their order, as the edges from E on, and a
// row lists its backward edges after the others. If the file has its targets in ascending order, an
// edge's position is its id, and no ids are stored.
//
// In addition to the buffers of the source and Plan.Keep, the memory holds two or three numbers for
// each node, and the map of the ids if nodes are renumbered.
func Build(source Source, plan Plan, target Target, m *Meter) (shape Shape, err error) {
	facts := source.Facts()
	plan.Undirected = plan.Undirected || facts.Symmetric
	if plan.Bits == 0 {
		plan.Bits = facts.Bits
	}
	if plan.Numbering == Always && plan.NumNodes >= 0 {
		return shape, valueError("num_nodes: expected None with renumber=True, which counts the ids that occur, got %d", plan.NumNodes)
	}
	if plan.NumNodes < 0 && plan.Numbering != Always {
		plan.NumNodes = facts.NumNodes
	}
	if limit := int64(csc.MaxNodes); plan.NumNodes > limit || plan.Bits == 32 && plan.NumNodes > csc.MaxNodes32 {
		if plan.Bits == 32 {
			limit = csc.MaxNodes32
		}
		return shape, valueError("num_nodes: expected at most %d, got %d", limit, plan.NumNodes)
	}
	defer func() {
		// A panic of a consumer; panics of readers are errors already.
		if p := recover(); p != nil {
			err = valueError("%v", p)
		}
		if m.Stop.Load() && err != nil {
			err = ErrStopped
		}
	}()
	spool := &spool{Source: source, limit: plan.Keep}
	defer spool.free()
	s := &survey{plan: &plan}
	defer s.free()
	m.Total.Store(2 * source.Size())
	for _, d := range plan.Data {
		m.Total.Add(d.Size)
	}
	if err := s.look(spool, m); err != nil {
		return shape, err
	}
	shape = Shape{Nodes: s.nodes, Edges: s.total(), Bits: plan.Bits, Map: s.anew, Data: plan.Data, Rows: s.total()}
	if shape.Bits == 32 && shape.Nodes > csc.MaxNodes32 {
		return shape, valueError("dtype: expected int64 for %d nodes, got int32", shape.Nodes)
	}
	if plan.Undirected || !s.sorted {
		shape.EdgeBits = shape.Bits
		if s.total() > math.MaxInt32 {
			shape.EdgeBits = 64
		}
	}
	known := shape
	m.Shape.Store(&known)
	arrays, err := target.Make(shape)
	defer func() {
		if err != nil {
			target.Drop()
		}
	}()
	if err != nil {
		return shape, err
	}
	if err := guardedWrite(func() error { return s.fill(spool, arrays, m) }); err != nil {
		return shape, err
	}
	if err := guardedWrite(func() error { return s.fillData(arrays, m) }); err != nil {
		return shape, err
	}
	if m.Stop.Load() {
		return shape, ErrStopped
	}
	spool.free()
	s.free()
	if err := target.Finish(); err != nil {
		if errors.Is(err, graphfile.ErrAborted) {
			err = ErrStopped
		}
		return shape, err
	}
	m.Done.Store(m.Total.Load())
	return shape, nil
}

// guardedWrite makes an error of a page that a mapped file cannot take, which else
// would end the process.
func guardedWrite(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if _, fault := p.(interface{ Addr() uintptr }); fault {
				err = fmt.Errorf("the disk does not take what is written to the mapped file")
				return
			}
			err = valueError("%v", p)
		}
	}()
	return f()
}

// fill writes the arrays: offsets, the map, then the edges in as many passes over the file as the
// memory needs.
func (s *survey) fill(source *spool, out Arrays, m *Meter) error {
	if s.anew {
		s.ids.each(func(id, number int64) { out.NodeIDs[number] = id })
	}
	// The counts become the positions of the next edge of each row.
	next, back := s.forward.n, s.backward.n
	at := int64(0)
	for v := range s.nodes {
		out.Indptr[v] = at
		n := next[v]
		next[v] = at
		at += n
		if s.plan.Undirected {
			n = back[v]
			back[v] = at
			at += n
		}
	}
	out.Indptr[s.nodes] = at
	window := s.plan.Window
	if window <= 0 {
		window = Available() / 2
	}
	per := max(window/int64(out.Indices.Bits/8+out.EdgeIDs.Bits/8), 1)
	for lo := int64(0); lo < s.nodes || lo == 0; {
		hi := lo
		for hi < s.nodes && (hi == lo || out.Indptr[hi+1]-out.Indptr[lo] <= per) {
			hi++
		}
		if lo > 0 {
			source.more(m)
		}
		if err := s.scatter(source, out, m, lo, hi); err != nil {
			return err
		}
		if hi == lo {
			break
		}
		lo = hi
	}
	return s.complete(out)
}

// complete checks that each row got as many edges as were counted.
func (s *survey) complete(out Arrays) error {
	for v := range s.nodes {
		end := out.Indptr[v+1]
		if s.plan.Undirected {
			// Forward edges end somewhere before the backward ones.
			if s.backward.n[v] != end {
				return errors.New(changed)
			}
			continue
		}
		if s.forward.n[v] != end {
			return errors.New(changed)
		}
	}
	return nil
}

func (s *survey) scatter(source *spool, out Arrays, m *Meter, lo, hi int64) error {
	if out.Indices.Bits == 32 {
		return scatterTo(s, source, out.Indices.I32, out, m, lo, hi)
	}
	return scatterTo(s, source, out.Indices.I64, out, m, lo, hi)
}

func scatterTo[T csc.Index](s *survey, source *spool, indices []T, out Arrays, m *Meter, lo, hi int64) error {
	switch out.EdgeIDs.Bits {
	case 0:
		return scatterIDs[T, int64](s, source, indices, nil, m, lo, hi)
	case 32:
		return scatterIDs(s, source, indices, out.EdgeIDs.I32, m, lo, hi)
	}
	return scatterIDs(s, source, indices, out.EdgeIDs.I64, m, lo, hi)
}

// scatterIDs writes the edges of rows [lo, hi).
func scatterIDs[T, E csc.Index](s *survey, source *spool, indices []T, ids []E, m *Meter, lo, hi int64) error {
	edge, reverse := int64(0), s.edges
	next := s.forward.n
	var back []int64
	if s.plan.Undirected {
		back = s.backward.n
	}
	s.loopsAt = s.loopsAt[:0]
	err := source.Scan(m, func(b *Batch) error {
		if edge+int64(len(b.Src)) > s.edges {
			return errors.New(changed)
		}
		if s.anew {
			if err := s.rename(b); err != nil {
				return err
			}
		}
		if hi-lo == s.nodes {
			reverse = scatterAll(b, next, back, edge, reverse, indices, ids)
		} else {
			reverse = scatterRows(b, next, back, edge, reverse, indices, ids, lo, hi)
		}
		if back != nil && len(s.plan.Data) > 0 {
			s.keepLoops(b, edge)
		}
		edge += int64(len(b.Src))
		return nil
	})
	if err == nil && edge != s.edges {
		err = errors.New(changed)
	}
	return err
}

// scatterAll writes a batch whose first edge has the id first and, if back is not nil, also each
// edge backwards, by ids from reverse on; it returns the id after the last backward edge. Each loop
// is separate: a branch per edge costs as much as the edge.
func scatterAll[T, E csc.Index](b *Batch, next, back []int64, edge, reverse int64, indices []T, ids []E) int64 {
	for i, u := range b.Src {
		at := next[b.Dst[i]]
		next[b.Dst[i]] = at + 1
		indices[at] = T(u)
		if ids != nil {
			ids[at] = E(edge + int64(i))
		}
	}
	if back == nil {
		return reverse
	}
	for i, u := range b.Src {
		if v := b.Dst[i]; u != v {
			at := back[u]
			back[u] = at + 1
			indices[at], ids[at] = T(v), E(reverse)
			reverse++
		}
	}
	return reverse
}

// scatterRows is scatterAll for the edges of rows [lo, hi).
func scatterRows[T, E csc.Index](b *Batch, next, back []int64, edge, reverse int64, indices []T, ids []E, lo, hi int64) int64 {
	for i, u := range b.Src {
		v := b.Dst[i]
		if v >= lo && v < hi {
			at := next[v]
			next[v] = at + 1
			indices[at] = T(u)
			if ids != nil {
				ids[at] = E(edge + int64(i))
			}
		}
		if back == nil || u == v {
			continue
		}
		if u >= lo && u < hi {
			at := back[u]
			back[u] = at + 1
			indices[at], ids[at] = T(v), E(reverse)
		}
		reverse++
	}
	return reverse
}

// keepLoops notes the self loops of a batch, whose values have no second place.
func (s *survey) keepLoops(b *Batch, edge int64) {
	for i, u := range b.Src {
		if u == b.Dst[i] {
			s.loopsAt = append(s.loopsAt, edge+int64(i))
		}
	}
}

// rename puts numbers instead of ids.
func (s *survey) rename(b *Batch) error {
	for _, ids := range [][]int64{b.Src, b.Dst} {
		for i, id := range ids {
			n := s.ids.of(id)
			if n < 0 {
				return errors.New(changed)
			}
			ids[i] = n
		}
	}
	return nil
}

func elements[T csc.Index](bytes []byte, n int64) []T {
	if n == 0 {
		return nil
	}
	_ = bytes[n*int64(unsafe.Sizeof(*new(T)))-1]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes))), n)
}

// Available returns the number of bytes that the system can provide without swapping, page cache
// included.
func Available() int64 {
	const fallback = 2 << 30
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fallback
	}
	_, line, found := strings.Cut(string(text), "MemAvailable:")
	fields := strings.Fields(line)
	if !found || len(fields) == 0 {
		return fallback
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return fallback
	}
	return max(n*1024, 256<<20)
}
