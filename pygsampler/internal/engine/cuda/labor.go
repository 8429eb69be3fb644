package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pygsampler/pygsampler/gpu"
)

// heteroLaborArgs mirrors LaborArgs in kernels/hetero/labor.cuh.
type heteroLaborArgs struct {
	Batch                                        heteroArgs
	Work                                         programArgs
	Salts                                        gpu.Address
	Rounds                                       int64
	Exact, SameLayers, Batches, Scaled, Weighted uint32
	_                                            uint32
}

// Labor is the plan of LABOR on a heterogeneous graph, for one call: all hops in one launch.
// NewLabor returns one.
type Labor struct {
	Hetero
	Rounds     int64 // of LABOR-i; -1: until the expected number of nodes hardly falls
	Exact      bool  // as cpu.Labor has it, likewise the rest
	SameLayers bool
	Batches    uint64
	Scaled     bool
	Salts      []uint64 // of each node type, as csc.NodeType has them
}

// NewLabor returns a plan; p must not have Replace, Disjoint and Times set.
func NewLabor(p Labor) *Labor {
	for _, salt := range p.Salts {
		p.numbers = append(p.numbers, int64(salt))
	}
	return &p
}

// laborCells is the number of counters of a hop: of the searches before the rounds, of those in
// them, and of keys.
const laborCells = 24

type laborKernels struct {
	of             [2]gpu.Kernel[heteroLaborArgs] // of int32 and of int64 ids
	room, together int                            // as heteroKernels has them
}

func loadLabor(e *Engine) (k *laborKernels, err error) {
	k = new(laborKernels)
	for i, bits := range []string{"32", "64"} {
		if k.of[i], err = KernelOf[heteroLaborArgs](e, "labor", "labor"+bits, 0); err != nil {
			return nil, err
		}
	}
	k.room, k.together, err = roomOf(e, []gpu.Function{k.of[0].Function, k.of[1].Function}, 0)
	return k, err
}

func (g *Graph) laborKernels() (*laborKernels, error) { return Cached(g.engine, "labor", loadLabor) }

// Check returns an error for requests that no kernel supports.
func (p *Labor) Check(g *Graph, c *Call) error {
	if err := p.checkTypes(g); err != nil {
		return err
	}
	k, err := g.laborKernels()
	if err != nil {
		return err
	}
	if p.Exact && p.copies == nil {
		copies := make([]gpu.Address, len(g.relations))
		for i, r := range g.relations {
			if copies[i], err = r.copies(); err != nil {
				return err
			}
		}
		p.copies = copies
	}
	return g.typesFit(k.room, 0)
}

// Shape returns the fanouts, and all other parameters that determine the number of edges and the
// working memory.
func (p *Labor) Shape() string {
	return p.Hetero.Shape() + string(binary.AppendVarint([]byte{byte(Word(p.Exact)), byte(Word(p.Scaled))}, min(p.Rounds, 1)))
}

// Guess estimates the needs of a batch from rows of twice the mean degree, all of whose edges are
// read.
func (p *Labor) Guess(g *Graph, seeds int64) Needs {
	n := p.Hetero.Guess(g, seeds)
	most := 0.0
	for i, r := range g.schema.EdgeTypes {
		most = max(most, 2*float64(g.relations[i].Edges)/float64(max(g.schema.NodeTypes[r.Dst].Nodes, 1)))
	}
	n.Work = uint64(min(leastWork+float64(n.Rows)*(32+most*p.perCandidate(g)), mostWork))
	return n
}

// perCandidate is the bytes that a hop takes for each edge of its rows.
func (p *Labor) perCandidate(g *Graph) (bytes float64) {
	bytes = 0.25
	if p.weighted(g) {
		bytes += 8
	}
	if p.Exact {
		bytes += 8
	}
	if p.Rounds != 0 {
		bytes += 4 + 3*24
	}
	return bytes
}

// Used returns the sizes of the batch and of its working memory, plus a quarter.
func (p *Labor) Used(f *Flight) Needs {
	n := p.Hetero.Used(f)
	n.Work = uint64(f.space.words()[ReportDetail]) * 5 / 4
	return n
}

// Arrived repeats the batch with more working memory.
func (p *Labor) Arrived(f *Flight, status, detail int64) (again bool, err error) {
	if status != statusWorkTooSmall {
		return false, fmt.Errorf("a kernel reported status %d: a fault of pygsampler", status)
	}
	f.noted(Needs{Work: max(2*f.need.Work, uint64(detail)*5/4)})
	return true, nil
}

// laborSpace is the working memory of the choice of edges, in addition to that of batches of
// heterogeneous graphs.
type laborSpace struct{ work, cells, slots buffer }

// Forget does nothing, since every launch begins anew.
func (*laborSpace) Forget() {}

func (s *laborSpace) Free(stream gpu.Stream) error {
	return errors.Join(s.work.Free(stream), s.cells.Free(stream), s.slots.Free(stream))
}

// Fit allocates the batch and the working memory.
func (p *Labor) Fit(f *Flight) error {
	s, w := SpaceOf[laborSpace](f.space), f.space
	return errors.Join(
		p.Hetero.Fit(f), s.work.fit(w, max(f.need.Work, leastWork), f.stream),
		s.cells.fit(w, p.cells()*4, f.stream), s.slots.fit(w, 2*16*MostBlocks, f.stream),
	)
}

func (p *Labor) cells() uint64 { return laborCells * uint64(max(p.hops(), 1)) }

func (p *Labor) weighted(g *Graph) bool {
	for _, r := range g.relations {
		if r.Alias != 0 {
			return true
		}
	}
	return false
}

// Launch enqueues all hops in one cooperative launch.
func (p *Labor) Launch(f *Flight) error {
	g, s := f.graph, SpaceOf[laborSpace](f.space)
	k, err := g.laborKernels()
	if err != nil {
		return err
	}
	batch, salts, _, err := p.ready(f, k.room)
	if err != nil {
		return err
	}
	batch.Out, batch.OutCapacity = f.Region()
	args := heteroLaborArgs{
		Batch: batch, Salts: salts, Rounds: p.Rounds,
		Exact: Word(p.Exact), SameLayers: Word(p.SameLayers), Batches: uint32(max(p.Batches, 1)), Scaled: Word(p.Scaled),
		Weighted: Word(p.weighted(g)),
		Work: programArgs{
			Arrived: batch.Arrived, Slots: s.slots.Address, Work: s.work.Address, WorkBytes: s.work.Size,
			Cells: s.cells.Address, NumCells: uint32(p.cells()),
		},
	}
	shared, together := tablesOf(len(p.Seeds), len(p.Fanouts)), k.together
	kernel := &k.of[g.Wide()]
	if shared > usualTables {
		if together, err = kernel.Occupancy(threads, shared); err != nil {
			return err
		}
	}
	// All edges of rows are looked at, of which a part stays.
	looked := int64(float64(f.need.Work) / p.perCandidate(g))
	shape := gpu.Shape{Grid: [3]uint32{uint32(f.gridFor(together, max(looked, f.need.Edges)))}, Block: [3]uint32{threads}, Shared: uint32(shared), Cooperative: true}
	return kernel.Launch(f.stream, shape, &args)
}
