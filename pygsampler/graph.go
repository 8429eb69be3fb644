package pygsampler

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// Graph is a set of relations, all on the CPU or all on one device, and the schema of a
// heterogeneous graph. A homogeneous graph is closed with its relation. A heterogeneous graph holds
// none of its relations: a job enters the relations that it reads, and their owner closes them.
type Graph struct {
	csc       csc.Graph // on the CPU wherever the relations are
	relations []*Relation
	device    *deviceGraph // all of them; nil: they are on the CPU
}

// Homogeneous returns the graph of one relation.
func Homogeneous(r *Relation) *Graph {
	return &Graph{csc: csc.Graph{Relations: []*csc.Relation{&r.csc}}, relations: []*Relation{r}, device: r.device}
}

// schemaDocument is a schema as Python writes it.
type schemaDocument struct {
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

// NewGraph returns the heterogeneous graph of a document and of a relation for each of its edge
// types.
func NewGraph(document string, relations []*Relation) (made *Graph, err error) {
	var d schemaDocument
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		return nil, Errorf(KindValue, "graph: expected a JSON object, got %v", err)
	}
	if len(d.Types) != len(d.Nodes) || len(d.Types) != len(d.Salts) || len(d.Relations) != len(relations) {
		return nil, Errorf(KindValue, "graph: expected a size and a salt for each node type and a relation for each edge type, got %d, %d, %d, %d and %d",
			len(d.Types), len(d.Nodes), len(d.Salts), len(d.Relations), len(relations))
	}
	g := &Graph{csc: csc.Graph{Schema: new(csc.Schema)}, relations: relations}
	for i, name := range d.Types {
		salt, err := strconv.ParseUint(d.Salts[i], 10, 64)
		if err != nil {
			return nil, Errorf(KindValue, "types[%q]: expected a salt of 64 bits, got %q", name, d.Salts[i])
		}
		g.csc.NodeTypes = append(g.csc.NodeTypes, csc.NodeType{Name: name, Nodes: d.Nodes[i], Salt: salt})
	}
	// The arrays on the CPU are checked even if the relations are on a device.
	on := make([]*Relation, len(relations))
	for i, e := range d.Relations {
		salt, err := strconv.ParseUint(e.Salt, 10, 64)
		if err != nil {
			return nil, Errorf(KindValue, "relations[%q]: expected a salt of 64 bits, got %q", e.Name, e.Salt)
		}
		r := relations[i]
		on[i] = r.onHost()
		if on[i] == nil || (r.device == nil) != (relations[0].device == nil) || r.device != nil && r.device.index != relations[0].device.index {
			return nil, Errorf(KindValue, "relations[%q]: expected all relations on the CPU, or all brought from there to one device, got another", e.Name)
		}
		g.csc.Add(csc.EdgeType{Name: e.Name, Short: e.Short, Src: e.Src, Dst: e.Dst, Salt: salt}, &on[i].csc)
	}
	if err := enterAll(on); err != nil {
		return nil, err
	}
	defer leaveAll(on)
	// The arrays may be mapped from a file with an unreadable page.
	defer graphfile.RecoverFault(&err, "graph file")
	defer graphfile.FaultsPanic()()
	if err := g.csc.Validate(); err != nil {
		return nil, err
	}
	if len(relations) > 0 && relations[0].device != nil {
		return g, g.bring()
	}
	return g, nil
}

// bring makes the graph that a device samples, of relations that are there.
func (g *Graph) bring() error {
	d := g.relations[0].device
	var relations []*cuda.Graph
	for _, r := range g.relations {
		relations = append(relations, r.device.graph)
	}
	graph := d.engine.NewHetero(g.csc.Schema, relations)
	if err := graph.LoadHetero(); err != nil {
		return onDevice(err)
	}
	g.device = &deviceGraph{index: d.index, engine: d.engine, graph: graph}
	return nil
}

// Relation returns the relation of a homogeneous graph.
func (g *Graph) Relation() (*Relation, error) {
	if g.csc.Schema != nil {
		return nil, Errorf(KindValue, "graph: expected a homogeneous one, got a heterogeneous one")
	}
	return g.relations[0], nil
}

// Close waits for the jobs that read a homogeneous graph; the relations of a heterogeneous graph
// are closed separately.
func (g *Graph) Close() {
	if g.csc.Schema == nil {
		g.relations[0].Close()
	}
}

// Drop closes a graph whose jobs have no waiter any more: the jobs are cancelled.
func (g *Graph) Drop() {
	if g.csc.Schema == nil {
		g.relations[0].Drop()
	}
}

func enterAll(relations []*Relation) error {
	for i, r := range relations {
		if err := r.enter(); err != nil {
			leaveAll(relations[:i])
			return err
		}
	}
	return nil
}

func leaveAll(relations []*Relation) {
	for _, r := range relations {
		r.leave()
	}
}

// Join returns the memory of the homogeneous graph of a heterogeneous graph. ids is the address of
// the bounds of the edge ids of each relation: first the starts, then the ends.
func (g *Graph) Join(ids int64) (int64, error) {
	if g.csc.Schema == nil || g.device != nil {
		return 0, Errorf(KindValue, "graph: expected a heterogeneous one on the CPU, got another")
	}
	if err := enterAll(g.relations); err != nil {
		return 0, err
	}
	defer leaveAll(g.relations)
	m, err := g.csc.ToHomogeneous(memory.View[int64](ids, int64(len(g.relations)+1)), crewOf(0))
	if err != nil {
		return 0, err
	}
	return m.Address(), nil
}

// times are the times of a request's edges and seeds; nil: it has none.
func (g *Graph) times(r *Request) (*plan.Times, error) {
	if r.Sorted == 0 {
		return nil, nil
	}
	t := &plan.Times{Of: make([]*times.SortedRows, len(g.relations))}
	words, err := memory.View[[2]int64](r.Sorted, int64(len(g.relations))), error(nil)
	for i, relation := range g.relations {
		if words[i][0] == 0 && g.csc.Schema != nil {
			continue
		}
		if t.Of[i], err = relation.sortedRows(words[i]); err != nil {
			return nil, err
		}
	}
	t.Seeds, err = seedKeys(r.SeedTimes, r.NumSeeds, t.Float())
	return t, err
}

// keys returns the device addresses of the keys of the times of each relation; 0: there are none.
func (g *Graph) keys(t *plan.Times) (keys []gpu.Address, err error) {
	keys = make([]gpu.Address, len(g.relations))
	for i, r := range g.relations {
		if t == nil || t.Of[i] == nil {
			continue
		}
		if keys[i], err = r.device.graph.Keys(t.Of[i].Edges); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// split returns the number of seeds of each type of a heterogeneous graph in a request, and copies
// of the excluded edges of each relation, or nil if there are none at all.
func (g *Graph) split(r *Request) (seeds []int64, exclude [][]int64, err error) {
	var all []int64
	if r.NumExclude > 0 {
		all = append(all, memory.View[int64](r.Exclude, r.NumExclude)...)
		exclude = [][]int64{all}
	}
	if g.csc.Schema == nil {
		return nil, exclude, nil
	}
	types, of := len(g.csc.NodeTypes), [2]int64{}
	counts := append([]int64(nil), memory.View[int64](r.Counts, int64(types+len(g.relations)))...)
	for i, n := range counts {
		if i < types {
			of[0] += max(n, 0)
		} else {
			of[1] += max(n, 0)
		}
	}
	if of[0] != r.NumSeeds || of[1] != r.NumExclude {
		return nil, nil, Errorf(KindValue, "seeds: expected numbers that add up to %d and %d, got %v", r.NumSeeds, r.NumExclude, counts)
	}
	if r.NumExclude > 0 {
		exclude = exclude[:0]
		for _, n := range counts[types:] {
			exclude = append(exclude, all[:n])
			all = all[n:]
		}
	}
	return counts[:types], exclude, nil
}

// about adds the relation of a heterogeneous graph to the error of an excluded edge.
func (g *Graph) about(relation int, err error) error {
	var value *csc.ValueError
	if g.csc.Schema != nil && errors.As(err, &value) {
		return &csc.ValueError{Text: g.csc.EdgeTypes[relation].Name + ": " + value.Text}
	}
	return err
}

// excludes are the excluded edges of each relation; nil: there are none.
func (g *Graph) excludes(ids [][]int64) (list []*csc.Exclusions, err error) {
	for i, of := range ids {
		found, err := g.csc.Relations[i].Exclude(of)
		if err != nil {
			return nil, g.about(i, err)
		}
		list = append(list, found)
	}
	return list, nil
}

// ends are the node types that each relation of a heterogeneous graph leads from and to.
func (g *Graph) ends() (ends []int64) {
	if g.csc.Schema == nil {
		return nil
	}
	for _, e := range g.csc.EdgeTypes {
		ends = append(ends, int64(e.Src), int64(e.Dst))
	}
	return ends
}

// WalksByType renumbers the ids of walks along a metapath of steps steps so that they count within
// their types. nodes and edges are the addresses of the first id of the type of each step; roots is
// the number of nodes of the first type.
func WalksByType(walks, nodes, edges, steps, roots int64) error {
	if steps < 0 || steps > walk.MaxLength {
		return Errorf(KindValue, "length: expected 0 to %d steps, got %d", walk.MaxLength, steps)
	}
	m := memory.FromAddress(walks)
	return walk.ByType(m, memory.View[int64](nodes, steps+1), memory.View[int64](edges, steps), roots)
}
