package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Flight is a running batch. Wait or Cancel ends it; one goroutine at a time may call them.
type Flight struct {
	engine *Engine
	graph  *Graph
	call   Call
	shape  shape // of the batch, whose text plans make anew each time that they are asked
	need   Needs
	space  *Workspace
	stream gpu.Stream
	out    gpu.Memory // where the engine allocates
	tries  int        // launches so far
	host   *host      // whose stream it is; nil: the caller's, or the workspace's own

	mu    sync.Mutex
	ended bool
	batch Batch
	err   error
}

// Start enqueues the launch of a batch and returns. Seeds on the host have been copied by then.
func (e *Engine) Start(g *Graph, c *Call) (*Flight, error) {
	f, err := e.flight(g, c)
	if err == nil {
		err = f.start()
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// start is Start for a flight without a workspace; it has none after an error.
func (f *Flight) start() (err error) {
	if f.space, err = f.engine.take(f.graph); err != nil {
		return err
	}
	if f.stream, err = f.space.streamOf(&f.call); err == nil {
		err = f.bring()
	}
	if err == nil {
		err = f.launch()
	}
	if err != nil {
		return errors.Join(err, f.drop())
	}
	return nil
}

// flight is a call that has been checked, without a workspace.
func (e *Engine) flight(g *Graph, c *Call) (*Flight, error) {
	if err := c.check(g); err != nil {
		return nil, err
	}
	f := &Flight{engine: e, graph: g, call: *c, shape: shapeOf(c.Plan, c.NumSeeds)}
	f.need = g.needOf(f.shape, c.Plan, c.NumSeeds)
	f.need.Rows, f.need.Edges = max(f.need.Rows, c.NumSeeds, 64), max(f.need.Edges, c.NumSeeds, 64)
	return f, nil
}

// bring copies seeds and exclusions to the device.
func (f *Flight) bring() error {
	c, w := &f.call, f.space
	if c.Seeds == 0 && c.NumSeeds > 0 {
		bytes := uint64(c.NumSeeds) * uint64(c.SeedBits/8)
		if err := w.hold(bytes); err != nil {
			return err
		}
		copy(w.staged.Bytes(), unsafe.Slice((*byte)(c.Batch.Seeds.Pointer()), bytes))
		c.Seeds = w.staged.Address
		if bytes > stagedRead {
			if err := w.seeds.fit(w, bytes, f.stream); err != nil {
				return err
			}
			if err := f.stream.Upload(w.seeds.Address, w.staged.Pointer, bytes); err != nil {
				return err
			}
			c.Seeds = w.seeds.Address
		}
	}
	c.Batch.Seeds.I32, c.Batch.Seeds.I64 = nil, nil
	if len(c.Exclude) == 0 {
		return nil
	}
	bytes := uint64(len(c.Exclude)) * 8
	if err := w.excluded.fit(w, bytes, f.stream); err != nil {
		return err
	}
	return f.stream.Upload(w.excluded.Address, unsafe.Pointer(&c.Exclude[0]), bytes)
}

// launch makes room and launches.
func (f *Flight) launch() error {
	if f.tries++; f.tries > mostTries {
		return errors.New("a batch fits no memory: a fault of pygsampler")
	}
	if err := f.fit(); err != nil {
		return err
	}
	if err := f.call.Plan.Launch(f); err != nil {
		// A kernel that was launched before may run and report yet, and counters may not be as the next
		// batch expects them: it begins after that kernel, with all of it cleared.
		f.space.dirty = true
		f.stream.Synchronize()
		return err
	}
	return nil
}

// fit makes room for what the batch needs, and the report empty.
func (f *Flight) fit() (err error) {
	if err := f.call.Plan.Fit(f); err != nil {
		return err
	}
	if f.call.Out == 0 && f.out.Size < f.need.Out {
		if err := f.out.Free(f.stream); err != nil {
			return err
		}
		if f.out, err = f.engine.pool.Alloc(f.stream, f.need.Out+f.need.Out/8); err != nil {
			return err
		}
	}
	atomic.StoreInt64(&f.space.words()[ReportStatus], 0)
	return nil
}

// Region returns the address of the batch, and its capacity in bytes.
func (f *Flight) Region() (gpu.Address, uint64) {
	if f.call.Out != 0 {
		return f.call.Out, f.call.OutBytes
	}
	return f.out.Address, f.out.Size
}

// Polling intervals of Wait: it first polls the report without pause, then at intervals, and asks
// the driver every few milliseconds whether the launch has failed.
const (
	spinFor  = 2 * time.Millisecond
	askEvery = 4 * time.Millisecond
)

// Wait waits for the batch, at most for timeout, or without limit if timeout is negative. If done,
// the batch's bytes are complete for every stream, and the flight has ended.
func (f *Flight) Wait(timeout time.Duration) (b Batch, done bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return f.batch, true, f.err
	}
	begin := time.Now()
	for {
		left := askEvery
		if timeout >= 0 {
			left = min(left, timeout-time.Since(begin))
		}
		if gpu.Await(&f.space.words()[ReportStatus], spinFor, max(left, 0)) {
			again, err := f.arrived()
			if err == nil && again {
				continue
			}
			f.end(err)
			return f.batch, true, f.err
		}
		if err := f.lost(); err != nil {
			f.space.dirty = true
			f.end(err)
			return f.batch, true, f.err
		}
		if timeout >= 0 && time.Since(begin) >= timeout {
			return Batch{}, false, nil
		}
	}
}

// lost is the reason why no report will come, if there is one.
func (f *Flight) lost() error {
	idle, err := f.stream.Done()
	if err != nil || !idle || atomic.LoadInt64(&f.space.words()[ReportStatus]) != 0 {
		return err
	}
	return errors.New("a kernel ended without a report: a fault of pygsampler")
}

// AwaitWord waits until a kernel in the flight's stream writes a word of the report, or nothing
// will.
func (f *Flight) AwaitWord(word *int64) error {
	for !gpu.Await(word, spinFor, askEvery) {
		if err := f.lost(); err != nil {
			return err
		}
	}
	return nil
}

// ofTypes is a plan of heterogeneous graphs, which names the type of a seed.
type ofTypes interface {
	outside(f *Flight, i int64) error
}

// arrived reads the report; again is true if the batch did not fit and is repeated.
func (f *Flight) arrived() (again bool, err error) {
	words := f.space.words()
	detail := words[ReportDetail]
	switch words[ReportStatus] {
	case StatusOK:
		f.batch.Header = append(f.batch.Header, words[ReportHeader:ReportHeader+f.call.Plan.Words()]...)
		if known := f.graph.learn(f.shape, f.call.Plan.Used(f)); f.call.Out != 0 {
			f.batch.Header[batch.WordCapacity] = int64(known.Out)
		}
		return false, nil
	case StatusTooSmall:
		return f.tooSmall(uint64(detail))
	case StatusSeedOutOfRange:
		if p, is := f.call.Plan.(ofTypes); is {
			err = p.outside(f, detail)
		} else {
			err = fmt.Errorf("%w: seeds[%d]: expected an id in [0, %d), got %s", request.ErrIndex, detail, f.graph.Nodes, f.seed(detail))
		}
		f.space.dirty = true
		return false, err
	case StatusTooManyEdges:
		return false, fmt.Errorf("%w: a batch of %d edges: expected fewer than 2^31 on a GPU", request.ErrOverflow, detail)
	}
	again, err = f.call.Plan.Arrived(f, words[ReportStatus], detail)
	if err == nil && again {
		err = f.launch()
	}
	return again, err
}

// noted adds newly learned needs to the flight and to later batches like it.
func (f *Flight) noted(n Needs) {
	f.need = f.need.with(n)
	f.graph.learn(f.shape, n)
}

// mostTries is more than doubling anything takes to reach all there is.
const mostTries = 40

// tooSmall requests larger buffers: the kernel reached needed bytes before it stopped, for lack of
// bytes, rows or edges.
func (f *Flight) tooSmall(needed uint64) (again bool, err error) {
	if _, bytes := f.Region(); needed > bytes {
		f.need.Out = max(2*bytes, needed+needed/4)
		if f.call.Out != 0 {
			f.OutTooSmall(f.need.Out)
			return false, nil
		}
	}
	f.need.Rows, f.need.Edges = 2*f.need.Rows, 2*f.need.Edges
	return true, f.launch()
}

// seed is seed i in text.
func (f *Flight) seed(i int64) string {
	var value int64
	width := f.call.SeedBits / 8
	err := f.stream.Download(unsafe.Pointer(&value), f.call.Seeds+gpu.Address(i*int64(width)), uint64(width))
	if err == nil {
		err = f.stream.Synchronize()
	}
	if err != nil {
		return "another"
	}
	if width == 4 {
		value = int64(int32(value))
	}
	return fmt.Sprint(value)
}

// end keeps the outcome and lets go of all else.
func (f *Flight) end(err error) {
	f.ended, f.err = true, err
	if err == nil && f.batch.Needed == 0 {
		f.batch.Memory, f.batch.Stream = f.out, f.engine.stream
		f.out = gpu.Memory{}
	} else {
		f.batch = Batch{Needed: f.batch.Needed}
	}
	if dropped := f.drop(); f.err == nil {
		f.err = dropped
	}
}

// drop gives workspace and memory back.
func (f *Flight) drop() error {
	err := f.out.Free(f.stream)
	if f.host == nil {
		f.engine.put(f.space)
		return err
	}
	if f.space != f.host.space {
		f.engine.put(f.space)
	}
	f.host.leave()
	return err
}

// Cancel drops the batch; when it returns, the device no longer works on it.
func (f *Flight) Cancel() {
	b, done, err := f.Wait(-1)
	if done && err == nil {
		b.Memory.Free(b.Stream)
	}
}
