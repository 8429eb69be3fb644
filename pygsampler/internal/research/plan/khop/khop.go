// Package khop is the family of samples by steps from transits: k-hop and layer sampling as NextDoor
// (Jangda et al.), section 4, defines them, next to walks, as kinds of graph sampling.
package khop

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	research "github.com/pygsampler/pygsampler/pygsampler/internal/research/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/khop"
)

type khopPlan struct {
	khop.Rule
	device research.KHop
}

// Parse makes the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	p := new(khopPlan)
	r := &p.Rule
	fanouts := d.Integers("fanouts", 1, khop.MaxSteps, 1, khop.MaxCount)
	sizes := d.Integers("sizes", 1, khop.MaxSteps, 1, khop.MaxCount)
	r.Unique, r.Distinct = d.BoolOr("unique", "transit")
	r.EdgeIDs = d.Bool("edge_ids", false)
	r.FirstSample = d.Integer("first_sample", 0, 1<<40, 0)
	execution := d.OneOf("execution", append([]string{"auto", "sample"}, research.Executions...)...)
	r.Counts, r.Collective = fanouts, sizes != nil
	if r.Collective {
		r.Counts = sizes
	}
	if d.Err() == nil && (fanouts == nil) == (sizes == nil) {
		d.Refuse(request.ErrValue, "fanouts: expected 1 to %d integers, got None", khop.MaxSteps)
	}
	if r.Collective && r.Distinct {
		d.Refuse(request.ErrValue, "unique: expected True or False with sizes, which all transits of a sample draw together, got 'transit'")
	}
	if r.Unique && !r.Collective && research.GroupsTransits(execution) {
		d.Refuse(request.ErrValue, "execution: expected 'auto' or 'sample' with unique=True, since the transits of a sample depend on each other, got '%s'; "+
			"unique='transit' takes all", execution)
	}
	if r.Collective && research.GroupsTransits(execution) {
		d.Refuse(request.ErrValue, "execution: expected 'auto' or 'sample' with sizes, which the transits of a sample draw together, got '%s'", execution)
	}
	if err := r.Check(); err != nil {
		d.Refuse(request.ErrValue, "%s: expected at most %d nodes of a sample, got more", map[bool]string{false: "fanouts", true: "sizes"}[r.Collective], int64(khop.MaxWidth))
	}
	p.device = research.KHop{Rule: p.Rule, Execution: execution}
	return p
}

// Check refuses no graph.
func (p *khopPlan) Check(plan.Arrays) error { return nil }

// Expected returns the number of nodes of all samples.
func (p *khopPlan) Expected(w *plan.Work) int64 {
	sum := int64(1)
	for _, width := range p.Widths() {
		sum += width
	}
	return w.Batch.Seeds.Len() * sum
}

// CPU makes samples.
func (p *khopPlan) CPU(w *plan.Work) (memory.Memory, error) {
	if w.Excluded(0) != nil {
		return memory.Memory{}, fmt.Errorf("%w: exclude: expected no edges for samples by steps, got some", request.ErrValue)
	}
	return khop.Sample(&khop.Request{Rule: p.Rule, Batch: w.Batch, Relation: w.Graph.Relation(0)}, w.Crew, w.Stop)
}

// CUDA is how a device makes them.
func (p *khopPlan) CUDA() cuda.Plan { return &p.device }
