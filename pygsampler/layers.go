package pygsampler

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/layers"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// segmentWords is the number of words that describe a reduction: the fields of layers.Reduction in
// order, and scratch on a device for long rows, an address and a number of bytes.
const segmentWords = 22

func reductionAt(list int64) *layers.Reduction {
	w := memory.View[int64](list, segmentWords)
	return &layers.Reduction{
		X: w[0], Indptr: w[1], Indices: w[2], Weights: w[3], Out: w[4], Best: w[5],
		Sources: w[6], Rows: w[7], Edges: w[8], Width: w[9], Heads: w[10],
		Kind: w[11], IDBits: w[12], FloatBits: w[13], Brain: w[14], IDs: w[15], Table: w[16], Degrees: w[17], Places: w[18], Piece: w[19],
	}
}

// SegmentReduce reduces rows over segments, on the caller's thread and idle threads.
func SegmentReduce(list int64) error {
	return reductionAt(list).Reduce(crewOf(0))
}

// SegmentDots writes the dot products of each edge's two rows to dots.
func SegmentDots(list, dots int64) error {
	return reductionAt(list).Dots(dots, crewOf(0))
}

// SegmentTranspose groups the edges by their sources; places may be 0.
func SegmentTranspose(list, starts, rows, places int64) error {
	return reductionAt(list).Transpose(starts, rows, places)
}

// attentionAt returns the fields of layers.Attention in order, which follow those of its reduction.
// The one before the last holds the bits of a float.
func attentionAt(list int64) *layers.Attention {
	w := memory.View[int64](list, segmentWords+9)[segmentWords:]
	return &layers.Attention{
		Reduction: *reductionAt(list), Source: w[0], Target: w[1], Edge: w[2], Log: w[3], Alpha: w[4], Pre: w[5], ToTarget: w[6],
		Slope: math.Float64frombits(uint64(w[7])), Shared: w[8],
	}
}

// edgeScoresAt returns the fields of layers.EdgeScores, which follow the fields of a
// layers.Attention with a slope only, and the format; nil if there are none.
func edgeScoresAt(list int64) *layers.EdgeScores {
	w := memory.View[int64](list, segmentWords+16)[segmentWords:]
	if w[9] == 0 {
		return nil
	}
	return &layers.EdgeScores{
		Reduction: *reductionAt(list), Own: w[9], Att: w[10], Edge: w[11], Scores: w[12], ToOwn: w[13], ToAtt: w[14], ToEdge: w[15],
		Slope: math.Float64frombits(uint64(w[7])),
	}
}

// scoresAt returns a layers.Scores from the fields of a reduction, whose width is the number of
// heads, and the next word.
func scoresAt(list int64) *layers.Scores {
	r := reductionAt(list)
	return &layers.Scores{
		Indptr: r.Indptr, X: r.X, Grad: memory.View[int64](list, segmentWords+1)[segmentWords], Out: r.Out, Rows: r.Rows,
		Edges: r.Edges, Heads: r.Width, IDBits: r.IDBits, FloatBits: r.FloatBits, Brain: r.Brain,
	}
}

// SegmentAttend computes attention on a reduction, or its gradients, as layers.Attention describes;
// or scores of edges, as layers.EdgeScores describes, if the words name own rows of the
// destinations.
func SegmentAttend(list int64) error {
	if scores := edgeScoresAt(list); scores != nil {
		return scores.Make(crewOf(0))
	}
	return attentionAt(list).Attend(crewOf(0))
}

// SegmentSoftmax computes the softmax of scores, or its gradient, as layers.Scores describes.
func SegmentSoftmax(list int64) error {
	return scoresAt(list).Softmax(crewOf(0))
}
