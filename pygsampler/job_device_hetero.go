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

// DeviceSubmitHetero puts a batch of a graph with types into a stream; about has what a DeviceCall has not.
func DeviceSubmitHetero(t *HeteroGraph, p *Sampler, c DeviceCall, about HeteroCall) (*DeviceJob, error) {
	if t.device == nil {
		return nil, Errorf(KindValue, "graph: expected one on a CUDA device, got one on the CPU")
	}
	plan, is := p.Plan.(heteroOnDevice)
	if !is {
		return nil, Errorf(KindValue, "sampler: expected one of graphs with types, got one of another family")
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	about.Call = c.Call
	seeds, exclude, err := t.split(&about)
	if err != nil {
		return nil, err
	}
	given, err := t.times(&about)
	if err != nil {
		return nil, err
	}
	// Excluded edges are of relations: what looks up those of a graph is not asked.
	c.NumExclude = 0
	call, err := t.device.call(p, c)
	if err != nil {
		return nil, err
	}
	j := newDeviceJob(t.device, c.Out)
	if err := t.enterDevice(j); err != nil {
		return nil, err
	}
	// Whatever happens: Close and Shutdown wait for jobs that were let in.
	defer func() {
		if err != nil {
			j.ended, j.err = true, err
			j.leave()
		}
		close(j.started)
	}()
	var excluded []int64
	for i, ids := range exclude {
		positions, wrong := t.graphs[i].device.positions(ids)
		if wrong != nil {
			err = t.about(i, wrong)
			return nil, err
		}
		excluded = append(excluded, int64(len(positions)))
		call.Exclude = append(call.Exclude, positions...)
	}
	keys := make([]gpu.Address, len(t.graphs))
	for i := range keys {
		if given == nil || given.Of[i] == nil {
			continue
		}
		if keys[i], err = t.graphs[i].device.graph.Keys(given.Of[i].Edges); err != nil {
			err = onDevice(err)
			return nil, err
		}
	}
	if call.Plan, err = plan.Device(&t.csc, seeds, excluded, given, keys); err == nil {
		of := t.device.graph
		if _, alone := call.Plan.(*cuda.SingleType); alone {
			of = t.graphs[0].device.graph
		}
		j.flight, err = t.device.engine.Start(of, call)
		err = onDevice(err)
	}
	if err != nil {
		return nil, err
	}
	return j, nil
}

// enterDevice lets a job into all graphs, or into none.
func (t *HeteroGraph) enterDevice(j *DeviceJob) error {
	for _, g := range t.graphs {
		if err := g.enterDevice([]*DeviceJob{j}); err != nil {
			j.leave()
			return err
		}
		j.graphs = append(j.graphs, g)
	}
	return nil
}
