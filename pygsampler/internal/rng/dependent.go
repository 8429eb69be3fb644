package rng

import "github.com/pygsampler/pygsampler/pygsampler/internal/real"

// Dependent returns uniform numbers that are nearly the same in consecutive batches (LABOR's
// batch_dependency).
//
// Batches come in periods of k. The first batch of a period has the numbers of a stream, indexed by
// the period, and the others interpolate to the numbers of the next period: batch j has Phi(cos(a)
// Phi^-1(u) + sin(a) Phi^-1(v)), with a being j / k of a right angle, u and v the numbers of the
// two streams and Phi the normal distribution. So each is uniform, and the numbers of two periods
// are independent unless one follows the other. The zero value belongs to no batch.
//
// Source: M. F. Balin, D. LaSalle, U. V. Catalyurek, "Cooperative Minibatching in Graph Neural
// Networks", 2023.
//
// CUDA twin: kernels/common/dependent_rng.cuh.
type Dependent struct {
	Stream   // of the period's first batch
	next     Stream
	cos, sin float64
	between  bool
}

// NewGradual returns the numbers of a batch, in periods of batches batches; 0 stands for 1.
func NewGradual(seed uint64, epoch uint32, batch, batches uint64, hop uint8, purpose Purpose) Dependent {
	batches = max(batches, 1)
	period, j := batch/batches, batch%batches
	g := Dependent{Stream: NewStream(seed, epoch, period, hop, purpose)}
	if j > 0 {
		g.between = true
		g.next = NewStream(seed, epoch, period+1, hop, purpose)
		g.cos, g.sin = real.Quarter(j, batches)
	}
	return g
}

// Next returns the second stream; ok is false if only the first stream is used.
func (g *Dependent) Next() (next Stream, ok bool) { return g.next, g.between }

// Between returns the number of the batch for the numbers u and v of the streams.
func (g *Dependent) Between(u, v float64) float64 {
	return real.NormalBelow(float64(g.cos*real.NormalQuantile(u)) + float64(g.sin*real.NormalQuantile(v)))
}
