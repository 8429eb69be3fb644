package cuda

import (
	"math/bits"
	"reflect"
)

// shape is what the size of a batch of a graph depends on, roughly.
type shape struct {
	seeds int // their bits: batches within a factor of two share buffers' sizes
	kind  reflect.Type
	plan  string
}

func shapeOf(p Plan, seeds int64) shape {
	return shape{bits.Len64(uint64(seeds)), reflect.TypeOf(p), p.Shape()}
}

// need is what the buffers of a batch of so many seeds should hold: what earlier
// batches of its shape needed and some more, or a guess.
func (g *Graph) need(p Plan, seeds int64) Needs {
	g.mu.Lock()
	known := g.needs[shapeOf(p, seeds)]
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

// Capacity is how many bytes a caller's memory for a batch of so many seeds should
// have. That they are enough is not certain: a batch that needs more says so.
func (g *Graph) Capacity(p Plan, seeds int64) uint64 { return g.need(p, seeds).Out }

// learn notes what a batch needed, and returns what batches of its shape have needed.
func (g *Graph) learn(c *Call, n Needs) Needs {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := shapeOf(c.Plan, c.NumSeeds)
	known := g.needs[key].with(n)
	g.needs[key] = known
	return known
}

// outTooSmall ends a flight whose caller's memory was too small, and notes what it
// should have been.
func (f *Flight) outTooSmall(bytes uint64) {
	f.graph.learn(&f.call, Needs{Out: bytes})
	f.batch.Needed = f.graph.Capacity(f.call.Plan, f.call.NumSeeds)
}
