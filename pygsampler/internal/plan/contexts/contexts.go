// Package contexts is the family of contexts of fixed length: rows around each seed, latest first,
// up to a budget.
package contexts

import (
	"fmt"
	"slices"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/contexts"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Plan is a plan of contexts.
type Plan struct {
	contexts.Rule
	timed bool // each seed has a time
}

// mostTypes bounds the node types whose cells a document has.
const mostTypes = 1 << 15

// Parse returns the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	p := &Plan{}
	p.Budget = d.Required("budget", 1, contexts.MaxBudget)
	d.OneOf("order", "breadth")
	p.Width = d.Integer("width", 1, request.MaxFanout, 0)
	p.Cells = d.Integers("cells", 1, mostTypes, 1, contexts.MaxBudget)
	if p.timed = d.Name("time", "an edge or node array") != ""; p.timed {
		p.Times = plan.ReadRule(d)
		if p.Times.Carry {
			d.Refuse(request.ErrValue, "carry: expected 'seed' for contexts, whose rows are bounded by the times of their seeds, got 'edge'")
		}
	}
	return p
}

// Check accepts any homogeneous graph.
func (p *Plan) Check(plan.Arrays) error { return p.fits(1) }

// Fits returns an error for graphs with another number of node types than the plan has cells for.
func (p *Plan) Fits(g *csc.Graph) error { return p.fits(len(g.NodeTypes)) }

func (p *Plan) fits(types int) error {
	if p.Cells != nil && len(p.Cells) != types {
		return fmt.Errorf("%w: cells: expected the number of a row's cells for each of %d node types, got %d", request.ErrValue, types, len(p.Cells))
	}
	return nil
}

// hasTimes returns an error for seeds without times, and for unexpected times.
func (p *Plan) hasTimes(t *plan.Times) error {
	if p.timed && t == nil {
		return fmt.Errorf("%w: seed_time: expected a time for each seed, got none", request.ErrValue)
	}
	if !p.timed && t != nil {
		return fmt.Errorf("%w: seed_time: expected none for a plan without time", request.ErrValue)
	}
	return nil
}

// Expected estimates as many edges as there are places.
func (p *Plan) Expected(w *plan.Work) int64 { return w.Batch.Seeds.Len() * p.Places() }

// CPU samples contexts in parallel.
func (p *Plan) CPU(w *plan.Work) (memory.Memory, error) {
	err := p.hasTimes(w.Times)
	if err == nil && (w.Parts != nil || slices.ContainsFunc(w.Exclude, func(x *csc.Exclusions) bool { return x != nil })) {
		err = fmt.Errorf("%w: exclude: expected no edges for contexts, and a graph that is not partitioned", request.ErrValue)
	}
	if err != nil {
		return memory.Memory{}, err
	}
	r := &contexts.Request{Rule: p.Rule, Batch: w.Batch, Graph: w.Graph, SeedCounts: w.SeedCounts}
	if w.Times != nil {
		r.Rows, r.SeedKeys = w.Times.Of, w.Times.Seeds
	}
	return contexts.Sample(r, w.Crew, w.Stop)
}

// CUDA returns the plan of a call without seeds. Device returns the plans of calls.
func (p *Plan) CUDA() cuda.Plan { return &cuda.Contexts{Rule: p.Rule} }

// Device implements plan.PerCall.
func (p *Plan) Device(g *csc.Graph, seeds, _ []int64, t *plan.Times, keys []gpu.Address) (cuda.Plan, error) {
	if err := p.hasTimes(t); err != nil {
		return nil, err
	}
	made := &cuda.Contexts{Rule: p.Rule, Seeds: seeds}
	if err := p.CheckCells(g.Schema, seeds); err != nil {
		return nil, err
	}
	if t != nil {
		made.Times = t.CUDA(p.Rule.Times, keys)
	}
	return made, nil
}
