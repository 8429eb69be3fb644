// Package temporal is the family of neighbour sampling over L hops along edges that are not later than a
// bound: tiles on the CPU.
package temporal

import (
	"fmt"
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/times"
)

// Plan is a plan of neighbours by time. Each seed has a tree of its own.
type Plan struct {
	request.Hops
	Rule        times.Rule
	edgeWeights bool
}

// noWindow is a window that leaves edges of any time.
const noWindow = 1 << 62

// Parse makes the plan of a document.
func Parse(d *family.Document) family.Plan {
	p := &Plan{}
	p.Fanouts = d.Fanouts(rng.MaxHops)
	p.Replace = d.Bool("replace", false)
	p.OnlyNew = d.OneOf("frontier", "all", "new") == "new"
	p.Disjoint = true
	d.Name("time", "an edge or vertex array")
	d.Name("mask", "an edge array")
	p.Rule.Before = d.OneOf("compare", "le", "lt") == "lt"
	p.Rule.Carry = d.OneOf("carry", "seed", "edge") == "edge"
	p.Rule.Last = d.OneOf("strategy", "uniform", "last") == "last"
	if p.Rule.Window = d.Number("window", 0, noWindow, noWindow, "from 0 to 2**62"); p.Rule.Window == noWindow {
		p.Rule.Window = math.Inf(1)
	}
	p.edgeWeights = d.Choice("edge_weights", "ht") == "ht"
	return p
}

// Check takes any graph on the CPU whose rows do not draw by weight.
func (p *Plan) Check(g family.Arrays) error {
	if g.Weights {
		return fmt.Errorf("%w: prob: expected None with time, got weights", request.ErrValue)
	}
	return nil
}

// CUDA is the plan of a device, which refuses: bounds are looked up on the CPU alone.
func (p *Plan) CUDA() cuda.Plan { return &cuda.Typed{} }

// Request is what the CPU's engine is asked for.
func (p *Plan) Request(w *family.Work) *cpu.Request {
	r := &cpu.Request{
		Request: request.Request{Hops: p.Hops, Batch: w.Batch}, Graph: w.Graph, Most: w.Most, EdgeWeights: p.edgeWeights,
	}
	if w.Times != nil {
		r.Times = &cpu.Times{Rows: w.Times.Rows, Rule: p.Rule, Seeds: w.Times.Seeds}
	}
	return r
}

// Expected is what the seeds give if they have the mean degree.
func (p *Plan) Expected(w *family.Work) int64 { return p.Request(w).Expected() }

// CPU samples tile by tile.
func (p *Plan) CPU(w *family.Work) (memory.Memory, error) {
	if w.Times == nil {
		return memory.Memory{}, fmt.Errorf("%w: seed_time: expected a time for each seed, got none", request.ErrValue)
	}
	return cpu.Sample(p.Request(w), w.Crew, w.Stop)
}
