// Package run samples batches of programs on the CPU, by docs/developer/operator-rules.md.
//
// Nodes are computed in order. The edges of a matrix are separate from its values: edges of whole
// columns of the graph are ranges and take no memory, chosen edges are positions in the CSC. Values
// are computed tile by tile, for a tree of operators at a time, in their reader; a stored node has
// them in one array. So a sum over a function of a slice reads the graph and writes the sums.
package run

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Request says which batch of a program to sample, on which graph. It is read-only meanwhile.
type Request struct {
	*program.Program
	request.Batch
	Relation *csc.Relation
	Exclude  *csc.Exclusions // of a program that asks for them; nil: none
	// Parts describes the partitions of a graph without rows of its own, and Arrays lists the edge
	// arrays that a program that Apart accepts reads; the partitions leave out the excluded edges
	// of the batch. nil: the rows are local.
	Parts  *cpu.Partition
	Arrays []string
}

// failure is an error of the batch, which leaves loops by a panic.
type failure struct{ err error }

func fail(kind error, format string, args ...any) {
	panic(failure{fmt.Errorf("%w: "+format, append([]any{kind}, args...)...)})
}

// Sample samples the batch and returns its memory, with one reference. It returns
// request.ErrCancelled soon after stop is set.
func Sample(r *Request, crew csc.Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			m, err = memory.Memory{}, p.err
		default:
			m, err = memory.Memory{}, fmt.Errorf("the graph's arrays changed while a batch was sampled, or a fault of pygsampler: %v", p)
		}
	}()
	if r.Relation.Indices.Bits == 32 {
		return sample[int32](r, crew, stop)
	}
	return sample[int64](r, crew, stop)
}

// value is the result of a node.
type value[I csc.Index] struct {
	list   *list[I]
	edges  *edges[I]
	vector []float64 // along its list, or of all nodes
	matrix []float64 // of stored matrices
	scalar float64
	dense  *denseRows
	drawn  []int64       // of a Collective: which of its parent's rows, as often as they were
	pages  *memory.Pages // of a cached vector: it is read at random
	made   bool          // the values are there
}

// call is one batch in the making.
type call[I csc.Index] struct {
	*Request
	*scratch
	crew    csc.Crew
	team    *team
	stop    *atomic.Bool
	indices []I
	near    *cpu.RemoteRows[I] // rows that lie elsewhere; nil: they are here
	copies  csc.Copies         // of the graph, where a node asks for them
	values  []value[I]
	need    []program.Want
	costs   costs.Costs   // and
	works   []layout.Work // what elements of vectors cost, once a layout depends on it
	clock   []float64     // of a timed program: microseconds of each node, and of the result
	last    time.Time
}

// mark ends the time of a node.
func (c *call[I]) mark(i int) {
	if c.clock != nil {
		now := time.Now()
		c.clock[i], c.last = float64(now.Sub(c.last).Nanoseconds())/1e3, now
	}
}

func sample[I csc.Index](r *Request, crew csc.Crew, stop *atomic.Bool) (memory.Memory, error) {
	c := &call[I]{
		Request: r, scratch: takeScratch(), crew: crew, team: new(team), stop: stop,
		indices: csc.Elements[I](r.Relation.Indices), values: make([]value[I], len(r.Nodes)),
	}
	defer c.scratch.put()
	defer c.team.dismiss()
	defer runtime.KeepAlive(c) // cached data of the graph lives as long as its last user
	if r.Parts != nil {
		if err := c.apart(); err != nil {
			return memory.Memory{}, err
		}
	} else if c.tellsCopies() {
		var err error
		if c.copies, err = r.Relation.Copies(); err != nil {
			return memory.Memory{}, err
		}
	}
	for i := range r.Seeds.Len() {
		if v := r.Seeds.Element(i); uint64(v) >= uint64(r.Relation.NumNodes) {
			return memory.Memory{}, fmt.Errorf("%w: seeds[%d]: expected an id in [0, %d), got %d", request.ErrIndex, i, r.Relation.NumNodes, v)
		}
	}
	c.need = c.Wants(c.recall)
	if c.Timed {
		c.clock, c.last = make([]float64, len(r.Nodes)+1), time.Now()
	}
	c.all()
	return c.result()
}

// all makes the nodes that the result needs.
func (c *call[I]) all() {
	for i := range c.Nodes {
		if c.need[i] == 0 {
			continue
		}
		if c.check(); !c.values[i].made {
			c.make(i)
		}
		c.mark(i)
	}
}

// tellsCopies reports whether a node depends on the edges that are copies of others.
func (c *call[I]) tellsCopies() bool {
	return slices.ContainsFunc(c.Nodes, func(n program.Node) bool { return n.Op == program.Independent })
}

// apart lets the batch read the rows that it requests.
func (c *call[I]) apart() (err error) {
	own, g := *c.Request, c.Relation
	width := batch.Widths{ID: int64(unsafe.Sizeof(I(0))), EdgeID: int64(g.EdgeIDBits()) / 8}
	if c.near, err = cpu.NewRemoteRows[I](g.NumNodes, g.NumNodes, own.Parts.Bounds, width, own.Arrays, &c.here); err != nil {
		return err
	}
	own.Relation = &c.near.Relation
	c.Request = &own
	return nil
}

// check ends a cancelled batch.
func (c *call[I]) check() {
	if c.stop.Load() {
		panic(failure{request.ErrCancelled})
	}
}

// recall loads the cached result of a node that depends on the graph only.
func (c *call[I]) recall(i int) bool {
	n := &c.Nodes[i]
	if !n.Keeps() {
		return false
	}
	kept, ok := c.Relation.Kept.Get(c.textOf(i)).(*value[I])
	if ok {
		c.values[i] = *kept
	}
	return ok
}

// keep caches the result of a node that depends on the graph only.
func (c *call[I]) keep(i int) {
	n, v := &c.Nodes[i], &c.values[i]
	if !n.Keeps() || !v.made {
		return
	}
	// Out of the batch's memory.
	if n := int64(len(v.vector)); n > 0 {
		pages, err := memory.Map(8 * n)
		if err != nil {
			panic(failure{err})
		}
		kept := memory.Slice[float64](pages, n)
		copy(kept, v.vector)
		v.vector, v.pages = kept, pages
	}
	if v.dense != nil {
		v.dense = &denseRows{width: v.dense.width, count: v.dense.count, data: slices.Clone(c.singles(v.dense))}
	}
	kept := *v
	c.Relation.Kept.Put(c.textOf(i), &kept)
}

// textOf returns a text of a node and its inputs, which is the same for equal values in any
// program.
func (c *call[I]) textOf(i int) string {
	used := make([]bool, i+1)
	used[i] = true
	place := make([]int, i+1)
	text := fmt.Sprintf("%d %q\n", c.Relation.Indices.Bits, c.Weight)
	for k := i; k >= 0; k-- {
		if used[k] {
			for _, in := range c.Nodes[k].In {
				used[in] = true
			}
		}
	}
	for k, at := 0, 0; k <= i; k++ {
		if !used[k] {
			continue
		}
		place[k] = at
		at++
		n := c.Nodes[k]
		n.In = append([]int(nil), n.In...)
		for j, in := range n.In {
			n.In[j] = place[in]
		}
		text += n.Key() + "\n"
	}
	return text
}

// make makes node i of those that it takes.
func (c *call[I]) make(i int) {
	n, v := &c.Nodes[i], &c.values[i]
	c.settle(i)
	switch n.Type.Kind {
	case program.List:
		v.list, v.made = c.makeList(i), true
	case program.Scalar:
		v.scalar, v.made = c.makeScalar(i), true
	case program.Vector:
		c.makeVector(i)
	case program.Dense:
		v.dense, v.made = c.makeDense(i), true
	case program.Matrix:
		if n.Chooses() {
			c.makeEdges(i)
			if n.Op == program.Merge && c.need[i]&program.WantValues != 0 {
				c.mergeValues(i)
			}
		} else if n.Op == program.Dot && c.need[i]&program.WantValues != 0 {
			c.ready(n)
			v.matrix, v.made = c.materialise(i), true
		} else if c.need[i]&program.WantValues != 0 && c.stores(i) {
			v.matrix, v.made = c.materialise(i), true
		}
	}
	c.keep(i)
}

// stores reports whether a map over a matrix stores its values in an array, instead of computing
// them in the reader.
func (c *call[I]) stores(i int) bool {
	n := &c.Nodes[i]
	return n.Maps() && !n.Inline
}

// materialise is the values of a matrix in one array.
func (c *call[I]) materialise(i int) []float64 {
	e := c.edgesOf(i)
	to := take[float64](&c.arena, e.count())
	c.tiles(e, func(w *worker, lo, hi int64) {
		ev := evaluatorOf[I](w, c)
		for ; lo < hi; lo += tileEdges {
			ev.fill(i, ev.begin(e, lo, min(hi-lo, tileEdges)), to[lo:min(hi, lo+tileEdges)])
		}
	})
	return to
}

func (c *call[I]) edgesOf(i int) *edges[I] { return c.values[c.Nodes[i].Type.Edges].edges }

// stream returns the random stream of a site.
func (c *call[I]) stream(site int, purpose rng.Purpose) rng.Stream {
	return rng.NewStream(c.Seed, c.Epoch, c.Number, uint8(site), purpose)
}

// numbersOf is the numbers of a Random.
func (c *call[I]) numbersOf(n *program.Node, purpose rng.Purpose) rng.Dependent {
	return rng.NewGradual(c.Seed, c.Epoch, c.Number, uint64(n.Batches), uint8(n.Site), purpose)
}

// unitEdges is about how many edges a worker takes at a time.
const unitEdges = 1 << 12

// worthwhile is the duration of work from which on other workers are called: a worker arrives some
// 50 us later, and the call costs 10. LADIES 512 x 2 took 1.3 times as long as on one core, while
// another program had a core, when all work of two units called them. A test sets it.
var worthwhile = 150 * time.Microsecond

// units runs work for each of a number of units, on several workers if the crew has some and the
// first units have taken long enough. The result must not depend on which worker runs which unit,
// nor on the time.
func (c *call[I]) units(n int64, work func(w *worker, unit int64)) {
	own, begin := c.worker(0), time.Time{}
	if c.crew != nil && n > 1 {
		begin = time.Now()
	}
	for u := range n {
		c.check()
		work(own, u)
		if done := u + 1; done < n && !begin.IsZero() {
			if time.Since(begin)/time.Duration(done)*time.Duration(n-done) >= worthwhile {
				c.together(done, n, work)
				return
			}
		}
	}
}

// together runs units from first on, on several workers if the crew has some.
func (c *call[I]) together(first, n int64, work func(w *worker, unit int64)) {
	own := c.worker(0)
	if n-first > 1 && c.crew != nil {
		c.team.muster(c.crew, n-first, c.worker)
	}
	if n-first <= 1 || c.team.size == 0 {
		for u := first; u < n; u++ {
			c.check()
			work(own, u)
		}
		return
	}
	if p := c.team.run(own, first, n, c.stop, work); p != nil {
		panic(p)
	}
	c.check()
}

// tiles runs work for ranges of edges.
func (c *call[I]) tiles(e *edges[I], work func(w *worker, lo, hi int64)) {
	c.ranges(e.count(), work)
}

// ranges runs work for ranges of elements.
func (c *call[I]) ranges(n int64, work func(w *worker, lo, hi int64)) {
	c.units((n+unitEdges-1)/unitEdges, func(w *worker, unit int64) {
		work(w, unit*unitEdges, min((unit+1)*unitEdges, n))
	})
}

// columnsIn runs work for ranges of columns with about equal numbers of edges.
func (c *call[I]) columnsIn(e *edges[I], work func(w *worker, unit, first, end int64)) {
	weight := func(col int64) int64 { return e.indptr[col] + col }
	columns, units := int64(len(e.indptr))-1, c.columnUnits(e)
	begin := func(unit int64) int64 {
		goal := unit * unitEdges
		lo, hi := int64(0), columns
		for lo < hi {
			if middle := (lo + hi) / 2; weight(middle) < goal {
				lo = middle + 1
			} else {
				hi = middle
			}
		}
		return lo
	}
	c.units(units, func(w *worker, unit int64) {
		end := columns
		if unit+1 < units {
			end = begin(unit + 1)
		}
		if first := begin(unit); first < end {
			work(w, unit, first, end)
		}
	})
}

// columnUnits returns the number of such ranges.
func (c *call[I]) columnUnits(e *edges[I]) int64 {
	return (e.count() + int64(len(e.indptr)) - 1 + unitEdges - 1) / unitEdges
}

// fits32 refuses what ids of 32 bits cannot number.
func fits32[I csc.Index](edges int64) error {
	if _, narrow := any(I(0)).(int32); narrow && edges > math.MaxInt32 {
		return fmt.Errorf("%w: a block of %d edges needs int64 ids", request.ErrOverflow, edges)
	}
	return nil
}
