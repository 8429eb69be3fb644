package negatives

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Table makes the alias table by which vertices are drawn in proportion to a power of their number of
// in-edges; a vertex without any counts as one with one. Its exported fields are the caller's to
// set; any goroutine may halt it and look how far it is.
type Table struct {
	Relation *csc.Relation // on the CPU
	Power    float64       // in [0, 1]

	stop atomic.Bool
	done atomic.Int64
}

// Halt makes Run return csc.ErrStopped soon.
func (t *Table) Halt() { t.stop.Store(true) }

// Progress is how many vertices are looked at, each twice, and all there will be.
func (t *Table) Progress() (done, total int64) { return t.done.Load(), 2 * t.Relation.NumNodes }

// Run makes the memory, with one reference: 64 bits for each vertex.
func (t *Table) Run() (m memory.Memory, err error) {
	g, n := t.Relation, t.Relation.NumNodes
	if !(t.Power >= 0 && t.Power <= 1) {
		return m, fmt.Errorf("%w: power: expected a number in [0, 1], got %v", request.ErrValue, t.Power)
	}
	if n > math.MaxInt32 {
		return m, fmt.Errorf("%w: power: expected 0 for a graph of 2^31 vertices or more, got %v for %d", request.ErrValue, t.Power, n)
	}
	// Beside the table its sums, weights and units, 8 bytes each, and 4 of the order.
	if err := memory.Affordable(36 * n); err != nil {
		return m, err
	}
	by := make([]float64, n)
	powers := powers{power: t.Power}
	for v := range by {
		degree := int64(0)
		if int64(v) < g.NumRows() {
			degree = g.Indptr.Element(int64(v)+1) - g.Indptr.Element(int64(v))
		}
		by[v] = powers.of(degree)
		if v%looked == 0 {
			if t.stop.Load() {
				return m, csc.ErrStopped
			}
			t.done.Store(int64(v))
		}
	}
	if m, err = memory.New(max(8*n, 1)); err != nil {
		return m, err
	}
	m.SetSize(8 * n)
	new(weights.Scratch).BuildTables(by, memory.ViewAt[uint64](m, 0, n), make([]uint64, n))
	if t.stop.Load() {
		m.Release()
		return memory.Memory{}, csc.ErrStopped
	}
	t.done.Store(2 * n)
	return m, nil
}

// looked is after how many vertices it is asked whether to stop.
const looked = 1 << 16

// powers of degrees; small ones are computed once.
type powers struct {
	power float64
	known [1 << 10]float64
}

func (p *powers) of(degree int64) float64 {
	degree = max(degree, 1)
	if degree >= int64(len(p.known)) {
		return power(float64(degree), p.power)
	}
	if p.known[degree] == 0 {
		p.known[degree] = power(float64(degree), p.power)
	}
	return p.known[degree]
}

// power is x to a power in [0, 1], for x >= 1: the product of those of x^(1/2), x^(1/4), ... whose
// binary digit the power has. Roots and products are rounded as IEEE says, so every processor makes
// the same table, which math.Pow does not promise.
func power(x, of float64) float64 {
	if of == 1 {
		return x
	}
	made := 1.0
	for of > 0 && x > 1 {
		x = math.Sqrt(x)
		if of *= 2; of >= 1 {
			made *= x
			of--
		}
	}
	return made
}
