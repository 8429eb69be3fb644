package layers

// #include "reduce.h"
import "C"

import (
	"fmt"
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// EdgeScores are the scores of edges in GATv2, Att times leaky_relu(X + Own + Edge) of each head,
// or their gradients. Scores and the gradients of Att have the type of the sums: float32 for 16-bit
// values.
type EdgeScores struct {
	Reduction
	Own    int64 // [Rows, Width], floats
	Att    int64 // [Width]
	Edge   int64 // [Edges, Width], floats; 0: none
	Scores int64 // [Edges, Heads]: written, 0 for padding; with ToOwn gradients, those of Places, and read

	ToOwn  int64 // [Rows, Width], floats: the gradients of Own; 0: scores are asked for
	ToAtt  int64 // [Rows, Width]: the gradients of Att, by rows; 0: nobody asks
	ToEdge int64 // [Edges, Width], floats: the gradients of Edge, 0 for padding; 0: nobody asks

	Slope float64 // of what is below 0
}

// Check validates all fields; it does not read the arrays.
func (a *EdgeScores) Check() error {
	switch err := a.Reduction.Check(); {
	case err != nil:
		return err
	case a.Kind != Sum || a.Weights != 0 || a.Best != 0 || a.IDs != 0 || a.Degrees != 0 || a.ToOwn == 0 && a.Places != 0:
		return fmt.Errorf("%w: segments: expected scores on a plain sum, got %+v", request.ErrValue, *a)
	case a.Rows > 0 && a.Own == 0 || a.Att == 0 || a.Edges > 0 && a.Scores == 0 || a.ToOwn == 0 && a.ToAtt|a.ToEdge != 0 || a.ToEdge != 0 && a.Places != 0:
		return fmt.Errorf("%w: segments: expected addresses of scores, got %+v", request.ErrValue, *a)
	case math.IsNaN(a.Slope) || math.IsInf(a.Slope, 0):
		return fmt.Errorf("%w: negative_slope: expected a finite number, got %v", request.ErrValue, a.Slope)
	}
	return nil
}

// Make computes Scores, or with ToOwn their gradients.
func (a *EdgeScores) Make(crew csc.Crew) error {
	if err := a.Check(); err != nil {
		return err
	}
	c, err := a.checked()
	if err != nil {
		return err
	}
	b := C.pgs_edge_scores{
		own: pointer(a.Own), att: pointer(a.Att), edge: pointer(a.Edge), scores: pointer(a.Scores), to_own: pointer(a.ToOwn),
		to_att: pointer(a.ToAtt), to_edge: pointer(a.ToEdge), slope: C.double(a.Slope),
	}
	if a.ToEdge != 0 {
		a.clearPadding(a.ToEdge, a.Width*a.FloatBits/8)
	}
	if a.ToOwn == 0 {
		a.clearPadding(a.Scores, a.Heads*max(a.FloatBits, 32)/8)
		return a.rows(crew, func(low, high C.int64_t) C.int64_t { return C.pgs_edge_scores_of(&c, &b, low, high) })
	}
	return a.rows(crew, func(low, high C.int64_t) C.int64_t { return C.pgs_edge_scores_back(&c, &b, low, high) })
}
