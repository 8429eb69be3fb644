package rng

import "github.com/pygsampler/pygsampler/pygsampler/internal/real"

// Dependent is the uniform numbers of a batch whose neighbors have nearly the same ones (LABOR's batch_dependency).
//
// Batches come in periods of k. The first of a period has the numbers of a stream, that of the period's number, and the
// others lie on the way to those of the next: batch j has Phi(cos(a) Phi^-1(u) + sin(a) Phi^-1(v)), a being j / k of a right
// angle, u and v the numbers of the two streams and Phi the normal distribution. So each is uniform,
// and those of two periods are independent that do not follow each other. The zero value is of no batch.
//
// Source: M. F. Balin, D. LaSalle, U. V. Catalyurek, "Cooperative Minibatching in Graph Neural Networks", 2023.
//
// CUDA twin: kernels/common/dependent_rng.cuh.
type Dependent struct {
	Stream   // of the period's first batch
	next     Stream
	cos, sin float64
	between  bool
}

// NewGradual is the numbers of a batch, in periods of so many; 0 is 1.
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

// Next is the other stream; ok is false where the numbers are those of the first alone.
func (g *Dependent) Next() (next Stream, ok bool) { return g.next, g.between }

// Between is the number of the batch where the streams have u and v.
func (g *Dependent) Between(u, v float64) float64 {
	return real.NormalBelow(float64(g.cos*real.NormalQuantile(u)) + float64(g.sin*real.NormalQuantile(v)))
}
