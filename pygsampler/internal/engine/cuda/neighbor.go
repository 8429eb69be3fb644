package cuda

import (
	"errors"
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// leastBins is one bin for every block of a launch.
const leastBins = 512

// neighborBatch mirrors Batch in kernels/neighbor/neighbor.cuh.
type neighborBatch struct {
	Seeds, Map, Arrived, Slots, Rows, Nodes, Firsts gpu.Address
	Out, Report, BadSeed                            gpu.Address
	OutCapacity, RowCapacity, EdgeCapacity          uint64
	NumSeeds                                        uint64
	SeedBits, Tag, Key0, Key1, Batch0, Batch1       uint32
	Shift, _                                        uint32
}

// neighborArgs mirrors Args.
type neighborArgs struct {
	Batch                               neighborBatch
	Indptr, Indices, EdgeIDs, Excluded  gpu.Address
	Pairs, Fills, Answers, Keys, Trees  gpu.Address
	PairCapacity, BinFrom, KnownFrom    uint64
	NumRows, NumNodes, NumEdges         uint64
	NumExcluded                         uint64
	IndptrBits, EdgeIDBits, OutEdgeBits uint32
	Hops, Replace, Direct               uint32
	OnlyNew, TableBits, TreeShift       uint32
	Fanouts                             [MostHops]int64
	Alias, Sums                         gpu.Address
}

// drawBytes is the dynamic shared memory for choices of a fanout: a row's words are
// an odd number, against bank conflicts. A bin's table takes tableBytes.
func drawBytes(fanout int64) int { return threads * int(fanout|1) * 4 }

const tableBytes = 2 * 4 * binTable

// The kernels of a file, as neighbor.cuh's Kind: what most batches need; that with bins;
// any fanout, exclusions, rows drawn once; and that with disjoint trees.
const (
	plain = iota
	withBins
	withAll
	withTrees
	kinds
)

var suffixes = [kinds]string{"", "_bins", "_any", "_trees"}

// Hops of at least this many edges are binned if the map exceeds the caches.
const (
	binFromEdges = 1 << 18
	binFromBytes = 256 << 20
)

// From this number of edges on a hop looks up numbered nodes before it claims, if half of all nodes
// have numbers.
const knownFromEdges = 1 << 21

// rowKernels are the kernels of a file whose rows draw in one way: neighbor.cu
// uniformly, weighted.cu by weight.
type rowKernels struct {
	each     [kinds][2]gpu.Kernel[neighborArgs] // by what they can do, and for int32 and int64 ids
	many     [2]gpu.Kernel[manyArgs]            // of several batches
	together int                                // blocks of them that a multiprocessor runs at a time
	direct   int64                              // the largest fanout whose choices find room in shared memory
	bins     bool                               // whether a bin's table does
	// From how many edges on a hop is binned, and from how many bytes of the map on; and
	// from how many edges on it looks for nodes that have numbers.
	binEdges, binBytes, knownEdges uint64
}

// loadRows loads the kernels of a file and sees what the device's shared memory allows.
func (e *Engine) loadRows(file string) (k *rowKernels, err error) {
	k = &rowKernels{binEdges: binFromEdges, binBytes: binFromBytes, knownEdges: knownFromEdges}
	for j, bits := range []string{"32", "64"} {
		for i, suffix := range suffixes {
			if k.each[i][j], err = KernelOf[neighborArgs](e, file, file+bits+suffix, 0); err != nil {
				return nil, err
			}
		}
		if k.many[j], err = KernelOf[manyArgs](e, file, file+bits+"_many", 0); err != nil {
			return nil, err
		}
	}
	static := 0
	for i := range k.each {
		bytes, err := k.each[i][0].Attribute(gpu.SharedBytes)
		if err != nil {
			return nil, err
		}
		static = max(static, bytes)
	}
	room := e.context.Properties().SharedPerBlockOptIn - static
	k.direct = directIn(room)
	k.bins = tableBytes <= room
	most := max(drawBytes(k.direct), tableBytes)
	if !k.bins {
		most = drawBytes(k.direct)
	}
	var all []gpu.Function
	for j := range k.many {
		all = append(all, k.many[j].Function)
		for i := range k.each {
			all = append(all, k.each[i][j].Function)
		}
	}
	k.together, err = allow(all, most)
	return k, err
}

// directIn is the largest fanout whose choices find room in so much shared memory.
func directIn(room int) int64 {
	fanout := int64(Direct)
	for drawBytes(fanout) > room {
		fanout--
	}
	return fanout
}

// allow lets kernels use up to shared bytes of dynamic shared memory, and returns the number of
// blocks of any of them that a multiprocessor then runs at a time.
func allow(kernels []gpu.Function, shared int) (together int, err error) {
	together = MostBlocks
	for _, f := range kernels {
		if err := f.AllowShared(shared); err != nil {
			return 0, err
		}
		blocks, err := f.Occupancy(threads, shared)
		if err != nil {
			return 0, err
		}
		together = min(together, blocks)
	}
	return together, nil
}

// rowKernels loads the kernels that a graph's rows need, those with weights when the first graph
// that has any comes.
func (g *Graph) rowKernels() (*rowKernels, error) {
	file := "neighbor"
	if g.Alias != 0 {
		file = "weighted"
	}
	return Cached(g.engine, file, func(e *Engine) (*rowKernels, error) { return e.loadRows(file) })
}

// Load loads the kernels of most batches onto the device, so that a defect of them is an error of
// the graph, and the first batch need not wait for them.
func (g *Graph) Load() error {
	_, err := g.rowKernels()
	return err
}

// Neighbors is the plan of the persistent kernel: all hops of one batch, or of several, in one
// launch.
type Neighbors struct{ Hops }

// binSpace is the working memory of a binned hop.
type binSpace struct {
	pairs, fills, answers buffer
	capacity              uint64 // pairs
}

// Forget does nothing, since every launch begins with empty bins.
func (*binSpace) Forget() {}

func (s *binSpace) Free(stream gpu.Stream) error {
	return errors.Join(s.pairs.Free(stream), s.fills.Free(stream), s.answers.Free(stream))
}

// Arrived repeats the batch without bins, or with room for more ranks.
func (p *Neighbors) Arrived(f *Flight, status, detail int64) (again bool, err error) {
	switch status {
	case statusBinsFull:
		f.noted(Needs{NoBins: true})
	case statusRanksFull:
		f.noted(Needs{Ranks: detail})
	default:
		return p.Hops.Arrived(f, status, detail)
	}
	return true, nil
}

// Launch enqueues all hops in one cooperative launch.
func (p *Neighbors) Launch(f *Flight) error { return p.launch(f, (*Flight).Report) }

// launch implements Launch with a report at the address that report returns.
func (p *Neighbors) launch(f *Flight, report func(*Flight) gpu.Address) error {
	c, g, w := &f.call, f.graph, f.space
	k, err := g.rowKernels()
	if err != nil {
		return err
	}
	bins, trees := SpaceOf[binSpace](w), SpaceOf[disjointSpace](w)
	kind := p.kind(k, g, c, f.need)
	if kind == plain && k.binned(g, f.need) {
		binned, err := bins.fit(f)
		if err != nil {
			return err
		}
		if binned {
			kind = withBins
		}
	}
	if kind == withTrees {
		if err := trees.fit(f, len(p.Fanouts)); err != nil {
			return err
		}
	}
	batch, err := f.arguments(kind, report(f))
	if err != nil {
		return err
	}
	args := neighborArgs{
		Batch: batch, Excluded: w.excluded.Address, NumExcluded: uint64(len(c.Exclude)),
		Pairs: bins.pairs.Address, Fills: bins.fills.Address, Answers: bins.answers.Address,
		PairCapacity: bins.capacity,
	}
	shared := args.common(k, g, p)
	if kind == withTrees {
		trees.arguments(&args)
	}
	if kind == withBins {
		args.BinFrom = k.binEdges
		shared = max(shared, tableBytes)
	}
	shape := gpu.Shape{
		Grid: [3]uint32{uint32(f.Grid(k.together))}, Block: [3]uint32{threads}, Shared: uint32(shared), Cooperative: true,
	}
	return k.each[kind][g.Wide()].Launch(f.stream, shape, &args)
}

// arguments returns the arguments of this batch, for one launch of the kernel, with a report at the
// address that report returns.
func (f *Flight) arguments(kind int, report gpu.Address) (neighborBatch, error) {
	c, w, random := &f.call, f.space, f.call.Random()
	hop := SpaceOf[hopSpace](w)
	out, bytes := f.Region()
	m, shift := &hop.wide, 32
	switch kind {
	case plain:
		m, shift = &hop.narrow, f.need.shift()
	case withTrees:
		m = SpaceOf[disjointSpace](w).asMap()
	}
	tag, err := m.tag(w, f.graph.Nodes, shift, f.stream)
	return neighborBatch{
		Seeds: c.Seeds, Map: m.Address, Arrived: w.meeting.Address, Slots: w.meeting.Address + SlotsAt,
		Rows: hop.rows.Address, Nodes: hop.vertex.Address, Firsts: hop.firsts.Address,
		Out: out, Report: report, BadSeed: w.meeting.Address + BadSeedAt,
		OutCapacity: bytes, RowCapacity: uint64(hop.rowCapacity), EdgeCapacity: uint64(hop.edgeCapacity),
		NumSeeds: uint64(c.NumSeeds), SeedBits: uint32(c.SeedBits), Tag: tag,
		Key0: random[0], Key1: random[1], Batch0: random[2], Batch1: random[3], Shift: uint32(m.shift),
	}, err
}

// common sets what all batches of a graph and a plan have in common. Their choices take
// so much dynamic shared memory.
func (a *neighborArgs) common(k *rowKernels, g *Graph, p *Neighbors) (shared int) {
	a.Indptr, a.Indices, a.EdgeIDs = g.Indptr, g.Indices, g.EdgeIDs
	a.BinFrom, a.KnownFrom = ^uint64(0), k.knownEdges
	a.NumRows, a.NumNodes, a.NumEdges = uint64(g.Rows), uint64(g.Nodes), uint64(g.Edges)
	a.IndptrBits, a.EdgeIDBits, a.OutEdgeBits = uint32(g.IndptrBits), g.StoredEdgeIDBits(), uint32(g.SampleBits())
	a.Replace, a.OnlyNew = Word(p.Replace), Word(p.OnlyNew)
	a.Alias, a.Sums = g.Alias, g.Sums
	a.Hops, a.Direct = uint32(len(p.Fanouts)), uint32(k.direct)
	for i, fanout := range p.Fanouts {
		a.Fanouts[i] = fanout
		if fanout <= k.direct {
			shared = max(shared, drawBytes(fanout))
		}
	}
	return shared
}

// kind is the kernel that a call needs, which needs so much.
func (p *Neighbors) kind(k *rowKernels, g *Graph, c *Call, n Needs) int {
	if p.Disjoint {
		return withTrees
	}
	if len(c.Exclude) > 0 || g.Edges >= 1<<32 || p.OnlyNew {
		return withAll
	}
	for _, fanout := range p.Fanouts {
		if fanout < 1 || fanout > k.direct {
			return withAll
		}
	}
	if n.shift() > mostShift {
		return withAll
	}
	return plain
}

// Grid returns a good number of blocks, by measurement (docs/performance/gpu-bounds.md): one for each
// multiprocessor while a batch is bound by the exchanges between them, two when it is bound by
// memory; fewer if concurrent batches share the device, since their exchanges then hide behind one
// another. A multiprocessor runs together blocks at a time, of which a call may have only a share.
func (f *Flight) Grid(together int) int { return f.gridFor(together, f.need.Edges) }

// gridFor returns the grid of a launch whose largest hop reads most edges.
func (f *Flight) gridFor(together int, most int64) int {
	if f.call.Grid > 0 {
		return f.call.Grid
	}
	n := f.engine.context.Properties().Multiprocessors
	several := f.call.Own && f.engine.inFlight() > 1
	good := n * min(2, together)
	switch {
	case several && most < smallHop:
		good = max(n/4, 1)
	case most < smallHop, several && most < largeHop:
		good = n
	}
	return f.call.Within(good, n*together)
}

// The number of edges of the largest hop up to which a batch is bound by exchanges between blocks,
// and from which on it is bound by memory.
const (
	smallHop = 150_000
	largeHop = 1_000_000
)

// binned reports whether bins pay off for a batch with these needs.
func (k *rowKernels) binned(g *Graph, n Needs) bool {
	return k.bins && !n.NoBins && g.Nodes < 1<<32-1 && uint64(g.Nodes)*8 >= k.binBytes && uint64(n.Edges) >= k.binEdges
}

// fit allocates bins, if the kernel makes any.
func (s *binSpace) fit(f *Flight) (bool, error) {
	w := f.space
	// The kernel makes no bins of more pairs.
	pairs := uint64(f.need.Edges + f.need.Rows)
	bins := max(uint64(1)<<bits.Len64(pairs/(binRoom*5/8)), leastBins)
	if bins > mostBins {
		return false, nil
	}
	fresh := s.fills.Size == 0
	if err := s.fills.fit(w, 4*fillStride*mostBins, f.stream); err != nil {
		return false, err
	}
	if fresh {
		if err := f.stream.Fill32(s.fills.Address, 0, fillStride*mostBins); err != nil {
			return false, err
		}
	}
	s.capacity = 0
	if err := s.pairs.fit(w, bins*binRoom*8, f.stream); err != nil {
		return false, err
	}
	s.capacity = bins * binRoom
	return true, s.answers.fit(w, uint64(SpaceOf[hopSpace](w).edgeCapacity)*4, f.stream)
}
