package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// transitArgs mirrors TransitArgs in kernels/research/transit.cu.
type transitArgs struct {
	Walk                                            cuda.WalkArgs
	Order, Records, Tasks, Counts, Starts, Counters gpu.Address
	Step, Kind, IDBits, Second, WarpMost, RowMost   uint32
	Words                                           uint64
}

// transitKernels are the kernels of kernels/research/transit.cu. The kernels of step are by
// weights, the edges that they leave out, and the width of ids.
type transitKernels struct {
	begin, open, place, finish gpu.Kernel[transitArgs]
	step                       [2][3][2]gpu.Kernel[transitArgs]
	residents                  [2][3][2]int // blocks of step that a multiprocessor runs at a time
	residentsOfOthers          int
}

func loadTransits(e *cuda.Engine) (*transitKernels, error) {
	k := new(transitKernels)
	for name, to := range map[string]*gpu.Kernel[transitArgs]{
		"begin": &k.begin, "open": &k.open, "place": &k.place, "finish": &k.finish,
	} {
		var err error
		if *to, err = cuda.KernelOf[transitArgs](e, "transit", "transit_"+name, 0); err != nil {
			return nil, err
		}
	}
	for i, alias := range []string{"", "_alias"} {
		for kind, suffix := range []string{"", "_first", "_second"} {
			for wide, bits := range []string{"32", "64"} {
				var err error
				if k.step[i][kind][wide], err = cuda.KernelOf[transitArgs](e, "transit", "transit_step"+alias+suffix+bits, 0); err != nil {
					return nil, err
				}
				if k.residents[i][kind][wide], err = k.step[i][kind][wide].Occupancy(transitThreads, 0); err != nil {
					return nil, err
				}
			}
		}
	}
	var err error
	k.residentsOfOthers, err = k.open.Occupancy(transitThreads, 0)
	return k, err
}

// Transits is an execution of walks, of one of the names below: walkers are grouped by the nodes that
// they are at, NextDoor's transits (Jangda et al., section 5), in three launches per step.
type Transits string

// Executions that group by transits: ByTransits, and, to measure what these bring, without rows in shared memory
// and without classes by the number of walkers, which leaves no block that a row would be put there for.
const (
	ByTransits       = "transit"
	UncachedTransits = "transit_uncached"
	PlainTransits    = "transit_plain"
)

// Executions are all of them.
var Executions = []string{ByTransits, UncachedTransits, PlainTransits}

// GroupsTransits says whether an execution groups by transits.
func GroupsTransits(execution string) bool { return slices.Contains(Executions, execution) }

// Name returns the name that documents have for the execution.
func (t Transits) Name() string { return string(t) }

// Check refuses graphs whose nodes need more than 32 bits, in which transits are counted.
func (t Transits) Check(g *cuda.Graph) error {
	if g.Nodes>>32 != 0 {
		return fmt.Errorf("%w: execution: expected 'auto' or 'sample' for a graph of 2^32 nodes and more, got '%s'", request.ErrValue, t)
	}
	return nil
}

// Fit makes room for the walks of a flight.
func (t Transits) Fit(f *cuda.Flight, p *cuda.Walks) error {
	place := uint64(8)
	if p.Second() {
		place = 16
	}
	return cuda.SpaceOf[transitSpace](f.Space()).fit(f, uint64(p.Walks(f.Call().NumSeeds)), place)
}

// limit sets how many walkers a transit that shares warps has, and how many edges a row in shared memory, at most.
func (a *transitArgs) limit(execution string) {
	a.WarpMost, a.RowMost = transitWarp, transitRow
	if execution == UncachedTransits || execution == PlainTransits {
		a.RowMost = 0
	}
	if execution == PlainTransits {
		a.WarpMost = math.MaxUint32
	}
}

// transitSpace is what grouping walkers takes: for each walker a place in the order and a record,
// tasks, and two words for each vertex, of which the counts are zero between walks.
type transitSpace struct {
	order, records, tasks    gpu.Memory
	counts, starts, counters gpu.Memory
	clean                    uint64 // bytes of counts that are zero
}

// Forget has the counts cleared before the next walks.
func (s *transitSpace) Forget() { s.clean = 0 }

func (s *transitSpace) Free(stream gpu.Stream) error {
	return errors.Join(
		s.order.Free(stream), s.records.Free(stream), s.tasks.Free(stream),
		s.counts.Free(stream), s.starts.Free(stream), s.counters.Free(stream),
	)
}

// fit makes room for so many walkers, with so many bytes for the place of each.
func (s *transitSpace) fit(f *cuda.Flight, walks, place uint64) error {
	nodes := uint64(f.Graph().Nodes)
	counts := s.counts.Address
	for _, one := range []struct {
		memory *gpu.Memory
		bytes  uint64
	}{
		{&s.order, place * walks}, {&s.records, 16 * walks}, {&s.tasks, 16 * (walks/transitWarp + 1)},
		{&s.counts, 4 * (nodes + transitSide)}, {&s.starts, 4 * nodes}, {&s.counters, 4 * 2 * transitCounters},
	} {
		if err := f.Space().Grow(one.memory, one.bytes, f.Stream()); err != nil {
			return err
		}
	}
	if s.counts.Address != counts {
		s.clean = 0
	}
	if s.clean == s.counts.Size {
		return nil
	}
	err := f.Stream().Fill32(s.counts.Address, 0, s.counts.Size/4)
	if err == nil {
		s.clean = s.counts.Size
	}
	return err
}

// Launch puts three launches for each step into the stream.
func (t Transits) Launch(f *cuda.Flight, p *cuda.Walks, walks *cuda.WalkArgs, kind int) error {
	k, err := cuda.Cached(f.Engine(), "transit", loadTransits)
	if err != nil {
		return err
	}
	g, s := f.Graph(), cuda.SpaceOf[transitSpace](f.Space())
	args := transitArgs{
		Walk: *walks, Order: s.order.Address, Records: s.records.Address, Tasks: s.tasks.Address,
		Counts: s.counts.Address, Starts: s.starts.Address, Counters: s.counters.Address,
		IDBits: uint32(g.IDBits), Second: cuda.Word(p.Second()),
		Words: (f.Needs().Out - walks.NodesAt) / 4,
	}
	args.limit(string(t))
	// Launches that come to no end leave counts behind.
	clean := s.clean
	s.clean = 0
	// Blocks that wait for others to end would begin with what is left.
	launch := func(kernel *gpu.Kernel[transitArgs], residents int, items uint64) error {
		most := residents * f.Engine().Context().Properties().Multiprocessors
		blocks := max(min(int((items+transitThreads-1)/transitThreads), most), 1)
		if f.Call().Grid > 0 {
			blocks = min(f.Call().Grid, blocks)
		}
		blocks = f.Call().Within(blocks, most)
		shape := gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{transitThreads}}
		return kernel.Launch(f.Stream(), shape, &args)
	}
	if err := launch(&k.begin, k.residentsOfOthers, max(walks.Walks, args.Words/8)); err != nil {
		return err
	}
	// Only the device knows if open goes through nodes or walkers, so this is enough for both.
	looks := max(walks.Walks, min(walks.Nodes, transitSparse*walks.Walks)) / transitSide
	alias, wide := cuda.Word(g.Alias != 0), g.Wide()
	step, residents := &k.step[alias][kind][wide], k.residents[alias][kind][wide]
	length := walks.Length
	if walks.Walks == 0 {
		length = 0
	}
	for i := range length {
		args.Step, args.Kind = i, uint32(p.Kind(int64(i)))
		err = errors.Join(
			launch(&k.open, k.residentsOfOthers, looks), launch(&k.place, k.residentsOfOthers, walks.Walks),
			launch(step, residents, walks.Walks),
		)
		if err != nil {
			return err
		}
	}
	if p.Top == 0 {
		err = k.finish.Launch(f.Stream(), gpu.Shape{Grid: [3]uint32{1}, Block: [3]uint32{32}}, &args)
	}
	if err != nil {
		return err
	}
	s.clean = clean
	return nil
}
