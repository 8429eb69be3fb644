package pygsampler

import (
	"sync"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family/neighbor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family/temporal"
	walks "github.com/pygsampler/pygsampler/pygsampler/internal/family/walk"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// A graph may be in parts of contiguous vertices, each in a process of its own. A batch of it is a job like any
// other, of a graph without rows, which asks for those of a hop (Asked), is answered (Answer) by what SubmitRows has
// made where each part lies, and numbers them. Who carries questions and answers is Python's affair.

// AskWords is how many words of a question say what it asks; behind them stand the starts of the parts.
const AskWords = 5

// partsTask is a batch as a job's task, whose rows are asked for.
type partsTask struct {
	*sampling
	job     *Job
	asks    chan *cpu.Ask
	answers chan []cpu.Answer
	once    sync.Once
	failed  chan struct{} // closed by Fail, once why is there
	why     error
}

// pollStop is how often a batch that waits for an answer looks whether it is to end.
const pollStop = 20 * time.Millisecond

// SubmitParts begins a batch of a graph without rows, which is in parts that begin at those vertices. bounds is the
// address of as many int64 as there are parts, and of the number of vertices behind them. With seed times, as
// TimedCall has them, the batch is one by time.
func SubmitParts(g *Graph, p *Sampler, c TimedCall, bounds, numBounds int64, float bool) (*Job, error) {
	if plan, is := p.Plan.(*walks.Plan); is {
		if err := plan.CheckParts(); err != nil {
			return nil, err
		}
	} else if _, err := hopwise(p); err != nil {
		return nil, err
	}
	if numBounds < 2 {
		return nil, Errorf(KindValue, "bounds: expected at least 2, got %d", numBounds)
	}
	t := &partsTask{asks: make(chan *cpu.Ask), answers: make(chan []cpu.Answer), failed: make(chan struct{})}
	parts := &cpu.Parts{Bounds: append([]int64(nil), memory.View[int64](bounds, numBounds)...), Ask: t.ask}
	var given *family.Times
	if c.SeedTimes != 0 {
		keys, err := seedKeys(c.SeedTimes, c.NumSeeds, float)
		if err != nil {
			return nil, err
		}
		given = &family.Times{Of: []*times.Rows{{Float: float, ByVertex: c.ByVertex}}, Seeds: keys}
	}
	var err error
	if t.sampling, err = newSampling(g, p, c.Call); err != nil {
		return nil, err
	}
	t.work.Parts, t.work.Times = parts, given
	t.job = newJob(t)
	t.work.Stop = &t.job.stop
	// It waits more than it works, so it takes nobody's turn.
	go t.job.run()
	return t.job, nil
}

// hopwise is a plan whose batches are hops of rows, which may lie elsewhere.
func hopwise(p *Sampler) (interface {
	Request(w *family.Work) *cpu.Request
}, error) {
	switch plan := p.Plan.(type) {
	case *neighbor.Plan:
		return plan, nil
	case *temporal.Plan:
		return plan, nil
	}
	return nil, Errorf(KindValue, "sampler: expected one of neighbours or walks for a graph in parts, got one of another family")
}

// do makes the batch. Excluded edges are those of the parts' rows, and not looked up here.
func (t *partsTask) do() (memory.Memory, error) { return t.plan.CPU(&t.work) }

// ask hands a question out and waits for its answer.
func (t *partsTask) ask(a *cpu.Ask) ([]cpu.Answer, error) {
	ticker := time.NewTicker(pollStop)
	defer ticker.Stop()
	asks := t.asks
	for {
		select {
		case asks <- a:
			asks = nil
		case answers := <-t.answers:
			return answers, nil
		case <-t.failed:
			return nil, t.why
		case <-ticker.C:
			if t.job.stop.Load() {
				return nil, request.ErrCancelled
			}
		}
	}
}

func (j *Job) parts() (*partsTask, error) {
	t, is := j.task.(*partsTask)
	if !is {
		return nil, Errorf(KindValue, "job: expected one of a graph in parts, got another")
	}
	return t, nil
}

// Asked waits up to timeout milliseconds, for ever if negative, for the next question of a job, which is written to
// an address with room for AskWords words and one for each bound: the hop, the width of ids, and the addresses of the vertices
// (ids), of their trees (ids) and of the bounds of these (int64), 0 where they have none; then where the vertices of
// each part begin, and how many there are. It says 1, 2 where the job asks nothing more, and 0 where time is up. The
// addresses are good until the answer has been given.
func (j *Job) Asked(timeout, address, room int64) (state int64, err error) {
	t, err := j.parts()
	if err != nil {
		return 0, err
	}
	var late <-chan time.Time
	if timeout >= 0 {
		timer := time.NewTimer(time.Duration(timeout) * time.Millisecond)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case a := <-t.asks:
		if room < AskWords+int64(len(a.Starts)) {
			return 0, Errorf(KindValue, "room: expected at least %d words, got %d", AskWords+len(a.Starts), room)
		}
		out := memory.View[int64](address, AskWords+int64(len(a.Starts)))
		out[0], out[1], out[2] = int64(a.Hop), int64(a.Vertices.Bits), addressOf(a.Vertices)
		out[3], out[4] = addressOf(a.Trees), addressOf(csc.Array{Bits: 64, I64: a.Bounds})
		copy(out[AskWords:], a.Starts)
		return 1, nil
	case <-j.done:
		return 2, nil
	case <-late:
		return 0, nil
	}
}

// addressOf is where an array begins; 0 where it is empty.
func addressOf(a csc.Array) int64 {
	if a.Len() == 0 {
		return 0
	}
	return int64(uintptr(a.Pointer()))
}

// Answer gives a job what it has asked for: at an address stand an address and a size for each part, of what Rows has
// made there. The answers must stay until Asked has returned once more.
func (j *Job) Answer(address, count int64) error {
	t, err := j.parts()
	if err != nil {
		return err
	}
	list := make([]cpu.Answer, count)
	for i, words := 0, memory.View[int64](address, 2*count); i < len(list); i++ {
		list[i] = cpu.Answer{Address: words[2*i], Size: words[2*i+1]}
	}
	select {
	case t.answers <- list:
	case <-j.done:
	}
	return nil
}

// Fail ends a job whose rows nobody will bring.
func (j *Job) Fail(why string) error {
	t, err := j.parts()
	if err != nil {
		return err
	}
	t.once.Do(func() {
		t.why = Errorf(KindOther, "%s", why)
		close(t.failed)
	})
	return nil
}

// RowsCall asks for rows of a part of a graph: excluded edges are told by ids of the whole graph, or with IDs by the
// places of the part's edges. The seeds of Call are the vertices, Trees is the address of an id for
// each, Bounds of an int64, 0 where they have none. Sorted is as TimedCall has it.
type RowsCall struct {
	Call
	Hop, First    int64
	FirstEdge     int64
	EdgeIDBits    int
	Trees, Bounds int64
	IDs, NumIDs   int64 // of the part's edges, of EdgeIDBits; 0: FirstEdge and what follows
	Sorted        int64
	ByVertex      bool
}

// rowsTask are rows of a part as a job's task.
type rowsTask struct {
	*sampling
	rows cpu.PartRows
}

// SubmitRows begins to draw rows of a part; few rows are drawn at once.
func SubmitRows(g *Graph, p *Sampler, c RowsCall) (*Job, error) {
	if plan, is := p.Plan.(*walks.Plan); is {
		return submitEdges(g, p, plan, c)
	}
	plan, err := hopwise(p)
	if err != nil {
		return nil, err
	}
	if c.EdgeIDBits != 32 && c.EdgeIDBits != 64 || c.First < 0 || c.FirstEdge < 0 || c.Hop < 0 {
		return nil, Errorf(KindValue, "rows: expected edge ids of 32 or 64 bits and a hop and first ids >= 0, got %d, %d, %d and %d",
			c.EdgeIDBits, c.Hop, c.First, c.FirstEdge)
	}
	var given *family.Times
	if c.Sorted != 0 {
		rows, err := sortedRows(c.Sorted, g.csc.NumEdges(), c.ByVertex)
		if err != nil {
			return nil, err
		}
		given = &family.Times{Of: []*times.Rows{rows}}
	}
	ask := &cpu.Ask{Hop: int(c.Hop)}
	if c.Trees != 0 {
		trees := csc.Borrow(c.Trees, c.NumSeeds, c.SeedBits)
		ask.Trees = csc.Array{Bits: trees.Bits, I32: append([]int32(nil), trees.I32...), I64: append([]int64(nil), trees.I64...)}
	}
	if c.Bounds != 0 {
		ask.Bounds = append(ask.Bounds, memory.View[int64](c.Bounds, c.NumSeeds)...)
	}
	t := &rowsTask{}
	if t.sampling, err = newSampling(g, p, c.Call); err != nil {
		return nil, err
	}
	ask.Vertices = t.work.Batch.Seeds
	t.work.Times = given
	j := newJob(t)
	t.work.Stop = &j.stop
	req := plan.Request(&t.work)
	if req.First = c.First; c.Hop >= int64(len(req.Fanouts)) || req.Graph.Indices.Bits != c.SeedBits || (given != nil) != (c.Bounds != 0) {
		j.err = Errorf(KindValue, "rows: expected one of %d hops, ids of %d bits, and bounds where edges have times, got hop %d, %d bits",
			len(req.Fanouts), req.Graph.Indices.Bits, c.Hop, c.SeedBits)
		j.finish()
		return j, nil
	}
	var ids csc.Array
	if c.IDs != 0 {
		ids = csc.Borrow(c.IDs, c.NumIDs, c.EdgeIDBits)
	}
	t.rows = cpu.PartRows{IDs: ids, Request: req, Ask: ask, Edge: c.FirstEdge, EdgeBits: c.EdgeIDBits}
	return promptly(j, &t.work, t.few()), nil
}

// few guesses that the rows are drawn in a moment.
func (t *rowsTask) few() bool {
	degree := float64(t.graph.csc.NumEdges()) / float64(max(t.graph.csc.Rows(), 1))
	mean := t.rows.Rule(t.rows.Ask.Hop).Mean(degree)
	return float64(t.rows.Ask.Vertices.Len())*mean <= promptEdges && len(t.exclude) == 0
}

func (t *rowsTask) do() (memory.Memory, error) {
	req := t.rows.Request
	req.Exclude = t.graph.csc.ExcludeOf(t.exclude, t.rows.Edge)
	// Sample may have bounded the edges since.
	req.Most = t.work.Most
	return cpu.Rows(&t.rows, t.work.Crew, t.work.Stop)
}

// edgesTask are edges that walks take, of rows of a part, as a job's task.
type edgesTask struct {
	*sampling
	edges walk.PartEdges
}

// submitEdges begins to choose an edge of each row: Hop is the step, and Bounds are its draws.
func submitEdges(g *Graph, p *Sampler, plan *walks.Plan, c RowsCall) (*Job, error) {
	if err := plan.CheckParts(); err != nil {
		return nil, err
	}
	if c.EdgeIDBits != 32 && c.EdgeIDBits != 64 || c.First < 0 || c.FirstEdge < 0 || c.Hop < 0 || c.Bounds == 0 || g.csc.Indices.Bits != c.SeedBits {
		return nil, Errorf(KindValue, "rows: expected ids of %d bits with draws, edge ids of 32 or 64 bits, and a step and first ids >= 0, got %d, %d, %d, %d and %d",
			g.csc.Indices.Bits, c.SeedBits, c.EdgeIDBits, c.Hop, c.First, c.FirstEdge)
	}
	draws := append([]int64(nil), memory.View[int64](c.Bounds, c.NumSeeds)...)
	t := &edgesTask{}
	var err error
	if t.sampling, err = newSampling(g, p, c.Call); err != nil {
		return nil, err
	}
	j := newJob(t)
	t.work.Stop = &j.stop
	t.edges = walk.PartEdges{
		Rule: &plan.Rule, Graph: &g.csc, First: c.First, Step: c.Hop, Vertices: t.work.Batch.Seeds, Draws: draws,
		Edge: c.FirstEdge, EdgeBits: c.EdgeIDBits,
	}
	if c.IDs != 0 {
		t.edges.IDs = csc.Borrow(c.IDs, c.NumIDs, c.EdgeIDBits)
	}
	return promptly(j, &t.work, c.NumSeeds <= promptEdges), nil
}

func (t *edgesTask) do() (memory.Memory, error) { return walk.Take(&t.edges) }
