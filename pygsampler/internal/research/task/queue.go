// Package task is the contract of the task queue that both engines follow.
//
// Source: PGSampler, section III-B and III-C (tasks of a node and a hop in one
// global queue, fetched by persistent workers, with deduplication). Completion
// differs: the paper lets a worker leave when its index has reached the tail,
// which does not prove that no running task will publish more. Here tasks are
// counted when published and when finished; see Done.
package task

import "sync/atomic"

// Task is the unit of work: sample the in-neighbors of a node at a hop, hop 0
// being next to the seeds.
type Task struct {
	Vertex int64
	Hop    uint8
}

// Queue holds every task of a batch in the order of publication; slots are
// written once and never reused, so a slot number names its task. Capacity is
// fixed, as on a device: a queue that overflows says so, and the batch is
// repeated with a larger one.
//
// Any number of workers may use it at once. Invariant: finished <= published, and
// a task's children are published before it is finished.
type Queue struct {
	tasks     []Task
	ready     []atomic.Bool
	head      atomic.Int64 // slots promised to workers
	published atomic.Int64 // slots reserved for tasks
	finished  atomic.Int64
	overflow  atomic.Bool
	fetchSize int64
}

// NewQueue returns an empty queue whose workers fetch fetchSize tasks at a time.
func NewQueue(capacity, fetchSize int) *Queue {
	return &Queue{
		tasks: make([]Task, capacity), ready: make([]atomic.Bool, capacity), fetchSize: int64(fetchSize),
	}
}

// Publish appends tasks and reports whether they fitted. It is called for the
// seeds before the workers start, and then only within a running task.
func (q *Queue) Publish(tasks []Task) bool {
	n := int64(len(tasks))
	first := q.published.Add(n) - n
	if first+n > int64(len(q.tasks)) {
		q.overflow.Store(true)
		return false
	}
	for i, t := range tasks {
		q.tasks[first+int64(i)] = t
		q.ready[first+int64(i)].Store(true)
	}
	return true
}

// Ticket is a worker's claim on a run of slots, some of which may still be empty.
// The zero value claims nothing.
type Ticket struct{ next, end int64 }

// Fetch takes the next task of the ticket, drawing a new ticket when the old one
// is used up. ok is false while no task of the ticket is published yet: the
// worker then asks Done.
func (q *Queue) Fetch(t *Ticket) (slot int64, task Task, ok bool) {
	if t.next == t.end {
		t.end = q.head.Add(q.fetchSize)
		t.next = t.end - q.fetchSize
	}
	if t.next >= int64(len(q.tasks)) || !q.ready[t.next].Load() {
		return 0, Task{}, false
	}
	slot = t.next
	t.next++
	return slot, q.tasks[slot], true
}

// Finish says that a fetched task, with all that it publishes, is done.
func (q *Queue) Finish() { q.finished.Add(1) }

// Done reports whether every task is finished, or the queue has overflowed.
//
// finished is read first. If published, read later, is equal, then at the moment
// of the first read finished <= published <= the later count = finished: no task
// was running, and only a running task can publish. Read the other way round,
// tasks published and finished in between could make a stale pair look equal.
func (q *Queue) Done() bool {
	finished := q.finished.Load()
	return finished == q.published.Load() || q.overflow.Load()
}

// Overflowed reports whether a task did not fit.
func (q *Queue) Overflowed() bool { return q.overflow.Load() }

// Published is the number of tasks so far.
func (q *Queue) Published() int64 { return q.published.Load() }

// Task is the task of a published slot.
func (q *Queue) Task(slot int64) Task { return q.tasks[slot] }
