package pygsampler

import (
	"sync"
	"time"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
)

// DeviceStatic samples batches of a graph on a device by launches that a CUDA graph can capture:
// cuda.Static, or cuda.StaticHetero. It is closed at the latest with the graphs that it reads; its
// methods are serialized.
type DeviceStatic struct {
	graph *Graph
	mu    sync.Mutex
	made  cuda.StaticPass // nil: closed
	plain *cuda.Spread    // of a cuda.Static where its batches go; nil: not placed
}

// Words of the list that describes a static batch. The sizes are at an address, as newStatic and newStaticHetero have them.
const (
	staticGraph = iota // handles
	staticSampler
	staticPlain  // not 0: the kernel for homogeneous graphs without times
	staticSorted // as a Request has it
	staticSeeds  // for that kernel alone: at most so many
	staticSeedBits
	staticHops
	staticSizes
	staticWords
)

// NewStaticAt allocates batches as the list at an address describes them; find returns the graph
// and the sampler of handles.
func NewStaticAt(list int64, find func(graph, sampler int64) (*Graph, *Sampler, error)) (*DeviceStatic, error) {
	if list == 0 {
		return nil, Errorf(KindValue, "static: expected an address, got 0")
	}
	w := memory.View[int64](list, staticWords)
	g, p, err := find(w[staticGraph], w[staticSampler])
	if err != nil {
		return nil, err
	}
	if err := p.checkOnDevice(g); err != nil {
		return nil, err
	}
	if g.csc.Schema != nil || w[staticPlain] == 0 {
		return newStaticHetero(g, p, w[staticSorted], w[staticSeedBits], w[staticHops], w[staticSizes])
	}
	return newStatic(g, p, w[staticSeeds], w[staticSeedBits], w[staticHops], w[staticSizes])
}

// hold makes what makes batches of a graph on a device, which all its relations see to the end of.
func hold(g *Graph, f func() (cuda.StaticPass, error)) (*DeviceStatic, error) {
	// None is closed before it is known there.
	if err := enterAll(g.relations); err != nil {
		return nil, err
	}
	defer leaveAll(g.relations)
	s, err := &DeviceStatic{graph: g}, error(nil)
	if s.made, err = f(); err != nil {
		return nil, onDevice(err)
	}
	for _, r := range g.relations {
		r.mu.Lock()
		closed := r.closed
		if r.static == nil {
			r.static = make(map[*DeviceStatic]struct{})
		}
		r.static[s] = struct{}{}
		r.mu.Unlock()
		if closed {
			s.Close()
			return nil, Errorf(KindClosed, "graph: expected an open graph, got a closed one")
		}
	}
	return s, nil
}

// newStatic allocates batches of up to seeds seeds, each of seedBits. The address most holds 3
// integers for each block, outermost first: the maximal numbers of sources, destinations and edges.
func newStatic(g *Graph, p *Sampler, seeds, seedBits, count, most int64) (*DeviceStatic, error) {
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
	return hold(g, func() (cuda.StaticPass, error) { return g.device.engine.NewStatic(g.device.graph, options) })
}

// with calls f with what is open, and a stream.
func (s *DeviceStatic) with(stream int64, f func(cuda.StaticPass, gpu.Stream) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		return Errorf(KindClosed, "static: expected an open graph and loader, got closed ones")
	}
	to, err := s.graph.device.engine.Context().Wrap(uintptr(stream))
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
	epochSeedTypes        // of a cuda.StaticHetero: of each batch how many of its seeds are of which type
	epochExclude          // int64 ids of edges that are not sampled
	epochStarts           // where those of each batch and relation begin, and the end of all; 0: there are none
	epochNumber
	epochFirst // the number of its first batch, and how far apart numbers are
	epochStride
	epochStream
	epochWords
)

// Begin starts an epoch over seeds at an address of the device, as the list at an address describes
// it.
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
	return s.with(w[epochStream], func(made cuda.StaticPass, to gpu.Stream) error {
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

// parts returns the parts of an epoch over numSeeds seeds on the device, each with at most most
// seeds.
func (s *DeviceStatic) parts(seeds, numSeeds, count, parts, most int64) ([]cuda.Seeds, error) {
	all := make([]cuda.Seeds, count)
	if count == 0 {
		return all, nil
	}
	if err := readable("seeds", seeds, s.graph.device.index); err != nil {
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

// Sample enqueues the next batch.
func (s *DeviceStatic) Sample(stream int64) error {
	return s.with(stream, func(made cuda.StaticPass, to gpu.Stream) error { return made.Sample(to) })
}

// Place sets the addresses that batches are copied to, for Fill. The address list holds for each
// node type 6 integers: the addresses of its nodes, their trees, the seeds and their positions, the
// room for nodes and the number of seeds; then for each block, outermost first, and each relation
// 8: the addresses of indptr, indices, edge ids, factors and destinations, and the room for
// sources, destinations and edges; then the address of the counts. Trees, factors and destinations
// are 0 if there are none; a homogeneous graph has one type and one relation.
func (s *DeviceStatic) Place(count, list int64) error {
	return s.with(0, func(made cuda.StaticPass, _ gpu.Stream) error {
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
		nodes := to.NodeTypes[0]
		s.plain = &cuda.Spread{
			Nodes: nodes.Nodes, OutputNodes: nodes.OutputNodes, OutputIndex: nodes.OutputIndex, Outputs: nodes.Outputs, Counts: to.Counts,
		}
		for _, hop := range to.Blocks {
			s.plain.Blocks = append(s.plain.Blocks, hop[0].SpreadBlock)
		}
		return nil
	})
}

// spreadAt returns the arrays of a list, as in Place.
func spreadAt(w []int64, kinds, relations, hops int64) *cuda.SpreadHetero {
	to := new(cuda.SpreadHetero)
	for range kinds {
		to.NodeTypes = append(to.NodeTypes, cuda.SpreadNodeType{
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

// Fill copies the next batch to the addresses of Place.
func (s *DeviceStatic) Fill(stream int64) error {
	return s.with(stream, func(made cuda.StaticPass, on gpu.Stream) error {
		if hetero, is := made.(*cuda.StaticHetero); is {
			return hetero.Spread(on)
		}
		if s.plain == nil {
			return Errorf(KindValue, "static: expected a place for batches, got none")
		}
		return made.(*cuda.Static).Spread(s.plain, on)
	})
}

// Edges writes the edges of a block as a list, as integers of bits bits. The address list holds the
// addresses of its indptr, indices and edge ids, the room for sources, destinations and edges, the
// address of its count of destinations, and the addresses of the sources, or 0, and of the
// destinations.
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
	return s.with(stream, func(made cuda.StaticPass, on gpu.Stream) error { return made.Edges(x, on) })
}

// Wait waits up to timeout milliseconds for batch i of the epoch to be sampled, and copies count
// words that describe it to an address. state is 0 while it is running, 1 if it is complete, and 2
// if it is too large.
func (s *DeviceStatic) Wait(i, timeout, count, words int64) (state int64, err error) {
	if words == 0 || count < 1 {
		return 0, Errorf(KindValue, "words: expected an address for some, got %#x for %d", words, count)
	}
	err = s.with(0, func(made cuda.StaticPass, _ gpu.Stream) error {
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

// EdgeBits returns the width of the edge ids of a relation; a homogeneous graph has relation 0
// only.
func (s *DeviceStatic) EdgeBits(relation int64) (bits int64, err error) {
	err = s.with(0, func(made cuda.StaticPass, _ gpu.Stream) error {
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

// Close releases the memory, once the device has completed its work.
func (s *DeviceStatic) Close() {
	s.mu.Lock()
	made := s.made
	s.made = nil
	s.mu.Unlock()
	if made == nil {
		return
	}
	// The next use of the device reports errors of this work.
	_ = made.Close()
	for _, r := range s.graph.relations {
		r.mu.Lock()
		delete(r.static, s)
		r.mu.Unlock()
	}
}

// newStaticHetero allocates batches of the kernel of heterogeneous graphs, whose seeds have
// seedBits each. It samples a homogeneous graph as a graph of one type, for batches that newStatic
// does not support: edges with times, factors, subgraphs. The address most holds integers: the
// maximal number of seeds of each node type; then for each of count blocks, outermost first, the
// maximal numbers of nodes of each type and of edges of each relation. sorted is as in a Request.
func newStaticHetero(g *Graph, p *Sampler, sorted, seedBits, count, most int64) (*DeviceStatic, error) {
	given, err := g.times(&Request{Sorted: sorted})
	if err != nil {
		return nil, err
	}
	by, is := p.Plan.(interface {
		Static(g *csc.Graph, t *plan.Times, keys []gpu.Address) (*cuda.Hetero, error)
	})
	alone := aloneOf(p)
	if !is && (alone == nil || given != nil) {
		return nil, Errorf(KindValue, `static: expected a sampler of neighbours of mode "auto" or "persistent", and times where it reads them, got another`)
	}
	return hold(g, func() (cuda.StaticPass, error) {
		made := alone
		if is {
			keys, err := g.keys(given)
			if err != nil {
				return nil, err
			}
			if made, err = by.Static(&g.csc, given, keys); err != nil {
				return nil, err
			}
		}
		return g.standing(p, made, seedBits, count, most)
	})
}

// aloneOf is a sampler of neighbors of homogeneous graphs as one of a graph of one type; nil for others.
func aloneOf(p *Sampler) *cuda.Hetero {
	var hops cuda.Neighbors
	made := new(cuda.Hetero)
	switch plan := p.CUDA().(type) {
	case *cuda.Neighbors:
		hops = *plan
	case *cuda.Factors:
		hops, made.EdgeWeights = plan.Neighbors, true
	default:
		return nil
	}
	made.Fanouts, made.Replace, made.OnlyNew, made.Disjoint = [][]int64{hops.Fanouts}, hops.Replace, hops.OnlyNew, hops.Disjoint
	return made
}

// standing allocates the batches of a plan, like newStaticHetero.
func (g *Graph) standing(p *Sampler, plan *cuda.Hetero, seedBits, count, most int64) (cuda.StaticPass, error) {
	kinds, relations := 1, len(plan.Fanouts)
	if g.csc.Schema != nil {
		kinds = len(g.csc.NodeTypes)
	}
	switch {
	case seedBits != 32 && seedBits != 64:
		return nil, Errorf(KindValue, "static: expected seeds of 32 or 64 bits, got %d", seedBits)
	case relations == 0 || count != int64(len(plan.Fanouts[0])) || most == 0:
		return nil, Errorf(KindValue, "static: expected sizes of each hop of some relations at an address, got %d at %#x", count, most)
	}
	sizes := memory.View[int64](most, int64(kinds)+count*int64(kinds+relations))
	for i, n := range sizes {
		if n < 0 {
			return nil, Errorf(KindValue, "static: expected sizes >= 0, got %d at place %d", n, i)
		}
	}
	take := func(n int) []int64 {
		own := append([]int64(nil), sizes[:n]...)
		sizes = sizes[n:]
		return own
	}
	plan.Seeds, plan.Excluded = take(kinds), nil
	options := cuda.StaticHeteroPlan{Plan: plan, Seed: p.Seed, SeedBits: int(seedBits)}
	for range count {
		options.Vertices = append(options.Vertices, take(kinds))
		options.Edges = append(options.Edges, take(relations))
	}
	return g.device.engine.NewStaticHetero(g.hetero(), options)
}

// beginHetero is Begin for a cuda.StaticHetero.
func (s *DeviceStatic) beginHetero(made *cuda.StaticHetero, to gpu.Stream, w []int64) error {
	count, counts := w[epochCount], w[epochSeedTypes]
	if count > 0 && counts == 0 {
		return Errorf(KindValue, "static: expected an address of the seeds of each type, got 0 for %d batches", count)
	}
	all, err := s.parts(w[epochSeeds], w[epochNumSeeds], count, w[epochParts], w[epochNumSeeds])
	if err != nil {
		return err
	}
	most := made.Seeds()
	var of []int64
	if count > 0 {
		of = memory.View[int64](counts, count*int64(len(most)))
	}
	for i, part := range all {
		own, left := of[i*len(most):][:len(most)], part.Count
		for t, n := range own {
			if left -= n; n < 0 || n > most[t] {
				return Errorf(KindValue, "static: batch %d: expected at most %d seeds of type %d, got %d", i, most[t], t, n)
			}
		}
		if left != 0 {
			return Errorf(KindValue, "static: batch %d: expected counts that add up to %d seeds, got %v", i, part.Count, own)
		}
	}
	epoch := &cuda.HeteroPass{
		Parts: all, Counts: of, Epoch: uint32(w[epochNumber]), First: uint64(w[epochFirst]), Stride: uint64(w[epochStride]),
	}
	if w[epochTimes] != 0 {
		if epoch.Keys, err = seedKeys(w[epochTimes], w[epochNumSeeds], made.FloatTimes()); err != nil {
			return err
		}
	}
	if w[epochStarts] != 0 {
		if epoch.Excluded, epoch.ExcludedAt, err = s.excluded(w[epochExclude], w[epochStarts], count*int64(made.Relations())); err != nil {
			return err
		}
	}
	return made.Begin(to, gpu.Address(w[epochSeeds]), epoch)
}

// excluded returns the positions of the edges of several lists, the relations alternating, and the
// offset of each list.
func (s *DeviceStatic) excluded(ids, starts, lists int64) (positions, at []int64, err error) {
	bounds := memory.View[int64](starts, lists+1)
	for i, from := range bounds[:lists] {
		if from < 0 || bounds[i+1] < from || bounds[i+1] > from && ids == 0 {
			return nil, nil, Errorf(KindValue, "exclude: expected lists one behind another at an address, got %#x from %d to %d", ids, from, bounds[i+1])
		}
	}
	positions, at = make([]int64, 0, bounds[lists]-bounds[0]), make([]int64, 1, lists+1)
	for i, from := range bounds[:lists] {
		own := memory.View[int64](ids, bounds[i+1])[from:]
		found, err := s.graph.relations[i%len(s.graph.relations)].device.positions(own)
		if err != nil {
			return nil, nil, err
		}
		positions = append(positions, found...)
		at = append(at, int64(len(positions)))
	}
	return positions, at, nil
}
