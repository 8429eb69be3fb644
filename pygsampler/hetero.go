package pygsampler

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
)

// HeteroGraph is a graph with types: each type of edges is a graph, all of them on the CPU or all on one
// device. It holds none of them: a job enters those that it reads, and they are closed by their owner.
type HeteroGraph struct {
	csc    csc.HeteroGraph // on the CPU wherever the graphs are
	graphs []*Graph
	device *deviceGraph // all of them; nil: they are on the CPU
}

// heteroDocument is a graph with types as Python writes it.
type heteroDocument struct {
	Types     []string `json:"types"`
	Nodes     []int64  `json:"nodes"`
	Salts     []string `json:"salts"` // of the types, decimal
	Relations []struct {
		Name  string `json:"name"`
		Short string `json:"short"`
		Src   int    `json:"src"`
		Dst   int    `json:"dst"`
		Salt  string `json:"salt"` // decimal
	} `json:"relations"`
}

// NewHetero makes a graph with types of a document and of a graph for each of its relations.
func NewHetero(document string, graphs []*Graph) (made *HeteroGraph, err error) {
	var d heteroDocument
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		return nil, Errorf(KindValue, "graph: expected a JSON object, got %v", err)
	}
	if len(d.Types) != len(d.Nodes) || len(d.Types) != len(d.Salts) || len(d.Relations) != len(graphs) {
		return nil, Errorf(KindValue, "graph: expected a size and a salt for each type and a graph for each relation, got %d, %d, %d, %d and %d",
			len(d.Types), len(d.Nodes), len(d.Salts), len(d.Relations), len(graphs))
	}
	t := &HeteroGraph{graphs: graphs}
	for i, name := range d.Types {
		salt, err := strconv.ParseUint(d.Salts[i], 10, 64)
		if err != nil {
			return nil, Errorf(KindValue, "types[%q]: expected a salt of 64 bits, got %q", name, d.Salts[i])
		}
		t.csc.Kinds = append(t.csc.Kinds, csc.NodeType{Name: name, Nodes: d.Nodes[i], Salt: salt})
	}
	for i, r := range d.Relations {
		salt, err := strconv.ParseUint(r.Salt, 10, 64)
		if err != nil {
			return nil, Errorf(KindValue, "relations[%q]: expected a salt of 64 bits, got %q", r.Name, r.Salt)
		}
		host := graphs[i].onHost()
		if host == nil || (graphs[i].device == nil) != (graphs[0].device == nil) || host != graphs[i] && graphs[i].device.index != graphs[0].device.index {
			return nil, Errorf(KindValue, "relations[%q]: expected all graphs on the CPU, or all brought from there to one device, got another", r.Name)
		}
		t.csc.Relations = append(t.csc.Relations, csc.Relation{
			Graph: &host.csc, Name: r.Name, Short: r.Short, Src: r.Src, Dst: r.Dst, Salt: salt,
		})
	}
	// Of a graph on a device too it is the arrays on the CPU that are looked at.
	on := make([]*Graph, len(graphs))
	for i, g := range graphs {
		on[i] = g.onHost()
	}
	leave, err := enterAll(on)
	if err != nil {
		return nil, err
	}
	defer leave()
	// The arrays may be those of a file, of which a page cannot be read.
	defer graphfile.RecoverFault(&err, "graph file")
	defer graphfile.FaultsPanic()()
	if err := t.csc.Validate(); err != nil {
		return nil, err
	}
	if len(graphs) > 0 && graphs[0].device != nil {
		return t, t.bring()
	}
	return t, nil
}

// onHost is the same graph on the CPU; nil where there is none.
func (g *Graph) onHost() *Graph {
	if g.device != nil {
		return g.device.host
	}
	return g
}

// enter holds all graphs until leave is called, or none.
func (t *HeteroGraph) enter() (leave func(), err error) { return enterAll(t.graphs) }

func enterAll(graphs []*Graph) (leave func(), err error) {
	entered := 0
	leave = func() {
		for _, g := range graphs[:entered] {
			g.leave()
		}
	}
	for _, g := range graphs {
		if err := g.enter(); err != nil {
			leave()
			return nil, err
		}
		entered++
	}
	return leave, nil
}

// Join is the memory of the graph without types of a graph with types; ids is the address of where those of each
// relation's edges begin, and of where they end.
func (t *HeteroGraph) Join(ids int64) (int64, error) {
	if t.device != nil {
		return 0, Errorf(KindValue, "graph: expected one on the CPU, got one on cuda:%d", t.device.index)
	}
	leave, err := t.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	m, err := t.csc.Homogeneous(memory.View[int64](ids, int64(len(t.graphs)+1)), crewOf(0))
	if err != nil {
		return 0, err
	}
	return m.Address(), nil
}

// HeteroCall is a call whose seeds are so many of each type of vertices, and whose excluded edges
// are so many of each relation, one behind another: Counts is the address of all these numbers. Where edges have
// times, SeedTimes is the address of one for each seed, as TimedCall has them, and Sorted that of two numbers for each
// relation: the memory that StartTimes has made, 0 for none, and whether its times are vertices'.
type HeteroCall struct {
	Call
	Counts            int64
	Sorted, SeedTimes int64
}

// times are those of a call; nil: it has none.
func (t *HeteroGraph) times(c *HeteroCall) (*plan.Times, error) {
	if c.Sorted == 0 {
		return nil, nil
	}
	given := new(plan.Times)
	for i, w := range memory.View[[2]int64](c.Sorted, int64(len(t.graphs))) {
		if w[0] == 0 {
			given.Of = append(given.Of, nil)
			continue
		}
		edges := t.csc.Relations[i].Graph.NumEdges()
		if t.device != nil {
			edges = t.graphs[i].device.graph.Edges
		}
		rows, err := sortedRows(w[0], edges, w[1] != 0)
		if err != nil {
			return nil, err
		}
		given.Of = append(given.Of, rows)
	}
	var err error
	given.Seeds, err = seedKeys(c.SeedTimes, c.NumSeeds, given.Float())
	return given, err
}

// heteroPlan is a plan that samples graphs with types.
type heteroPlan interface {
	plan.Plan
	// Fits refuses graphs whose types the plan does not name, or that have others.
	Fits(g *csc.HeteroGraph) error
}

// sampledTypes is a batch of a graph with types as a job's task.
type sampledTypes struct {
	graph   *HeteroGraph
	plan    *Sampler
	work    plan.Work
	exclude [][]int64
	joined  bool
	leave   func()
}

// SubmitHetero is Submit for a graph with types, and with prompt it is Sample.
func SubmitHetero(g *HeteroGraph, p *Sampler, c HeteroCall, prompt bool) (*Job, error) {
	if g.device != nil {
		return nil, Errorf(KindValue, "graph: expected one on the CPU, got one on cuda:%d", g.device.index)
	}
	t, err := newSampledTypes(g, p, c)
	if err != nil {
		return nil, err
	}
	j := newJob(t)
	t.work.Stop = &j.stop
	if prompt {
		return t.sample(j), nil
	}
	engine.submit(j)
	return j, nil
}

// newSampledTypes checks and copies what a call says; a job must be made of it next.
func newSampledTypes(g *HeteroGraph, p *Sampler, c HeteroCall) (*sampledTypes, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	fitted, is := p.Plan.(heteroPlan)
	if !is {
		return nil, Errorf(KindValue, "sampler: expected one of graphs with types, got one of another family")
	}
	if err := fitted.Fits(&g.csc); err != nil {
		return nil, err
	}
	t := &sampledTypes{graph: g, plan: p, work: plan.Work{Hetero: &g.csc, Batch: p.batch(&c.Call)}, joined: c.Joined}
	var err error
	if t.work.SeedCounts, t.exclude, err = g.split(&c); err != nil {
		return nil, err
	}
	if t.work.Times, err = g.times(&c); err != nil {
		return nil, err
	}
	ids := csc.Borrow(c.Seeds, c.NumSeeds, c.SeedBits)
	ids.I32 = append([]int32(nil), ids.I32...)
	ids.I64 = append([]int64(nil), ids.I64...)
	t.work.Batch.Seeds = ids
	t.work.Crew = crewOf(c.Threads)
	// Only now, as newSampling says.
	leave, err := g.enter()
	if err != nil {
		return nil, err
	}
	t.leave = leave
	return t, nil
}

// split is how many seeds a call has of each type, and copies of the excluded edges of each relation,
// none where there are none at all.
func (t *HeteroGraph) split(c *HeteroCall) (seeds []int64, exclude [][]int64, err error) {
	kinds := len(t.csc.Kinds)
	counts := append([]int64(nil), memory.View[int64](c.Counts, int64(kinds+len(t.graphs)))...)
	of := [2]int64{}
	for i, n := range counts {
		if i < kinds {
			of[0] += max(n, 0)
		} else {
			of[1] += max(n, 0)
		}
	}
	if of[0] != c.NumSeeds || of[1] != c.NumExclude {
		return nil, nil, Errorf(KindValue, "seeds: expected numbers that add up to %d and %d, got %v", c.NumSeeds, c.NumExclude, counts)
	}
	if c.NumExclude > 0 {
		all := append([]int64(nil), memory.View[int64](c.Exclude, c.NumExclude)...)
		for _, n := range counts[kinds:] {
			exclude = append(exclude, all[:n])
			all = all[n:]
		}
	}
	return counts[:kinds], exclude, nil
}

// about says which relation the error of an excluded edge is of.
func (t *HeteroGraph) about(relation int, err error) error {
	var value *csc.ValueError
	if errors.As(err, &value) {
		return &csc.ValueError{Text: t.csc.Relations[relation].Name + ": " + value.Text}
	}
	return err
}

// sample makes a small batch at once, and submits others.
func (t *sampledTypes) sample(j *Job) *Job {
	return promptly(j, &t.work, len(t.exclude) == 0 && t.plan.Expected(&t.work) <= promptEdges)
}

func (t *sampledTypes) do() (memory.Memory, error) {
	for i, ids := range t.exclude {
		if t.work.Excludes == nil {
			t.work.Excludes = make([]*csc.Exclusions, len(t.exclude))
		}
		var err error
		if t.work.Excludes[i], err = t.graph.graphs[i].csc.Exclude(ids); err != nil {
			return memory.Memory{}, t.graph.about(i, err)
		}
	}
	m, err := t.plan.CPU(&t.work)
	if err != nil || !t.joined {
		return m, err
	}
	ends := make([]int64, 0, 2*len(t.graph.csc.Relations))
	for _, r := range t.graph.csc.Relations {
		ends = append(ends, int64(r.Src), int64(r.Dst))
	}
	return joined(m, ends)
}

func (t *sampledTypes) over() { t.leave() }

func (t *sampledTypes) reads(g *Graph) bool {
	for _, own := range t.graph.graphs {
		if own == g {
			return true
		}
	}
	return false
}

func (t *sampledTypes) fault() string { return "the graph's arrays changed while a batch was sampled" }
