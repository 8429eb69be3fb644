// Package hetero is the family of neighbor sampling over L hops of heterogeneous graphs, whose rows
// belong to one edge type each: tiles on the CPU, one launch on a device.
package hetero

import (
	"fmt"
	"maps"
	"math"
	"slices"

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

// Plan is a plan of neighbors by edge types.
type Plan struct {
	Fanouts
	replace     bool
	onlyNew     bool
	disjoint    bool
	edgeWeights bool
	mapBytes    int64
	timed       bool // each seed has a time, and its tree what the rule leaves
	rule        times.Rule
}

// Fanouts is the number of edges that each hop takes of a row, outermost first: of every relation,
// or by relation.
type Fanouts struct {
	hops     []plan.HopFanouts
	fallback *int64 // of those that are not named; nil: there are none
}

// ReadFanouts reads the fields of fanouts.
func ReadFanouts(d *plan.Document) (f Fanouts) {
	f.hops = d.FanoutsByName(rng.MaxHops)
	if n := d.Integer("default_fanout", -1, request.MaxFanout, math.MinInt64); n != math.MinInt64 {
		f.fallback = &n
	}
	return f
}

// Parse returns the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	p := &Plan{Fanouts: ReadFanouts(d)}
	p.replace = d.Bool("replace", false)
	p.onlyNew = d.OneOf("frontier", "all", "new") == "new"
	p.timed = d.Name("time", "an edge or node array") != ""
	p.disjoint = d.Bool("disjoint", p.timed)
	if p.timed {
		p.rule = plan.ReadRule(d)
		if !p.disjoint {
			d.Refuse(request.ErrValue, "disjoint: expected True with times, got False")
		}
	}
	p.edgeWeights = d.Choice("edge_weights", "ht") == "ht"
	p.mapBytes = d.Integer("map_bytes", 1, math.MaxInt64, 0)
	d.Name("prob", "an edge array")
	d.Name("mask", "an edge array")
	return p
}

// PerRelation returns the fanouts of each relation of a graph. A hop names relations by name or by short
// name.
func (f *Fanouts) PerRelation(g *csc.Graph) ([][]int64, error) {
	fanouts := make([][]int64, len(g.Relations))
	for i := range fanouts {
		fanouts[i] = make([]int64, len(f.hops))
	}
	for h, of := range f.hops {
		byName, err := named(g, of.ByName)
		if err != nil {
			return nil, fmt.Errorf("%w: fanouts[%d]: expected %w", request.ErrValue, h, err)
		}
		for i, r := range g.EdgeTypes {
			n, known := byName[r.Name]
			switch {
			case of.ByName == nil:
				n = of.All
			case !known && f.fallback == nil:
				return nil, fmt.Errorf("%w: fanouts[%d]: expected a number for each edge type, or default=, got none for %s", request.ErrValue, h, g.Written(i))
			case !known:
				n = *f.fallback
			}
			fanouts[i][h] = n
		}
	}
	return fanouts, nil
}

// named returns the numbers by the full names of a graph's relations; the keys may be short names.
// The error continues "expected ".
func named(g *csc.Graph, numbers map[string]int64) (map[string]int64, error) {
	known := 0
	for i := range g.EdgeTypes {
		if _, is := numbers[g.EdgeTypes[i].Name]; is {
			known++
		}
	}
	if known == len(numbers) {
		return numbers, nil
	}
	byName := make(map[string]int64, len(numbers))
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		i, err := g.Find(name)
		if err != nil {
			return nil, err
		}
		if _, twice := byName[g.EdgeTypes[i].Name]; twice {
			return nil, fmt.Errorf("one number for each edge type, got two for %s", g.Written(i))
		}
		byName[g.EdgeTypes[i].Name] = numbers[name]
	}
	return byName, nil
}

// Fits returns an error for graphs whose relations do not match the fanouts.
func (f *Fanouts) Fits(g *csc.Graph) error {
	_, err := f.PerRelation(g)
	return err
}

// Request returns the request to the CPU engine.
func (p *Plan) Request(w *plan.Work) (*cpu.HeteroRequest, error) {
	fanouts, err := p.PerRelation(w.Graph)
	if err != nil {
		return nil, err
	}
	r := &cpu.HeteroRequest{
		Batch: w.Batch, Graph: w.Graph, Seeds: w.SeedCounts, Fanouts: fanouts, Exclude: w.Exclude,
		Replace: p.replace, OnlyNew: p.onlyNew, Disjoint: p.disjoint, EdgeWeights: p.edgeWeights,
		MapBytes: p.mapBytes, Most: w.Most, Times: w.Times.CPU(p.rule),
	}
	if w.Times != nil {
		r.SeedTimes = w.Times.Seeds
	}
	if w.Parts != nil {
		r.Ask, r.Bounds = w.Parts.Ask, w.Parts.ByRelation(len(w.Graph.Relations))
	}
	return r, nil
}

// Expected estimates the number of edges from the mean degree.
func (p *Plan) Expected(w *plan.Work) int64 {
	r, err := p.Request(w)
	if err != nil {
		return 0
	}
	return r.Expected()
}

// CPU samples tile by tile.
func (p *Plan) CPU(w *plan.Work) (memory.Memory, error) {
	r, err := p.Request(w)
	if err == nil {
		err = p.hasTimes(w.Times)
	}
	if err != nil {
		return memory.Memory{}, err
	}
	return cpu.SampleHetero(r, w.Crew, w.Stop)
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

// CUDA returns the plan of a call without seeds, which rejects homogeneous graphs. Device returns
// the plans of calls.
func (p *Plan) CUDA() cuda.Plan { return &cuda.Hetero{} }

// Device implements plan.PerCall. A graph of one node type and one edge type is sampled as a
// homogeneous graph, by the plan of its relation.
func (p *Plan) Device(g *csc.Graph, seeds, excluded []int64, t *plan.Times, keys []gpu.Address) (cuda.Plan, error) {
	if err := p.hasTimes(t); err != nil {
		return nil, err
	}
	fanouts, err := p.PerRelation(g)
	if err != nil {
		return nil, err
	}
	if t == nil && len(g.NodeTypes) == 1 && len(g.EdgeTypes) == 1 {
		plan := cuda.Neighbors{Hops: cuda.Hops{Hops: request.Hops{
			Fanouts: fanouts[0], Replace: p.replace, OnlyNew: p.onlyNew, Disjoint: p.disjoint,
		}}}
		one := &cuda.SingleType{Plan: &plan, Name: g.NodeTypes[0].Name}
		if p.edgeWeights {
			one.Plan = &cuda.Factors{Neighbors: plan}
		}
		return one, nil
	}
	made := p.device(fanouts, t, keys)
	made.Seeds, made.Excluded = seeds, excluded
	return made, nil
}

// Static returns the plan, like Device, of batches whose numbers of seeds change in device memory;
// it also serves graphs of one type and relation.
func (p *Plan) Static(g *csc.Graph, t *plan.Times, keys []gpu.Address) (*cuda.Hetero, error) {
	if err := p.hasTimes(t); err != nil {
		return nil, err
	}
	fanouts, err := p.PerRelation(g)
	if err != nil {
		return nil, err
	}
	return p.device(fanouts, t, keys), nil
}

func (p *Plan) device(fanouts [][]int64, t *plan.Times, keys []gpu.Address) *cuda.Hetero {
	made := &cuda.Hetero{Fanouts: fanouts, Replace: p.replace, OnlyNew: p.onlyNew, Disjoint: p.disjoint, EdgeWeights: p.edgeWeights}
	if t != nil {
		made.Times = t.CUDA(p.rule, keys)
	}
	return made
}
