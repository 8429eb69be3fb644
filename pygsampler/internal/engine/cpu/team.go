package cpu

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
)

// team is the workers of one batch; worker 0 is the caller's goroutine. Between its phases, which are often shorter than
// waking a thread, the others look for the next one for a while, and sleep then. Nobody waits for a worker that has not come
// yet, which may be milliseconds where another program has its core: what it would have done, others do.
type team struct {
	crew   Crew
	size   int
	work   func(worker int)
	wake   chan struct{}
	errs   []error
	asleep atomic.Int32
	// Workers without work read these all the time: in a line with what others count, each count would take it from all of them.
	_      [cacheLine]byte
	phase  atomic.Int64 // odd while there is work, which workers take part in as they come
	over   atomic.Bool
	_      [cacheLine]byte
	active atomic.Int64 // workers in addition to the caller that may be running
	_      [cacheLine]byte
}

// cacheLine is the number of bytes that processors exchange at a time, or more.
const cacheLine = 128

// teamEdges is the number of edges that a batch must promise for each further worker.
const teamEdges = 4096

// looks is the number of polls of a worker without work before it sleeps, and of the caller before
// it yields its core to other threads.
const looks = 5000

// muster borrows workers for a batch of about edges edges; dismiss must end it.
func muster(crew Crew, edges int64) *team {
	t := &team{crew: crew, size: 1}
	if extra := min(edges/teamEdges, 256); extra > 0 {
		t.size += crew.Borrow(int(extra))
	}
	t.errs = make([]error, t.size)
	if t.size > 1 {
		t.wake = make(chan struct{}, t.size)
	}
	for w := 1; w < t.size; w++ {
		go t.serve(w)
	}
	return t
}

// dismiss ends the team. Idle workers count as returned: a worker that sleeps, or has not arrived
// yet, leaves later than the next batch begins, which would otherwise find no worker to borrow.
func (t *team) dismiss() {
	t.over.Store(true)
	if t.wake != nil {
		close(t.wake)
		t.crew.Return(t.size - 1)
	}
}

// serve takes part as worker w until the team is dismissed.
func (t *team) serve(w int) {
	debug.SetPanicOnFault(true)
	seen := int64(0)
	for look := 0; !t.over.Load(); look++ {
		if p := t.phase.Load(); p&1 != 0 && p != seen {
			seen, look = p, 0
			t.active.Add(1)
			// A phase that has ended since has nobody who waits for its workers.
			if t.phase.Load() == p {
				t.guarded(w, t.work)
			}
			t.active.Add(-1)
		}
		if look >= looks {
			t.sleep(seen)
			look = 0
		}
	}
}

// sleep waits for another phase than the last that was seen, or for the end.
func (t *team) sleep(seen int64) {
	t.asleep.Add(1)
	defer t.asleep.Add(-1)
	// A phase that began before a worker was known to sleep wakes no worker.
	if p := t.phase.Load(); (p&1 == 0 || p == seen) && !t.over.Load() {
		<-t.wake
	}
}

// run executes f on this goroutine, whose return means that all work is finished or claimed, and on
// the workers that have arrived by then; it waits for those. It converts a panic of any to an
// error.
func (t *team) run(f func(worker int)) error {
	t.work = f
	t.phase.Add(1)
	for n := t.asleep.Load(); n > 0; n-- {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	t.guarded(0, f)
	t.phase.Add(1)
	for look := 0; t.active.Load() > 0; look++ {
		if look >= looks {
			yield()
		}
	}
	for _, err := range t.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *team) guarded(w int, f func(worker int)) {
	defer recovered(&t.errs[w])
	f(w)
}

// yield lets other threads have the core, and other goroutines the thread: a goroutine that it
// waits for may be queued behind this one.
func yield() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	runtime.Gosched()
}
