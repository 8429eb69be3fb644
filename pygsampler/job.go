package pygsampler

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory/finalizer"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/run"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// HostJob is a job on the CPU: a batch, or rows of arrays. It ends exactly once, with a result or
// an error; until then it reads Python's memory.
type HostJob struct {
	task   jobTask
	stop   atomic.Bool
	done   chan struct{}
	memory memory.Memory
	err    error

	began, ended time.Time // of its work
}

// jobTask is the work of a job.
type jobTask interface {
	// do computes the memory; it ends early, with request.ErrCancelled, if the job is to end.
	do() (memory.Memory, error)
	// over is called once, when do will not be called any more.
	over()
	// reads reports whether the task uses this relation.
	reads(r *Relation) bool
	// fault describes the arrays that it reads, for the error of a panic of do.
	fault() string
}

// running holds every job that is not finished, so that Shutdown can end them.
var running struct {
	sync.Mutex
	jobs map[*HostJob]struct{}
}

// promptEdges is the size up to which a prompt request runs on the caller's thread: some
// milliseconds, which is a tolerable delay of Ctrl-C.
const promptEdges = 1 << 19

// promptly computes a small batch at once, and submits others.
func promptly(j *HostJob, work *plan.Work, small bool) *HostJob {
	if small && engine.enter() {
		// The guess knows mean degrees only: seeds may all be hubs.
		work.Most = promptEdges
		j.make()
		engine.give(1)
		if !errors.Is(j.err, request.ErrLarge) {
			j.finish()
			return j
		}
		work.Most, j.err = 0, nil
	}
	engine.submit(j)
	return j
}

// newJob returns a job that Shutdown knows, and that is not in the executor yet.
func newJob(t jobTask) *HostJob {
	j := &HostJob{task: t, done: make(chan struct{})}
	running.Lock()
	defer running.Unlock()
	if running.jobs == nil {
		running.jobs = make(map[*HostJob]struct{})
	}
	running.jobs[j] = struct{}{}
	return j
}

// run executes the job on the executor's goroutine.
func (j *HostJob) run() {
	j.make()
	j.finish()
}

func (j *HostJob) make() {
	j.began = time.Now()
	// The graph may be a mapped file that another process makes shorter.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			// Excluded edges are looked up in arrays that their owner may have changed.
			j.err = fmt.Errorf("%s, or a fault of pygsampler: %v", j.task.fault(), p)
		}
	}()
	if j.stop.Load() {
		j.err = request.ErrCancelled
		return
	}
	j.memory, j.err = j.task.do()
}

// finish releases the inputs and wakes the waiters.
func (j *HostJob) finish() {
	j.task.over()
	running.Lock()
	delete(running.jobs, j)
	running.Unlock()
	j.ended = time.Now()
	close(j.done)
}

// Wait implements Job.
func (j *HostJob) Wait(timeout int64) (address int64, finished bool, err error) {
	if !j.await(timeout) {
		return 0, false, nil
	}
	if j.err != nil {
		return 0, true, j.err
	}
	return j.memory.Address(), true, nil
}

// Span implements Job.
func (j *HostJob) Span(timeout, address int64) (finished bool, err error) {
	if !j.await(timeout) {
		return false, nil
	}
	clock, now, err := bothClocks()
	if err != nil {
		return true, err
	}
	out := memory.View[int64](address, 2)
	out[0] = clock - now.Sub(j.began).Nanoseconds()
	out[1] = clock - now.Sub(j.ended).Nanoseconds()
	return true, nil
}

// bothClocks is one moment in nanoseconds of CLOCK_MONOTONIC and in Go's time.
//
// They are read one after the other. On a busy machine the thread may have lost its core between
// them for milliseconds, by which spans would seem to begin before what they came after. So they
// are read again, a few times, until little time has passed; the closest pair counts.
func bothClocks() (clock int64, now time.Time, err error) {
	closest := time.Duration(math.MaxInt64)
	for try := 0; try < 8 && closest > 20*time.Microsecond; try++ {
		var read unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &read); err != nil {
			return 0, now, err
		}
		if after := time.Now(); after.Sub(before) < closest {
			closest, clock, now = after.Sub(before), read.Nano(), after
		}
	}
	return clock, now, nil
}

// await reports whether the job ends within timeout milliseconds.
func (j *HostJob) await(timeout int64) bool {
	select {
	case <-j.done:
		return true
	default:
	}
	if timeout < 0 {
		<-j.done
		return true
	}
	if timeout == 0 {
		return false
	}
	timer := time.NewTimer(time.Duration(timeout) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-j.done:
		return true
	case <-timer.C:
		return false
	}
}

// Cancel ends the job and returns once it no longer accesses Python's memory; a result that was
// ready is dropped.
func (j *HostJob) Cancel() {
	j.end()
	<-j.done
	if j.err == nil {
		j.memory.Release()
	}
}

// end asks the job to end, and ends it here if it has not started.
func (j *HostJob) end() {
	j.stop.Store(true)
	if engine.withdraw(j) {
		// Else it would wait for the jobs before it, only to end at once.
		j.run()
	}
}

// Drop closes a relation whose jobs have no waiter any more: the jobs are cancelled.
func (g *Relation) Drop() {
	running.Lock()
	jobs := make([]*HostJob, 0, 1)
	for j := range running.jobs {
		if j.task.reads(g) {
			jobs = append(jobs, j)
		}
	}
	running.Unlock()
	for _, j := range jobs {
		j.end()
	}
	g.Close()
}

// Shutdown ends all jobs and returns once no memory of any graph is read.
func Shutdown() {
	finalizer.Shut()
	endFlying()
	endReading()
	endDeriving()
	running.Lock()
	jobs := make([]*HostJob, 0, len(running.jobs))
	for j := range running.jobs {
		j.stop.Store(true)
		jobs = append(jobs, j)
	}
	running.Unlock()
	for _, j := range jobs {
		<-j.done
	}
}

// MemoryStats holds the bytes of batches and of the pool, and the number of running jobs.
type MemoryStats struct {
	memory.Counts
	Jobs int `json:"jobs"`
}

// Stats returns the counters.
func Stats() MemoryStats {
	running.Lock()
	defer running.Unlock()
	return MemoryStats{memory.Count(), len(running.jobs) + countFlying()}
}

// NewMemory returns the address of a memory of size bytes from the pool, whose pages are resident
// already if the pool has one: for a memory as large as a batch's features, the system takes
// several times as long to provide new pages as it takes to write them.
func NewMemory(size int64) (int64, error) {
	if size < 0 {
		return 0, Errorf(KindValue, "size: expected an integer >= 0, got %d", size)
	}
	m, err := memory.New(size)
	if err != nil {
		return 0, err
	}
	m.SetSize(size)
	return m.Address(), nil
}

// Trim returns pooled memory and working memory that no batch uses to the system.
func Trim() {
	cpu.Trim()
	run.Trim()
	memory.Trim()
}
