// Package neighbor is the family of neighbor sampling over L hops (PGSampler, sections
// III-B and III-C), uniform or by weight: tiles on the CPU, and on a device one launch
// for all hops.
package neighbor

import (
	"fmt"
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Options are the fields of a document that all families of neighbours have.
type Options struct {
	request.Hops
	Prob, Mask  string // names of edge arrays; "": none
	EdgeWeights bool   // each edge has its Horvitz-Thompson factor
	Ordered     bool   // vertices are numbered by first occurrence
	MapBytes    int64  // bytes of the vertex map of a batch on the CPU; 0: the default
}

// ReadOptions takes the fields of a document.
func ReadOptions(d *plan.Document) (o Options) {
	o.Fanouts = d.Fanouts(rng.MaxHops)
	o.Replace = d.Bool("replace", false)
	o.OnlyNew = d.OneOf("frontier", "all", "new") == "new"
	o.Disjoint = d.Bool("disjoint", false)
	o.Ordered = d.Bool("ordered", true)
	o.Prob = d.Name("prob", "an edge array")
	o.Mask = d.Name("mask", "an edge array")
	o.EdgeWeights = d.Choice("edge_weights", "ht") == "ht"
	o.MapBytes = d.Integer("map_bytes", 1, math.MaxInt64, 0)
	if o.Prob != "" && o.Mask != "" {
		d.Refuse(request.ErrValue, "prob, mask: expected at most one of them, got both; weights of 0 leave edges out as a mask does")
	}
	return o
}

// plain refuses what only this family knows of, for a mode beside it.
func (o *Options) plain(d *plan.Document, mode string) {
	for _, k := range []struct {
		asked bool
		what  string
	}{
		{o.OnlyNew, "frontier='new'"}, {o.Disjoint, "disjoint=True"},
		{o.Prob != "", "prob"}, {o.Mask != "", "mask"}, {o.EdgeWeights, "edge_weights='ht'"},
	} {
		if k.asked {
			d.Refuse(request.ErrValue, "mode: expected 'auto' or 'persistent' with %s, got '%s'", k.what, mode)
		}
	}
}

// Plan is a plan of neighbours, or of a mode beside it.
type Plan struct {
	Options
	device cuda.Plan
	mode   string // "": this family's own
}

// Parse makes the plan of a document. Its mode is "auto", the fastest known for the
// shape, or "persistent"; today they are the same.
func Parse(d *plan.Document) plan.Plan {
	o := ReadOptions(d)
	d.OneOf("mode", "auto", "persistent")
	device := cuda.Neighbors{Hops: cuda.Hops{Hops: o.Hops}}
	if o.EdgeWeights {
		return &Plan{Options: o, device: &cuda.Factors{Neighbors: device}}
	}
	return &Plan{Options: o, device: &device}
}

// ForComparison is the plan of a document of a mode that is there for comparison: the same batches
// on the CPU, and on a device those of the plan that launches makes.
func ForComparison(d *plan.Document, mode string, launches func(Options) cuda.Plan) *Plan {
	o := ReadOptions(d)
	o.plain(d, mode)
	return &Plan{o, launches(o), mode}
}

// Check refuses weights for a mode that knows none.
func (p *Plan) Check(g plan.Arrays) error {
	if g.Weights && p.mode != "" {
		return fmt.Errorf("%w: mode: expected 'auto' or 'persistent' with prob, got '%s'", request.ErrValue, p.mode)
	}
	return nil
}

// CUDA is how a device makes batches.
func (p *Plan) CUDA() cuda.Plan { return p.device }

// Request is what the CPU's engine is asked for.
func (p *Plan) Request(w *plan.Work) *cpu.Request {
	return &cpu.Request{
		Request:  request.Request{Hops: p.Hops, Batch: w.Batch},
		Relation: w.Graph.Relation(0), Parts: w.Parts, Exclude: w.Excluded(0), MapBytes: p.MapBytes, Most: w.Most, EdgeWeights: p.EdgeWeights,
	}
}

// Expected is what the seeds give if they have the mean degree.
func (p *Plan) Expected(w *plan.Work) int64 { return p.Request(w).Expected() }

// CPU samples tile by tile.
func (p *Plan) CPU(w *plan.Work) (memory.Memory, error) {
	return cpu.Sample(p.Request(w), w.Crew, w.Stop)
}
