package cuda

import (
	"sync/atomic"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// bspArgs mirrors BspArgs in kernels/research/bsp.cu.
type bspArgs struct {
	Graph                                 cuda.RowsArgs
	Seeds, Rows, Nodes, Sums, Firsts      gpu.Address
	Ended, Repeated, BadSeed, Report      gpu.Address
	Indptr, IDs, EdgeIDs, Given, List     gpu.Address
	NumSeeds, N, Known, Edges, Base, Room uint64
	Fanout                                int64
	Hop, SeedBits, Tile, _                uint32
}

// The places of the counters of bsp.cu in Workspace.meeting, before the slots.
const (
	bspEndedAt    = 16
	bspRepeatedAt = 24
)

// bspKernels are the kernels of mode "bsp" for ids of one width.
type bspKernels struct {
	seeds, count, draw, choose, gather, check, number gpu.Kernel[bspArgs]
}

// loadBSP loads those for int32 and for int64.
func loadBSP(e *cuda.Engine) (*[2]bspKernels, error) {
	var of [2]bspKernels
	for i, suffix := range []string{"32", "64"} {
		k := &of[i]
		for name, at := range map[string]*gpu.Kernel[bspArgs]{
			"seeds": &k.seeds, "count": &k.count, "draw": &k.draw, "choose": &k.choose, "gather": &k.gather,
			"check": &k.check, "number": &k.number,
		} {
			var err error
			if *at, err = cuda.KernelOf[bspArgs](e, "bsp", "bsp_"+name+suffix, 0); err != nil {
				return nil, err
			}
		}
	}
	return &of, nil
}

// BSP is mode "bsp": a few launches for each hop.
type BSP struct{ cuda.Hops }

// bspSpace is the sums of tiles, and the words of first occurrences behind them.
type bspSpace struct{ gpu.Memory }

// Forget has nothing to do: every batch writes what it reads.
func (*bspSpace) Forget() {}

// drawing is how the rows of a hop are counted and drawn, between launches that all plans of
// this kind share. count reports how many edges there are; draw finishes their offsets.
type drawing interface {
	count(b *bspBatch, rule request.Rule) error
	draw(b *bspBatch, rule request.Rule, edges int64) error
}

// bspBatch is a batch on its way through the launches of mode "bsp", or of one like it.
type bspBatch struct {
	*cuda.Flight
	plan    *cuda.Hops
	room    cuda.HopRoom
	kernels *bspKernels
	drawing drawing
	args    bspArgs

	out                   gpu.Address
	widths                batch.Widths
	used, capacity        batch.Place
	offIndex, offGiven    int64
	n, base               int64
	multiprocessors, hops int
}

// Launch makes a batch hop by hop, waiting for the device where a hop's size decides
// what comes next; the batch is complete, or has failed, when it returns.
func (p *BSP) Launch(f *cuda.Flight) error {
	kernels, err := cuda.Cached(f.Engine(), "bsp", loadBSP)
	if err != nil {
		return err
	}
	return launchHops(&p.Hops, f, kernels, bspDrawing{})
}

// launchHops is Launch of a plan of such hops that draws in such a way.
func launchHops(p *cuda.Hops, f *cuda.Flight, kernels *[2]bspKernels, d drawing) error {
	room, sums := f.HopRoom(), cuda.SpaceOf[bspSpace](f.Space())
	firstsAt, scratch := bspScratch(room)
	if err := f.Space().Grow(&sums.Memory, scratch, f.Stream()); err != nil {
		return err
	}
	rows, err := p.RowsArgs(f)
	if err != nil {
		return err
	}
	b := &bspBatch{
		Flight: f, plan: p, room: room, kernels: &kernels[f.Graph().Wide()], drawing: d, hops: len(p.Fanouts),
		multiprocessors: f.Engine().Context().Properties().Multiprocessors,
		widths:          f.Graph().Widths(),
		args: bspArgs{
			Graph: rows, Seeds: f.Call().Seeds, SeedBits: uint32(f.Call().SeedBits), NumSeeds: uint64(f.Call().NumSeeds),
			Rows: room.Rows, Nodes: room.Nodes, Sums: sums.Address, Firsts: sums.Address + gpu.Address(firstsAt),
			Ended: f.Meeting() + bspEndedAt, Repeated: f.Meeting() + bspRepeatedAt,
			BadSeed: f.Meeting() + cuda.BadSeedAt, Report: f.Report(),
		},
	}
	out, bytes := f.Region()
	b.out, b.capacity = out, batch.Place(bytes)
	status, detail, err := b.sample()
	if ends := status == cuda.StatusTooManyEdges || status == cuda.StatusTooSmall && f.Call().Out != 0; ends && err == nil {
		// The last hop's vertices may be being numbered yet, in a workspace and in memory of the caller's
		// that others have next. A batch that is made again comes after that in the same stream.
		err = f.Stream().Synchronize()
	}
	if err != nil {
		return err
	}
	f.ReportWords()[cuda.ReportDetail] = int64(detail)
	atomic.StoreInt64(&f.ReportWords()[cuda.ReportStatus], status)
	return nil
}

// bspScratch is where the words of first occurrences begin, behind the sums of
// tiles, and the bytes of both.
func bspScratch(room cuda.HopRoom) (firstsAt, bytes uint64) {
	rows, edges := uint64(room.RowCapacity), uint64(room.EdgeCapacity)
	firstsAt = uint64(batch.Place(8 * (max(rows/bspRowTile, edges/bspEdgeTile) + 2)).Aligned())
	return firstsAt, firstsAt + (edges/bspEdgeTile+1)*(bspEdgeTile/32*8)
}

// sample makes the batch and its header; it returns what a kernel of another mode
// would report.
func (b *bspBatch) sample() (status int64, detail uint64, err error) {
	seeds, rowCapacity := int64(b.args.NumSeeds), b.room.RowCapacity
	b.used = batch.Homogeneous(b.hops).Place()
	b.offIndex = b.used.Next(b.widths.Nodes(seeds))
	b.offGiven = b.used.Next(b.widths.Nodes(seeds))
	// With room for the first rows, too: who claims the seeds leaves to who counts those what of them is wrong.
	first := b.used
	indptr, _, _ := b.widths.Block(seeds, 0)
	if first.Next(indptr); first > b.capacity {
		return cuda.StatusTooSmall, uint64(first), nil
	}
	l := batch.Homogeneous(b.hops)
	header := make([]int64, l.Words())
	b.n, b.base = seeds, seeds
	if err := b.seeds(); err != nil {
		return 0, 0, err
	}
	distinct := b.n
	offNodes := int64(0)
	for hop := range b.hops {
		rule, block := b.plan.Rule(hop), batch.Block(header, b.hops-1-hop)
		indptr, _, _ := b.widths.Block(b.n, 0)
		offIndptr := b.used.Next(indptr)
		if b.n > rowCapacity || b.used > b.capacity {
			return cuda.StatusTooSmall, uint64(b.used), nil
		}
		edges, bad, repeated, err := b.count(hop, rule, offIndptr)
		if err == nil && bad != ^uint64(0) {
			return cuda.StatusSeedOutOfRange, bad, nil
		}
		if err == nil && repeated {
			// Only hop 0 has repeated seeds: its rows are counted again, without them.
			if err = b.renumberSeeds(); err == nil {
				edges, _, _, err = b.count(hop, rule, offIndptr)
			}
			distinct = b.n
			indptr, _, _ = b.widths.Block(b.n, 0)
			b.used = batch.Place(offIndptr + indptr)
		}
		if err != nil {
			return 0, 0, err
		}
		_, indices, edgeIDs := b.widths.Block(b.n, edges)
		offIDs, offEdgeIDs := b.used.Next(indices), b.used.Next(edgeIDs)
		if b.base+edges >= cuda.MostEdges {
			return cuda.StatusTooManyEdges, uint64(b.base + edges), nil
		}
		if b.used > b.capacity || edges > b.room.EdgeCapacity {
			return cuda.StatusTooSmall, uint64(b.used), nil
		}
		before := b.n
		if err := b.draw(rule, edges, offIDs, offEdgeIDs); err != nil {
			return 0, 0, err
		}
		room := rowCapacity
		if hop+1 == b.hops {
			offNodes = b.used.Aligned()
			room = max(0, int64(b.capacity)-offNodes) / b.widths.ID
			b.args.List = b.out + gpu.Address(offNodes)
			if err = b.number(edges, room); err == nil {
				b.used = batch.Place(offNodes + b.widths.Nodes(b.n))
			}
		} else {
			err = b.number(edges, room)
		}
		if err != nil {
			return 0, 0, err
		}
		if b.n > room {
			return cuda.StatusTooSmall, uint64(b.used), nil
		}
		block[batch.BlockNumSrc], block[batch.BlockNumDst], block[batch.BlockNumEdges] = b.n, before, edges
		block[batch.BlockIndptr], block[batch.BlockIndices], block[batch.BlockEdgeIDs] = offIndptr, offIDs, offEdgeIDs
	}
	header[batch.WordSignature] = batch.Magic
	header[batch.WordNumHops], header[batch.WordNumTypes], header[batch.WordNumRelations] = int64(b.hops), 1, 1
	header[batch.WordIDBits], header[l.EdgeIDBits(0)] = b.widths.ID*8, b.widths.EdgeID*8
	header[batch.WordNumOutput] = seeds
	header[batch.WordNodes], header[batch.WordNumNodes] = offNodes, b.n
	header[batch.WordOutputNodes], header[batch.WordOutputIndex] = offNodes, b.offIndex
	if distinct != seeds {
		header[batch.WordOutputNodes] = b.offGiven
	}
	header[batch.WordSize] = int64(b.used)
	for hop := range b.hops {
		header[l.Count(0, hop)] = batch.Block(header, b.hops-1-hop)[batch.BlockNumDst]
	}
	header[l.Count(0, b.hops)] = b.n
	copy(b.ReportWords()[cuda.ReportHeader:], header)
	return cuda.StatusOK, uint64(b.used), nil
}

// seeds claims the seeds as if they were distinct.
func (b *bspBatch) seeds() error {
	b.args.IDs, b.args.Given = b.out+gpu.Address(b.offIndex), b.out+gpu.Address(b.offGiven)
	return b.launch(b.kernels.seeds, uint64(b.n), bspThreads, 0)
}

// renumberSeeds numbers the seeds as the edges of a hop before the first.
func (b *bspBatch) renumberSeeds() error {
	index, given := b.out+gpu.Address(b.offIndex), b.out+gpu.Address(b.offGiven)
	if err := b.Stream().Copy(index, given, uint64(b.widths.Nodes(int64(b.args.NumSeeds)))); err != nil {
		return err
	}
	b.n, b.base = 0, 0
	b.args.IDs, b.args.Edges, b.args.Base = index, b.args.NumSeeds, 0
	return b.number(int64(b.args.NumSeeds), b.room.RowCapacity)
}

// count counts the edges of a hop, and says whether and where seeds are wrong or
// repeated.
func (b *bspBatch) count(hop int, rule request.Rule, offIndptr int64) (edges int64, bad uint64, repeated bool, err error) {
	b.args.Indptr = b.out + gpu.Address(offIndptr)
	b.args.N, b.args.Fanout, b.args.Hop = uint64(b.n), rule.Fanout, uint32(hop)
	if hop == 0 {
		b.args.Known = 0
	}
	if err = b.drawing.count(b, rule); err == nil {
		edges, err = b.await()
	}
	b.args.Known = uint64(b.n)
	words := b.ReportWords()
	return edges, uint64(words[bspBadSeed]), words[bspRepeated] != 0, err
}

// draw chooses and gathers the edges of the hop, and claims their vertices.
func (b *bspBatch) draw(rule request.Rule, edges, offIDs, offEdgeIDs int64) error {
	b.args.IDs, b.args.EdgeIDs = b.out+gpu.Address(offIDs), b.out+gpu.Address(offEdgeIDs)
	b.args.Edges, b.args.Base = uint64(edges), uint64(b.base)
	return b.drawing.draw(b, rule, edges)
}

// bspDrawing is that of mode "bsp" itself.
type bspDrawing struct{}

func (bspDrawing) count(b *bspBatch, _ request.Rule) error {
	return b.launch(b.kernels.count, uint64(max(b.n, 1)), bspRowTile, 0)
}

func (bspDrawing) draw(b *bspBatch, rule request.Rule, edges int64) error {
	// A hop of few rows takes smaller tiles, so that all multiprocessors get some.
	tile := uint64(bspRowTile)
	for tile > 32 && uint64(b.n) < tile*uint64(2*b.multiprocessors) {
		tile /= 2
	}
	b.args.Tile = uint32(tile)
	if fanout := rule.Fanout; fanout > 0 && fanout <= cuda.Direct && b.Graph().Edges>>32 == 0 {
		return b.launch(b.kernels.draw, uint64(b.n), tile, uint32(tile)*uint32(fanout|1)*4)
	}
	// Also for a hop without edges: choose finishes the offsets.
	if err := b.launch(b.kernels.choose, uint64(b.n), tile, 0); err != nil {
		return err
	}
	return b.launch(b.kernels.gather, uint64(edges), bspEdgeTile, 0)
}

// number numbers the vertices that the hop has found, as far as there is room, and
// moves n and base behind it.
func (b *bspBatch) number(edges, room int64) error {
	b.args.N, b.args.Room = uint64(b.n), uint64(room)
	if err := b.launch(b.kernels.check, uint64(edges), bspEdgeTile, 0); err != nil {
		return err
	}
	items := edges
	if b.args.List != 0 {
		items = max(edges, b.n, 1) // at least one block, which reports
	}
	if err := b.launch(b.kernels.number, uint64(items), bspEdgeTile, 0); err != nil {
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
	args := b.args // apart from what has pointers, which nothing of C's may reach
	return k.Launch(b.Stream(), shape, &args)
}

// await waits for the size that a kernel reports.
func (b *bspBatch) await() (int64, error) {
	word := &b.ReportWords()[bspSize]
	if err := b.AwaitWord(word); err != nil {
		return 0, err
	}
	return atomic.SwapInt64(word, 0) - 1, nil
}
