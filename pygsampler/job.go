package pygsampler

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/owner"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Job is one batch on its way. It is finished exactly once, by a result or an
// error; until then it reads the graph's memory.
type Job struct {
	graph   *Graph
	plan    *Sampler
	work    family.Work
	exclude []int64
	threads int
	stop    atomic.Bool
	done    chan struct{}
	memory  memory.Memory
	err     error
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
}

// running holds every job that is not finished, so that Shutdown can end them.
var running struct {
	sync.Mutex
	jobs map[*Job]struct{}
}

// Submit queues a batch and returns at once.
func Submit(g *Graph, p *Sampler, c Call) (*Job, error) {
	j, err := newJob(g, p, c)
	if err == nil {
		engine.submit(j)
	}
	return j, err
}

// promptEdges is the size up to which Sample runs a batch on the caller's thread:
// some milliseconds, in which nobody misses Ctrl-C.
const promptEdges = 1 << 19

// Sample is Submit for a caller who waits at once. A small batch is finished when
// it returns, without the wake-ups that handing it to another thread costs.
func Sample(g *Graph, p *Sampler, c Call) (*Job, error) {
	j, err := newJob(g, p, c)
	if err != nil {
		return nil, err
	}
	if j.prompt() && engine.enter() {
		// The guess knows mean degrees only: seeds may all be hubs.
		j.work.Most = promptEdges
		j.sample()
		engine.give(1)
		if !errors.Is(j.err, request.ErrLarge) {
			j.finish()
			return j, nil
		}
		j.work.Most, j.err = 0, nil
	}
	engine.submit(j)
	return j, nil
}

// prompt guesses that the job is done in a moment. The first lookup of edge ids takes
// longer.
func (j *Job) prompt() bool {
	return j.plan.Expected(&j.work) <= promptEdges &&
		(len(j.exclude) == 0 || j.graph.csc.EdgeIDs.Bits == 0)
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

func newJob(g *Graph, p *Sampler, c Call) (*Job, error) {
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
	j := &Job{
		graph:   g,
		plan:    p,
		work:    family.Work{Graph: &g.csc, Batch: p.batch(&c)},
		threads: math.MaxInt,
		done:    make(chan struct{}),
	}
	j.work.Batch.Seeds, j.work.Stop = seeds, &j.stop
	if c.NumExclude > 0 {
		j.exclude = append(j.exclude, memory.View[int64](c.Exclude, c.NumExclude)...)
	}
	if c.Threads > 0 {
		j.threads = int(c.Threads)
	}
	j.work.Crew = crew{j.threads - 1}
	// Only now: nothing that panics on a bad address may stand between entering the
	// graph and the job that leaves it, or Close would wait for ever.
	if err := g.enter(); err != nil {
		return nil, err
	}
	running.Lock()
	if running.jobs == nil {
		running.jobs = make(map[*Job]struct{})
	}
	running.jobs[j] = struct{}{}
	running.Unlock()
	return j, nil
}

// run executes the job on the executor's goroutine.
func (j *Job) run() {
	j.sample()
	j.finish()
}

func (j *Job) sample() {
	// The graph may be a mapped file that another process makes shorter.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			// Excluded edges are looked up in arrays that their owner may have changed.
			j.err = fmt.Errorf("the graph's arrays changed while a batch was sampled, or a fault of pygsampler: %v", p)
		}
	}()
	if j.stop.Load() {
		j.err = request.ErrCancelled
		return
	}
	if j.work.Exclude, j.err = j.graph.csc.Exclude(j.exclude); j.err != nil {
		return
	}
	j.memory, j.err = j.plan.CPU(&j.work)
}

// finish lets go of the graph and wakes who waits.
func (j *Job) finish() {
	j.graph.leave()
	running.Lock()
	delete(running.jobs, j)
	running.Unlock()
	close(j.done)
}

// Wait waits up to timeout milliseconds, for ever if negative. finished is false
// when the job is still on its way; otherwise the memory's address, with its
// reference, or the error is the caller's.
func (j *Job) Wait(timeout int64) (address int64, finished bool, err error) {
	select {
	case <-j.done:
	default:
		if timeout < 0 {
			<-j.done
			break
		}
		timer := time.NewTimer(time.Duration(timeout) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-j.done:
		case <-timer.C:
			return 0, false, nil
		}
	}
	if j.err != nil {
		return 0, true, j.err
	}
	return j.memory.Address(), true, nil
}

// Cancel ends the job and returns once it no longer touches the graph's memory;
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
		if j.graph == g {
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
	owner.Shut()
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

// Trim gives pooled and scratch memory that no batch uses back to the system.
func Trim() {
	cpu.Trim()
	memory.Trim()
}
