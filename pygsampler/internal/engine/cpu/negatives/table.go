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

// Table builds the alias table for drawing nodes in proportion to a power of their in-degree; a
// node without in-edges counts as a node with one. The caller sets the exported fields; any
// goroutine may halt it and read its progress.
type Table struct {
	Relation *csc.Relation // on the CPU
	Power    float64       // in [0, 1]

	stop atomic.Bool
	done atomic.Int64
}

// Halt makes Run return csc.ErrStopped soon.
func (t *Table) Halt() { t.stop.Store(true) }

// Progress returns the number of nodes processed, each of which counts twice, and their total.
func (t *Table) Progress() (done, total int64) { return t.done.Load(), 2 * t.Relation.NumNodes }

// Run returns the memory, with one reference: 64 bits for each node.
func (t *Table) Run() (m memory.Memory, err error) {
	g, n := t.Relation, t.Relation.NumNodes
	if !(t.Power >= 0 && t.Power <= 1) {
		return m, fmt.Errorf("%w: power: expected a number in [0, 1], got %v", request.ErrValue, t.Power)
	}
	if n > math.MaxInt32 {
		return m, fmt.Errorf("%w: power: expected 0 for a graph of 2^31 nodes or more, got %v for %d", request.ErrValue, t.Power, n)
	}
	// In addition to the table: its sums, weights and units, 8 bytes each, and 4 bytes for the
	// order.
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

// looked is after how many nodes it is asked whether to stop.
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

// power returns x to a power in [0, 1], for x >= 1: the product of those of x^(1/2), x^(1/4), ...
// whose binary digit the power has. Roots and products are rounded as IEEE requires, so every
// processor computes the same table, which math.Pow does not guarantee.
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
