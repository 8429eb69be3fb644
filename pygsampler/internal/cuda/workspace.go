package cuda

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
)

// workspace is the device memory beside graph and output that a batch in flight
// needs. It is kept between batches and only ever grows.
type workspace struct {
	engine   *Engine
	stream   gpu.Stream // for batches that run in a stream of the engine's
	before   gpu.Event  // what a caller's stream had when a batch was started
	narrow   vertexMap  // for plain launches of neighbor.cu; each map is made when one needs it
	wide     vertexMap  // for the others
	meeting  gpu.Memory // the counter of the meetings, the lowest bad seed, the slots
	rows     buffer     // 16 bytes for each row of a hop
	vertex   buffer     // and its vertex
	firsts   buffer     // a bit for each edge of a hop
	seeds    buffer
	excluded buffer
	bins     binSpace
	trees    treeSpace
	queue    queueSpace
	sums     buffer     // of mode bsp
	staged   gpu.Pinned // seeds on their way
	report   gpu.Pinned
	dirty    bool // a launch did not end as it should: to be cleared before the next batch

	rowCapacity, edgeCapacity int64
}

// binSpace is what a binned hop needs.
type binSpace struct {
	pairs, fills, answers buffer
	capacity              uint64 // pairs
}

// Where things lie in meeting; grids have at most mostBlocks blocks, and two rows
// of slots of 16 bytes take turns.
const (
	badSeedAt  = 8
	slotsAt    = 64
	mostBlocks = 4096
)

// stagedRead is up to how many bytes of seeds a kernel reads from the host's memory
// itself, which is faster than a copy.
const stagedRead = 1 << 16

// take gets an idle workspace, one whose maps have room for the graph if there is
// any, or makes one.
func (e *Engine) take(g *Graph) (*workspace, error) {
	if w := e.takeIdle(g); w != nil {
		if w.dirty {
			if err := w.clear(); err != nil {
				e.put(w)
				return nil, err
			}
		}
		return w, nil
	}
	w := &workspace{engine: e, narrow: vertexMap{bits: 32}, wide: vertexMap{bits: 64}}
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	e.flights++
	return w, nil
}

// takeIdle is the workspace that was used last of those that fit best; nil where none
// is idle.
func (e *Engine) takeIdle(g *Graph) *workspace {
	e.mu.Lock()
	defer e.mu.Unlock()
	best := len(e.idle) - 1
	if best < 0 {
		return nil
	}
	for i, w := range slices.Backward(e.idle) {
		if max(w.narrow.nodes, w.wide.nodes) >= g.Nodes {
			best = i
			break
		}
	}
	w := e.idle[best]
	e.idle = slices.Delete(e.idle, best, best+1)
	e.flights++
	return w
}

// inFlight is how many batches are on their way.
func (e *Engine) inFlight() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.flights
}

func (e *Engine) put(w *workspace) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, w)
	e.flights--
}

func (w *workspace) begin() (err error) {
	c, pool := w.engine.context, w.engine.pool
	if w.stream, err = c.NewStream(); err != nil {
		return err
	}
	if w.before, err = c.NewEvent(); err != nil {
		return err
	}
	if w.meeting, err = pool.Alloc(w.stream, slotsAt+2*16*mostBlocks); err != nil {
		return err
	}
	if w.report, err = c.AllocPinned(8 * uint64(reportHeader+batch.Words(mostHops))); err != nil {
		return err
	}
	return w.clear()
}

// clear forgets the maps and the state of the meetings, before the next batch in
// whichever stream.
func (w *workspace) clear() error {
	w.queue.dirty = true
	w.narrow.next, w.wide.next = 0, 0
	err := errors.Join(
		w.stream.Fill32(w.meeting.Address, 0, w.meeting.Size/4),
		w.stream.Fill32(w.meeting.Address+badSeedAt, ^uint32(0), 2),
		w.stream.Synchronize(),
	)
	w.dirty = err != nil
	return err
}

// streamOf is where a call in this workspace runs: the caller's stream, or, after
// what is there now, the workspace's.
func (w *workspace) streamOf(c *Call) (gpu.Stream, error) {
	caller, err := w.engine.context.Wrap(c.Stream)
	if err != nil || !c.Own {
		return caller, err
	}
	if err := w.before.Record(caller); err != nil {
		return w.stream, err
	}
	return w.stream, w.stream.Wait(w.before)
}

// fit makes room for a batch in stream s.
func (w *workspace) fit(n needs, s gpu.Stream) error {
	rows, edges := max(n.rows, w.rowCapacity), max(n.edges, w.edgeCapacity)
	if rows > w.rowCapacity {
		w.rowCapacity = 0 // a buffer whose growth fails is gone
		if err := errors.Join(w.rows.fit(w, uint64(rows)*16, s), w.vertex.fit(w, uint64(rows)*8, s)); err != nil {
			return err
		}
		w.rowCapacity = rows
	}
	if edges > w.edgeCapacity {
		w.edgeCapacity = 0
		// A word of firsts for every 32 edges, and one for the last part of each block.
		if err := w.firsts.fit(w, uint64(edges)/8+4*mostBlocks, s); err != nil {
			return err
		}
		w.edgeCapacity = edges
	}
	return nil
}

// hold makes room for seeds on their way.
func (w *workspace) hold(bytes uint64) (err error) {
	if w.staged.Size >= bytes {
		return nil
	}
	if err = w.staged.Close(); err == nil {
		w.staged, err = w.engine.context.AllocPinned(max(2*bytes, 1<<14))
	}
	return err
}

// words is what a kernel reports: status, detail, the batch's header.
func (w *workspace) words() []int64 {
	return unsafe.Slice((*int64)(w.report.Pointer), w.report.Size/8)
}

// close gives everything back once the device is done with it.
func (w *workspace) close() error {
	var errs []error
	if w.stream.Context() == nil {
		return nil
	}
	for _, m := range []*gpu.Memory{
		&w.narrow.Memory, &w.wide.Memory, &w.meeting, &w.rows.Memory, &w.vertex.Memory, &w.firsts.Memory, &w.seeds.Memory, &w.excluded.Memory,
		&w.bins.pairs.Memory, &w.bins.fills.Memory, &w.bins.answers.Memory,
	} {
		errs = append(errs, m.Free(w.stream))
	}
	errs = append(errs, w.trees.free(w.stream), w.queue.free(w.stream), w.sums.Free(w.stream), w.staged.Close(), w.report.Close())
	return errors.Join(append(errs, w.before.Close(), w.stream.Synchronize(), w.stream.Close())...)
}

// buffer is device memory that grows, and loses its contents when it does.
type buffer struct{ gpu.Memory }

func (b *buffer) fit(w *workspace, bytes uint64, s gpu.Stream) (err error) {
	if b.Size >= bytes {
		return nil
	}
	if err = b.Free(s); err != nil {
		return err
	}
	b.Memory, err = w.engine.pool.Alloc(s, max(bytes+bytes/4, 1<<16))
	return err
}
