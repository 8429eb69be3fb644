package cuda

import (
	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
)

// fusedArgs mirrors FusedArgs in kernels/research/fused.cu.
type fusedArgs struct {
	Graph                                            cuda.RowsArgs
	Seeds, Rows, Nodes, Firsts, Arrived, Slots, Out  gpu.Address
	Report, BadSeed                                  gpu.Address
	OutCapacity, RowCapacity, EdgeCapacity, NumSeeds uint64
	Hops, SeedBits                                   uint32
	Fanouts                                          [cuda.MostHops]int64
}

// Fused is mode "fused": all hops in one cooperative launch, dealt statically.
type Fused struct{ cuda.Hops }

type fusedKernels struct {
	of       [2]gpu.Kernel[fusedArgs] // graphs of int32 and of int64 ids
	together int                      // blocks of either that a multiprocessor runs at a time
}

func loadFused(e *cuda.Engine) (k *fusedKernels, err error) {
	k = &fusedKernels{together: 2}
	for i, name := range []string{"fused32", "fused64"} {
		if k.of[i], err = cuda.KernelOf[fusedArgs](e, "fused", name, 0); err != nil {
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
func (p *Fused) Launch(f *cuda.Flight) error {
	c, room := f.Call(), f.HopRoom()
	k, err := cuda.Cached(f.Engine(), "fused", loadFused)
	if err != nil {
		return err
	}
	rows, err := p.RowsArgs(f)
	if err != nil {
		return err
	}
	out, bytes := f.Region()
	args := fusedArgs{
		Graph: rows, Seeds: c.Seeds, SeedBits: uint32(c.SeedBits), NumSeeds: uint64(c.NumSeeds),
		Rows: room.Rows, Nodes: room.Nodes, Firsts: room.Firsts,
		Arrived: f.Meeting(), Slots: f.Meeting() + cuda.SlotsAt,
		Out: out, Report: f.Report(), BadSeed: f.Meeting() + cuda.BadSeedAt,
		OutCapacity: bytes, RowCapacity: uint64(room.RowCapacity), EdgeCapacity: uint64(room.EdgeCapacity),
		Hops: uint32(len(p.Fanouts)),
	}
	copy(args.Fanouts[:], p.Fanouts)
	shape := gpu.Shape{Grid: [3]uint32{uint32(f.Grid(k.together))}, Block: [3]uint32{fusedThreads}, Cooperative: true}
	return k.of[f.Graph().Wide()].Launch(f.Stream(), shape, &args)
}
