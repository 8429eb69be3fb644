package pygsampler

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
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
	if err := enterAll(on); err != nil {
		return nil, err
	}
	defer leaveAll(on)
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
func (t *HeteroGraph) enter() error { return enterAll(t.graphs) }

func (t *HeteroGraph) leave() { leaveAll(t.graphs) }

func enterAll(graphs []*Graph) error {
	for i, g := range graphs {
		if err := g.enter(); err != nil {
			leaveAll(graphs[:i])
			return err
		}
	}
	return nil
}

func leaveAll(graphs []*Graph) {
	for _, g := range graphs {
		g.leave()
	}
}

func (t *HeteroGraph) reads(g *Graph) bool { return slices.Contains(t.graphs, g) }

func (t *HeteroGraph) onDevice() *deviceGraph { return t.device }

// Close does nothing: the graphs of relations are closed by themselves.
func (t *HeteroGraph) Close() {}

// Drop does nothing, as Close.
func (t *HeteroGraph) Drop() {}

// Join is the memory of the graph without types of a graph with types; ids is the address of where those of each
// relation's edges begin, and of where they end.
func (t *HeteroGraph) Join(ids int64) (int64, error) {
	if t.device != nil {
		return 0, Errorf(KindValue, "graph: expected one on the CPU, got one on cuda:%d", t.device.index)
	}
	if err := t.enter(); err != nil {
		return 0, err
	}
	defer t.leave()
	m, err := t.csc.Homogeneous(memory.View[int64](ids, int64(len(t.graphs)+1)), crewOf(0))
	if err != nil {
		return 0, err
	}
	return m.Address(), nil
}

// times are the times of a request; nil: it has none.
func (t *HeteroGraph) times(r *Request) (*plan.Times, error) {
	if r.Sorted == 0 {
		return nil, nil
	}
	edges := make([]int64, len(t.graphs))
	for i, g := range t.graphs {
		if edges[i] = t.csc.Relations[i].Graph.NumEdges(); g.device != nil {
			edges[i] = g.device.graph.Edges
		}
	}
	return timesOf(r, edges...)
}

// split is how many seeds a request has of each type, and copies of the excluded edges of each relation,
// none where there are none at all.
func (t *HeteroGraph) split(r *Request) (seeds []int64, exclude [][]int64, err error) {
	kinds := len(t.csc.Kinds)
	counts := append([]int64(nil), memory.View[int64](r.Counts, int64(kinds+len(t.graphs)))...)
	of := [2]int64{}
	for i, n := range counts {
		if i < kinds {
			of[0] += max(n, 0)
		} else {
			of[1] += max(n, 0)
		}
	}
	if of[0] != r.NumSeeds || of[1] != r.NumExclude {
		return nil, nil, Errorf(KindValue, "seeds: expected numbers that add up to %d and %d, got %v", r.NumSeeds, r.NumExclude, counts)
	}
	if r.NumExclude > 0 {
		all := append([]int64(nil), memory.View[int64](r.Exclude, r.NumExclude)...)
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

// excludes are the excluded edges of each relation; nil: there are none.
func (t *HeteroGraph) excludes(ids [][]int64) ([]*csc.Exclusions, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list := make([]*csc.Exclusions, len(ids))
	for i, of := range ids {
		var err error
		if list[i], err = t.graphs[i].csc.Exclude(of); err != nil {
			return nil, t.about(i, err)
		}
	}
	return list, nil
}

// ends are the node types that each relation leads from and to.
func (t *HeteroGraph) ends() []int64 {
	ends := make([]int64, 0, 2*len(t.csc.Relations))
	for _, r := range t.csc.Relations {
		ends = append(ends, int64(r.Src), int64(r.Dst))
	}
	return ends
}

// WalksByType has the ids of walks along a metapath of so many steps count within their types. nodes
// and edges are the addresses of where the ids of each step's type begin, roots is how many vertices the
// first has.
func WalksByType(walks, nodes, edges, steps, roots int64) error {
	if steps < 0 || steps > walk.MaxLength {
		return Errorf(KindValue, "length: expected 0 to %d steps, got %d", walk.MaxLength, steps)
	}
	m := memory.FromAddress(walks)
	return walk.ByType(m, memory.View[int64](nodes, steps+1), memory.View[int64](edges, steps), roots)
}
