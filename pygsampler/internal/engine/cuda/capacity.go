package cuda

import (
	"math/bits"
	"reflect"
)

// shape holds the parameters that the size of a batch of a graph approximately depends on.
type shape struct {
	seeds int // their bits: batches within a factor of two share buffers' sizes
	kind  reflect.Type
	plan  string
}

func shapeOf(p Plan, seeds int64) shape {
	return shape{bits.Len64(uint64(seeds)), reflect.TypeOf(p), p.Shape()}
}

// need returns the sizes of the buffers of a batch of seeds seeds: the needs of earlier batches of
// its shape plus a margin, or a guess.
func (g *Graph) need(p Plan, seeds int64) Needs { return g.needOf(shapeOf(p, seeds), p, seeds) }

// needOf is need, of a shape that is known.
func (g *Graph) needOf(of shape, p Plan, seeds int64) Needs {
	g.mu.Lock()
	known := g.needs[of]
	g.mu.Unlock()
	if known.Arrived {
		return known
	}
	// One may have met a limit.
	guess := p.Guess(g, seeds)
	guess.Out, guess.Ranks, guess.NoBins = max(guess.Out, known.Out), known.Ranks, known.NoBins
	guess.Work = max(guess.Work, known.Work)
	return guess
}

// Capacity estimates the number of bytes of a caller's memory for a batch of seeds seeds. It is no
// guarantee: a batch that needs more reports it.
func (g *Graph) Capacity(p Plan, seeds int64) uint64 { return g.need(p, seeds).Out }

// learn notes what a batch of a shape needed, and returns what all of them have needed.
func (g *Graph) learn(of shape, n Needs) Needs {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.needs[of].with(n)
	g.needs[of] = known
	return known
}

// OutTooSmall ends a flight whose caller's memory was too small, and notes what it
// should have been.
func (f *Flight) OutTooSmall(bytes uint64) {
	f.graph.learn(f.shape, Needs{Out: bytes})
	f.batch.Needed = f.graph.needOf(f.shape, f.call.Plan, f.call.NumSeeds).Out
}
