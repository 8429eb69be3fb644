package cuda

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
)

// Workspace is the device memory of a running batch, in addition to graph and output. It is reused
// between batches and only ever grows.
type Workspace struct {
	engine   *Engine
	stream   gpu.Stream // for batches that run in a stream of the engine's
	before   gpu.Event  // what a caller's stream had when a batch was started
	meeting  gpu.Memory // the counter of the meetings, the lowest bad seed, the slots
	seeds    buffer
	excluded buffer
	staged   gpu.Pinned // seeds on their way
	report   gpu.Pinned
	spaces   []Space // of the plans that have been here
	nodes    int64   // the maximal number of nodes of a graph that was sampled here
	dirty    bool    // a launch did not end as it should: to be cleared before the next batch
}

// Offsets in the memory for exchanges between blocks; grids have at most MostBlocks blocks, and two
// rows of slots of 16 bytes alternate.
const (
	BadSeedAt  = 8
	SlotsAt    = 64
	MostBlocks = 4096
)

// stagedRead is up to how many bytes of seeds a kernel reads from the host's memory
// itself, which is faster than a copy.
const stagedRead = 1 << 16

// reportBytes returns the maximal size of a report.
func reportBytes() uint64 { return 8 * uint64(ReportHeader+batch.Homogeneous(MostHops).Words()) }

// take gets an idle workspace, one whose maps have room for the graph if there is
// any, or makes one.
func (e *Engine) take(g *Graph) (*Workspace, error) {
	if w := e.takeIdle(g); w != nil {
		w.nodes = max(w.nodes, g.Nodes)
		if w.dirty {
			if err := w.clear(); err != nil {
				e.put(w)
				return nil, err
			}
		}
		return w, nil
	}
	w := &Workspace{engine: e, nodes: g.Nodes}
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	e.flights++
	return w, nil
}

// takeIdle returns the most recently used workspace among those that fit best; nil if none is idle.
func (e *Engine) takeIdle(g *Graph) *Workspace {
	e.mu.Lock()
	defer e.mu.Unlock()
	best := len(e.idle) - 1
	if best < 0 {
		return nil
	}
	for i, w := range slices.Backward(e.idle) {
		if w.nodes >= g.Nodes {
			best = i
			break
		}
	}
	w := e.idle[best]
	e.idle = slices.Delete(e.idle, best, best+1)
	e.flights++
	return w
}

// inFlight returns the number of running batches.
func (e *Engine) inFlight() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.flights
}

func (e *Engine) put(w *Workspace) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, w)
	e.flights--
}

// borrow takes a workspace for a caller without a batch, until giveBack.
func (e *Engine) borrow(g *Graph) (*Workspace, error) {
	w, err := e.take(g)
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.flights--
	}
	return w, err
}

func (e *Engine) giveBack(w *Workspace) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, w)
}

func (w *Workspace) begin() (err error) {
	c, pool := w.engine.context, w.engine.pool
	if w.stream, err = c.NewStream(); err != nil {
		return err
	}
	if w.before, err = c.NewEvent(); err != nil {
		return err
	}
	if w.meeting, err = pool.Alloc(w.stream, SlotsAt+2*16*MostBlocks); err != nil {
		return err
	}
	if w.report, err = c.AllocPinned(reportBytes()); err != nil {
		return err
	}
	return w.clear()
}

// clear forgets the maps and the state of the meetings, before the next batch in
// whichever stream.
func (w *Workspace) clear() error {
	for _, s := range w.spaces {
		s.Forget()
	}
	err := errors.Join(
		w.stream.Fill32(w.meeting.Address, 0, w.meeting.Size/4),
		w.stream.Fill32(w.meeting.Address+BadSeedAt, ^uint32(0), 2),
		w.stream.Synchronize(),
	)
	w.dirty = err != nil
	return err
}

// streamOf returns the stream of a call in this workspace: the caller's stream, or the workspace's,
// ordered after the present work of the caller's.
func (w *Workspace) streamOf(c *Call) (gpu.Stream, error) {
	caller, err := w.engine.context.Wrap(c.Stream)
	if err != nil || !c.Own {
		return caller, err
	}
	if err := w.before.Record(caller); err != nil {
		return w.stream, err
	}
	return w.stream, w.stream.Wait(w.before)
}

// hold allocates the upload buffer of seeds.
func (w *Workspace) hold(bytes uint64) (err error) {
	if w.staged.Size >= bytes {
		return nil
	}
	if err = w.staged.Close(); err == nil {
		w.staged, err = w.engine.context.AllocPinned(max(2*bytes, 1<<14))
	}
	return err
}

// words returns the report of a kernel: status, detail, the batch's header.
func (w *Workspace) words() []int64 {
	return unsafe.Slice((*int64)(w.report.Pointer), w.report.Size/8)
}

// reportOf allocates a report of words words.
func (w *Workspace) reportOf(words int) error {
	bytes := 8 * uint64(ReportHeader+words)
	if w.report.Size >= bytes {
		return nil
	}
	larger, err := w.engine.context.AllocPinned(bytes)
	if err != nil {
		return err
	}
	old := w.report
	w.report = larger
	return old.Close()
}

// close gives everything back once the device is done with it.
func (w *Workspace) close() error {
	var errs []error
	if w.stream.Context() == nil {
		return nil
	}
	for _, m := range []*gpu.Memory{&w.meeting, &w.seeds.Memory, &w.excluded.Memory} {
		errs = append(errs, m.Free(w.stream))
	}
	for _, s := range w.spaces {
		errs = append(errs, s.Free(w.stream))
	}
	errs = append(errs, w.staged.Close(), w.report.Close())
	return errors.Join(append(errs, w.before.Close(), w.stream.Synchronize(), w.stream.Close())...)
}

// buffer is device memory that grows, and loses its contents when it does.
type buffer struct{ gpu.Memory }

func (b *buffer) fit(w *Workspace, bytes uint64, s gpu.Stream) error {
	return w.Grow(&b.Memory, bytes, s)
}

// Grow has a memory hold so many bytes, and a quarter more where it has to be larger: its
// contents are lost then.
func (w *Workspace) Grow(m *gpu.Memory, bytes uint64, s gpu.Stream) (err error) {
	if m.Size >= bytes {
		return nil
	}
	if err = m.Free(s); err != nil {
		return err
	}
	*m, err = w.engine.pool.Alloc(s, max(bytes+bytes/4, 1<<16))
	return err
}
