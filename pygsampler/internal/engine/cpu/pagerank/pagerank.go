// Package pagerank finds the nodes around a root by personalized PageRank, in integers: the result
// is the same on every machine and for every number of threads.
package pagerank

import (
	"cmp"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/smallmap"
)

// One is the score 1: the scores of a root and its residuals sum to One.
const One = 1 << 60

// The least that may be asked for: below it what a push keeps is rounded to nothing.
const (
	MinAlpha   = 1e-3
	MinEpsilon = 1e-12
)

// Scores finds, for each root, the nodes where a walk from it ends most often. The walk goes
// against the edges and stops at each step with the probability Alpha, and at a node without
// in-edges. The caller sets the exported fields; any goroutine may halt it and read its progress.
type Scores struct {
	Relation  *csc.Relation // on the CPU, rows whole
	Roots     csc.Array
	Most      int64   // nodes of a root, itself among them, which is always there
	Alpha     float64 // in [MinAlpha, 1]
	Epsilon   float64 // in [MinEpsilon, 1]: a node is pushed where it holds so much for each in-edge
	Threshold float64 // in [0, 1]: the part of the best score of another node than the root that one must have

	stop atomic.Bool
	done atomic.Int64
}

// Scored is a node and its score, in units of One.
type Scored struct{ Vertex, Score int64 }

// Halt makes Run return csc.ErrStopped soon.
func (s *Scores) Halt() { s.stop.Store(true) }

// Progress returns the number of completed roots and of all roots.
func (s *Scores) Progress() (done, total int64) { return s.done.Load(), s.Roots.Len() }

func (s *Scores) check() error {
	switch {
	case s.Relation.Kinds > 0:
		return fmt.Errorf("%w: graph: expected one whose edges have no types, got one of %d", request.ErrValue, s.Relation.Kinds)
	case s.Most < 1:
		return fmt.Errorf("%w: k: expected at least 1, got %d", request.ErrValue, s.Most)
	case !(s.Alpha >= MinAlpha && s.Alpha <= 1):
		return fmt.Errorf("%w: alpha: expected a number in [%g, 1], got %v", request.ErrValue, MinAlpha, s.Alpha)
	case !(s.Epsilon >= MinEpsilon && s.Epsilon <= 1):
		return fmt.Errorf("%w: epsilon: expected a number in [%g, 1], got %v", request.ErrValue, MinEpsilon, s.Epsilon)
	case !(s.Threshold >= 0 && s.Threshold <= 1):
		return fmt.Errorf("%w: threshold: expected a number in [0, 1], got %v", request.ErrValue, s.Threshold)
	}
	for i := range s.Roots.Len() {
		if v := s.Roots.Element(i); v < 0 || v >= s.Relation.NumNodes {
			return fmt.Errorf("%w: seeds: expected ids below %d, got %d", request.ErrIndex, s.Relation.NumNodes, v)
		}
	}
	return nil
}

// Run returns the memory, with one reference, of 64-bit integers: the offsets of the nodes of each
// root, one more than roots; the nodes, the root first and then by descending score, equal scores
// by id; and their scores.
func (s *Scores) Run() (m memory.Memory, err error) {
	if err := s.check(); err != nil {
		return m, err
	}
	roots := s.Roots.Len()
	found := make([][]Scored, roots)
	var next atomic.Int64
	csc.Together(max(min(int64(runtime.GOMAXPROCS(0)), roots), 1), func(int64) {
		p := newPusher(s)
		for i := next.Add(1) - 1; i < roots && !s.stop.Load(); i = next.Add(1) - 1 {
			if found[i] = p.around(s.Roots.Element(i)); found[i] != nil {
				s.done.Add(1)
			}
		}
	})
	if s.stop.Load() {
		return m, csc.ErrStopped
	}
	var total int64
	for _, each := range found {
		total += int64(len(each))
	}
	size := 8 * (roots + 1 + 2*total)
	if err := memory.Affordable(size); err != nil {
		return m, err
	}
	if m, err = memory.New(size); err != nil {
		return m, err
	}
	m.SetSize(size)
	out := memory.ViewAt[int64](m, 0, roots+1+2*total)
	vertices, scores := out[roots+1:][:total], out[roots+1+total:]
	at := 0
	for i, each := range found {
		out[i] = int64(at)
		for _, f := range each {
			vertices[at], scores[at] = f.Vertex, f.Score
			at++
		}
	}
	out[roots] = total
	return m, nil
}

// pusher has what a root's walk has left where, by numbers in the order in which nodes
// were met.
type pusher struct {
	*Scores
	stops, least uint64 // Alpha of 2^32, Epsilon of One
	numbers      smallmap.Table
	score, left  []int64
	waits        []bool
	queue        []int32
}

func newPusher(s *Scores) *pusher {
	return &pusher{Scores: s, stops: uint64(s.Alpha * (1 << 32)), least: uint64(s.Epsilon * One)}
}

// around returns the nodes around a root; nil if it was halted.
func (p *pusher) around(root int64) []Scored {
	p.numbers.Clear()
	p.score, p.left, p.waits, p.queue = p.score[:0], p.left[:0], p.waits[:0], p.queue[:0]
	p.give(root, One)
	for at := 0; at < len(p.queue); at++ {
		if at&1023 == 0 && p.stop.Load() {
			return nil
		}
		p.push(p.queue[at])
		// Pushed entries are of no more use, and a node may wait many times, so the queue is
		// compacted.
		if at >= 1<<12 && 2*at > len(p.queue) {
			p.queue = p.queue[:copy(p.queue, p.queue[at+1:])]
			at = -1
		}
	}
	return p.best(root)
}

// give adds to the residual of a node, which is queued for a push if it is large enough.
func (p *pusher) give(v, amount int64) {
	n, fresh := p.numbers.Number(v)
	if fresh {
		p.score, p.left, p.waits = append(p.score, 0), append(p.left, 0), append(p.waits, false)
	}
	p.left[n] += amount
	if p.waits[n] {
		return
	}
	start, end := p.row(v)
	if uint64(p.left[n])/uint64(max(end-start, 1)) >= p.least {
		p.waits[n] = true
		p.queue = append(p.queue, n)
	}
}

// push keeps the part of what is left at a node that stops there, and gives the rest to its
// in-neighbors in equal shares; what no share has, less than one unit for each, it keeps too.
func (p *pusher) push(n int32) {
	v, left := p.numbers.Vertices[n], p.left[n]
	p.waits[n], p.left[n] = false, 0
	start, end := p.row(v)
	if start == end {
		p.score[n] += left
		return
	}
	high, low := bits.Mul64(uint64(left), p.stops)
	share := (left - int64(high<<32|low>>32)) / (end - start)
	p.score[n] += left - share*(end-start)
	if share == 0 {
		return
	}
	for i := start; i < end; i++ {
		p.give(p.Relation.Indices.Element(i), share)
	}
}

func (p *pusher) row(v int64) (start, end int64) {
	if v >= p.Relation.NumRows() {
		return 0, 0
	}
	return p.Relation.Indptr.Element(v), p.Relation.Indptr.Element(v + 1)
}

// best is the root and the others with the largest scores, of those above the threshold.
func (p *pusher) best(root int64) []Scored {
	var largest int64
	for n, v := range p.numbers.Vertices {
		if v != root {
			largest = max(largest, p.score[n])
		}
	}
	least := p.Threshold * float64(largest)
	var found []Scored
	for n, v := range p.numbers.Vertices {
		if score := p.score[n]; v == root || score > 0 && float64(score) >= least {
			found = append(found, Scored{v, score})
		}
	}
	slices.SortFunc(found, func(a, b Scored) int {
		if (a.Vertex == root) != (b.Vertex == root) {
			if a.Vertex == root {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Vertex, b.Vertex))
	})
	return slices.Clone(found[:min(int64(len(found)), p.Most)])
}
