// Package walk implements random walks: the rules of a step, the memory layout of walks, and the
// CPU engine. docs/developer/walk-draws.md has the rules.
package walk

import (
	"fmt"
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Rule says how walks move. Its zero value is one walk without steps from each seed.
type Rule struct {
	Length  int64   // steps at most
	PerSeed int64   // walks of each seed; 0 counts as 1
	Stop    float64 // the chance to end before a step
	Restart float64 // the chance to go back to the root before a step
	Jumps   bool    // going back is a step of its own, without an edge
	P, Q    float64 // node2vec's return and in-out; both 0: first order
	Path    []int64 // kinds of edges, step by step, again from the first on; nil: any
	EdgeIDs bool    // say which edges were taken
	// Every is the number of steps after which, repeatedly, a walk may stop, and visits a node; 0:
	// after each step, and before the first. Top is the number of the most visited nodes of a
	// seed's walks that are reported, by descending count, and among equal counts by first visit;
	// 0: none.
	Every, Top int64
	// Roots is the number of seeds that a walk begins at, and steps from one of: frontier sampling.
	// 0: one, by the rules above.
	Roots int64
	// FirstWalk is the number of the first walk, which determines its draws, if walks are
	// distributed over several devices.
	FirstWalk int64
}

// Limits of the fields of a rule.
const (
	MaxLength = 1 << 20
	MaxPath   = mostPath
	MaxKinds  = 1 << 15
	MaxVisits = mostVisits
	MaxRoots  = mostRoots
	RootChunk = rootChunk
	// Extreme bounds p and q and their inverses, so that products with weights are finite.
	Extreme = 1e100
)

// Walks returns the number of walks of seeds seeds.
func (r *Rule) Walks(seeds int64) int64 { return seeds / max(r.Roots, 1) * max(r.PerSeed, 1) }

// Visits returns the maximal number of nodes that the walks of a seed visit.
func (r *Rule) Visits() int64 { return r.Length / max(r.Every, 1) * max(r.PerSeed, 1) }

// MayStop reports whether the coin of stopping is tossed before a step.
func (r *Rule) MayStop(step int64) bool { return r.Every == 0 || step > 0 && step%r.Every == 0 }

// Second reports whether a step depends on the previous node of the walk.
func (r *Rule) Second() bool { return r.P != 0 && (r.P != 1 || r.Q != 1) }

// WrongRoots returns the error for a number of seeds that is no multiple of the roots of a walk.
func (r *Rule) WrongRoots(seeds int64) error {
	return fmt.Errorf("%w: seeds: expected a multiple of %d, the roots of a walk, got %d", request.ErrValue, r.Roots, seeds)
}

// Kind returns the edge type of a step.
func (r *Rule) Kind(step int64) int64 {
	if len(r.Path) == 0 {
		return 0
	}
	return r.Path[step%int64(len(r.Path))]
}

// one is the chance 1: coins have 63 bits, and fall below it.
const one = 1 << 63

// Coin returns 63 bits of a draw.
func Coin(draw uint64) uint64 { return draw >> 1 }

// Chances are the thresholds of coins, and the weights of node2vec.
type Chances struct {
	Stop, Restart uint64
	// Return, Common and Far are the acceptance probabilities of a proposed edge of node2vec: back,
	// to a common neighbor of the previous node, and to any other. The fields after them hold the
	// factors themselves, their common Bound, and the excess of the first above it.
	Return, Common, Far    uint64
	OfReturn, OfFar, Bound float64
	Extra                  float64
}

// Chances returns the chances of the rule.
func (r *Rule) Chances() (c Chances) {
	c.Stop, c.Restart = uint64(r.Stop*one), uint64(r.Restart*one)
	if !r.Second() {
		return c
	}
	c.OfReturn, c.OfFar = 1/r.P, 1/r.Q
	c.Bound = max(1, c.OfFar)
	c.Extra = max(c.OfReturn-c.Bound, 0)
	chance := func(factor float64) uint64 { return uint64(min(factor, c.Bound) / c.Bound * one) }
	c.Return, c.Common, c.Far = chance(c.OfReturn), chance(1), chance(c.OfFar)
	return c
}

// Area returns the chance that a try takes one of the edges that lead back, from the part of their
// weight above the bound, and the weight of all edges of the row. CUDA twin: area in
// kernels/walk/walk.cuh.
func (c *Chances) Area(back, all uint64) uint64 {
	area := float64(c.Extra * float64(back))
	rest := float64(float64(all) * c.Bound)
	return uint64(float64(area/float64(rest+area)) * one)
}

// Class returns the index of the weight that a draw falls in: of edges back, to common neighbors,
// and to the others. CUDA twin: class_of.
func (c *Chances) Class(draw, back, common, far uint64) int {
	first := float64(c.OfReturn * float64(back))
	second := float64(first + float64(common))
	total := float64(second + float64(c.OfFar*float64(far)))
	x := float64(float64(draw>>11) * 0x1p-53 * total)
	switch {
	case x < first:
		return 0
	case x < second && common > 0:
		return 1
	case far > 0:
		return 2
	case common > 0:
		return 1
	}
	return 0
}

// Words returns the words that describe walks of seeds seeds on a graph with ids and edge ids of
// these widths. They depend on these numbers only, and so do the offsets of the arrays.
func (r *Rule) Words(seeds, idBits, edgeIDBits int64) (words [batch.WalkWords]int64) {
	walks := r.Walks(seeds)
	words[batch.WordSignature] = batch.WalkMagic
	words[batch.WordIDBits], words[batch.WalkEdgeIDBits] = idBits, edgeIDBits
	words[batch.WalkSteps], words[batch.WalkNumWalks] = r.Length, walks
	words[batch.WalkPerSeed] = max(r.PerSeed, 1)
	words[batch.WalkNumNodes], words[batch.WalkNumEdges] = walks*(r.Length+1), walks*r.Length
	place := batch.Place(8 * batch.WalkWords)
	words[batch.WalkLengths] = place.Next(walks * 4)
	words[batch.WalkNodes] = place.Next(words[batch.WalkNumNodes] * idBits / 8)
	if r.EdgeIDs {
		words[batch.WalkEdgeIDs] = place.Next(words[batch.WalkNumEdges] * edgeIDBits / 8)
	}
	if r.Roots > 0 {
		words[batch.WalkSlots] = place.Next(words[batch.WalkNumEdges] * 4)
	}
	if r.Top > 0 {
		words[batch.WalkNumTop] = seeds * r.Top
		words[batch.WalkTopNodes] = place.Next(words[batch.WalkNumTop] * idBits / 8)
		words[batch.WalkVisits] = place.Next(words[batch.WalkNumTop] * 4)
	}
	words[batch.WordSize] = place.Aligned()
	return words
}

// Affordable returns an error for walks that do not fit into memory.
func (r *Rule) Affordable(seeds, idBits, edgeIDBits int64) error {
	step := float64(idBits / 8)
	if r.EdgeIDs {
		step += float64(edgeIDBits / 8)
	}
	if r.Roots > 0 {
		step += 4
	}
	walks := float64(seeds) / float64(max(r.Roots, 1)) * float64(max(r.PerSeed, 1))
	bytes := walks*(float64(r.Length+1)*step+8) + float64(seeds)*float64(r.Top)*float64(idBits/8+4)
	if bytes >= math.MaxInt64/2 {
		return fmt.Errorf("%w: walks of %g bytes: expected fewer seeds, walks of each, or steps", request.ErrOverflow, bytes)
	}
	return memory.Affordable(int64(bytes))
}
