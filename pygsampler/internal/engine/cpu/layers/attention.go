package layers

// #cgo LDFLAGS: -lm
// #include "reduce.h"
import "C"

import (
	"fmt"
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Attention is a reduction by the softmax of each row's scores, leaky_relu(Source + Target + Edge),
// any of which may be missing. Scores and gradients have the type of the sums: float32 for 16-bit
// values. Attend writes Out; AttendBack reads the gradient there. With Shared X is
// [Table, Width / Heads], and all heads sum its rows.
type Attention struct {
	Reduction
	Source int64 // [Sources, Heads]; 0, as Target and Edge: none
	Target int64 // [Rows, Heads]
	Edge   int64 // [Edges, Heads]
	Log    int64 // [Rows, Heads]: of the sum of a row's exponentials; 0 in Attend: nobody asks

	// Arguments of AttendBack.
	Alpha    int64 // [Edges, Heads], floats: the weights
	Pre      int64 // [Edges, Heads]: the gradients of Source + Target + Edge; for padding 0 with an Edge, else as Alpha not written
	ToTarget int64 // [Rows, Heads]: the gradients of Target; 0: nobody asks

	Slope  float64 // of what is below 0
	Shared int64   // whether the heads share the rows of X; 0 or 1
}

// Check validates all fields; it does not read the arrays.
func (a *Attention) Check() error {
	if err := a.Reduction.Check(); err != nil {
		return err
	}
	switch back := a.Alpha != 0; {
	case a.Kind != Sum || a.Weights != 0 || a.Best != 0 || a.IDs != 0 || a.Degrees != 0:
		return fmt.Errorf("%w: segments: expected attention on a plain sum, got %+v", request.ErrValue, *a)
	case a.Edges > 0 && a.Source == 0 && a.Edge == 0 || back != (a.Pre != 0) || back && a.Log == 0:
		return fmt.Errorf("%w: segments: expected addresses of attention, got %+v", request.ErrValue, *a)
	case a.Shared != 0 && a.Shared != 1:
		return fmt.Errorf("%w: segments: expected shared rows as 0 or 1, got %d", request.ErrValue, a.Shared)
	case math.IsNaN(a.Slope) || math.IsInf(a.Slope, 0):
		return fmt.Errorf("%w: negative_slope: expected a finite number, got %v", request.ErrValue, a.Slope)
	}
	return nil
}

func (a *Attention) c() C.pgs_attention {
	return C.pgs_attention{
		source: pointer(a.Source), target: pointer(a.Target), edge: pointer(a.Edge), log: pointer(a.Log), alpha: pointer(a.Alpha),
		pre: pointer(a.Pre), to_target: pointer(a.ToTarget), slope: C.double(a.Slope),
		shared: C.int32_t(a.Shared),
	}
}

// Attend computes Out and Log, or, if there is an Alpha, the results of AttendBack.
func (a *Attention) Attend(crew csc.Crew) error {
	if err := a.Check(); err != nil {
		return err
	}
	c, err := a.checked()
	if err != nil {
		return err
	}
	b := a.c()
	if a.Alpha != 0 && a.Edge != 0 {
		a.clearPadding(a.Pre, a.Heads*max(a.FloatBits, 32)/8)
	}
	return a.rows(crew, func(low, high C.int64_t) C.int64_t {
		if a.Alpha != 0 {
			return C.pgs_attend_back(&c, &b, low, high)
		}
		return C.pgs_attend(&c, &b, low, high)
	})
}

// Scores are scores of edges; Out becomes their softmax in each row. With Grad, X is that softmax,
// and Out becomes the gradient of the scores. Out is 0 for padding.
type Scores struct {
	Indptr int64 // [Rows + 1], ids, from 0 to at most Edges
	X      int64 // [Edges, Heads], floats
	Grad   int64 // likewise; 0: none
	Out    int64 // likewise

	Rows, Edges, Heads, IDBits, FloatBits, Brain int64
}

// reduction has what is to be checked of scores.
func (s *Scores) reduction() Reduction {
	return Reduction{
		X: s.X, Indptr: s.Indptr, Indices: s.X, Out: s.Out, Rows: s.Rows, Edges: s.Edges, Width: s.Heads, Heads: 1,
		Kind: Sum, IDBits: s.IDBits, FloatBits: s.FloatBits,
	}
}

// Check validates all fields; it does not read the arrays.
func (s *Scores) Check() error {
	r := s.reduction()
	return r.Check()
}

// Softmax computes Out.
func (s *Scores) Softmax(crew csc.Crew) error {
	r := s.reduction()
	if _, err := r.checked(); err != nil {
		return err
	}
	r.clearPadding(s.Out, s.Heads*s.FloatBits/8)
	c := C.pgs_scores{
		indptr: pointer(s.Indptr), x: pointer(s.X), grad: pointer(s.Grad), out: pointer(s.Out), rows: C.int64_t(s.Rows),
		edges: C.int64_t(s.Edges), heads: C.int64_t(s.Heads), id_bits: C.int32_t(s.IDBits),
		float_bits: C.int32_t(s.FloatBits), brain: C.int32_t(s.Brain),
	}
	return r.rows(crew, func(low, high C.int64_t) C.int64_t { return C.pgs_softmax(&c, low, high) })
}
