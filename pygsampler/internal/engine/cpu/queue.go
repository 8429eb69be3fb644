package cpu

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/task"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// usualFetchSize is how many tasks a worker takes from the queue at a time where the
// caller does not say. The paper's evaluation has 5 (PGSampler, section III-C).
const usualFetchSize = 16

// finishedTasks is what the workers of a queue leave behind: for every task, in
// whatever order it ran, the CSC positions of its edges. A pass in canonical
// order numbers them.
type finishedTasks[I csc.Index] struct {
	*sampling[I]
	queue     *task.Queue
	rows      []finishedRow // by slot of the queue
	positions []int64
	used      atomic.Int64
	overflow  atomic.Bool
	slots     map[task.Task]int64 // filled once all tasks are finished
}

type finishedRow struct{ first, take int64 }

// runQueue samples all tasks of the batch by persistent workers without a barrier
// between hops, again with twice the room while the queue or the positions
// overflow; a row is a pure function of its task, so a repeated batch is equal.
func (s *sampling[I]) runQueue(fetchSize int) (rows[I], error) {
	if len(s.Fanouts) > task.MaxHops {
		return nil, fmt.Errorf("%w: fanouts: expected at most %d hops with mode='queue', got %d", request.ErrValue, task.MaxHops, len(s.Fanouts))
	}
	if need := s.Relation.NumNodes * 8; s.numbers == hashed {
		return nil, fmt.Errorf("%w: mode='queue': expected map_bytes of at least %d bytes (8 a vertex), got less", request.ErrValue, need)
	}
	tasks := max(s.n*int64(len(s.Fanouts))*8, 1024)
	edges := 8 * tasks
	for !s.stop.Load() {
		f, err := s.drain(fetchSize, tasks, edges)
		if err != nil {
			return nil, err
		}
		if s.stop.Load() {
			break
		}
		full, long := f.queue.Overflowed(), f.overflow.Load()
		if !full && !long {
			f.slots = make(map[task.Task]int64, f.queue.Published())
			for slot := range f.queue.Published() {
				f.slots[f.queue.Task(slot)] = slot
			}
			return f, nil
		}
		if full {
			tasks *= 2
		}
		if long {
			edges = max(2*edges, f.used.Load())
		}
	}
	return nil, request.ErrCancelled
}

// drain runs the queue from the seeds to its end, or to an overflow.
func (s *sampling[I]) drain(fetchSize int, tasks, edges int64) (*finishedTasks[I], error) {
	if tasks > math.MaxInt32 {
		return nil, fmt.Errorf("%w: wanted a queue of %d tasks", memory.ErrNoMemory, tasks)
	}
	// 16 bytes an edge are the blocks', which the engine would ask for next.
	if err := memory.Affordable(tasks*48 + edges*(8+16)); err != nil {
		return nil, err
	}
	f := &finishedTasks[I]{
		sampling: s, queue: task.NewQueue(int(tasks), fetchSize), rows: make([]finishedRow, tasks), positions: make([]int64, edges),
	}
	pages, err := memory.Map(s.Relation.NumNodes * 8)
	if err != nil {
		return nil, err
	}
	defer pages.Free()
	seen := task.NewSeen(memory.Slice[uint64](pages, s.Relation.NumNodes), len(s.Fanouts))
	var seeds []task.Task
	for _, v := range s.nodes()[:s.n] {
		seeds = seen.Claim(seeds, int64(v), 0)
	}
	if !f.queue.Publish(seeds) {
		return f, nil
	}
	streams := make([]rng.Stream, len(s.Fanouts))
	for hop := range streams {
		streams[hop] = rng.NewStream(s.Seed, s.Epoch, s.Number, uint8(hop), rng.Neighbors)
	}
	err = s.team.run(func(int) {
		defer func() {
			if p := recover(); p != nil {
				// Its task will never be finished: the others must not wait for it.
				s.stop.Store(true)
				panic(p)
			}
		}()
		var ticket task.Ticket
		var chooser rng.Chooser
		var fresh []task.Task
		for !s.stop.Load() {
			slot, t, ok := f.queue.Fetch(&ticket)
			if !ok {
				if f.queue.Done() || f.overflow.Load() {
					return
				}
				runtime.Gosched()
				continue
			}
			row, fits := s.runTask(f, &chooser, streams[t.Hop], t)
			if !fits {
				return
			}
			f.rows[slot] = row
			fresh = fresh[:0]
			for _, p := range f.positions[row.first : row.first+row.take] {
				fresh = seen.Claim(fresh, s.Relation.Indices.Element(p), int(t.Hop)+1)
			}
			if !f.queue.Publish(fresh) {
				return
			}
			f.queue.Finish()
		}
	})
	return f, err
}

// runTask samples one row into the shared positions; fits is false when they are
// used up.
func (s *sampling[I]) runTask(f *finishedTasks[I], c *rng.Chooser, stream rng.Stream, t task.Task) (row finishedRow, fits bool) {
	rule := s.Rule(int(t.Hop))
	start, degree := s.row(t.Vertex)
	take := rule.Take(degree)
	end := f.used.Add(take)
	if end > int64(len(f.positions)) {
		f.overflow.Store(true)
		return row, false
	}
	row = finishedRow{end - take, take}
	s.choose(c, f.positions[row.first:end], t.Vertex, stream.State(uint64(t.Vertex)), start, degree, rule, 0, rule.TakesAll(degree), nil)
	return row, true
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

// count takes the offsets of the rows in the shared positions for where they begin.
func (f *finishedTasks[I]) count(frontier []I, lo, hi int64, hop int) (edges int64) {
	for i, v := range frontier[lo:hi] {
		row := f.rows[f.slots[task.Task{Vertex: int64(v), Hop: uint8(hop)}]]
		f.starts[lo+int64(i)], f.degrees[lo+int64(i)] = row.first, row.take
		edges += row.take
	}
	return edges
}

func (f *finishedTasks[I]) draw(_ *worker, _ rng.Stream, _ []I, lo, hi, at int64, _ int, b block[I]) {
	for i := lo; i < hi; i++ {
		b.indptr[i] = I(at)
		gather(f.Relation, f.positions[f.starts[i]:f.starts[i]+f.degrees[i]], at, b)
		at += f.degrees[i]
	}
}
