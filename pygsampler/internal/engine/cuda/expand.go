package cuda

import (
	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
)

// expandBlock mirrors ExpandBlock in kernels/neighbor/expand_coo.cu.
type expandBlock struct {
	Indptr, Indices, Sources, Destinations gpu.Address
	Rows, Edges, First, OutBits            uint64
}

// expandArgs mirrors ExpandArgs in kernels/neighbor/expand_coo.cu.
type expandArgs struct {
	Blocks [MostHops]expandBlock
	IDBits uint32
}

func loadExpand(e *Engine) (*gpu.Kernel[expandArgs], error) {
	k, err := KernelOf[expandArgs](e, "expand_coo", "expand_coo", 0)
	return &k, err
}

// Expansion describes the edge lists of the blocks of a batch, to be written to device memory: for
// each block, outermost first, the local ids of its edges' sources, if Both, and then of their
// destinations, without gaps.
type Expansion struct {
	Words []int64     // describe the batch
	Data  gpu.Address // the batch
	Bits  int         // of what is written: the batch's ids', or 64
	Both  bool
	Out   gpu.Address // where it is written
}

// Bytes returns the number of bytes that the expansion writes.
func (x Expansion) Bytes() uint64 {
	edges := int64(0)
	for i := range int(x.Words[batch.WordNumHops]) {
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

// Expand enqueues expansions of batches whose ids have the same width, in as few launches as
// possible.
func (e *Engine) Expand(all []Expansion, s gpu.Stream) error {
	var args expandArgs
	count, most := 0, uint64(0)
	for _, x := range all {
		args.IDBits = uint32(x.Words[batch.WordIDBits])
		out := x.Out
		for i := range int(x.Words[batch.WordNumHops]) {
			w := batch.Block(x.Words, i)
			b := expandBlock{
				Rows: uint64(w[batch.BlockNumDst]), Edges: uint64(w[batch.BlockNumEdges]), First: uint64(w[batch.BlockFirstDst]),
				Indptr: x.Data + gpu.Address(w[batch.BlockIndptr]), Indices: x.Data + gpu.Address(w[batch.BlockIndices]),
				Destinations: out, OutBits: uint64(x.Bits),
			}
			if x.Both {
				b.Sources = out
				b.Destinations += gpu.Address(b.Edges * uint64(x.Bits/8))
			}
			out += gpu.Address(b.Edges * x.width())
			if b.Edges == 0 {
				continue
			}
			args.Blocks[count] = b
			most = max(most, b.Edges)
			if count++; count == MostHops {
				if err := e.expand(&args, count, most, s); err != nil {
					return err
				}
				count, most = 0, 0
			}
		}
	}
	if count == 0 {
		return nil
	}
	return e.expand(&args, count, most, s)
}

// expand is one launch for the first blocks, of which the largest has most edges.
func (e *Engine) expand(args *expandArgs, count int, most uint64, s gpu.Stream) error {
	kernel, err := Cached(e, "expand_coo", loadExpand)
	if err != nil {
		return err
	}
	// The grid has as many threads as can run at a time, if there are edges for them.
	blocks := min((most+expandThreads-1)/expandThreads, 8*uint64(e.context.Properties().Multiprocessors))
	shape := gpu.Shape{Grid: [3]uint32{uint32(blocks), uint32(count)}, Block: [3]uint32{expandThreads}}
	return kernel.Launch(s, shape, args)
}
