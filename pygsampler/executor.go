package pygsampler

import (
	"math"
	"runtime"
	"slices"
	"sync"
)

// executor runs jobs, at most as many goroutines at once as it has threads. With
// several jobs waiting each gets one thread, which is best for throughput; a job
// alone borrows the idle threads for its large hops, which is best for latency.
type executor struct {
	mu      sync.Mutex
	threads int
	busy    int // threads in use, borrowed ones counted
	waiting []*HostJob
}

var engine = executor{threads: runtime.GOMAXPROCS(0)}

func (e *executor) submit(j *HostJob) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy < e.threads {
		e.busy++
		go e.run(j)
		return
	}
	e.waiting = append(e.waiting, j)
}

// enter takes an idle thread for the caller's own use, to be returned by give(1);
// it refuses while all are busy.
func (e *executor) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy >= e.threads {
		return false
	}
	e.busy++
	return true
}

// run executes j and then what waits, on one thread.
func (e *executor) run(j *HostJob) {
	for j != nil {
		j.run()
		j = e.next()
	}
}

func (e *executor) next() *HostJob {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 || e.busy > e.threads {
		e.busy--
		return nil
	}
	j := e.waiting[0]
	e.waiting[0] = nil
	e.waiting = e.waiting[1:]
	return j
}

// withdraw takes a job back that still waits for a thread.
func (e *executor) withdraw(j *HostJob) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.Index(e.waiting, j)
	if i < 0 {
		return false
	}
	e.waiting = slices.Delete(e.waiting, i, i+1)
	return true
}

// borrow gets up to n idle threads, unless jobs wait for them.
func (e *executor) borrow(n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) > 0 {
		return 0
	}
	n = max(0, min(n, e.threads-e.busy))
	e.busy += n
	return n
}

// give returns borrowed threads; jobs that came meanwhile start on them.
func (e *executor) give(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range n {
		if len(e.waiting) > 0 && e.busy <= e.threads {
			j := e.waiting[0]
			e.waiting[0] = nil
			e.waiting = e.waiting[1:]
			go e.run(j)
		} else {
			e.busy--
		}
	}
}

// setThreads changes the number of threads and returns the one before.
func (e *executor) setThreads(n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.threads
	e.threads = n
	if n > runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(n)
	}
	for e.busy < e.threads && len(e.waiting) > 0 {
		j := e.waiting[0]
		e.waiting[0] = nil
		e.waiting = e.waiting[1:]
		e.busy++
		go e.run(j)
	}
	return before
}

// crew offers the executor's threads to one job, at most limit in addition to the job's own thread;
// it implements cpu.Crew for the job.
type crew struct{ limit int }

// crewOf returns the crew of a job that may have threads threads, including its own; 0: all idle
// threads.
func crewOf(threads int64) crew {
	if threads <= 0 {
		return crew{math.MaxInt}
	}
	return crew{int(min(threads, math.MaxInt)) - 1}
}

// Borrow returns up to n workers, possibly none, without waiting.
func (c crew) Borrow(n int) int {
	if n = min(n, c.limit); n <= 0 {
		return 0
	}
	return engine.borrow(n)
}

// Limit returns the maximal number of workers that the crew offers.
func (c crew) Limit() int {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	return min(c.limit, engine.threads-1)
}

// Return returns n borrowed workers.
func (c crew) Return(n int) {
	if n > 0 {
		engine.give(n)
	}
}

// SetThreads bounds the number of threads that sample at once and returns the previous bound.
// Samples do not depend on it.
func SetThreads(n int64) (int64, error) {
	if n < 1 || n > 4096 {
		return 0, Errorf(KindValue, "threads: expected 1 to 4096, got %d", n)
	}
	return int64(engine.setThreads(int(n))), nil
}

// Threads returns the bound that SetThreads sets.
func Threads() int64 {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	return int64(engine.threads)
}
