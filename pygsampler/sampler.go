package pygsampler

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/contexts"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/hetero"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/hgt"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/labor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/neighbor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/temporal"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/walk"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/wholerows"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/calibrate"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/explain"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// families are the kinds of samplers by their names in documents; research.go adds the families of
// papers' experiments.
var families = map[string]plan.Parse{
	"neighbor": neighbor.Parse, "walk": walk.Parse, "program": program.Parse, "typed": hetero.Parse, "hgt": hgt.Parse,
	"temporal": temporal.Parse, "labor": labor.Parse, "rows": wholerows.Parse, "context": contexts.Parse,
}

// Sampler holds a family's plan, its document, and a seed.
type Sampler struct {
	plan.Plan
	Seed     uint64
	Document string // with defaults filled in
	share    int64  // as Within says; 0: no bound
}

// Within returns a sampler whose launches use at most share thousandths of a device. Its batches
// are the same.
func (p *Sampler) Within(share int64) (*Sampler, error) {
	if share < 1 || share > cuda.WholeShare {
		return nil, Errorf(KindValue, "share: expected 1 to %d thousandths, got %d", cuda.WholeShare, share)
	}
	q := *p
	q.share = share
	return &q, nil
}

// NewSampler checks a document: a JSON object with the family, and that family's options.
func NewSampler(document string, seed uint64) (*Sampler, error) {
	d := plan.Read(document)
	name := d.Name("family", "a family of samplers")
	parse, ok := families[name]
	if !ok {
		d.Refuse(request.ErrValue, "family: expected one of %v, got '%s'", slices.Sorted(maps.Keys(families)), name)
		return nil, d.Err()
	}
	p := parse(d)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return &Sampler{Plan: p, Seed: seed, Document: d.String()}, nil
}

// check refuses graphs that the plan cannot sample.
func (p *Sampler) check(g *Graph) error {
	if g.csc.Schema != nil {
		fitted, is := p.Plan.(plan.Heterogeneous)
		if !is {
			return Errorf(KindValue, "sampler: expected one of heterogeneous graphs, got one of another family")
		}
		return fitted.Fits(&g.csc)
	}
	checked, is := p.Plan.(plan.Homogeneous)
	if !is {
		return Errorf(KindValue, "graph: expected a heterogeneous one, got a homogeneous one")
	}
	own := g.csc.Relation(0)
	if g.device != nil {
		d := g.device.graph
		has := plan.Arrays{Edges: d.Edges, Weights: d.Alias != 0, Adjacency: d.Back != nil, Kinds: d.Kinds}
		if host := g.device.host; host != nil {
			has.EdgeData, has.VertexData = host.csc.EdgeData, host.csc.VertexData
		}
		return checked.Check(has)
	}
	return checked.Check(plan.Arrays{
		Edges: own.NumEdges(), Weights: own.Alias != nil, Adjacency: own.Back != nil, Kinds: own.Kinds,
		EdgeData: own.EdgeData, VertexData: own.VertexData,
	})
}

// batch is which batch a request makes, without its seeds.
func (p *Sampler) batch(r *Request) request.Batch {
	return request.Batch{Seed: p.Seed, Epoch: uint32(r.Epoch), Number: uint64(r.Batch)}
}

// Lines returns the text of a program after all optimization passes.
func (p *Sampler) Lines() (string, error) {
	plan, is := p.Plan.(*program.Plan)
	if !is {
		return "", Errorf(KindValue, "plan: expected one of a program, got one of another family")
	}
	return plan.Program.String(), nil
}

// Places returns a line for each array that a batch of the plan's program has in addition to its
// blocks; the line names the list that its elements belong to.
func (p *Sampler) Places() (string, error) {
	plan, is := p.Plan.(*program.Plan)
	if !is {
		return "", Errorf(KindValue, "plan: expected one of a program, got one of another family")
	}
	return strings.Join(plan.Program.Places(), "\n"), nil
}

// Calibrate measures the costs of programs' operations on this machine, and stores them for later
// processes. It returns the path and the nanoseconds as JSON.
func Calibrate() (string, error) {
	found, err := calibrate.Measure()
	if err != nil {
		return "", err
	}
	path, err := found.Keep()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"path": path, "nanoseconds": found, "operations": found.Operations()})
	return string(text), err
}

// CalibrateDevice measures the costs of a GPU for the choices that programs have there, like
// Calibrate.
func CalibrateDevice(device int64) (string, error) {
	e, err := openDevice(device)
	if err != nil {
		return "", err
	}
	found, err := calibrate.MeasureDevice(e, calibrate.Large)
	if err != nil {
		return "", onDevice(err)
	}
	path, err := found.Keep()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"path": path, "nanoseconds": found})
	return string(text), err
}

// Explain describes, as text for people, a program on a graph and the cost of a batch of seeds
// seeds there.
func (p *Sampler) Explain(g *Relation, seeds int64) (string, error) {
	plan, is := p.Plan.(*program.Plan)
	if !is {
		return "", Errorf(KindValue, "plan: expected one of a program, got one of another family")
	}
	if seeds < 0 {
		return "", Errorf(KindValue, "seeds: expected a number >= 0, got %d", seeds)
	}
	if err := g.enter(); err != nil {
		return "", err
	}
	defer g.leave()
	about := explain.Graph{Nodes: g.nodes(), Edges: g.csc.NumEdges(), Widths: map[string]int64{}}
	for name, values := range g.csc.VertexData {
		about.Widths[name] = values.Len() / max(about.Nodes, 1)
	}
	if g.device != nil {
		about.Edges, about.Device = g.device.graph.Edges, true
	}
	return plan.Explain(about, seeds), nil
}
