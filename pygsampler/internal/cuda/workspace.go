package cuda

import (
	"errors"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
)

// workspace is the device memory beside graph and output that a batch in flight
// needs. It is kept between batches and only ever grows.
type workspace struct {
	engine   *Engine
	nodes    int64
	vertices gpu.Memory // the map: a word for every vertex
	meeting  gpu.Memory // the barrier's counter, the lowest bad seed, the slots
	rows     gpu.Memory // 16 bytes for each row of a hop
	firsts   gpu.Memory // a bit for each edge of a hop
	seeds    gpu.Memory
	report   gpu.Pinned
	nextTag  uint32

	rowCapacity, edgeCapacity int64
	outBytes                  uint64
}

// Where things lie in meeting; grids have at most mostBlocks blocks, and two rows
// of slots of 16 bytes take turns.
const (
	badSeedAt  = 8
	slotsAt    = 64
	mostBlocks = 4096
)

// Sizes of a new workspace: a small batch's.
const (
	firstRows  = 1 << 14
	firstEdges = 1 << 17
	firstOut   = 4 << 20
)

const noTag = ^uint32(0) // what the map's words begin with, and so no launch's tag

// take gets an idle workspace for graphs of so many vertices, or makes one.
func (e *Engine) take(nodes int64, stream gpu.Stream) (*workspace, error) {
	e.mu.Lock()
	for i, w := range e.idle {
		if w.nodes >= nodes {
			e.idle = append(e.idle[:i], e.idle[i+1:]...)
			e.mu.Unlock()
			if w.nextTag == 0 {
				return w, w.clear(stream)
			}
			return w, nil
		}
	}
	e.mu.Unlock()
	w := &workspace{engine: e, nodes: nodes, outBytes: firstOut}
	var err error
	if w.vertices, err = e.pool.Alloc(stream, uint64(nodes)*8); err == nil {
		w.meeting, err = e.pool.Alloc(stream, slotsAt+2*16*mostBlocks)
	}
	if err == nil {
		w.report, err = e.context.AllocPinned(8 * (2 + batch.HeaderWords + batch.BlockWords*mostHops))
	}
	if err == nil {
		err = w.clear(stream)
	}
	if err == nil {
		err = w.resize(firstRows, firstEdges, stream)
	}
	if err != nil {
		return nil, errors.Join(err, w.free(stream))
	}
	return w, nil
}

func (e *Engine) put(w *workspace) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, w)
}

// clear forgets all tags and the state of the barrier.
func (w *workspace) clear(s gpu.Stream) error {
	w.nextTag = noTag - 1
	return errors.Join(
		s.Fill32(w.vertices.Address, noTag, uint64(w.nodes)*2),
		s.Fill32(w.meeting.Address, 0, w.meeting.Size/4),
		w.forgetBadSeed(s),
	)
}

func (w *workspace) forgetBadSeed(s gpu.Stream) error {
	return s.Fill32(w.meeting.Address+badSeedAt, ^uint32(0), 2)
}

// fit makes room for the seeds.
func (w *workspace) fit(seeds int64, bytes uint64, s gpu.Stream) error {
	if w.seeds.Size < bytes {
		if err := w.replace(&w.seeds, max(2*bytes, 1<<16), s); err != nil {
			return err
		}
	}
	if seeds > w.rowCapacity || seeds > w.edgeCapacity {
		return w.resize(max(2*seeds, w.rowCapacity), max(2*seeds, w.edgeCapacity), s)
	}
	return nil
}

// grow doubles everything after a batch that did not fit; needed is how many bytes
// of output it got to.
func (w *workspace) grow(needed uint64, s gpu.Stream) error {
	w.outBytes = max(2*w.outBytes, needed+needed/4)
	return w.resize(2*w.rowCapacity, 2*w.edgeCapacity, s)
}

func (w *workspace) resize(rows, edges int64, s gpu.Stream) error {
	if err := w.replace(&w.rows, uint64(rows)*16, s); err != nil {
		return err
	}
	// A word of firsts for every 32 edges, and one for the last part of each block.
	if err := w.replace(&w.firsts, uint64(edges)/8+4*mostBlocks, s); err != nil {
		return err
	}
	w.rowCapacity, w.edgeCapacity = rows, edges
	return nil
}

// replace gives m a new size; its contents are lost.
func (w *workspace) replace(m *gpu.Memory, bytes uint64, s gpu.Stream) error {
	if err := m.Free(s); err != nil {
		return err
	}
	*m = gpu.Memory{}
	var err error
	*m, err = w.engine.pool.Alloc(s, bytes)
	return err
}

// reportWords is what the kernel reports: status, detail, the batch's header.
func (w *workspace) reportWords() []int64 {
	return unsafe.Slice((*int64)(w.report.Pointer), w.report.Size/8)
}

func (w *workspace) free(s gpu.Stream) error {
	return errors.Join(w.vertices.Free(s), w.meeting.Free(s), w.rows.Free(s), w.firsts.Free(s), w.seeds.Free(s), w.report.Close())
}

func (w *workspace) close() error {
	stream, err := w.engine.context.NewStream()
	if err != nil {
		return err
	}
	return errors.Join(w.free(stream), stream.Synchronize(), stream.Close())
}
