package pygsampler

import (
	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/hetero"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/temporal"
)

// newStaticHetero makes room for batches of a graph with types, whose seeds have seedBits each. At the address
// most are integers: how many seeds of each type a batch may have; then for each of count blocks, outermost first, how
// many vertices of each type and edges of each relation. sorted is as a Request has it.
func newStaticHetero(t *HeteroGraph, p *Sampler, sorted, seedBits, count, most int64) (*DeviceStatic, error) {
	if t.device == nil {
		return nil, Errorf(KindValue, "graph: expected one on a CUDA device, got one on the CPU")
	}
	plan, is := p.Plan.(*hetero.Plan)
	if !is {
		return nil, Errorf(KindValue, "sampler: expected one of graphs with types, got one of another family")
	}
	given, err := t.times(&Request{Sorted: sorted})
	if err != nil {
		return nil, err
	}
	return hold(t.device, t.graphs, func() (cuda.Standing, error) {
		keys := make([]gpu.Address, len(t.graphs))
		for i := range keys {
			if given == nil || given.Of[i] == nil {
				continue
			}
			if keys[i], err = t.graphs[i].device.graph.Keys(given.Of[i].Edges); err != nil {
				return nil, err
			}
		}
		made, err := plan.Static(&t.csc, given, keys)
		if err != nil {
			return nil, err
		}
		return standing(t.device, t.device.graph, p, made, len(t.csc.Kinds), seedBits, count, most)
	})
}

// newStaticSingle is newStaticHetero for a graph without types, as one of one type: for edges with times, whose
// sorted rows are at an address, and for what newStatic does not make of others, where that is 0.
func newStaticSingle(g *Graph, p *Sampler, sorted int64, byVertex bool, seedBits, count, most int64) (*DeviceStatic, error) {
	if g.device == nil {
		return nil, Errorf(KindValue, "graph: expected one on a CUDA device, got one on the CPU")
	}
	timed, is := p.Plan.(*temporal.Plan)
	if is != (sorted != 0) {
		return nil, Errorf(KindValue, "seed_time: expected the rows by time of edges with times, and of no others, got %#x", sorted)
	}
	var rows *times.Rows
	alone, err := aloneOf(p), error(nil)
	switch {
	case is:
		rows, err = sortedRows(sorted, g.device.graph.Edges, byVertex)
	case alone == nil:
		err = Errorf(KindValue, `static: expected a sampler of mode "auto" or "persistent"`)
	default:
		err = p.check(g)
	}
	if err != nil {
		return nil, err
	}
	return hold(g.device, []*Graph{g}, func() (cuda.Standing, error) {
		made := alone
		if rows != nil {
			keys, err := g.device.graph.Keys(rows.Edges)
			if err != nil {
				return nil, err
			}
			made = timed.Device(keys, &plan.Times{Of: []*times.Rows{rows}}, 0)
		}
		return standing(g.device, g.device.graph.Alone(), p, made, 1, seedBits, count, most)
	})
}

// aloneOf is a sampler of neighbours as one of a graph of one type; nil for others.
func aloneOf(p *Sampler) *cuda.Hetero {
	var hops cuda.Neighbors
	made := new(cuda.Hetero)
	switch plan := p.CUDA().(type) {
	case *cuda.Neighbors:
		hops = *plan
	case *cuda.Factors:
		hops, made.EdgeWeights = plan.Neighbors, true
	default:
		return nil
	}
	made.Fanouts, made.Replace, made.OnlyNew, made.Disjoint = [][]int64{hops.Fanouts}, hops.Replace, hops.OnlyNew, hops.Disjoint
	return made
}

// standing makes room for batches of a plan, as newStaticHetero says.
func standing(d *deviceGraph, g *cuda.Graph, p *Sampler, plan *cuda.Hetero, kinds int, seedBits, count, most int64) (cuda.Standing, error) {
	relations := len(plan.Fanouts)
	switch {
	case seedBits != 32 && seedBits != 64:
		return nil, Errorf(KindValue, "static: expected seeds of 32 or 64 bits, got %d", seedBits)
	case relations == 0 || count != int64(len(plan.Fanouts[0])) || most == 0:
		return nil, Errorf(KindValue, "static: expected sizes of each hop of some relations at an address, got %d at %#x", count, most)
	}
	sizes := memory.View[int64](most, int64(kinds)+count*int64(kinds+relations))
	for i, n := range sizes {
		if n < 0 {
			return nil, Errorf(KindValue, "static: expected sizes >= 0, got %d at place %d", n, i)
		}
	}
	take := func(n int) []int64 {
		own := append([]int64(nil), sizes[:n]...)
		sizes = sizes[n:]
		return own
	}
	plan.Seeds, plan.Excluded = take(kinds), nil
	options := cuda.StaticHeteroPlan{Plan: plan, Seed: p.Seed, SeedBits: int(seedBits)}
	for range count {
		options.Vertices = append(options.Vertices, take(kinds))
		options.Edges = append(options.Edges, take(relations))
	}
	return d.engine.NewStaticHetero(g, options)
}

// beginHetero is Begin for what samples types and times.
func (s *DeviceStatic) beginHetero(made *cuda.StaticHetero, to gpu.Stream, w []int64) error {
	count, counts := w[epochCount], w[epochSeedTypes]
	if count > 0 && counts == 0 {
		return Errorf(KindValue, "static: expected an address of the seeds of each type, got 0 for %d batches", count)
	}
	all, err := s.parts(w[epochSeeds], w[epochNumSeeds], count, w[epochParts], w[epochNumSeeds])
	if err != nil {
		return err
	}
	most := made.Seeds()
	var of []int64
	if count > 0 {
		of = memory.View[int64](counts, count*int64(len(most)))
	}
	for i, part := range all {
		own, left := of[i*len(most):][:len(most)], part.Count
		for t, n := range own {
			if left -= n; n < 0 || n > most[t] {
				return Errorf(KindValue, "static: batch %d: expected at most %d seeds of type %d, got %d", i, most[t], t, n)
			}
		}
		if left != 0 {
			return Errorf(KindValue, "static: batch %d: expected counts that add up to %d seeds, got %v", i, part.Count, own)
		}
	}
	epoch := &cuda.HeteroPass{
		Parts: all, Counts: of, Epoch: uint32(w[epochNumber]), First: uint64(w[epochFirst]), Stride: uint64(w[epochStride]),
	}
	if w[epochTimes] != 0 {
		if epoch.Keys, err = seedKeys(w[epochTimes], w[epochNumSeeds], made.FloatTimes()); err != nil {
			return err
		}
	}
	if w[epochStarts] != 0 {
		if epoch.Excluded, epoch.ExcludedAt, err = s.excluded(w[epochExclude], w[epochStarts], count*int64(made.Relations())); err != nil {
			return err
		}
	}
	return made.Begin(to, gpu.Address(w[epochSeeds]), epoch)
}

// excluded is where the edges of so many lists stand, the first of the first relation's and so on in turns, and where
// each list of positions begins.
func (s *DeviceStatic) excluded(ids, starts, lists int64) (positions, at []int64, err error) {
	bounds := memory.View[int64](starts, lists+1)
	for i, from := range bounds[:lists] {
		if from < 0 || bounds[i+1] < from || bounds[i+1] > from && ids == 0 {
			return nil, nil, Errorf(KindValue, "exclude: expected lists one behind another at an address, got %#x from %d to %d", ids, from, bounds[i+1])
		}
	}
	positions, at = make([]int64, 0, bounds[lists]-bounds[0]), make([]int64, 1, lists+1)
	for i, from := range bounds[:lists] {
		own := memory.View[int64](ids, bounds[i+1])[from:]
		found, err := s.graphs[i%len(s.graphs)].device.positions(own)
		if err != nil {
			return nil, nil, err
		}
		positions = append(positions, found...)
		at = append(at, int64(len(positions)))
	}
	return positions, at, nil
}
