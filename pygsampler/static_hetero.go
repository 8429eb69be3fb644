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

// NewDeviceStaticHetero makes room for batches of a graph with types, whose seeds have seedBits each. At the address
// most are integers: how many seeds of each type a batch may have; then for each of count blocks, outermost first, how
// many vertices of each type and edges of each relation. sorted is as a HeteroCall has it; grid is the blocks of a
// launch, 0 for a good number.
func NewDeviceStaticHetero(t *HeteroGraph, p *Sampler, sorted, seedBits, grid, count, most int64) (*DeviceStatic, error) {
	if t.device == nil {
		return nil, Errorf(KindValue, "graph: expected one on a CUDA device, got one on the CPU")
	}
	plan, is := p.Plan.(*hetero.Plan)
	if !is {
		return nil, Errorf(KindValue, "sampler: expected one of graphs with types, got one of another family")
	}
	given, err := t.times(&HeteroCall{Sorted: sorted})
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
		return standing(t.device, t.device.graph, p, made, len(t.csc.Kinds), seedBits, grid, count, most)
	})
}

// NewDeviceStaticAlone is NewDeviceStaticHetero for a graph without types, as one of one type: for edges with times, whose
// sorted rows are at an address, and for what NewDeviceStatic does not make of others, where that is 0.
func NewDeviceStaticAlone(g *Graph, p *Sampler, sorted int64, byVertex bool, seedBits, grid, count, most int64) (*DeviceStatic, error) {
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
		return standing(g.device, g.device.graph.Alone(), p, made, 1, seedBits, grid, count, most)
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

// standing makes room for batches of a plan, as NewDeviceStaticHetero says.
func standing(d *deviceGraph, g *cuda.Graph, p *Sampler, plan *cuda.Hetero, kinds int, seedBits, grid, count, most int64) (cuda.Standing, error) {
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
	options := cuda.StaticHeteroPlan{Plan: plan, Seed: p.batch(&Call{}).Seed, SeedBits: int(seedBits), Grid: int(grid)}
	for range count {
		options.Vertices = append(options.Vertices, take(kinds))
		options.Edges = append(options.Edges, take(relations))
	}
	return d.engine.NewStaticHetero(g, options)
}

// PlaceHetero says where the batches of a graph with types go. At the address list are of each type 6 integers: where
// its vertices go, their trees, the seeds and their positions, how many vertices have room and how many seeds; then of
// each block, outermost first, and each relation 8: where indptr, indices, edge ids, factors and destinations go, and how
// many sources, destinations and edges have room; then where what is counted goes. Trees, factors and destinations are 0
// without some.
func (s *DeviceStatic) PlaceHetero(count, list int64) error {
	return as(s, 0, func(made *cuda.StaticHetero, _ gpu.Stream) error {
		kinds, relations := int64(len(made.Seeds())), int64(made.Relations())
		if length := 6*kinds + 8*relations*int64(made.Hops()) + 1; list == 0 || count != length {
			return Errorf(KindValue, "list: expected %d integers at an address, got %d at %#x", length, count, list)
		}
		w, to := memory.View[int64](list, count), new(cuda.SpreadHetero)
		for range kinds {
			to.Kinds = append(to.Kinds, cuda.SpreadKind{
				Nodes: gpu.Address(w[0]), Trees: gpu.Address(w[1]), OutputNodes: gpu.Address(w[2]), OutputIndex: gpu.Address(w[3]),
				Size: uint64(max(w[4], 0)), Outputs: uint64(max(w[5], 0)),
			})
			w = w[6:]
		}
		for range made.Hops() {
			var hop []cuda.SpreadHeteroBlock
			for range relations {
				hop = append(hop, cuda.SpreadHeteroBlock{
					SpreadBlock: cuda.SpreadBlock{
						Indptr: gpu.Address(w[0]), Indices: gpu.Address(w[1]), EdgeIDs: gpu.Address(w[2]),
						Size: cuda.BlockSize{Src: uint64(max(w[5], 0)), Dst: uint64(max(w[6], 0)), Edges: uint64(max(w[7], 0))},
					},
					EdgeWeights: gpu.Address(w[3]), DstNodes: gpu.Address(w[4]),
				})
				w = w[8:]
			}
			to.Blocks = append(to.Blocks, hop)
		}
		to.Counts = gpu.Address(w[0])
		return made.Place(to)
	})
}

// BeginHetero is Begin for a graph with types: at the address counts are of each batch how many of its seeds are of
// which type, in whose order they stand, and at times a time of each seed, float64 where those of edges are, else
// int64; 0: they have none. At starts are where the edges of each batch and relation begin among those at exclude, which
// are not sampled, with the end of all: int64 edge ids; 0: there are none.
func (s *DeviceStatic) BeginHetero(seeds, times, numSeeds, count, parts, counts, exclude, starts, epoch, first, stride, stream int64) error {
	if count < 0 || numSeeds < 0 || count > 0 && (parts == 0 || counts == 0 || seeds == 0) {
		return Errorf(KindValue, "static: expected addresses of seeds and parts of batches, got %#x, %#x and %#x for %d", seeds, parts, counts, count)
	}
	if err := (&Call{SeedBits: 64, Epoch: epoch, Batch: first + max(count-1, 0)*stride}).check(); err != nil {
		return err
	}
	return as(s, stream, func(made *cuda.StaticHetero, to gpu.Stream) error {
		all, err := s.parts(seeds, numSeeds, count, parts, numSeeds)
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
		pass := &cuda.HeteroPass{Parts: all, Counts: of, Epoch: uint32(epoch), First: uint64(first), Stride: uint64(stride)}
		if times != 0 {
			if pass.Keys, err = seedKeys(times, numSeeds, made.FloatTimes()); err != nil {
				return err
			}
		}
		if starts != 0 {
			if pass.Excluded, pass.ExcludedAt, err = s.excluded(exclude, starts, count*int64(made.Relations())); err != nil {
				return err
			}
		}
		return made.Begin(to, gpu.Address(seeds), pass)
	})
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

// SpreadHetero copies the next batch to where PlaceHetero has said.
func (s *DeviceStatic) SpreadHetero(stream int64) error {
	return as(s, stream, func(made *cuda.StaticHetero, on gpu.Stream) error { return made.Spread(on) })
}

// EdgeBitsHetero is how wide the ids of a relation's edges are.
func (s *DeviceStatic) EdgeBitsHetero(relation int64) (bits int64, err error) {
	err = as(s, 0, func(made *cuda.StaticHetero, _ gpu.Stream) error {
		if relation < 0 || relation >= int64(made.Relations()) {
			return Errorf(KindValue, "relation: expected one of %d, got %d", made.Relations(), relation)
		}
		bits = int64(made.EdgeBits(int(relation)))
		return nil
	})
	return bits, err
}
