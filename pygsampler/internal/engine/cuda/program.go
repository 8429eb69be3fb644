package cuda

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/source"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// programArgs mirrors ProgramArgs.
type programArgs struct {
	Seeds, Indptr, Indices, EdgeIDs, Map                gpu.Address
	Arrived, Slots, Work, Out, Cells                    gpu.Address
	Report, BadSeed                                     gpu.Address
	Excluded                                            gpu.Address
	WorkBytes, OutBytes, NumSeeds                       uint64
	NumRows, NumNodes, NumEdges, NumExcluded            uint64
	OutStarts, OutEdges                                 gpu.Address
	CostIn, CostBit, CostOut, CostMore                  float32
	SeedBits, Tag, Key0, Key1, Batch0, Batch1, NumCells uint32
	Arrays                                              [programArrays]gpu.Address
	Hops, Rounds                                        uint32
	Sites                                               [MostHops]uint32
	Fanouts                                             [MostHops]int64
}

// Programs is the plan of a program's batches: one kernel, generated and compiled at the first
// batch on a device, and one cooperative launch per batch. Its zero value is no plan; NewProgram
// returns one.
type Programs struct {
	program *program.Program
	text    source.Text
	key     string         // of the text
	wants   []program.Want // of each node of a program with dense rows; else nil
	making  derivedKernel
	shape   string
	err     error            // why there is no kernel
	hops    *program.Poisson // what it was recognised as; nil: nothing
}

// NewProgram returns the plan of a checked program. If an operator has no kernel yet, Check returns
// that error.
func NewProgram(p *program.Program) *Programs {
	text, err := source.Generate(p)
	made := programsOf(p, text)
	made.making, made.err = makingOf(p, &text), err
	return made
}

// NewPoisson returns the plan of a program that was recognized as hops of Poisson sampling, which
// have their own kernel.
func NewPoisson(p *program.Program, hops *program.Poisson) *Programs {
	made := programsOf(p, source.OfPoisson(hops.Values, hops.Rounds > 0))
	made.hops = hops
	return made
}

// programsOf is the plan of a program that this text makes.
func programsOf(p *program.Program, text source.Text) *Programs {
	made := &Programs{program: p, text: text, key: keyOf(&text), shape: hashed(p.Weight + "\n" + p.String())}
	if p.Dense() {
		made.wants = p.Wants(nil)
	}
	return made
}

// keyOf is a short key of a text and of the arrays that it reads, which batches look up: inputs are alike by their
// places, whatever is in them.
func keyOf(text *source.Text) string {
	var all strings.Builder
	for _, a := range text.Arrays {
		fmt.Fprintf(&all, "%q %t %t %t %d %t\n", a.Name, a.Vertex, a.Rows, a.Input != nil, a.Once, a.Copies)
	}
	return hashed(all.String() + text.Source)
}

// hashed is a short key of a long text.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

// Check returns an error for programs without a kernel, and for graphs that lack an array.
func (p *Programs) Check(g *Graph, c *Call) error {
	switch {
	case p.err != nil:
		return fmt.Errorf("%w: %w", request.ErrValue, p.err)
	case len(c.Exclude) > 0 && !p.program.Excludes():
		return fmt.Errorf("%w: exclude: expected no edges for a program that asks for none, got some", request.ErrValue)
	case g.Nodes >= MostEdges || g.Alias != 0:
		return fmt.Errorf("%w: expected a plain graph of fewer than 2^31 nodes for a program on a GPU, got %d", request.ErrValue, g.Nodes)
	case p.Words() > batch.Homogeneous(MostHops).Words():
		return fmt.Errorf("%w: return: expected at most %d blocks on a GPU, and fewer with extra arrays, got %d and %d",
			request.ErrValue, MostHops, len(p.program.Matrices), p.program.NumExtras())
	case len(p.text.Arrays) > programArrays:
		return fmt.Errorf("%w: expected at most %d arrays of the graph in a program on a GPU, got %d", request.ErrValue, programArrays, len(p.text.Arrays))
	}
	if g.programOn(p.key) == nil {
		if _, _, err := arrays(g, &p.text); err != nil {
			return err
		}
	}
	return p.widths(g)
}

// arrays are the graph's that a kernel reads, and the types of all; those that batches bring have no address here.
func arrays(g *Graph, text *source.Text) (found [programArrays]gpu.Address, types []source.Type, err error) {
	types = make([]source.Type, len(text.Arrays))
	for i, a := range text.Arrays {
		switch {
		case a.Once > 0:
			types[i].DType = csc.Float64
			continue
		case a.Input != nil:
			types[i].DType = csc.Float32
			continue
		case a.Copies:
			types[i].DType = csc.Int32
			if found[i], err = g.copies(); err != nil {
				return found, nil, err
			}
			continue
		}
		of, from, what := g.named.edges, "edata", "an edge"
		if a.Vertex {
			of, from, what = g.named.vertices, "ndata", "a node"
		}
		data, ok := of[a.Name]
		if !ok {
			return found, nil, fmt.Errorf("%w: %s[%q]: expected %s array of the graph on the device, got none", request.ErrValue, from, a.Name, what)
		}
		if a.Vertex && data.length < g.Nodes {
			return found, nil, fmt.Errorf("%w: %s[%q]: expected %d elements, got %d", request.ErrValue, from, a.Name, g.Nodes, data.length)
		}
		found[i], types[i] = data.address, source.Type{DType: data.dtype}
		if a.Rows {
			types[i].Width = data.length / max(g.Nodes, 1)
		}
	}
	return found, types, nil
}

// Words returns the number of words of the blocks and of the extra arrays.
func (p *Programs) Words() int {
	return batch.Layout{Hops: len(p.program.Matrices), Types: 1, Relations: 1, Extras: p.program.NumExtras()}.Words()
}

// Shape returns the text of the program.
func (p *Programs) Shape() string { return p.shape }

// A first guess of what a program needs for each edge that its seeds have; what it is wrong by costs a launch.
const (
	leastWork   = 1 << 22
	mostWork    = 1 << 28
	workPerEdge = 128
)

// Guess estimates the needs from the edges of the seeds.
func (p *Programs) Guess(g *Graph, seeds int64) Needs {
	edges := float64(seeds) * 2 * float64(g.Edges) / float64(max(g.Nodes, 1))
	work := uint64(min(leastWork+workPerEdge*edges, mostWork))
	return Needs{Out: work / 4, Work: work, Edges: int64(min(edges, mostGuess))}
}

// programSpace is the working memory of a program.
type programSpace struct {
	vertices    vertexMap
	work, cells buffer
	inputs      inputs
}

// Forget makes the next launch begin with an empty map.
func (s *programSpace) Forget() { s.vertices.next, s.inputs.held = 0, nil }

func (s *programSpace) Free(stream gpu.Stream) error {
	return errors.Join(s.vertices.Free(stream), s.work.Free(stream), s.cells.Free(stream), s.inputs.Free(stream))
}

// Fit allocates the working memory.
func (p *Programs) Fit(f *Flight) error {
	s := SpaceOf[programSpace](f.space)
	s.vertices.bits = 64
	return errors.Join(s.work.fit(f.space, f.need.Work, f.stream), s.cells.fit(f.space, uint64(p.text.Cells)*4, f.stream))
}

// Used returns the sizes of the batch and of its working memory, plus a quarter.
func (p *Programs) Used(f *Flight) Needs {
	p.lost(f)
	n := Needs{
		Out: uint64(f.batch.Header[batch.WordSize]) * 5 / 4, Work: uint64(f.space.words()[ReportDetail]) * 5 / 4, Arrived: true,
	}
	for i := range p.program.Matrices {
		n.Edges = max(n.Edges, batch.Block(f.batch.Header, i)[batch.BlockNumEdges]*5/4)
	}
	return n
}

// Arrived repeats the batch with more working memory, or returns an error for a value that an
// operator does not accept.
func (p *Programs) Arrived(f *Flight, status, detail int64) (again bool, err error) {
	switch status {
	case statusWorkTooSmall:
		f.noted(Needs{Work: max(2*f.need.Work, uint64(detail)*5/4)})
		return true, nil
	case statusValueRefused:
		return false, p.refused(f.space.words(), detail)
	}
	return false, fmt.Errorf("a kernel reported status %d: a fault of pygsampler", status)
}

// refused returns the error for a value that a node does not accept.
func (p *Programs) refused(words []int64, node int64) error {
	op, x := p.program.Nodes[node].Op, program.ValueText(math.Float64frombits(uint64(words[ReportHeader])))
	name := op.String()
	switch op {
	case program.Multiply:
		name = "@"
		fallthrough
	case program.Sum, program.Mean:
		return fmt.Errorf("%w: %s: expected finite values, got %s", request.ErrValue, name, x)
	}
	switch op {
	case program.Dependent:
		return fmt.Errorf("%w: %s", request.ErrValue, program.DependentText(math.Float64frombits(uint64(words[ReportHeader])), words[ReportHeader+1]))
	case program.Individual, program.Collective:
		name += "_sample"
	case program.Level:
		name = "cap"
	}
	return fmt.Errorf("%w: %s: expected probabilities that are finite and >= 0, got %s for node %d", request.ErrValue, name, x, words[ReportHeader+1])
}

// programKernel is a program's, for ids and edges of some width.
type programKernel struct {
	gpu.Kernel[programArgs]
	together int // blocks that a multiprocessor runs at a time
}

// programOn is the kernel of a text for a graph, whose arrays have fixed addresses.
type programOn struct {
	kernel *programKernel
	arrays [programArrays]gpu.Address // the graph's; what batches bring is 0
}

// programOn returns the kernel of a text's key; nil if no batch of it has been launched.
func (g *Graph) programOn(key string) *programOn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.programs[key]
}

// on returns the kernel of a text on a graph; names, types and widths are resolved once.
func (p *Programs) on(g *Graph, text *source.Text, key string) (*programOn, error) {
	if known := g.programOn(key); known != nil {
		return known, nil
	}
	found, types, err := arrays(g, text)
	if err != nil {
		return nil, err
	}
	k, err := p.compiled(g, text, key, types)
	if err != nil {
		return nil, err
	}
	made := &programOn{k, found}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.programs[key] = made
	return made, nil
}

// compiled returns the kernel of a text for a graph and arrays of certain types, which is compiled
// once.
func (p *Programs) compiled(g *Graph, text *source.Text, key string, types []source.Type) (*programKernel, error) {
	bits := source.Widths{ID: g.IDBits, Place: 32, Indptr: g.IndptrBits, EdgeID: int(g.StoredEdgeIDBits()), OutEdge: g.SampleBits()}
	if g.Edges>>32 != 0 {
		bits.Place = 64
	}
	for _, t := range types {
		key += string(rune('a'+t.DType)) + strconv.FormatInt(t.Width, 10)
	}
	return Cached(g.engine, fmt.Sprint("program ", bits)+key, func(e *Engine) (*programKernel, error) {
		k, err := CompiledOf[programArgs](e, text.Program(bits, types), source.Kernel)
		if err != nil {
			return nil, err
		}
		together, err := k.Occupancy(programThreads, 0)
		return &programKernel{k, together}, err
	})
}

// Launch enqueues the whole program in one cooperative launch.
func (p *Programs) Launch(f *Flight) error {
	once, err := p.once(f)
	if err != nil {
		return err
	}
	s := SpaceOf[programSpace](f.space)
	inputs, err := s.inputs.fill(f, p.tensors())
	if err != nil {
		return err
	}
	out, bytes := f.Region()
	args := programArgs{
		Work: s.work.Address, WorkBytes: s.work.Size, Out: out, OutBytes: bytes, Cells: s.cells.Address,
		Seeds: f.call.Seeds, NumSeeds: uint64(f.call.NumSeeds), SeedBits: uint32(f.call.SeedBits),
	}
	if err := p.between(f, &args); err != nil {
		return err
	}
	return p.run(f, &p.text, p.key, once, inputs, &args)
}

// run launches the kernel of a text; the rest of its arguments is the graph's and the batch's.
func (p *Programs) run(f *Flight, text *source.Text, key string, once, inputs []gpu.Address, args *programArgs) error {
	c, g, w := &f.call, f.graph, f.space
	on, err := p.on(g, text, key)
	if err != nil {
		return err
	}
	args.Arrays = on.arrays
	for i, a := range text.Arrays {
		switch {
		case a.Once > 0:
			args.Arrays[i] = once[a.Once-1]
		case a.Input != nil:
			args.Arrays[i], inputs = inputs[0], inputs[1:]
		}
	}
	if args.Tag, err = SpaceOf[programSpace](w).vertices.tags(w, g.Nodes, 32, f.stream, uint32(text.Numberings)); err != nil {
		return err
	}
	random, meeting := c.Random(), w.meeting.Address
	args.Indptr, args.Indices, args.EdgeIDs, args.Map = g.Indptr, g.Indices, g.EdgeIDs, SpaceOf[programSpace](w).vertices.Address
	args.Arrived, args.Slots, args.Report, args.BadSeed = meeting, meeting+SlotsAt, f.Report(), meeting+BadSeedAt
	args.NumRows, args.NumNodes, args.NumEdges = uint64(g.Rows), uint64(g.Nodes), uint64(g.Edges)
	args.Excluded, args.NumExcluded = w.excluded.Address, uint64(len(c.Exclude))
	args.Key0, args.Key1, args.Batch0, args.Batch1 = random[0], random[1], random[2], random[3]
	args.NumCells = uint32(text.Cells)
	if p.hops != nil {
		args.Hops, args.Rounds = uint32(copy(args.Fanouts[:], p.hops.K)), uint32(p.hops.Rounds)
		for i, site := range p.hops.Sites {
			args.Sites[i] = uint32(site)
		}
	}
	shape := gpu.Shape{Grid: [3]uint32{uint32(f.Grid(on.kernel.together))}, Block: [3]uint32{programThreads}, Cooperative: true}
	return on.kernel.Launch(f.stream, shape, args)
}
