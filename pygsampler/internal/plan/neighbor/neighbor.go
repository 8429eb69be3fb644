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

// Options are the common fields of the documents of all neighbor sampling families.
type Options struct {
	request.Hops
	Prob, Mask  string // names of edge arrays; "": none
	EdgeWeights bool   // each edge has its Horvitz-Thompson factor
	Ordered     bool   // nodes are numbered by first occurrence
	MapBytes    int64  // bytes of the node map of a batch on the CPU; 0: the default
}

// ReadOptions reads the fields of a document.
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

// plain returns an error for options that a comparison mode does not support.
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

// Plan is a plan of neighbor sampling, or of a mode for comparison.
type Plan struct {
	Options
	device cuda.Plan
	mode   string // "": this family's own
}

// Parse returns the plan of a document. Its mode is "auto", the fastest known for the shape, or
// "persistent"; today they are the same.
func Parse(d *plan.Document) plan.Plan {
	o := ReadOptions(d)
	d.OneOf("mode", "auto", "persistent")
	device := cuda.Neighbors{Hops: cuda.Hops{Hops: o.Hops}}
	if o.EdgeWeights {
		return &Plan{Options: o, device: &cuda.Factors{Neighbors: device}}
	}
	return &Plan{Options: o, device: &device}
}

// ForComparison returns the plan of a document of a comparison mode: the same batches on the CPU, and on a
// device the batches of the plan that launches returns.
func ForComparison(d *plan.Document, mode string, launches func(Options) cuda.Plan) *Plan {
	o := ReadOptions(d)
	o.plain(d, mode)
	return &Plan{o, launches(o), mode}
}

// Check returns an error for weights if the mode does not support them.
func (p *Plan) Check(g plan.Arrays) error {
	if g.Weights && p.mode != "" {
		return fmt.Errorf("%w: mode: expected 'auto' or 'persistent' with prob, got '%s'", request.ErrValue, p.mode)
	}
	return nil
}

// CUDA returns the plan on a device.
func (p *Plan) CUDA() cuda.Plan { return p.device }

// Request returns the request to the CPU engine.
func (p *Plan) Request(w *plan.Work) *cpu.Request {
	return &cpu.Request{
		Request:  request.Request{Hops: p.Hops, Batch: w.Batch},
		Relation: w.Graph.Relation(0), Parts: w.Parts, Exclude: w.Excluded(0), MapBytes: p.MapBytes, Most: w.Most, EdgeWeights: p.EdgeWeights,
	}
}

// Expected estimates the number of edges from the mean degree.
func (p *Plan) Expected(w *plan.Work) int64 { return p.Request(w).Expected() }

// CPU samples tile by tile.
func (p *Plan) CPU(w *plan.Work) (memory.Memory, error) {
	return cpu.Sample(p.Request(w), w.Crew, w.Stop)
}
