package cuda

import (
	"errors"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/gpu"
)

// manyArgs mirrors ManyArgs in kernels/neighbor/neighbor.cuh.
type manyArgs struct {
	All     neighborArgs
	Batches [mostBatches]neighborBatch
}

// host is the workspace whose stream the flights of one launch share. It stays in use until all of
// them have ended, since a batch that did not fit is repeated there.
type host struct {
	space *Workspace
	left  atomic.Int32
}

// leave lets go of the host for one of its flights.
func (h *host) leave() {
	if h.left.Add(-1) == 0 {
		h.space.engine.put(h.space)
	}
}

// StartMany starts several batches of one graph together, up to mostBatches in a launch. A call
// gets its own launch if its stream or fanouts differ from its neighbors', or if it has enough work
// for the whole device.
//
// Source: gSampler's super-batches, which fill a device that one batch does not.
func (e *Engine) StartMany(g *Graph, calls []*Call) ([]*Flight, error) {
	flights := make([]*Flight, len(calls))
	for i, c := range calls {
		f, err := e.flight(g, c)
		if err != nil {
			return nil, err
		}
		flights[i] = f
	}
	for i := 0; i < len(flights); {
		n, err := together(flights[i:]), error(nil)
		if n == 1 {
			err = flights[i].start()
		} else {
			err = e.startAlike(flights[i : i+n])
		}
		if err != nil {
			for _, f := range flights[:i] {
				f.Cancel()
			}
			return nil, err
		}
		i += n
	}
	return flights, nil
}

// A flight takes this much for each node of its graph, and for each row and edge of a hop, in
// addition to the batch and the working memory of a program. Small flights are not counted: to read
// the free memory takes as long as a batch.
const (
	perVertex   = 8
	perElement  = 16
	smallFlight = 64 << 20
)

// Together returns the number of similar batches that may run at the same time, at most most: they
// take up to half of the free memory and the memory of idle workspaces, and at most budget bytes,
// idle workspaces included (0: no budget). One batch may always run.
func (g *Graph) Together(p Plan, seeds, most int64, budget uint64) (int64, error) {
	n := g.needOf(shapeOf(p, seeds), p, seeds)
	space := n.Work + perVertex*uint64(g.Nodes) + perElement*uint64(n.Rows+n.Edges)
	if budget > 0 {
		most = int64(max(min(uint64(most), budget/max(n.Out+space, 1)), 1))
	}
	if n.Out+space <= smallFlight {
		return most, nil
	}
	free, _, err := g.engine.context.MemoryInfo()
	if err != nil {
		return 0, err
	}
	g.engine.mu.Lock()
	idle := len(g.engine.idle)
	g.engine.mu.Unlock()
	return max(min(most, inHalf(uint64(free), n.Out, space, uint64(idle))), 1), nil
}

// inHalf returns the number of flights that fit into half of the free memory, each with a batch and
// a workspace; idle workspaces count as free.
func inHalf(free, out, space, idle uint64) int64 {
	room := free / 2
	if n := room / max(out, 1); n <= idle {
		return int64(n)
	}
	return int64((room + idle*space) / (out + space))
}

// mostTogether is the number of edges of a hop from which on a batch shares no launch: its map
// needs the whole cache (products 4096x(15,15): 60 us per single batch, 83 among 8).
const mostTogether = 2 * smallHop

// together returns the number of flights, from the first on, that one launch can sample: those of
// one plan, in one stream, as many as the plan says.
func together(flights []*Flight) int {
	a := &flights[0].call
	p, joint := a.Plan.(Joint)
	if !joint {
		return 1
	}
	n := 1
	for n < len(flights) {
		b := &flights[n].call
		if b.Plan != a.Plan || b.Stream != a.Stream || b.Own != a.Own {
			break
		}
		n++
	}
	return max(p.Alike(flights[:n]), 1)
}

// Alike returns the number of flights that need neither bins nor another kernel than most batches.
func (p *Neighbors) Alike(flights []*Flight) int {
	g := flights[0].graph
	k, err := g.rowKernels()
	if err != nil {
		return 1 // whose launch will say so
	}
	n, most := 0, min(len(flights), mostBatches, k.resident(g))
	for n < most {
		f := flights[n]
		if p.kind(k, g, &f.call, f.need) != plain || k.binned(g, f.need) || f.need.Edges >= mostTogether {
			break
		}
		n++
	}
	return n
}

// startAlike starts flights in one launch, hence in one stream; none has a workspace
// after an error.
func (e *Engine) startAlike(flights []*Flight) (err error) {
	taken := 0
	defer func() {
		if err != nil {
			for _, f := range flights[:taken] {
				err = errors.Join(err, f.drop())
			}
		}
	}()
	for _, f := range flights {
		if f.space, err = e.take(f.graph); err != nil {
			return err
		}
		taken++
	}
	first := flights[0]
	stream, err := first.space.streamOf(&first.call)
	if err != nil {
		return err
	}
	if first.call.Own {
		h := &host{space: first.space}
		h.left.Store(int32(len(flights)))
		for _, f := range flights {
			f.host = h
		}
	}
	for _, f := range flights {
		f.stream = stream
		if err = errors.Join(f.bring(), f.fit()); err != nil {
			return err
		}
	}
	return first.call.Plan.(Joint).LaunchMany(flights)
}

// LaunchMany enqueues all hops of several batches in one cooperative launch. Row y of its grid
// samples batch y in the batch's own workspace, exactly as a separate launch would.
func (p *Neighbors) LaunchMany(flights []*Flight) error {
	return p.launchMany(flights, (*Flight).Report)
}

// launchMany implements LaunchMany with a report at the address that report returns.
func (p *Neighbors) launchMany(flights []*Flight, report func(*Flight) gpu.Address) error {
	first := flights[0]
	k, err := first.graph.rowKernels()
	if err != nil {
		return err
	}
	var args manyArgs
	shared := args.All.common(k, first.graph, p)
	blocks := 0
	for i, f := range flights {
		if args.Batches[i], err = f.arguments(plain, report(f)); err != nil {
			return err
		}
		blocks = max(blocks, k.share(f, len(flights)))
	}
	shape := gpu.Shape{
		Grid:  [3]uint32{uint32(blocks), uint32(len(flights))},
		Block: [3]uint32{threads}, Shared: uint32(shared), Cooperative: true,
	}
	return k.many[first.graph.Wide()].Launch(first.stream, shape, &args)
}

// share returns a good number of blocks for one of several batches of a launch: its part of the
// device, of which small batches need at most one block for each multiprocessor, and at least as
// many as next to batches in other launches.
func (k *rowKernels) share(f *Flight, batches int) int {
	n, most := f.engine.context.Properties().Multiprocessors, k.resident(f.graph)/batches
	switch {
	case f.call.Grid > 0:
		return min(f.call.Grid, most)
	case f.need.Edges < smallHop:
		return f.call.Within(max(min(max(n/4, n/batches), most), 1), most)
	}
	return f.call.Within(most, most)
}

// resident returns the number of blocks of any of the kernels that run at a time on the graph's
// device.
func (k *rowKernels) resident(g *Graph) int {
	return k.together * g.engine.context.Properties().Multiprocessors
}
