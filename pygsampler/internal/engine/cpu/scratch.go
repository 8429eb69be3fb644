package cpu

import (
	"sync"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// scratch is the working memory of a batch, apart from graph and output; it is reused between
// batches, so that a steady state allocates nothing. One batch uses it at a time.
type scratch struct {
	narrow directMap[uint32]
	wide   directMap[uint64]
	table  hashTable
	lists  // of a disjoint batch
	hopRows
	offsets []int64 // per tile: its first edge in the block
	drawn   []int32 // per tile: set once its neighbors are there
	ranks   rankScratch
	crewScratch
}

// lists are nodes by their numbers, and the trees that they are in.
type lists struct{ vertices, trees, bounds *memory.Pages }

func (l *lists) free() {
	for _, pages := range []*memory.Pages{l.vertices, l.trees, l.bounds} {
		if pages != nil {
			pages.Free()
		}
	}
	*l = lists{}
}

// hopRows is the result of count for the rows of a hop.
type hopRows struct {
	starts  []int64 // its first CSC position
	degrees []int64 // its edges that are not excluded
}

// size allocates rows rows.
func (h *hopRows) size(rows int64) {
	h.starts, h.degrees = sized(h.starts, rows), sized(h.degrees, rows)
}

// crewScratch is the scratch of the workers of a batch.
type crewScratch struct{ workers []*worker }

// shelf keeps the scratches of finished batches; one for each batch that was ever
// in flight at once.
var shelf struct {
	sync.Mutex
	free []*scratch
}

// takeScratch prefers a scratch whose direct map already fits.
func takeScratch(numNodes int64) *scratch {
	shelf.Lock()
	defer shelf.Unlock()
	best := -1
	for i, s := range shelf.free {
		if best < 0 || int64(max(len(s.narrow.words), len(s.wide.words))) >= numNodes {
			best = i
		}
	}
	if best < 0 {
		return &scratch{}
	}
	s := shelf.free[best]
	last := len(shelf.free) - 1
	shelf.free[best] = shelf.free[last]
	shelf.free[last] = nil
	shelf.free = shelf.free[:last]
	return s
}

func (s *scratch) put() {
	shelf.Lock()
	defer shelf.Unlock()
	shelf.free = append(shelf.free, s)
}

// Trim frees the scratch of idle batches.
func Trim() {
	shelf.Lock()
	defer shelf.Unlock()
	for _, s := range shelf.free {
		s.narrow.free()
		s.wide.free()
		s.lists.free()
		s.ranks.free()
		if s.table.pages != nil {
			s.table.pages.Free()
		}
	}
	shelf.free = nil
	trimHetero()
}

// sized returns a with length n, in new memory only if a is too short; its old contents are lost
// then.
func sized[T any](a []T, n int64) []T {
	if int64(cap(a)) < n {
		return make([]T, n, n+n/4)
	}
	return a[:n]
}

// worker is the scratch of one goroutine within a batch.
type worker struct {
	chooser   rng.Chooser
	positions []int64
	rows      []int32
	states    []uint64
	weighted  []weightedRow
	open      []int32 // of weighted: rows that take a further step
	short     []int32 // likewise: those of few edges, which take it together
	left      []rng.PendingRow
	coins     []uint32 // by place among the positions
	chosen    []uint64 // likewise: weights of the edges
}

func (s *crewScratch) worker(i int) *worker {
	for len(s.workers) <= i {
		s.workers = append(s.workers, &worker{
			rows: make([]int32, tileRows), states: make([]uint64, tileRows),
		})
	}
	// A batch that ended in a panic has left its rows.
	s.workers[i].weighted = s.workers[i].weighted[:0]
	return s.workers[i]
}
