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
	plain  *cuda.Spread  // of a cuda.Static where its batches go; nil: not placed
}

// Words of the list that describes a static batch. The sizes are at an address, as newStatic and newStaticHetero have them.
const (
	staticGraph = iota // handles
	staticSampler
	staticPlain  // not 0: the kernel for neither types nor times
	staticSorted // as a Request has it; without types the memory of the sorted times
	staticByNode // without types: those times are nodes'
	staticSeeds  // for that kernel alone: at most so many
	staticSeedBits
	staticHops
	staticSizes
	staticWords
)

// NewStaticAt makes room for batches as the list at an address describes them; find is the graph and the sampler of handles.
func NewStaticAt(list int64, find func(graph, sampler int64) (SampledGraph, *Sampler, error)) (*DeviceStatic, error) {
	if list == 0 {
		return nil, Errorf(KindValue, "static: expected an address, got 0")
	}
	w := memory.View[int64](list, staticWords)
	graph, p, err := find(w[staticGraph], w[staticSampler])
	if err != nil {
		return nil, err
	}
	g, single := graph.(*Graph)
	switch {
	case !single:
		return newStaticHetero(graph.(*HeteroGraph), p, w[staticSorted], w[staticSeedBits], w[staticHops], w[staticSizes])
	case w[staticPlain] == 0:
		return newStaticSingle(g, p, w[staticSorted], w[staticByNode] != 0, w[staticSeedBits], w[staticHops], w[staticSizes])
	}
	return newStatic(g, p, w[staticSeeds], w[staticSeedBits], w[staticHops], w[staticSizes])
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

// newStatic makes room for batches of up to so many seeds, each of seedBits. At the address
// most are 3 integers for each block, outermost first: how many sources, destinations and edges it
// may have.
func newStatic(g *Graph, p *Sampler, seeds, seedBits, count, most int64) (*DeviceStatic, error) {
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
	options := cuda.StaticPlan{Plan: plan, Seed: p.Seed, Seeds: seeds, SeedBits: int(seedBits)}
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

// Words of the list that describes an epoch, or the rest of one.
const (
	epochSeeds     = iota // on the device
	epochTimes            // a time of each seed, float64 where those of edges are, else int64; 0: they have none
	epochNumSeeds         // how many in all
	epochCount            // of batches
	epochParts            // 2 integers a batch: the first of its seeds, and how many
	epochSeedTypes        // with types: of each batch how many of its seeds are of which type
	epochExclude          // int64 ids of edges that are not sampled
	epochStarts           // where those of each batch and relation begin, and the end of all; 0: there are none
	epochNumber
	epochFirst // the number of its first batch, and how far apart numbers are
	epochStride
	epochStream
	epochWords
)

// Begin begins an epoch over seeds at an address of the device, as the list at an address describes it.
func (s *DeviceStatic) Begin(list int64) error {
	if list == 0 {
		return Errorf(KindValue, "static: expected an address, got 0")
	}
	w := memory.View[int64](list, epochWords)
	count, first, stride := w[epochCount], w[epochFirst], w[epochStride]
	if count < 0 || w[epochNumSeeds] < 0 || count > 0 && (w[epochParts] == 0 || w[epochSeeds] == 0) {
		return Errorf(KindValue, "static: expected addresses of seeds and parts of batches, got %#x and %#x for %d", w[epochSeeds], w[epochParts], count)
	}
	if err := checkBatch(w[epochNumber], first+max(count-1, 0)*stride); err != nil {
		return err
	}
	return s.with(w[epochStream], func(made cuda.Standing, to gpu.Stream) error {
		if hetero, is := made.(*cuda.StaticHetero); is {
			return s.beginHetero(hetero, to, w)
		}
		plain := made.(*cuda.Static)
		all, err := s.parts(w[epochSeeds], w[epochNumSeeds], count, w[epochParts], plain.Seeds())
		if err != nil {
			return err
		}
		return plain.Begin(to, gpu.Address(w[epochSeeds]), all, uint32(w[epochNumber]), uint64(first), uint64(stride))
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

// Place says where batches go, for Fill. At the address list are of each type 6 integers: where its vertices go, their
// trees, the seeds and their positions, how many vertices have room and how many seeds; then of each block, outermost
// first, and each relation 8: where indptr, indices, edge ids, factors and destinations go, and how many sources,
// destinations and edges have room; then where what is counted goes. Trees, factors and destinations are 0 without some;
// a graph without types is one of one type and one relation.
func (s *DeviceStatic) Place(count, list int64) error {
	return s.with(0, func(made cuda.Standing, _ gpu.Stream) error {
		kinds, relations, hops := int64(1), int64(1), (count-7)/8
		hetero, is := made.(*cuda.StaticHetero)
		if is {
			kinds, relations, hops = int64(len(hetero.Seeds())), int64(hetero.Relations()), int64(hetero.Hops())
		}
		if length := 6*kinds + 8*relations*hops + 1; list == 0 || hops < 1 || hops > cuda.MostHops || count != length {
			return Errorf(KindValue, "list: expected %d integers at an address, got %d at %#x", length, count, list)
		}
		to := spreadAt(memory.View[int64](list, count), kinds, relations, hops)
		if is {
			return hetero.Place(to)
		}
		nodes := to.Kinds[0]
		s.plain = &cuda.Spread{
			Nodes: nodes.Nodes, OutputNodes: nodes.OutputNodes, OutputIndex: nodes.OutputIndex, Outputs: nodes.Outputs, Counts: to.Counts,
		}
		for _, hop := range to.Blocks {
			s.plain.Blocks = append(s.plain.Blocks, hop[0].SpreadBlock)
		}
		return nil
	})
}

// spreadAt is the arrays of a list, as Place says.
func spreadAt(w []int64, kinds, relations, hops int64) *cuda.SpreadHetero {
	to := new(cuda.SpreadHetero)
	for range kinds {
		to.Kinds = append(to.Kinds, cuda.SpreadKind{
			Nodes: gpu.Address(w[0]), Trees: gpu.Address(w[1]), OutputNodes: gpu.Address(w[2]), OutputIndex: gpu.Address(w[3]),
			Size: uint64(max(w[4], 0)), Outputs: uint64(max(w[5], 0)),
		})
		w = w[6:]
	}
	for range hops {
		var hop []cuda.SpreadHeteroBlock
		for range relations {
			hop = append(hop, cuda.SpreadHeteroBlock{
				SpreadBlock: cuda.SpreadBlock{
					Indptr: gpu.Address(w[0]), Indices: gpu.Address(w[1]), EdgeIDs: gpu.Address(w[2]),
					Size: cuda.BlockSize{Src: uint64(max(w[5], 0)), Dst: uint64(max(w[6], 0)), Edges: uint64(max(w[7], 0))},
				},
				EdgeWeights: gpu.Address(w[3]), DstNodes: gpu.Address(w[4]),
			})
			w = w[8:]
		}
		to.Blocks = append(to.Blocks, hop)
	}
	to.Counts = gpu.Address(w[0])
	return to
}

// Fill copies the next batch to where Place has said.
func (s *DeviceStatic) Fill(stream int64) error {
	return s.with(stream, func(made cuda.Standing, on gpu.Stream) error {
		if hetero, is := made.(*cuda.StaticHetero); is {
			return hetero.Spread(on)
		}
		if s.plain == nil {
			return Errorf(KindValue, "static: expected a place for batches, got none")
		}
		return made.(*cuda.Static).Spread(s.plain, on)
	})
}

// Edges writes the edges of a block one by one, as integers of so many bits. At the address list
// are where its indptr, indices and edge ids are, how many sources, destinations and edges have room, the address of its
// count of destinations, and where sources, or 0, and destinations go.
func (s *DeviceStatic) Edges(bits, list, stream int64) error {
	if list == 0 || bits != 32 && bits != 64 {
		return Errorf(KindValue, "list: expected a block at an address and 32 or 64 bits, got %#x and %d", list, bits)
	}
	w := memory.View[int64](list, 9)
	x := &cuda.StaticEdges{
		Block: cuda.SpreadBlock{
			Indptr: gpu.Address(w[0]), Indices: gpu.Address(w[1]), EdgeIDs: gpu.Address(w[2]),
			Size: cuda.BlockSize{Src: uint64(w[3]), Dst: uint64(w[4]), Edges: uint64(w[5])},
		},
		NumDst: gpu.Address(w[6]), Sources: gpu.Address(w[7]), Destinations: gpu.Address(w[8]), Bits: int(bits),
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

// EdgeBits is how wide the ids of a relation's edges are; without types there is relation 0 alone.
func (s *DeviceStatic) EdgeBits(relation int64) (bits int64, err error) {
	err = s.with(0, func(made cuda.Standing, _ gpu.Stream) error {
		hetero, is := made.(*cuda.StaticHetero)
		relations := 1
		if is {
			relations = hetero.Relations()
		}
		if relation < 0 || relation >= int64(relations) {
			return Errorf(KindValue, "relation: expected one of %d, got %d", relations, relation)
		}
		if is {
			bits = int64(hetero.EdgeBits(int(relation)))
		} else {
			bits = int64(made.(*cuda.Static).EdgeBits())
		}
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
