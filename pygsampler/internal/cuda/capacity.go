package cuda

import (
	"encoding/binary"
	"math/bits"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// shape is what the size of a batch of a graph depends on, roughly.
type shape struct {
	seeds   int // their bits: batches within a factor of two share buffers' sizes
	options string
}

func shapeOf(r *request.Request, seeds int64) shape {
	text := make([]byte, 0, 64)
	for _, fanout := range r.Fanouts {
		text = binary.AppendVarint(text, fanout)
	}
	for _, is := range []bool{r.Replace, r.OnlyNew, r.Disjoint} {
		text = append(text, byte(word(is)))
	}
	return shape{bits.Len64(uint64(seeds)), string(text)}
}

// needs are the largest sizes that batches of a shape had, and some more. The zero
// value is that of a shape of which nothing is known.
type needs struct {
	out         uint64 // bytes
	rows, edges int64  // of a hop
	ranks       int64  // seeds and edges of all hops
	noBins      bool   // some vertex comes too often
	arrived     bool   // some batch did; else rows and edges are not known
}

// shift is how many bits a rank takes in a map of 32-bit words.
func (n needs) shift() int { return max(bits.Len64(uint64(n.ranks)), leastShift) }

// A first guess is not trusted beyond these sizes: a batch that needs more is made again.
const (
	mostOut   = 1 << 28
	mostRows  = 1 << 22
	mostGuess = 1 << 26 // edges
)

// guess is what a batch needs if rows have twice the mean degree.
func (g *Graph) guess(r *request.Request, seeds int64) needs {
	widths := g.widths()
	out, rows, edges := 4096+float64(widths.Vertices(2*seeds)), float64(seeds), 0.0
	degree := 2 * float64(g.Edges) / float64(max(g.Nodes, 1))
	vertices := r.Expect(seeds, g.Nodes, degree, func(hopRows, hopEdges float64) {
		out += hopRows*float64(widths.ID) + hopEdges*float64(widths.ID+widths.EdgeID) + 4*batch.Alignment
		rows, edges = hopRows, max(edges, hopEdges)
	})
	out += vertices * float64(widths.ID)
	return needs{out: uint64(min(out, mostOut)), rows: int64(min(rows, mostRows)), edges: int64(min(edges, mostGuess))}
}

// need is what the buffers of a batch of so many seeds should hold: what earlier
// batches of its shape needed and some more, or a guess.
func (g *Graph) need(r *request.Request, seeds int64) needs {
	g.mu.Lock()
	known := g.needs[shapeOf(r, seeds)]
	g.mu.Unlock()
	if known.arrived {
		return known
	}
	// One may have met a limit.
	guess := g.guess(r, seeds)
	guess.out, guess.ranks, guess.noBins = max(guess.out, known.out), known.ranks, known.noBins
	return guess
}

// Capacity is how many bytes a caller's memory for a batch of so many seeds should
// have. That they are enough is not certain: a batch that needs more says so.
func (g *Graph) Capacity(r *request.Request, seeds int64) uint64 { return g.need(r, seeds).out }

// learn notes what a batch needed, and returns what batches of its shape have needed.
func (g *Graph) learn(c *Call, n needs) needs {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := shapeOf(&c.Request, c.NumSeeds)
	known := g.needs[key]
	known = needs{
		out: max(known.out, n.out), rows: max(known.rows, n.rows), edges: max(known.edges, n.edges),
		ranks: max(known.ranks, n.ranks), noBins: known.noBins || n.noBins, arrived: known.arrived || n.arrived,
	}
	g.needs[key] = known
	return known
}

// outTooSmall ends a flight whose caller's memory was too small, and notes what it
// should have been.
func (f *Flight) outTooSmall(bytes uint64) {
	f.graph.learn(&f.call, needs{out: bytes})
	f.batch.Needed = f.graph.Capacity(&f.call.Request, f.call.NumSeeds)
}

// got is what the batch that has arrived needed, and a quarter more.
func (f *Flight) got() needs {
	words := f.batch.Header
	n := needs{out: uint64(words[batch.WordSize]) * 5 / 4, ranks: f.call.NumSeeds, arrived: true}
	for i := range f.call.Request.Fanouts {
		block := batch.Block(words, i)
		n.rows = max(n.rows, (block[batch.BlockNumDst]+block[batch.BlockFirstDst])*5/4)
		n.edges = max(n.edges, block[batch.BlockNumEdges]*5/4)
		n.ranks += block[batch.BlockNumEdges] * 5 / 4
	}
	return n
}
