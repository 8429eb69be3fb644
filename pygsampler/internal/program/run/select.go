package run

import (
	"math"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/lanes"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// selection is the working memory for a choice of edges; one goroutine uses it.
type selection struct {
	chooser rng.Chooser
	values  [tileEdges]float64
	states  [tileEdges]uint64
	draws   [tileEdges]uint64
	places  [tileEdges]int64
	p       []float64
	keys    []uint64
	order   []uint64
	at      []int32
	chosen  []float64
	sums    []uint64
	kept    []bool
}

// sized returns a with length n, in new memory only if a is too short; its old contents are lost
// then.
func sized[T any](a *[]T, n int) []T {
	if cap(*a) < n {
		*a = make([]T, n, n+n/4)
	}
	return (*a)[:n]
}

// uniform draws edges of each column uniformly, like PGSampler.
func (c *call[I]) uniform(n *program.Node) *edges[I] {
	p, rule := c.edgesOf(n.In[0]), request.Rule{Fanout: n.K, Replace: n.Replace}
	e := &edges[I]{parent: p, columns: p.columns, indptr: take[int64](&c.arena, int64(len(p.indptr)))}
	at := int64(0)
	for col := range len(p.indptr) - 1 {
		e.indptr[col] = at
		if at += rule.Take(p.indptr[col+1] - p.indptr[col]); at > math.MaxInt64/64 {
			panic(failure{memory.ErrNoMemory})
		}
	}
	e.indptr[len(p.indptr)-1] = at
	from := take[int64](&c.arena, at)
	stream := c.stream(n.Site, rng.Neighbors)
	c.columnsIn(e, func(w *worker, _, first, end int64) {
		for ; first < end; first += tileEdges {
			stop := min(end, first+tileEdges)
			states := w.states[:stop-first]
			for k, v := range e.columns.ids[first:stop] {
				states[k] = uint64(v)
			}
			stream.States(states)
			for k, state := range states {
				col := first + int64(k)
				start, degree := p.indptr[col], p.indptr[col+1]-p.indptr[col]
				row := from[e.indptr[col]:e.indptr[col+1]]
				switch {
				case rule.TakesAll(degree):
					for j := range row {
						row[j] = int64(j)
					}
				case n.Replace:
					rng.Repeated(row, state, degree)
				case len(row) > 0:
					w.chooser.Distinct(row, state, degree)
				}
				for j := range row {
					row[j] += start
				}
			}
		}
	})
	return c.placed(e, from)
}

// placed gives chosen edges their places in the CSC, of which of the parent's they are.
func (c *call[I]) placed(e *edges[I], from []int64) *edges[I] {
	p := e.parent
	switch {
	case !p.ranged:
		e.from, e.places = from, take[int64](&c.arena, int64(len(from)))
		c.ranges(int64(len(from)), func(_ *worker, lo, hi int64) {
			places := e.places[lo:hi]
			for k, edge := range from[lo:hi] {
				places[k] = p.places[edge]
			}
		})
	case p.shift == nil:
		e.places = from
	default:
		e.places = from
		c.columnsIn(e, func(_ *worker, _, first, end int64) {
			for ; first < end; first++ {
				row, shift := from[e.indptr[first]:e.indptr[first+1]], p.shift[first]
				for k := range row {
					row[k] += shift
				}
			}
		})
	}
	return e
}

// packed collects edges of a matrix that are chosen column by column: room returns the space of
// each column, and choose writes the edges of some columns, one after another, and the number of
// each column.
func (c *call[I]) packed(p *edges[I], room []int64, choose func(w *worker, first, end int64, from, counts []int64) int64) *edges[I] {
	columns := int64(len(p.indptr)) - 1
	e := &edges[I]{parent: p, columns: p.columns, indptr: take[int64](&c.arena, columns+1)}
	from := take[int64](&c.arena, room[columns])
	type part struct{ at, n int64 }
	parts := make([]part, c.columnUnits(p))
	c.columnsIn(p, func(w *worker, unit, first, end int64) {
		parts[unit] = part{room[first], choose(w, first, end, from[room[first]:room[end]], e.indptr[first:end])}
	})
	at := int64(0)
	for _, of := range parts {
		copy(from[at:], from[of.at:of.at+of.n])
		at += of.n
	}
	sum := int64(0)
	for col, n := range e.indptr[:columns] {
		e.indptr[col] = sum
		sum += n
	}
	e.indptr[columns] = sum
	return c.placed(e, from[:at])
}

// parts passes the values of a matrix in some of its columns to part, tile by tile: each call has
// values of one column.
func (c *call[I]) parts(w *worker, i int, first, end int64, part func(col, lo int64, values []float64)) {
	e, ev, col := c.edgesOf(i), evaluatorOf[I](w, c), first
	for lo, hi := e.indptr[first], e.indptr[end]; lo < hi; lo += tileEdges {
		values := w.values[:min(hi-lo, tileEdges)]
		ev.fill(i, ev.begin(e, lo, int64(len(values))), values)
		for k := int64(0); k < int64(len(values)); {
			for e.indptr[col+1] <= lo+k {
				col++
			}
			stop := min(e.indptr[col+1]-lo, int64(len(values)))
			part(col, lo+k, values[k:stop])
			k = stop
		}
	}
}

// filter is the edges whose value of a mask is not 0.
func (c *call[I]) filter(n *program.Node) *edges[I] {
	p := c.edgesOf(n.In[0])
	return c.packed(p, p.indptr, func(w *worker, first, end int64, from, counts []int64) (at int64) {
		clear(counts)
		c.parts(w, n.In[1], first, end, func(col, lo int64, values []float64) {
			before := at
			for k, x := range values {
				from[at] = lo + int64(k)
				at += int64(mask(x != 0) & 1)
			}
			counts[col-first] += at - before
		})
		return at
	})
}

// unitValues are the values of a matrix in some of its columns.
func (c *call[I]) unitValues(w *worker, i int, first, end int64) []float64 {
	e := c.edgesOf(i)
	lo, hi := e.indptr[first], e.indptr[end]
	if m := c.values[i].matrix; m != nil {
		return m[lo:hi]
	}
	p, ev := sized(&w.p, int(hi-lo)), evaluatorOf[I](w, c)
	for at := int64(0); at < int64(len(p)); at += tileEdges {
		part := p[at:min(at+tileEdges, int64(len(p)))]
		ev.fill(i, ev.begin(e, lo+at, int64(len(part))), part)
	}
	return p
}

// byColumn is packed for those that choose at most most(degree) of a column's values.
func (c *call[I]) byColumn(n *program.Node, most func(degree int64) int64, choose func(w *worker, col int64, values []float64, to []int64) int64) *edges[I] {
	p := c.edgesOf(n.In[0])
	room := take[int64](&c.arena, int64(len(p.indptr)))
	at := int64(0)
	for col := range len(p.indptr) - 1 {
		room[col] = at
		if at += most(p.indptr[col+1] - p.indptr[col]); at > math.MaxInt64/64 {
			panic(failure{memory.ErrNoMemory})
		}
	}
	room[len(p.indptr)-1] = at
	return c.packed(p, room, func(w *worker, first, end int64, from, counts []int64) (at int64) {
		values := c.unitValues(w, n.In[1], first, end)
		for col := first; col < end; col++ {
			lo := p.indptr[col]
			chosen := choose(w, col, values[lo-p.indptr[first]:p.indptr[col+1]-p.indptr[first]], from[at:room[col+1]-room[first]])
			for k := range from[at : at+chosen] {
				from[at+int64(k)] += lo
			}
			counts[col-first] = chosen
			at += chosen
		}
		return at
	})
}

// weighted draws edges of each column by values.
func (c *call[I]) weighted(n *program.Node) *edges[I] {
	e, stream := c.edgesOf(n.In[0]), c.stream(n.Site, rng.Neighbors)
	return c.byColumn(n, func(degree int64) int64 {
		if n.Replace && n.K >= 0 && degree > 0 {
			return n.K
		}
		return request.Rule{Fanout: n.K}.Take(degree)
	}, func(w *worker, col int64, values []float64, to []int64) int64 {
		candidates := sized(&w.at, len(values))
		positive := int64(0)
		wrong := uint64(0)
		for j, x := range values {
			candidates[positive] = int32(j)
			positive += int64(mask(x > 0) & 1)
			wrong |= mask(!(x >= 0 && x <= math.MaxFloat64))
		}
		v := uint64(e.columns.ids[col])
		if wrong != 0 {
			for _, x := range values {
				checkChance("individual_sample", x, int64(v))
			}
		}
		candidates = candidates[:positive]
		switch {
		case positive == 0:
			return 0
		case n.K < 0 || !n.Replace && positive <= n.K:
			for k, j := range candidates {
				to[k] = int64(j)
			}
			return positive
		case n.K == 0:
			return 0
		case n.Replace:
			w.repeated(values, candidates, stream.State(v), to[:n.K])
			return n.K
		}
		w.race(values, candidates, stream.State(v), to[:n.K])
		return n.K
	})
}

// checkChance refuses what nothing can be drawn by.
func checkChance(op string, x float64, v int64) {
	if !(x >= 0 && x <= math.MaxFloat64) {
		fail(request.ErrValue, "%s: expected probabilities that are finite and >= 0, got %s for node %d", op, program.ValueText(x), v)
	}
}

// race chooses the candidates with the smallest keys, in their order; equal ones: the first.
func (s *selection) race(p []float64, candidates []int32, state uint64, to []int64) {
	// The keys have a loop of their own: no branch depends on one, so they overlap.
	keys := sized(&s.keys, len(candidates))
	for k, j := range candidates {
		keys[k] = raceKey(rng.Draw(state, int(j)), p[j])
	}
	s.keep(keys, len(to), func(at, k int) { to[at] = int64(candidates[k]) })
}

// insertedKeys is the number of smallest keys up to which they are held in order, instead of found
// by a selection over all.
const insertedKeys = 16

// keep passes the n smallest keys in their order to chosen; among equal ones the first.
func (s *selection) keep(keys []uint64, n int, chosen func(at, k int)) {
	var last uint64
	if n <= insertedKeys {
		last = kthOfFew(keys, n-1)
	} else {
		order := sized(&s.order, len(keys))
		copy(order, keys)
		last = kth(order, n-1)
	}
	equal := n
	for _, key := range keys {
		equal -= int(mask(key < last) & 1)
	}
	at := 0
	for k, key := range keys {
		if key > last || key == last && equal == 0 {
			continue
		}
		if key == last {
			equal--
		}
		chosen(at, k)
		at++
	}
}

// kthOfFew is kth for a small k; it leaves a as it is.
func kthOfFew(a []uint64, k int) uint64 {
	var few [insertedKeys]uint64
	for i := range few[:k+1] {
		few[i] = math.MaxUint64
	}
	last := uint64(math.MaxUint64)
	for _, key := range a {
		if key >= last {
			continue
		}
		i := k
		for ; i > 0 && few[(i-1)&(insertedKeys-1)] > key; i-- {
			few[i&(insertedKeys-1)] = few[(i-1)&(insertedKeys-1)]
		}
		few[i&(insertedKeys-1)] = key
		last = few[k&(insertedKeys-1)]
	}
	return last
}

// tooLate reports whether the key of a draw and a weight is certainly above a bound, without a
// logarithm: -log(u) is at least 1 - u, and its error is far below the bound's slack.
func tooLate(x uint64, weight, bound float64) bool {
	return float64(1<<53-(x>>12<<1|1))*0x1p-53 > float64(bound*weight)
}

// ratioAbove is a bound of the quotients whose keys are at most this one.
func ratioAbove(key uint64) float64 {
	const fraction = 1<<52 - 1
	exponent := int(key>>52) - 2048
	return math.Ldexp(math.Float64frombits(key&fraction|1023<<52)*(1+0x1p-40), max(exponent, -1000))
}

// repeated draws candidates by their weights, as often as to has elements.
func (s *selection) repeated(p []float64, candidates []int32, state uint64, to []int64) {
	chosen, sums := sized(&s.chosen, len(candidates)), sized(&s.sums, len(candidates))
	for k, j := range candidates {
		chosen[k] = p[j]
	}
	weights.Sums(chosen, sums)
	for k := range to {
		to[k] = int64(candidates[partOf(sums, rng.Draw(state, k))])
	}
}

// partOf is the element in whose part of all a draw falls.
func partOf(sums []uint64, draw uint64) int {
	x := rng.Below(draw, sums[len(sums)-1])
	return sort.Search(len(sums), func(i int) bool { return sums[i] > x })
}

// raceKey returns an exponential variate over a weight, in a form in which no scale of weights
// overflows: the smallest keys belong to the elements whose events, with their weights as rates,
// come first.
func raceKey(x uint64, weight float64) uint64 {
	const one, fraction = 1023 << 52, 1<<52 - 1
	a, b, k := math.Float64bits(rng.Exponential(x)), math.Float64bits(weight), uint64(1025)
	if b <= fraction {
		b = math.Float64bits(weight * 0x1p54)
		k += 54
	}
	// The quotient of both fractions is in (1/2, 2): its exponent is one less if it is less than 1.
	r := math.Float64frombits(a&fraction|one) / math.Float64frombits(b&fraction|one)
	return math.Float64bits(r) + (a>>52-b>>52+k)<<52
}

// kth is element k in ascending order; a is put into another order.
func kth(a []uint64, k int) uint64 {
	for rounds := 0; len(a) > 24; rounds++ {
		if rounds > 64 {
			break
		}
		x, y, z := a[len(a)/8], a[len(a)/2], a[len(a)-1-len(a)/8]
		pivot := max(min(x, y), min(max(x, y), z))
		i, j := 0, len(a)-1
		for i <= j {
			for a[i] < pivot {
				i++
			}
			for a[j] > pivot {
				j--
			}
			if i <= j {
				a[i], a[j] = a[j], a[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			a = a[:j+1]
		case k >= i:
			a, k = a[i:], k-i
		default:
			return a[k]
		}
	}
	slices.Sort(a)
	return a[k]
}

// topK selects the edges of each column with the largest values.
func (c *call[I]) topK(n *program.Node) *edges[I] {
	return c.byColumn(n, request.Rule{Fanout: n.K}.Take, func(w *worker, _ int64, values []float64, to []int64) int64 {
		if n.K < 0 || int64(len(values)) <= n.K || n.K == 0 {
			for j := range to[:min(len(to), len(values))] {
				to[j] = int64(j)
			}
			return int64(min(len(to), len(values))) * int64(mask(n.K != 0)&1)
		}
		keys := sized(&w.keys, len(values))
		for j, x := range values {
			keys[j] = descending(x)
		}
		w.keep(keys, int(n.K), func(at, k int) { to[at] = int64(k) })
		return n.K
	})
}

// descending is a number that is the smaller the larger x is; NaN has the largest.
func descending(x float64) uint64 {
	if x != x {
		return math.MaxUint64
	}
	b := math.Float64bits(x + 0) // one zero
	if b>>63 != 0 {
		return b
	}
	return ^b &^ (1 << 63)
}

// rowValues is a vector's elements for the rows of a matrix.
func (c *call[I]) rowValues(i int, e *edges[I]) []float64 {
	along := c.Nodes[i].Type.Along
	rows := e.rows.ids
	if along == (program.Along{Space: program.Rows, Node: e.node}) || e.whole && along.Space == program.All {
		return c.vectorOf(i)
	}
	to := take[float64](&c.arena, int64(len(rows)))
	if along.Space == program.All {
		c.ranges(int64(len(rows)), func(w *worker, lo, hi int64) {
			ev := evaluatorOf[I](w, c)
			for ; lo < hi; lo += tileEdges {
				end := min(hi, lo+tileEdges)
				ev.begin(nil, 0, 0)
				ev.vector(i, span[I]{n: end - lo, lo: lo, ids: rows[lo:end]}, to[lo:end])
			}
		})
		return to
	}
	of, ev := c.values[i].vector, evaluatorOf[I](c.worker(0), c)
	for lo, count := int64(0), e.count(); lo < count; lo += tileEdges {
		t := ev.begin(e, lo, min(tileEdges, count-lo))
		for k, row := range ev.rowsAlong(t, along) {
			to[e.local[lo+int64(k)]] = of[row]
		}
	}
	return to
}

// collective selects the edges of a number of rows.
func (c *call[I]) collective(i int) *edges[I] {
	n := &c.Nodes[i]
	p := c.rowsOf(c.edgesOf(n.In[0]))
	rows := p.rows.ids
	var by []float64
	if len(n.In) > 1 {
		by = c.rowValues(n.In[1], p)
	} else {
		by = take[float64](&c.arena, int64(len(rows)))
		clear(by)
		for _, row := range p.local {
			by[row]++
		}
	}
	wrong, positive := c.signs(by)
	if wrong && p.all {
		// The first that edges meet is told, as where they number the rows.
		for _, row := range p.local {
			checkChance("collective_sample", by[row], int64(row))
		}
	}
	if wrong {
		c.refuse("collective_sample", by, func(i int) I { return rows[i] })
	}
	c.values[i].drawn = c.chosen(n, by, rows, "", positive)
	keep := take[uint64](&c.arena, int64(len(rows)+63)/64)
	clear(keep)
	for _, row := range c.values[i].drawn {
		keep[row>>6] |= 1 << (row & 63)
	}
	return c.packed(p, p.indptr, func(_ *worker, first, end int64, from, counts []int64) int64 {
		lo, hi := p.indptr[first], p.indptr[end]
		n, ok := lanes.Sift(p.local[lo:hi], keep, int64(len(rows)), lo, from, nil)
		if !ok {
			panic("an edge from a row that the matrix does not have")
		}
		at := int64(0)
		for col := first; col < end; col++ {
			before, next := at, p.indptr[col+1]
			for at < n && from[at] < next {
				at++
			}
			counts[col-first] = at - before
		}
		return n
	})
}

// times returns how often each row of the result of collective_sample was drawn.
func (c *call[I]) times(n *program.Node) []float64 {
	e := c.rowsOf(c.edgesOf(n.In[0]))
	p := c.Nodes[n.In[0]].Type.Edges
	of := take[float64](&c.arena, int64(len(c.values[p].edges.parent.rows.ids)))
	clear(of)
	for _, row := range c.values[p].drawn {
		of[row]++
	}
	to := take[float64](&c.arena, int64(len(e.rows.ids)))
	if e.was != nil {
		for row, before := range e.was {
			to[row] = of[before]
		}
		return to
	}
	ev := evaluatorOf[I](c.worker(0), c)
	for lo, count := int64(0), e.count(); lo < count; lo += tileEdges {
		t := ev.begin(e, lo, min(tileEdges, count-lo))
		for k, edge := range ev.from(t) {
			to[e.local[lo+int64(k)]] = of[e.parent.local[edge]]
		}
	}
	return to
}

// chances returns an error for elements that cannot be drawn by, naming the node that of returns,
// and reports whether all are positive.
func (c *call[I]) chances(op string, by []float64, of func(i int) I) bool {
	wrong, positive := c.signs(by)
	if wrong {
		c.refuse(op, by, of)
	}
	return positive
}

// refuse names the first element that cannot be drawn by.
func (c *call[I]) refuse(op string, by []float64, of func(i int) I) {
	for i, x := range by {
		checkChance(op, x, int64(of(i)))
	}
}

// signs reports whether there are such elements, and whether all are positive.
func (c *call[I]) signs(by []float64) (wrong, positive bool) {
	var bad, none atomic.Bool
	c.ranges(int64(len(by)), func(_ *worker, lo, hi int64) {
		if !lanes.Outside(by[lo:hi]) {
			return
		}
		none.Store(true)
		here := uint64(0)
		for _, x := range by[lo:hi] {
			here |= mask(!(x >= 0 && x <= math.MaxFloat64))
		}
		if here != 0 {
			bad.Store(true)
		}
	})
	return bad.Load(), !none.Load()
}
