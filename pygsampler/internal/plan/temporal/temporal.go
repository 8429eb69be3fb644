// Package temporal is the family of neighbor sampling over L hops along edges that are not later than a
// bound: tiles on the CPU, one launch on a device.
package temporal

import (
	"fmt"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Plan is a plan of neighbors by time. Each seed has its own tree.
type Plan struct {
	request.Hops
	Rule        times.Rule
	edgeWeights bool
}

// Parse returns the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	p := &Plan{}
	p.Fanouts = d.Fanouts(rng.MaxHops)
	p.Replace = d.Bool("replace", false)
	p.OnlyNew = d.OneOf("frontier", "all", "new") == "new"
	p.Disjoint = true
	d.Name("time", "an edge or node array")
	prob := d.Name("prob", "an edge array") != ""
	if d.Name("mask", "an edge array") != "" && prob {
		d.Refuse(request.ErrValue, "prob, mask: expected at most one of them, got both")
	}
	p.Rule = plan.ReadRule(d)
	p.edgeWeights = d.Choice("edge_weights", "ht") == "ht"
	return p
}

var errNoTimes = fmt.Errorf("%w: seed_time: expected a time for each seed, got none", request.ErrValue)

// Check accepts any graph.
func (p *Plan) Check(plan.Arrays) error { return nil }

// CUDA returns the plan of a call without times, which rejects homogeneous graphs. Device returns
// the plans of calls.
func (p *Plan) CUDA() cuda.Plan { return &cuda.Hetero{} }

// Device implements plan.PerCall for seeds with times. The graph is sampled as a graph of one node
// type and one edge type.
func (p *Plan) Device(g *csc.Graph, _, excluded []int64, t *plan.Times, keys []gpu.Address) (cuda.Plan, error) {
	made, err := p.Static(g, t, keys)
	if err == nil {
		made.Seeds, made.Excluded = []int64{int64(len(t.Seeds))}, excluded
	}
	return made, err
}

// Static returns the plan, like Device, of batches whose numbers of seeds change in device memory.
func (p *Plan) Static(_ *csc.Graph, t *plan.Times, keys []gpu.Address) (*cuda.Hetero, error) {
	if t == nil {
		return nil, errNoTimes
	}
	return &cuda.Hetero{
		Fanouts: [][]int64{p.Fanouts}, Replace: p.Replace, OnlyNew: p.OnlyNew, Disjoint: true, EdgeWeights: p.edgeWeights,
		Times: t.CUDA(p.Rule, keys),
	}, nil
}

// Request returns the request to the CPU engine.
func (p *Plan) Request(w *plan.Work) *cpu.Request {
	r := &cpu.Request{
		Request: request.Request{Hops: p.Hops, Batch: w.Batch}, Relation: w.Graph.Relation(0), Parts: w.Parts, Exclude: w.Excluded(0), Most: w.Most, EdgeWeights: p.edgeWeights,
	}
	if w.Times != nil {
		r.Times = w.Times.CPU(p.Rule)[0]
	}
	return r
}

// Expected estimates the number of edges from the mean degree.
func (p *Plan) Expected(w *plan.Work) int64 { return p.Request(w).Expected() }

// CPU samples tile by tile.
func (p *Plan) CPU(w *plan.Work) (memory.Memory, error) {
	if w.Times == nil {
		return memory.Memory{}, errNoTimes
	}
	return cpu.Sample(p.Request(w), w.Crew, w.Stop)
}
