package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// typedKind mirrors TypedKind in kernels/typed.cuh.
type typedKind struct{ Nodes, Seeds, MapAt, ListAt uint64 }

// typedRelation mirrors TypedRelation.
type typedRelation struct {
	Indptr, Indices, EdgeIDs                                 gpu.Address
	NumRows, NumEdges, ExcludedAt, NumExcluded, Salt         uint64
	IndptrBits, EdgeIDBits, OutEdgeBits, Source, Destination uint32
	_                                                        uint32
}

// typedArgs mirrors TypedArgs.
type typedArgs struct {
	Kinds, Relations, Fanouts, Excluded, Seeds, Map, Counts gpu.Address
	Rows, Nodes, Firsts, Arrived, Slots                     gpu.Address
	Out, Report, BadSeed                                    gpu.Address
	OutCapacity, RowCapacity, EdgeCapacity, NumSeeds        uint64
	Hops, Types, NumRelations, SeedBits                     uint32
	Replace, OnlyNew, Mixed, Direct                         uint32
	Key0, Key1, Batch0, Batch1, Tag, _                      uint32
}

// Schema is what a graph with types has beside the arrays of its relations.
type Schema struct {
	Names     []string // of the types of vertices
	Nodes     []int64  // of each type
	Relations []Relation
	Mixed     bool // rows draw by their relation too, as csc.Typed has it
}

// Relation is a type of edges, as csc.Relation has it.
type Relation struct {
	Graph    *Graph
	Name     string
	Src, Dst int
	Salt     uint64
}

// NewTyped is a graph with types, of relations that are on the device. It holds none of them.
func (e *Engine) NewTyped(s Schema) *Graph {
	a := Arrays{IDBits: 64}
	if len(s.Relations) > 0 {
		a.IDBits = s.Relations[0].Graph.IDBits
	}
	for _, n := range s.Nodes {
		a.Nodes += n
	}
	// A seed out of range claims the vertex that its type would begin with.
	a.Nodes++
	g := e.NewGraph(a)
	g.schema = &s
	return g
}

// Typed is neighbour sampling of a graph with types, of one call: all hops in one launch.
type Typed struct {
	Fanouts          [][]int64 // of each relation those of its hops, outermost first
	Replace, OnlyNew bool
	Seeds            []int64 // how many there are of each type, one behind another
	Excluded         []int64 // and positions to sample around of each relation; nil: none
}

type typedKernels struct {
	of       [2]gpu.Kernel[typedArgs] // graphs of int32 and of int64 ids
	room     int                      // dynamic shared memory that a block may have
	together int                      // blocks of either that a multiprocessor runs at a time, of usualTables
}

// usualTables is the shared memory of the tables of a graph of so many types, which most have.
var usualTables = tablesOf(64, 64)

// tablesOf is the bytes of shared memory that the kernel's tables take.
func tablesOf(types, relations int) int { return 8 * (6*(max(types, relations)+1) + 4*types) }

func loadTyped(e *Engine) (k *typedKernels, err error) {
	k = &typedKernels{together: 2}
	static := 0
	for i, name := range []string{"typed32", "typed64"} {
		if k.of[i], err = KernelOf[typedArgs](e, "typed", name, 0); err != nil {
			return nil, err
		}
		bytes, err := k.of[i].Attribute(gpu.SharedBytes)
		if err != nil {
			return nil, err
		}
		static = max(static, bytes)
	}
	k.room = e.context.Properties().SharedPerBlockOptIn - static
	for i := range k.of {
		if err := k.of[i].AllowShared(k.room); err != nil {
			return nil, err
		}
		blocks, err := k.of[i].Occupancy(threads, min(drawBytes(direct)+usualTables, k.room))
		if err != nil {
			return nil, err
		}
		k.together = min(k.together, blocks)
	}
	return k, nil
}

func (g *Graph) typedKernels() (*typedKernels, error) { return Kept(g.engine, "typed", loadTyped) }

// LoadTyped is Load for a graph with types.
func (g *Graph) LoadTyped() error {
	_, err := g.typedKernels()
	return err
}

func (p *Typed) hops() int {
	if len(p.Fanouts) == 0 {
		return 0
	}
	return len(p.Fanouts[0])
}

func (p *Typed) layout() batch.TypedLayout {
	return batch.TypedLayout{Hops: p.hops(), Types: len(p.Seeds), Relations: len(p.Fanouts)}
}

// Check refuses what no kernel does.
func (p *Typed) Check(g *Graph, c *Call) error {
	s := g.schema
	if s == nil {
		return fmt.Errorf("%w: graph: expected one with types, got one without", request.ErrValue)
	}
	if hops := p.hops(); hops > mostHops {
		return fmt.Errorf("%w: fanouts: expected at most %d hops on a GPU, got %d", request.ErrValue, mostHops, hops)
	}
	for _, r := range s.Relations {
		if r.Graph.Alias != 0 {
			return fmt.Errorf("%w: prob: expected None for a graph with types on a GPU, got weights of %q; mask is sampled there", request.ErrValue, r.Name)
		}
	}
	k, err := g.typedKernels()
	if err != nil {
		return err
	}
	if need := tablesOf(len(s.Nodes), len(s.Relations)) + drawBytes(0); need > k.room {
		return fmt.Errorf("%w: graph: expected fewer types on this GPU, whose blocks have %d bytes of shared memory, got %d and %d, which take %d",
			request.ErrValue, k.room, len(s.Nodes), len(s.Relations), need)
	}
	return nil
}

// Words is what describes a batch.
func (p *Typed) Words() int { return p.layout().Words() }

// Shape is the fanouts, and whatever else changes how many edges they give.
func (p *Typed) Shape() string {
	text := []byte{byte(word(p.Replace)), byte(word(p.OnlyNew))}
	for _, fanouts := range p.Fanouts {
		for _, n := range fanouts {
			text = binary.AppendVarint(text, n)
		}
	}
	for _, n := range p.Seeds {
		text = append(text, byte(word(n > 0)))
	}
	return string(text)
}

// Guess is what a batch needs if rows have twice the mean degree.
func (p *Typed) Guess(g *Graph, seeds int64) Needs {
	s := g.schema
	width, vertices := float64(g.IDBits/8), make([]float64, len(s.Nodes))
	out := float64(8*p.Words()) + 2*width*float64(seeds) + float64(3*batch.Alignment*len(s.Nodes))
	most, edges := float64(seeds), 0.0
	for t, n := range p.Seeds {
		vertices[t] = float64(n)
	}
	for hop := p.hops() - 1; hop >= 0; hop-- {
		more, rows, found := make([]float64, len(vertices)), 0.0, 0.0
		for i, r := range s.Relations {
			rule := request.Rule{Fanout: p.Fanouts[i][hop], Replace: p.Replace}
			takes := vertices[r.Dst] * rule.Mean(2*float64(r.Graph.Edges)/float64(max(s.Nodes[r.Dst], 1)))
			more[r.Src] += takes
			rows += vertices[r.Dst]
			found += takes
			out += (vertices[r.Dst]+1)*width + takes*(width+float64(r.Graph.sampleBits()/8)) + 3*batch.Alignment
		}
		most, edges = max(most, rows), max(edges, found)
		for t := range vertices {
			vertices[t] = min(vertices[t]+more[t], float64(s.Nodes[t]))
		}
	}
	for _, n := range vertices {
		out += n * width
		most = max(most, n)
	}
	return Needs{Out: uint64(min(out, mostOut)), Rows: int64(min(most, mostRows)), Edges: int64(min(edges, mostGuess))}
}

// Used is what the words say, and a quarter more.
func (p *Typed) Used(f *Flight) Needs {
	words, l, s := f.batch.Header, p.layout(), f.graph.schema
	n := Needs{Out: uint64(words[batch.WordSize]) * 5 / 4, Arrived: true}
	for hop := range l.Hops {
		rows, edges := int64(0), int64(0)
		for r := range s.Relations {
			block := words[l.Block(hop, r):]
			rows += block[batch.BlockNumDst]
			edges += block[batch.BlockNumEdges]
		}
		n.Rows, n.Edges = max(n.Rows, rows*5/4), max(n.Edges, edges*5/4)
	}
	for t := range s.Nodes {
		n.Rows = max(n.Rows, words[l.Type(t)+batch.TypeNumNodes]*5/4)
	}
	return n
}

// Arrived knows no status of its own.
func (p *Typed) Arrived(_ *Flight, status, _ int64) (bool, error) {
	return false, fmt.Errorf("a kernel reported status %d: a fault of pygsampler", status)
}

// outside is the error of a seed that is out of range.
func (p *Typed) outside(f *Flight, i int64) error {
	s, place := f.graph.schema, i
	for t, n := range p.Seeds {
		if place < n {
			return fmt.Errorf("%w: seeds[%q][%d]: expected an id in [0, %d), got %s", request.ErrIndex, s.Names[t], place, s.Nodes[t], f.seed(i))
		}
		place -= n
	}
	return fmt.Errorf("seed %d of %d: a fault of pygsampler", i, f.call.NumSeeds)
}

// typedSpace is what a batch of a graph with types needs beside what hops need.
type typedSpace struct {
	lists  buffer     // the vertices of each type by their numbers
	counts buffer     // of the seeds and of each hop: edges and first occurrences of each relation
	tables buffer     // what the kernel knows of types and relations
	staged gpu.Pinned // the same on its way
}

// Forget has nothing to do: every launch begins with its counters zero.
func (*typedSpace) Forget() {}

func (s *typedSpace) Free(stream gpu.Stream) error {
	return errors.Join(s.lists.Free(stream), s.counts.Free(stream), s.tables.Free(stream), s.staged.Close())
}

// counters is how many the kernel counts in.
func (p *Typed) counters() uint64 {
	return uint64(p.hops()+1) * 2 * uint64(max(len(p.Seeds), len(p.Fanouts)))
}

// tableBytes is the size of what the kernel knows of types, relations and fanouts.
func (p *Typed) tableBytes() (kinds, relations, all uint64) {
	kinds = uint64(len(p.Seeds)) * uint64(unsafe.Sizeof(typedKind{}))
	relations = uint64(len(p.Fanouts)) * uint64(unsafe.Sizeof(typedRelation{}))
	return kinds, relations, max(kinds+relations+uint64(len(p.Fanouts)*p.hops())*8, 8)
}

// Fit makes room for rows, edges and vertices, and for the report.
func (p *Typed) Fit(f *Flight) error {
	w, s := f.space, SpaceOf[typedSpace](f.space)
	hop := SpaceOf[hopSpace](w)
	if err := hop.fit(w, f.need, f.stream); err != nil {
		return err
	}
	listed := uint64(0)
	for _, n := range f.graph.schema.Nodes {
		listed += uint64(min(n, hop.rowCapacity))
	}
	_, _, bytes := p.tableBytes()
	err := errors.Join(
		s.lists.fit(w, listed*uint64(f.graph.IDBits/8), f.stream), s.counts.fit(w, p.counters()*8, f.stream),
		s.tables.fit(w, bytes, f.stream), w.reportOf(p.Words()),
	)
	if err != nil || s.staged.Size >= bytes {
		return err
	}
	if err = s.staged.Close(); err == nil {
		s.staged, err = f.engine.context.AllocPinned(2 * bytes)
	}
	return err
}

// describe writes down what the kernel knows of types, relations and fanouts.
func (p *Typed) describe(f *Flight) (bytes uint64) {
	about, s, capacity := f.graph.schema, SpaceOf[typedSpace](f.space), SpaceOf[hopSpace](f.space).rowCapacity
	atRelations, numBytes, bytes := p.tableBytes()
	kinds := unsafe.Slice((*typedKind)(s.staged.Pointer), len(about.Nodes))
	relations := unsafe.Slice((*typedRelation)(unsafe.Add(s.staged.Pointer, atRelations)), len(about.Relations))
	fanouts := unsafe.Slice((*int64)(unsafe.Add(s.staged.Pointer, atRelations+numBytes)), len(p.Fanouts)*p.hops())
	words, listed, excluded := uint64(0), uint64(0), uint64(0)
	for t, n := range about.Nodes {
		kinds[t] = typedKind{uint64(n), uint64(p.Seeds[t]), words, listed}
		words += uint64(n)
		listed += uint64(min(n, capacity))
	}
	for i, r := range about.Relations {
		g := r.Graph
		relations[i] = typedRelation{
			Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, NumRows: uint64(g.Rows), NumEdges: uint64(g.Edges),
			ExcludedAt: excluded, Salt: r.Salt, IndptrBits: uint32(g.IndptrBits), EdgeIDBits: g.edgeIDBits(),
			OutEdgeBits: uint32(g.sampleBits()), Source: uint32(r.Src), Destination: uint32(r.Dst),
		}
		if p.Excluded != nil {
			relations[i].NumExcluded = uint64(p.Excluded[i])
			excluded += uint64(p.Excluded[i])
		}
		copy(fanouts[i*p.hops():], p.Fanouts[i])
	}
	return bytes
}

// Launch is all hops in one cooperative launch.
func (p *Typed) Launch(f *Flight) error {
	g, c, w, random := f.graph, &f.call, f.space, f.call.random()
	s, hop := SpaceOf[typedSpace](w), SpaceOf[hopSpace](w)
	k, err := g.typedKernels()
	if err != nil {
		return err
	}
	bytes := p.describe(f)
	atRelations, numBytes, _ := p.tableBytes()
	tag, err := hop.wide.tag(w, g.Nodes, 32, f.stream)
	if err == nil {
		err = errors.Join(
			f.stream.Upload(s.tables.Address, s.staged.Pointer, bytes), f.stream.Fill32(s.counts.Address, 0, p.counters()*2),
		)
	}
	if err != nil {
		return err
	}
	out, capacity := f.Region()
	args := typedArgs{
		Kinds: s.tables.Address, Relations: s.tables.Address + gpu.Address(atRelations),
		Fanouts: s.tables.Address + gpu.Address(atRelations+numBytes), Excluded: w.excluded.Address, Seeds: c.Seeds,
		Map: hop.wide.Address, Counts: s.counts.Address, Rows: hop.rows.Address, Nodes: s.lists.Address, Firsts: hop.firsts.Address,
		Arrived: w.meeting.Address, Slots: w.meeting.Address + slotsAt, Out: out, Report: f.Report(), BadSeed: w.meeting.Address + badSeedAt,
		OutCapacity: capacity, RowCapacity: uint64(hop.rowCapacity), EdgeCapacity: uint64(hop.edgeCapacity), NumSeeds: uint64(c.NumSeeds),
		Hops: uint32(p.hops()), Types: uint32(len(p.Seeds)), NumRelations: uint32(len(p.Fanouts)), SeedBits: uint32(c.SeedBits),
		Replace: word(p.Replace), OnlyNew: word(p.OnlyNew), Mixed: word(g.schema.Mixed),
		Key0: random[0], Key1: random[1], Batch0: random[2], Batch1: random[3], Tag: tag,
	}
	tables := tablesOf(len(p.Seeds), len(p.Fanouts))
	most := directIn(k.room - tables)
	args.Direct = uint32(most)
	shared := tables
	for _, fanouts := range p.Fanouts {
		for _, n := range fanouts {
			if n > 0 && n <= most {
				shared = max(shared, tables+drawBytes(n))
			}
		}
	}
	kernel, together := &k.of[g.wide()], k.together
	if tables > usualTables {
		if together, err = kernel.Occupancy(threads, shared); err != nil {
			return err
		}
	}
	shape := gpu.Shape{Grid: [3]uint32{uint32(f.grid(together))}, Block: [3]uint32{threads}, Shared: uint32(shared), Cooperative: true}
	return kernel.Launch(f.stream, shape, &args)
}
