package cpu

import (
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// ChosenRows are the rows of a batch whose edges were chosen before its nodes are numbered, in any
// order.
type ChosenRows interface {
	// Place returns where in the positions the row of a node at a hop begins, and its edges.
	Place(node int64, hop int) (first, take int64)
	// Positions returns the CSC positions of the edges of all rows.
	Positions() []int64
}

// SampleChosen is Sample of rows that choose has chosen, each by Batch.Choose; the result is equal.
// Edge weights, times, partitions, a bound on the edges of a hop, and Request.Draw are not heeded.
func SampleChosen(req *Request, crew Crew, stop *atomic.Bool, choose func(*Batch) (ChosenRows, error)) (m memory.Memory, err error) {
	defer recovered(&err)
	if req.Relation.Indices.Bits == 32 {
		return sampleHops(req, crew, stop, func(s *sampling[int32]) (rows[int32], error) { return s.chosen(choose) })
	}
	return sampleHops(req, crew, stop, func(s *sampling[int64]) (rows[int64], error) { return s.chosen(choose) })
}

// Batch is a batch of SampleChosen whose rows are being chosen.
type Batch struct {
	*Request
	Seeds   []int64      // the distinct ones, in the order of their numbers
	Stop    *atomic.Bool // set where nobody waits for the batch any more
	HasMap  bool         // a map of all nodes is within MapBytes
	team    *team
	streams []rng.Stream // of each hop
}

// Run has f executed by every worker of the batch, and waits for them. A panic becomes an error.
func (b *Batch) Run(f func()) error { return b.team.run(func(int) { f() }) }

// RowEdges is the edges of a node that a hop chooses from, of which it takes so many.
type RowEdges struct {
	node, start, degree int64
	hop                 int
	Take                int64
}

// EdgesOf returns the row of a node at a hop.
func (b *Batch) EdgesOf(node int64, hop int) RowEdges {
	start, degree := b.row(node)
	return RowEdges{node, start, degree, hop, b.Rule(hop).Take(degree)}
}

// Choose fills positions, RowEdges.Take of them, with the CSC positions of the edges that a row takes.
func (b *Batch) Choose(c *rng.Chooser, positions []int64, r RowEdges) {
	rule := b.Rule(r.hop)
	b.choose(c, positions, r.node, b.streams[r.hop].State(uint64(r.node)), r.start, r.degree, rule, 0, rule.TakesAll(r.degree), nil)
}

// row is where the edges of v begin and how many of them are not excluded.
func (r *Request) row(v int64) (start, degree int64) {
	if v >= r.Relation.NumRows() {
		return 0, 0
	}
	start, end := r.Relation.Indptr.Element(v), r.Relation.Indptr.Element(v+1)
	checkRow(v, start, end, r.Relation.NumEdges())
	return start, end - start - int64(len(r.Exclude.Offsets(v)))
}

// chosenRows are ChosenRows, by their places in the positions.
type chosenRows[I csc.Index] struct {
	*sampling[I]
	rows      ChosenRows
	positions []int64
}

func (s *sampling[I]) chosen(choose func(*Batch) (ChosenRows, error)) (rows[I], error) {
	b := &Batch{Request: s.Request, Stop: s.stop, HasMap: s.numbers != hashed, team: s.team, streams: make([]rng.Stream, len(s.Fanouts))}
	for _, v := range s.nodes()[:s.n] {
		b.Seeds = append(b.Seeds, int64(v))
	}
	for hop := range b.streams {
		b.streams[hop] = rng.NewStream(s.Seed, s.Epoch, s.Number, uint8(hop), rng.Neighbors)
	}
	rows, err := choose(b)
	if err != nil {
		return nil, err
	}
	return &chosenRows[I]{s, rows, rows.Positions()}, nil
}

// count takes the places of the rows for where they begin.
func (c *chosenRows[I]) count(frontier []I, lo, hi int64, hop int) (edges int64) {
	for i, v := range frontier[lo:hi] {
		first, take := c.rows.Place(int64(v), hop)
		c.starts[lo+int64(i)], c.degrees[lo+int64(i)] = first, take
		edges += take
	}
	return edges
}

func (c *chosenRows[I]) draw(_ *worker, _ rng.Stream, _ []I, lo, hi, at int64, _ int, b block[I]) {
	for i := lo; i < hi; i++ {
		b.indptr[i] = I(at)
		gather(c.Relation, c.positions[c.starts[i]:c.starts[i]+c.degrees[i]], at, b)
		at += c.degrees[i]
	}
}
