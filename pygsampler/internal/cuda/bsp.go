package cuda

import (
	"sync"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
)

// bspArgs mirrors BspArgs in kernels/bsp.cu.
type bspArgs struct {
	Graph                                 rowsArgs
	Seeds, Rows, Nodes, Sums, Firsts      gpu.Address
	Ended, Repeated, BadSeed, Report      gpu.Address
	Indptr, IDs, EdgeIDs, Given, List     gpu.Address
	NumSeeds, N, Known, Edges, Base, Room uint64
	Fanout                                int64
	Hop, SeedBits, Tile, _                uint32
}

// Constants of bsp.cu.
const (
	bspThreads  = 256
	bspRowTile  = 256
	bspEdgeTile = 1024
)

// Where the counters of bsp.cu lie in workspace.meeting, before the slots.
const (
	bspEndedAt    = 16
	bspRepeatedAt = 24
)

// mostEdges bounds the edges of a batch: a rank and a sign share 32 bits.
const mostEdges = 1 << 31

// bspKernels are the kernels of mode "bsp" for ids of one width.
type bspKernels struct {
	seeds, count, draw, choose, gather, check, number gpu.Kernel[bspArgs]
}

// bspLoaded are those of both widths, loaded at their first use.
type bspLoaded struct {
	loading sync.Mutex
	loaded  bool
	of      [2]bspKernels // int32, int64
}

func (l *bspLoaded) get(e *Engine, bits int) (*bspKernels, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	if !l.loaded {
		for i, suffix := range []string{"32", "64"} {
			k := &l.of[i]
			for name, at := range map[string]*gpu.Kernel[bspArgs]{
				"seeds": &k.seeds, "count": &k.count, "draw": &k.draw, "choose": &k.choose, "gather": &k.gather,
				"check": &k.check, "number": &k.number,
			} {
				var err error
				if *at, err = kernelOf[bspArgs](e, "bsp", "bsp_"+name+suffix, 0); err != nil {
					return nil, err
				}
			}
		}
		l.loaded = true
	}
	return &l.of[bits/64], nil
}

// bspBatch is a batch on its way through the launches of mode "bsp".
type bspBatch struct {
	*Flight
	kernels *bspKernels
	args    bspArgs

	out                   gpu.Address
	capacity              uint64 // bytes
	used, width, idWidth  uint64 // bytes
	offIndex, offGiven    uint64
	n, base               uint64
	multiprocessors, hops int
}

// launchBSP makes a batch hop by hop, waiting for the device where a hop's size
// decides what comes next; the batch is complete, or has failed, when it returns.
func (e *Engine) launchBSP(f *Flight) error {
	hops := len(f.call.Request.Fanouts)
	if hops == 0 {
		return e.launchPersistent(f)
	}
	kernels, err := e.bsp.get(e, f.graph.IDBits)
	if err != nil {
		return err
	}
	w := f.space
	firstsAt, bytes := bspScratch(w)
	if err := w.sums.fit(w, bytes, f.stream); err != nil {
		return err
	}
	rows, err := f.rowsArgs()
	if err != nil {
		return err
	}
	b := &bspBatch{
		Flight: f, kernels: kernels, hops: hops, multiprocessors: e.context.Properties().Multiprocessors,
		width: uint64(f.graph.IDBits / 8), idWidth: uint64(f.graph.sampleBits() / 8),
		args: bspArgs{
			Graph: rows, Seeds: f.call.Seeds, SeedBits: uint32(f.call.SeedBits), NumSeeds: uint64(f.call.NumSeeds),
			Rows: w.rows.Address, Nodes: w.vertex.Address, Sums: w.sums.Address, Firsts: w.sums.Address + gpu.Address(firstsAt),
			Ended: w.meeting.Address + bspEndedAt, Repeated: w.meeting.Address + bspRepeatedAt,
			BadSeed: w.meeting.Address + badSeedAt, Report: w.report.Address,
		},
	}
	b.out, b.capacity = f.region()
	status, detail, err := b.sample()
	if err != nil {
		// A kernel that has been launched may report yet, and the counters are not as they
		// should be: the next batch begins after it, with all of it cleared.
		w.dirty = true
		f.stream.Synchronize()
		return err
	}
	w.words()[1] = int64(detail)
	atomic.StoreInt64(&w.words()[0], status)
	return nil
}

// bspScratch is where the words of first occurrences begin, behind the sums of
// tiles, and the bytes of both.
func bspScratch(w *workspace) (firstsAt, bytes uint64) {
	rows, edges := uint64(w.rowCapacity), uint64(w.edgeCapacity)
	firstsAt = align64(8 * (max(rows/bspRowTile, edges/bspEdgeTile) + 2))
	return firstsAt, firstsAt + (edges/bspEdgeTile+1)*(bspEdgeTile/32*8)
}

func align64(n uint64) uint64 { return (n + 63) &^ 63 }

// sample makes the batch and its header; it returns what a kernel of another mode
// would report.
func (b *bspBatch) sample() (status int64, detail uint64, err error) {
	fanouts := b.call.Request.Fanouts
	b.used = uint64(batch.HeaderWords+batch.BlockWords*b.hops) * 8
	b.offIndex = b.place(b.args.NumSeeds * b.width)
	b.offGiven = b.place(b.args.NumSeeds * b.width)
	if b.used > b.capacity {
		return statusTooSmall, b.used, nil
	}
	var header [batch.HeaderWords + batch.BlockWords*mostHops]int64
	b.n, b.base = b.args.NumSeeds, b.args.NumSeeds
	if err := b.seeds(); err != nil {
		return 0, 0, err
	}
	distinct := b.n
	offNodes := uint64(0)
	for hop := range b.hops {
		fanout := fanouts[b.hops-1-hop]
		offIndptr := b.place((b.n + 1) * b.width)
		if b.n > uint64(b.space.rowCapacity) || b.used > b.capacity {
			return statusTooSmall, b.used, nil
		}
		edges, bad, repeated, err := b.count(hop, fanout, offIndptr)
		if err == nil && bad != ^uint64(0) {
			return statusSeedOutOfRange, bad, nil
		}
		if err == nil && repeated {
			// Of hop 0 alone: its rows are counted again, without the repeated seeds.
			if err = b.renumberSeeds(); err == nil {
				edges, _, _, err = b.count(hop, fanout, offIndptr)
			}
			distinct = b.n
			b.used = offIndptr + (b.n+1)*b.width
		}
		if err != nil {
			return 0, 0, err
		}
		offIDs := b.place(edges * b.width)
		offEdgeIDs := b.place(edges * b.idWidth)
		if b.base+edges >= mostEdges {
			return statusTooManyEdges, b.base + edges, nil
		}
		if b.used > b.capacity || edges > uint64(b.space.edgeCapacity) {
			return statusTooSmall, b.used, nil
		}
		before := b.n
		if err := b.draw(fanout, edges, offIDs, offEdgeIDs); err != nil {
			return 0, 0, err
		}
		room := uint64(b.space.rowCapacity)
		if hop+1 == b.hops {
			offNodes = align64(b.used)
			room = 0
			if offNodes < b.capacity {
				room = (b.capacity - offNodes) / b.width
			}
			b.args.List = b.out + gpu.Address(offNodes)
			if err = b.number(edges, room); err == nil {
				b.used = offNodes + b.n*b.width
			}
		} else {
			err = b.number(edges, room)
		}
		if err != nil {
			return 0, 0, err
		}
		if b.n > room {
			return statusTooSmall, b.used, nil
		}
		copy(header[batch.HeaderWords+batch.BlockWords*(b.hops-1-hop):], []int64{
			int64(b.n), int64(before), int64(edges), int64(offIndptr), int64(offIDs), int64(offEdgeIDs),
		})
	}
	header[batch.WordMagic] = batch.Magic
	header[batch.WordIDBits], header[batch.WordEdgeIDBits] = int64(b.width*8), int64(b.idWidth*8)
	header[batch.WordNumHops], header[batch.WordNumOutput] = int64(b.hops), int64(b.args.NumSeeds)
	header[batch.WordOffNodes], header[batch.WordNumNodes] = int64(offNodes), int64(b.n)
	header[batch.WordOffOutputNodes], header[batch.WordOffOutputIndex] = int64(offNodes), int64(b.offIndex)
	if distinct != b.args.NumSeeds {
		header[batch.WordOffOutputNodes] = int64(b.offGiven)
	}
	header[batch.WordBytes] = int64(b.used)
	copy(b.space.words()[2:], header[:batch.HeaderWords+batch.BlockWords*b.hops])
	return statusOK, b.used, nil
}

// place is where the next array of the batch begins.
func (b *bspBatch) place(bytes uint64) uint64 {
	offset := align64(b.used)
	b.used = offset + bytes
	return offset
}

// seeds claims the seeds as if they were distinct.
func (b *bspBatch) seeds() error {
	b.args.IDs, b.args.Given = b.out+gpu.Address(b.offIndex), b.out+gpu.Address(b.offGiven)
	return b.launch(b.kernels.seeds, b.n, bspThreads, 0)
}

// renumberSeeds numbers the seeds as the edges of a hop before the first.
func (b *bspBatch) renumberSeeds() error {
	index, given := b.out+gpu.Address(b.offIndex), b.out+gpu.Address(b.offGiven)
	if err := b.stream.Copy(index, given, b.args.NumSeeds*b.width); err != nil {
		return err
	}
	b.n, b.base = 0, 0
	b.args.IDs, b.args.Edges, b.args.Base = index, b.args.NumSeeds, 0
	return b.number(b.args.NumSeeds, uint64(b.space.rowCapacity))
}

// count counts the edges of a hop, and says whether and where seeds are wrong or
// repeated.
func (b *bspBatch) count(hop int, fanout int64, offIndptr uint64) (edges, bad uint64, repeated bool, err error) {
	b.args.Indptr = b.out + gpu.Address(offIndptr)
	b.args.N, b.args.Fanout, b.args.Hop = b.n, fanout, uint32(hop)
	if hop == 0 {
		b.args.Known = 0
	}
	if err = b.launch(b.kernels.count, max(b.n, 1), bspRowTile, 0); err == nil {
		edges, err = b.await()
	}
	b.args.Known = b.n
	words := b.space.words()
	return edges, uint64(words[2]), words[3] != 0, err
}

// draw chooses and gathers the edges of the hop, and claims their vertices.
func (b *bspBatch) draw(fanout int64, edges, offIDs, offEdgeIDs uint64) error {
	b.args.IDs, b.args.EdgeIDs = b.out+gpu.Address(offIDs), b.out+gpu.Address(offEdgeIDs)
	b.args.Edges, b.args.Base = edges, b.base
	// A hop of few rows takes smaller tiles, so that all multiprocessors get some.
	tile := uint64(bspRowTile)
	for tile > 32 && b.n < tile*uint64(2*b.multiprocessors) {
		tile /= 2
	}
	b.args.Tile = uint32(tile)
	if fanout > 0 && fanout <= rowsDirect && b.graph.Edges>>32 == 0 {
		return b.launch(b.kernels.draw, b.n, tile, uint32(tile)*uint32(fanout|1)*4)
	}
	// Also for a hop without edges: choose finishes the offsets.
	if err := b.launch(b.kernels.choose, b.n, tile, 0); err != nil {
		return err
	}
	return b.launch(b.kernels.gather, edges, bspEdgeTile, 0)
}

// number numbers the vertices that the hop has found, as far as there is room, and
// moves n and base behind it.
func (b *bspBatch) number(edges, room uint64) error {
	b.args.N, b.args.Room = b.n, room
	if err := b.launch(b.kernels.check, edges, bspEdgeTile, 0); err != nil {
		return err
	}
	items := edges
	if b.args.List != 0 {
		items = max(edges, b.n, 1) // at least one block, which reports
	}
	if err := b.launch(b.kernels.number, items, bspEdgeTile, 0); err != nil {
		return err
	}
	b.base += edges
	if items == 0 {
		return nil
	}
	found, err := b.await()
	b.n += found
	return err
}

// launch puts a kernel into the stream, with a block for so many of its items.
func (b *bspBatch) launch(k gpu.Kernel[bspArgs], items, each uint64, shared uint32) error {
	if items == 0 {
		return nil
	}
	shape := gpu.Shape{Grid: [3]uint32{uint32((items + each - 1) / each)}, Block: [3]uint32{bspThreads}, Shared: shared}
	return k.Launch(b.stream, shape, &b.args)
}

// await waits for the size that a kernel reports.
func (b *bspBatch) await() (uint64, error) {
	word := &b.space.words()[0]
	for !gpu.Await(word, spinFor, askEvery) {
		if err := b.lost(); err != nil {
			return 0, err
		}
	}
	return uint64(atomic.SwapInt64(word, 0) - 1), nil
}
