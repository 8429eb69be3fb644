package cuda

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/gpu"
)

// manyArgs mirrors ManyArgs in kernels/neighbor.cuh.
type manyArgs struct {
	All     neighborArgs
	Batches [mostBatches]neighborBatch
}

// host is the workspace whose stream the flights of one launch share. It stays taken
// until all of them have ended, since a batch that did not fit is made again there.
type host struct {
	space *workspace
	left  atomic.Int32
}

// leave lets go of the host for one of its flights.
func (h *host) leave() {
	if h.left.Add(-1) == 0 {
		h.space.engine.put(h.space)
	}
}

// StartMany starts several batches of one graph together, up to mostBatches in a
// launch. Calls that no such launch can serve get one each: those whose stream or
// fanouts differ from their neighbours', or that have work enough for the whole device.
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
		n, err := e.alike(flights[i:]), error(nil)
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

// mostTogether is from how many edges of a hop on a batch shares no launch: its map
// wants the cache for itself (products 4096x(15,15): 60 us a batch alone, 83 among 8).
const mostTogether = 2 * smallHop

// alike is how many of the flights, from the first on, one launch can make.
func (e *Engine) alike(flights []*Flight) int {
	most := min(len(flights), mostBatches, e.resident(flights[0].graph))
	a, n := &flights[0].call, 0
	for n < most {
		f := flights[n]
		b := &f.call
		if b.Stream != a.Stream || b.Own != a.Own || b.Request.Replace != a.Request.Replace ||
			!slices.Equal(b.Request.Fanouts, a.Request.Fanouts) ||
			!b.persistent() || e.kind(f.graph, b, f.need) != plain || e.binned(f.graph, f.need) || f.need.edges >= mostTogether {
			break
		}
		n++
	}
	return max(n, 1)
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
	return e.launchMany(flights)
}

// launchMany is all hops of several batches in one cooperative launch. Row y of its
// grid makes batch y as a launch of its own would, in the batch's own workspace.
func (e *Engine) launchMany(flights []*Flight) error {
	first := flights[0]
	var args manyArgs
	shared := args.All.common(e, first.graph, &first.call)
	blocks := 0
	for i, f := range flights {
		var err error
		if args.Batches[i], err = f.arguments(plain); err != nil {
			return err
		}
		blocks = max(blocks, e.share(f, len(flights)))
	}
	shape := gpu.Shape{
		Grid:  [3]uint32{uint32(blocks), uint32(len(flights))},
		Block: [3]uint32{threads}, Shared: uint32(shared), Cooperative: true,
	}
	return first.graph.rows.many[first.graph.wide()].Launch(first.stream, shape, &args)
}

// share is a good number of blocks for one of several batches of a launch: its part
// of the device, of which small batches want one block for each multiprocessor at
// most, and not fewer than beside batches in other launches.
func (e *Engine) share(f *Flight, batches int) int {
	n, most := e.context.Properties().Multiprocessors, e.resident(f.graph)/batches
	switch {
	case f.call.Grid > 0:
		return min(f.call.Grid, most)
	case f.need.edges < smallHop:
		return max(min(max(n/4, n/batches), most), 1)
	}
	return most
}

// resident is how many blocks of any of the graph's kernels run at a time.
func (e *Engine) resident(g *Graph) int {
	return g.rows.together * e.context.Properties().Multiprocessors
}
