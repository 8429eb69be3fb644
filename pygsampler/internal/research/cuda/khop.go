package cuda

import (
	"errors"
	"fmt"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/khop"
)

// khopArgs mirrors KHopArgs in kernels/research/khop.cu.
type khopArgs struct {
	Seeds, Out, Report, Arrived, BadSeed                  gpu.Address
	Indptr, Indices, EdgeIDs                              gpu.Address
	Records, Order, Tasks, Counts, Counters, Sums         gpu.Address
	Samples, FirstSample, Rows, Nodes                     uint64
	NodesAt, EdgesAt                                      uint64
	Before, Of, First, Width, Edges                       uint64
	Count, Hop, Distinct, Tries, Team, RowMost            uint32
	Capacity                                              uint64
	IDBits, SeedBits, IndptrBits, EdgeIDBits, OutEdgeBits uint32
	Key0, Key1, Batch0, Batch1                            uint32
}

// KHop is k-hop and layer sampling.
type KHop struct {
	khop.Rule
	// Execution is "sample", one thread per slot; one of the executions that group transits by their
	// node; or "auto" and "", which transitsPerVertex decides. The samples are the same.
	Execution string
}

// transitsPerVertex is how many transits of a step each of a graph's vertices has to have, on average, for
// "auto" to group them. No benchmark has found such a number: none is so large.
const transitsPerVertex = 1 << 31

// khopKernels are those of kernels/research/khop.cu by the width of ids, and those of transit.cu that group.
type khopKernels struct {
	begin, step, enter, transits, layer, unique, layerUnique [2]gpu.Kernel[khopArgs]
	finish                                                   gpu.Kernel[khopArgs]
	open, place                                              gpu.Kernel[transitArgs]
	residents                                                int // blocks of step that a multiprocessor runs at a time
}

func loadKHop(e *cuda.Engine) (*khopKernels, error) {
	k := new(khopKernels)
	var err error
	for name, to := range map[string]*[2]gpu.Kernel[khopArgs]{
		"begin": &k.begin, "step": &k.step, "enter": &k.enter, "transits": &k.transits, "layer": &k.layer, "unique": &k.unique,
		"layer_unique": &k.layerUnique,
	} {
		for wide, bits := range []string{"32", "64"} {
			if to[wide], err = cuda.KernelOf[khopArgs](e, "khop", "khop_"+name+bits, 0); err != nil {
				return nil, err
			}
		}
	}
	if k.finish, err = cuda.KernelOf[khopArgs](e, "khop", "khop_finish", 0); err != nil {
		return nil, err
	}
	for name, to := range map[string]*gpu.Kernel[transitArgs]{"open": &k.open, "place": &k.place} {
		if *to, err = cuda.KernelOf[transitArgs](e, "transit", "transit_"+name, 0); err != nil {
			return nil, err
		}
	}
	k.residents, err = k.step[0].Occupancy(khopThreads, 0)
	return k, err
}

// Check refuses what no kernel does.
func (p *KHop) Check(g *cuda.Graph, c *cuda.Call) error {
	sum := int64(1)
	for _, width := range p.Widths() {
		sum += width
	}
	switch {
	case len(c.Exclude) > 0:
		return fmt.Errorf("%w: exclude: expected no edges for samples by steps, got some", request.ErrValue)
	case c.NumSeeds > 0 && (1<<31-1)/c.NumSeeds < sum:
		return fmt.Errorf("%w: samples: expected fewer than 2^31 nodes in a call on a GPU, got %d times %d", request.ErrOverflow, c.NumSeeds, sum)
	case p.Unique && g.Edges>>33 != 0:
		return fmt.Errorf("%w: unique: expected fewer than 2^33 edges for unique samples on a GPU, got %d; the CPU takes more", request.ErrValue, g.Edges)
	case GroupsTransits(p.Execution) && g.Nodes>>32 != 0:
		return fmt.Errorf("%w: execution: expected 'auto' or 'sample' for a graph of 2^32 nodes and more, got '%s'", request.ErrValue, p.Execution)
	}
	return nil
}

// Words is those of samples by steps.
func (p *KHop) Words() int { return batch.StepWords }

// Shape is nothing: how large samples are is known.
func (p *KHop) Shape() string { return fmt.Sprint(p.Counts, p.Collective, p.EdgeIDs) }

func (p *KHop) words(g *cuda.Graph, seeds int64) [batch.StepWords]int64 {
	return p.Rule.Words(seeds, int64(g.IDBits), int64(g.SampleBits()))
}

// Guess is exact.
func (p *KHop) Guess(g *cuda.Graph, seeds int64) cuda.Needs {
	words := p.words(g, seeds)
	return cuda.Needs{Out: uint64(words[batch.WordSize])}
}

// Used tells nothing of other samples, whose guess is exact.
func (p *KHop) Used(*cuda.Flight) cuda.Needs { return cuda.Needs{} }

// Arrived knows no status of its own.
func (p *KHop) Arrived(_ *cuda.Flight, status, _ int64) (bool, error) {
	return false, fmt.Errorf("a kernel reported status %d: a fault of pygsampler", status)
}

// grouped says whether a step's transits are put together by their vertex.
func (p *KHop) grouped(g *cuda.Graph, transits int64) bool {
	switch {
	case p.Collective || p.Unique || g.Nodes>>32 != 0:
		return false
	case GroupsTransits(p.Execution):
		return true
	}
	return p.Execution != "sample" && transits/transitsPerVertex >= max(g.Nodes, 1)
}

// khopSpace is the sums of layer sampling's blocks, or the tables of unique steps' blocks.
type khopSpace struct{ sums gpu.Memory }

// Forget has nothing to forget.
func (s *khopSpace) Forget() {}

// Free gives them back.
func (s *khopSpace) Free(stream gpu.Stream) error { return s.sums.Free(stream) }

// layerBlocks is how many blocks layer sampling has at most.
func (p *KHop) layerBlocks(f *cuda.Flight) int64 {
	return max(min(f.Call().NumSeeds, int64(8*f.Engine().Context().Properties().Multiprocessors)), 1)
}

// Fit makes room for what groups transits, of the step that has most of them, or for sums.
func (p *KHop) Fit(f *cuda.Flight) error {
	f.Needs().Out = p.Guess(f.Graph(), f.Call().NumSeeds).Out
	most := int64(1)
	widths := p.Widths()
	for _, width := range widths[:len(widths)-1] {
		most = max(most, width)
	}
	switch {
	case p.Unique:
		bytes, of := uint64(0), int64(1)
		for _, width := range widths {
			bytes = max(bytes, p.uniqueStep(f, of, width).bytes)
			of = width
		}
		return f.Space().Grow(&cuda.SpaceOf[khopSpace](f.Space()).sums, bytes, f.Stream())
	case p.Collective && most > transitRow:
		return f.Space().Grow(&cuda.SpaceOf[khopSpace](f.Space()).sums, uint64(8*most*p.layerBlocks(f)), f.Stream())
	case p.grouped(f.Graph(), most*f.Call().NumSeeds):
		return cuda.SpaceOf[transitSpace](f.Space()).fit(f, uint64(most*f.Call().NumSeeds), 8)
	}
	return nil
}

// Launch is all steps.
func (p *KHop) Launch(f *cuda.Flight) error {
	k, err := cuda.Cached(f.Engine(), "khop", loadKHop)
	if err != nil {
		return err
	}
	g, c := f.Graph(), f.Call()
	out, bytes := f.Region()
	if bytes < f.Needs().Out {
		return fmt.Errorf("%w: out: expected %d bytes, got %d", request.ErrValue, f.Needs().Out, bytes)
	}
	words := p.words(g, c.NumSeeds)
	copy(f.ReportWords()[cuda.ReportHeader:], words[:])
	random, meeting, samples := c.Random(), f.Meeting(), uint64(c.NumSeeds)
	args := khopArgs{
		Seeds: c.Seeds, Out: out, Report: f.Report(), Arrived: meeting, BadSeed: meeting + cuda.BadSeedAt,
		Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs,
		Samples: samples, FirstSample: uint64(p.FirstSample), Rows: uint64(g.Rows), Nodes: uint64(g.Nodes),
		NodesAt: uint64(words[batch.StepNodes]), EdgesAt: uint64(words[batch.StepEdgeIDs]),
		Distinct: cuda.Word(p.Distinct), IDBits: uint32(g.IDBits), SeedBits: uint32(c.SeedBits),
		IndptrBits: uint32(g.IndptrBits), EdgeIDBits: g.StoredEdgeIDBits(), OutEdgeBits: uint32(g.SampleBits()),
		Key0: random[0], Key1: random[1], Batch0: random[2], Batch1: random[3],
	}
	wide := g.Wide()
	if err := launchKHop(f, k, &k.begin[wide], &args, samples); err != nil {
		return err
	}
	args.Of, args.First = 1, samples
	for s, width := range p.Widths() {
		if samples == 0 {
			break
		}
		args.Count, args.Hop, args.Width = uint32(p.Counts[s]), uint32(s+1), uint64(width)
		args.Edges = args.First - samples
		switch {
		case p.Unique:
			err = p.launchUnique(f, k, &args)
		case p.Collective:
			err = p.launchLayer(f, k, &args)
		case p.grouped(g, int64(samples*args.Of)):
			err = p.launchGrouped(f, k, &args)
		default:
			err = launchKHop(f, k, &k.step[wide], &args, samples*args.Width)
		}
		if err != nil {
			return err
		}
		args.Before, args.First, args.Of = args.First, args.First+samples*args.Width, args.Width
	}
	return k.finish.Launch(f.Stream(), gpu.Shape{Grid: [3]uint32{1}, Block: [3]uint32{32}}, &args)
}

// khopBlocks is a good grid for so many items, a thread each.
func khopBlocks(f *cuda.Flight, k *khopKernels, items uint64) uint32 {
	most := k.residents * f.Engine().Context().Properties().Multiprocessors
	// Blocks of several waves even out rows of all lengths.
	blocks := int(max(min((items+khopThreads-1)/khopThreads, uint64(8*most)), 1))
	if f.Call().Grid > 0 {
		return uint32(min(f.Call().Grid, blocks))
	}
	return uint32(f.Call().Within(blocks, most))
}

func launchKHop(f *cuda.Flight, k *khopKernels, kernel *gpu.Kernel[khopArgs], args *khopArgs, items uint64) error {
	shape := gpu.Shape{Grid: [3]uint32{khopBlocks(f, k, items)}, Block: [3]uint32{khopThreads}}
	return kernel.Launch(f.Stream(), shape, args)
}

// launchLayer is a step that the transits of a sample draw together.
func (p *KHop) launchLayer(f *cuda.Flight, k *khopKernels, args *khopArgs) error {
	args.Sums = cuda.SpaceOf[khopSpace](f.Space()).sums.Address
	blocks := int(p.layerBlocks(f))
	if f.Call().Grid > 0 {
		blocks = min(f.Call().Grid, blocks)
	}
	blocks = f.Call().Within(blocks, k.residents*f.Engine().Context().Properties().Multiprocessors)
	shape := gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{khopThreads}}
	return k.layer[f.Graph().Wide()].Launch(f.Stream(), shape, args)
}

// uniqueStep says how a unique step is launched.
type uniqueStep struct {
	team, capacity uint64
	blocks         int64
	bytes          uint64 // of all blocks' tables; 0 where they fit into shared memory
}

// uniqueTables bounds the bytes of the tables of a step's blocks, unless one block needs more.
const uniqueTables = 1 << 28

// uniqueStep is the launch of a step in which a sample has so many slots, of so many transits.
func (p *KHop) uniqueStep(f *cuda.Flight, of, width int64) (s uniqueStep) {
	// A warp has a sample of up to an eighth of a block's shared memory, and a block makes the sums of a joint list.
	teams := int64(khopThreads / 32)
	if p.Collective || width > transitRow/2/teams {
		teams = 1
	}
	s.team, s.capacity = uint64(khopThreads/teams), 2
	for s.capacity < uint64(2*min(width, max(f.Graph().Nodes, 1))) {
		s.capacity *= 2
	}
	s.blocks = max(min((f.Call().NumSeeds+teams-1)/teams, int64(8*f.Engine().Context().Properties().Multiprocessors)), 1)
	if width > transitRow/2 || (p.Collective && of > transitRow/2) {
		each := 8 * (2*s.capacity + uint64(of))
		s.blocks = max(min(s.blocks, int64(uniqueTables/each)), 1)
		s.bytes = each * uint64(s.blocks)
	}
	return s
}

// launchUnique is a step in which a sample has no node twice.
func (p *KHop) launchUnique(f *cuda.Flight, k *khopKernels, args *khopArgs) error {
	s := p.uniqueStep(f, int64(args.Of), int64(args.Width))
	args.Sums = cuda.SpaceOf[khopSpace](f.Space()).sums.Address
	args.Tries, args.Team, args.Capacity = khop.Tries, uint32(s.team), s.capacity
	blocks := int(s.blocks)
	if f.Call().Grid > 0 {
		blocks = min(f.Call().Grid, blocks)
	}
	blocks = f.Call().Within(blocks, k.residents*f.Engine().Context().Properties().Multiprocessors)
	shape := gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{khopThreads}}
	kernels := &k.unique
	if p.Collective {
		kernels = &k.layerUnique
	}
	return kernels[f.Graph().Wide()].Launch(f.Stream(), shape, args)
}

// launchGrouped is a step by transits. open and place are those of walks, at step 0, whose walkers are the
// transits here.
func (p *KHop) launchGrouped(f *cuda.Flight, k *khopKernels, args *khopArgs) error {
	g, s := f.Graph(), cuda.SpaceOf[transitSpace](f.Space())
	transits, wide := args.Samples*args.Of, g.Wide()
	args.Records, args.Order, args.Tasks = s.records.Address, s.order.Address, s.tasks.Address
	args.Counts, args.Counters = s.counts.Address, s.counters.Address
	grouping := transitArgs{
		Walk:  cuda.WalkArgs{Walks: transits, Nodes: uint64(g.Nodes)},
		Order: s.order.Address, Records: s.records.Address, Tasks: s.tasks.Address,
		Counts: s.counts.Address, Starts: s.starts.Address, Counters: s.counters.Address,
	}
	grouping.limit(p.Execution)
	args.RowMost = grouping.RowMost
	launch := func(kernel *gpu.Kernel[transitArgs], items uint64) error {
		shape := gpu.Shape{Grid: [3]uint32{khopBlocks(f, k, items)}, Block: [3]uint32{transitThreads}}
		return kernel.Launch(f.Stream(), shape, &grouping)
	}
	// Launches that come to no end leave counts behind.
	clean := s.clean
	s.clean = 0
	// Only the device knows if open goes through nodes or transits, so this is enough for both.
	looks := max(transits, min(uint64(g.Nodes), transitSparse*transits)) / transitSide
	err := errors.Join(
		launchKHop(f, k, &k.enter[wide], args, transits),
		launch(&k.open, looks), launch(&k.place, transits),
		launchKHop(f, k, &k.transits[wide], args, transits*uint64(args.Count)),
	)
	if err == nil {
		s.clean = clean
	}
	return err
}
