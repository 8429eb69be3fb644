package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// hgtArgs mirrors HgtArgs in kernels/hetero/hgt.cu.
type hgtArgs struct {
	heteroArgs
	Salts, Samples          gpu.Address
	Chosen, Places, Budgets gpu.Address
	Keys, Numbers, Lengths  [2]gpu.Address
	Taken, Words, Batch     gpu.Address
	BatchCapacity           uint64
	Iterations, _           uint32
}

// HGT is the plan of HGT's subgraphs of a heterogeneous graph, for one call: all iterations in one
// launch. Iterations are the hops of a Hetero, plus one more for the nodes that were chosen last;
// the batch of that Hetero is working memory here.
type HGT struct {
	hops    Hetero
	samples [][]int64 // of each type those of the iterations; -1: all
}

// NewHGT returns the plan of a call; seeds and excluded are the numbers of seeds of each type and
// of excluded positions of each relation, which is nil without any. salts and samples hold the salt
// of each type and the number of its nodes that each iteration takes; rows keep up to most edges of
// a relation, -1: all.
func NewHGT(relations int, most int64, salts []uint64, samples [][]int64, seeds, excluded []int64) *HGT {
	p := &HGT{samples: samples}
	p.hops = Hetero{OnlyNew: true, Seeds: seeds, Excluded: excluded}
	for range relations {
		p.hops.Fanouts = append(p.hops.Fanouts, slices.Repeat([]int64{most}, p.iterations()+1))
	}
	for _, salt := range salts {
		p.hops.numbers = append(p.hops.numbers, int64(salt))
	}
	p.hops.numbers = append(p.hops.numbers, slices.Concat(samples...)...)
	return p
}

func (p *HGT) iterations() int {
	if len(p.samples) == 0 {
		return 0
	}
	return len(p.samples[0])
}

func (p *HGT) layout() batch.Layout {
	return batch.Layout{Hops: 1, Types: len(p.hops.Seeds), Relations: len(p.hops.Fanouts)}
}

type hgtKernels struct {
	of             [2]gpu.Kernel[hgtArgs] // of int32 and of int64 ids
	room, together int                    // as heteroKernels has them
}

func loadHGT(e *Engine) (k *hgtKernels, err error) {
	k = new(hgtKernels)
	for i, bits := range []string{"32", "64"} {
		if k.of[i], err = KernelOf[hgtArgs](e, "hgt", "hgt"+bits, 0); err != nil {
			return nil, err
		}
	}
	k.room, k.together, err = roomOf(e, []gpu.Function{k.of[0].Function, k.of[1].Function}, drawBytes(Direct))
	return k, err
}

// tables is the shared memory that the kernel knows types and relations in.
func (p *HGT) tables() int {
	return tablesOf(len(p.hops.Seeds), len(p.hops.Fanouts)) + 8*len(p.hops.Seeds)
}

// Check returns an error for homogeneous graphs, and for graphs with more types than the device has
// room for.
func (p *HGT) Check(g *Graph, c *Call) error {
	if g.schema == nil {
		return fmt.Errorf("%w: graph: expected a heterogeneous one, got a homogeneous one", request.ErrValue)
	}
	k, err := Cached(g.engine, "hgt", loadHGT)
	if err != nil {
		return err
	}
	return g.typesFit(k.room, 8*len(g.schema.NodeTypes)+drawBytes(0))
}

// Words returns the number of words that describe a batch.
func (p *HGT) Words() int { return p.layout().Words() }

// Shape returns the numbers of nodes and of edges.
func (p *HGT) Shape() string {
	text := []byte(p.hops.Shape())
	for _, n := range slices.Concat(p.samples...) {
		text = binary.AppendVarint(text, n)
	}
	return string(text)
}

// Guess estimates the needs of a batch in which each type gets all nodes that it asks for, and rows
// have twice the mean degree.
func (p *HGT) Guess(g *Graph, seeds int64) Needs {
	s := g.schema
	width, out := float64(g.IDBits/8), float64(8*p.Words())+2*float64(g.IDBits/8)*float64(seeds)
	fresh, all, met := make([]float64, len(s.NodeTypes)), make([]float64, len(s.NodeTypes)), make([]float64, len(s.NodeTypes))
	for t, n := range p.hops.Seeds {
		fresh[t] = float64(min(n, s.NodeTypes[t].Nodes))
		all[t], met[t] = fresh[t], fresh[t]
	}
	most, edges := float64(seeds), 0.0
	for i := range p.iterations() + 1 {
		rows, found := 0.0, 0.0
		for r, rel := range s.EdgeTypes {
			rule := request.Rule{Fanout: p.hops.Fanouts[r][i]}
			takes := fresh[rel.Dst] * rule.Mean(2*float64(g.relations[r].Edges)/float64(max(s.NodeTypes[rel.Dst].Nodes, 1)))
			rows, found = rows+fresh[rel.Dst], found+takes
			met[rel.Src] += takes
			out += fresh[rel.Dst]*width + takes*(width+float64(g.relations[r].SampleBits()/8)) + 3*batch.Alignment
		}
		most, edges = max(most, rows), max(edges, found)
		if i == p.iterations() {
			break
		}
		for t, of := range s.NodeTypes {
			met[t] = min(met[t], float64(of.Nodes))
			if fresh[t] = met[t] - all[t]; p.samples[t][i] >= 0 {
				fresh[t] = min(fresh[t], float64(p.samples[t][i]))
			}
			all[t] += fresh[t]
			most = max(most, met[t])
		}
	}
	rows := 0.0
	for _, rel := range s.EdgeTypes {
		rows += all[rel.Dst]
	}
	for _, n := range all {
		out += n*width + 3*batch.Alignment
	}
	bytes := uint64(min(out, mostOut))
	return Needs{Out: bytes, Work: bytes, Rows: int64(min(max(most, rows), mostRows)), Edges: int64(min(edges, mostGuess))}
}

// hgtSpace is the additional working memory of the plan.
type hgtSpace struct {
	work                    buffer // the edges of all rows
	words                   buffer // and what describes them
	chosen, places, budgets buffer // as the nodes that have numbers
	keys, numbers, lengths  buffer // of runs, twice
	taken                   buffer

	elements, tiles uint64 // there is room for
}

// Forget does nothing, since every batch writes everything that it reads.
func (*hgtSpace) Forget() {}

func (s *hgtSpace) Free(stream gpu.Stream) (err error) {
	for _, b := range s.all() {
		err = errors.Join(err, b.Free(stream))
	}
	return err
}

func (s *hgtSpace) all() []*buffer {
	return []*buffer{&s.work, &s.words, &s.chosen, &s.places, &s.budgets, &s.keys, &s.numbers, &s.lengths, &s.taken}
}

// Fit allocates rows, edges, nodes and runs, and the report.
func (p *HGT) Fit(f *Flight) error {
	g, w, stream := f.graph, f.space, f.stream
	if err := p.hops.fit(g, w, f.need, stream); err != nil {
		return err
	}
	s, types := SpaceOf[hgtSpace](w), uint64(len(p.hops.Seeds))
	listed := p.hops.listed(g, SpaceOf[hopSpace](w).rowCapacity)
	// The last tile of each type may not be full.
	s.tiles = listed/threads + types
	s.elements = s.tiles * threads
	sizes := []uint64{
		f.need.Work, 8 * uint64(p.hops.Words()), listed * uint64(g.IDBits/8), listed * 4, listed * 8,
		2 * s.elements * 8, 2 * s.elements * 4, 2 * s.tiles * 4, types * 8,
	}
	for i, b := range s.all() {
		if err := b.fit(w, sizes[i], stream); err != nil {
			return err
		}
	}
	// A word after those of the batch.
	return f.space.reportOf(p.Words() + 1)
}

// Used returns the sizes of the batch and of its working memory, plus a quarter.
func (p *HGT) Used(f *Flight) Needs {
	report := f.space.words()
	n := Needs{
		Out: uint64(f.batch.Header[batch.WordSize]) * 5 / 4, Work: uint64(report[ReportDetail]) * 5 / 4,
		Rows: report[ReportHeader+p.Words()] * 5 / 4, Edges: f.need.Edges, Arrived: true,
	}
	return n
}

// Header returns the words that describe the batch.
func (p *HGT) Header(words []int64) []int64 { return words }

func (p *HGT) outside(f *Flight, i int64) error { return p.hops.outside(f, i) }

// Arrived repeats the batch with more working memory, or with more room for rows or edges.
func (p *HGT) Arrived(f *Flight, status, detail int64) (again bool, err error) {
	if status != statusWorkTooSmall {
		return p.hops.Arrived(f, status, detail)
	}
	need := Needs{Rows: 2 * f.need.Rows, Edges: 2 * f.need.Edges}
	if bytes := SpaceOf[hgtSpace](f.space).work.Size; uint64(detail) > bytes {
		need = Needs{Work: max(2*bytes, uint64(detail)*5/4)}
	}
	f.need = f.need.with(need)
	return true, nil
}

// Launch enqueues all iterations in one cooperative launch.
func (p *HGT) Launch(f *Flight) error {
	g, w := f.graph, f.space
	k, err := Cached(g.engine, "hgt", loadHGT)
	if err != nil {
		return err
	}
	own := 8 * len(p.hops.Seeds)
	hetero, beside, shared, err := p.hops.ready(f, k.room-own)
	if err != nil {
		return err
	}
	shared += own
	s, twice := SpaceOf[hgtSpace](w), func(b buffer, bytes uint64) [2]gpu.Address {
		return [2]gpu.Address{b.Address, b.Address + gpu.Address(bytes)}
	}
	args := hgtArgs{
		heteroArgs: hetero, Salts: beside, Samples: beside + gpu.Address(own),
		Chosen: s.chosen.Address, Places: s.places.Address, Budgets: s.budgets.Address,
		Keys: twice(s.keys, s.elements*8), Numbers: twice(s.numbers, s.elements*4), Lengths: twice(s.lengths, s.tiles*4),
		Taken: s.taken.Address, Words: s.words.Address, Iterations: uint32(p.iterations()),
	}
	args.Out, args.OutCapacity = s.work.Address, s.work.Size
	args.Batch, args.BatchCapacity = f.Region()
	kernel, together := &k.of[g.Wide()], k.together
	if p.tables() > usualTables {
		if together, err = kernel.Occupancy(threads, shared); err != nil {
			return err
		}
	}
	shape := gpu.Shape{Grid: [3]uint32{uint32(f.Grid(together))}, Block: [3]uint32{threads}, Shared: uint32(shared), Cooperative: true}
	return kernel.Launch(f.stream, shape, &args)
}
