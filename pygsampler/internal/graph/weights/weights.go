// Package weights derives the tables that rows draw by from a graph and an array over its edges:
// the edges whose weight is positive, or whose mask is true, as a separate graph, and for weights
// the tables of rng.Weights. This is done once for a graph and an array, on the host only, so that
// all engines draw by the same bits.
package weights

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// ErrValue is the error of an invalid weight.
var ErrValue = errors.New("value error")

// Build selects the edges of a graph by a value of each, and builds their tables. It owns its
// fields except for the graph's arrays; any goroutine may stop it and read its progress.
type Build struct {
	Relation *csc.Relation
	// Value returns the weight of an edge by its id; the array has Len of them.
	Value func(id int64) float64
	Len   int64
	// Mask says that values are booleans: edges with 0 are left out, and no tables are built.
	Mask bool
	// Name is the name of the array, for errors.
	Name string

	Stop atomic.Bool
	Done atomic.Int64 // edges looked at, each twice

	next   atomic.Int64
	lowest atomic.Int64 // the lowest edge id with a weight that none can have, else MaxInt64
}

// chunk is the approximate number of edges that a worker processes at a time.
const chunk = 1 << 16

// Halt makes Run return csc.ErrStopped soon.
func (b *Build) Halt() { b.Stop.Store(true) }

// Progress returns the completed and the total number of edge reads.
func (b *Build) Progress() (done, total int64) { return b.Done.Load(), 2 * b.Relation.NumEdges() }

// Run returns the memory, with one reference.
func (b *Build) Run() (m memory.Memory, err error) {
	b.lowest.Store(math.MaxInt64)
	rows := b.Relation.NumRows()
	kept := make([]int64, rows+1)
	// Values are stored in the order of ids, so that each read is a miss: those of a graph without
	// removed edges, the usual case, are read once.
	t := target{kept: kept}
	if !b.Mask {
		if m, err = b.place(&t, b.Relation.NumEdges(), true); err != nil {
			return m, err
		}
		t.weights = memory.ViewAt[float64](m, memory.ViewAt[int64](m, 0, TablesWords)[TablesSums], b.Relation.NumEdges())
	}
	defer func() {
		if err != nil && m != (memory.Memory{}) {
			m.Release()
			m = memory.Memory{}
		}
	}()
	if err := b.each(func(lo, hi int64) { b.count(t, lo, hi) }); err != nil {
		return m, err
	}
	if id := b.lowest.Load(); id != math.MaxInt64 {
		if id >= b.Len {
			return m, fmt.Errorf("%w: %s: expected a value for each edge id, got %d of them and an edge with id %d", ErrValue, b.Name, b.Len, id)
		}
		return m, fmt.Errorf("%w: %s[%d]: expected a finite weight >= 0, got %v", ErrValue, b.Name, id, b.Value(id))
	}
	edges := int64(0)
	for v, n := range kept {
		if n > math.MaxInt32 && !b.Mask {
			return m, fmt.Errorf("%w: %s: expected fewer than 2^31 edges of a node, got %d of node %d", ErrValue, b.Name, n, int64(v)/max(b.Relation.Kinds, 1))
		}
		kept[v] = edges
		edges += n
	}
	if all := edges == b.Relation.NumEdges(); !all || b.Mask {
		if !b.Mask {
			m.Release()
			m, t.weights = memory.Memory{}, nil
		}
		if m, err = b.place(&t, edges, all); err != nil {
			return m, err
		}
	}
	return m, b.each(func(lo, hi int64) { b.fill(t, lo, hi) })
}

// place allocates the memory for a number of edges, and sets the arrays of t.
func (b *Build) place(t *target, edges int64, all bool) (m memory.Memory, err error) {
	g := b.Relation
	rows := g.NumRows()
	words := [TablesWords]int64{TablesNumRows: rows, TablesNumEdges: edges, TablesIDBits: int64(g.Indices.Bits), TablesEdgeIDBits: int64(g.EdgeIDBits())}
	size := int64(TablesWords * 8)
	place := func(word int, bytes int64, wanted bool) {
		if wanted {
			size = (size + 63) &^ 63
			words[word] = size
			size += bytes
		}
	}
	place(TablesIndptr, (rows+1)*8, !all)
	place(TablesIndices, edges*int64(g.Indices.Bits/8), !all)
	place(TablesEdgeIDs, edges*int64(g.EdgeIDBits()/8), !all)
	place(TablesAlias, edges*8, !b.Mask)
	place(TablesSums, edges*8, !b.Mask)
	if err := memory.Affordable(size); err != nil {
		return m, err
	}
	if m, err = memory.New(size); err != nil {
		return m, err
	}
	m.SetSize(size)
	copy(memory.ViewAt[int64](m, 0, TablesWords), words[:])
	if !all {
		copy(memory.ViewAt[int64](m, words[TablesIndptr], rows+1), t.kept)
		t.indices = arrayAt(m, words[TablesIndices], edges, g.Indices.Bits)
		t.ids = arrayAt(m, words[TablesEdgeIDs], edges, g.EdgeIDBits())
	}
	if !b.Mask {
		t.alias = memory.ViewAt[uint64](m, words[TablesAlias], edges)
		t.sums = memory.ViewAt[uint64](m, words[TablesSums], edges)
	}
	return m, nil
}

func arrayAt(m memory.Memory, offset, n int64, bits int) csc.Array {
	if bits == 32 {
		return csc.Array{Bits: 32, I32: memory.ViewAt[int32](m, offset, n)}
	}
	return csc.Array{Bits: 64, I64: memory.ViewAt[int64](m, offset, n)}
}

// each runs f over ranges of rows, on all cores; a row is whole in one of them.
func (b *Build) each(f func(lo, hi int64)) (err error) {
	g := b.Relation
	rows, edges := g.NumRows(), g.NumEdges()
	// Ranges of about as many edges and rows each: row v begins at v + indptr[v] of both.
	parts := (rows+edges)/chunk + 1
	begin := func(part int64) int64 {
		goal := (rows + edges) * part / parts
		if part == parts {
			return rows
		}
		lo, hi := int64(0), rows
		for lo < hi {
			if middle := (lo + hi) / 2; middle+g.Indptr.Element(middle) < goal {
				lo = middle + 1
			} else {
				hi = middle
			}
		}
		return lo
	}
	b.next.Store(0)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the graph's arrays changed while %s was read, or a fault of pygsampler: %v", b.Name, p)
		}
	}()
	csc.Together(min(int64(runtime.GOMAXPROCS(0)), parts), func(int64) {
		for !b.Stop.Load() {
			part := b.next.Add(1) - 1
			if part >= parts {
				return
			}
			lo, hi := begin(part), begin(part+1)
			f(lo, hi)
			b.Done.Add(g.Indptr.Element(hi) - g.Indptr.Element(lo))
		}
	})
	if b.Stop.Load() {
		return csc.ErrStopped
	}
	return nil
}

// Check validates the tables of a validated CSC, which another program may have written: each index
// stays within its row, and the sums of a row ascend. Kernels rely on both.
func Check(g *csc.Relation) error {
	b := Build{Relation: g, Name: "tables"}
	b.lowest.Store(math.MaxInt64)
	err := b.each(func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			begin, end := g.Indptr.Element(v), g.Indptr.Element(v+1)
			before := uint64(0)
			for p := begin; p < end; p++ {
				if g.Alias[p]>>32 >= uint64(end-begin) || g.Sums[p] <= before || g.Sums[p]>>(room+1) != 0 {
					b.refuse(p)
				}
				before = g.Sums[p]
			}
		}
	})
	if p := b.lowest.Load(); err == nil && p != math.MaxInt64 {
		return fmt.Errorf("%w: tables[%d]: expected an alias within its row and a sum above the one before, got %#x and %d: "+
			"the file is damaged", ErrValue, p, g.Alias[p], g.Sums[p])
	}
	return err
}

// id is the original id of the edge at a CSC position.
func (b *Build) id(p int64) int64 {
	if b.Relation.EdgeIDs.Bits == 0 {
		return p
	}
	return b.Relation.EdgeIDs.Element(p)
}

// count counts the remaining edges of each row, and stores the weights if there is room.
func (b *Build) count(t target, lo, hi int64) {
	for v := lo; v < hi; v++ {
		n := int64(0)
		for p, end := b.Relation.Indptr.Element(v), b.Relation.Indptr.Element(v+1); p < end; p++ {
			id := b.id(p)
			if uint64(id) >= uint64(b.Len) {
				b.refuse(max(id, b.Len))
				continue
			}
			w := b.Value(id)
			switch {
			case w > 0 && w <= math.MaxFloat64, w != 0 && b.Mask:
				n++
			case w != 0:
				b.refuse(id)
			}
			if t.weights != nil {
				t.weights[p] = w
			}
		}
		t.kept[v] = n
	}
}

func (b *Build) refuse(id int64) {
	for {
		old := b.lowest.Load()
		if id >= old || b.lowest.CompareAndSwap(old, id) {
			return
		}
	}
}

// target is the output of fill; kept holds the first edge of each row in it.
type target struct {
	kept         []int64
	indices, ids csc.Array
	alias, sums  []uint64
	weights      []float64 // those that count has noted, where the sums will be; nil: none
}

// fill writes the rows [lo, hi).
func (b *Build) fill(t target, lo, hi int64) {
	var s Scratch
	g := b.Relation
	for v := lo; v < hi; v++ {
		at, end := t.kept[v], t.kept[v+1]
		if t.weights != nil {
			s.weights = append(s.weights[:0], t.weights[at:end]...)
			s.BuildTables(s.weights, t.alias[at:end], t.sums[at:end])
			continue
		}
		weights := s.weights[:0]
		for p, end := g.Indptr.Element(v), g.Indptr.Element(v+1); p < end; p++ {
			id := b.id(p)
			w := b.Value(id)
			if w == 0 {
				continue
			}
			if t.indices.Bits != 0 {
				n := at + int64(len(weights))
				set(t.indices, n, g.Indices.Element(p))
				set(t.ids, n, id)
			}
			weights = append(weights, w)
		}
		s.weights = weights
		if at+int64(len(weights)) != end {
			panic(fmt.Sprintf("row %d had %d edges with weights, and now %d", v, end-at, len(weights)))
		}
		if t.alias != nil {
			s.BuildTables(weights, t.alias[at:end], t.sums[at:end])
		}
	}
}

func set(a csc.Array, i, value int64) {
	if a.Bits == 32 {
		a.I32[i] = int32(value)
	} else {
		a.I64[i] = value
	}
}

// Scratch is the working memory for the tables of a row; its zero value is ready.
type Scratch struct {
	weights []float64
	units   []uint64
	order   []int32
}

// room is the bits that a row's integer weights take together.
const room = 62

// BuildTables computes the tables of a row of positive weights.
func (s *Scratch) BuildTables(weights []float64, alias, sums []uint64) {
	if len(weights) > 0 {
		Sums(weights, sums)
		s.vose(sums, alias)
	}
}

// Sums computes the cumulative sums of positive weights as integers. The largest of n weights is
// just below 2^(62 - log2 n), so that they are exact to 2^-35 of it in a row of ten million and to
// a double's last bit in a row of five hundred; each weight is at least 1, so that all edges can be
// drawn. Weights times a power of two give the same integers.
func Sums(weights []float64, sums []uint64) {
	n := len(weights)
	largest := uint64(0) // bits of positive numbers are in their order
	for _, w := range weights {
		largest = max(largest, math.Float64bits(w))
	}
	_, top := math.Frexp(math.Float64frombits(largest))
	shift := room - bits.Len(uint(n)) - top
	total := uint64(0)
	if -1000 < shift && shift < 1000 {
		// The power is a normal double, by which a product is exact but for what is below 1 in any case.
		for i, by := 0, math.Ldexp(1, shift); i < n; i++ {
			total += uint64(max(int64(weights[i]*by), 1))
			sums[i] = total
		}
		return
	}
	for i, w := range weights {
		total += max(scaled(w, shift), 1)
		sums[i] = total
	}
}

// scaled is the integer part of w * 2^shift, for a positive w.
func scaled(w float64, shift int) uint64 {
	b := math.Float64bits(w)
	mantissa, exponent := b&(1<<52-1)|1<<52, int(b>>52)-1075
	if b>>52 == 0 {
		mantissa, exponent = b, -1074 // subnormal
	}
	switch by := exponent + shift; {
	case by >= 0:
		return mantissa << by
	case by > -64:
		return mantissa >> -by
	}
	return 0
}

// full is the units of a slot of the alias table.
const full = 1 << 32

// vose makes the alias table of a row by its sums: n slots of 2^32 units, of which
// each edge has its share, rounded so that none is lost.
func (s *Scratch) vose(sums, alias []uint64) {
	n, total := uint64(len(sums)), sums[len(sums)-1]
	if cap(s.units) < len(sums) {
		s.units, s.order = make([]uint64, 2*len(sums)), make([]int32, 2*len(sums))
	}
	// Slots that lack units are at the front of one list, those with too many at its end.
	units, order := s.units[:len(sums)], s.order[:len(sums)]
	before, small, large := uint64(0), 0, len(sums)
	for i, sum := range sums {
		// sum * n * 2^32 / total, at most n * 2^32.
		upTo := n << 32
		if sum < total {
			hi, lo := bits.Mul64(sum, n<<32)
			upTo, _ = bits.Div64(hi, lo, total)
		}
		units[i] = upTo - before
		if upTo-before < full {
			order[small] = int32(i)
			small++
		} else {
			large--
			order[large] = int32(i)
		}
		before = upTo
	}
	for small > 0 && large < len(order) {
		small--
		i, j := order[small], order[large]
		alias[i] = uint64(uint32(j))<<32 | units[i]
		if units[j] -= full - units[i]; units[j] < full {
			large++
			order[small] = j
			small++
		}
	}
	// Units are whole, and so are the slots: what is left over has exactly one each.
	for _, i := range order[large:] {
		alias[i] = uint64(uint32(i)) << 32
	}
}
