package cuda

import "github.com/pygsampler/pygsampler/gpu"

// edgeScoresArgs mirrors EdgeScoresArgs in kernels/layers/edge_scores.cuh.
type edgeScoresArgs struct {
	Of                                           segmentArgs
	Own, Att, Edge, Scores, ToOwn, ToAtt, ToEdge gpu.Address
	Slope                                        float64
}

// EdgeScores are scores on a Segment, like layers.EdgeScores of the CPU engine; addresses are on
// the device.
type EdgeScores struct {
	Segment
	Own, Att, Edge, Scores, ToOwn, ToAtt, ToEdge gpu.Address
	Slope                                        float64
}

// EdgeScores enqueues the computation of the scores, or of their gradients if there is a ToOwn.
func (e *Engine) EdgeScores(t *EdgeScores, s gpu.Stream) error {
	k, err := e.attendKernels(&t.Segment)
	if err != nil || t.Rows == 0 {
		return err
	}
	a := edgeScoresArgs{
		Of: t.args(), Own: t.Own, Att: t.Att, Edge: t.Edge, Scores: t.Scores, ToOwn: t.ToOwn, ToAtt: t.ToAtt, ToEdge: t.ToEdge,
		Slope: t.Slope,
	}
	// A vector of each of the arrays is one load.
	together := t.X | t.Own | t.Edge | t.ToOwn | t.ToEdge
	a.Of.X = together
	each, kernel, parts := t.Width/t.Heads, &k.scores, t.Heads
	if t.ToOwn != 0 {
		kernel, parts = &k.scoresBack, a.Of.parts(t.Width, each)
	} else {
		a.Of.shape(each, each)
	}
	a.Of.X = t.X
	if t.ToOwn == 0 && t.Edges >= manyEdges {
		a.Of.Pieces = t.pieces()
	}
	if err := kernel.Launch(s, a.Of.grid(parts), &a); err != nil || a.Of.Pieces == 0 || t.ToOwn == 0 {
		return err
	}
	if err := e.fold(&t.Segment, t.Room, t.ToOwn, t.Width, s); err != nil || t.ToAtt == 0 {
		return err
	}
	sums := t.Room + gpu.Address(t.pieces()*t.Width*t.sumBytes())
	return e.fold(t.inSums(), sums, t.ToAtt, t.Width, s)
}
