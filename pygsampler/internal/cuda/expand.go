package cuda

import (
	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
)

// expandBlock mirrors ExpandBlock in kernels/expand.cu.
type expandBlock struct {
	Indptr, Indices, Sources, Destinations gpu.Address
	Rows, Edges, First                     uint64
}

// expandArgs mirrors ExpandArgs in kernels/expand.cu.
type expandArgs struct {
	Blocks          [mostHops]expandBlock
	IDBits, OutBits uint32
}

func loadExpand(e *Engine) (*gpu.Kernel[expandArgs], error) {
	k, err := KernelOf[expandArgs](e, "expand", "expand", 0)
	return &k, err
}

// MostHops is how many blocks a batch of a device has at most.
const MostHops = mostHops

// Expansion is the edges of a batch's blocks one by one, to be written to memory of the
// device: for each block, outermost first, the local ids of its edges' sources, if Both,
// and then those of their destinations, without gaps.
type Expansion struct {
	Words []int64     // describe the batch
	Data  gpu.Address // the batch
	Bits  int         // of what is written: the batch's ids', or 64
	Both  bool
}

// Bytes is how much it writes.
func (x Expansion) Bytes() uint64 {
	edges := int64(0)
	for i := range int(x.Words[batch.WordHops]) {
		edges += batch.Block(x.Words, i)[batch.BlockNumEdges]
	}
	return uint64(edges) * x.width()
}

// width is the bytes that it writes for an edge.
func (x Expansion) width() uint64 {
	if x.Both {
		return uint64(x.Bits / 4)
	}
	return uint64(x.Bits / 8)
}

// Expand puts the expansion of a batch into a stream.
func (e *Engine) Expand(x Expansion, out gpu.Address, s gpu.Stream) error {
	args := expandArgs{IDBits: uint32(x.Words[batch.WordIDBits]), OutBits: uint32(x.Bits)}
	hops, most := int(x.Words[batch.WordHops]), uint64(0)
	for i := range hops {
		w := batch.Block(x.Words, i)
		b := &args.Blocks[i]
		b.Rows, b.Edges, b.First = uint64(w[batch.BlockNumDst]), uint64(w[batch.BlockNumEdges]), uint64(w[batch.BlockFirstDst])
		b.Indptr, b.Indices = x.Data+gpu.Address(w[batch.BlockIndptr]), x.Data+gpu.Address(w[batch.BlockIndices])
		b.Destinations = out
		if x.Both {
			b.Sources = out
			b.Destinations += gpu.Address(b.Edges * uint64(x.Bits/8))
		}
		out += gpu.Address(b.Edges * x.width())
		most = max(most, b.Edges)
	}
	if most == 0 {
		return nil
	}
	kernel, err := Kept(e, "expand", loadExpand)
	if err != nil {
		return err
	}
	// As many threads as may run at a time, where there are edges for them.
	blocks := min((most+expandThreads-1)/expandThreads, 8*uint64(e.context.Properties().Multiprocessors))
	shape := gpu.Shape{Grid: [3]uint32{uint32(blocks), uint32(hops)}, Block: [3]uint32{expandThreads}}
	return kernel.Launch(s, shape, &args)
}
