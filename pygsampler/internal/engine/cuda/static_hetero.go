package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// heteroPass is the part of a HeteroState that an epoch initializes.
type heteroPass struct {
	Seeds, Steps, Counts, Times, Excluded, ExcludedAt gpu.Address
	NumSteps, Sampled, Spread                         uint64
}

// heteroState mirrors HeteroState in kernels/static/static_hetero.cu.
type heteroState struct {
	Pass              heteroPass
	Launches          uint64
	Turned, Spreading uint32
	Batch             heteroArgs
}

// staticHeteroArgs mirrors StaticHeteroArgs.
type staticHeteroArgs struct{ Batch gpu.Address }

// heteroLimit mirrors HeteroLimit.
type heteroLimit struct{ Word, Most uint64 }

// heteroTurnArgs mirrors HeteroTurnArgs.
type heteroTurnArgs struct {
	State, Kinds, Relations, Limits, Reports, Told gpu.Address
	MapWords, OutBytes, SeedBytes                  uint64
	Words, NumLimits, First, Tags                  uint32
	Batch                                          heteroArgs
}

// Padding values of arrays, as in static_hetero.cu.
const (
	fillPlace = iota
	fillWord
	fillBehind
)

// wordOfZero is a word of the header that is 0 in batches of heterogeneous graphs.
const wordOfZero = batch.WordNumExtras

// chunkBytes is the number of bytes that a block copies at a time.
const chunkBytes = 4 * staticThreads * 16

// heteroPiece mirrors HeteroPiece.
type heteroPiece struct {
	To                                   gpu.Address
	Room, Modulus, Chunk                 uint64
	From, Count, More, Fill, Value, Bits uint32
	Skip, _                              uint32
}

// heteroSpreadArgs mirrors HeteroSpreadArgs.
type heteroSpreadArgs struct {
	State, Reports, Out         gpu.Address
	OutBytes                    uint64
	Pieces, CountWords, Counts  gpu.Address
	Chunks                      uint64
	Words, NumPieces, NumCounts uint32
	_                           uint32
}

// staticHeteroKernels are the kernels of kernels/static/static_hetero.cu.
type staticHeteroKernels struct {
	sample [2][2]gpu.Kernel[staticHeteroArgs] // as heteroKernels has them
	turn   gpu.Kernel[heteroTurnArgs]
	spread gpu.Kernel[heteroSpreadArgs]
	room   int // dynamic shared memory that a block of those that sample may have
}

func loadStaticHetero(e *Engine) (k *staticHeteroKernels, err error) {
	const file = "static_hetero"
	k = new(staticHeteroKernels)
	static := 0
	var all []gpu.Function
	for i, suffix := range []string{"", "_all"} {
		for j, bits := range []string{"32", "64"} {
			if k.sample[i][j], err = KernelOf[staticHeteroArgs](e, file, file+bits+suffix, 0); err != nil {
				return nil, err
			}
			bytes, err := k.sample[i][j].Attribute(gpu.SharedBytes)
			if err != nil {
				return nil, err
			}
			static, all = max(static, bytes), append(all, k.sample[i][j].Function)
		}
	}
	k.room = e.context.Properties().SharedPerBlockOptIn - static
	if _, err := allow(all, k.room); err != nil {
		return nil, err
	}
	if k.turn, err = KernelOf[heteroTurnArgs](e, file, file+"_turn", 0); err != nil {
		return nil, err
	}
	k.spread, err = KernelOf[heteroSpreadArgs](e, file, file+"_spread", 0)
	return k, err
}

// StaticHeteroPlan says which batches a StaticHetero samples, and their maximal sizes.
type StaticHeteroPlan struct {
	Plan     *Hetero // Seeds are how many a batch has of each type at most
	Seed     uint64
	SeedBits int // of each, 32 or 64
	// Vertices and Edges hold, for each block, outermost first, the maximal number of nodes of each
	// type and of edges of each relation.
	Vertices, Edges [][]int64
	Grid            int // blocks of a launch; 0 for a good number
}

// rows returns the maximal number of destinations of a type in block i, for a graph with the
// relations of.
func (p *StaticHeteroPlan) rows(of []csc.EdgeType, i, kind int) int64 {
	if i+1 == len(p.Vertices) {
		return p.Plan.Seeds[kind]
	}
	if !p.Plan.OnlyNew {
		return p.Vertices[i+1][kind]
	}
	// Each was found by an edge of the hop before.
	found := int64(0)
	for r, n := range p.Edges[i+1] {
		if of[r].Src == kind {
			found += n
		}
	}
	return min(found, p.Vertices[i+1][kind])
}

// sources returns the maximal number of sources of a type in block i. If a hop expands the result
// of the previous hop, local ids are the same in all blocks, and so is their number: edges of
// padding end after the whole batch in each block.
func (p *StaticHeteroPlan) sources(i, kind int) int64 {
	if p.Plan.OnlyNew {
		return p.Vertices[0][kind]
	}
	return p.Vertices[i][kind]
}

// numSeeds returns the maximal number of seeds of all types in a batch.
func (p *StaticHeteroPlan) numSeeds() (all int64) {
	for _, n := range p.Plan.Seeds {
		all += n
	}
	return all
}

// StaticHetero samples static batches, like Static, of a heterogeneous graph.
type StaticHetero struct {
	passes
	plan   StaticHeteroPlan
	own    *staticHeteroKernels
	limits buffer
	pieces buffer
	table  gpu.Pinned // limits, or pieces, on their way

	excluded  buffer // of an epoch
	excluding bool   // some pass had such edges, and the tables have them

	turns  heteroTurnArgs
	spread heteroSpreadArgs
	kernel gpu.Kernel[staticHeteroArgs]
	shape  gpu.Shape
}

// NewStaticHetero allocates such batches. Their kernels are loaded and have their memory when it
// returns, so that launches can be captured.
func (e *Engine) NewStaticHetero(g *Graph, p StaticHeteroPlan) (s *StaticHetero, err error) {
	if err := p.Plan.Check(g, &Call{}); err != nil {
		return nil, err
	}
	if hops := p.Plan.hops(); hops < 1 || len(p.Vertices) != hops || len(p.Edges) != hops {
		return nil, fmt.Errorf("%w: static: expected sizes of %d hops, got %d and %d", request.ErrValue, hops, len(p.Vertices), len(p.Edges))
	}
	s = &StaticHetero{passes: passes{engine: e, graph: g, words: ReportHeader + p.Plan.Words()}, plan: p}
	// Their one for the edges of a block is for these batches too.
	if s.kernels, err = staticOf(e); err != nil {
		return nil, err
	}
	if s.own, err = Cached(e, "static_hetero", loadStaticHetero); err != nil {
		return nil, err
	}
	if tablesOf(len(g.schema.NodeTypes), len(g.relations))+drawBytes(0) > s.own.room {
		return nil, fmt.Errorf("%w: static: expected a graph of fewer types on this GPU, whose blocks have %d bytes of shared memory", request.ErrValue, s.own.room)
	}
	if s.space, err = e.borrow(g); err != nil {
		return nil, err
	}
	if err = s.begin(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// needs returns the needs of a batch that fits.
func (p *StaticHeteroPlan) needs(g *Graph) Needs {
	about, width, place := g.schema, g.Widths(), batch.Place(8*p.Plan.Words())
	seeds := p.numSeeds()
	n := Needs{Rows: max(seeds, 64), Edges: max(seeds, 64), Ranks: seeds}
	for t, most := range p.Plan.Seeds {
		place.Next(width.Nodes(most))
		place.Next(width.Nodes(most))
		place.Next(width.Nodes(p.Vertices[0][t]))
		if p.Plan.Disjoint {
			place.Next(width.Nodes(p.Vertices[0][t]))
		}
	}
	for i := range p.Edges {
		rows, edges := int64(0), int64(0)
		for r, relation := range about.EdgeTypes {
			dst, most := p.rows(about.EdgeTypes, i, relation.Dst), p.Edges[i][r]
			indptr, indices, ids := batch.Widths{ID: width.ID, EdgeID: int64(g.relations[r].SampleBits() / 8)}.Block(dst, most)
			place.Next(indptr)
			place.Next(indices)
			place.Next(ids)
			if p.Plan.EdgeWeights {
				place.Next(batch.EdgeWeights(most))
			}
			rows, edges = rows+dst, edges+most
		}
		n.Rows, n.Edges, n.Ranks = max(n.Rows, rows), max(n.Edges, edges), n.Ranks+edges
	}
	for _, most := range p.Vertices[0] {
		n.Rows = max(n.Rows, most)
	}
	n.Out = uint64(place.Aligned())
	return n
}

// begin makes memory and the arguments of launches.
func (s *StaticHetero) begin() error {
	g, w, p := s.graph, s.space, &s.plan
	n := p.needs(g)
	if n.Ranks >= MostEdges {
		return fmt.Errorf("%w: static: expected fewer than 2^31 edges in a batch, got room for %d", request.ErrOverflow, n.Ranks)
	}
	if err := p.Plan.fit(g, w, n, w.stream); err != nil {
		return err
	}
	m, trees := &SpaceOf[hopSpace](w).wide, SpaceOf[disjointSpace](w)
	if p.Plan.Disjoint {
		seeds := p.numSeeds()
		if err := trees.room(g, w, seeds, n.Ranks-seeds, w.stream); err != nil {
			return err
		}
		m = trees.asMap()
	}
	if _, err := m.tag(w, g.Nodes, 32, w.stream); err != nil {
		return err
	}
	mapWords, tags := uint64(m.nodes)*uint64(m.bits/32), uint32(uint64(1)<<(m.bits-m.shift)-1)
	if p.Plan.Disjoint {
		// Every batch empties its table.
		mapWords, tags = 2<<trees.bits, 1
	}
	tables := SpaceOf[heteroSpace](w)
	relations, _, _, _ := p.Plan.tableBytes()
	if err := tables.send(w.stream, p.Plan.describe(g, w)); err != nil {
		return err
	}
	if err := s.fit(uint64(unsafe.Sizeof(heteroState{})), n.Out); err != nil {
		return err
	}
	limits := p.limits()
	bytes := uint64(len(limits)) * uint64(unsafe.Sizeof(heteroLimit{}))
	at, err := s.upload(&s.limits, bytes)
	if err != nil {
		return err
	}
	copy(unsafe.Slice((*heteroLimit)(at), len(limits)), limits)
	if err := s.uploaded(&s.limits, bytes); err != nil {
		return err
	}
	all := Word(p.Plan.all(g))
	s.kernel = s.own.sample[all][g.Wide()]
	args, shared := p.Plan.arguments(g, w, m, s.own.room)
	args.Out, args.OutCapacity, args.Report, args.SeedBits = s.out.Address, n.Out, s.reports.Address, uint32(p.SeedBits)
	s.turns = heteroTurnArgs{
		State: s.state.Address, Kinds: tables.tables.Address,
		Relations: tables.tables.Address + gpu.Address(relations), Limits: s.limits.Address, Reports: s.reports.Address, Told: s.told.Address,
		MapWords: mapWords, OutBytes: n.Out, SeedBytes: uint64(p.SeedBits / 8),
		Words: uint32(s.words), NumLimits: uint32(len(limits)), Tags: tags, Batch: args,
	}
	together, err := s.kernel.Occupancy(threads, shared)
	if err != nil {
		return err
	}
	s.shape = s.beside(p.Grid, together, shared)
	return nil
}

// limits are the words of a batch's header that may not be larger than what there is room for.
func (p *StaticHeteroPlan) limits() (limits []heteroLimit) {
	l := p.Plan.layout()
	for i := range p.Vertices {
		for t, most := range p.Vertices[i] {
			limits = append(limits, heteroLimit{uint64(l.Count(t, l.Hops-i)), uint64(most)})
		}
		for r, most := range p.Edges[i] {
			limits = append(limits, heteroLimit{uint64(l.Block(i, r) + batch.BlockNumEdges), uint64(most)})
		}
	}
	for t, most := range p.Plan.Seeds {
		limits = append(limits, heteroLimit{uint64(l.Type(t) + batch.TypeNumOutput), uint64(most)})
	}
	return limits
}

// upload returns the address to write bytes bytes of a table to, for the upload to a buffer with
// room for them.
func (s *StaticHetero) upload(to *buffer, bytes uint64) (at unsafe.Pointer, err error) {
	if s.table.Size < bytes {
		if err := s.table.Close(); err != nil {
			return nil, err
		}
		if s.table, err = s.engine.context.AllocPinned(2 * bytes); err != nil {
			return nil, err
		}
	}
	return s.table.Pointer, to.fit(s.space, bytes, s.space.stream)
}

// uploaded has them be there.
func (s *StaticHetero) uploaded(to *buffer, bytes uint64) error {
	stream := s.space.stream
	return errors.Join(stream.Upload(to.Address, s.table.Pointer, bytes), stream.Synchronize())
}

// HeteroPass is an epoch over seeds on the device, which are stored batch after batch.
type HeteroPass struct {
	Parts  []Seeds
	Counts []int64 // of each part how many of its seeds are of which type, in whose order they stand
	Keys   []int64 // of the times of all seeds; nil: they have none
	// Excluded holds the CSC positions to sample around, in ascending order, for each part and
	// relation, and ExcludedAt their offsets, with the end of all. Both are nil without exclusions.
	Excluded, ExcludedAt []int64
	Epoch                uint32
	First, Stride        uint64 // of the numbers of batches
}

// Begin starts an epoch, like Static.Begin.
func (s *StaticHetero) Begin(stream gpu.Stream, seeds gpu.Address, p *HeteroPass) error {
	parts, relations, keys := len(p.Parts), len(s.plan.Plan.Fanouts), p.Keys
	if timed := s.plan.Plan.Times != nil; parts > 0 && (keys != nil) != timed {
		return fmt.Errorf("%w: static: expected times of seeds where the sampler has time, and there alone", request.ErrValue)
	}
	if p.ExcludedAt != nil {
		if n := parts*relations + 1; len(p.ExcludedAt) != n || p.ExcludedAt[n-1] != int64(len(p.Excluded)) {
			return fmt.Errorf("%w: static: expected excluded edges of %d batches and %d relations, got those of %d together",
				request.ErrValue, parts, relations, len(p.ExcludedAt)-1)
		}
		s.excluding = true
	}
	const pass = uint64(unsafe.Sizeof(heteroPass{}))
	types := len(s.plan.Plan.Seeds)
	countsAt := stepBytes(p.Parts)
	keysAt := countsAt + uint64((parts+1)*types)*8
	excludedAt := keysAt + uint64(len(keys))*8
	bytes := excludedAt
	if s.excluding {
		bytes += uint64((parts+1)*relations+1) * 8
	}
	if err := s.stage(stream, pass, bytes); err != nil {
		return err
	}
	begun := heteroPass{Seeds: seeds, Steps: s.steps.Address, Counts: s.steps.Address + gpu.Address(countsAt), NumSteps: uint64(parts)}
	if keys != nil {
		begun.Times = s.steps.Address + gpu.Address(keysAt)
	}
	numbers := func(at uint64, count int) []int64 {
		return unsafe.Slice((*int64)(unsafe.Add(s.staged.Pointer, pass+at)), count)
	}
	if s.excluding {
		if err := s.exclude(stream, p.Excluded); err != nil {
			return err
		}
		begun.Excluded, begun.ExcludedAt = s.excluded.Address, s.steps.Address+gpu.Address(excludedAt)
		of := numbers(excludedAt, (parts+1)*relations+1)
		// The step behind the last has none; of a pass without some no step has.
		for i := copy(of, p.ExcludedAt); i < len(of); i++ {
			of[i] = int64(len(p.Excluded))
		}
	}
	*(*heteroPass)(s.staged.Pointer) = begun
	s.write(pass, p.Parts, s.plan.Seed, p.Epoch, p.First, p.Stride)
	of := numbers(countsAt, (parts+1)*types)
	clear(of[copy(of, p.Counts):])
	copy(numbers(keysAt, len(keys)), keys)
	if err := s.send(stream, pass, bytes); err != nil {
		return err
	}
	return s.turn(stream, 1)
}

// exclude uploads the excluded positions of an epoch; the stream must no longer use the previous
// ones.
func (s *StaticHetero) exclude(stream gpu.Stream, positions []int64) error {
	bytes := uint64(len(positions)) * 8
	if err := s.excluded.fit(s.space, max(bytes, 8), stream); err != nil || bytes == 0 {
		return err
	}
	// They may be many, and need not be page-locked: the epoch begins after the upload.
	return errors.Join(stream.Upload(s.excluded.Address, unsafe.Pointer(&positions[0]), bytes), stream.Synchronize())
}

// turn hands a report on and prepares the next batch, or, first, only does the latter.
func (s *StaticHetero) turn(stream gpu.Stream, first uint32) error {
	args := s.turns
	args.First = first
	processors := uint32(s.engine.context.Properties().Multiprocessors)
	return s.own.turn.Launch(stream, gpu.Shape{Grid: [3]uint32{processors}, Block: [3]uint32{staticThreads}}, &args)
}

// Sample enqueues the next batch of the epoch; after the last batch, batches have no seeds.
func (s *StaticHetero) Sample(stream gpu.Stream) error {
	args := staticHeteroArgs{s.state.Address + gpu.Address(unsafe.Offsetof(heteroState{}.Batch))}
	if err := s.kernel.Launch(stream, s.shape, &args); err != nil {
		return err
	}
	return s.turn(stream, 0)
}

// SpreadHetero holds the arrays of fixed sizes that batches are copied to, at multiples of 16
// bytes.
type SpreadHetero struct {
	NodeTypes []SpreadNodeType
	Blocks    [][]SpreadHeteroBlock // of each block, outermost first, those of each relation
	// Counts is the address of 64-bit integers: the number of seeds of each type; then for each
	// block and relation the numbers of sources, destinations and edges; then for each type the
	// number of its nodes when each hop began, and at the end.
	Counts gpu.Address
}

// SpreadHeteroBlock holds the arrays of a block, and its factors, of Edges, if it has some. If a
// hop expands the result of the previous hop, the position of its destinations, of Dst, differs
// between batches, so that they have their own array, too.
type SpreadHeteroBlock struct {
	SpreadBlock
	EdgeWeights, DstNodes gpu.Address
}

// SpreadNodeType holds the arrays of a node type: of Size, and of Outputs each.
type SpreadNodeType struct {
	Nodes, OutputNodes, OutputIndex gpu.Address
	Trees                           gpu.Address // of Size too, where seeds have some
	Size, Outputs                   uint64
}

// Place sets the addresses that the batches of all epochs are copied to. It waits for the device,
// and must not be captured.
func (s *StaticHetero) Place(to *SpreadHetero) error {
	pieces, counts, err := s.plan.pieces(s.graph, to)
	if err != nil {
		return err
	}
	chunks := uint64(0)
	for i := range pieces {
		pieces[i].Chunk = chunks
		chunks += (pieces[i].Room*uint64(pieces[i].Bits/8) + chunkBytes - 1) / chunkBytes
	}
	size := uint64(len(pieces)) * uint64(unsafe.Sizeof(heteroPiece{}))
	bytes := size + uint64(len(counts))*8
	at, err := s.upload(&s.pieces, bytes)
	if err != nil {
		return err
	}
	copy(unsafe.Slice((*heteroPiece)(at), len(pieces)), pieces)
	copy(unsafe.Slice((*uint64)(unsafe.Add(at, size)), len(counts)), counts)
	s.spread = heteroSpreadArgs{
		State: s.state.Address, Reports: s.reports.Address, Out: s.out.Address, OutBytes: s.turns.OutBytes,
		Pieces: s.pieces.Address, CountWords: s.pieces.Address + gpu.Address(size), Counts: to.Counts, Chunks: chunks,
		Words: uint32(s.words), NumPieces: uint32(len(pieces)), NumCounts: uint32(len(counts)),
	}
	return s.uploaded(&s.pieces, bytes)
}

// pieces are the arrays, those that have room for something, and the words of what is counted.
func (p *StaticHeteroPlan) pieces(g *Graph, to *SpreadHetero) (pieces []heteroPiece, counts []uint64, err error) {
	about, l := g.schema, p.Plan.layout()
	if len(to.NodeTypes) != len(about.NodeTypes) || len(to.Blocks) != l.Hops {
		return nil, nil, fmt.Errorf("%w: static: expected arrays of %d types and %d hops, got %d and %d",
			request.ErrValue, len(about.NodeTypes), l.Hops, len(to.NodeTypes), len(to.Blocks))
	}
	add := func(x heteroPiece) {
		if x.To%16 != 0 {
			err = fmt.Errorf("%w: static: expected arrays at multiples of 16 bytes", request.ErrValue)
		}
		if x.Room > 0 {
			pieces = append(pieces, x)
		}
	}
	small := func(what string, i, j int) error {
		return fmt.Errorf("%w: static: %s %d of hop %d: expected more room than batches may need", request.ErrValue, what, j, i)
	}
	ids := uint32(g.IDBits)
	for t, k := range to.NodeTypes {
		if k.Outputs < uint64(p.Plan.Seeds[t]) || !roomy(k.Size, p.Vertices[0][t]) {
			return nil, nil, small("type", 0, t)
		}
		w, nodes := uint32(l.Type(t)), uint64(max(about.NodeTypes[t].Nodes, 1))
		add(heteroPiece{To: k.Nodes, Room: k.Size, Modulus: nodes, From: w + batch.TypeNodes, Count: w + batch.TypeNumNodes, Bits: ids})
		seeds := heteroPiece{To: k.OutputNodes, Room: k.Outputs, Modulus: nodes, From: w + batch.TypeOutputNodes, Count: w + batch.TypeNumOutput, Bits: ids}
		add(seeds)
		seeds.To, seeds.From, seeds.Modulus = k.OutputIndex, w+batch.TypeOutputIndex, max(k.Outputs, 1)
		add(seeds)
		if p.Plan.Disjoint {
			// Padding has the subgraph id of no seed.
			add(heteroPiece{
				To: k.Trees, Room: k.Size, Modulus: uint64(p.numSeeds()), From: w + batch.TypeSubgraphIDs, Count: w + batch.TypeNumNodes,
				Fill: fillWord, Value: wordOfZero, Bits: ids,
			})
		}
		counts = append(counts, uint64(w+batch.TypeNumOutput))
	}
	for i, hop := range to.Blocks {
		if len(hop) != l.Relations {
			return nil, nil, fmt.Errorf("%w: static: expected arrays of %d relations, got %d", request.ErrValue, l.Relations, len(hop))
		}
		for r, b := range hop {
			relation, w := about.EdgeTypes[r], uint32(l.Block(i, r))
			if b.Size.Edges < uint64(p.Edges[i][r]) || b.Size.Dst < uint64(p.rows(about.EdgeTypes, i, relation.Dst)) || !roomy(b.Size.Src, p.sources(i, relation.Src)) {
				return nil, nil, small("relation", i, r)
			}
			add(heteroPiece{
				To: b.Indptr, Room: b.Size.Dst + 1, From: w + batch.BlockIndptr, Count: w + batch.BlockNumDst, More: 1,
				Fill: fillWord, Value: w + batch.BlockNumEdges, Bits: ids,
			})
			behind := w + batch.BlockNumSrc
			if p.Plan.OnlyNew {
				behind = uint32(l.Type(relation.Src)) + batch.TypeNumNodes
				of := uint32(l.Type(relation.Dst))
				add(heteroPiece{
					To: b.DstNodes, Room: b.Size.Dst, Modulus: uint64(max(about.NodeTypes[relation.Dst].Nodes, 1)), From: of + batch.TypeNodes,
					Count: w + batch.BlockNumDst, Skip: w + batch.BlockFirstDst, Bits: ids,
				})
			}
			add(heteroPiece{
				To: b.Indices, Room: b.Size.Edges, Modulus: b.Size.Src, From: w + batch.BlockIndices, Count: w + batch.BlockNumEdges,
				Fill: fillBehind, Value: behind, Bits: ids,
			})
			add(heteroPiece{
				To: b.EdgeIDs, Room: b.Size.Edges, Modulus: uint64(max(g.relations[r].Edges, 1)), From: w + batch.BlockEdgeIDs,
				Count: w + batch.BlockNumEdges, Bits: uint32(g.relations[r].SampleBits()),
			})
			if p.Plan.EdgeWeights {
				add(heteroPiece{
					To: b.EdgeWeights, Room: b.Size.Edges, From: w + batch.BlockEdgeWeights, Count: w + batch.BlockNumEdges,
					Fill: fillWord, Value: wordOfZero, Bits: 32,
				})
			}
			for _, count := range []uint32{batch.BlockNumSrc, batch.BlockNumDst, batch.BlockNumEdges} {
				counts = append(counts, uint64(w+count))
			}
		}
	}
	for t := range to.NodeTypes {
		for hop := range l.Hops + 1 {
			counts = append(counts, uint64(l.Count(t, hop)))
		}
	}
	return pieces, counts, err
}

// roomy reports whether there is room for more than a batch may have; types without nodes in a
// batch need no room.
func roomy(room uint64, most int64) bool { return room > uint64(most) || most == 0 }

// Spread copies the next batch that has been sampled to the addresses of Place.
func (s *StaticHetero) Spread(stream gpu.Stream) error {
	args := s.spread
	if args.NumCounts == 0 {
		return fmt.Errorf("%w: static: expected arrays first", request.ErrValue)
	}
	grid := s.blocks(max(args.Chunks, 1) * staticThreads)
	return s.own.spread.Launch(stream, gpu.Shape{Grid: [3]uint32{grid}, Block: [3]uint32{staticThreads}}, &args)
}

// Close releases the memory, like Static.Close.
func (s *StaticHetero) Close() error {
	err := s.engine.context.Synchronize()
	stream := s.space.stream
	return errors.Join(err, s.limits.Free(stream), s.pieces.Free(stream), s.excluded.Free(stream), s.table.Close(), s.passes.Close())
}

// Seeds returns the maximal number of seeds of each type in a batch.
func (s *StaticHetero) Seeds() []int64 { return s.plan.Plan.Seeds }

// FloatTimes reports whether the times of seeds are float64.
func (s *StaticHetero) FloatTimes() bool { return s.plan.Plan.Times != nil && s.plan.Plan.Times.Float }

// Hops returns the number of blocks of each relation.
func (s *StaticHetero) Hops() int { return s.plan.Plan.hops() }

// Relations returns the number of relations.
func (s *StaticHetero) Relations() int { return len(s.plan.Plan.Fanouts) }

// EdgeBits returns the width of the edge ids of a relation.
func (s *StaticHetero) EdgeBits(relation int) int {
	return s.graph.relations[relation].SampleBits()
}
