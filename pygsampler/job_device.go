package pygsampler

import (
	"errors"
	"sync"
	"time"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// mostCalls bounds what is submitted together.
const mostCalls = 1 << 20

// callWords is the number of words of a batch of a launch, in addition to the common request: the
// address, number and bits of the seeds, flags, epoch, batch, and the address and capacity of the
// result.
const callWords = 8

// each are the requests of several batches: r, with the words at an address.
func (r *Request) each(calls, count int64) ([]Request, error) {
	if calls == 0 || count < 1 || count > mostCalls {
		return nil, Errorf(KindValue, "calls: expected 1 to %d at an address, got %d at %#x", mostCalls, count, calls)
	}
	list := make([]Request, count)
	for i, w := range memory.View[[callWords]int64](calls, count) {
		one := *r
		one.Seeds, one.NumSeeds, one.SeedBits, one.Epoch, one.Batch, one.Out, one.OutBytes = w[0], w[1], int(w[2]), w[4], w[5], w[6], w[7]
		one.OnDevice, one.Known = w[3]&request.FlagOnDevice != 0, w[3]&request.FlagKnown != 0
		list[i] = one
	}
	return list, nil
}

// DeviceJob is one running batch on a device. It ends once, with a result or an error; until then
// the device reads the graph, and the seeds if they are on the device. No thread waits for it: it
// ends when a caller polls it.
type DeviceJob struct {
	relations []*Relation // each as often as it was entered
	device    int
	out       int64

	started chan struct{} // closed when flight is what it will be
	flight  *cuda.Flight  // nil where the start failed

	mu        sync.Mutex
	ended     bool
	cancelled bool
	memory    memory.Memory
	needed    uint64
	err       error
}

// flying holds every job on a device that has not ended, so that Shutdown can.
var flying struct {
	sync.Mutex
	jobs map[*DeviceJob]struct{}
}

// DeviceCapacity returns a sufficient number of bytes of a caller's memory for a batch of seeds
// seeds: the size of similar batches plus a margin, or an estimate. The header of a batch in a
// caller's memory recommends the capacity of the next one (batch.WordCapacity).
func DeviceCapacity(g *Graph, p *Sampler, seeds int64) (int64, error) {
	if g.device != nil && seeds < 0 {
		return 0, Errorf(KindValue, "seeds: expected a length >= 0, got %d", seeds)
	}
	if err := p.checkOnDevice(g); err != nil {
		return 0, err
	}
	// Before anybody makes room for what no device can do.
	c := cuda.Call{Plan: p.CUDA(), NumSeeds: seeds}
	if err := c.Plan.Check(g.device.graph, &c); err != nil {
		return 0, err
	}
	return int64(g.device.graph.Capacity(c.Plan, seeds)), nil
}

// DeviceConcurrency returns the number of batches of seeds seeds that may run at the same time, at
// most most: bounded by the free memory and by budget bytes, unless that is 0.
func DeviceConcurrency(g *Graph, p *Sampler, seeds, most, budget int64) (int64, error) {
	if seeds < 0 || most < 1 || budget < 0 {
		return 0, Errorf(KindValue, "seeds, most, budget: expected a length >= 0, a number >= 1 and bytes >= 0, got %d, %d and %d", seeds, most, budget)
	}
	if err := p.checkOnDevice(g); err != nil {
		return 0, err
	}
	n, err := g.device.graph.Together(p.CUDA(), seeds, most, uint64(budget))
	return n, onDevice(err)
}

// checkOnDevice refuses graphs that are on no device, or that the plan cannot sample.
func (p *Sampler) checkOnDevice(g *Graph) error {
	if g.device == nil {
		return Errorf(KindValue, "graph: expected one on a CUDA device, got one on the CPU")
	}
	return p.check(g)
}

// flightPlan is a batch that a device is about to begin, and what is looked up for it once its relations are entered.
type flightPlan struct {
	call    *cuda.Call
	plan    plan.Plan
	seeds   []int64   // how many there are of each node type
	exclude [][]int64 // of each relation
	times   *plan.Times
}

// flightPlan checks and copies what a request for a batch on a device says.
func (g *Graph) flightPlan(p *Sampler, r *Request) (f *flightPlan, err error) {
	if err := p.checkOnDevice(g); err != nil {
		return nil, err
	}
	f = &flightPlan{plan: p.Plan}
	if f.call, err = g.device.call(p, r); err != nil {
		return nil, err
	}
	if f.seeds, f.exclude, err = g.split(r); err == nil {
		f.times, err = g.times(r)
	}
	return f, err
}

// prepare looks up what the call needs in the relations, and returns the graph that the device samples.
func (f *flightPlan) prepare(g *Graph) (*cuda.Graph, error) {
	var excluded []int64
	for i, ids := range f.exclude {
		positions, err := g.relations[i].device.positions(ids)
		if err != nil {
			return nil, g.about(i, err)
		}
		excluded = append(excluded, int64(len(positions)))
		f.call.Exclude = append(f.call.Exclude, positions...)
	}
	made, is := f.plan.(plan.PerCall)
	if !is {
		if f.times != nil {
			return nil, Errorf(KindValue, "sampler: expected one of edges with times, got one of another family")
		}
		var err error
		if of, has := f.plan.(plan.Excluding); has && f.exclude != nil {
			f.call.Plan, err = of.CUDAExcluding()
		}
		return g.device.graph, err
	}
	keys, err := g.keys(f.times)
	if err != nil {
		return nil, err
	}
	f.call.Plan, err = made.Device(&g.csc, f.seeds, excluded, f.times, keys)
	if _, single := f.call.Plan.(*cuda.SingleType); single {
		return g.relations[0].device.graph, err
	}
	return g.hetero(), err
}

// hetero is the graph on its device for the kernel of heterogeneous graphs.
func (g *Graph) hetero() *cuda.Graph {
	if g.csc.Schema == nil {
		return g.device.graph.SingleType()
	}
	return g.device.graph
}

// submitOnDevice puts a batch into a stream of the graph's device and returns.
func submitOnDevice(g *Graph, p *Sampler, r *Request) (_ Job, err error) {
	d := g.device
	if r.EdgeLists {
		return nil, Errorf(KindValue, "graph: expected one on the CPU for edge lists, got one on cuda:%d", d.index)
	}
	f, err := g.flightPlan(p, r)
	if err != nil {
		return nil, err
	}
	j := &DeviceJob{device: d.index, out: r.Out, started: make(chan struct{})}
	for _, relation := range g.relations {
		if err := relation.enterDevice([]*DeviceJob{j}); err != nil {
			j.leave()
			return nil, err
		}
		j.relations = append(j.relations, relation)
	}
	var flight *cuda.Flight
	// Whatever happens: Close and Shutdown wait for jobs that were let in.
	defer func() { j.begun(flight, err) }()
	of, err := f.prepare(g)
	if err == nil {
		flight, err = d.engine.Start(of, f.call)
	}
	if err != nil {
		return nil, onDevice(err)
	}
	return j, nil
}

// begun says what has become of the start of a job that was let in.
func (j *DeviceJob) begun(f *cuda.Flight, err error) {
	if j.flight = f; f == nil {
		j.ended, j.err = true, err
		j.leave()
	}
	close(j.started)
}

// submitMany puts several batches into a stream together, as one launch where
// the engine can.
func submitMany(g *Graph, p *Sampler, calls []Request) (jobs []*DeviceJob, err error) {
	plans := make([]*flightPlan, len(calls))
	for i := range calls {
		if plans[i], err = g.flightPlan(p, &calls[i]); err != nil {
			return nil, err
		}
	}
	for _, c := range calls {
		jobs = append(jobs, &DeviceJob{relations: g.relations, device: g.device.index, out: c.Out, started: make(chan struct{})})
	}
	if err := g.relations[0].enterDevice(jobs); err != nil {
		return nil, err
	}
	var flights []*cuda.Flight
	// Whatever happens: Close and Shutdown wait for jobs that were let in.
	defer func() {
		for i, j := range jobs {
			var f *cuda.Flight
			if i < len(flights) {
				f = flights[i]
			}
			j.begun(f, err)
		}
	}()
	var of *cuda.Graph
	batches := make([]*cuda.Call, len(calls))
	for i, f := range plans {
		if of, err = f.prepare(g); err != nil {
			return jobs, err
		}
		batches[i] = f.call
	}
	flights, err = g.device.engine.StartMany(of, batches)
	return jobs, onDevice(err)
}

// call copies what stays the caller's.
func (d *deviceGraph) call(p *Sampler, c *Request) (*cuda.Call, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.OutBytes < 0 || c.Out == 0 && c.OutBytes > 0 {
		return nil, Errorf(KindValue, "out: expected an address and bytes >= 0, got %#x and %d", c.Out, c.OutBytes)
	}
	if c.OnDevice && !c.Known && c.NumSeeds > 0 {
		if err := readable("seeds", c.Seeds, d.index); err != nil {
			return nil, err
		}
	}
	call := &cuda.Call{
		Plan: p.CUDA(), Batch: p.batch(c),
		Share: int(p.share), Stream: uintptr(c.Stream), Own: c.OwnStream, Out: gpu.Address(c.Out), OutBytes: uint64(c.OutBytes),
	}
	// The calling thread's own stream is another one on the thread that waits, which
	// may have to launch again.
	call.Own = call.Own || call.Stream == gpu.PerThreadStream
	if c.OnDevice && c.NumSeeds > 0 {
		call.Seeds, call.NumSeeds, call.SeedBits = gpu.Address(c.Seeds), c.NumSeeds, c.SeedBits
		call.Batch.Seeds.Bits = c.SeedBits
	} else {
		call.Batch.Seeds = csc.Borrow(c.Seeds, c.NumSeeds, c.SeedBits)
	}
	return call, nil
}

// enterDevice lets all jobs in, or none.
func (g *Relation) enterDevice(jobs []*DeviceJob) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return Errorf(KindClosed, "graph: expected an open graph, got a closed one")
	}
	g.jobs += len(jobs)
	flying.Lock()
	defer flying.Unlock()
	if flying.jobs == nil {
		flying.jobs = make(map[*DeviceJob]struct{})
	}
	for _, j := range jobs {
		g.flying[j] = struct{}{}
		flying.jobs[j] = struct{}{}
	}
	return nil
}

// leave lets go of the relations.
func (j *DeviceJob) leave() {
	flying.Lock()
	delete(flying.jobs, j)
	flying.Unlock()
	for _, g := range j.relations {
		g.mu.Lock()
		delete(g.flying, j)
		g.mu.Unlock()
		g.leave()
	}
}

// slice bounds the duration of one poll of a flight, so that several waiters of the same job, and a
// caller that cancels it, alternate.
const slice = 50 * time.Millisecond

// settle waits for the job, at most for timeout, or without limit if it is negative; it returns
// true if the job has ended. It holds no lock except the flight's, for a slice.
func (j *DeviceJob) settle(timeout time.Duration) bool {
	<-j.started
	begin := time.Now()
	for {
		if j.isEnded() {
			return true
		}
		left := slice
		if timeout >= 0 {
			left = min(left, max(0, timeout-time.Since(begin)))
		}
		b, done, err := j.flight.Wait(left)
		if done {
			j.end(b, err)
			return true
		}
		if timeout >= 0 && time.Since(begin) >= timeout {
			return false
		}
	}
}

func (j *DeviceJob) isEnded() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ended
}

// end keeps the outcome of the flight, once.
func (j *DeviceJob) end(b cuda.Batch, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return
	}
	defer j.leave()
	j.ended = true
	switch {
	case err != nil:
		j.err = onDevice(err)
	case j.cancelled:
		if j.err = b.Memory.Free(b.Stream); j.err == nil {
			j.err = request.ErrCancelled
		}
	case b.Needed > 0:
		j.needed = b.Needed
	case j.out != 0:
		j.memory, j.err = memory.OverDevice(j.device, gpu.Address(j.out), b.Header[batch.WordSize], b.Header)
	default:
		if j.memory, j.err = memory.FromDevice(j.device, &b.Memory, b.Header); j.err != nil {
			j.err = errors.Join(j.err, b.Memory.Free(b.Stream))
		}
	}
}

// Wait implements Job.
func (j *DeviceJob) Wait(timeout int64) (address int64, finished bool, err error) {
	wait := time.Duration(-1)
	if timeout >= 0 {
		wait = time.Duration(min(timeout, 1<<40)) * time.Millisecond
	}
	if !j.settle(wait) {
		return 0, false, nil
	}
	switch {
	case j.err != nil:
		return 0, true, j.err
	case j.needed > 0:
		return -int64(j.needed), true, nil
	}
	return j.memory.Address(), true, nil
}

// Span returns an error, since the times of a batch on a device are unknown.
func (j *DeviceJob) Span(int64, int64) (finished bool, err error) {
	return false, Errorf(KindValue, "job: expected one on the CPU, got one on cuda:%d", j.device)
}

// Cancel ends the job and returns once the device no longer works on it; a result that was ready is
// dropped.
func (j *DeviceJob) Cancel() {
	j.cancel()
	j.settle(-1)
	if j.err == nil && j.needed == 0 {
		j.memory.Release()
	}
}

func (j *DeviceJob) cancel() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cancelled = true
}

// endFlying cancels all jobs on devices; their owners get the error when they wait.
func endFlying() {
	flying.Lock()
	jobs := make([]*DeviceJob, 0, len(flying.jobs))
	for j := range flying.jobs {
		jobs = append(jobs, j)
	}
	flying.Unlock()
	for _, j := range jobs {
		j.cancel()
	}
	for _, j := range jobs {
		j.settle(-1)
	}
}

func countFlying() int {
	flying.Lock()
	defer flying.Unlock()
	return len(flying.jobs)
}
