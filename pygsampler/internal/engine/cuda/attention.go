package cuda

import "github.com/pygsampler/pygsampler/gpu"

// attendArgs mirrors AttentionArgs in kernels/layers/attention.cuh.
type attendArgs struct {
	Of                                              segmentArgs
	Source, Target, Edge, Log, Alpha, Pre, ToTarget gpu.Address
	Slope                                           float64
}

// attendKernels are those of kernels/layers/attention.cu, or of attention_half.cu.
type attendKernels struct {
	forward, back      gpu.Kernel[attendArgs]
	scores, scoresBack gpu.Kernel[edgeScoresArgs]
}

func loadAttention(file string) func(e *Engine) (*attendKernels, error) {
	return func(e *Engine) (k *attendKernels, err error) {
		k = new(attendKernels)
		if k.forward, err = KernelOf[attendArgs](e, file, file+"_forward", 0); err != nil {
			return nil, err
		}
		if k.back, err = KernelOf[attendArgs](e, file, file+"_backward", 0); err != nil {
			return nil, err
		}
		if k.scores, err = KernelOf[edgeScoresArgs](e, file, file+"_scores", 0); err != nil {
			return nil, err
		}
		k.scoresBack, err = KernelOf[edgeScoresArgs](e, file, file+"_scores_back", 0)
		return k, err
	}
}

var (
	loadAttend       = loadAttention("attention")
	loadAttendNarrow = loadAttention("attention_half")
)

// attendKernels are those for the floats of a segment.
func (e *Engine) attendKernels(g *Segment) (*attendKernels, error) {
	if g.FloatBits == 16 {
		return Kept(e, "attention_half", loadAttendNarrow)
	}
	return Kept(e, "attention", loadAttend)
}

// Attention is a Segment whose rows are summed by the softmax of their scores, as
// internal/engine/cpu/layers's Attention says; addresses are the device's.
type Attention struct {
	Segment
	Source, Target, Edge, Log, Alpha, Pre, ToTarget gpu.Address
	Slope                                           float64
}

// Attend puts it into a stream: forward, or backward where there is an Alpha.
func (e *Engine) Attend(t *Attention, s gpu.Stream) error {
	k, err := e.attendKernels(&t.Segment)
	if err != nil || t.Rows == 0 {
		return err
	}
	a := attendArgs{
		Of: t.args(), Source: t.Source, Target: t.Target, Edge: t.Edge, Log: t.Log, Alpha: t.Alpha, Pre: t.Pre,
		ToTarget: t.ToTarget, Slope: t.Slope,
	}
	// The columns of a vector are of one head.
	each, kernel := t.Width/t.Heads, &k.forward
	parts := (a.Of.shape(t.Width, each) + 31) / 32
	if t.Alpha != 0 {
		kernel, parts = &k.back, t.Heads
		a.Of.shape(each, each)
	}
	return kernel.Launch(s, a.Of.grid(parts), &a)
}

// softmaxArgs mirrors SoftmaxArgs in kernels/layers/softmax.cu.
type softmaxArgs struct {
	Indptr, X, Grad, Out            gpu.Address
	Rows, Edges                     uint64
	Heads, IDBits, FloatBits, Brain uint32
}

func loadSoftmax(e *Engine) (*gpu.Kernel[softmaxArgs], error) {
	k, err := KernelOf[softmaxArgs](e, "softmax", "softmax", 0)
	return &k, err
}

// Scores are scores of edges, as internal/engine/cpu/layers's Scores says; addresses are the device's.
type Scores struct {
	Indptr, X, Grad, Out gpu.Address
	Rows, Edges          uint64
	Heads                uint64 // at most MostSegmentWidth
	IDBits, FloatBits    int
	Brain                bool
}

// Softmax puts it into a stream.
func (e *Engine) Softmax(x *Scores, s gpu.Stream) error {
	k, err := Kept(e, "softmax", loadSoftmax)
	if err != nil || x.Edges == 0 {
		return err
	}
	a := softmaxArgs{
		Indptr: x.Indptr, X: x.X, Grad: x.Grad, Out: x.Out, Rows: x.Rows, Edges: x.Edges, Heads: uint32(x.Heads),
		IDBits: uint32(x.IDBits), FloatBits: uint32(x.FloatBits), Brain: word(x.Brain),
	}
	// A warp has a row, and one more what is padding.
	const warps = segmentThreads / 32
	blocks := min((x.Rows+warps)/warps, mostSegmentBlocks)
	shape := gpu.Shape{Grid: [3]uint32{uint32(blocks), uint32((x.Heads + 31) / 32)}, Block: [3]uint32{segmentThreads}}
	return k.Launch(s, shape, &a)
}
