package cpu

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// team is the workers of one batch. They stay awake between its phases, which are
// often shorter than waking a thread; worker 0 is the caller's goroutine.
type team struct {
	crew    Crew
	size    int
	phase   atomic.Int64 // counts the phases; -1 ends the team
	busy    atomic.Int64 // workers still in the phase
	work    func(worker int)
	errs    []error
	members sync.WaitGroup
}

// teamEdges is how many edges a batch must promise for each further worker.
const teamEdges = 4096

// spins is how often a waiting worker looks before it lets others run.
const spins = 100

// muster borrows workers for a batch of about the given number of edges; it must
// be ended by dismiss.
func muster(crew Crew, edges int64) *team {
	t := &team{crew: crew, size: 1}
	if extra := min(edges/teamEdges, 256); extra > 0 {
		t.size += crew.Borrow(int(extra))
	}
	t.errs = make([]error, t.size)
	for w := 1; w < t.size; w++ {
		t.members.Go(func() { t.serve(w) })
	}
	return t
}

func (t *team) dismiss() {
	t.phase.Store(-1)
	t.members.Wait()
	t.crew.Return(t.size - 1)
}

// serve runs every phase as worker w until the team is dismissed.
func (t *team) serve(w int) {
	debug.SetPanicOnFault(true)
	for seen := int64(0); ; {
		next := t.phase.Load()
		for spin := 0; next == seen; spin++ {
			if spin >= spins {
				runtime.Gosched()
			}
			next = t.phase.Load()
		}
		if next < 0 {
			return
		}
		seen = next
		t.guarded(w, t.work)
		t.busy.Add(-1)
	}
}

// run has f executed by all workers and waits for them; a panic of any becomes an
// error.
func (t *team) run(f func(worker int)) error {
	t.work = f
	t.busy.Store(int64(t.size - 1))
	t.phase.Add(1)
	t.guarded(0, f)
	for spin := 0; t.busy.Load() > 0; spin++ {
		if spin >= spins {
			runtime.Gosched()
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
