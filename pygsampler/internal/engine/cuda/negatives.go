package cuda

import (
	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/negatives"
)

// negativeArgs mirrors NegativeArgs in kernels/walk/negatives.cu.
type negativeArgs struct {
	Alias, Places, Out           gpu.Address
	Numbers, Count, Slots, Below uint64
	Key0, Key1, Batch0, Batch1   uint32
	Site, OutBits                uint32
}

func loadNegatives(e *Engine) (*gpu.Kernel[negativeArgs], error) {
	k, err := KernelOf[negativeArgs](e, "negatives", "negatives", 0)
	return &k, err
}

// Negatives is a request with arrays on the device: the arrays of its Request are ignored.
type Negatives struct {
	negatives.Request
	Alias   gpu.Address // Below words; 0: all are equally likely
	Places  gpu.Address // Rows integers of 64 bits, >= 0; 0: those from 0 on
	Out     gpu.Address // Rows * Count integers of OutBits, 32 or 64
	OutBits int
}

// Negatives enqueues the draws.
func (e *Engine) Negatives(n *Negatives, s gpu.Stream) error {
	if err := n.Check(); err != nil {
		return err
	}
	if n.Rows*n.Count == 0 {
		return nil
	}
	k, err := Cached(e, "negatives", loadNegatives)
	if err != nil {
		return err
	}
	random := n.Stream().Words()
	args := negativeArgs{
		Alias: n.Alias, Places: n.Places, Out: n.Out, Numbers: uint64(n.Rows * n.Count), Count: uint64(n.Count),
		Slots: uint64(n.Slots), Below: uint64(n.Below), Site: uint32(n.Site), OutBits: uint32(n.OutBits),
		Key0: random[0], Key1: random[1], Batch0: random[2], Batch1: random[3],
	}
	// The grid has as many threads as can run at a time, if there are numbers for them.
	blocks := min((args.Numbers+negativeThreads-1)/negativeThreads, 8*uint64(e.context.Properties().Multiprocessors))
	return k.Launch(s, gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{negativeThreads}}, &args)
}
