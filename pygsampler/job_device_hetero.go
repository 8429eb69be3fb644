package pygsampler

import (
	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
)

// heteroOnDevice is a plan of graphs with types that a device makes batches of: each call has a plan of its own there.
type heteroOnDevice interface {
	Device(g *csc.HeteroGraph, seeds, excluded []int64, t *plan.Times, keys []gpu.Address) (cuda.Plan, error)
}

// bring makes the graph that a device samples, of relations that are there.
func (t *HeteroGraph) bring() error {
	d := t.graphs[0].device
	s := cuda.Schema{Mixed: t.csc.Mixed()}
	for _, k := range t.csc.Kinds {
		s.Names, s.Nodes = append(s.Names, k.Name), append(s.Nodes, k.Nodes)
	}
	for i, r := range t.csc.Relations {
		s.Relations = append(s.Relations, cuda.Relation{Graph: t.graphs[i].device.graph, Name: r.Name, Src: r.Src, Dst: r.Dst, Salt: r.Salt})
	}
	g := d.engine.NewHetero(s)
	if err := g.LoadHetero(); err != nil {
		return onDevice(err)
	}
	t.device = &deviceGraph{index: d.index, engine: d.engine, graph: g}
	return nil
}

// flightPlan checks and copies what a request for a batch on a device says.
func (t *HeteroGraph) flightPlan(p *Sampler, r *Request) (f flightPlan, err error) {
	plan, is := p.Plan.(heteroOnDevice)
	if !is {
		return f, Errorf(KindValue, "sampler: expected one of graphs with types, got one of another family")
	}
	if err := r.check(); err != nil {
		return f, err
	}
	seeds, exclude, err := t.split(r)
	if err != nil {
		return f, err
	}
	given, err := t.times(r)
	if err != nil {
		return f, err
	}
	// Excluded edges are of relations: what looks up those of a graph is not asked.
	own := *r
	own.NumExclude = 0
	f.call, err = t.device.call(p, &own)
	f.prepare = func() (*cuda.Graph, error) {
		var excluded []int64
		for i, ids := range exclude {
			positions, err := t.graphs[i].device.positions(ids)
			if err != nil {
				return nil, t.about(i, err)
			}
			excluded = append(excluded, int64(len(positions)))
			f.call.Exclude = append(f.call.Exclude, positions...)
		}
		keys := make([]gpu.Address, len(t.graphs))
		for i := range keys {
			if given == nil || given.Of[i] == nil {
				continue
			}
			var err error
			if keys[i], err = t.graphs[i].device.graph.Keys(given.Of[i].Edges); err != nil {
				return nil, err
			}
		}
		var err error
		f.call.Plan, err = plan.Device(&t.csc, seeds, excluded, given, keys)
		if _, alone := f.call.Plan.(*cuda.SingleType); alone {
			return t.graphs[0].device.graph, err
		}
		return t.device.graph, err
	}
	return f, err
}
