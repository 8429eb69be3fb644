package cuda

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// leastBins is one bin for every block of a launch.
const leastBins = 512

// neighborBatch mirrors Batch in kernels/neighbor.cuh.
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
	Fanouts                             [mostHops]int64
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

// Hops of so many edges are binned where the map is so large that caches do not
// hold it.
const (
	binFromEdges = 1 << 18
	binFromBytes = 256 << 20
)

// From so many edges on a hop looks for vertices that have numbers before it claims,
// where half of all vertices have.
const knownFromEdges = 1 << 21

// rowKernels are the kernels of a file whose rows draw in one way: neighbor.cu
// uniformly, weighted.cu by weight.
type rowKernels struct {
	each     [kinds][2]gpu.Kernel[neighborArgs] // by what they can do, and for int32 and int64 ids
	many     [2]gpu.Kernel[manyArgs]            // of several batches
	together int                                // blocks of them that a multiprocessor runs at a time
	direct   int64                              // the largest fanout whose choices find room in shared memory
	bins     bool                               // whether a bin's table does
}

// loadRows loads the kernels of a file and sees what the device's shared memory allows.
func (e *Engine) loadRows(file string) (k *rowKernels, err error) {
	k = new(rowKernels)
	for j, bits := range []string{"32", "64"} {
		for i, suffix := range suffixes {
			if k.each[i][j], err = kernelOf[neighborArgs](e, file, file+bits+suffix, 0); err != nil {
				return nil, err
			}
		}
		if k.many[j], err = kernelOf[manyArgs](e, file, file+bits+"_many", 0); err != nil {
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
	for k.direct = direct; drawBytes(k.direct) > room; k.direct-- {
	}
	k.bins = tableBytes <= room
	most := max(drawBytes(k.direct), tableBytes)
	if !k.bins {
		most = drawBytes(k.direct)
	}
	k.together = mostBlocks
	for j := range k.many {
		together := []gpu.Function{k.many[j].Function}
		for i := range k.each {
			together = append(together, k.each[i][j].Function)
		}
		for _, f := range together {
			if err := f.AllowShared(most); err != nil {
				return nil, err
			}
			blocks, err := f.Occupancy(threads, most)
			if err != nil {
				return nil, err
			}
			k.together = min(k.together, blocks)
		}
	}
	return k, nil
}

// rowsOf are the kernels for a graph: those with weights are loaded when the first graph
// that has any comes.
func (e *Engine) rowsOf(a Arrays) (*rowKernels, error) {
	if a.Alias == 0 {
		return e.uniform, nil
	}
	e.loadingRows.Lock()
	defer e.loadingRows.Unlock()
	var err error
	if e.weighted == nil {
		e.weighted, err = e.loadRows("weighted")
	}
	return e.weighted, err
}

// launchPersistent is all hops in one cooperative launch.
func (e *Engine) launchPersistent(f *Flight) error {
	c, g, w := &f.call, f.graph, f.space
	kind := e.kind(g, c, f.need)
	if kind == plain && e.binned(g, f.need) {
		binned, err := w.fitBins(f)
		if err != nil {
			return err
		}
		if binned {
			kind = withBins
		}
	}
	if kind == withTrees {
		if err := w.trees.fit(f); err != nil {
			return err
		}
	}
	batch, err := f.arguments(kind)
	if err != nil {
		return err
	}
	args := neighborArgs{
		Batch: batch, Excluded: w.excluded.Address, NumExcluded: uint64(len(c.Exclude)),
		Pairs: w.bins.pairs.Address, Fills: w.bins.fills.Address, Answers: w.bins.answers.Address,
		PairCapacity: w.bins.capacity,
	}
	shared := args.common(e, g, c)
	if kind == withTrees {
		w.trees.arguments(&args)
	}
	if kind == withBins {
		args.BinFrom = e.binEdges
		shared = max(shared, tableBytes)
	}
	shape := gpu.Shape{
		Grid: [3]uint32{uint32(e.grid(f))}, Block: [3]uint32{threads}, Shared: uint32(shared), Cooperative: true,
	}
	return g.rows.each[kind][g.wide()].Launch(f.stream, shape, &args)
}

// arguments are what is of this batch alone, for one launch of the kernel.
func (f *Flight) arguments(kind int) (neighborBatch, error) {
	c, w, random := &f.call, f.space, f.call.random()
	out, bytes := f.region()
	m, shift := &w.wide, 32
	switch kind {
	case plain:
		m, shift = &w.narrow, f.need.shift()
	case withTrees:
		m = w.trees.asMap()
	}
	tag, err := m.tag(w, f.graph.Nodes, shift, f.stream)
	return neighborBatch{
		Seeds: c.Seeds, Map: m.Address, Arrived: w.meeting.Address, Slots: w.meeting.Address + slotsAt,
		Rows: w.rows.Address, Nodes: w.vertex.Address, Firsts: w.firsts.Address,
		Out: out, Report: w.report.Address, BadSeed: w.meeting.Address + badSeedAt,
		OutCapacity: bytes, RowCapacity: uint64(w.rowCapacity), EdgeCapacity: uint64(w.edgeCapacity),
		NumSeeds: uint64(c.NumSeeds), SeedBits: uint32(c.SeedBits), Tag: tag,
		Key0: random[0], Key1: random[1], Batch0: random[2], Batch1: random[3], Shift: uint32(m.shift),
	}, err
}

// common sets what all batches of a graph with the fanouts of c have in common.
// Their choices take so much dynamic shared memory.
func (a *neighborArgs) common(e *Engine, g *Graph, c *Call) (shared int) {
	a.Indptr, a.Indices, a.EdgeIDs = g.Indptr, g.Indices, g.EdgeIDs
	a.BinFrom, a.KnownFrom = ^uint64(0), e.knownEdges
	a.NumRows, a.NumNodes, a.NumEdges = uint64(g.Rows), uint64(g.Nodes), uint64(g.Edges)
	a.IndptrBits, a.EdgeIDBits, a.OutEdgeBits = uint32(g.IndptrBits), g.edgeIDBits(), uint32(g.sampleBits())
	a.Replace, a.OnlyNew = c.replace(), word(c.Request.OnlyNew)
	a.Alias, a.Sums = g.Alias, g.Sums
	a.Hops, a.Direct = uint32(len(c.Request.Fanouts)), uint32(g.rows.direct)
	for i, fanout := range c.Request.Fanouts {
		a.Fanouts[i] = fanout
		if fanout <= g.rows.direct {
			shared = max(shared, drawBytes(fanout))
		}
	}
	return shared
}

// kind is the kernel that a call needs, which needs so much.
func (e *Engine) kind(g *Graph, c *Call, n needs) int {
	if c.Request.Disjoint {
		return withTrees
	}
	if len(c.Exclude) > 0 || g.Edges >= 1<<32 || c.Request.OnlyNew {
		return withAll
	}
	for _, fanout := range c.Request.Fanouts {
		if fanout < 1 || fanout > g.rows.direct {
			return withAll
		}
	}
	if n.shift() > mostShift {
		return withAll
	}
	return plain
}

// grid is a good number of blocks, by measurement (docs/performance.md): one for
// each multiprocessor while a batch is bound by the exchanges between them, two when
// it is bound by memory; fewer where batches in flight share the device, since then
// their exchanges hide behind one another.
func (e *Engine) grid(f *Flight) int {
	if f.call.Grid > 0 {
		return f.call.Grid
	}
	n := e.context.Properties().Multiprocessors
	several := f.call.Own && e.inFlight() > 1
	switch edges := f.need.edges; {
	case several && edges < smallHop:
		return max(n/4, 1)
	case edges < smallHop, several && edges < largeHop:
		return n
	}
	return n * min(2, f.graph.rows.together)
}

// How many edges the largest hop of a batch has that is bound by exchanges, and of
// one that is bound by memory.
const (
	smallHop = 150_000
	largeHop = 1_000_000
)

// binned says whether bins pay for a batch that needs so much.
func (e *Engine) binned(g *Graph, n needs) bool {
	return g.rows.bins && !n.noBins && g.Nodes < 1<<32-1 && uint64(g.Nodes)*8 >= e.binBytes && uint64(n.edges) >= e.binEdges
}

// fitBins makes room for bins, where the kernel makes any.
func (w *workspace) fitBins(f *Flight) (bool, error) {
	// Of more pairs than that the kernel makes no bins.
	pairs := uint64(f.need.edges + f.need.rows)
	bins := max(uint64(1)<<bits.Len64(pairs/(binRoom*5/8)), leastBins)
	if bins > mostBins {
		return false, nil
	}
	fresh := w.bins.fills.Size == 0
	if err := w.bins.fills.fit(w, 4*fillStride*mostBins, f.stream); err != nil {
		return false, err
	}
	if fresh {
		if err := f.stream.Fill32(w.bins.fills.Address, 0, fillStride*mostBins); err != nil {
			return false, err
		}
	}
	w.bins.capacity = 0
	if err := w.bins.pairs.fit(w, bins*binRoom*8, f.stream); err != nil {
		return false, err
	}
	w.bins.capacity = bins * binRoom
	return true, w.bins.answers.fit(w, uint64(w.edgeCapacity)*4, f.stream)
}
