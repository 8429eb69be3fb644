package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Constants of neighbor.cuh.
const (
	threads  = 512
	mostHops = 16
	direct   = 32
)

// What a launch reports.
const (
	statusOK             = 1
	statusSeedOutOfRange = 2
	statusTooSmall       = 3
	statusTooManyEdges   = 4
)

// neighborArgs mirrors Args in kernels/neighbor.cuh.
type neighborArgs struct {
	Indptr, Indices, EdgeIDs, Seeds        gpu.Address
	Map, Arrived, Slots, Rows, Firsts      gpu.Address
	Out, Report, BadSeed                   gpu.Address
	OutCapacity, RowCapacity, EdgeCapacity uint64
	NumRows, NumNodes, NumEdges            uint64
	NumSeeds, NodeBound                    uint64
	IndptrBits, EdgeIDBits, OutEdgeBits    uint32
	SeedBits, Hops, Replace, Tag           uint32
	Key0, Key1, Batch0, Batch1             uint32
	Fanouts                                [mostHops]int64
}

// sharedBytes is the dynamic shared memory that fanouts up to the given one need;
// a row's words are an odd number, against bank conflicts.
func sharedBytes(fanout int64) int { return threads * int(fanout|1) * 4 }

// Batch is a sampled batch in device memory, laid out as internal/batch says;
// Header is a copy of its words on the host. The caller owns Memory.
type Batch struct {
	Memory gpu.Memory
	Header []int64
}

// Sample makes a batch by one launch in the stream and waits for it. grid is the
// number of blocks, 0 for a good one; the batch does not depend on it. Seeds are on
// the host. A batch that outgrows its buffers is made again in larger ones.
func (e *Engine) Sample(g *Graph, r *cpu.Request, stream gpu.Stream, grid int) (Batch, error) {
	if len(r.Fanouts) > mostHops {
		return Batch{}, fmt.Errorf("%w: fanouts: expected at most %d hops on a GPU, got %d", cpu.ErrValue, mostHops, len(r.Fanouts))
	}
	w, err := e.take(g.nodes, stream)
	if err != nil {
		return Batch{}, err
	}
	defer e.put(w)
	for {
		b, again, err := e.try(g, r, w, stream, grid)
		if err == nil && again {
			continue
		}
		return b, err
	}
}

// try is one launch; again says that a buffer was too small and has been replaced.
func (e *Engine) try(g *Graph, r *cpu.Request, w *workspace, stream gpu.Stream, grid int) (b Batch, again bool, err error) {
	seedBytes := uint64(r.Seeds.Len()) * uint64(r.Seeds.Bits/8)
	if err := w.fit(r.Seeds.Len(), seedBytes, stream); err != nil {
		return b, false, err
	}
	if err := stream.Upload(w.seeds.Address, r.Seeds.Pointer(), seedBytes); err != nil {
		return b, false, err
	}
	if b.Memory, err = e.pool.Alloc(stream, w.outBytes); err != nil {
		return b, false, err
	}
	defer func() {
		if again || err != nil {
			err = errors.Join(err, b.Memory.Free(stream))
			b = Batch{}
		}
	}()
	kernel, widest := e.narrow, int64(0)
	if g.idBits == 64 {
		kernel = e.wide
	}
	args := neighborArgs{
		Indptr: g.indptr.Address, Indices: g.indices.Address, EdgeIDs: g.edgeIDs.Address, Seeds: w.seeds.Address,
		Map: w.vertices.Address, Arrived: w.meeting.Address, Slots: w.meeting.Address + slotsAt, Rows: w.rows.Address,
		Firsts: w.firsts.Address, Out: b.Memory.Address, Report: w.report.Address, BadSeed: w.meeting.Address + badSeedAt,
		OutCapacity: w.outBytes, RowCapacity: uint64(w.rowCapacity), EdgeCapacity: uint64(w.edgeCapacity),
		NumRows: uint64(g.rows), NumNodes: uint64(g.nodes), NumEdges: uint64(g.edges),
		NumSeeds: uint64(r.Seeds.Len()), NodeBound: uint64(bound(g, r)),
		IndptrBits: uint32(g.indptrBits), EdgeIDBits: uint32(g.edgeIDBits), OutEdgeBits: uint32(g.sampleBits),
		SeedBits: uint32(r.Seeds.Bits), Hops: uint32(len(r.Fanouts)), Tag: w.nextTag,
		Key0: uint32(r.Seed), Key1: uint32(r.Seed >> 32), Batch0: uint32(r.Batch), Batch1: uint32(r.Batch>>32)&0xFF | r.Epoch<<8,
	}
	if r.Replace {
		args.Replace = 1
	}
	for i, fanout := range r.Fanouts {
		args.Fanouts[i] = fanout
		if fanout <= direct {
			widest = max(widest, fanout)
		}
	}
	w.nextTag--
	if grid == 0 {
		grid = e.grid(r)
	}
	report := w.reportWords()
	report[0] = 0
	shape := gpu.Shape{
		Grid: [3]uint32{uint32(grid)}, Block: [3]uint32{threads}, Shared: uint32(sharedBytes(widest)), Cooperative: true,
	}
	if err := kernel.Launch(stream, shape, &args); err != nil {
		return b, false, err
	}
	if err := stream.Synchronize(); err != nil {
		return b, false, err
	}
	switch report[0] {
	case statusOK:
		b.Header = append(b.Header, report[2:2+batch.HeaderWords+batch.BlockWords*len(r.Fanouts)]...)
		return b, false, nil
	case statusTooSmall:
		return b, true, w.grow(uint64(report[1]), stream)
	case statusSeedOutOfRange:
		at := report[1]
		err = fmt.Errorf("%w: seeds[%d]: expected an id in [0, %d), got %d", cpu.ErrIndex, at, g.nodes, r.Seeds.At(at))
		return b, false, errors.Join(err, w.forgetBadSeed(stream))
	case statusTooManyEdges:
		return b, false, fmt.Errorf("%w: a batch of %d edges: expected fewer than 2^31 on a GPU", cpu.ErrOverflow, report[1])
	}
	return b, false, fmt.Errorf("pygsampler: the kernel ended without a result (status %d)", report[0])
}

// grid is a good number of blocks: one for each multiprocessor while a batch is
// bound by the exchanges between them, two when it is bound by memory.
func (e *Engine) grid(r *cpu.Request) int {
	n := e.context.Properties().Multiprocessors
	if r.Expected() > 1<<18 {
		n *= 2
	}
	return n
}

// bound is the most distinct vertices that a batch can hold.
func bound(g *Graph, r *cpu.Request) int64 {
	most := float64(r.Seeds.Len())
	for _, fanout := range r.Fanouts {
		if fanout < 0 {
			return g.nodes
		}
		most *= float64(1 + fanout)
	}
	return int64(min(most, float64(g.nodes)))
}

// Download copies a batch to host memory that C owns, laid out as on the device
// but for the header, which the device does not hold.
func (b Batch) Download(stream gpu.Stream) (memory.Memory, error) {
	size := b.Header[batch.WordBytes]
	m, err := memory.New(size)
	if err != nil {
		return m, err
	}
	m.SetSize(size)
	if err := stream.Download(m.Data(), b.Memory.Address, uint64(size)); err != nil {
		m.Release()
		return memory.Memory{}, err
	}
	copy(unsafe.Slice((*int64)(m.Data()), len(b.Header)), b.Header)
	return m, nil
}
