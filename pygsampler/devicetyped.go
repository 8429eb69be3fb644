package pygsampler

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family/typed"
)

// bring makes the graph that a device samples, of relations that are there.
func (t *Typed) bring() error {
	d := t.graphs[0].device
	s := cuda.Schema{Mixed: t.csc.Mixed()}
	for _, k := range t.csc.Kinds {
		s.Names, s.Nodes = append(s.Names, k.Name), append(s.Nodes, k.Nodes)
	}
	for i, r := range t.csc.Relations {
		s.Relations = append(s.Relations, cuda.Relation{Graph: t.graphs[i].device.graph, Name: r.Name, Src: r.Src, Dst: r.Dst, Salt: r.Salt})
	}
	g := d.engine.NewTyped(s)
	if err := g.LoadTyped(); err != nil {
		return onDevice(err)
	}
	t.device = &deviceGraph{index: d.index, engine: d.engine, graph: g}
	return nil
}

// DeviceSubmitTyped puts a batch of a graph with types into a stream; counts is the address of those of
// TypedCall.
func DeviceSubmitTyped(t *Typed, p *Sampler, c DeviceCall, counts int64) (*DeviceJob, error) {
	if t.device == nil {
		return nil, Errorf(KindValue, "graph: expected one on a CUDA device, got one on the CPU")
	}
	plan, is := p.Plan.(*typed.Plan)
	if !is {
		return nil, Errorf(KindValue, "sampler: expected one of graphs with types, got one of another family")
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	seeds, exclude, err := t.split(&TypedCall{Call: c.Call, Counts: counts})
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
	if call.Plan, err = plan.Device(&t.csc, seeds, excluded); err == nil {
		j.flight, err = t.device.engine.Start(t.device.graph, call)
		err = onDevice(err)
	}
	if err != nil {
		return nil, err
	}
	return j, nil
}

// enterDevice lets a job into all graphs, or into none.
func (t *Typed) enterDevice(j *DeviceJob) error {
	for _, g := range t.graphs {
		if err := g.enterDevice([]*DeviceJob{j}); err != nil {
			j.leave()
			return err
		}
		j.graphs = append(j.graphs, g)
	}
	return nil
}
