package cuda

import "github.com/pygsampler/pygsampler/gpu"

// attendArgs mirrors AttentionArgs in kernels/layers/attention.cuh.
type attendArgs struct {
	Of                                              segmentArgs
	Source, Target, Edge, Log, Alpha, Pre, ToTarget gpu.Address
	Slope                                           float64
}

// attendKernels are the kernels of kernels/layers/attention.cu, or of attention_half.cu.
type attendKernels struct {
	forward, back             gpu.Kernel[attendArgs]
	forwardShared, backShared gpu.Kernel[attendArgs]
	fold, pieces              gpu.Kernel[attendArgs]
	scores, scoresBack        gpu.Kernel[edgeScoresArgs]
}

func loadAttention(file string) func(e *Engine) (*attendKernels, error) {
	return func(e *Engine) (k *attendKernels, err error) {
		k = new(attendKernels)
		for name, to := range map[string]*gpu.Kernel[attendArgs]{
			"_forward": &k.forward, "_backward": &k.back, "_forward_shared": &k.forwardShared,
			"_backward_shared": &k.backShared, "_fold": &k.fold, "_pieces": &k.pieces,
		} {
			if *to, err = KernelOf[attendArgs](e, file, file+name, 0); err != nil {
				return nil, err
			}
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

// attendKernels returns the kernels for the floats of a segment.
func (e *Engine) attendKernels(g *Segment) (*attendKernels, error) {
	if g.FloatBits == 16 {
		return Cached(e, "attention_half", loadAttendNarrow)
	}
	return Cached(e, "attention", loadAttend)
}

// Attention is a Segment whose rows are summed by the softmax of their scores, like
// layers.Attention of the CPU engine; addresses are on the device.
type Attention struct {
	Segment
	Source, Target, Edge, Log, Alpha, Pre, ToTarget gpu.Address
	Slope                                           float64
	Shared                                          bool // whether the heads share the rows of X
}

// Attend enqueues the computation: forward, or backward if there is an Alpha.
func (e *Engine) Attend(t *Attention, s gpu.Stream) error {
	k, err := e.attendKernels(&t.Segment)
	if err != nil || t.Rows == 0 {
		return err
	}
	a := attendArgs{
		Of: t.args(), Source: t.Source, Target: t.Target, Edge: t.Edge, Log: t.Log, Alpha: t.Alpha, Pre: t.Pre,
		ToTarget: t.ToTarget, Slope: t.Slope,
	}
	each, back := t.Width/t.Heads, t.Alpha != 0
	var kernel *gpu.Kernel[attendArgs]
	var grid gpu.Shape
	switch {
	case t.Shared:
		// The heads of a row are neighbors of one block, so that its L1 has the rows of x for all of them.
		kernel, grid = &k.forwardShared, a.Of.gridOf((a.Of.Pieces+t.Rows)*t.Heads, a.Of.parts(each, each))
		if back {
			kernel, grid.Grid[1] = &k.backShared, 1
		}
	case back:
		a.Of.shape(each, each)
		kernel, grid = &k.back, a.Of.grid(t.Heads)
	default:
		kernel, grid = &k.forward, a.Of.grid(a.Of.parts(t.Width, each))
	}
	if err := kernel.Launch(s, grid, &a); err != nil || a.Of.Pieces == 0 {
		return err
	}
	if !back {
		return k.fold.Launch(s, a.Of.foldGrid(a.Of.parts(t.Width, each)), &a)
	}
	// A warp has a piece.
	a.Of.Group = 5
	if err := k.pieces.Launch(s, a.Of.foldGrid(t.Heads), &a); err != nil || t.ToTarget == 0 {
		return err
	}
	sums := t.Room + gpu.Address(t.pieces()*t.Heads*t.sumBytes())
	return e.fold(t.inSums(), sums, t.ToTarget, t.Heads, s)
}

// softmaxArgs mirrors SoftmaxArgs in kernels/layers/softmax.cu.
type softmaxArgs struct {
	Of   segmentArgs
	Grad gpu.Address
}

// softmaxKernels are the kernels of kernels/layers/softmax.cu.
type softmaxKernels struct {
	softmax, pieces gpu.Kernel[softmaxArgs]
}

func loadSoftmax(e *Engine) (*softmaxKernels, error) {
	softmax, err := KernelOf[softmaxArgs](e, "softmax", "softmax", 0)
	if err != nil {
		return nil, err
	}
	pieces, err := KernelOf[softmaxArgs](e, "softmax", "softmax_pieces", 0)
	return &softmaxKernels{softmax, pieces}, err
}

// Scores are scores of edges, the X of a Segment, like layers.Scores of the CPU engine; addresses
// are on the device. Width is the number of heads, at most MostSegmentWidth.
type Scores struct {
	Segment
	Grad gpu.Address
}

// Softmax enqueues the computation.
func (e *Engine) Softmax(x *Scores, s gpu.Stream) error {
	k, err := Cached(e, "softmax", loadSoftmax)
	if err != nil || x.Edges == 0 {
		return err
	}
	a := softmaxArgs{Of: x.args(), Grad: x.Grad}
	if x.Rows == 0 {
		a.Of.Pieces = 0
	}
	// A warp has a row, and one more what is padding.
	a.Of.Group = 5
	parts := (x.Width + 31) / 32
	if err := k.softmax.Launch(s, a.Of.gridOf(a.Of.Pieces+x.Rows+1, parts), &a); err != nil || a.Of.Pieces == 0 {
		return err
	}
	return k.pieces.Launch(s, a.Of.foldGrid(parts), &a)
}
