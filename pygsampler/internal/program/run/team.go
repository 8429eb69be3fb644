package run

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// team is the set of workers that a batch has borrowed, in addition to its own goroutine. They come
// when there is work for several, and stay until its end. A phase is often shorter than the time to
// wake a thread, so that no phase waits for a late worker: others process its units then. The zero
// value has no workers.
type team struct {
	size   int // workers in addition to the batch's own
	phase  atomic.Pointer[phase]
	over   atomic.Bool
	asleep atomic.Int32
	wake   chan struct{}
}

// mostWorkers bounds a team.
const mostWorkers = 256

// looks is the number of polls of a worker without work before it sleeps. With 200 us of polling
// LADIES took 1.5 times as long while other programs had the cores.
const looks = 100

// phase is units of work, which are taken in their order.
type phase struct {
	units  int64
	next   atomic.Int64
	active atomic.Int32 // workers in addition to the batch's own that may have taken some
	work   func(w *worker, unit int64)
	stop   *atomic.Bool
	failed atomic.Pointer[fault]
}

// fault is a panic of a unit.
type fault struct {
	unit int64
	with any
}

// muster borrows more workers for a number of units, if the crew has some.
func (t *team) muster(crew csc.Crew, units int64, worker func(i int) *worker) {
	wanted := int(min(units-1, mostWorkers)) - t.size
	if wanted <= 0 {
		return
	}
	if t.wake == nil {
		t.wake = make(chan struct{}, mostWorkers)
	}
	for range crew.Borrow(wanted) {
		t.size++
		w := worker(t.size)
		go func() {
			defer crew.Return(1)
			t.serve(w)
		}()
	}
}

// dismiss ends the team; its workers return by themselves.
func (t *team) dismiss() {
	t.over.Store(true)
	if t.wake != nil {
		close(t.wake)
	}
}

// serve takes part in phases until the team is dismissed.
func (t *team) serve(w *worker) {
	debug.SetPanicOnFault(true)
	for look := 0; !t.over.Load(); look++ {
		if p := t.phase.Load(); p != nil && p.next.Load() < p.units {
			p.active.Add(1)
			p.take(w)
			p.active.Add(-1)
			look = 0
			continue
		}
		if look >= looks {
			t.sleep()
			look = 0
		}
	}
}

// sleep waits for the next phase, or for the end.
func (t *team) sleep() {
	t.asleep.Add(1)
	defer t.asleep.Add(-1)
	// A phase that began before a worker was known to sleep wakes no worker.
	if p := t.phase.Load(); (p == nil || p.next.Load() >= p.units) && !t.over.Load() {
		<-t.wake
	}
}

// run has the units from the first on done by worker w and the team, and gives the panic of the first that had one.
func (t *team) run(w *worker, first, units int64, stop *atomic.Bool, work func(w *worker, unit int64)) any {
	p := &phase{units: units, work: work, stop: stop}
	p.next.Store(first)
	t.phase.Store(p)
	for n := min(int64(t.asleep.Load()), units-first-1); n > 0; n-- {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	p.take(w)
	t.phase.Store(nil)
	// Who is active from here on finds no unit.
	for look := 0; p.active.Load() > 0; look++ {
		if look >= looks {
			runtime.Gosched()
		}
	}
	if f := p.failed.Load(); f != nil {
		return f.with
	}
	return nil
}

// take does units until there is none.
func (p *phase) take(w *worker) {
	unit := int64(0)
	defer func() {
		if with := recover(); with != nil {
			p.next.Store(p.units)
			f := &fault{unit, with}
			for old := p.failed.Load(); old == nil || unit < old.unit; old = p.failed.Load() {
				if p.failed.CompareAndSwap(old, f) {
					break
				}
			}
		}
	}()
	for unit = p.next.Add(1) - 1; unit < p.units && !p.stop.Load(); unit = p.next.Add(1) - 1 {
		p.work(w, unit)
	}
}
