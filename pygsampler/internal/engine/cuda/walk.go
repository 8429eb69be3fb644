package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// WalkArgs mirrors WalkArgs in kernels/walk/walk.cuh.
type WalkArgs struct {
	Seeds, Out, Report, Arrived, BadSeed                          gpu.Address
	Indptr, Indices, EdgeIDs, Alias, Sums                         gpu.Address
	Packed, Offsets, Filter                                       gpu.Address
	BackIndptr, BackIndices                                       gpu.Address
	Walks, Rows, Nodes, BackRows                                  uint64
	LengthsAt, NodesAt, EdgesAt                                   uint64
	SlotsAt, TopAt, VisitsAt                                      uint64
	Stop, Restart, AcceptBack, AcceptCommon, AcceptFar            uint64
	OfBack, OfFar, Bound, Extra                                   float64
	FilterWords, FirstWalk                                        uint64
	PerSeed, Length, Kinds, PathLength, Jumps, Filled, PerBlock   uint32
	Every, Top, Roots, StopEvery                                  uint32
	SeedBits, IndptrBits, EdgeIDBits, OutEdgeBits, BackIndptrBits uint32
	Key0, Key1, Batch0, Batch1                                    uint32
	Path                                                          [walk.MaxPath]uint16
}

// packArgs mirrors PackArgs in kernels/walk/walk.cu.
type packArgs struct {
	Indptr, Indices, EdgeIDs, Alias, Packed gpu.Address
	Rows, Edges, Words                      uint64
	IndptrBits, IDBits, EdgeIDBits, _       uint32
}

// Walks is the plan of random walks.
type Walks struct {
	walk.Rule
	// Layout is "packed", one read per step of 16 bytes per edge, or 32 with weights, that the
	// graph keeps on the device; "csr", two or three reads of the graph's own arrays; or "auto":
	// packed if it takes at most half of the free memory. The walks are the same.
	Layout string
	// Execution is another way to compute the walks, without packed edges; nil: one thread per walk.
	Execution WalkExecution
}

// WalkExecution is a way to compute walks on a device. The walks are the same as by one thread per
// walk.
type WalkExecution interface {
	// Name returns its name in plan documents.
	Name() string
	// Check returns an error for graphs that it does not support.
	Check(g *Graph) error
	// Fit allocates the memory for the walks of a flight in its workspace.
	Fit(f *Flight, p *Walks) error
	// Launch enqueues all steps on the flight's stream. kind is 0 if the kernels need only plain
	// steps, 1 if they need no steps of second order, and 2 if they need everything. The launch
	// reports, unless top visits are counted after it.
	Launch(f *Flight, p *Walks, args *WalkArgs, kind int) error
}

// Kernels of walk.cu: what they leave out, by name.
const (
	walkPlain = iota
	walkFirst
	walkSecond
)

// walkKernels are by weights, packing, what they leave out, and the width of ids.
type walkKernels struct {
	walk                             [2][2][3][2]gpu.Kernel[WalkArgs]
	tally, roots                     [2]gpu.Kernel[WalkArgs]
	pack, packAlias, offsets, filter gpu.Kernel[packArgs]
	residents                        int   // blocks of the plainest that a multiprocessor runs at a time
	few                              int64 // up to how many walks blocks are a warp; a test changes it
}

func loadWalks(e *Engine) (*walkKernels, error) {
	k := &walkKernels{few: fewWalks}
	for i, alias := range []string{"", "alias_"} {
		for j, layout := range []string{"csr", "packed"} {
			for kind, suffix := range []string{"", "_first", "_second"} {
				for wide, bits := range []string{"32", "64"} {
					var err error
					if k.walk[i][j][kind][wide], err = KernelOf[WalkArgs](e, "walk", "walk_"+alias+layout+suffix+bits, 0); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	for wide, bits := range []string{"32", "64"} {
		var err error
		if k.tally[wide], err = KernelOf[WalkArgs](e, "visit_counts", "visit_counts"+bits, 0); err != nil {
			return nil, err
		}
		if k.roots[wide], err = KernelOf[WalkArgs](e, "visit_counts", "visit_roots"+bits, walk.MaxRoots*int(12+4*wide)); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]*gpu.Kernel[packArgs]{
		"walk_pack": &k.pack, "walk_pack_alias": &k.packAlias, "walk_offsets": &k.offsets, "walk_filter": &k.filter,
	} {
		var err error
		if *to, err = KernelOf[packArgs](e, "walk", name, 0); err != nil {
			return nil, err
		}
	}
	var err error
	k.residents, err = k.walk[0][0][walkPlain][0].Occupancy(walkThreads, 0)
	return k, err
}

// Check returns an error for requests that no kernel supports.
func (p *Walks) Check(g *Graph, c *Call) error {
	switch {
	case len(c.Exclude) > 0:
		return fmt.Errorf("%w: exclude: expected no edges for walks, got some", request.ErrValue)
	case c.NumSeeds > 0 && (1<<31-1)/c.NumSeeds < max(p.PerSeed, 1):
		return fmt.Errorf("%w: walks: expected fewer than 2^31 in a call on a GPU, got %d times %d", request.ErrOverflow, c.NumSeeds, p.PerSeed)
	case p.Roots > 0 && c.NumSeeds%p.Roots != 0:
		return p.WrongRoots(c.NumSeeds)
	case p.Second() && g.Back == nil:
		return errors.New("walks with p, q: expected a graph with adjacency, got none: a fault of pygsampler")
	case p.Layout == "packed" && !g.packable(p):
		return fmt.Errorf("%w: layout: expected 'auto' or 'csr' with a metapath, or a graph of 2^32 edges or nodes and more, got 'packed'", request.ErrValue)
	case p.Execution != nil && p.Roots > 0:
		return fmt.Errorf("%w: execution: expected 'auto' or 'sample' with roots, got '%s'", request.ErrValue, p.Execution.Name())
	case p.Execution != nil:
		return p.Execution.Check(g)
	}
	return nil
}

// packable reports whether a step of the plan is one read: rows that are split by edge types would
// need one entry for each type.
func (g *Graph) packable(p *Walks) bool {
	return g.Kinds <= 1 && len(p.Path) == 0 && g.Edges>>32 == 0 && g.Nodes>>32 == 0
}

// Words returns the number of words that describe walks.
func (p *Walks) Words() int { return batch.WalkWords }

// Shape returns the parameters that the size of walks depends on.
func (p *Walks) Shape() string { return fmt.Sprint(p.Length, p.PerSeed, p.EdgeIDs) }

func (p *Walks) words(g *Graph, seeds int64) [batch.WalkWords]int64 {
	return p.Rule.Words(seeds, int64(g.IDBits), int64(g.SampleBits()))
}

// Guess returns the exact needs.
func (p *Walks) Guess(g *Graph, seeds int64) Needs {
	words := p.words(g, seeds)
	return Needs{Out: uint64(words[batch.WordSize])}
}

// Used returns nothing, since the guess is exact.
func (p *Walks) Used(*Flight) Needs { return Needs{} }

// Fit allocates the working memory of grouped walks; other walks need none.
func (p *Walks) Fit(f *Flight) error {
	f.need.Out = p.Guess(f.graph, f.call.NumSeeds).Out
	if p.Execution == nil {
		return nil
	}
	return p.Execution.Fit(f, p)
}

// Arrived handles no additional status.
func (p *Walks) Arrived(_ *Flight, status, _ int64) (bool, error) {
	return false, fmt.Errorf("a kernel reported status %d: a fault of pygsampler", status)
}

// Launch enqueues all walks.
func (p *Walks) Launch(f *Flight) error {
	k, err := Cached(f.engine, "walk", loadWalks)
	if err != nil {
		return err
	}
	g := f.graph
	out, bytes := f.Region()
	if bytes < f.need.Out {
		return fmt.Errorf("%w: out: expected %d bytes, got %d", request.ErrValue, f.need.Out, bytes)
	}
	words := p.words(g, f.call.NumSeeds)
	copy(f.space.words()[ReportHeader:], words[:])
	args, kind := p.args(f, &words, out)
	if err := g.packedFor(p, k, f.stream, &args); err != nil {
		return err
	}
	switch {
	case p.Roots > 0:
		return p.fromRoots(f, k, &args)
	case p.Execution != nil:
		err = p.Execution.Launch(f, p, &args, kind)
	default:
		blocks, threads, perBlock := k.shape(f, words[batch.WalkNumWalks])
		args.PerBlock = uint32(perBlock)
		if p.Stop > 0 && threads > 32 {
			args.Filled = 1
			if err := p.fill(f, &words); err != nil {
				return err
			}
		}
		err = k.walk[Word(g.Alias != 0)][Word(args.Packed != 0)][kind][g.Wide()].Launch(
			f.stream, gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{uint32(threads)}}, &args)
	}
	if err == nil && p.Top > 0 {
		err = p.tally(f, k, &args)
	}
	return err
}

// args returns the arguments of the kernels, except for the arrays that the graph keeps for walks,
// the number of walks of a block, and the work that kernels can skip.
func (p *Walks) args(f *Flight, words *[batch.WalkWords]int64, out gpu.Address) (args WalkArgs, kind int) {
	g, c := f.graph, &f.call
	chance, random, meeting := p.Chances(), c.Random(), f.space.meeting.Address
	args = WalkArgs{
		Seeds: c.Seeds, Out: out, Report: f.Report(), Arrived: meeting, BadSeed: meeting + BadSeedAt,
		Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, Alias: g.Alias, Sums: g.Sums,
		Walks: uint64(words[batch.WalkNumWalks]), Rows: uint64(g.Rows), Nodes: uint64(g.Nodes),
		LengthsAt: uint64(words[batch.WalkLengths]), NodesAt: uint64(words[batch.WalkNodes]), EdgesAt: uint64(words[batch.WalkEdgeIDs]),
		SlotsAt: uint64(words[batch.WalkSlots]), TopAt: uint64(words[batch.WalkTopNodes]), VisitsAt: uint64(words[batch.WalkVisits]),
		Stop: chance.Stop, Restart: chance.Restart,
		AcceptBack: chance.Return, AcceptCommon: chance.Common, AcceptFar: chance.Far,
		OfBack: chance.OfReturn, OfFar: chance.OfFar, Bound: chance.Bound, Extra: chance.Extra,
		FirstWalk: uint64(p.FirstWalk), PerSeed: uint32(max(p.PerSeed, 1)), Length: uint32(p.Length), Kinds: uint32(max(g.Kinds, 1)),
		PathLength: uint32(len(p.Path)), Jumps: Word(p.Jumps),
		Every: uint32(max(p.Every, 1)), Top: uint32(p.Top), Roots: uint32(p.Roots), StopEvery: uint32(p.Every),
		SeedBits: uint32(c.SeedBits), IndptrBits: uint32(g.IndptrBits), EdgeIDBits: g.StoredEdgeIDBits(), OutEdgeBits: uint32(g.SampleBits()),
		Key0: random[0], Key1: random[1], Batch0: random[2], Batch1: random[3],
	}
	for i, kind := range p.Path {
		args.Path[i] = uint16(kind)
	}
	switch {
	case p.Second():
		kind = walkSecond
		args.BackIndptr, args.BackIndices = g.Back.Indptr, g.Back.Indices
		args.BackRows, args.BackIndptrBits = uint64(g.Back.Rows), uint32(g.Back.IndptrBits)
	case p.Stop > 0 || p.Restart > 0 || len(p.Path) > 0:
		kind = walkFirst
	}
	return args, kind
}

// fill writes -1 wherever a walk may not come.
func (p *Walks) fill(f *Flight, words *[batch.WalkWords]int64) error {
	out, _ := f.Region()
	none := ^uint32(0)
	err := f.stream.Fill32(out+gpu.Address(words[batch.WalkNodes]), none, uint64(words[batch.WalkNumNodes]*words[batch.WordIDBits]/32))
	if at := words[batch.WalkEdgeIDs]; at != 0 && err == nil {
		err = f.stream.Fill32(out+gpu.Address(at), none, uint64(words[batch.WalkNumEdges]*words[batch.WalkEdgeIDBits]/32))
	}
	return err
}

// fromRoots makes walks of several roots, a warp each.
func (p *Walks) fromRoots(f *Flight, k *walkKernels, args *WalkArgs) error {
	chunks := (p.Roots + walk.RootChunk - 1) / walk.RootChunk
	shared := chunks * walk.RootChunk * int64(f.graph.IDBits/8+8)
	blocks := max(min(int64(args.Walks), 1<<16), 1)
	if f.call.Grid > 0 {
		blocks = min(int64(f.call.Grid), blocks)
	}
	return k.roots[f.graph.Wide()].Launch(f.stream, gpu.Shape{
		Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{32}, Shared: uint32(shared),
	}, args)
}

// tally finds the top visits of walks that are in the stream, and reports.
func (p *Walks) tally(f *Flight, k *walkKernels, args *WalkArgs) error {
	size := int64(2)
	for size < p.Visits() {
		size *= 2
	}
	blocks := max(min(int64(args.Walks/uint64(args.PerSeed)), 1<<16), 1)
	if f.call.Grid > 0 {
		blocks = min(int64(f.call.Grid), blocks)
	}
	return k.tally[f.graph.Wide()].Launch(f.stream, gpu.Shape{
		Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{uint32(min(max(size/2, 32), tallyThreads))}, Shared: uint32(16 * size),
	}, args)
}

// fewWalks is the number of walks up to which blocks are single warps: then all multiprocessors
// have work, each with the reads of few walks in flight.
const fewWalks = 50_000

// shape is a good grid, and how many walks a block has under way.
func (k *walkKernels) shape(f *Flight, walks int64) (blocks, threads, perBlock int) {
	threads, perBlock = walkThreads, walkThreads
	multiprocessors := f.engine.context.Properties().Multiprocessors
	if walks <= k.few {
		// A warp waits for the slowest read of its lanes, so as many warps as run at a time share them: 1024
		// walks of 80 steps took 52 us, a walk a warp, and 70 in full warps.
		warps := int64(32 * multiprocessors)
		threads, perBlock = 32, int(min(max((walks+warps-1)/warps, 1), 32))
	}
	blocks = max(int((walks+int64(perBlock)-1)/int64(perBlock)), 1)
	if f.call.Grid > 0 {
		return min(f.call.Grid, blocks), threads, perBlock
	}
	if f.call.Share > 0 {
		blocks = f.call.Within(blocks, k.residents*multiprocessors)
	}
	return blocks, threads, perBlock
}

// packing holds the arrays that a graph caches for walks until it is closed.
type packing struct {
	sync.Mutex
	edges, offsets, filter packedArray
}

// packedArray is one of these arrays.
type packedArray struct {
	memory  gpu.Memory
	refused bool // there was no room for it
}

// packedArgs are the arguments of the kernel that packs a layout.
func (g *Graph) packedArgs() packArgs {
	return packArgs{
		Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, Alias: g.Alias,
		Rows: uint64(g.Rows), Edges: uint64(g.Edges),
		IndptrBits: uint32(g.IndptrBits), IDBits: uint32(g.IDBits), EdgeIDBits: g.StoredEdgeIDBits(),
	}
}

// packedFor sets the packed array that the walks of a plan read in addition to the graph's own
// arrays; it is packed now if it is missing.
func (g *Graph) packedFor(p *Walks, k *walkKernels, s gpu.Stream, args *WalkArgs) (err error) {
	if g.Edges == 0 || g.Edges>>32 != 0 || g.Nodes>>32 != 0 {
		return nil
	}
	g.packing.Lock()
	defer g.packing.Unlock()
	// For transit walks, the first position of a row is looked up once.
	if p.Layout != "csr" && p.Execution == nil && g.packable(p) && (!g.Shared || p.Layout == "packed") {
		kernel, bytes, units := k.pack, 16*uint64(g.Edges), g.Edges
		if g.Alias != 0 {
			kernel, bytes, units = k.packAlias, 2*bytes, 32*g.Rows
		}
		if args.Packed, err = g.formed(&g.packing.edges, p.Layout == "packed", bytes, s, kernel, g.packedArgs(), units); err != nil {
			return err
		}
	}
	if args.Packed == 0 {
		if args.Offsets, err = g.formed(&g.packing.offsets, false, 4*uint64(g.Rows+1), s, k.offsets, g.packedArgs(), g.Rows+1); err != nil {
			return err
		}
	}
	if !p.Second() || p.Layout == "csr" {
		return nil
	}
	// 8 bits an edge, in words of 32.
	words := uint64(g.Back.Edges)/4 + 1
	back := g.Back.packedArgs()
	back.Words = words
	args.FilterWords = words
	args.Filter, err = g.formed(&g.packing.filter, false, 4*words, s, k.filter, back, 32*g.Back.Rows)
	return err
}

// formed returns an array that a kernel computes, of units units of threads; it is 0 if it would
// take more than half of the free memory, unless it is required.
func (g *Graph) formed(
	f *packedArray, must bool, bytes uint64, s gpu.Stream, k gpu.Kernel[packArgs], args packArgs, units int64,
) (gpu.Address, error) {
	if f.memory.Address != 0 || f.refused && !must {
		return f.memory.Address, nil
	}
	if !must {
		free, _, err := g.engine.context.MemoryInfo()
		if err != nil {
			return 0, err
		}
		if f.refused = bytes > uint64(free)/2; f.refused {
			return 0, nil
		}
	}
	m, err := g.engine.pool.Alloc(s, bytes)
	if err != nil {
		if f.refused = !must; f.refused {
			return 0, nil
		}
		return 0, err
	}
	args.Packed = m.Address
	if args.Words > 0 {
		err = s.Fill32(m.Address, 0, args.Words)
	}
	blocks := min(int64(32*g.engine.context.Properties().Multiprocessors), (units+packThreads-1)/packThreads)
	if err == nil {
		err = k.Launch(s, gpu.Shape{Grid: [3]uint32{uint32(max(blocks, 1))}, Block: [3]uint32{packThreads}}, &args)
	}
	if err == nil {
		// Walks in other streams read it too.
		err = s.Synchronize()
	}
	if err != nil {
		return 0, errors.Join(err, m.Free(s))
	}
	f.memory = m
	return m.Address, nil
}

// Close releases the memory that the graph keeps on the device for walks and programs; nothing may
// be running.
func (g *Graph) Close() error {
	g.packing.Lock()
	defer g.packing.Unlock()
	errs := []error{g.named.free(g.engine.stream), g.made.free(g.engine.stream)}
	for _, f := range []*packedArray{&g.packing.edges, &g.packing.offsets, &g.packing.filter} {
		if f.memory.Address != 0 {
			errs = append(errs, f.memory.Free(g.engine.stream))
		}
	}
	return errors.Join(errs...)
}
