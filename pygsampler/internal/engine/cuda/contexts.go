package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/contexts"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// contextRelation mirrors ContextRelation in kernels/hetero/context.cu.
type contextRelation struct {
	Indptr, Indices, Keys gpu.Address
	NumRows               uint64
	IndptrBits, Src       uint32
}

// contextArgs mirrors ContextArgs.
type contextArgs struct {
	Seeds, Relations, Begins, Sizes, Ends, Costs, SeedTimes                gpu.Address
	Out, Report, Arrived, BadSeed                                          gpu.Address
	Tables, ListKeys, ListAt, ListLeft, GroupKeys, GroupLists              gpu.Address
	NumSeeds, Places, Budget, Width                                        uint64
	NodesAt, TypesAt, HopsAt, ParentsAt, MaskAt, CellsAt, LengthsAt        uint64
	Lists, Groups                                                          uint64
	Types, MostTimed, TableBits, SeedBits, Before, Windowed, FloatTimes, _ uint32
	Window                                                                 float64
}

// Contexts is the plan of contexts of fixed length, for one call.
type Contexts struct {
	contexts.Rule
	Seeds []int64 // how many there are of each node type, one behind another; nil: a homogeneous graph
	Times *Times  // of the seeds and the relations, whose rows are in the order of time; nil: none
}

type contextKernels struct {
	of        [2]gpu.Kernel[contextArgs] // of int32 and of int64 ids
	residents int                        // blocks of either that a multiprocessor runs at a time
}

func loadContexts(e *Engine) (k *contextKernels, err error) {
	k = &contextKernels{residents: math.MaxInt}
	for i, bits := range []string{"32", "64"} {
		if k.of[i], err = KernelOf[contextArgs](e, "context", "context"+bits, 0); err != nil {
			return nil, err
		}
		n, err := k.of[i].Occupancy(contextThreads, 0)
		if err != nil {
			return nil, err
		}
		k.residents = min(k.residents, n)
	}
	return k, nil
}

// Check returns an error for requests that no kernel supports.
func (p *Contexts) Check(g *Graph, c *Call) error {
	if len(c.Exclude) > 0 {
		return fmt.Errorf("%w: exclude: expected no edges for contexts, got some", request.ErrValue)
	}
	return p.Affordable(c.NumSeeds)
}

// schema is nil of a homogeneous graph.
func (p *Contexts) schema(g *Graph) *csc.Schema {
	if p.Seeds == nil {
		return nil
	}
	return g.schema
}

// Words returns the number of words that describe the contexts.
func (p *Contexts) Words() int { return batch.ContextWords }

// Shape returns the parameters that the size of the contexts depends on.
func (p *Contexts) Shape() string { return fmt.Sprint(p.Budget, p.Width, p.Cells) }

func (p *Contexts) words(g *Graph, seeds int64) [batch.ContextWords]int64 {
	return p.Rule.Words(seeds, p.schema(g) != nil)
}

// Guess returns the exact needs.
func (p *Contexts) Guess(g *Graph, seeds int64) Needs {
	words := p.words(g, seeds)
	return Needs{Out: uint64(words[batch.WordSize])}
}

// Used returns nothing, since the guess is exact.
func (p *Contexts) Used(*Flight) Needs { return Needs{} }

// Arrived handles no additional status.
func (p *Contexts) Arrived(_ *Flight, status, _ int64) (bool, error) {
	return false, fmt.Errorf("a kernel reported status %d: a fault of pygsampler", status)
}

// outside is the error of seed i, which is out of range.
func (p *Contexts) outside(f *Flight, i int64) error {
	return (&Hetero{Seeds: p.Seeds}).outside(f, i)
}

// contextSpace is the working memory of contexts.
type contextSpace struct {
	tables buffer // what the kernel knows of types, relations and seeds
	work   buffer // of warps: tables of nodes, and lists of edges
	staged gpu.Pinned
}

// Forget does nothing, since every batch writes everything that it reads.
func (*contextSpace) Forget() {}

func (s *contextSpace) Free(stream gpu.Stream) error {
	return errors.Join(s.tables.Free(stream), s.work.Free(stream), s.staged.Close())
}

// mostContextWork bounds the bytes that warps work in: fewer warps run side by side where each needs much.
const mostContextWork = 256 << 20

// contextShape is the number of warps, and the working memory of each.
type contextShape struct {
	blocks, mostTimed    int
	tableBits            int
	warps, lists, groups uint64
}

// shape is a good grid, and what its warps work in.
func (p *Contexts) shape(f *Flight, k *contextKernels) (s contextShape) {
	timed := make([]int, len(f.graph.schema.NodeTypes))
	if p.Times != nil {
		for i, of := range f.graph.schema.EdgeTypes {
			if p.Times.Keys[i] != 0 {
				timed[of.Dst]++
				s.mostTimed = max(s.mostTimed, timed[of.Dst])
			}
		}
	}
	s.tableBits = bits.Len64(uint64(2*p.Places() - 1))
	s.lists = uint64(p.Places()) * uint64(s.mostTimed)
	s.groups = (s.lists + 31) / 32
	const perBlock = contextThreads / 32
	resident := k.residents * f.engine.context.Properties().Multiprocessors
	blocks := min((f.call.NumSeeds+perBlock-1)/perBlock, int64(resident), int64(mostContextWork/(s.bytes()*perBlock)))
	s.blocks = max(int(blocks), 1)
	if f.call.Grid > 0 {
		s.blocks = min(s.blocks, f.call.Grid)
	}
	s.blocks = f.call.Within(s.blocks, resident)
	s.warps = uint64(s.blocks) * perBlock
	return s
}

// bytes returns the working memory of a warp, in whole words of 64 bits.
func (s *contextShape) bytes() uint64 {
	return uint64(4)<<s.tableBits + 24*s.lists + 16*s.groups
}

// tableBytes is the size of what the kernel knows of types, relations and seeds.
func (p *Contexts) tableBytes(g *Graph, seeds int64) uint64 {
	types, relations := uint64(len(g.schema.NodeTypes)), uint64(len(g.relations))
	bytes := relations*uint64(unsafe.Sizeof(contextRelation{})) + 8*(2*types+1) + 3*8*types
	if p.Times != nil {
		bytes += 8 * uint64(seeds)
	}
	return bytes
}

// Fit allocates the contexts and the working memory of the kernel.
func (p *Contexts) Fit(f *Flight) error {
	f.need.Out = p.Guess(f.graph, f.call.NumSeeds).Out
	k, err := Cached(f.engine, "context", loadContexts)
	if err != nil {
		return err
	}
	s, shape := SpaceOf[contextSpace](f.space), p.shape(f, k)
	size := p.tableBytes(f.graph, f.call.NumSeeds)
	err = errors.Join(s.tables.fit(f.space, size, f.stream), s.work.fit(f.space, shape.warps*shape.bytes(), f.stream))
	if err != nil || s.staged.Size >= size {
		return err
	}
	if err = s.staged.Close(); err == nil {
		s.staged, err = f.engine.context.AllocPinned(2 * size)
	}
	return err
}

// stage writes down what the kernel knows, and says where each part of it will be.
func (p *Contexts) stage(f *Flight, args *contextArgs) {
	g, s := f.graph, SpaceOf[contextSpace](f.space)
	at := uint64(0)
	next := func(bytes uint64) (unsafe.Pointer, gpu.Address) {
		defer func() { at += bytes }()
		return unsafe.Add(s.staged.Pointer, at), s.tables.Address + gpu.Address(at)
	}
	types := len(g.schema.NodeTypes)
	pointer, address := next(uint64(len(g.relations)) * uint64(unsafe.Sizeof(contextRelation{})))
	relations := unsafe.Slice((*contextRelation)(pointer), len(g.relations))
	args.Relations = address
	numbers := func(n int) ([]int64, gpu.Address) {
		pointer, address := next(8 * uint64(n))
		return unsafe.Slice((*int64)(pointer), n), address
	}
	var begins, sizes, ends, costs []int64
	begins, args.Begins = numbers(2*types + 1)
	sizes, args.Sizes = numbers(types)
	ends, args.Ends = numbers(types)
	costs, args.Costs = numbers(types)
	count, end := int64(0), int64(0)
	for t, kind := range g.schema.NodeTypes {
		sizes[t], costs[t] = kind.Nodes, p.Cost(t)
		if p.Seeds == nil {
			end = f.call.NumSeeds
		} else {
			end += p.Seeds[t]
		}
		ends[t] = end
		for timed := range 2 {
			begins[2*t+timed] = count
			for i, of := range g.schema.EdgeTypes {
				keys := gpu.Address(0)
				if p.Times != nil {
					keys = p.Times.Keys[i]
				}
				if of.Dst != t || (keys != 0) != (timed == 1) {
					continue
				}
				r := g.relations[i]
				relations[count] = contextRelation{
					Indptr: r.Indptr, Indices: r.Indices, Keys: keys, NumRows: uint64(r.Rows),
					IndptrBits: uint32(r.IndptrBits), Src: uint32(of.Src),
				}
				count++
			}
		}
	}
	begins[2*types] = count
	if p.Times != nil {
		var keys []int64
		keys, args.SeedTimes = numbers(len(p.Times.Seeds))
		copy(keys, p.Times.Seeds)
	}
}

// Launch enqueues all contexts in one launch.
func (p *Contexts) Launch(f *Flight) error {
	g, c := f.graph, &f.call
	k, err := Cached(f.engine, "context", loadContexts)
	if err != nil {
		return err
	}
	out, bytes := f.Region()
	if bytes < f.need.Out {
		return fmt.Errorf("%w: out: expected %d bytes, got %d", request.ErrValue, f.need.Out, bytes)
	}
	words := p.words(g, c.NumSeeds)
	copy(f.space.words()[ReportHeader:], words[:])
	s, shape, meeting := SpaceOf[contextSpace](f.space), p.shape(f, k), f.space.meeting.Address
	args := contextArgs{
		Seeds: c.Seeds, Out: out, Report: f.Report(), Arrived: meeting, BadSeed: meeting + BadSeedAt,
		NumSeeds: uint64(c.NumSeeds), Places: uint64(p.Places()), Budget: uint64(p.Budget), Width: uint64(p.Width),
		NodesAt: uint64(words[batch.ContextNodes]), TypesAt: uint64(words[batch.ContextTypes]), HopsAt: uint64(words[batch.ContextHops]),
		ParentsAt: uint64(words[batch.ContextParents]), MaskAt: uint64(words[batch.ContextMask]),
		CellsAt: uint64(words[batch.ContextCells]), LengthsAt: uint64(words[batch.ContextLengths]),
		Lists: shape.lists, Groups: shape.groups, Types: uint32(len(g.schema.NodeTypes)), MostTimed: uint32(shape.mostTimed),
		TableBits: uint32(shape.tableBits), SeedBits: uint32(c.SeedBits),
	}
	if t := p.Times; t != nil {
		args.Before, args.FloatTimes, args.Windowed = Word(t.Before), Word(t.Float), Word(!math.IsInf(t.Window, 1))
		args.Window = t.Window
	}
	at := s.work.Address
	for _, part := range []struct {
		to    *gpu.Address
		bytes uint64
	}{
		{&args.ListKeys, 8 * shape.lists}, {&args.ListAt, 8 * shape.lists}, {&args.ListLeft, 8 * shape.lists},
		{&args.GroupKeys, 8 * shape.groups}, {&args.GroupLists, 4 * shape.groups}, {&args.Tables, uint64(4) << shape.tableBits},
	} {
		*part.to = at
		at += gpu.Address(shape.warps * part.bytes)
	}
	p.stage(f, &args)
	if err := f.stream.Upload(s.tables.Address, s.staged.Pointer, p.tableBytes(g, c.NumSeeds)); err != nil {
		return err
	}
	return k.of[g.Wide()].Launch(f.stream, gpu.Shape{
		Grid: [3]uint32{uint32(shape.blocks)}, Block: [3]uint32{contextThreads},
	}, &args)
}
