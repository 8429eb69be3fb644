package run

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/lanes"
	"github.com/pygsampler/pygsampler/pygsampler/internal/real"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// reduceColumns is a value for each column of a matrix.
func (c *call[I]) reduceColumns(n *program.Node) []float64 {
	e, in := c.edgesOf(n.In[0]), n.In[0]
	columns := int64(len(e.indptr)) - 1
	to := take[float64](&c.arena, columns)
	if n.Op == program.Count {
		for col := range to {
			to[col] = float64(e.indptr[col+1] - e.indptr[col])
		}
		return to
	}
	c.columnsIn(e, func(w *worker, _, first, end int64) {
		ev, col := evaluatorOf[I](w, c), first
		var of running
		of.begin(n.Op)
		buffer := w.values[:]
		for lo, hi := e.indptr[first], e.indptr[end]; lo < hi; lo += tileEdges {
			size := min(hi-lo, tileEdges)
			values := buffer[:size]
			ev.fill(in, ev.begin(e, lo, size), values)
			for k := int64(0); k < size; {
				stop := min(e.indptr[col+1]-lo, size)
				if stop > k {
					of.take(values[k:stop])
					k = stop
				}
				for col < end && e.indptr[col+1] == lo+k {
					to[col] = of.end()
					col++
				}
			}
		}
		for ; col < end; col++ {
			to[col] = of.end()
		}
	})
	return to
}

// running is the reduction of one column, whose values come in parts.
type running struct {
	op      program.Op
	count   int64
	of      real.Sum
	extreme float64
}

func (r *running) begin(op program.Op) { r.op = op }

func (r *running) take(values []float64) {
	if r.op == program.Largest || r.op == program.Smallest {
		r.furthest(values)
	} else {
		r.of.Take(values)
	}
	r.count += int64(len(values))
}

func (r *running) furthest(values []float64) {
	if r.count == 0 {
		r.extreme = values[0]
	}
	for _, x := range values {
		if r.op == program.Largest && x > r.extreme || r.op == program.Smallest && x < r.extreme || x != x {
			r.extreme = x
		}
		if r.extreme != r.extreme {
			return
		}
	}
}

// end is the value, and begins the next column.
func (r *running) end() float64 {
	value := r.extreme
	if r.op == program.Sum || r.op == program.Mean {
		if value = r.of.End(); r.op == program.Mean && r.count > 0 {
			value /= float64(r.count)
		}
	}
	r.extreme, r.count = 0, 0
	return value
}

// reduceRows is a value for each row of a matrix.
func (c *call[I]) reduceRows(n *program.Node) []float64 {
	e, values := c.edgesOf(n.In[0]), c.values[n.In[0]].matrix
	adds := n.Op == program.Sum || n.Op == program.Mean
	var b bins
	if adds && values == nil {
		values, b = c.measured(n.In[0])
	} else {
		c.rowsOf(e)
	}
	rows := int64(len(e.rows.ids))
	to := take[float64](&c.arena, rows+1)[:rows]
	if n.Op == program.Count || n.Op == program.Mean {
		clear(to)
		for _, row := range e.local {
			to[row]++
		}
		if n.Op == program.Count {
			return to
		}
	}
	if adds {
		if c.values[n.In[0]].matrix != nil {
			b = c.measure(n.Op, values)
		}
		b.check(n.Op, values)
		sums := to
		if n.Op == program.Mean {
			sums = take[float64](&c.arena, rows+1)[:rows]
		}
		c.rowSums(e, &b, values, sums)
		if n.Op == program.Mean {
			for row, count := range to {
				if to[row] = sums[row]; count > 0 {
					to[row] /= count
				}
			}
		}
		return to
	}
	values = c.stored(n.In[0])
	seen := take[bool](&c.arena, rows)
	clear(seen)
	// The whole matrix has rows without edges.
	clear(to)
	for k, row := range e.local {
		switch x, best := values[k], to[row]; {
		case !seen[row]:
			seen[row] = true
			to[row] = x
		case n.Op == program.Largest && x > best, n.Op == program.Smallest && x < best, x != x && best == best:
			to[row] = x
		}
	}
	return to
}

// rowSums adds the values of a matrix up by rows; to has room for one more.
func (c *call[I]) rowSums(e *edges[I], b *bins, values, to []float64) {
	count, rows := int64(len(values)), int64(len(to))
	if !b.scale(count) {
		clear(to)
		return
	}
	if b.plain && !e.whole && !e.all {
		// Rows that edges have numbered.
		several := max(min(count-rows, rows), 0)
		s := lanes.RowSums{Powers: [4]float64{b.up, b.down, b.second, b.last}, To: to,
			Parts: take[int64](&c.arena, 2*several), Slots: take[int64](&c.arena, several)}
		for lo := int64(0); lo < count; lo += unitEdges {
			c.check()
			hi := min(lo+unitEdges, count)
			if narrow, wide := words(e.local[lo:hi]); !s.Add(values[lo:hi], narrow, wide) {
				panic("an edge from a row that the matrix does not have")
			}
		}
		s.End()
		return
	}
	parts := take[int64](&c.arena, 2*rows)
	clear(parts)
	for lo := int64(0); lo < count; lo += unitEdges {
		c.check()
		hi := min(lo+unitEdges, count)
		addTo(b, parts, values[lo:hi], e.local[lo:hi])
	}
	c.ranges(rows, func(_ *worker, lo, hi int64) { b.valuesOf(parts[2*lo:2*hi], to[lo:hi]) })
}

// words returns ids of 32 bits, or of 64.
func words[I csc.Index](ids []I) (narrow []int32, wide []int64) {
	p := unsafe.Pointer(unsafe.SliceData(ids))
	if unsafe.Sizeof(I(0)) == 4 {
		return unsafe.Slice((*int32)(p), len(ids)), nil
	}
	return nil, unsafe.Slice((*int64)(p), len(ids))
}

// reduceVector is one value of a vector.
func (c *call[I]) reduceVector(n *program.Node) float64 {
	if n.Op == program.Count {
		return float64(c.lengthOf(n.In[0]))
	}
	values := c.vectorOf(n.In[0])
	if n.Op == program.Largest || n.Op == program.Smallest {
		var r running
		if r.begin(n.Op); len(values) > 0 {
			r.take(values)
		}
		return r.end()
	}
	sum := c.sumOf(n.Op, values)
	if n.Op == program.Mean && len(values) > 0 {
		sum /= float64(len(values))
	}
	return sum
}

// sumOf is a sum in which the order of the terms does not count.
func (c *call[I]) sumOf(op program.Op, values []float64) float64 {
	b := c.measure(op, values)
	b.check(op, values)
	if !b.scale(int64(len(values))) {
		return 0
	}
	var upper, lower atomic.Int64
	c.ranges(int64(len(values)), func(_ *worker, lo, hi int64) {
		q1, q2 := b.sums(values[lo:hi])
		upper.Add(q1)
		lower.Add(q2)
	})
	return b.value(upper.Load(), lower.Load())
}

// bins cut values into two integers below the largest of all, which add up exactly.
type bins struct {
	largest          uint64 // the bits of the largest size
	b, e             int
	plain            bool    // the powers of two are normal doubles:
	up, down, second float64 // 2^(b-e), 2^(e-b), 2^(2b-e)
	last             float64 // 2^(e-2b)
}

// measure finds the largest size.
func (c *call[I]) measure(op program.Op, values []float64) bins {
	var largest atomic.Uint64
	c.ranges(int64(len(values)), func(_ *worker, lo, hi int64) { raise(&largest, values[lo:hi]) })
	return bins{largest: largest.Load()}
}

// measured is the values of a matrix in an array, and what measure finds; the matrix has its rows then.
func (c *call[I]) measured(i int) ([]float64, bins) {
	e := c.edgesOf(i)
	to := take[float64](&c.arena, e.count())
	var largest atomic.Uint64
	c.rowsBeside(e, func(w *worker, lo, hi int64) {
		ev := evaluatorOf[I](w, c)
		for ; lo < hi; lo += tileEdges {
			part := to[lo:min(hi, lo+tileEdges)]
			ev.fill(i, ev.begin(e, lo, int64(len(part))), part)
			raise(&largest, part)
		}
	})
	return to, bins{largest: largest.Load()}
}

func raise(largest *atomic.Uint64, values []float64) {
	most := lanes.Largest(values)
	for old := largest.Load(); most > old && !largest.CompareAndSwap(old, most); old = largest.Load() {
	}
}

// check refuses values that are not finite.
func (b *bins) check(op program.Op, values []float64) {
	if b.largest < math.Float64bits(math.Inf(1)) {
		return
	}
	for _, x := range values {
		if x-x != 0 {
			fail(request.ErrValue, "%s: expected finite values, got %s", op, program.ValueText(x))
		}
	}
}

// scale finds the powers for a number of terms; false: all of them are 0.
func (b *bins) scale(terms int64) bool {
	if b.largest == 0 {
		return false
	}
	_, b.e = math.Frexp(math.Float64frombits(b.largest))
	b.b = 62 - bits.Len64(uint64(terms))
	if b.plain = b.e > -700 && b.e < 700; b.plain {
		b.up, b.down = math.Ldexp(1, b.b-b.e), math.Ldexp(1, b.e-b.b)
		b.second, b.last = math.Ldexp(1, 2*b.b-b.e), math.Ldexp(1, b.e-2*b.b)
	}
	return true
}

// parts are the integers of a term. A number that is too small for a normal double becomes 0 in any
// case.
func (b *bins) parts(x float64) (q1, q2 int64) {
	if b.plain {
		q1 = int64(x * b.up)
		return q1, int64((x - float64(float64(q1)*b.down)) * b.second)
	}
	q1 = int64(math.Ldexp(x, b.b-b.e))
	return q1, int64(math.Ldexp(x-math.Ldexp(float64(q1), b.e-b.b), 2*b.b-b.e))
}

// value returns the number that sums of parts represent.
func (b *bins) value(q1, q2 int64) float64 {
	if b.plain {
		return float64(float64(q1)*b.down) + float64(float64(q2)*b.last)
	}
	return math.Ldexp(float64(q1), b.e-b.b) + math.Ldexp(float64(q2), b.e-2*b.b)
}

// valuesOf is value of the parts of many sums, each time both of one.
func (b *bins) valuesOf(parts []int64, to []float64) {
	if !b.plain {
		for k := range to {
			to[k] = b.value(parts[2*k], parts[2*k+1])
		}
		return
	}
	lanes.Values(parts, [2]float64{b.down, b.last}, to)
}

// sums returns the sums of the parts of values.
func (b *bins) sums(values []float64) (first, second int64) {
	if b.plain {
		return lanes.Sums(values, [3]float64{b.up, b.down, b.second})
	}
	for _, x := range values {
		q1, q2 := b.parts(x)
		first += q1
		second += q2
	}
	return first, second
}

// addTo adds the parts of values to those of their rows.
func addTo[I csc.Index](b *bins, parts []int64, values []float64, rows []I) {
	rows = rows[:len(values)]
	if b.plain { // parts, written out: the compiler keeps what it reads
		up, down, second := b.up, b.down, b.second
		for k, x := range values {
			q1 := int64(x * up)
			row := parts[2*rows[k]:][:2]
			row[0] += q1
			row[1] += int64((x - float64(float64(q1)*down)) * second)
		}
		return
	}
	for k, x := range values {
		q1, q2 := b.parts(x)
		row := parts[2*rows[k]:][:2]
		row[0] += q1
		row[1] += q2
	}
}

// lengthOf returns the length of a vector.
func (c *call[I]) lengthOf(i int) int64 {
	if along := c.Nodes[i].Type.Along; along.Space != program.All {
		return int64(len(c.listAlong(along).ids))
	}
	return c.Relation.NumNodes
}

// listAlong returns the list that a vector runs along.
func (c *call[I]) listAlong(along program.Along) *list[I] {
	switch along.Space {
	case program.All:
		return c.wholeEdges().columns
	case program.Columns:
		return c.values[along.Node].edges.columns
	case program.Rows:
		return c.rowsOf(c.values[along.Node].edges).rows
	}
	return c.values[along.Node].list
}

// vectorOf is a vector in an array.
func (c *call[I]) vectorOf(i int) []float64 {
	if v := &c.values[i]; v.made {
		return v.vector
	}
	n := c.lengthOf(i)
	to := take[float64](&c.arena, n)
	var ids []I
	if along := c.Nodes[i].Type.Along; along.Space != program.All {
		ids = c.listAlong(along).ids
	}
	c.ranges(n, func(w *worker, lo, hi int64) {
		ev := evaluatorOf[I](w, c)
		for ; lo < hi; lo += tileEdges {
			end := min(hi, lo+tileEdges)
			s := span[I]{n: end - lo, lo: lo}
			if ids != nil {
				s.ids = ids[lo:end]
			}
			ev.begin(nil, 0, 0)
			ev.vector(i, s, to[lo:end])
		}
	})
	return to
}

// makeVector computes a vector, unless it is over all graph nodes and its elements are computed on
// the fly.
func (c *call[I]) makeVector(i int) {
	n, v := &c.Nodes[i], &c.values[i]
	switch n.Op {
	case program.Sum, program.Mean, program.Largest, program.Smallest, program.Count:
		if n.Axis == 0 {
			v.vector = c.reduceColumns(n)
		} else {
			v.vector = c.reduceRows(n)
		}
	case program.Times:
		v.vector = c.times(n)
	case program.Gather:
		if !c.Inherits(n) {
			c.makeElements(i)
			return
		}
		v.vector = c.inherited(n)
	case program.IsIn:
		v.vector = c.isIn(n)
	case program.Cap:
		v.vector = c.capped(n)
	case program.Labor:
		v.vector = c.labor(n)
	case program.Level:
		v.vector = c.level(n)
	default:
		c.makeElements(i)
		return
	}
	v.made = true
}

// makeElements is makeVector for vectors that are computed element by element.
func (c *call[I]) makeElements(i int) {
	n, v := &c.Nodes[i], &c.values[i]
	if n.Inline {
		c.listAlong(n.Type.Along) // by one worker, before several ask for it
		return
	}
	if n.Type.Along.Space == program.All && !n.Once && c.layoutOf(i) != program.Other && c.work(i) < mostWork {
		return
	}
	v.vector, v.made = c.vectorOf(i), true
}

// inherited returns the elements of rows among those of the edges that they were chosen from: each
// by its first edge.
func (c *call[I]) inherited(n *program.Node) []float64 {
	along, e := c.Nodes[n.In[0]].Type.Along, c.rowsOf(c.values[n.Type.Along.Node].edges)
	c.listAlong(along)
	of, to, next := c.vectorOf(n.In[0]), take[float64](&c.arena, int64(len(e.rows.ids))), 0
	ev := evaluatorOf[I](c.worker(0), c)
	for lo := int64(0); lo < e.count() && next < len(to); lo += tileEdges {
		if lo%claimed == 0 {
			c.check()
		}
		t := ev.begin(e, lo, min(tileEdges, e.count()-lo))
		for k, at := range ev.rowsAlong(t, along) {
			if int(e.local[lo+int64(k)]) == next {
				to[next] = of[at]
				next++
			}
		}
	}
	return to
}

// mostWork is the maximal number of operators of a value that is not stored: a value with two
// readers is computed twice.
const mostWork = 256

// work is about how many operators make one element of a node.
func (c *call[I]) work(i int) int {
	sum := 1
	for _, in := range c.Nodes[i].In {
		if kind := c.Nodes[in].Type.Kind; !c.values[in].made && (kind == program.Vector || kind == program.Matrix) && sum < mostWork {
			sum += c.work(in)
		}
	}
	return sum
}

// makeScalar makes a scalar.
func (c *call[I]) makeScalar(i int) float64 {
	n := &c.Nodes[i]
	switch n.Op {
	case program.Const:
		return n.Value
	case program.Item:
		return float64(n.Tensor.Data[n.K])
	case program.Sum, program.Mean, program.Largest, program.Smallest, program.Count:
		return c.reduceVector(n)
	}
	ev := evaluatorOf[I](c.worker(0), c)
	ev.begin(nil, 0, 0)
	var to [1]float64
	ev.mapped(n, to[:], func(in int, buffer []float64) []float64 {
		buffer[0] = c.values[in].scalar
		return buffer
	})
	return to[0]
}

// capped is chances in the ratio of a vector's elements, of which k is the sum.
func (c *call[I]) capped(n *program.Node) []float64 {
	v := c.vectorOf(n.In[0])
	c.chances("cap", v, func(i int) I { return c.listAlong(c.Nodes[n.In[0]].Type.Along).ids[i] })
	to, rest := take[float64](&c.arena, int64(len(v))), take[float64](&c.arena, int64(len(v)))
	positive, k := int64(0), n.K
	for i, x := range v {
		to[i] = truth(x > 0)
		if x > 0 {
			positive++
		}
	}
	if positive <= k {
		return to
	}
	copy(rest, v)
	full := int64(0)
	factor := 0.0
	for {
		factor = float64(k-full) / c.sumOf(n.Op, rest)
		more := int64(0)
		for i, x := range rest {
			if factor*x >= 1 {
				rest[i] = 0
				more++
			}
		}
		if more == 0 {
			break
		}
		full += more
		c.check()
	}
	for i, x := range v {
		switch {
		case x == 0:
			to[i] = 0
		case rest[i] != 0:
			to[i] = factor * x
		}
	}
	return to
}
