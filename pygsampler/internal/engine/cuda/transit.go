package cuda

import (
	"errors"
	"math"

	"github.com/pygsampler/pygsampler/gpu"
)

// transitArgs mirrors TransitArgs in kernels/research/transit.cu.
type transitArgs struct {
	Walk                                            walkArgs
	Order, Records, Tasks, Counts, Starts, Counters gpu.Address
	Step, Kind, IDBits, Second, WarpMost, RowMost   uint32
	Words                                           uint64
}

// transitKernels are those of kernels/research/transit.cu. Of step they are by weights, what they leave
// out, and the width of ids.
type transitKernels struct {
	begin, open, place, finish gpu.Kernel[transitArgs]
	step                       [2][3][2]gpu.Kernel[transitArgs]
	residents                  [2][3][2]int // blocks of step that a multiprocessor runs at a time
	residentsOfOthers          int
}

func loadTransits(e *Engine) (*transitKernels, error) {
	k := new(transitKernels)
	for name, to := range map[string]*gpu.Kernel[transitArgs]{
		"begin": &k.begin, "open": &k.open, "place": &k.place, "finish": &k.finish,
	} {
		var err error
		if *to, err = KernelOf[transitArgs](e, "transit", "transit_"+name, 0); err != nil {
			return nil, err
		}
	}
	for i, alias := range []string{"", "_alias"} {
		for kind, suffix := range []string{"", "_first", "_second"} {
			for wide, bits := range []string{"32", "64"} {
				var err error
				if k.step[i][kind][wide], err = KernelOf[transitArgs](e, "transit", "transit_step"+alias+suffix+bits, 0); err != nil {
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

// Executions that group by transits: ByTransits, and, to measure what these bring, without rows in shared memory
// and without classes by the number of walkers, which leaves no block that a row would be put there for.
const (
	ByTransits       = "transit"
	UncachedTransits = "transit_uncached"
	PlainTransits    = "transit_plain"
)

// GroupsTransits says whether an execution groups by transits.
func GroupsTransits(execution string) bool {
	return execution == ByTransits || execution == UncachedTransits || execution == PlainTransits
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

// byTransits says whether walkers are grouped by where they are.
func (p *Walks) byTransits() bool { return GroupsTransits(p.Execution) }

// transitSpace is what grouping walkers takes: for each walker a place in the order and a record,
// tasks, and two words for each vertex, of which the counts are zero between walks.
type transitSpace struct {
	order, records, tasks    buffer
	counts, starts, counters buffer
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

// fit makes room for the walks of a flight.
func (s *transitSpace) fit(f *Flight, p *Walks) error {
	place := uint64(8)
	if p.Second() {
		place = 16
	}
	return s.fitFor(f, uint64(p.Walks(f.call.NumSeeds)), place)
}

// fitFor makes room for so many walkers, with so many bytes for the place of each.
func (s *transitSpace) fitFor(f *Flight, walks, place uint64) error {
	nodes := uint64(f.graph.Nodes)
	counts := s.counts.Address
	for _, one := range []struct {
		buffer *buffer
		bytes  uint64
	}{
		{&s.order, place * walks}, {&s.records, 16 * walks}, {&s.tasks, 16 * (walks/transitWarp + 1)},
		{&s.counts, 4 * (nodes + transitSide)}, {&s.starts, 4 * nodes}, {&s.counters, 4 * 2 * transitCounters},
	} {
		if err := one.buffer.fit(f.space, one.bytes, f.stream); err != nil {
			return err
		}
	}
	if s.counts.Address != counts {
		s.clean = 0
	}
	if s.clean == s.counts.Size {
		return nil
	}
	err := f.stream.Fill32(s.counts.Address, 0, s.counts.Size/4)
	if err == nil {
		s.clean = s.counts.Size
	}
	return err
}

// launchTransits puts three launches for each step into the stream.
func (p *Walks) launchTransits(f *Flight, walks *walkArgs, kind int) error {
	k, err := Cached(f.engine, "transit", loadTransits)
	if err != nil {
		return err
	}
	g, s := f.graph, SpaceOf[transitSpace](f.space)
	args := transitArgs{
		Walk: *walks, Order: s.order.Address, Records: s.records.Address, Tasks: s.tasks.Address,
		Counts: s.counts.Address, Starts: s.starts.Address, Counters: s.counters.Address,
		IDBits: uint32(g.IDBits), Second: word(kind == walkSecond),
		Words: (f.need.Out - walks.NodesAt) / 4,
	}
	args.limit(p.Execution)
	// Launches that come to no end leave counts behind.
	clean := s.clean
	s.clean = 0
	// Blocks that wait for others to end would begin with what is left.
	launch := func(kernel *gpu.Kernel[transitArgs], residents int, items uint64) error {
		most := residents * f.engine.context.Properties().Multiprocessors
		blocks := max(min(int((items+transitThreads-1)/transitThreads), most), 1)
		if f.call.Grid > 0 {
			blocks = min(f.call.Grid, blocks)
		}
		blocks = f.call.within(blocks, most)
		shape := gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{transitThreads}}
		return kernel.Launch(f.stream, shape, &args)
	}
	if err := launch(&k.begin, k.residentsOfOthers, max(walks.Walks, args.Words/8)); err != nil {
		return err
	}
	// Whether open goes through vertices or walkers is known on the device alone.
	looks := max(walks.Walks, min(walks.Nodes, transitSparse*walks.Walks)) / transitSide
	alias, wide := word(g.Alias != 0), g.wide()
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
		err = k.finish.Launch(f.stream, gpu.Shape{Grid: [3]uint32{1}, Block: [3]uint32{32}}, &args)
	}
	if err != nil {
		return err
	}
	s.clean = clean
	return nil
}
