// Package cpu has the ways of papers to make batches on the CPU, for comparison: the task queue of
// PGSampler, and reservoirs.
package cpu

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/task"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// usualFetchSize is how many tasks a worker takes from the queue at a time where the
// caller does not say. The paper's evaluation has 5 (PGSampler, section III-C).
const usualFetchSize = 16

// ByQueue is cpu.Sample by the task queue, whose workers fetch fetchSize tasks at a time, or
// with 0 the usual number; the result is equal.
func ByQueue(req *cpu.Request, fetchSize int, crew cpu.Crew, stop *atomic.Bool) (memory.Memory, error) {
	if fetchSize == 0 {
		fetchSize = usualFetchSize
	}
	return cpu.SampleChosen(req, crew, stop, func(b *cpu.Batch) (cpu.ChosenRows, error) { return run(b, fetchSize) })
}

// finishedTasks is what the workers of a queue leave behind: for every task, in
// whatever order it ran, the CSC positions of its edges. A pass in canonical
// order numbers them.
type finishedTasks struct {
	queue     *task.Queue
	rows      []finishedRow // by slot of the queue
	positions []int64
	used      atomic.Int64
	overflow  atomic.Bool
	slots     map[task.Task]int64 // filled once all tasks are finished
}

type finishedRow struct{ first, take int64 }

// run samples all tasks of the batch by persistent workers without a barrier
// between hops, again with twice the room while the queue or the positions
// overflow; a row is a pure function of its task, so a repeated batch is equal.
func run(b *cpu.Batch, fetchSize int) (cpu.ChosenRows, error) {
	if len(b.Fanouts) > task.MaxHops {
		return nil, fmt.Errorf("%w: fanouts: expected at most %d hops with mode='queue', got %d", request.ErrValue, task.MaxHops, len(b.Fanouts))
	}
	if need := b.Relation.NumNodes * 8; !b.HasMap {
		return nil, fmt.Errorf("%w: mode='queue': expected map_bytes of at least %d bytes (8 a node), got less", request.ErrValue, need)
	}
	tasks := max(int64(len(b.Seeds)*len(b.Fanouts))*8, 1024)
	edges := 8 * tasks
	for !b.Stop.Load() {
		f, err := drain(b, fetchSize, tasks, edges)
		if err != nil {
			return nil, err
		}
		if b.Stop.Load() {
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
func drain(b *cpu.Batch, fetchSize int, tasks, edges int64) (*finishedTasks, error) {
	if tasks > math.MaxInt32 {
		return nil, fmt.Errorf("%w: wanted a queue of %d tasks", memory.ErrNoMemory, tasks)
	}
	// 16 bytes an edge are the blocks', which the engine would ask for next.
	if err := memory.Affordable(tasks*48 + edges*(8+16)); err != nil {
		return nil, err
	}
	f := &finishedTasks{queue: task.NewQueue(int(tasks), fetchSize), rows: make([]finishedRow, tasks), positions: make([]int64, edges)}
	pages, err := memory.Map(b.Relation.NumNodes * 8)
	if err != nil {
		return nil, err
	}
	defer pages.Free()
	seen := task.NewSeen(memory.Slice[uint64](pages, b.Relation.NumNodes), len(b.Fanouts))
	var seeds []task.Task
	for _, v := range b.Seeds {
		seeds = seen.Claim(seeds, v, 0)
	}
	if !f.queue.Publish(seeds) {
		return f, nil
	}
	err = b.Run(func() {
		defer func() {
			if p := recover(); p != nil {
				// Its task will never be finished: the others must not wait for it.
				b.Stop.Store(true)
				panic(p)
			}
		}()
		var ticket task.Ticket
		var chooser rng.Chooser
		var fresh []task.Task
		for !b.Stop.Load() {
			slot, t, ok := f.queue.Fetch(&ticket)
			if !ok {
				if f.queue.Done() || f.overflow.Load() {
					return
				}
				runtime.Gosched()
				continue
			}
			row, fits := f.run(b, &chooser, t)
			if !fits {
				return
			}
			f.rows[slot] = row
			fresh = fresh[:0]
			for _, p := range f.positions[row.first : row.first+row.take] {
				fresh = seen.Claim(fresh, b.Relation.Indices.Element(p), int(t.Hop)+1)
			}
			if !f.queue.Publish(fresh) {
				return
			}
			f.queue.Finish()
		}
	})
	return f, err
}

// run samples one row into the shared positions; fits is false when they are
// used up.
func (f *finishedTasks) run(b *cpu.Batch, c *rng.Chooser, t task.Task) (row finishedRow, fits bool) {
	from := b.EdgesOf(t.Vertex, int(t.Hop))
	end := f.used.Add(from.Take)
	if end > int64(len(f.positions)) {
		f.overflow.Store(true)
		return row, false
	}
	row = finishedRow{end - from.Take, from.Take}
	b.Choose(c, f.positions[row.first:end], from)
	return row, true
}

// Place returns where the positions of a node's task at a hop begin, and how many they are.
func (f *finishedTasks) Place(node int64, hop int) (first, take int64) {
	row := f.rows[f.slots[task.Task{Vertex: node, Hop: uint8(hop)}]]
	return row.first, row.take
}

// Positions returns the shared positions of all tasks.
func (f *finishedTasks) Positions() []int64 { return f.positions }
