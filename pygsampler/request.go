package pygsampler

import (
	"math"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Job computes a memory of the engine. It ends once, with a result, an error or a cancellation.
type Job interface {
	// Wait waits up to timeout milliseconds, without limit if negative. finished is false while the
	// job is running; then the caller owns the memory's address, with its reference, or gets the
	// error. A negative address is no memory: it is minus the number of bytes that the Out of a
	// request would have needed.
	Wait(timeout int64) (address int64, finished bool, err error)
	// Span waits like Wait and leaves the result. It writes the times when the job's work began and
	// ended, in nanoseconds of CLOCK_MONOTONIC, to the address of two integers.
	Span(timeout, address int64) (finished bool, err error)
	// Cancel ends the job and returns once it uses no memory of Python; a result that was ready is
	// dropped.
	Cancel()
}

// Request asks the engine for a batch, or for rows of a partition. Its addresses belong to Python,
// and their arrays are copied before Submit returns, except seeds on a device.
// internal/request/words.go describes each word.
type Request struct {
	Prompt, EdgeLists, OwnStream, OnDevice, Known, FloatTimes bool

	Seeds, NumSeeds     int64
	SeedBits            int
	Epoch, Batch        int64
	Exclude, NumExclude int64
	Threads             int64

	Stream, Out, OutBytes, Timeout int64

	Counts, Sorted, SeedTimes, Timed int64

	Bounds, NumBounds, WalkRelations, NumWalkRelations, Roots int64

	Rows                            bool
	Relation, Hop, First, FirstEdge int64
	EdgeIDBits                      int
	IDs, NumIDs                     int64
	IDsBits                         int
	SubgraphIDs, RowBounds          int64
}

// PackedRequest is a request in Python's words, which also receive its result.
type PackedRequest struct {
	Request
	Graph, Sampler int64 // handles
	words          []int64
}

// Unpack decodes the request of size words at an address.
func Unpack(address, size int64) (p PackedRequest, err error) {
	if address == 0 || size < request.SizePlain || size > request.SizeRows {
		return p, Errorf(KindValue, "request: expected 16 to 56 words at an address, got %d at %#x", size, address)
	}
	if err := aligned(8, "request", address); err != nil {
		return p, err
	}
	words := memory.View[int64](address, size)
	w, err := request.Decode(words)
	if err != nil {
		return p, err
	}
	p.words, p.Graph, p.Sampler = words, w[request.WordGraph], w[request.WordSampler]
	p.Request = Request{
		Prompt: w.Has(request.FlagPrompt), EdgeLists: w.Has(request.FlagEdgeLists), OwnStream: w.Has(request.FlagOwnStream),
		OnDevice: w.Has(request.FlagOnDevice), Known: w.Has(request.FlagKnown), FloatTimes: w.Has(request.FlagFloatTimes),

		Seeds: w[request.WordSeeds], NumSeeds: w[request.WordNumSeeds], SeedBits: int(w[request.WordSeedBits]),
		Epoch: w[request.WordEpoch], Batch: w[request.WordBatch],
		Exclude: w[request.WordExclude], NumExclude: w[request.WordNumExclude], Threads: w[request.WordThreads],

		Stream: w[request.WordStream], Out: w[request.WordOut], OutBytes: w[request.WordOutBytes], Timeout: w[request.WordTimeout],

		Counts: w[request.WordCounts], Sorted: w[request.WordSorted], SeedTimes: w[request.WordSeedTimes], Timed: w[request.WordTimed],

		Bounds: w[request.WordBounds], NumBounds: w[request.WordNumBounds], Roots: w[request.WordRoots],
		WalkRelations: w[request.WordWalkRelations], NumWalkRelations: w[request.WordNumWalkRelations],

		Rows:     w[request.WordKind] == request.KindRows,
		Relation: w[request.WordRelation], Hop: w[request.WordHop], First: w[request.WordFirst], FirstEdge: w[request.WordFirstEdge],
		EdgeIDBits: int(w[request.WordEdgeIDBits]), IDs: w[request.WordIDs], NumIDs: w[request.WordNumIDs], IDsBits: int(w[request.WordIDsBits]),
		SubgraphIDs: w[request.WordSubgraphIDs], RowBounds: w[request.WordRowBounds],
	}
	return p, nil
}

// Answer writes the result of a job into the request's words if the caller waits for it and it is
// ready in time, or else the handle that add assigns to the job.
func (p *PackedRequest) Answer(j Job, add func(Job) int64) error {
	if p.Prompt {
		if address, finished, err := j.Wait(p.Timeout); finished && (err != nil || address > 0) {
			p.words[request.WordResult] = address
			return err
		}
	}
	p.AnswerJob(add(j))
	return nil
}

// AnswerJob writes the handle of a job into the request's words.
func (p *PackedRequest) AnswerJob(handle int64) { p.words[request.WordJob] = handle }

// Submit starts a request. A small batch of a prompt request is complete when it returns, which
// saves the wake-ups of another thread.
func Submit(g *Graph, p *Sampler, r *Request) (Job, error) {
	switch {
	case r.Rows:
		return submitRows(g, p, r)
	case r.WalkRelations != 0:
		return submitWalkRelations(g, p, r)
	case r.NumBounds != 0:
		return submitPartitioned(g, p, r)
	case g.device != nil:
		return submitOnDevice(g, p, r)
	}
	t, err := newTask(g, p, r)
	if err != nil {
		return nil, err
	}
	return t.begin(t, r.Prompt && t.prompt()), nil
}

// check returns an error for requests that cannot yield a batch.
func (r *Request) check() error {
	if r.SeedBits != 32 && r.SeedBits != 64 {
		return Errorf(KindType, "seeds: expected 32 or 64 bits, got %d", r.SeedBits)
	}
	if r.NumSeeds < 0 || r.NumExclude < 0 {
		return Errorf(KindValue, "seeds: expected a length >= 0, got %d", min(r.NumSeeds, r.NumExclude))
	}
	return checkBatch(r.Epoch, r.Batch)
}

// onCPU refuses what the CPU makes no batch of.
func (r *Request) onCPU(g *Graph) error {
	if g.device != nil {
		return Errorf(KindValue, "graph: expected one on the CPU, got one on cuda:%d", g.device.index)
	}
	if err := r.check(); err != nil {
		return err
	}
	if r.OnDevice || r.OwnStream || r.Out != 0 {
		return Errorf(KindValue, "graph: expected one on a CUDA device, got one on the CPU")
	}
	return nil
}

// checkBatch refuses numbers that no batch has.
func checkBatch(epoch, batch int64) error {
	if epoch < 0 || epoch > rng.MaxEpoch {
		return Errorf(KindValue, "epoch: expected an integer in [0, %d], got %d", rng.MaxEpoch, epoch)
	}
	if batch < 0 || batch > rng.MaxBatch {
		return Errorf(KindValue, "batch: expected an integer in [0, %d], got %d", int64(rng.MaxBatch), batch)
	}
	return nil
}

// sampleTask is a batch of a graph on the CPU as a job's task.
type sampleTask struct {
	graph     *Graph
	plan      *Sampler
	work      plan.Work
	exclude   [][]int64 // of each relation; empty: nothing is excluded
	edgeLists bool
}

// newTask checks and copies what a request says, and enters the graph: begin must be called next.
func newTask(g *Graph, p *Sampler, r *Request) (*sampleTask, error) {
	if err := r.onCPU(g); err != nil {
		return nil, err
	}
	if err := p.check(g); err != nil {
		return nil, err
	}
	t := &sampleTask{graph: g, plan: p, work: plan.Work{Graph: &g.csc, Batch: p.batch(r), Crew: crewOf(r.Threads)}, edgeLists: r.EdgeLists}
	var err error
	if t.work.SeedCounts, t.exclude, err = g.split(r); err != nil {
		return nil, err
	}
	if t.work.Times, err = g.times(r); err != nil {
		return nil, err
	}
	t.work.Batch.Seeds = ownArray(csc.Borrow(r.Seeds, r.NumSeeds, r.SeedBits))
	// This must come last: nothing that panics on a bad address may come between entering the graph
	// and the job that leaves it, or Close would wait for ever.
	if err := enterAll(g.relations); err != nil {
		return nil, err
	}
	return t, nil
}

// begin makes a job of a task around this one: at once if the batch is small, else on a thread of the executor's.
func (t *sampleTask) begin(task jobTask, small bool) *HostJob {
	j := newJob(task)
	t.work.Stop = &j.stop
	return promptly(j, &t.work, small)
}

// prompt guesses that the batch is done in a moment. The first lookup of edge ids takes
// longer.
func (t *sampleTask) prompt() bool {
	own := func(r *csc.Relation) bool { return r.EdgeIDs.Bits != 0 }
	return t.plan.Expected(&t.work) <= promptEdges && (len(t.exclude) == 0 || !slices.ContainsFunc(t.work.Graph.Relations, own))
}

func (t *sampleTask) do() (m memory.Memory, err error) {
	if t.work.Exclude, err = t.graph.excludes(t.exclude); err != nil {
		return m, err
	}
	if m, err = t.plan.CPU(&t.work); err != nil || !t.edgeLists {
		return m, err
	}
	return joined(m, t.graph.ends())
}

func (t *sampleTask) over() { leaveAll(t.graph.relations) }

func (t *sampleTask) reads(r *Relation) bool { return slices.Contains(t.graph.relations, r) }

func (t *sampleTask) fault() string { return "the graph's arrays changed while a batch was sampled" }

// ownArray is an array of its own.
func ownArray(a csc.Array) csc.Array {
	return csc.Array{Bits: a.Bits, I32: append([]int32(nil), a.I32...), I64: append([]int64(nil), a.I64...)}
}

// sortedRows holds the rows of the relation's edges sorted by time: the memory of startTimes, and
// whether the times belong to nodes.
func (g *Relation) sortedRows(words [2]int64) (*times.SortedRows, error) {
	if words[0] == 0 {
		return nil, Errorf(KindValue, "seed_time: expected the memory of sorted rows, got none")
	}
	m := memory.FromAddress(words[0])
	w := memory.ViewAt[int64](m, 0, times.TimesWords)
	rows := &times.SortedRows{
		Edges:    memory.ViewAt[int64](m, w[times.TimesKeys], w[times.TimesNumEdges]),
		Of:       memory.ViewAt[int64](m, w[times.TimesGiven], w[times.TimesNumGiven]),
		ByVertex: words[1] != 0, Float: w[times.TimesFloat] != 0,
	}
	edges := g.csc.NumEdges()
	if g.device != nil {
		edges = g.device.graph.Edges
	}
	if int64(len(rows.Edges)) != edges {
		return nil, Errorf(KindValue, "graph: expected one of %d edges, got %d", len(rows.Edges), edges)
	}
	return rows, nil
}

// seedKeys are the keys of times.
func seedKeys(address, count int64, float bool) ([]int64, error) {
	if !float {
		return append([]int64(nil), memory.View[int64](address, count)...), nil
	}
	keys := make([]int64, count)
	for i, t := range memory.View[float64](address, count) {
		if math.IsNaN(t) {
			return nil, Errorf(KindValue, "seed_time[%d]: expected a time, got nan", i)
		}
		keys[i] = times.Key(t)
	}
	return keys, nil
}
