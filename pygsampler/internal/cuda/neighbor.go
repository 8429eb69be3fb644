package cuda

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// Constants of neighbor.cuh.
const (
	threads   = 512
	mostHops  = 16
	direct    = 32
	binRoom   = 4096
	binTable  = 8192
	leastBins = 512 // one for every block of a launch
	mostBins  = 16384
	fillStep  = 16
)

// neighborArgs mirrors Args in kernels/neighbor.cuh.
type neighborArgs struct {
	Indptr, Indices, EdgeIDs, Seeds                      gpu.Address
	Excluded, Map, Arrived, Slots, Rows, Nodes, Firsts   gpu.Address
	Pairs, Fills, Answers, Out, Report, BadSeed          gpu.Address
	OutCapacity, RowCapacity, EdgeCapacity, PairCapacity uint64
	BinFrom, KnownFrom                                   uint64
	NumRows, NumNodes, NumEdges, NumSeeds                uint64
	NumExcluded                                          uint64
	IndptrBits, EdgeIDBits, OutEdgeBits, SeedBits        uint32
	Hops, Replace, Tag, Key0, Key1, Batch0, Batch1       uint32
	Direct                                               uint32
	Fanouts                                              [mostHops]int64
}

// drawBytes is the dynamic shared memory for choices of a fanout: a row's words are
// an odd number, against bank conflicts. A bin's table takes tableBytes.
func drawBytes(fanout int64) int { return threads * int(fanout|1) * 4 }

const tableBytes = 2 * 4 * binTable

// The kernels of neighbor.cu: what most batches need; any fanout, and exclusions;
// and what most need, with bins.
const (
	plain = iota
	withAll
	withBins
)

// Hops of so many edges are binned where the map is so large that caches do not
// hold it.
const (
	binFromEdges = 1 << 18
	binFromBytes = 256 << 20
)

// From so many edges on a hop looks for vertices that have numbers before it claims,
// where half of all vertices have.
const knownFromEdges = 1 << 21

// loadPersistent loads the kernels and sees what the device's shared memory allows.
func (e *Engine) loadPersistent() (err error) {
	for i, suffix := range []string{"", "_any", "_bins"} {
		for j, bits := range []string{"32", "64"} {
			if e.persistent[i][j], err = kernelOf[neighborArgs](e, "neighbor", "neighbor"+bits+suffix, 0); err != nil {
				return err
			}
		}
	}
	static, err := e.persistent[plain][0].Attribute(gpu.SharedBytes)
	if err != nil {
		return err
	}
	room := e.context.Properties().SharedPerBlockOptIn - static
	for e.direct = direct; drawBytes(e.direct) > room; e.direct-- {
	}
	e.bins = tableBytes <= room
	most := max(drawBytes(e.direct), tableBytes)
	if !e.bins {
		most = drawBytes(e.direct)
	}
	for i := range e.persistent {
		for j := range e.persistent[i] {
			if err := e.persistent[i][j].AllowShared(most); err != nil {
				return err
			}
		}
	}
	e.together, err = e.persistent[withBins][1].Occupancy(threads, most)
	return err
}

// launchPersistent is all hops in one cooperative launch.
func (e *Engine) launchPersistent(f *Flight) error {
	c, g, w := &f.call, f.graph, f.space
	kind, wide := e.kind(g, c), 0
	if g.IDBits == 64 {
		wide = 1
	}
	if kind == plain {
		binned, err := w.fitBins(g, f)
		if err != nil {
			return err
		}
		if binned {
			kind = withBins
		}
	}
	out, bytes := f.region()
	args := neighborArgs{
		Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, Seeds: c.Seeds, Excluded: w.excluded.Address,
		Map: w.vertices.Address, Arrived: w.meeting.Address, Slots: w.meeting.Address + slotsAt,
		Rows: w.rows.Address, Nodes: w.vertex.Address, Firsts: w.firsts.Address,
		Pairs: w.bins.pairs.Address, Fills: w.bins.fills.Address, Answers: w.bins.answers.Address,
		Out: out, Report: w.report.Address, BadSeed: w.meeting.Address + badSeedAt,
		OutCapacity: bytes, RowCapacity: uint64(w.rowCapacity), EdgeCapacity: uint64(w.edgeCapacity),
		PairCapacity: w.bins.capacity, BinFrom: ^uint64(0), KnownFrom: e.knownEdges,
		NumRows: uint64(g.Rows), NumNodes: uint64(g.Nodes), NumEdges: uint64(g.Edges),
		NumSeeds: uint64(c.NumSeeds), NumExcluded: uint64(len(c.Exclude)),
		IndptrBits: uint32(g.IndptrBits), EdgeIDBits: uint32(g.EdgeIDBits), OutEdgeBits: uint32(g.sampleBits()),
		SeedBits: uint32(c.SeedBits), Hops: uint32(len(c.Request.Fanouts)), Tag: w.tag(),
	}
	args.Direct = uint32(e.direct)
	if g.EdgeIDs == 0 {
		args.EdgeIDBits = 0
	}
	r := &c.Request
	args.Key0, args.Key1 = uint32(r.Seed), uint32(r.Seed>>32)
	args.Batch0, args.Batch1 = uint32(r.Batch), uint32(r.Batch>>32)&0xFF|r.Epoch<<8
	if r.Replace {
		args.Replace = 1
	}
	shared := 0
	for i, fanout := range r.Fanouts {
		args.Fanouts[i] = fanout
		if fanout <= e.direct {
			shared = max(shared, drawBytes(fanout))
		}
	}
	if kind == withBins {
		args.BinFrom = e.binEdges
		shared = max(shared, tableBytes)
	}
	shape := gpu.Shape{
		Grid: [3]uint32{uint32(e.grid(f))}, Block: [3]uint32{threads}, Shared: uint32(max(shared, 0)), Cooperative: true,
	}
	return e.persistent[kind][wide].Launch(f.stream, shape, &args)
}

// kind is the kernel that a call needs.
func (e *Engine) kind(g *Graph, c *Call) int {
	if len(c.Exclude) > 0 || g.Edges >= 1<<32 {
		return withAll
	}
	for _, fanout := range c.Request.Fanouts {
		if fanout < 1 || fanout > e.direct {
			return withAll
		}
	}
	return plain
}

// tag is the launch's own; take cleared the map where they had run out.
func (w *workspace) tag() uint32 {
	tag := w.nextTag
	w.nextTag--
	return tag
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
	return n * min(2, e.together)
}

// How many edges the largest hop of a batch has that is bound by exchanges, and of
// one that is bound by memory.
const (
	smallHop = 150_000
	largeHop = 1_000_000
)

// fitBins makes room for bins where they pay.
func (w *workspace) fitBins(g *Graph, f *Flight) (bool, error) {
	if !w.engine.bins || f.need.noBins || g.Nodes >= 1<<32-1 || uint64(g.Nodes)*8 < w.engine.binBytes || uint64(f.need.edges) < w.engine.binEdges {
		return false, nil
	}
	// Of more pairs than that the kernel makes no bins.
	pairs := uint64(f.need.edges + f.need.rows)
	bins := max(uint64(1)<<bits.Len64(pairs/(binRoom*5/8)), leastBins)
	if bins > mostBins {
		return false, nil
	}
	fresh := w.bins.fills.Size == 0
	if err := w.bins.fills.fit(w, 4*fillStep*mostBins, f.stream); err != nil {
		return false, err
	}
	if fresh {
		if err := f.stream.Fill32(w.bins.fills.Address, 0, fillStep*mostBins); err != nil {
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
