package cuda

import (
	"sync"

	"github.com/pygsampler/pygsampler/gpu"
)

// fusedArgs mirrors FusedArgs in kernels/fused.cu.
type fusedArgs struct {
	Graph                                            rowsArgs
	Seeds, Rows, Nodes, Firsts, Arrived, Slots, Out  gpu.Address
	Report, BadSeed                                  gpu.Address
	OutCapacity, RowCapacity, EdgeCapacity, NumSeeds uint64
	Hops, SeedBits                                   uint32
	Fanouts                                          [mostHops]int64
}

// fusedLoaded are the kernels of mode "fused", loaded at their first use.
type fusedLoaded struct {
	loading      sync.Mutex
	loaded       bool
	narrow, wide gpu.Kernel[fusedArgs] // graphs of int32 and of int64 ids
}

func (l *fusedLoaded) get(e *Engine, bits int) (gpu.Kernel[fusedArgs], error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	if !l.loaded {
		var err error
		if l.narrow, err = kernelOf[fusedArgs](e, "fused", "fused32", 0); err != nil {
			return l.narrow, err
		}
		if l.wide, err = kernelOf[fusedArgs](e, "fused", "fused64", 0); err != nil {
			return l.wide, err
		}
		l.loaded = true
	}
	if bits == 64 {
		return l.wide, nil
	}
	return l.narrow, nil
}

// launchFused is all hops in one cooperative launch, dealt statically.
func (e *Engine) launchFused(f *Flight) error {
	c, w := &f.call, f.space
	if len(c.Request.Fanouts) == 0 {
		return e.launchPersistent(f)
	}
	kernel, err := e.fused.get(e, f.graph.IDBits)
	if err != nil {
		return err
	}
	rows, err := f.rowsArgs()
	if err != nil {
		return err
	}
	out, bytes := f.region()
	args := fusedArgs{
		Graph: rows, Seeds: c.Seeds, SeedBits: uint32(c.SeedBits), NumSeeds: uint64(c.NumSeeds),
		Rows: w.rows.Address, Nodes: w.vertex.Address, Firsts: w.firsts.Address,
		Arrived: w.meeting.Address, Slots: w.meeting.Address + slotsAt,
		Out: out, Report: w.report.Address, BadSeed: w.meeting.Address + badSeedAt,
		OutCapacity: bytes, RowCapacity: uint64(w.rowCapacity), EdgeCapacity: uint64(w.edgeCapacity),
		Hops: uint32(len(c.Request.Fanouts)),
	}
	copy(args.Fanouts[:], c.Request.Fanouts)
	shape := gpu.Shape{Grid: [3]uint32{uint32(e.grid(f))}, Block: [3]uint32{fusedThreads}, Cooperative: true}
	return kernel.Launch(f.stream, shape, &args)
}
