// Package walk is the family of random walks: uniform or by weight, with stops and restarts, of
// second order (node2vec), and along metapaths. NextDoor (Jangda et al.), section 4, defines walks as
// one kind of graph sampling.
package walk

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// executions are the registered ways to compute walks on a device other than by one thread per walk.
var executions []cuda.WalkExecution

// RegisterExecution adds a way to compute walks on a device, which plan documents select by its
// name. It is called during the initialization of programs.
func RegisterExecution(e cuda.WalkExecution) { executions = append(executions, e) }

// execution reads the field of a document; nil: one thread per walk.
func execution(d *plan.Document) cuda.WalkExecution {
	names := []string{"auto", "sample"}
	for _, e := range executions {
		names = append(names, e.Name())
	}
	if at := slices.Index(names, d.OneOf("execution", names...)); at >= 2 {
		return executions[at-2]
	}
	return nil
}

// Plan is a plan of random walks.
type Plan struct {
	walk.Rule
	prob   string
	device cuda.Walks
}

// Parse returns the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	p := new(Plan)
	r := &p.Rule
	r.Length = d.Required("length", 0, walk.MaxLength)
	r.PerSeed = d.Integer("walks_per_seed", 1, 1<<31-1, 1)
	p.prob = d.Name("prob", "an edge array")
	r.Stop = d.Number("stop", 0, 1, 0, "in [0, 1]")
	r.Restart = d.Number("restart", 0, 1, 0, "in [0, 1]")
	r.Jumps = d.Bool("count_jumps", false)
	factor := fmt.Sprintf("above 0, from %g to %g", 1/walk.Extreme, walk.Extreme)
	r.P = d.Number("p", 1/walk.Extreme, walk.Extreme, 1, factor)
	r.Q = d.Number("q", 1/walk.Extreme, walk.Extreme, 1, factor)
	r.Path = d.Integers("metapath", 1, walk.MaxPath, 0, walk.MaxKinds-1)
	types := d.Name("edge_types", "an edge array")
	d.OneOf("direction", "out", "in")
	r.EdgeIDs = d.Bool("edge_ids", false)
	r.Every = d.Integer("visit_every", 1, walk.MaxLength, 0)
	r.Top = d.Integer("top_visits", 1, walk.MaxVisits, 0)
	r.Roots = d.Integer("roots", 1, walk.MaxRoots, 0)
	r.FirstWalk = d.Integer("first_walk", 0, 1<<40, 0)
	layout := d.OneOf("layout", "auto", "packed", "csr")
	by := execution(d)
	if (r.Path == nil) != (types == "") {
		d.Refuse(request.ErrValue, "metapath, edge_types: expected both or neither, got one of them")
	}
	if r.Jumps && r.Restart == 0 {
		d.Refuse(request.ErrValue, "count_jumps: expected False without restart, got True")
	}
	if r.Top > 0 && r.Visits() > walk.MaxVisits {
		d.Refuse(request.ErrValue, "top_visits: expected at most %d visits of a seed's walks, got %d", walk.MaxVisits, r.Visits())
	}
	if first := (walk.Rule{Length: r.Length, EdgeIDs: r.EdgeIDs, Roots: r.Roots, FirstWalk: r.FirstWalk, P: 1, Q: 1, PerSeed: 1}); r.Roots > 0 && (p.prob != "" || !reflect.DeepEqual(*r, first)) {
		d.Refuse(request.ErrValue, "roots: expected walks of several roots without other options than length, direction and edge_ids")
	}
	if by != nil && layout == "packed" {
		d.Refuse(request.ErrValue, "layout: expected 'auto' or 'csr' with execution='%s', which needs no packed edges, got 'packed'", by.Name())
	}
	if by != nil && r.Roots > 0 {
		d.Refuse(request.ErrValue, "execution: expected 'auto' or 'sample' with roots, got '%s'", by.Name())
	}
	p.device = cuda.Walks{Rule: p.Rule, Layout: layout, Execution: by}
	return p
}

// Check returns an error for graphs without the data that the walks are drawn by.
func (p *Plan) Check(g plan.Arrays) error {
	switch {
	case p.prob != "" && !g.Weights && g.Edges > 0:
		return fmt.Errorf("%w: prob: expected a graph with tables of %q, got one without", request.ErrValue, p.prob)
	case p.Second() && !g.Adjacency && g.Edges > 0:
		return fmt.Errorf("%w: p, q: expected a graph that knows who leads to whom, got one that does not", request.ErrValue)
	}
	for i, kind := range p.Path {
		if kind >= max(g.Kinds, 1) && g.Edges > 0 {
			return fmt.Errorf("%w: metapath[%d]: expected a type of edges below %d, got %d", request.ErrValue, i, max(g.Kinds, 1), kind)
		}
	}
	return nil
}

// Expected returns the number of steps of all walks.
func (p *Plan) Expected(w *plan.Work) int64 {
	return p.Walks(w.Batch.Seeds.Len()) * max(p.Length, 1)
}

// CPU samples the walks.
func (p *Plan) CPU(w *plan.Work) (memory.Memory, error) {
	if w.Excluded(0) != nil {
		return memory.Memory{}, fmt.Errorf("%w: exclude: expected no edges for walks, got some", request.ErrValue)
	}
	r := walk.Request{Rule: p.Rule, Batch: w.Batch, Relation: w.Graph.Relation(0)}
	if w.Parts != nil {
		return walk.SampleParts(&r, w.Parts, w.Crew, w.Stop)
	}
	r.Pack, r.Lean = p.device.Layout == "packed", p.device.Layout == "csr"
	return walk.Sample(&r, w.Crew, w.Stop)
}

// CUDA returns the plan on a device.
func (p *Plan) CUDA() cuda.Plan { return &p.device }
