// Package hgt is the family of HGT's sampling of heterogeneous graphs: a number of nodes of each
// type in each iteration, chosen by budgets, on one core or by one launch on a device.
package hgt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Plan is a plan of nodes by types.
type Plan struct {
	samples      []plan.HopFanouts // by iteration
	maxNeighbors int64
	mapBytes     int64
}

// Parse returns the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	return &Plan{
		samples:      d.ByName("num_samples", "the first iteration first", rng.MaxHops),
		maxNeighbors: d.Integer("max_neighbors", 1, request.MaxFanout, -1),
		mapBytes:     d.Integer("map_bytes", 1, 1<<62, 0),
	}
}

// Samples returns the numbers of nodes of each type of a graph, iteration by iteration.
func (p *Plan) Samples(g *csc.Graph) ([][]int64, error) {
	samples := make([][]int64, len(g.NodeTypes))
	known, names := make(map[string]bool, len(g.NodeTypes)), make([]string, len(g.NodeTypes))
	for t, kind := range g.NodeTypes {
		known[kind.Name], names[t] = true, fmt.Sprintf("%q", kind.Name)
		for _, of := range p.samples {
			n := of.All
			if of.ByName != nil {
				named := false
				if n, named = of.ByName[kind.Name]; !named {
					return nil, fmt.Errorf("%w: num_samples: expected numbers for each node type, got none for %q", request.ErrValue, kind.Name)
				}
			}
			samples[t] = append(samples[t], n)
		}
	}
	for _, of := range p.samples {
		for _, name := range slices.Sorted(maps.Keys(of.ByName)) {
			if !known[name] {
				return nil, fmt.Errorf("%w: num_samples: expected node types of the graph, got %q; there are %s", request.ErrValue, name, strings.Join(names, ", "))
			}
		}
	}
	return samples, nil
}

// Fits returns an error for graphs whose types do not match the plan.
func (p *Plan) Fits(g *csc.Graph) error {
	_, err := p.Samples(g)
	return err
}

// request returns the request to the CPU engine.
func (p *Plan) request(w *plan.Work) (*cpu.HGTRequest, error) {
	samples, err := p.Samples(w.Graph)
	if err != nil {
		return nil, err
	}
	r := &cpu.HGTRequest{
		Batch: w.Batch, Graph: w.Graph, Seeds: w.SeedCounts, Samples: samples, Exclude: w.Exclude,
		MaxNeighbors: p.maxNeighbors, MapBytes: p.mapBytes, Most: w.Most,
	}
	if w.Parts != nil {
		r.Ask, r.Bounds = w.Parts.Ask, w.Parts.ByRelation(len(w.Graph.Relations))
	}
	return r, nil
}

// Expected estimates the number of edges of the seeds and the chosen nodes from the mean degree.
func (p *Plan) Expected(w *plan.Work) int64 {
	r, err := p.request(w)
	if err != nil {
		return 0
	}
	return r.Expected()
}

// CPU samples on one core, iteration by iteration.
func (p *Plan) CPU(w *plan.Work) (memory.Memory, error) {
	r, err := p.request(w)
	if err != nil {
		return memory.Memory{}, err
	}
	return cpu.SampleHGT(r, w.Stop)
}

// CUDA returns the plan of a call without seeds, which rejects homogeneous graphs. Device returns
// the plans of calls.
func (p *Plan) CUDA() cuda.Plan { return &cuda.HGT{} }

// Device implements plan.PerCall.
func (p *Plan) Device(g *csc.Graph, seeds, excluded []int64, t *plan.Times, _ []gpu.Address) (cuda.Plan, error) {
	if t != nil {
		return nil, fmt.Errorf("%w: seed_time: expected none for a plan without time", request.ErrValue)
	}
	samples, err := p.Samples(g)
	if err != nil {
		return nil, err
	}
	salts := make([]uint64, len(g.NodeTypes))
	for i, kind := range g.NodeTypes {
		salts[i] = kind.Salt
	}
	return cuda.NewHGT(len(g.Relations), p.maxNeighbors, salts, samples, seeds, excluded), nil
}
