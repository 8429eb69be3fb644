package cuda

import "github.com/pygsampler/pygsampler/gpu"

// fusedArgs mirrors FusedArgs in kernels/research/fused.cu.
type fusedArgs struct {
	Graph                                            rowsArgs
	Seeds, Rows, Nodes, Firsts, Arrived, Slots, Out  gpu.Address
	Report, BadSeed                                  gpu.Address
	OutCapacity, RowCapacity, EdgeCapacity, NumSeeds uint64
	Hops, SeedBits                                   uint32
	Fanouts                                          [mostHops]int64
}

// Fused is mode "fused": all hops in one cooperative launch, dealt statically.
type Fused struct{ Hops }

type fusedKernels struct {
	of       [2]gpu.Kernel[fusedArgs] // graphs of int32 and of int64 ids
	together int                      // blocks of either that a multiprocessor runs at a time
}

func loadFused(e *Engine) (k *fusedKernels, err error) {
	k = &fusedKernels{together: 2}
	for i, name := range []string{"fused32", "fused64"} {
		if k.of[i], err = KernelOf[fusedArgs](e, "fused", name, 0); err != nil {
			return nil, err
		}
		blocks, err := k.of[i].Occupancy(fusedThreads, 0)
		if err != nil {
			return nil, err
		}
		k.together = min(k.together, blocks)
	}
	return k, nil
}

// Launch puts that launch into the stream.
func (p *Fused) Launch(f *Flight) error {
	c, w := &f.call, f.space
	hop := SpaceOf[hopSpace](w)
	k, err := Cached(f.engine, "fused", loadFused)
	if err != nil {
		return err
	}
	rows, err := p.rowsArgs(f)
	if err != nil {
		return err
	}
	out, bytes := f.Region()
	args := fusedArgs{
		Graph: rows, Seeds: c.Seeds, SeedBits: uint32(c.SeedBits), NumSeeds: uint64(c.NumSeeds),
		Rows: hop.rows.Address, Nodes: hop.vertex.Address, Firsts: hop.firsts.Address,
		Arrived: w.meeting.Address, Slots: w.meeting.Address + slotsAt,
		Out: out, Report: w.report.Address, BadSeed: w.meeting.Address + badSeedAt,
		OutCapacity: bytes, RowCapacity: uint64(hop.rowCapacity), EdgeCapacity: uint64(hop.edgeCapacity),
		Hops: uint32(len(p.Fanouts)),
	}
	copy(args.Fanouts[:], p.Fanouts)
	shape := gpu.Shape{Grid: [3]uint32{uint32(f.grid(k.together))}, Block: [3]uint32{fusedThreads}, Cooperative: true}
	return k.of[f.graph.wide()].Launch(f.stream, shape, &args)
}
