package cuda

import (
	"errors"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
)

// factorBatch mirrors FactorBatch in kernels/neighbor/edge_factors.cu.
type factorBatch struct {
	Told, Report, Out, Choices, Arrived gpu.Address
	OutCapacity                         uint64
	Key0, Key1, Batch0, Batch1          uint32
}

// factorArgs mirrors FactorArgs.
type factorArgs struct {
	All     neighborArgs
	Batches [mostBatches]factorBatch
}

// Factors is Neighbors with a factor for each edge. One launch samples the batch and reports to the
// device; a second one reads that report, computes the factors after the batch in memory, and
// reports to the host. So batches without factors use unchanged kernels.
type Factors struct{ Neighbors }

// Positions of a row's choices are stored in the memory of the factors if they fit into 31 bits,
// else in separate memory.
const narrowChoices = 1 << 31

// factorKernel is the one of kernels/neighbor/edge_factors.cu, whose threshold a test may change.
type factorKernel struct {
	gpu.Kernel[factorArgs]
	narrow int64
}

func loadFactors(e *Engine) (*factorKernel, error) {
	k, err := KernelOf[factorArgs](e, "edge_factors", "edge_factors", 0)
	return &factorKernel{k, narrowChoices}, err
}

func factorsOf(e *Engine) (*factorKernel, error) { return Cached(e, "edge_factors", loadFactors) }

// wide reports whether choices have separate memory. Rows that draw uniformly do not need it.
func (k *factorKernel) wide(g *Graph) bool { return g.Alias != 0 && g.Edges >= k.narrow }

// Shape returns another text than for batches without factors, which are smaller.
func (p *Factors) Shape() string { return p.Neighbors.Shape() + "ht" }

// Guess adds 4 bytes for each edge.
func (p *Factors) Guess(g *Graph, seeds int64) Needs {
	n := p.Neighbors.Guess(g, seeds)
	degree, bytes := 2*float64(g.Edges)/float64(max(g.Nodes, 1)), 0.0
	p.Expect(seeds, g.Nodes, degree, func(_, edges float64) {
		bytes += float64(batch.EdgeWeights(int64(min(edges, mostGuess)))) + batch.Alignment
	})
	n.Out = min(n.Out+uint64(bytes), mostOut)
	return n
}

// factorSpace is the state that the first launch of a batch passes to the second.
type factorSpace struct {
	told    buffer // a report that stays on the device; its status is 0 between batches
	choices buffer // 8 bytes for each edge, where positions are wide
	clean   bool
}

// Forget clears the report before the next batch: a failed kernel may have left an earlier report
// there.
func (s *factorSpace) Forget() { s.clean = false }

func (s *factorSpace) Free(stream gpu.Stream) error {
	return errors.Join(s.told.Free(stream), s.choices.Free(stream))
}

// told returns the address that the first launch of a flight reports to.
func told(f *Flight) gpu.Address { return SpaceOf[factorSpace](f.space).told.Address }

// Fit allocates the report, and wide choices.
func (p *Factors) Fit(f *Flight) error {
	k, err := factorsOf(f.engine)
	if err != nil {
		return err
	}
	if err := p.Neighbors.Fit(f); err != nil {
		return err
	}
	s, w := SpaceOf[factorSpace](f.space), f.space
	bytes := reportBytes()
	if err := s.told.fit(w, bytes, f.stream); err != nil {
		return err
	}
	if !s.clean {
		if err := f.stream.Fill32(s.told.Address, 0, bytes/4); err != nil {
			return err
		}
		s.clean = true
	}
	if !k.wide(f.graph) {
		return nil
	}
	// The kernel samples no batch with a hop of more edges.
	most := uint64(SpaceOf[hopSpace](w).edgeCapacity) * uint64(len(p.Fanouts))
	return s.choices.fit(w, 8*most, f.stream)
}

// Launch enqueues the batch, and then its factors.
func (p *Factors) Launch(f *Flight) error {
	if err := p.launch(f, told); err != nil {
		return err
	}
	return p.follow([]*Flight{f})
}

// LaunchMany enqueues two launches as well.
func (p *Factors) LaunchMany(flights []*Flight) error {
	if err := p.launchMany(flights, told); err != nil {
		return err
	}
	return p.follow(flights)
}

// follow makes the factors of batches that a launch in the same stream makes.
func (p *Factors) follow(flights []*Flight) error {
	first := flights[0]
	g, c := first.graph, &first.call
	rows, err := g.rowKernels()
	if err != nil {
		return err
	}
	k, err := factorsOf(first.engine)
	if err != nil {
		return err
	}
	var args factorArgs
	args.All.common(rows, g, &p.Neighbors)
	// Only single flights exclude edges.
	args.All.Excluded, args.All.NumExcluded = first.space.excluded.Address, uint64(len(c.Exclude))
	args.All.OutEdgeBits = 32
	if k.wide(g) {
		args.All.OutEdgeBits = 64
	}
	for i, f := range flights {
		out, bytes := f.Region()
		random := f.call.Random()
		args.Batches[i] = factorBatch{
			Told: told(f), Report: f.Report(), Out: out, Arrived: f.space.meeting.Address,
			OutCapacity: bytes, Key0: random[0], Key1: random[1], Batch0: random[2], Batch1: random[3],
		}
		if k.wide(g) {
			args.Batches[i].Choices = SpaceOf[factorSpace](f.space).choices.Address
		}
	}
	return k.Launch(first.stream, gpu.Shape{
		Grid:  [3]uint32{uint32(p.blocks(first, len(flights))), uint32(len(flights))},
		Block: [3]uint32{factorThreads},
	}, &args)
}

// blocks is a good number of them for one of several batches: a warp for each row that the
// flight has room for, as far as the device runs them at a time.
func (p *Factors) blocks(f *Flight, batches int) int {
	if f.call.Grid > 0 {
		return f.call.Grid
	}
	const rowsOfBlock = factorThreads / 32
	most := f.engine.context.Properties().Multiprocessors * 2048 / factorThreads
	return f.call.Within(max(min(int(f.need.Rows/rowsOfBlock), most/batches), 1), most/batches)
}
