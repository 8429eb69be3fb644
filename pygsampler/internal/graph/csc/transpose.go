package csc

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// ErrStopped is the error of a stopped derivation.
var ErrStopped = errors.New("stopped")

// Transposition transposes a graph: row u lists the destinations of u's out-edges in ascending
// order, parallel edges in the order of the CSC. If edges have types, row u*kinds + k lists the
// edges of type k. It borrows the graph and the types until Run has returned; any goroutine may
// stop it and read its progress.
type Transposition struct {
	Relation *Relation // whose rows are not split by type
	// Kind returns the type of an edge by its id, of which there are Len; nil: rows are not split.
	Kind func(id int64) int64
	Len  int64
	// Kinds is the number of types, at most MaxKinds; 0: the largest type plus one.
	Kinds int64
	// Name is the name of the types, for errors.
	Name string
	// Bare leaves edge ids out, for callers that need adjacency only.
	Bare bool

	Stop atomic.Bool
	Done atomic.Int64 // edges looked at, each as often as Total counts it

	lowest  atomic.Int64 // the lowest edge id of a type that none can have, else MaxInt64
	largest atomic.Int64 // the largest type
}

// between is the number of edges that a worker processes between two checks of Stop.
const between = 1 << 16

// Halt makes Run return ErrStopped soon.
func (t *Transposition) Halt() { t.Stop.Store(true) }

// Progress returns the completed and the total number of edge reads.
func (t *Transposition) Progress() (done, total int64) {
	looks := int64(2)
	if t.Kind != nil {
		looks++
	}
	return t.Done.Load(), looks * t.Relation.NumEdges()
}

// Run returns the memory, with one reference.
func (t *Transposition) Run() (m memory.Memory, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the graph's arrays changed while they were read or are damaged, or a fault of pygsampler: %v", p)
		}
		if err != nil && m != (memory.Memory{}) {
			m.Release()
			m = memory.Memory{}
		}
	}()
	g := t.Relation
	if g.Kinds != 0 {
		return m, valueError("graph: expected one whose rows are not split by type, got %d types", g.Kinds)
	}
	kinds := int64(0)
	var kind []uint16
	if t.Kind != nil {
		// By position, so that two looks at a type agree and the second is no miss.
		scratch, err := memory.Map(2 * g.NumEdges())
		if err != nil {
			return m, err
		}
		defer scratch.Free()
		kind = memory.Slice[uint16](scratch, g.NumEdges())
		if kinds, err = t.types(kind); err != nil {
			return m, err
		}
	}
	if kinds > 0 && g.NumNodes > MaxNodes/kinds {
		return m, valueError("%s: expected at most 2^48 rows, got %d nodes by %d types", t.Name, g.NumNodes, kinds)
	}
	rows, edges := g.NumNodes*max(kinds, 1), g.NumEdges()
	parts := sortParts(rows, edges)
	words := [TransposedWords]int64{
		TransposedNumRows: rows, TransposedNumEdges: edges, TransposedIDBits: int64(g.Indices.Bits),
		TransposedEdgeIDBits: int64(g.EdgeIDBits()), TransposedKinds: kinds,
	}
	size := int64(TransposedWords * 8)
	place := func(word int, bytes int64) {
		words[word] = align(size)
		size = words[word] + bytes
	}
	place(TransposedIndptr, (rows+1)*8)
	place(TransposedIndices, edges*int64(g.Indices.Bits/8))
	if !t.Bare {
		place(TransposedEdgeIDs, edges*int64(g.EdgeIDBits()/8))
	}
	if err := memory.Affordable(size + parts*rows*8); err != nil {
		return m, err
	}
	if m, err = memory.New(size); err != nil {
		return m, err
	}
	m.SetSize(size)
	copy(memory.ViewAt[int64](m, 0, TransposedWords), words[:])
	s := transposing{t, kind, max(kinds, 1), parts, memory.ViewAt[int64](m, words[TransposedIndptr], rows+1)}
	at, ids := words[TransposedIndices], words[TransposedEdgeIDs]
	switch {
	case g.Indices.Bits == 32 && g.EdgeIDBits() == 32:
		return m, transpose[int32, int32](s, m, at, ids)
	case g.Indices.Bits == 32:
		return m, transpose[int32, int64](s, m, at, ids)
	case g.EdgeIDBits() == 32:
		return m, transpose[int64, int32](s, m, at, ids)
	}
	return m, transpose[int64, int64](s, m, at, ids)
}

// types records the type of each edge by its position, and returns the number of types.
func (t *Transposition) types(kind []uint16) (kinds int64, err error) {
	most := int64(MaxKinds)
	if t.Kinds > 0 {
		most = min(t.Kinds, most)
	}
	t.lowest.Store(math.MaxInt64)
	t.largest.Store(-1)
	if err := t.each(sortParts(0, int64(len(kind))), func(_, lo, hi int64) {
		largest := int64(-1)
		for p := lo; p < hi; p++ {
			id := t.id(p)
			if uint64(id) >= uint64(t.Len) {
				lower(&t.lowest, max(id, t.Len))
				continue
			}
			k := t.Kind(id)
			if uint64(k) >= uint64(most) {
				lower(&t.lowest, id)
				continue
			}
			largest = max(largest, k)
			kind[p] = uint16(k)
		}
		raise(&t.largest, largest)
	}); err != nil {
		return 0, err
	}
	if id := t.lowest.Load(); id != math.MaxInt64 {
		if id >= t.Len {
			return 0, valueError("%s: expected a type for each edge id, got %d of them and an edge with id %d", t.Name, t.Len, id)
		}
		return 0, valueError("%s[%d]: expected a type in [0, %d), got %d", t.Name, id, most, t.Kind(id))
	}
	if t.Kinds > 0 {
		return t.Kinds, nil
	}
	return max(t.largest.Load()+1, 1), nil
}

// id is the original id of the edge at a CSC position.
func (t *Transposition) id(p int64) int64 {
	if t.Relation.EdgeIDs.Bits == 0 {
		return p
	}
	return t.Relation.EdgeIDs.Element(p)
}

// lower makes a at most value, and raise makes it at least that.
func lower(a *atomic.Int64, value int64) {
	for old := a.Load(); value < old && !a.CompareAndSwap(old, value); old = a.Load() {
	}
}

func raise(a *atomic.Int64, value int64) {
	for old := a.Load(); value > old && !a.CompareAndSwap(old, value); old = a.Load() {
	}
}

// each runs f over the CSC positions of each part, in ascending order and a few at a time.
func (t *Transposition) each(parts int64, f func(part, lo, hi int64)) error {
	edges := t.Relation.NumEdges()
	Together(parts, func(part int64) {
		end := edges * (part + 1) / parts
		for lo := edges * part / parts; lo < end && !t.Stop.Load(); lo += between {
			hi := min(lo+between, end)
			f(part, lo, hi)
			t.Done.Add(hi - lo)
		}
	})
	if t.Stop.Load() {
		return ErrStopped
	}
	return nil
}

// transposing is a transposition whose types and memory are there.
type transposing struct {
	*Transposition
	kind   []uint16 // by position; nil: there are no types
	kinds  int64    // at least 1
	parts  int64
	indptr []int64
}

// transpose is countingSort over the positions of a CSC: the row of a position is found on the way.
func transpose[T, E Index](s transposing, m memory.Memory, offIndices, offIDs int64) error {
	g, rows := s.Relation, int64(len(s.indptr)-1)
	scratch, err := memory.Map(s.parts * rows * 8)
	if err != nil {
		return err
	}
	defer scratch.Free()
	counts := memory.Slice[uint64](scratch, s.parts*rows)
	sources := Elements[T](g.Indices)
	if err := s.each(s.parts, func(part, lo, hi int64) {
		counts := counts[part*rows : (part+1)*rows]
		if s.kind == nil {
			for _, u := range sources[lo:hi] {
				counts[u]++
			}
			return
		}
		kind := s.kind[lo:hi]
		for i, u := range sources[lo:hi] {
			counts[int64(u)*s.kinds+int64(kind[i])]++
		}
	}); err != nil {
		return err
	}
	if !firstPlaces(counts, s.indptr, s.parts, &s.Stop) {
		return ErrStopped
	}
	indices := memory.ViewAt[T](m, offIndices, g.NumEdges())
	var ids, own []E
	if offIDs != 0 {
		ids = memory.ViewAt[E](m, offIDs, g.NumEdges())
		if g.EdgeIDs.Bits != 0 {
			own = Elements[E](g.EdgeIDs)
		}
	}
	return s.each(s.parts, func(part, lo, hi int64) {
		counts := counts[part*rows : (part+1)*rows]
		v := g.rowOf(lo)
		end := g.Indptr.Element(v + 1)
		for p := lo; p < hi; p++ {
			for p >= end {
				v++
				end = g.Indptr.Element(v + 1)
			}
			row := int64(sources[p])
			if s.kind != nil {
				row = row*s.kinds + int64(s.kind[p])
			}
			at := counts[row]
			counts[row]++
			indices[at] = T(v)
			switch {
			case own != nil:
				ids[at] = own[p]
			case ids != nil:
				ids[at] = E(p)
			}
		}
	})
}

// rowOf is the row of the edge at a CSC position.
func (g *Relation) rowOf(p int64) int64 {
	lo, hi := int64(0), g.NumRows()
	for lo < hi {
		if middle := (lo + hi) / 2; g.Indptr.Element(middle+1) <= p {
			lo = middle + 1
		} else {
			hi = middle
		}
	}
	return lo
}

// Ascends reports whether the neighbors of each row are in ascending order, like in a transposed
// graph.
func (g *Relation) Ascends() bool {
	if g.Indices.Bits == 32 {
		return ascends(g, g.Indices.I32)
	}
	return ascends(g, g.Indices.I64)
}

func ascends[T Index](g *Relation, indices []T) bool {
	var falls atomic.Bool
	Parallel(0, g.NumRows(), func(lo, hi int64) {
		for v := lo; v < hi && !falls.Load(); v++ {
			row := indices[g.Indptr.Element(v):g.Indptr.Element(v+1)]
			for i := 1; i < len(row); i++ {
				if row[i] < row[i-1] {
					falls.Store(true)
				}
			}
		}
	})
	return !falls.Load()
}

// EqualRows reports whether two graphs have the same arrays apart from edge ids.
func EqualRows(a, b *Relation) bool {
	return a.NumNodes == b.NumNodes && a.Kinds == b.Kinds && same(a.Indptr, b.Indptr) && same(a.Indices, b.Indices)
}

func same(a, b Array) bool {
	if a.Bits != b.Bits || a.Len() != b.Len() {
		return false
	}
	if a.Bits == 32 {
		return equal(a.I32, b.I32)
	}
	return equal(a.I64, b.I64)
}

func equal[T Index](a, b []T) bool {
	return lowest(0, int64(len(a)), func(i int64) bool { return a[i] != b[i] }, func(lo, hi int64) bool {
		return !slices.Equal(a[lo:hi], b[lo:hi])
	}) < 0
}
