package contexts

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Request says which contexts to sample. It is read-only meanwhile.
type Request struct {
	Rule
	request.Batch
	Graph      *csc.Graph
	SeedCounts []int64             // how many seeds are of each node type, one behind another; nil: a homogeneous graph
	Rows       []*times.SortedRows // of each relation, whose rows are in the order of time; nil: its edges have no times
	SeedKeys   []int64             // the key of each seed's time, where some relation has times
}

// unitSeeds is the number of seeds that a worker processes at a time.
const unitSeeds = 4

// Sample samples the contexts and returns their memory, with one reference. It returns
// request.ErrCancelled soon after stop is set.
func Sample(r *Request, crew csc.Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the graph's arrays changed while contexts were sampled, or a fault of pygsampler: %v", p)
		}
	}()
	seeds := r.Seeds.Len()
	if err := r.check(); err != nil {
		return m, err
	}
	if err := r.Affordable(seeds); err != nil {
		return m, err
	}
	words := r.Words(seeds, r.Graph.Schema != nil)
	if m, err = memory.New(words[batch.WordSize]); err != nil {
		return m, err
	}
	m.SetSize(words[batch.WordSize])
	copy(memory.ViewAt[int64](m, 0, batch.ContextWords), words[:])
	e := newEngine(r, &words, m)
	units := (seeds + unitSeeds - 1) / unitSeeds
	var next atomic.Int64
	csc.Crewed(crew, units, func() {
		w := newWorker(e)
		for i := next.Add(1) - 1; i < units && !stop.Load(); i = next.Add(1) - 1 {
			for s := i * unitSeeds; s < min((i+1)*unitSeeds, seeds); s++ {
				w.context(s)
			}
		}
	})
	if stop.Load() {
		m.Release()
		return memory.Memory{}, request.ErrCancelled
	}
	return m, nil
}

// check refuses seeds that are no nodes, or whose rows do not fit.
func (r *Request) check() error {
	if err := r.CheckCells(r.Graph.Schema, r.SeedCounts); err != nil {
		return err
	}
	if r.SeedCounts == nil {
		return r.CheckSeeds(r.Graph.Relation(0).NumNodes)
	}
	first := int64(0)
	for i, n := range r.SeedCounts {
		kind := r.Graph.NodeTypes[i]
		if err := r.CheckSeedsOf(kind.Name, first, n, kind.Nodes); err != nil {
			return err
		}
		first += n
	}
	return nil
}

// relation is the edges that lead into nodes of a type.
type relation struct {
	*csc.Relation
	rows *times.SortedRows // nil: no times
	src  int               // the type of the nodes that they lead from
}

// engine is the work of one call.
type engine struct {
	*Request
	// By the type of the nodes that they lead into, in the order of the edge types: those without and with times.
	untimed, timed       [][]relation
	types                uint64
	places               int64
	nodes                []int64
	kinds, hops, parents []int32 // kinds nil: a homogeneous graph
	cells                []int32 // nil: the budget counts rows
	mask                 []byte
	lengths              []int32
	ends                 []int64 // of each type's seeds
}

func newEngine(r *Request, words *[batch.ContextWords]int64, m memory.Memory) *engine {
	all := words[batch.ContextNumPlaces]
	array := func(word int) []int32 {
		if words[word] == 0 {
			return nil
		}
		return memory.ViewAt[int32](m, words[word], all)
	}
	e := &engine{
		Request: r, types: 1, places: words[batch.ContextPlaces],
		nodes: memory.ViewAt[int64](m, words[batch.ContextNodes], all), kinds: array(batch.ContextTypes),
		hops: array(batch.ContextHops), parents: array(batch.ContextParents), cells: array(batch.ContextCells),
		mask:    memory.ViewAt[byte](m, words[batch.ContextMask], all),
		lengths: memory.ViewAt[int32](m, words[batch.ContextLengths], words[batch.ContextNumSeeds]),
	}
	schema := r.Graph.Schema
	if schema == nil {
		schema = &csc.Schema{NodeTypes: make([]csc.NodeType, 1), EdgeTypes: make([]csc.EdgeType, 1)}
	}
	e.types = uint64(len(schema.NodeTypes))
	e.untimed, e.timed = make([][]relation, e.types), make([][]relation, e.types)
	for i, of := range schema.EdgeTypes {
		one := relation{Relation: r.Graph.Relation(i), src: of.Src}
		if r.Rows != nil {
			one.rows = r.Rows[i]
		}
		list := &e.untimed[of.Dst]
		if one.rows != nil {
			list = &e.timed[of.Dst]
		}
		*list = append(*list, one)
	}
	end := int64(0)
	for _, n := range r.SeedCounts {
		end += n
		e.ends = append(e.ends, end)
	}
	return e
}

// kindOf is the node type of a seed.
func (e *engine) kindOf(seed int64) int {
	for kind, end := range e.ends {
		if seed < end {
			return kind
		}
	}
	return 0
}

// worker makes contexts, one after another.
type worker struct {
	*engine
	table []uint64 // of the nodes of a context, by open addressing: their keys and 1 more; 0: free
	shift uint
	rows  rowBlock
	merge merge

	// Values of a context: the first of its places, the number of its rows, and the rest of the
	// budget.
	first, count, left int64
}

func newWorker(e *engine) *worker {
	slots := bits.Len64(uint64(2*e.places - 1))
	w := &worker{engine: e, table: make([]uint64, 1<<slots), shift: uint(64 - slots)}
	for kind := range e.untimed {
		w.rows.most = max(w.rows.most, len(e.untimed[kind]))
		w.merge.most = max(w.merge.most, len(e.timed[kind]))
	}
	w.rows.starts, w.rows.counts = make([]int64, blockRows*w.rows.most), make([]int64, blockRows*w.rows.most)
	return w
}

// add adds a row if it is new, and reports whether the context continues.
func (w *worker) add(kind int, node int64, parent int32) bool {
	key := uint64(node)*w.types + uint64(kind) + 1
	mask := uint64(len(w.table) - 1)
	slot := (key * 0x9E3779B97F4A7C15) >> w.shift
	for w.table[slot] != 0 {
		if w.table[slot] == key {
			return true
		}
		slot = (slot + 1) & mask
	}
	cost := w.Cost(kind)
	if cost > w.left {
		return false
	}
	w.table[slot] = key
	i := w.first + w.count
	w.nodes[i], w.parents[i] = node, parent
	if w.kinds != nil {
		w.kinds[i] = int32(kind)
	}
	w.left -= cost
	w.count++
	return w.left > 0 && w.count < w.places
}

// context samples the context of a seed.
func (w *worker) context(seed int64) {
	clear(w.table)
	w.first, w.count, w.left = seed*w.places, 0, w.Budget
	bound := int64(0)
	if w.SeedKeys != nil {
		bound = w.SeedKeys[seed]
	}
	goesOn, begin := w.add(w.kindOf(seed), w.Seeds.Element(seed), -1), int64(0)
	for hop := int32(0); begin < w.count; hop++ {
		end := w.count
		fill(w.hops[w.first+begin:w.first+end], hop)
		goesOn = goesOn && w.addUntimed(begin, end) && w.addTimed(begin, end, bound)
		begin = end
	}
	w.finish(seed)
}

// finish writes the arrays that follow from the rows of a context, and pads its places.
func (w *worker) finish(seed int64) {
	w.lengths[seed] = int32(w.count)
	begin, end, last := w.first, w.first+w.count, w.first+w.places
	fill(w.mask[begin:end], 1)
	clear(w.mask[end:last])
	if w.cells != nil {
		for i := begin; i < end; i++ {
			w.cells[i] = int32(w.Cost(w.kind(i - begin)))
		}
		clear(w.cells[end:last])
	}
	fill(w.nodes[end:last], -1)
	fill(w.hops[end:last], -1)
	fill(w.parents[end:last], -1)
	if w.kinds != nil {
		fill(w.kinds[end:last], -1)
	}
}

func fill[T any](a []T, value T) {
	for i := range a {
		a[i] = value
	}
}

// kind is the node type of a row.
func (w *worker) kind(place int64) int {
	if w.kinds == nil {
		return 0
	}
	return int(w.kinds[w.first+place])
}

// looked returns the number of edges that are read out of a number of edges.
func (w *worker) looked(edges int64) int64 {
	if w.Width > 0 {
		return min(edges, w.Width)
	}
	return edges
}
