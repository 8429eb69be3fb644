package csc

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// mostRows bounds the rows of one Advance, so that rows without edges end one too.
const mostRows = 1 << 23

// Degrees counts the degrees of a graph, some edges at a time, so that the caller can stop in
// between. It borrows the graph and keeps a counter for each node; one goroutine at a time may use
// it. The zero value is of no use.
type Degrees struct {
	relation *Relation
	parallel bool // whether to count parallel edges, which sorts each row
	pages    *memory.Pages
	out32    []uint32 // out-degrees; nil where a count may not fit
	out64    []uint64
	row      int64 // rows before it are counted
	loops    atomic.Int64
	repeats  atomic.Int64
	changed  atomic.Bool
}

// Spread is the distribution of the degrees of all nodes; quantiles are those of the nearest rank.
type Spread struct {
	Min    int64 `json:"min"`
	Median int64 `json:"median"`
	P99    int64 `json:"p99"`
	Max    int64 `json:"max"`
	Zero   int64 `json:"zero"`
	// Counts holds pairs (degree, number of nodes with it), by degree.
	Counts [][2]int64 `json:"counts"`
}

// Profile is the result of Degrees. Parallel is the number of edges that repeat an earlier edge of
// their row, -1 if they were not counted.
type Profile struct {
	In       Spread `json:"in"`
	Out      Spread `json:"out"`
	Isolated int64  `json:"isolated"`
	Loops    int64  `json:"self_loops"`
	Parallel int64  `json:"parallel_edges"`
}

// NewDegrees allocates the counters: 4 bytes for each node, or 8 for 2^32 edges and more.
func NewDegrees(g *Relation, parallel bool) (*Degrees, error) {
	width := int64(4)
	if g.NumEdges() >= 1<<32 {
		width = 8
	}
	if err := memory.Affordable(g.NumNodes * width); err != nil {
		return nil, err
	}
	pages, err := memory.Map(g.NumNodes * width)
	if err != nil {
		return nil, err
	}
	d := &Degrees{relation: g, parallel: parallel, pages: pages}
	if width == 4 {
		d.out32 = memory.Slice[uint32](pages, g.NumNodes)
	} else {
		d.out64 = memory.Slice[uint64](pages, g.NumNodes)
	}
	return d, nil
}

// Free releases the counters; the object must not be used after it.
func (d *Degrees) Free() {
	d.out32, d.out64 = nil, nil
	d.pages.Free()
}

// Out writes the out-degrees counted so far, one for each node.
func (d *Degrees) Out(to []int64) {
	for v, n := range d.out32 {
		to[v] = int64(n)
	}
	for v, n := range d.out64 {
		to[v] = int64(n)
	}
}

// Advance counts whole rows with about edges edges, on all cores, and returns the number of rows
// counted so far.
func (d *Degrees) Advance(edges int64) (row int64, err error) {
	g := d.relation
	first, rows := d.row, g.NumRows()
	last := min(d.rowOf(g.Indptr.Element(first)+max(edges, 1)), first+mostRows, rows)
	last = max(last, min(first+1, rows))
	if g.Indices.Bits == 32 {
		err = count(d, g.Indices.I32, first, last)
	} else {
		err = count(d, g.Indices.I64, first, last)
	}
	if err != nil {
		return 0, err
	}
	if d.changed.Load() {
		return 0, valueError("graph: expected offsets and ids in range, got others: a damaged file, or arrays that have changed")
	}
	d.row = last
	return last, nil
}

// rowOf is the row of the edge at a position, or the number of rows past the end.
func (d *Degrees) rowOf(position int64) int64 {
	rows := d.relation.NumRows()
	return int64(sort.Search(int(rows), func(r int) bool { return d.relation.Indptr.Element(int64(r)+1) > position }))
}

func count[T Index](d *Degrees, indices []T, first, last int64) error {
	g := d.relation
	lo, hi := g.Indptr.Element(first), g.Indptr.Element(last)
	if lo < 0 || hi < lo || hi > int64(len(indices)) {
		d.changed.Store(true)
		return nil
	}
	Parallel(lo, hi, func(lo, hi int64) { addSources(d, indices[lo:hi]) })
	if d.parallel {
		// Each core copies the row that it sorts.
		longest := int64(0)
		for v := first; v < last; v++ {
			longest = max(longest, g.Indptr.Element(v+1)-g.Indptr.Element(v))
		}
		if err := memory.Affordable(2 * longest * int64(g.Indices.Bits/8)); err != nil {
			return err
		}
	}
	// Parts have equal numbers of edges: a part of as many rows could hold every hub.
	Parallel(lo, hi, func(from, to int64) {
		start, end := first, last
		if from > lo {
			start = min(max(d.rowOf(from), first), last)
		}
		if to < hi {
			end = min(max(d.rowOf(to), first), last)
		}
		countRows(d, indices, start, end)
	})
	return nil
}

// addSources adds edges to the out-degrees.
func addSources[T Index](d *Degrees, sources []T) {
	if d.out32 != nil {
		for _, u := range sources {
			if uint64(int64(u)) >= uint64(len(d.out32)) {
				d.changed.Store(true)
				return
			}
			atomic.AddUint32(&d.out32[u], 1)
		}
		return
	}
	for _, u := range sources {
		if uint64(int64(u)) >= uint64(len(d.out64)) {
			d.changed.Store(true)
			return
		}
		atomic.AddUint64(&d.out64[u], 1)
	}
}

// countRows looks at rows as wholes: the self loops, and the parallel edges.
func countRows[T Index](d *Degrees, indices []T, first, last int64) {
	var loops, repeats int64
	var scratch []T
	for v := first; v < last; v++ {
		lo, hi := d.relation.Indptr.Element(v), d.relation.Indptr.Element(v+1)
		if lo < 0 || hi < lo || hi > int64(len(indices)) {
			d.changed.Store(true)
			return
		}
		row := indices[lo:hi]
		for _, u := range row {
			if int64(u) == v {
				loops++
			}
		}
		if !d.parallel || len(row) < 2 {
			continue
		}
		if !slices.IsSorted(row) {
			scratch = append(scratch[:0], row...)
			slices.Sort(scratch)
			row = scratch
		}
		for i := 1; i < len(row); i++ {
			if row[i] == row[i-1] {
				repeats++
			}
		}
	}
	d.loops.Add(loops)
	d.repeats.Add(repeats)
}

// Profile returns the result once Advance has counted all edges.
func (d *Degrees) Profile() Profile {
	rows := d.relation.NumRows()
	indegree := func(v int64) int64 {
		if v >= rows {
			return 0
		}
		return d.relation.Indptr.Element(v+1) - d.relation.Indptr.Element(v)
	}
	outdegree := func(v int64) int64 { return int64(d.out32[v]) }
	if d.out64 != nil {
		outdegree = func(v int64) int64 { return int64(d.out64[v]) }
	}
	var isolated atomic.Int64
	Parallel(0, d.relation.NumNodes, func(lo, hi int64) {
		n := int64(0)
		for v := lo; v < hi; v++ {
			if outdegree(v) == 0 && indegree(v) == 0 {
				n++
			}
		}
		isolated.Add(n)
	})
	p := Profile{
		In:       spread(d.relation.NumNodes, indegree),
		Out:      spread(d.relation.NumNodes, outdegree),
		Isolated: isolated.Load(),
		Loops:    d.loops.Load(),
		Parallel: -1,
	}
	if d.parallel {
		p.Parallel = d.repeats.Load()
	}
	return p
}

// spread counts equal degrees: small ones in an array, and the few large ones by name.
func spread(nodes int64, degree func(v int64) int64) Spread {
	const small = 1 << 12
	var mu sync.Mutex
	total := make([]int64, small)
	large := map[int64]int64{}
	Parallel(0, nodes, func(lo, hi int64) {
		counts := make([]int64, small)
		hubs := map[int64]int64{}
		for v := lo; v < hi; v++ {
			// Negative only where a caller changed the arrays meanwhile.
			if k := max(degree(v), 0); k < small {
				counts[k]++
			} else {
				hubs[k]++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for k, n := range counts {
			total[k] += n
		}
		for k, n := range hubs {
			large[k] += n
		}
	})
	s := Spread{Zero: total[0], Counts: [][2]int64{}}
	for k, n := range total {
		if n > 0 {
			s.Counts = append(s.Counts, [2]int64{int64(k), n})
		}
	}
	hubs := len(s.Counts)
	for k, n := range large {
		s.Counts = append(s.Counts, [2]int64{k, n})
	}
	slices.SortFunc(s.Counts[hubs:], func(a, b [2]int64) int { return int(a[0] - b[0]) })
	if len(s.Counts) == 0 {
		return s
	}
	s.Min, s.Max = s.Counts[0][0], s.Counts[len(s.Counts)-1][0]
	s.Median, s.P99 = rank(s.Counts, (nodes+1)/2), rank(s.Counts, nodes-nodes/100)
	return s
}

// rank is the degree of the n-th node, from 1, in the order of the degrees.
func rank(counts [][2]int64, n int64) int64 {
	for _, c := range counts {
		if n -= c[1]; n <= 0 {
			return c[0]
		}
	}
	return counts[len(counts)-1][0]
}
