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
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory/finalizer"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/run"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Job is a memory on its way: a batch, or rows of arrays. It is finished exactly once, by
// a result or an error; until then it reads memory of Python's.
type Job struct {
	task   jobTask
	stop   atomic.Bool
	done   chan struct{}
	memory memory.Memory
	err    error

	began, ended time.Time // of its work
}

// jobTask is what a job does.
type jobTask interface {
	// do makes the memory; it ends early, with request.ErrCancelled, where the job is to end.
	do() (memory.Memory, error)
	// over is called once, when do will not be called any more.
	over()
	// reads says whether it is on this graph.
	reads(g *Graph) bool
	// fault is what a panic of do tells of the arrays that it reads.
	fault() string
}

// sampling is a batch as a job's task.
type sampling struct {
	graph   *Graph
	plan    *Sampler
	work    plan.Work
	exclude []int64
	joined  bool
}

// Call is what a job samples; seeds and excluded edges are read from addresses
// and copied before Submit returns.
type Call struct {
	Seeds      int64
	NumSeeds   int64
	SeedBits   int
	Epoch      int64
	Batch      int64
	Exclude    int64 // int64 edge ids to sample around, or 0
	NumExclude int64
	Threads    int64 // at most so many; 0: as many as are idle
	Joined     bool  // whether the batch's hops are to be joined, as JoinedHops does
}

// running holds every job that is not finished, so that Shutdown can end them.
var running struct {
	sync.Mutex
	jobs map[*Job]struct{}
}

// Submit queues a batch and returns at once.
func Submit(g *Graph, p *Sampler, c Call) (*Job, error) {
	t, err := newSampling(g, p, c)
	if err != nil {
		return nil, err
	}
	j := t.job()
	engine.submit(j)
	return j, nil
}

// promptEdges is the size up to which Sample runs a batch on the caller's thread:
// some milliseconds, in which nobody misses Ctrl-C.
const promptEdges = 1 << 19

// Sample is Submit for a caller who waits at once. A small batch is finished when
// it returns, without the wake-ups that handing it to another thread costs.
func Sample(g *Graph, p *Sampler, c Call) (*Job, error) {
	t, err := newSampling(g, p, c)
	if err != nil {
		return nil, err
	}
	return promptly(t.job(), &t.work, t.prompt()), nil
}

// promptly makes a batch at once where it is small, and submits others.
func promptly(j *Job, work *plan.Work, small bool) *Job {
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

// prompt guesses that the batch is done in a moment. The first lookup of edge ids takes
// longer.
func (t *sampling) prompt() bool {
	return t.plan.Expected(&t.work) <= promptEdges &&
		(len(t.exclude) == 0 || t.graph.csc.EdgeIDs.Bits == 0)
}

// check refuses what no batch can be made of.
func (c *Call) check() error {
	if c.SeedBits != 32 && c.SeedBits != 64 {
		return Errorf(KindType, "seeds: expected 32 or 64 bits, got %d", c.SeedBits)
	}
	if c.NumSeeds < 0 || c.NumExclude < 0 {
		return Errorf(KindValue, "seeds: expected a length >= 0, got %d", min(c.NumSeeds, c.NumExclude))
	}
	if c.Epoch < 0 || c.Epoch > rng.MaxEpoch {
		return Errorf(KindValue, "epoch: expected an integer in [0, %d], got %d", rng.MaxEpoch, c.Epoch)
	}
	if c.Batch < 0 || c.Batch > rng.MaxBatch {
		return Errorf(KindValue, "batch: expected an integer in [0, %d], got %d", int64(rng.MaxBatch), c.Batch)
	}
	return nil
}

// newSampling checks and copies what a call says; job must be called next.
func newSampling(g *Graph, p *Sampler, c Call) (*sampling, error) {
	if g.device != nil {
		return nil, Errorf(KindValue, "graph: expected one on the CPU, got one on cuda:%d", g.device.index)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := p.check(g); err != nil {
		return nil, err
	}
	seeds := csc.Borrow(c.Seeds, c.NumSeeds, c.SeedBits)
	seeds.I32 = append([]int32(nil), seeds.I32...)
	seeds.I64 = append([]int64(nil), seeds.I64...)
	t := &sampling{graph: g, plan: p, work: plan.Work{Graph: &g.csc, Batch: p.batch(&c)}, joined: c.Joined}
	t.work.Batch.Seeds = seeds
	if c.NumExclude > 0 {
		t.exclude = append(t.exclude, memory.View[int64](c.Exclude, c.NumExclude)...)
	}
	t.work.Crew = crewOf(c.Threads)
	// Only now: nothing that panics on a bad address may stand between entering the
	// graph and the job that leaves it, or Close would wait for ever.
	if err := g.enter(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *sampling) job() *Job {
	j := newJob(t)
	t.work.Stop = &j.stop
	return j
}

func (t *sampling) do() (memory.Memory, error) {
	var err error
	if t.work.Exclude, err = t.graph.csc.Exclude(t.exclude); err != nil {
		return memory.Memory{}, err
	}
	m, err := t.plan.CPU(&t.work)
	if err != nil || !t.joined {
		return m, err
	}
	return joined(m, nil)
}

func (t *sampling) over() { t.graph.leave() }

func (t *sampling) reads(g *Graph) bool { return t.graph == g }

func (t *sampling) fault() string { return "the graph's arrays changed while a batch was sampled" }

// newJob is a job that Shutdown knows, and that nobody has given to the executor yet.
func newJob(t jobTask) *Job {
	j := &Job{task: t, done: make(chan struct{})}
	running.Lock()
	defer running.Unlock()
	if running.jobs == nil {
		running.jobs = make(map[*Job]struct{})
	}
	running.jobs[j] = struct{}{}
	return j
}

// run executes the job on the executor's goroutine.
func (j *Job) run() {
	j.make()
	j.finish()
}

func (j *Job) make() {
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

// finish lets go of what is read and wakes who waits.
func (j *Job) finish() {
	j.task.over()
	running.Lock()
	delete(running.jobs, j)
	running.Unlock()
	j.ended = time.Now()
	close(j.done)
}

// Wait waits up to timeout milliseconds, for ever if negative. finished is false
// when the job is still on its way; otherwise the memory's address, with its
// reference, or the error is the caller's.
func (j *Job) Wait(timeout int64) (address int64, finished bool, err error) {
	if !j.await(timeout) {
		return 0, false, nil
	}
	if j.err != nil {
		return 0, true, j.err
	}
	return j.memory.Address(), true, nil
}

// Span waits as Wait does, and takes nothing. It writes when the job's work began and ended,
// in nanoseconds of CLOCK_MONOTONIC, to the address of two integers.
func (j *Job) Span(timeout, address int64) (finished bool, err error) {
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

// await says whether the job is finished within timeout milliseconds.
func (j *Job) await(timeout int64) bool {
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

// Cancel ends the job and returns once it no longer touches memory of Python's;
// a result that was ready is dropped.
func (j *Job) Cancel() {
	j.end()
	<-j.done
	if j.err == nil {
		j.memory.Release()
	}
}

// end asks the job to end, and ends it here where it has not begun.
func (j *Job) end() {
	j.stop.Store(true)
	if engine.withdraw(j) {
		// Else it would wait for the jobs before it, only to end at once.
		j.run()
	}
}

// Drop closes a graph whose jobs nobody waits for any more: they are cancelled.
func (g *Graph) Drop() {
	running.Lock()
	jobs := make([]*Job, 0, 1)
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
	jobs := make([]*Job, 0, len(running.jobs))
	for j := range running.jobs {
		j.stop.Store(true)
		jobs = append(jobs, j)
	}
	running.Unlock()
	for _, j := range jobs {
		<-j.done
	}
}

// MemoryStats is the bytes that batches and the pool hold, and the jobs on their way.
type MemoryStats struct {
	memory.Counts
	Jobs int `json:"jobs"`
}

// Stats reads the counters.
func Stats() MemoryStats {
	running.Lock()
	defer running.Unlock()
	return MemoryStats{memory.Count(), len(running.jobs) + countFlying()}
}

// NewMemory is the address of a memory of size bytes from the pool, whose pages are there
// already where it has one: of what is as large as a batch's features, the system takes
// several times as long to make new ones as it takes to write them.
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

// Trim gives pooled and scratch memory that no batch uses back to the system.
func Trim() {
	cpu.Trim()
	run.Trim()
	memory.Trim()
}
