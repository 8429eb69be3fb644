package cuda

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// staticStep mirrors StaticStep in kernels/static/static.cu.
type staticStep struct {
	First, NumSeeds uint64
	Random          [4]uint32
}

// staticPass is the part of a StaticState that an epoch initializes.
type staticPass struct {
	Seeds, Steps              gpu.Address
	NumSteps, Sampled, Spread uint64
}

// staticState mirrors StaticState.
type staticState struct {
	Pass              staticPass
	Launches          uint64
	Turned, Spreading uint32
	Batch             neighborBatch
}

// staticArgs mirrors StaticArgs.
type staticArgs struct {
	All   neighborArgs
	Batch gpu.Address
}

// turnArgs mirrors TurnArgs.
type turnArgs struct {
	State, Reports, Told          gpu.Address
	MapWords, OutBytes, SeedBytes uint64
	Words, Hops, First, Tags      uint32
	Batch                         neighborBatch
	Most                          [MostHops]BlockSize
}

// spreadBlock mirrors SpreadBlock.
type spreadBlock struct {
	Indptr, Indices, EdgeIDs gpu.Address
	Size                     BlockSize
}

// spreadArgs mirrors SpreadArgs.
type spreadArgs struct {
	State, Reports, Out                   gpu.Address
	OutBytes, NumNodes, NumEdges, Outputs uint64
	Nodes, OutputNodes, OutputIndex       gpu.Address
	Counts                                gpu.Address
	Words, Hops, IDBits, EdgeIDBits       uint32
	Blocks                                [MostHops]spreadBlock
}

// staticEdgesArgs mirrors StaticEdgesArgs.
type staticEdgesArgs struct {
	Indptr, Indices, NumDst, Sources, Destinations gpu.Address
	Dst, Edges                                     uint64
	IDBits, OutBits                                uint32
}

// staticKernels are the kernels of kernels/static/static.cu.
type staticKernels struct {
	sample [2][2][2]gpu.Kernel[staticArgs] // for int64 ids, for what neighbor.cu calls any, by weight
	turn   gpu.Kernel[turnArgs]
	spread gpu.Kernel[spreadArgs]
	edges  gpu.Kernel[staticEdgesArgs]
	each   int   // blocks of the sampling ones that a multiprocessor runs at a time
	direct int64 // the largest fanout whose choices find room in their shared memory
}

func loadStatic(e *Engine) (*staticKernels, error) {
	k := new(staticKernels)
	var errs []error
	static := 0
	all := make([]gpu.Function, 0, 8)
	for wide, bits := range []string{"32", "64"} {
		for weighted, way := range []string{"", "_weighted"} {
			for anything, suffix := range []string{"", "_any"} {
				f, err := KernelOf[staticArgs](e, "static", "static"+bits+way+suffix, 0)
				if err != nil {
					return nil, err
				}
				bytes, err := f.Attribute(gpu.SharedBytes)
				k.sample[wide][anything][weighted] = f
				static, errs, all = max(static, bytes), append(errs, err), append(all, f.Function)
			}
		}
	}
	k.direct = directIn(e.context.Properties().SharedPerBlockOptIn - static)
	var err error
	k.each, err = allow(all, drawBytes(k.direct))
	errs = append(errs, err)
	k.turn, err = KernelOf[turnArgs](e, "static", "static_turn", 0)
	errs = append(errs, err)
	k.spread, err = KernelOf[spreadArgs](e, "static", "static_spread", 0)
	errs = append(errs, err)
	k.edges, err = KernelOf[staticEdgesArgs](e, "static", "static_edges", 0)
	return k, errors.Join(append(errs, err)...)
}

func staticOf(e *Engine) (*staticKernels, error) { return Cached(e, "static", loadStatic) }

// BlockSize is the number of sources, destinations and edges that a block has room for.
type BlockSize struct{ Src, Dst, Edges uint64 }

// StaticPlan says which batches a Static samples, and their maximal sizes.
type StaticPlan struct {
	Plan     *Neighbors
	Seed     uint64
	Seeds    int64       // of a batch, at most
	SeedBits int         // of each, 32 or 64
	Most     []BlockSize // of each block, outermost first: what a batch may have
	Grid     int         // blocks of a launch; 0 for a good number
}

// passes is the common part of Static and StaticHetero: the slots of batches, and their reports.
type passes struct {
	engine  *Engine
	graph   *Graph
	kernels *staticKernels
	space   *Workspace
	state   buffer
	reports buffer
	out     buffer
	steps   buffer
	told    gpu.Pinned // reports for the host, a slot's behind the other
	staged  gpu.Pinned // the upload of the epoch and its steps
	words   int        // of a report
}

// StaticPass is a Static or a StaticHetero, once its epoch has begun.
type StaticPass interface {
	Sample(stream gpu.Stream) error
	Edges(x *StaticEdges, stream gpu.Stream) error
	Wait(i int64, timeout time.Duration, words []int64) (done, fits bool, err error)
	Close() error
}

// Static samples the batches of epochs over seeds one after another, by launches with the same
// arguments for all of them: a CUDA graph may capture and repeat them. See
// kernels/static/static.cu. It serves one goroutine at a time.
type Static struct {
	passes
	plan   StaticPlan
	args   staticArgs
	turns  turnArgs
	kernel gpu.Kernel[staticArgs]
	shape  gpu.Shape
}

// NewStatic allocates such batches. Their kernels are loaded and have their memory when it returns,
// so that launches can be captured.
func (e *Engine) NewStatic(g *Graph, p StaticPlan) (s *Static, err error) {
	if err := p.Plan.Check(g, &Call{}); err != nil {
		return nil, err
	}
	if p.Plan.OnlyNew || p.Plan.Disjoint {
		return nil, fmt.Errorf("%w: static: expected a sampler that draws all rows at each hop, without trees", request.ErrValue)
	}
	if len(p.Most) != len(p.Plan.Fanouts) {
		return nil, fmt.Errorf("%w: static: expected sizes of %d blocks, got %d", request.ErrValue, len(p.Plan.Fanouts), len(p.Most))
	}
	s = &Static{passes: passes{engine: e, graph: g, words: ReportHeader + p.Plan.Words()}, plan: p}
	if s.kernels, err = staticOf(e); err != nil {
		return nil, err
	}
	if s.space, err = e.borrow(g); err != nil {
		return nil, err
	}
	if err = s.begin(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// layout is the bytes of a batch that fits, and the most rows and edges of a hop.
func (p *StaticPlan) layout(g *Graph) (bytes uint64, rows, edges, ranks int64) {
	widths, place := g.Widths(), batch.Homogeneous(len(p.Most)).Place()
	place.Next(widths.Nodes(p.Seeds))
	place.Next(widths.Nodes(p.Seeds))
	ranks = p.Seeds
	for _, m := range p.Most {
		indptr, indices, ids := widths.Block(int64(m.Dst), int64(m.Edges))
		place.Next(indptr)
		place.Next(indices)
		place.Next(ids)
		rows, edges, ranks = max(rows, int64(m.Dst)), max(edges, int64(m.Edges)), ranks+int64(m.Edges)
	}
	place.Next(widths.Nodes(int64(p.Most[0].Src)))
	return uint64(place.Aligned()), rows, edges, ranks
}

// begin makes memory and the arguments of launches.
func (s *Static) begin() error {
	g, w, p := s.graph, s.space, &s.plan
	var n Needs
	n.Out, n.Rows, n.Edges, n.Ranks = p.layout(g)
	n.Rows, n.Edges = max(n.Rows, p.Seeds, 64), max(n.Edges, p.Seeds, 64)
	if n.Ranks >= MostEdges {
		return fmt.Errorf("%w: static: expected fewer than 2^31 edges in a batch, got room for %d", request.ErrOverflow, n.Ranks)
	}
	rows, err := g.rowKernels()
	if err != nil {
		return err
	}
	kind := p.Plan.kind(rows, g, &Call{}, n)
	if kind != plain {
		kind = withAll
	}
	hop := SpaceOf[hopSpace](w)
	stream := w.stream
	m, shift := &hop.narrow, n.shift()
	if kind != plain {
		m, shift = &hop.wide, 32
	}
	if err := hop.fit(w, n, stream); err != nil {
		return err
	}
	if _, err := m.tag(w, g.Nodes, shift, stream); err != nil {
		return err
	}
	if err := s.fit(uint64(unsafe.Sizeof(staticState{})), n.Out); err != nil {
		return err
	}
	k := s.kernels
	s.kernel = k.sample[g.Wide()][Word(kind != plain)][Word(g.Alias != 0)]
	// Choices of larger fanouts have their own memory, as in the usual kernels.
	limits := *rows
	limits.direct = min(limits.direct, k.direct)
	shared := s.args.All.common(&limits, g, p.Plan)
	s.args.Batch = s.state.Address + gpu.Address(unsafe.Offsetof(staticState{}.Batch))
	s.turns = turnArgs{
		State: s.state.Address, Reports: s.reports.Address, Told: s.told.Address,
		MapWords: uint64(m.nodes) * uint64(m.bits/32), OutBytes: n.Out, SeedBytes: uint64(p.SeedBits / 8),
		Words: uint32(s.words), Hops: uint32(len(p.Most)), Tags: uint32(uint64(1)<<(m.bits-m.shift) - 1),
		Batch: neighborBatch{
			Map: m.Address, Arrived: w.meeting.Address, Slots: w.meeting.Address + SlotsAt,
			Rows: hop.rows.Address, Nodes: hop.vertex.Address, Firsts: hop.firsts.Address,
			Out: s.out.Address, Report: s.reports.Address, BadSeed: w.meeting.Address + BadSeedAt,
			OutCapacity: n.Out, RowCapacity: uint64(hop.rowCapacity), EdgeCapacity: uint64(hop.edgeCapacity),
			SeedBits: uint32(p.SeedBits), Shift: uint32(m.shift),
		},
	}
	copy(s.turns.Most[:], p.Most)
	s.shape = s.beside(p.Grid, k.each, shared)
	return nil
}

// fit allocates state bytes of state and out bytes for each batch, and the reports.
func (s *passes) fit(state, out uint64) (err error) {
	w, report := s.space, uint64(s.words)*8
	if err := errors.Join(
		s.state.fit(w, state, w.stream), s.reports.fit(w, staticSlots*report, w.stream), s.out.fit(w, staticSlots*out, w.stream),
	); err != nil {
		return err
	}
	if s.told, err = s.engine.context.AllocPinned(staticSlots * report); err != nil {
		return err
	}
	clear(s.told.Bytes())
	return errors.Join(
		w.stream.Fill32(s.state.Address, 0, s.state.Size/4), w.stream.Fill32(s.reports.Address, 0, s.reports.Size/4),
		w.stream.Synchronize(),
	)
}

// beside returns a launch of blocks blocks, 0 for a good number, of which a multiprocessor runs
// some at a time.
func (s *passes) beside(grid, together, shared int) gpu.Shape {
	if processors := s.engine.context.Properties().Multiprocessors; grid <= 0 {
		// It runs beside a training step, which takes longer and wants the device: steps of 1024x(10,10)
		// took 0.331 ms with a quarter, 0.335 with half, 0.337 with all multiprocessors (H200).
		grid = max(processors/4, 1)
	} else {
		grid = min(grid, together*processors)
	}
	return gpu.Shape{Grid: [3]uint32{uint32(grid)}, Block: [3]uint32{threads}, Shared: uint32(shared), Cooperative: true}
}

// Seeds is a range of the seeds of an epoch.
type Seeds struct{ First, Count int64 }

// Begin starts an epoch over seeds on the device: batch i of it has the seeds of parts[i], and the
// batch number first + i * stride. The seeds must stay valid while batches are sampled. It waits
// for the stream, enqueues the preparation of the first batch, and must not be captured.
func (s *Static) Begin(stream gpu.Stream, seeds gpu.Address, parts []Seeds, epoch uint32, first, stride uint64) error {
	const pass = uint64(unsafe.Sizeof(staticPass{}))
	if err := s.stage(stream, pass, stepBytes(parts)); err != nil {
		return err
	}
	*(*staticPass)(s.staged.Pointer) = staticPass{Seeds: seeds, Steps: s.steps.Address, NumSteps: uint64(len(parts))}
	s.write(pass, parts, s.plan.Seed, epoch, first, stride)
	if err := s.send(stream, pass, stepBytes(parts)); err != nil {
		return err
	}
	return s.turn(stream, 1)
}

// stepBytes returns the bytes of the steps of an epoch, with the last step, which has no seeds.
func stepBytes(parts []Seeds) uint64 {
	return uint64(unsafe.Sizeof(staticStep{})) * uint64(len(parts)+1)
}

// stage waits for the stream and allocates an epoch of size bytes, followed by its steps.
func (s *passes) stage(stream gpu.Stream, pass, steps uint64) error {
	if err := stream.Synchronize(); err != nil {
		return err
	}
	if bytes := pass + steps; s.staged.Size < bytes {
		if err := s.staged.Close(); err != nil {
			return err
		}
		var err error
		if s.staged, err = s.engine.context.AllocPinned(2 * bytes); err != nil {
			return err
		}
	}
	return s.steps.fit(s.space, steps, stream)
}

// write enqueues the upload of the steps of parts, which follow an epoch of size bytes.
func (s *passes) write(pass uint64, parts []Seeds, seed uint64, epoch uint32, first, stride uint64) {
	steps := unsafe.Slice((*staticStep)(unsafe.Add(s.staged.Pointer, pass)), len(parts)+1)
	for i, part := range parts {
		random := rng.NewStream(seed, epoch, first+uint64(i)*stride, 0, 0).Words()
		steps[i] = staticStep{uint64(part.First), uint64(part.Count), random}
	}
	steps[len(parts)] = staticStep{}
}

// send starts an epoch that is staged.
func (s *passes) send(stream gpu.Stream, pass, steps uint64) error {
	for slot := range staticSlots {
		atomic.StoreInt64(&s.report(slot)[ReportStatus], 0)
	}
	return errors.Join(
		stream.Upload(s.state.Address, s.staged.Pointer, pass),
		stream.Upload(s.steps.Address, unsafe.Add(s.staged.Pointer, pass), steps),
	)
}

// turn hands a report on and prepares the next batch, or, first, only does the latter.
func (s *Static) turn(stream gpu.Stream, first uint32) error {
	args := s.turns
	args.First = first
	processors := uint32(s.engine.context.Properties().Multiprocessors)
	return s.kernels.turn.Launch(stream, gpu.Shape{Grid: [3]uint32{processors}, Block: [3]uint32{staticThreads}}, &args)
}

// Sample enqueues the next batch of the epoch; after the last batch, batches have no seeds.
func (s *Static) Sample(stream gpu.Stream) error {
	args := s.args // cgo takes no pointer into what has others
	if err := s.kernel.Launch(stream, s.shape, &args); err != nil {
		return err
	}
	return s.turn(stream, 0)
}

// Spread holds the arrays of fixed sizes that a batch is copied to, at multiples of 16 bytes.
type Spread struct {
	Nodes                    gpu.Address // Blocks[0].Size.Src
	OutputNodes, OutputIndex gpu.Address // Outputs each, at least as many as a batch has seeds
	Outputs                  uint64
	Counts                   gpu.Address // 1 + 3 * len(Blocks) integers of 64 bits
	Blocks                   []SpreadBlock
}

// SpreadBlock holds the arrays of a block and their capacities: Dst + 1, Edges and Edges.
type SpreadBlock struct {
	Indptr, Indices, EdgeIDs gpu.Address
	Size                     BlockSize
}

// Spread copies the next batch that has been sampled to arrays, which must have room for more
// sources than it may have.
func (s *Static) Spread(to *Spread, stream gpu.Stream) error {
	g := s.graph
	args := spreadArgs{
		State: s.state.Address, Reports: s.reports.Address, Out: s.out.Address, OutBytes: s.turns.OutBytes,
		NumNodes: uint64(max(g.Nodes, 1)), NumEdges: uint64(g.Edges), Outputs: to.Outputs,
		Nodes: to.Nodes, OutputNodes: to.OutputNodes, OutputIndex: to.OutputIndex, Counts: to.Counts,
		Words: uint32(s.words), Hops: uint32(len(to.Blocks)), IDBits: uint32(g.IDBits), EdgeIDBits: uint32(g.SampleBits()),
	}
	if len(to.Blocks) != len(s.plan.Most) {
		return fmt.Errorf("%w: static: expected %d blocks, got %d", request.ErrValue, len(s.plan.Most), len(to.Blocks))
	}
	if to.Outputs < uint64(s.plan.Seeds) {
		return fmt.Errorf("%w: static: expected room for %d seeds, got %d", request.ErrValue, s.plan.Seeds, to.Outputs)
	}
	most, places := to.Outputs, to.Nodes|to.OutputNodes|to.OutputIndex
	for i, b := range to.Blocks {
		places |= b.Indptr | b.Indices | b.EdgeIDs
		if m := s.plan.Most[i]; b.Size.Src <= m.Src || b.Size.Dst < m.Dst || b.Size.Edges < m.Edges {
			return fmt.Errorf("%w: static: block %d: expected room for more than %v, got %v", request.ErrValue, i, m, b.Size)
		}
		args.Blocks[i] = spreadBlock(b)
		most = max(most, b.Size.Src, b.Size.Edges)
	}
	if places%16 != 0 {
		return fmt.Errorf("%w: static: expected arrays at multiples of 16 bytes", request.ErrValue)
	}
	return s.kernels.spread.Launch(stream, gpu.Shape{
		Grid: [3]uint32{s.blocks((most + 3) / 4), uint32(len(to.Blocks) + 1)}, Block: [3]uint32{staticThreads},
	}, &args)
}

// blocks returns the blocks of a launch with one thread for each of things items, as far as the
// device runs them at a time.
func (s *passes) blocks(things uint64) uint32 {
	const together = 4
	return uint32(max(min((things+staticThreads-1)/staticThreads, together*uint64(s.engine.context.Properties().Multiprocessors)), 1))
}

// StaticEdges is a block whose edges are written as a list, as integers of Bits.
type StaticEdges struct {
	Block                 SpreadBlock
	NumDst                gpu.Address // in Spread's Counts
	Sources, Destinations gpu.Address // Sources may be 0
	Bits                  int
}

// Edges writes the edges of a block as a list, with its padding.
func (s *passes) Edges(x *StaticEdges, stream gpu.Stream) error {
	return s.kernels.edges.Launch(stream, gpu.Shape{
		Grid: [3]uint32{s.blocks(x.Block.Size.Edges)}, Block: [3]uint32{staticThreads},
	}, &staticEdgesArgs{
		Indptr: x.Block.Indptr, Indices: x.Block.Indices, NumDst: x.NumDst, Sources: x.Sources, Destinations: x.Destinations,
		Dst: x.Block.Size.Dst, Edges: x.Block.Size.Edges, IDBits: uint32(s.graph.IDBits), OutBits: uint32(x.Bits),
	})
}

// report returns the host's report of the batch of a slot.
func (s *passes) report(slot int) []int64 {
	return unsafe.Slice((*int64)(s.told.Pointer), staticSlots*s.words)[slot*s.words:][:s.words]
}

// Wait waits up to timeout for batch i of the epoch to be sampled, once for each batch: it copies
// the words that describe it. fits is false if it is too large.
func (s *passes) Wait(i int64, timeout time.Duration, words []int64) (done, fits bool, err error) {
	report := s.report(int(i % staticSlots))
	if !gpu.Await(&report[ReportStatus], spinFor, timeout) {
		// A launch that has failed never reports; the stream is not known here, any will tell.
		_, err := s.space.stream.Done()
		return false, false, err
	}
	status := report[ReportStatus]
	if got := report[ReportDetail]; got != i {
		return false, false, fmt.Errorf("static: expected the report of batch %d, got that of %d: a fault of pygsampler", i, got)
	}
	copy(words, report[ReportHeader:])
	atomic.StoreInt64(&report[ReportStatus], 0)
	switch status {
	case StatusOK:
		return true, true, nil
	case StatusTooSmall, statusRanksFull, StatusTooManyEdges:
		return true, false, nil
	}
	s.space.dirty = true
	return true, false, fmt.Errorf("a kernel reported status %d: a fault of pygsampler", status)
}

// Close releases the memory after the device has completed its work. A CUDA graph that holds
// launches of it must not be launched again.
func (s *passes) Close() error {
	err := s.engine.context.Synchronize()
	w := s.space
	for _, b := range []*buffer{&s.state, &s.reports, &s.out, &s.steps} {
		err = errors.Join(err, b.Free(w.stream))
	}
	// The tags were counted on the device, and the seeds of types were written there.
	SpaceOf[hopSpace](w).Forget()
	SpaceOf[heteroSpace](w).Forget()
	s.engine.giveBack(w)
	return errors.Join(err, s.told.Close(), s.staged.Close())
}

// Seeds returns the maximal number of seeds of a batch.
func (s *Static) Seeds() int64 { return s.plan.Seeds }

// EdgeBits returns the width of the edge ids.
func (s *Static) EdgeBits() int { return s.graph.SampleBits() }
