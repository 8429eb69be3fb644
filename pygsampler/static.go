package pygsampler

import (
	"sync"
	"time"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// DeviceStatic makes batches of a graph on a device by launches that a CUDA graph can hold:
// cuda.Static, or cuda.StaticHetero. It is closed with the graphs that it reads at the latest; goroutines take turns.
type DeviceStatic struct {
	device *deviceGraph
	graphs []*Graph
	mu     sync.Mutex
	made   cuda.Standing // nil: closed
}

// hold makes what makes batches of graphs on a device, which all see to its end.
func hold(device *deviceGraph, graphs []*Graph, f func() (cuda.Standing, error)) (*DeviceStatic, error) {
	// None is closed before it is known there.
	if err := enterAll(graphs); err != nil {
		return nil, err
	}
	defer leaveAll(graphs)
	s, err := &DeviceStatic{device: device, graphs: graphs}, error(nil)
	if s.made, err = f(); err != nil {
		return nil, onDevice(err)
	}
	for _, g := range graphs {
		g.mu.Lock()
		closed := g.closed
		if g.static == nil {
			g.static = make(map[*DeviceStatic]struct{})
		}
		g.static[s] = struct{}{}
		g.mu.Unlock()
		if closed {
			s.Close()
			return nil, Errorf(KindClosed, "graph: expected an open graph, got a closed one")
		}
	}
	return s, nil
}

// NewDeviceStatic makes room for batches of up to so many seeds, each of seedBits. At the address
// most are 3 integers for each block, outermost first: how many sources, destinations and edges it
// may have. grid is the blocks of a launch, 0 for a good number.
func NewDeviceStatic(g *Graph, p *Sampler, seeds, seedBits, grid, count, most int64) (*DeviceStatic, error) {
	if g.device == nil {
		return nil, Errorf(KindValue, "graph: expected one on a CUDA device, got one on the CPU")
	}
	if err := p.check(g); err != nil {
		return nil, err
	}
	plan, ok := p.CUDA().(*cuda.Neighbors)
	switch {
	case !ok:
		return nil, Errorf(KindValue, `static: expected a sampler of mode "auto" or "persistent" without edge_weights`)
	case seeds < 1 || seedBits != 32 && seedBits != 64:
		return nil, Errorf(KindValue, "static: expected at least 1 seed of 32 or 64 bits, got %d of %d", seeds, seedBits)
	case most == 0 || count != int64(len(plan.Fanouts)):
		return nil, Errorf(KindValue, "static: expected sizes of %d blocks at an address, got %d at %#x", len(plan.Fanouts), count, most)
	}
	options := cuda.StaticPlan{
		Plan: plan, Seed: p.Seed, Seeds: seeds, SeedBits: int(seedBits), Grid: int(grid),
	}
	for i, w := range memory.View[[3]int64](most, count) {
		if w[0] < 1 || w[1] < 1 || w[2] < 0 || w[0] < w[1] {
			return nil, Errorf(KindValue, "static: block %d: expected sources >= destinations >= 1 and edges >= 0, got %v", i, w)
		}
		options.Most = append(options.Most, cuda.BlockSize{Src: uint64(w[0]), Dst: uint64(w[1]), Edges: uint64(w[2])})
	}
	return hold(g.device, []*Graph{g}, func() (cuda.Standing, error) {
		return g.device.engine.NewStatic(g.device.graph, options)
	})
}

// with calls f with what is open, and a stream.
func (s *DeviceStatic) with(stream int64, f func(cuda.Standing, gpu.Stream) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		return Errorf(KindClosed, "static: expected an open graph and loader, got closed ones")
	}
	to, err := s.device.engine.Context().Wrap(uintptr(stream))
	if err == nil {
		err = f(s.made, to)
	}
	return onDevice(err)
}

// as is with for one kind of what makes batches.
func as[Kind cuda.Standing](s *DeviceStatic, stream int64, f func(Kind, gpu.Stream) error) error {
	return s.with(stream, func(made cuda.Standing, to gpu.Stream) error {
		own, is := made.(Kind)
		if !is {
			return Errorf(KindValue, "static: expected batches of a %T, got those of a %T", own, made)
		}
		return f(own, to)
	})
}

// Begin begins a pass over seeds at an address of the device: cuda.Static.Begin. At the address
// parts are 2 integers for each of its batches: the first of its seeds, and how many.
func (s *DeviceStatic) Begin(seeds, numSeeds, count, parts, epoch, first, stride, stream int64) error {
	if count < 0 || count > 0 && (parts == 0 || seeds == 0) {
		return Errorf(KindValue, "static: expected addresses of seeds and parts of batches, got %#x and %#x for %d", seeds, parts, count)
	}
	if err := checkBatch(epoch, first+max(count-1, 0)*stride); err != nil {
		return err
	}
	return as(s, stream, func(made *cuda.Static, to gpu.Stream) error {
		all, err := s.parts(seeds, numSeeds, count, parts, made.Seeds())
		if err != nil {
			return err
		}
		return made.Begin(to, gpu.Address(seeds), all, uint32(epoch), uint64(first), uint64(stride))
	})
}

// parts are those of a pass over so many seeds on the device, each of which has at most most.
func (s *DeviceStatic) parts(seeds, numSeeds, count, parts, most int64) ([]cuda.Seeds, error) {
	all := make([]cuda.Seeds, count)
	if count == 0 {
		return all, nil
	}
	if err := readable("seeds", seeds, s.device.index); err != nil {
		return nil, err
	}
	for i, w := range memory.View[[2]int64](parts, count) {
		if w[0] < 0 || w[1] < 0 || w[0] > numSeeds-w[1] || w[1] > most {
			return nil, Errorf(KindValue, "static: batch %d: expected at most %d seeds of %d, got %d from %d on", i, most, numSeeds, w[1], w[0])
		}
		all[i] = cuda.Seeds{First: w[0], Count: w[1]}
	}
	return all, nil
}

// Sample puts the next batch into the stream.
func (s *DeviceStatic) Sample(stream int64) error {
	return s.with(stream, func(made cuda.Standing, to gpu.Stream) error { return made.Sample(to) })
}

// Spread copies the next batch to arrays. At the address list are 5 integers: where the vertices
// go, the seeds, their positions, how many of these, and what is counted; then 6 for each block: where indptr,
// indices and edge ids go, and how many sources, destinations and edges have room there.
func (s *DeviceStatic) Spread(count, list, stream int64) error {
	if list == 0 || count < 1 || count > cuda.MostHops {
		return Errorf(KindValue, "list: expected 1 to %d blocks at an address, got %d at %#x", cuda.MostHops, count, list)
	}
	w := memory.View[int64](list, 5+6*count)
	to := &cuda.Spread{
		Nodes: gpu.Address(w[0]), OutputNodes: gpu.Address(w[1]), OutputIndex: gpu.Address(w[2]), Outputs: uint64(max(w[3], 0)), Counts: gpu.Address(w[4]),
	}
	for i := range count {
		to.Blocks = append(to.Blocks, staticBlock(w[5+6*i:]))
	}
	return as(s, stream, func(made *cuda.Static, on gpu.Stream) error { return made.Spread(to, on) })
}

// staticBlock is a block's arrays in a list.
func staticBlock(w []int64) cuda.SpreadBlock {
	return cuda.SpreadBlock{
		Indptr: gpu.Address(w[0]), Indices: gpu.Address(w[1]), EdgeIDs: gpu.Address(w[2]),
		Size: cuda.BlockSize{Src: uint64(w[3]), Dst: uint64(w[4]), Edges: uint64(w[5])},
	}
}

// Edges writes the edges of a block one by one, as integers of so many bits. At the address list
// are the 6 integers that Spread has for it, the address of its count of destinations, and where
// sources, or 0, and destinations go.
func (s *DeviceStatic) Edges(bits, list, stream int64) error {
	if list == 0 || bits != 32 && bits != 64 {
		return Errorf(KindValue, "list: expected a block at an address and 32 or 64 bits, got %#x and %d", list, bits)
	}
	w := memory.View[int64](list, 9)
	x := &cuda.StaticEdges{
		Block: staticBlock(w), NumDst: gpu.Address(w[6]), Sources: gpu.Address(w[7]), Destinations: gpu.Address(w[8]), Bits: int(bits),
	}
	return s.with(stream, func(made cuda.Standing, on gpu.Stream) error { return made.Edges(x, on) })
}

// Wait waits up to timeout milliseconds for batch i of the pass to be sampled, and copies so many
// words that describe it to an address. state is 0 while it is on its way, 1 where it is there, and
// 2 where it is larger than may be.
func (s *DeviceStatic) Wait(i, timeout, count, words int64) (state int64, err error) {
	if words == 0 || count < 1 {
		return 0, Errorf(KindValue, "words: expected an address for some, got %#x for %d", words, count)
	}
	err = s.with(0, func(made cuda.Standing, _ gpu.Stream) error {
		done, fits, err := made.Wait(i, time.Duration(max(timeout, 0))*time.Millisecond, memory.View[int64](words, count))
		if done {
			state = 2
		}
		if done && fits {
			state = 1
		}
		return err
	})
	return state, err
}

// EdgeBits is how wide the ids of edges are.
func (s *DeviceStatic) EdgeBits() (bits int64, err error) {
	err = as(s, 0, func(made *cuda.Static, _ gpu.Stream) error {
		bits = int64(made.EdgeBits())
		return nil
	})
	return bits, err
}

// Close gives the memory back, once the device is done with what it was given.
func (s *DeviceStatic) Close() {
	s.mu.Lock()
	made := s.made
	s.made = nil
	s.mu.Unlock()
	if made == nil {
		return
	}
	// What goes wrong here is told by whoever uses the device next.
	_ = made.Close()
	for _, g := range s.graphs {
		g.mu.Lock()
		delete(g.static, s)
		g.mu.Unlock()
	}
}
