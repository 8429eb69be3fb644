package cuda

import (
	"errors"
	"fmt"
	"math"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// reservoirArgs mirrors ReservoirArgs in kernels/research/reservoir.cu.
type reservoirArgs struct {
	Hop                            bspArgs
	Order, Classes                 gpu.Address
	Threshold, High, MostHigh      uint64
	HighBlocks, LowBlocks, First   uint32
	Schedule, SnakeBelow, SlotBits uint32
}

// Reservoir is mode "reservoir": the launches of BSP, but that rows are drawn by TurboGNN's kernels. Its
// options change times alone.
type Reservoir struct {
	cuda.Hops
	// Threshold is the least degree of rows whose reservoirs are in shared memory; 0: of all rows,
	// NoRow: of none.
	Threshold uint64
	// Derived leaves the threshold to each hop: the largest degrees, as many rows as have their
	// reservoirs in the device's shared memory at a time. It takes Schedule.
	Derived bool
	// SnakeBelow is up to how many blocks, exclusively, get one row of each round; negative: as
	// many as the device runs at a time, of which none waits for another to end.
	SnakeBelow int64
	Schedule   bool // rows by their degrees; else as they are in the frontier
	Apart      bool // the parts are launches of their own, side by side in two streams
}

// NoRow is more than any degree.
const NoRow = math.MaxUint64

// reservoirKernels are those for graphs of int32 and of int64 ids.
type reservoirKernels struct {
	bsp         *[2]bspKernels
	order       gpu.Kernel[reservoirArgs]
	count, draw [2]gpu.Kernel[reservoirArgs]
	together    int // blocks of draw that a multiprocessor runs at a time
}

func loadReservoir(e *cuda.Engine) (k *reservoirKernels, err error) {
	k = new(reservoirKernels)
	if k.bsp, err = cuda.Cached(e, "bsp", loadBSP); err != nil {
		return nil, err
	}
	for i, suffix := range []string{"32", "64"} {
		if k.count[i], err = cuda.KernelOf[reservoirArgs](e, "reservoir", "reservoir_count"+suffix, 0); err != nil {
			return nil, err
		}
		if k.draw[i], err = cuda.KernelOf[reservoirArgs](e, "reservoir", "reservoir_draw"+suffix, 0); err != nil {
			return nil, err
		}
	}
	if k.together, err = k.draw[0].Occupancy(drawThreads, 0); err != nil {
		return nil, err
	}
	k.order, err = cuda.KernelOf[reservoirArgs](e, "reservoir", "reservoir_order", 0)
	return k, err
}

// Check returns an error for replacement, which a reservoir does not support, and for requests that
// no plan supports.
func (p *Reservoir) Check(g *cuda.Graph, c *cuda.Call) error {
	if p.Replace {
		return fmt.Errorf("%w: replace: expected False in mode 'reservoir', got True", request.ErrValue)
	}
	return p.Hops.Check(g, c)
}

// reservoirSpace is the order of a hop's rows, the counts of classes, and a second stream.
type reservoirSpace struct {
	order      gpu.Memory // 4 bytes for each row
	classes    gpu.Memory
	clean      bool // the counts of classes are zero
	beside     gpu.Stream
	fork, join gpu.Event
}

// Forget has the counts cleared before the next batch.
func (s *reservoirSpace) Forget() { s.clean = false }

func (s *reservoirSpace) Free(stream gpu.Stream) error {
	err := errors.Join(s.order.Free(stream), s.classes.Free(stream))
	if s.beside.Context() != nil {
		err = errors.Join(err, s.beside.Synchronize(), s.join.Close(), s.fork.Close(), s.beside.Close())
	}
	return err
}

// classBytes are those of the counts of classes, and of where they begin.
const classBytes = 2 * 4 * degreeClasses

// Fit allocates the order, and the rows and edges of a hop.
func (p *Reservoir) Fit(f *cuda.Flight) error {
	if err := p.Hops.Fit(f); err != nil {
		return err
	}
	w, s := f.Space(), cuda.SpaceOf[reservoirSpace](f.Space())
	if err := w.Grow(&s.order, 4*uint64(f.HopRoom().RowCapacity), f.Stream()); err != nil {
		return err
	}
	if err := w.Grow(&s.classes, classBytes, f.Stream()); err != nil {
		return err
	}
	if !s.clean {
		if err := f.Stream().Fill32(s.classes.Address, 0, classBytes/4); err != nil {
			return err
		}
		s.clean = true
	}
	if !p.Apart || s.beside.Context() != nil {
		return nil
	}
	return s.open(f.Engine().Context())
}

// open makes the second stream and its events, or none of them.
func (s *reservoirSpace) open(c *gpu.Context) (err error) {
	var fork, join gpu.Event
	stream, err := c.NewStream()
	if err == nil {
		if fork, err = c.NewEvent(); err == nil {
			if join, err = c.NewEvent(); err == nil {
				s.beside, s.fork, s.join = stream, fork, join
				return nil
			}
			err = errors.Join(err, fork.Close())
		}
		err = errors.Join(err, stream.Close())
	}
	return err
}

// Launch makes a batch hop by hop, as BSP does.
func (p *Reservoir) Launch(f *cuda.Flight) error {
	k, err := cuda.Cached(f.Engine(), "reservoir", loadReservoir)
	if err != nil {
		return err
	}
	return launchHops(&p.Hops, f, k.bsp, &reservoirHop{plan: p, kernels: k, wide: f.Graph().Wide()})
}

// reservoirHop counts and draws the hops of a batch.
type reservoirHop struct {
	plan    *Reservoir
	kernels *reservoirKernels
	wide    int
	args    reservoirArgs // but for what all launches of a hop share
}

// slotBytes are those of a slot in shared memory, which holds any position of a row.
func slotBytes(g *cuda.Graph) int64 {
	if g.Edges>>32 != 0 {
		return 8
	}
	return 4
}

// mostShared is how much shared memory a launch gets without asking for more. A block whose reservoirs
// take more has them in global memory.
const mostShared = 48 << 10

// sharedOf is how much of it a block's reservoirs take.
func sharedOf(rule request.Rule, g *cuda.Graph) int64 {
	return rule.Fanout * slotBytes(g) * drawThreads / 32
}

// threshold is the plan's, or NoRow for a hop without reservoirs, or with such that find no room.
func (p *Reservoir) threshold(rule request.Rule, g *cuda.Graph) uint64 {
	if rule.Fanout <= 0 || sharedOf(rule, g) > mostShared {
		return NoRow
	}
	return p.Threshold
}

// mostHigh is how many rows have their reservoirs in shared memory at a time: one each warp.
func (h *reservoirHop) mostHigh(b *bspBatch, rule request.Rule) (uint64, error) {
	blocks, err := h.kernels.draw[h.wide].Occupancy(drawThreads, int(sharedOf(rule, b.Graph())))
	return uint64(blocks * b.multiprocessors * drawThreads / 32), err
}

func (h *reservoirHop) count(b *bspBatch, rule request.Rule) error {
	p, s := h.plan, cuda.SpaceOf[reservoirSpace](b.Space())
	snake := p.SnakeBelow
	if snake < 0 {
		snake = int64(h.kernels.together * b.multiprocessors)
	}
	h.args = reservoirArgs{
		Classes: s.classes.Address, Threshold: p.threshold(rule, b.Graph()), Schedule: cuda.Word(p.Schedule),
		SnakeBelow: uint32(snake), SlotBits: uint32(8 * slotBytes(b.Graph())),
	}
	if p.Derived && h.args.Threshold != NoRow {
		var err error
		if h.args.MostHigh, err = h.mostHigh(b, rule); err != nil {
			return err
		}
		h.args.Threshold = NoRow
	}
	// Rows in one part that are drawn as they come need no order.
	if p.Schedule || h.args.Threshold != 0 && h.args.Threshold != NoRow {
		h.args.Order = s.order.Address
	}
	return h.launch(b, b.Stream(), h.kernels.count[h.wide], uint64(max(b.n, 1)), bspRowTile, bspThreads, 0)
}

// Tiles of rows that a block of draw has: large ones, but that all multiprocessors get some.
const largeTile, smallTile = 16, drawThreads / 32

func (h *reservoirHop) draw(b *bspBatch, rule request.Rule, _ int64) error {
	if b.n == 0 {
		return nil
	}
	if h.args.Order != 0 {
		if err := h.launch(b, b.Stream(), h.kernels.order, uint64(b.n), orderThreads, orderThreads, 0); err != nil {
			return err
		}
	}
	tile := uint64(largeTile)
	for tile > smallTile && uint64(b.n) < tile*uint64(2*b.multiprocessors) {
		tile /= 2
	}
	b.args.Tile = uint32(tile)
	h.args.High = uint64(b.ReportWords()[reservoirHigh])
	blocks := func(rows uint64) uint32 { return uint32((rows + tile - 1) / tile) }
	high, low := blocks(h.args.High), blocks(uint64(b.n)-h.args.High)
	h.args.HighBlocks, h.args.LowBlocks, h.args.First = high, low, 0
	shared := uint32(0)
	if high > 0 {
		shared = uint32(sharedOf(rule, b.Graph()))
	}
	draw := h.kernels.draw[h.wide]
	if !h.plan.Apart || high == 0 || low == 0 {
		return h.launch(b, b.Stream(), draw, uint64(high+low), 1, drawThreads, shared)
	}
	s := cuda.SpaceOf[reservoirSpace](b.Space())
	if err := errors.Join(s.fork.Record(b.Stream()), s.beside.Wait(s.fork)); err != nil {
		return err
	}
	if err := h.launch(b, b.Stream(), draw, uint64(high), 1, drawThreads, shared); err != nil {
		return err
	}
	h.args.First = high
	err := h.launch(b, s.beside, draw, uint64(low), 1, drawThreads, 0)
	if err = errors.Join(err, s.join.Record(s.beside), b.Stream().Wait(s.join)); err != nil {
		// Nothing else would wait for what is there.
		s.beside.Synchronize()
	}
	return err
}

// launch puts a kernel into a stream, with a block for so many of its items.
func (h *reservoirHop) launch(b *bspBatch, s gpu.Stream, k gpu.Kernel[reservoirArgs], items, each uint64, threads, shared uint32) error {
	args := h.args
	args.Hop = b.args
	shape := gpu.Shape{Grid: [3]uint32{uint32((items + each - 1) / each)}, Block: [3]uint32{threads}, Shared: shared}
	return k.Launch(s, shape, &args)
}
