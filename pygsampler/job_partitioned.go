package pygsampler

import (
	"sync"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/hetero"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/hgt"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/labor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/neighbor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/temporal"
	walks "github.com/pygsampler/pygsampler/pygsampler/internal/plan/walk"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/wholerows"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// A graph may be partitioned into ranges of contiguous nodes, each in its own process. A batch of
// it is a job like any other, of a graph without rows, which requests the rows of a hop (NextRequest),
// gets the answers (Answer) that SubmitRows has computed in the processes of the partitions, and
// numbers them. Python transports questions and answers.

// AskWords is the number of words of a question that describe it; the starts of the partitions
// follow them.
const AskWords = 5

// asking is the exchange of questions and answers of a job.
type asking struct {
	waiting *HostJob
	asks    chan *cpu.RowRequest
	answers chan []cpu.RowReply
	once    sync.Once
	failed  chan struct{} // closed by Fail, once why is there
	why     error
}

func newAsking() asking {
	return asking{asks: make(chan *cpu.RowRequest), answers: make(chan []cpu.RowReply), failed: make(chan struct{})}
}

func (t *asking) asked() *asking { return t }

// partitionedTask is a batch as a job's task, whose rows are asked for.
type partitionedTask struct {
	*sampleTask
	asking
}

// pollStop is the interval at which a batch that waits for an answer checks whether it is to end.
const pollStop = 20 * time.Millisecond

// submitPartitioned starts a batch of a graph without rows, whose partitions begin at the nodes in
// Bounds: the same number of bounds for each relation, one relation after another. With SeedTimes
// the edges have times: in a heterogeneous graph the edges of the relations in Timed.
func submitPartitioned(g *Graph, p *Sampler, r *Request) (Job, error) {
	p, err := g.partitionedBy(p, r)
	if err != nil {
		return nil, err
	}
	relations := int64(len(g.relations))
	if relations == 0 || r.NumBounds%relations != 0 || r.NumBounds/relations < 2 {
		return nil, Errorf(KindValue, "bounds: expected at least 2 of each of %d relations, got %d", relations, r.NumBounds)
	}
	var given *plan.Times
	if r.SeedTimes != 0 {
		given = &plan.Times{Of: make([]*times.SortedRows, relations)}
		for i := range given.Of {
			if r.Timed == 0 || memory.View[int64](r.Timed, relations)[i] != 0 {
				given.Of[i] = &times.SortedRows{Float: r.FloatTimes}
			}
		}
		if given.Seeds, err = seedKeys(r.SeedTimes, r.NumSeeds, r.FloatTimes); err != nil {
			return nil, err
		}
	}
	t := &partitionedTask{asking: newAsking()}
	parts := &cpu.Partition{Bounds: append([]int64(nil), memory.View[int64](r.Bounds, r.NumBounds)...), Ask: t.ask}
	// Excluded edges belong to the rows of the partitions, and are not looked up here.
	own := *r
	own.NumExclude = 0
	if t.sampleTask, err = newTask(g, p, &own); err != nil {
		return nil, err
	}
	t.work.Parts, t.work.Times = parts, given
	return t.run(), nil
}

// run starts the job on a separate thread: it mostly waits, so it occupies no executor thread.
func (t *partitionedTask) run() *HostJob {
	t.waiting = newJob(t)
	t.work.Stop = &t.waiting.stop
	go t.waiting.run()
	return t.waiting
}

// partitionedBy is the sampler by which a graph's partitions are sampled.
func (g *Graph) partitionedBy(p *Sampler, r *Request) (*Sampler, error) {
	if g.csc.Schema != nil && (r.NumExclude > 0 || r.Sorted != 0) {
		return nil, Errorf(KindValue, "exclude: expected excluded edges and times that the partitions have, got some")
	}
	switch plan := p.Plan.(type) {
	case *walks.Plan, *hetero.Plan, *hgt.Plan, *labor.Plan:
	case *program.Plan:
		apart, err := plan.Partitioned()
		if err != nil {
			return nil, err
		}
		return &Sampler{Plan: apart, Seed: p.Seed, Document: p.Document}, nil
	default:
		if _, err := hopwise(p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// submitWalkRelations starts walks along relations of a partitioned heterogeneous graph: Bounds as
// in submitPartitioned, and for each edge type of the plan its relation, and the number of nodes of
// its destination type.
func submitWalkRelations(g *Graph, p *Sampler, r *Request) (Job, error) {
	relations := int64(len(g.relations))
	walked, is := p.Plan.(*walks.Plan)
	if !is || walked.Second() || walked.Roots > 0 || relations == 0 || r.NumBounds%relations != 0 || r.NumBounds/relations < 2 {
		return nil, Errorf(KindValue, "bounds: expected walks of first order, and at least 2 of each of %d relations, got %d", relations, r.NumBounds)
	}
	if err := r.onCPU(g); err != nil {
		return nil, err
	}
	t := &partitionedTask{asking: newAsking()}
	parts := &cpu.Partition{Bounds: append([]int64(nil), memory.View[int64](r.Bounds, r.NumBounds)...), Ask: t.ask, Relations: int(relations)}
	for _, w := range memory.View[[2]int64](r.WalkRelations, r.NumWalkRelations) {
		if w[0] < 0 || w[0] >= relations {
			return nil, Errorf(KindValue, "along: expected relations below %d, got %d", relations, w[0])
		}
		parts.Along = append(parts.Along, cpu.WalkRelation{Relation: w[0], Nodes: w[1]})
	}
	for i, kind := range walked.Path {
		if kind >= r.NumWalkRelations {
			return nil, Errorf(KindValue, "metapath[%d]: expected a kind of edges below %d, got %d", i, r.NumWalkRelations, kind)
		}
	}
	wide := csc.Array{Bits: 64}
	roots := csc.Homogeneous(&csc.Relation{NumNodes: r.Roots, Indptr: csc.ArrayOf([]int64{0}), Indices: wide, EdgeIDs: wide})
	t.sampleTask = &sampleTask{graph: g, plan: p, work: plan.Work{Graph: roots, Batch: p.batch(r), Crew: crewOf(r.Threads), Parts: parts}}
	for i, seeds := int64(0), csc.Borrow(r.Seeds, r.NumSeeds, r.SeedBits); i < r.NumSeeds; i++ {
		t.work.Batch.Seeds.I64 = append(t.work.Batch.Seeds.I64, seeds.Element(i))
	}
	t.work.Batch.Seeds.Bits = 64
	if err := enterAll(g.relations); err != nil {
		return nil, err
	}
	return t.run(), nil
}

// hopwise is a plan whose batches are hops of rows, which may lie elsewhere.
func hopwise(p *Sampler) (interface {
	Request(w *plan.Work) *cpu.Request
}, error) {
	switch plan := p.Plan.(type) {
	case *neighbor.Plan:
		return plan, nil
	case *temporal.Plan:
		return plan, nil
	case *wholerows.Plan:
		return plan, nil
	}
	return nil, Errorf(KindValue, "sampler: expected one of neighbors, walks or a program for a partitioned graph, got one of another family")
}

// ask publishes a question and waits for its answer.
func (t *asking) ask(a *cpu.RowRequest) ([]cpu.RowReply, error) {
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
			if t.waiting.stop.Load() {
				return nil, request.ErrCancelled
			}
		}
	}
}

func (j *HostJob) parts() (*asking, error) {
	t, is := j.task.(interface{ asked() *asking })
	if !is {
		return nil, Errorf(KindValue, "job: expected one of a partitioned graph, got another")
	}
	return t.asked(), nil
}

// NextRequest waits up to timeout milliseconds, without limit if negative, for the next question of a
// job, which is written to an address with room for AskWords words and one for each bound: the hop,
// the width of ids, and the addresses of the nodes (ids), of their trees (ids) and of the bounds of
// these (int64), 0 if they have none; then the offsets of the nodes of each partition, and the
// number of nodes. It returns 1 for a question, 2 if the job asks nothing more, and 0 on timeout.
// The addresses are valid until Answer.
func (j *HostJob) NextRequest(timeout, address, room int64) (state int64, err error) {
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

// addressOf returns the address of an array; 0 if it is empty.
func addressOf(a csc.Array) int64 {
	if a.Len() == 0 {
		return 0
	}
	return int64(uintptr(a.Pointer()))
}

// Answer answers the question of a job: at an address there are an address and a size for each
// partition, of the result of Rows there. The answers must stay valid until NextRequest has returned once
// more.
func (j *HostJob) Answer(address, count int64) error {
	t, err := j.parts()
	if err != nil {
		return err
	}
	list := make([]cpu.RowReply, count)
	for i, words := 0, memory.View[int64](address, 2*count); i < len(list); i++ {
		list[i] = cpu.RowReply{Address: words[2*i], Size: words[2*i+1]}
	}
	select {
	case t.answers <- list:
	case <-j.done:
	}
	return nil
}

// Fail ends a job that will not get its rows.
func (j *HostJob) Fail(why string) error {
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

// rowsTask are rows of a relation of a part as a job's task.
type rowsTask struct {
	*sampleTask
	rows    cpu.PartRows
	without []int64 // ids of excluded edges
}

// submitRows begins to draw rows of a relation of a partition; few rows are drawn at once. Excluded edges are ids of the
// whole relation, or with IDs the places of the partition's edges.
func submitRows(g *Graph, p *Sampler, c *Request) (Job, error) {
	if plan, is := p.Plan.(*walks.Plan); is {
		return submitEdges(g, p, plan, c)
	}
	if err := c.onCPU(g); err != nil {
		return nil, err
	}
	if c.Relation < 0 || c.Relation >= int64(len(g.relations)) {
		return nil, Errorf(KindValue, "rows: expected one of %d relations, got %d", len(g.relations), c.Relation)
	}
	t := &rowsTask{sampleTask: &sampleTask{graph: g, plan: p, work: plan.Work{Graph: &g.csc, Batch: p.batch(c), Crew: crewOf(c.Threads)}}}
	relation := g.relations[c.Relation]
	if c.Sorted != 0 {
		sorted, err := relation.sortedRows(memory.View[[2]int64](c.Sorted, 1)[0])
		if err != nil {
			return nil, err
		}
		t.work.Times = &plan.Times{Of: make([]*times.SortedRows, len(g.relations))}
		t.work.Times.Of[c.Relation] = sorted
	}
	if err := t.ofPlan(c.Relation); err != nil {
		return nil, err
	}
	req := t.rows.Request
	if req.First = c.First; c.Hop < 0 || c.Hop >= int64(len(req.Fanouts)) || relation.csc.Indices.Bits != c.SeedBits ||
		c.EdgeIDBits != 32 && c.EdgeIDBits != 64 || c.First < 0 || c.FirstEdge < 0 || req.Disjoint != (c.SubgraphIDs != 0) && c.NumSeeds > 0 ||
		c.Sorted != 0 && c.RowBounds == 0 && c.NumSeeds > 0 {
		return nil, Errorf(KindValue, "rows: expected one of %d hops, ids of %d bits, edge ids of 32 or 64 bits, first ids >= 0, subgraphs where seeds have their own and bounds where edges have times, got hop %d, %d bits, %d bits, %d and %d",
			len(req.Fanouts), relation.csc.Indices.Bits, c.Hop, c.SeedBits, c.EdgeIDBits, c.First, c.FirstEdge)
	}
	ask := &cpu.RowRequest{Hop: int(c.Hop), Vertices: ownArray(csc.Borrow(c.Seeds, c.NumSeeds, c.SeedBits))}
	if c.SubgraphIDs != 0 {
		ask.Trees = ownArray(csc.Borrow(c.SubgraphIDs, c.NumSeeds, c.SeedBits))
	}
	if c.RowBounds != 0 && c.Sorted != 0 {
		// Trees have bounds, too, where a relation's edges have no times.
		ask.Bounds = append(ask.Bounds, memory.View[int64](c.RowBounds, c.NumSeeds)...)
	}
	if c.NumExclude > 0 {
		t.without = append(t.without, memory.View[int64](c.Exclude, c.NumExclude)...)
	}
	t.rows.Ask, t.rows.Edge, t.rows.EdgeBits = ask, c.FirstEdge, c.EdgeIDBits
	if c.IDs != 0 {
		t.rows.IDs = csc.Borrow(c.IDs, c.NumIDs, c.EdgeIDBits)
	}
	// This must come last, as newTask explains.
	if err := enterAll(g.relations); err != nil {
		return nil, err
	}
	degree := float64(req.Relation.NumEdges()) / float64(max(req.Relation.NumRows(), 1))
	few := float64(c.NumSeeds)*t.rows.Rule(ask.Hop).Mean(degree) <= promptEdges && len(t.without) == 0
	return t.begin(t, few), nil
}

// ofPlan sets the rows of a relation that the plan draws, and the additional arrays.
func (t *rowsTask) ofPlan(relation int64) error {
	g, own := &t.graph.csc, t.graph.csc.Relations[relation]
	if g.Schema == nil {
		hops, err := hopwise(t.plan)
		if err == nil {
			err = t.plan.check(t.graph)
		}
		if err != nil {
			return err
		}
		t.rows.Request = hops.Request(&t.work)
		if whole, is := t.plan.Plan.(*wholerows.Plan); is {
			t.rows.Beside = whole.Arrays(own)
			t.rows.Weights = len(t.rows.Beside) == 0 && own.Alias != nil
		}
		return nil
	}
	var about *cpu.HeteroRequest
	t.work.SeedCounts = make([]int64, len(g.NodeTypes))
	switch plan := t.plan.Plan.(type) {
	case *hetero.Plan:
		var err error
		if about, err = plan.Request(&t.work); err != nil {
			return err
		}
	case *wholerows.Plan:
		about, t.rows.Weights = plan.Hetero(&t.work), own.Alias != nil
	default:
		return Errorf(KindValue, "sampler: expected one of neighbors, or of whole rows, for a partitioned heterogeneous graph, got one of another family")
	}
	req := &cpu.Request{Relation: own, EdgeWeights: about.EdgeWeights}
	req.Batch = about.Batch
	req.Hops = request.Hops{Fanouts: about.Fanouts[relation], Replace: about.Replace, Disjoint: about.Disjoint}
	if about.Times != nil {
		req.Times = about.Times[relation]
	}
	t.rows.Request, t.rows.Salt, t.rows.Mixed = req, g.EdgeTypes[relation].Salt, g.Mixed()
	return nil
}

func (t *rowsTask) do() (memory.Memory, error) {
	t.rows.Most, t.rows.Exclude = t.work.Most, t.rows.Relation.ExcludeOf(t.without, t.rows.Edge)
	return cpu.SampleRows(&t.rows, t.work.Crew, t.work.Stop)
}

// edgesTask are edges that walks take, of rows of a part, as a job's task.
type edgesTask struct {
	*sampleTask
	edges walk.PartEdges
}

// submitEdges starts the choice of an edge of each row, or another request of walks: Hop is the
// step, or a value that the rule derives from it, Bounds are its draws, and Trees are the previous
// nodes of the walks.
func submitEdges(g *Graph, p *Sampler, plan *walks.Plan, c *Request) (Job, error) {
	relation, err := g.Relation()
	if err != nil {
		return nil, err
	}
	first, bits := plan.Roots == 0 && !plan.Second(), relation.csc.Indices.Bits
	if c.EdgeIDBits != 32 && c.EdgeIDBits != 64 || c.First < 0 || c.FirstEdge < 0 || c.Hop < 0 || bits != c.SeedBits && (!first || c.SeedBits == 32) {
		return nil, Errorf(KindValue, "rows: expected ids of %d bits, or 64 for walks of first order, edge ids of 32 or 64 bits, and a step and first ids >= 0, got %d, %d, %d, %d and %d",
			bits, c.SeedBits, c.EdgeIDBits, c.Hop, c.First, c.FirstEdge)
	}
	var draws []int64
	var last csc.Array
	if c.RowBounds != 0 {
		draws = append(draws, memory.View[int64](c.RowBounds, c.NumSeeds)...)
	}
	if c.SubgraphIDs != 0 {
		last = ownArray(csc.Borrow(c.SubgraphIDs, c.NumSeeds, c.SeedBits))
	}
	t := &edgesTask{}
	if t.sampleTask, err = newTask(g, p, c); err != nil {
		return nil, err
	}
	t.edges = walk.PartEdges{
		Rule: &plan.Rule, Relation: &relation.csc, First: c.First, Hop: c.Hop, Vertices: t.work.Batch.Seeds, Last: last, Draws: draws,
		Edge: c.FirstEdge, EdgeBits: c.EdgeIDBits,
	}
	if c.IDs != 0 {
		t.edges.IDs = csc.Borrow(c.IDs, c.NumIDs, c.IDsBits)
	}
	return t.begin(t, c.NumSeeds <= promptEdges), nil
}

func (t *edgesTask) do() (memory.Memory, error) { return walk.Take(&t.edges) }
