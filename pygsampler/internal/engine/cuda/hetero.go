package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// heteroNodeType mirrors HeteroNodeType in kernels/hetero/hetero.cuh.
type heteroNodeType struct{ Nodes, Seeds, MapAt, ListAt uint64 }

// heteroRelation mirrors HeteroRelation.
type heteroRelation struct {
	Indptr, Indices, EdgeIDs                                 gpu.Address
	NumRows, NumEdges, ExcludedAt, NumExcluded, Salt         uint64
	IndptrBits, EdgeIDBits, OutEdgeBits, Source, Destination uint32
	_                                                        uint32
	Alias, Sums, Keys                                        gpu.Address
}

// heteroArgs mirrors HeteroArgs.
type heteroArgs struct {
	Kinds, Relations, Fanouts, Excluded, Seeds, Map, Counts gpu.Address
	Rows, Nodes, Firsts, Arrived, Slots                     gpu.Address
	Keys, Trees, EdgeSlots                                  gpu.Address
	SeedTimes, Bounds, EdgeBounds                           gpu.Address
	Out, Report, BadSeed                                    gpu.Address
	OutCapacity, RowCapacity, EdgeCapacity, NumSeeds        uint64
	Hops, Types, NumRelations, SeedBits                     uint32
	Replace, OnlyNew, Mixed, Direct                         uint32
	Key0, Key1, Batch0, Batch1, Tag                         uint32
	TableBits, TreeShift                                    uint32
	Before, Carry, Latest, Windowed, FloatTimes             uint32
	Factors, _                                              uint32
	Window                                                  float64
}

// NewHetero returns a heterogeneous graph of relations that are on the device. It holds none of
// them.
func (e *Engine) NewHetero(s *csc.Schema, relations []*Graph) *Graph {
	a := Arrays{IDBits: 64}
	if len(relations) > 0 {
		a.IDBits = relations[0].IDBits
	}
	for _, t := range s.NodeTypes {
		a.Nodes += t.Nodes
	}
	// A seed out of range claims the node that its type would begin with.
	a.Nodes++
	g := e.NewGraph(a)
	g.schema, g.relations = s, relations
	return g
}

// SingleType returns a heterogeneous view of the graph, with one unnamed node type and one edge type; it
// is valid as long as the graph.
func (g *Graph) SingleType() *Graph {
	g.made.Lock()
	defer g.made.Unlock()
	if g.alone == nil {
		s := &csc.Schema{NodeTypes: []csc.NodeType{{Nodes: g.Nodes}}, EdgeTypes: make([]csc.EdgeType, 1)}
		g.alone = g.engine.NewHetero(s, []*Graph{g})
	}
	return g.alone
}

// Keys returns the device's copy of the keys of the graph's edges by position, which are copied
// once.
func (g *Graph) Keys(edges []int64) (gpu.Address, error) {
	const name = "times"
	g.made.Lock()
	defer g.made.Unlock()
	if m, is := g.made.of[name]; is {
		return m.Address, nil
	}
	s, size := g.engine.stream, uint64(len(edges))*8
	m, err := g.engine.pool.Alloc(s, max(size, 8))
	if err != nil {
		return 0, err
	}
	// Batches in other streams read them too.
	if err := errors.Join(s.Upload(m.Address, unsafe.Pointer(unsafe.SliceData(edges)), size), s.Synchronize()); err != nil {
		return 0, errors.Join(err, m.Free(s))
	}
	if g.made.of == nil {
		g.made.of = make(map[string]gpu.Memory)
	}
	g.made.of[name] = m
	return m.Address, nil
}

// Hetero is the plan of neighbor sampling on a heterogeneous graph, for one call: all hops in one
// launch.
type Hetero struct {
	Fanouts          [][]int64 // of each relation those of its hops, outermost first
	Replace, OnlyNew bool
	Disjoint         bool
	EdgeWeights      bool    // a factor for each edge
	Seeds            []int64 // how many there are of each type, one behind another
	Excluded         []int64 // and positions to sample around of each relation; nil: none
	Times            *Times  // of a disjoint batch: which edges there are at a bound; nil: all
	// numbers follow the tables, in the place of the times of seeds: additional data of another
	// kernel's plan.
	numbers []int64
	// copies are csc.Copies of each relation, in the place of the edges' times; nil: the kernel
	// needs none.
	copies []gpu.Address
}

// Times says which edges of a row a bound admits: the rows of the graph are in the order of time.
type Times struct {
	times.Rule
	Float bool
	Keys  []gpu.Address // of each relation's edges by position, on the device; 0: they have no times
	Seeds []int64       // the key of each seed's bound
}

type heteroKernels struct {
	of       [2][2]gpu.Kernel[heteroArgs] // by whether they know weights, factors and trees, of int32 and of int64 ids
	room     int                          // dynamic shared memory that a block may have
	together int                          // blocks of any that a multiprocessor runs at a time, of usualTables
}

// usualTables is the shared memory of the tables of a graph of 64 types, which suffices for most
// graphs.
var usualTables = tablesOf(64, 64)

// tablesOf is the bytes of shared memory that the kernel's tables take.
func tablesOf(types, relations int) int { return 8 * (6*(max(types, relations)+1) + 4*types) }

func loadHetero(e *Engine) (k *heteroKernels, err error) {
	k = new(heteroKernels)
	var all []gpu.Function
	for i, suffix := range []string{"", "_all"} {
		for j, bits := range []string{"32", "64"} {
			if k.of[i][j], err = KernelOf[heteroArgs](e, "hetero", "hetero"+bits+suffix, 0); err != nil {
				return nil, err
			}
			all = append(all, k.of[i][j].Function)
		}
	}
	k.room, k.together, err = roomOf(e, all, drawBytes(Direct))
	return k, err
}

// roomOf returns the dynamic shared memory that a block of the kernels of heterogeneous graphs may
// have, which launches may use, and the number of blocks of any of them that a multiprocessor runs
// at a time, with usualTables and extra bytes.
func roomOf(e *Engine, kernels []gpu.Function, beside int) (room, together int, err error) {
	static := 0
	for _, f := range kernels {
		bytes, err := f.Attribute(gpu.SharedBytes)
		if err != nil {
			return 0, 0, err
		}
		static = max(static, bytes)
	}
	room = e.context.Properties().SharedPerBlockOptIn - static
	if _, err := allow(kernels, room); err != nil {
		return 0, 0, err
	}
	together = 2
	for _, f := range kernels {
		blocks, err := f.Occupancy(threads, min(beside+usualTables, room))
		if err != nil {
			return 0, 0, err
		}
		together = min(together, blocks)
	}
	return room, together, nil
}

func (g *Graph) heteroKernels() (*heteroKernels, error) {
	return Cached(g.engine, "hetero", loadHetero)
}

// LoadHetero loads the kernels for a heterogeneous graph, like Load.
func (g *Graph) LoadHetero() error {
	_, err := g.heteroKernels()
	return err
}

func (p *Hetero) hops() int {
	if len(p.Fanouts) == 0 {
		return 0
	}
	return len(p.Fanouts[0])
}

func (p *Hetero) layout() batch.Layout {
	return batch.Layout{Hops: p.hops(), Types: len(p.Seeds), Relations: len(p.Fanouts)}
}

// Check returns an error for requests that no kernel supports.
func (p *Hetero) Check(g *Graph, c *Call) error {
	if err := p.checkTypes(g); err != nil {
		return err
	}
	k, err := g.heteroKernels()
	if err != nil {
		return err
	}
	return g.typesFit(k.room, drawBytes(0))
}

func (p *Hetero) checkTypes(g *Graph) error {
	if g.schema == nil {
		return fmt.Errorf("%w: graph: expected a heterogeneous one, got a homogeneous one", request.ErrValue)
	}
	if hops := p.hops(); hops > MostHops {
		return fmt.Errorf("%w: fanouts: expected at most %d hops on a GPU, got %d", request.ErrValue, MostHops, hops)
	}
	return nil
}

// typesFit returns an error for graphs of more types than the tables of a block have room for,
// together with extra bytes.
func (g *Graph) typesFit(room, beside int) error {
	types, relations := len(g.schema.NodeTypes), len(g.relations)
	if need := tablesOf(types, relations) + beside; need > room {
		return fmt.Errorf("%w: graph: expected fewer types on this GPU, whose blocks have %d bytes of shared memory, got %d and %d, which take %d",
			request.ErrValue, room, types, relations, need)
	}
	return nil
}

// Words returns the number of words that describe a batch.
func (p *Hetero) Words() int { return p.layout().Words() }

// Shape returns the fanouts, and all other parameters that determine the number of edges.
func (p *Hetero) Shape() string {
	text := []byte{byte(Word(p.Replace)), byte(Word(p.OnlyNew)), byte(Word(p.Disjoint)), byte(Word(p.Times != nil)), byte(Word(p.EdgeWeights))}
	for _, fanouts := range p.Fanouts {
		for _, n := range fanouts {
			text = binary.AppendVarint(text, n)
		}
	}
	for _, n := range p.Seeds {
		text = append(text, byte(Word(n > 0)))
	}
	return string(text)
}

// Guess estimates the needs of a batch from rows of twice the mean degree.
func (p *Hetero) Guess(g *Graph, seeds int64) Needs {
	s := g.schema
	width, vertices := float64(g.IDBits/8), make([]float64, len(s.NodeTypes))
	out := float64(8*p.Words()) + 2*width*float64(seeds) + float64(3*batch.Alignment*len(s.NodeTypes))
	most, edges := float64(seeds), 0.0
	for t, n := range p.Seeds {
		vertices[t] = float64(n)
	}
	for hop := p.hops() - 1; hop >= 0; hop-- {
		more, rows, found := make([]float64, len(vertices)), 0.0, 0.0
		for i, r := range s.EdgeTypes {
			rule := request.Rule{Fanout: p.Fanouts[i][hop], Replace: p.Replace}
			takes := vertices[r.Dst] * rule.Mean(2*float64(g.relations[i].Edges)/float64(max(s.NodeTypes[r.Dst].Nodes, 1)))
			more[r.Src] += takes
			rows += vertices[r.Dst]
			found += takes
			out += (vertices[r.Dst]+1)*width + takes*(width+float64(g.relations[i].SampleBits()/8)) + 3*batch.Alignment
			if p.EdgeWeights {
				out += float64(batch.EdgeWeights(int64(min(takes, mostGuess)))) + batch.Alignment
			}
		}
		most, edges = max(most, rows), max(edges, found)
		for t := range vertices {
			if vertices[t] += more[t]; !p.Disjoint {
				vertices[t] = min(vertices[t], float64(s.NodeTypes[t].Nodes))
			}
		}
	}
	for _, n := range vertices {
		if out += n * width; p.Disjoint {
			out += n*width + batch.Alignment
		}
		most = max(most, n)
	}
	return Needs{Out: uint64(min(out, mostOut)), Rows: int64(min(most, mostRows)), Edges: int64(min(edges, mostGuess))}
}

// Used returns the sizes of the batch, plus a quarter.
func (p *Hetero) Used(f *Flight) Needs {
	words, l, s := f.batch.Header, p.layout(), f.graph.schema
	n := Needs{Out: uint64(words[batch.WordSize]) * 5 / 4, Arrived: true}
	for hop := range l.Hops {
		rows, edges := int64(0), int64(0)
		for r := range s.EdgeTypes {
			block := words[l.Block(hop, r):]
			rows += block[batch.BlockNumDst]
			edges += block[batch.BlockNumEdges]
		}
		n.Rows, n.Edges = max(n.Rows, rows*5/4), max(n.Edges, edges*5/4)
	}
	for t := range s.NodeTypes {
		n.Rows = max(n.Rows, words[l.Type(t)+batch.TypeNumNodes]*5/4)
	}
	return n
}

// Arrived handles no additional status.
func (p *Hetero) Arrived(_ *Flight, status, _ int64) (bool, error) {
	return false, fmt.Errorf("a kernel reported status %d: a fault of pygsampler", status)
}

// outside is the error of seed i, which is out of range.
func (p *Hetero) outside(f *Flight, i int64) error {
	s, place := f.graph.schema, i
	if s.NodeTypes[0].Name == "" {
		return fmt.Errorf("%w: seeds[%d]: expected an id in [0, %d), got %s", request.ErrIndex, i, s.NodeTypes[0].Nodes, f.seed(i))
	}
	for t, n := range p.Seeds {
		if place < n {
			return fmt.Errorf("%w: seeds[%q][%d]: expected an id in [0, %d), got %s", request.ErrIndex, s.NodeTypes[t].Name, place, s.NodeTypes[t].Nodes, f.seed(i))
		}
		place -= n
	}
	return fmt.Errorf("seed %d of %d: a fault of pygsampler", i, f.call.NumSeeds)
}

// heteroSpace is the additional working memory of a batch of a heterogeneous graph.
type heteroSpace struct {
	lists  buffer     // the nodes of each type by their numbers
	trees  buffer     // and their trees
	bounds buffer     // and what bounds their edges
	edges  buffer     // and those of the nodes that a hop's edges lead from
	counts buffer     // of the seeds and of each hop: edges and first occurrences of each relation
	tables buffer     // what the kernel knows of types and relations
	staged gpu.Pinned // the same on its way
	sent   []byte     // what is at sentTo
	sentTo gpu.Address
}

// Forget makes the next batch send the tables again, since a failed batch may not have sent them.
func (s *heteroSpace) Forget() { s.sent = s.sent[:0] }

// send has the tables be what is staged, of which most batches change nothing.
func (s *heteroSpace) send(stream gpu.Stream, size uint64) error {
	staged := s.staged.Bytes()[:size]
	if s.sentTo == s.tables.Address && bytes.Equal(s.sent, staged) {
		return nil
	}
	s.sent = s.sent[:0]
	if err := stream.Upload(s.tables.Address, s.staged.Pointer, uint64(len(staged))); err != nil {
		return err
	}
	s.sent, s.sentTo = append(s.sent, staged...), s.tables.Address
	return nil
}

func (s *heteroSpace) Free(stream gpu.Stream) error {
	return errors.Join(s.lists.Free(stream), s.trees.Free(stream), s.bounds.Free(stream), s.edges.Free(stream), s.counts.Free(stream), s.tables.Free(stream), s.staged.Close())
}

// counters returns the number of the kernel's counters.
func (p *Hetero) counters() uint64 {
	return uint64(p.hops()+1) * 2 * uint64(max(len(p.Seeds), len(p.Fanouts)))
}

// tableBytes is the size of what the kernel knows of types, relations and fanouts, and of it all.
func (p *Hetero) tableBytes() (kinds, relations, fanouts, all uint64) {
	kinds = uint64(len(p.Seeds)) * uint64(unsafe.Sizeof(heteroNodeType{}))
	relations = uint64(len(p.Fanouts)) * uint64(unsafe.Sizeof(heteroRelation{}))
	fanouts = uint64(len(p.Fanouts)*p.hops()) * 8
	all = kinds + relations + fanouts + uint64(len(p.beside()))*8
	return kinds, relations, fanouts, max(all, 8)
}

// beside returns the address of the numbers after the tables.
func (p *Hetero) beside() []int64 {
	if p.Times != nil {
		return p.Times.Seeds
	}
	return p.numbers
}

// Fit allocates rows, edges and nodes, and the report.
func (p *Hetero) Fit(f *Flight) error {
	if err := p.fit(f.graph, f.space, f.need, f.stream); err != nil {
		return err
	}
	if p.Disjoint {
		if err := SpaceOf[disjointSpace](f.space).fit(f, p.hops()); err != nil {
			return err
		}
	}
	return f.space.reportOf(p.Words())
}

// fit makes room for rows, edges and nodes.
func (p *Hetero) fit(g *Graph, w *Workspace, need Needs, stream gpu.Stream) error {
	s, hop := SpaceOf[heteroSpace](w), SpaceOf[hopSpace](w)
	if err := hop.fit(w, need, stream); err != nil {
		return err
	}
	listed := p.listed(g, hop.rowCapacity)
	if p.Disjoint {
		if err := s.trees.fit(w, listed*4, stream); err != nil {
			return err
		}
	}
	if p.Times != nil {
		if err := errors.Join(s.bounds.fit(w, listed*8, stream), s.edges.fit(w, uint64(hop.edgeCapacity)*16, stream)); err != nil {
			return err
		}
	}
	_, _, _, size := p.tableBytes()
	err := errors.Join(
		s.lists.fit(w, listed*uint64(g.IDBits/8), stream), s.counts.fit(w, p.counters()*8, stream), s.tables.fit(w, size, stream),
	)
	if err != nil || s.staged.Size >= size {
		return err
	}
	if err = s.staged.Close(); err == nil {
		s.staged, err = g.engine.context.AllocPinned(2 * size)
	}
	return err
}

// most returns the maximal number of nodes of a batch of a type with nodes nodes, with room for
// capacity rows.
func (p *Hetero) most(nodes, capacity int64) uint64 {
	if p.Disjoint {
		return uint64(capacity)
	}
	return uint64(min(nodes, capacity))
}

// listed returns the sum of these numbers over all types.
func (p *Hetero) listed(g *Graph, capacity int64) (all uint64) {
	for _, t := range g.schema.NodeTypes {
		all += p.most(t.Nodes, capacity)
	}
	return all
}

// describe writes down what the kernel knows of types, relations and fanouts.
func (p *Hetero) describe(graph *Graph, w *Workspace) (size uint64) {
	about, s, capacity := graph.schema, SpaceOf[heteroSpace](w), SpaceOf[hopSpace](w).rowCapacity
	atRelations, numBytes, fanoutBytes, size := p.tableBytes()
	kinds := unsafe.Slice((*heteroNodeType)(s.staged.Pointer), len(about.NodeTypes))
	relations := unsafe.Slice((*heteroRelation)(unsafe.Add(s.staged.Pointer, atRelations)), len(about.EdgeTypes))
	fanouts := unsafe.Slice((*int64)(unsafe.Add(s.staged.Pointer, atRelations+numBytes)), len(p.Fanouts)*p.hops())
	words, listed, excluded := uint64(0), uint64(0), uint64(0)
	for t, of := range about.NodeTypes {
		kinds[t] = heteroNodeType{uint64(of.Nodes), uint64(p.Seeds[t]), words, listed}
		words += uint64(of.Nodes)
		listed += p.most(of.Nodes, capacity)
	}
	for i, r := range about.EdgeTypes {
		g := graph.relations[i]
		relations[i] = heteroRelation{
			Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, NumRows: uint64(g.Rows), NumEdges: uint64(g.Edges),
			ExcludedAt: excluded, Salt: r.Salt, IndptrBits: uint32(g.IndptrBits), EdgeIDBits: g.StoredEdgeIDBits(),
			OutEdgeBits: uint32(g.SampleBits()), Source: uint32(r.Src), Destination: uint32(r.Dst),
			Alias: g.Alias, Sums: g.Sums,
		}
		switch {
		case p.Times != nil:
			relations[i].Keys = p.Times.Keys[i]
		case p.copies != nil:
			relations[i].Keys = p.copies[i]
		}
		if p.Excluded != nil {
			relations[i].NumExcluded = uint64(p.Excluded[i])
			excluded += uint64(p.Excluded[i])
		}
		copy(fanouts[i*p.hops():], p.Fanouts[i])
	}
	beside := p.beside()
	copy(unsafe.Slice((*int64)(unsafe.Add(s.staged.Pointer, atRelations+numBytes+fanoutBytes)), len(beside)), beside)
	return size
}

// Launch enqueues all hops in one cooperative launch.
func (p *Hetero) Launch(f *Flight) error {
	g := f.graph
	k, err := g.heteroKernels()
	if err != nil {
		return err
	}
	args, beside, shared, err := p.ready(f, k.room)
	if err != nil {
		return err
	}
	args.Out, args.OutCapacity = f.Region()
	if p.Times != nil {
		args.SeedTimes = beside
	}
	kernel, together := &k.of[Word(p.all(g))][g.Wide()], k.together
	if tablesOf(len(p.Seeds), len(p.Fanouts)) > usualTables {
		if together, err = kernel.Occupancy(threads, shared); err != nil {
			return err
		}
	}
	shape := gpu.Shape{Grid: [3]uint32{uint32(f.Grid(together))}, Block: [3]uint32{threads}, Shared: uint32(shared), Cooperative: true}
	return kernel.Launch(f.stream, shape, &args)
}

// ready uploads the kernel's tables and allocates its map; a block may have room bytes of dynamic
// shared memory. It returns the kernel's arguments without the address of the batch, the address of
// the numbers after the tables, and the shared memory of a launch.
func (p *Hetero) ready(f *Flight, room int) (args heteroArgs, beside gpu.Address, shared int, err error) {
	g, c, w, random := f.graph, &f.call, f.space, f.call.Random()
	s, hop := SpaceOf[heteroSpace](w), SpaceOf[hopSpace](w)
	size := p.describe(g, w)
	_, _, fanoutBytes, _ := p.tableBytes()
	m := &hop.wide
	if p.Disjoint {
		m = SpaceOf[disjointSpace](w).asMap()
	}
	tag, err := m.tag(w, g.Nodes, 32, f.stream)
	if err == nil {
		err = s.send(f.stream, size)
	}
	if err != nil {
		return args, 0, 0, err
	}
	args, shared = p.arguments(g, w, m, room)
	args.Seeds, args.NumSeeds, args.SeedBits, args.Report = c.Seeds, uint64(c.NumSeeds), uint32(c.SeedBits), f.Report()
	args.Key0, args.Key1, args.Batch0, args.Batch1, args.Tag = random[0], random[1], random[2], random[3], tag
	return args, args.Fanouts + gpu.Address(fanoutBytes), shared, nil
}

// all reports whether batches need the features that the kernels of hetero_batch.cuh have with ALL.
func (p *Hetero) all(g *Graph) bool {
	all := p.Disjoint || p.EdgeWeights
	for _, r := range g.relations {
		all = all || r.Alias != 0
	}
	return all
}

// arguments returns the arguments that do not change from batch to batch, in a workspace with room
// for them, with their map; and the dynamic shared memory of a launch, of which a block may have
// room bytes.
func (p *Hetero) arguments(g *Graph, w *Workspace, m *vertexMap, room int) (args heteroArgs, shared int) {
	s, hop, trees := SpaceOf[heteroSpace](w), SpaceOf[hopSpace](w), SpaceOf[disjointSpace](w)
	atRelations, numBytes, _, _ := p.tableBytes()
	args = heteroArgs{
		Kinds: s.tables.Address, Relations: s.tables.Address + gpu.Address(atRelations),
		Fanouts: s.tables.Address + gpu.Address(atRelations+numBytes), Excluded: w.excluded.Address,
		Map: m.Address, Counts: s.counts.Address, Rows: hop.rows.Address, Nodes: s.lists.Address, Firsts: hop.firsts.Address,
		Arrived: w.meeting.Address, Slots: w.meeting.Address + SlotsAt, BadSeed: w.meeting.Address + BadSeedAt,
		RowCapacity: uint64(hop.rowCapacity), EdgeCapacity: uint64(hop.edgeCapacity),
		Hops: uint32(p.hops()), Types: uint32(len(p.Seeds)), NumRelations: uint32(len(p.Fanouts)),
		Replace: Word(p.Replace), OnlyNew: Word(p.OnlyNew), Mixed: Word(g.schema.Mixed()), Factors: Word(p.EdgeWeights),
	}
	if p.Disjoint {
		args.Keys, args.Trees, args.EdgeSlots = trees.keys.Address, s.trees.Address, SpaceOf[binSpace](w).answers.Address
		args.TableBits, args.TreeShift = uint32(trees.bits), uint32(trees.shift)
	}
	if t := p.Times; t != nil {
		args.Bounds, args.EdgeBounds = s.bounds.Address, s.edges.Address
		args.Before, args.Carry, args.Latest, args.FloatTimes = Word(t.Before), Word(t.Carry), Word(t.Last), Word(t.Float)
		args.Windowed = Word(!math.IsInf(t.Window, 1))
		args.Window = t.Window
	}
	tables := tablesOf(len(p.Seeds), len(p.Fanouts))
	most := directIn(room - tables)
	args.Direct = uint32(most)
	shared = tables
	for _, fanouts := range p.Fanouts {
		for _, n := range fanouts {
			if n > 0 && n <= most {
				shared = max(shared, tables+drawBytes(n))
			}
		}
	}
	return args, shared
}
