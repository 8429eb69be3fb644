// Package labor is the family of LABOR on heterogeneous graphs: destinations share the uniform
// random numbers of their sources.
package labor

import (
	"fmt"
	"math"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/hetero"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Plan is a plan that selects the edges whose sources have small random numbers.
type Plan struct {
	hetero.Fanouts
	about    cpu.Labor
	onlyNew  bool
	weights  bool
	sums     bool
	mapBytes int64
}

// Parse returns the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	p := &Plan{Fanouts: hetero.ReadFanouts(d)}
	p.about.Rounds = d.Integer("importance", -1, math.MaxInt32, 0)
	if p.about.Exact = d.Bool("exact", false); p.about.Exact && p.about.Rounds != 0 {
		d.Refuse(request.ErrValue, "importance: expected 0 with exact=True, got %d", p.about.Rounds)
	}
	p.about.SameLayers = d.Bool("layer_dependency", false)
	p.about.Batches = uint64(d.Integer("batch_dependency", 1, math.MaxInt32, 1))
	p.onlyNew = d.OneOf("frontier", "all", "new") == "new"
	weights := d.Choice("edge_weights", "ht", "mean", "sum")
	p.weights, p.about.Scaled, p.sums = weights != "", weights == "mean", weights == "sum"
	p.mapBytes = d.Integer("map_bytes", 1, math.MaxInt64, 0)
	prob, mask := d.Name("prob", "an edge array"), d.Name("mask", "an edge array")
	if prob != "" && mask != "" {
		d.Refuse(request.ErrValue, "prob, mask: expected at most one of them, got both")
	}
	return p
}

// of gives the fanouts of a graph. Sums over all edges of a row are the business of the program for homogeneous graphs.
func (p *Plan) of(g *csc.Graph) ([][]int64, error) {
	if p.sums {
		return nil, fmt.Errorf(
			"%w: edge_weights: expected 'ht', 'mean' or None for a heterogeneous graph, got 'sum'", request.ErrValue)
	}
	return p.PerRelation(g)
}

func (p *Plan) request(w *plan.Work) (*cpu.LaborRequest, error) {
	fanouts, err := p.of(w.Graph)
	if err != nil {
		return nil, err
	}
	r := &cpu.LaborRequest{
		Labor: p.about,
		HeteroRequest: cpu.HeteroRequest{
			Batch: w.Batch, Graph: w.Graph, Seeds: w.SeedCounts, Fanouts: fanouts, Exclude: w.Exclude,
			OnlyNew: p.onlyNew, EdgeWeights: p.weights, Poisson: true, MapBytes: p.mapBytes, Most: w.Most,
		},
	}
	if w.Parts != nil {
		r.Ask, r.Bounds = w.Parts.Ask, w.Parts.ByRelation(len(w.Graph.Relations))
	}
	return r, nil
}

// Expected estimates the number of edges from the mean degree.
func (p *Plan) Expected(w *plan.Work) int64 {
	r, err := p.request(w)
	if err != nil {
		return 0
	}
	return r.Expected()
}

// CPU samples on one core, relation by relation.
func (p *Plan) CPU(w *plan.Work) (memory.Memory, error) {
	r, err := p.request(w)
	if err != nil {
		return memory.Memory{}, err
	}
	return cpu.SampleLabor(r, w.Crew, w.Stop)
}

// CUDA returns the plan of a call without seeds, which rejects homogeneous graphs. Device returns
// the plans of calls.
func (p *Plan) CUDA() cuda.Plan { return &cuda.Labor{} }

// Device implements plan.PerCall.
func (p *Plan) Device(g *csc.Graph, seeds, excluded []int64, t *plan.Times, _ []gpu.Address) (cuda.Plan, error) {
	if t != nil {
		return nil, fmt.Errorf("%w: seed_time: expected none for a plan without time", request.ErrValue)
	}
	fanouts, err := p.of(g)
	if err != nil {
		return nil, err
	}
	salts := make([]uint64, len(g.NodeTypes))
	for i, k := range g.NodeTypes {
		salts[i] = k.Salt
	}
	return cuda.NewLabor(cuda.Labor{
		Hetero: cuda.Hetero{
			Fanouts: fanouts, OnlyNew: p.onlyNew, EdgeWeights: p.weights, Seeds: seeds, Excluded: excluded,
		},
		Salts: salts, Rounds: p.about.Rounds, Exact: p.about.Exact, SameLayers: p.about.SameLayers, Batches: p.about.Batches, Scaled: p.about.Scaled,
	}), nil
}
