// Package khop samples by steps from transits, as in NextDoor (Jangda et al.): k-hop, where each node of
// a step draws a number of its in-neighbors, and layer sampling, where the nodes of a sample's step draw
// together. It has the rules of draws, the memory layout of samples, and the CPU engine.
// docs/developer/walk-draws.md has the rules.
package khop

import (
	"fmt"
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Rule says what the steps of a sample draw.
type Rule struct {
	// Counts are, by step, how many edges are drawn: by each transit, or, with Collective, by all
	// transits of a sample together.
	Counts     []int64
	Collective bool
	// Unique has the nodes of a sample's step distinct, over all of its transits; Distinct has the edges of
	// each transit distinct. At most one of them is set, and Distinct not with Collective.
	Unique, Distinct bool
	EdgeIDs          bool // say which edges were drawn
	// FirstSample is the number of the first sample, by which it draws: of samples that are dealt to several
	// devices, those before it are others'.
	FirstSample int64
}

// Limits of the fields of a rule. MaxWidth bounds the nodes of a sample in all steps.
const (
	MaxSteps = batch.StepWords - batch.StepWidths
	MaxCount = 1 << 20
	MaxWidth = 1<<31 - 1
)

// Tries bounds the edges that a slot of a unique step draws from all edges of its transit, before it chooses
// among the edges that are left.
const Tries = 32

// Widths returns the number of nodes of a sample at each step.
func (r *Rule) Widths() []int64 {
	widths, width := make([]int64, len(r.Counts)), int64(1)
	for s, count := range r.Counts {
		if r.Collective {
			width = 1
		}
		width *= count
		widths[s] = width
	}
	return widths
}

// Check refuses samples that are too wide.
func (r *Rule) Check() error {
	width, sum := 1., 0.
	for _, count := range r.Counts {
		if r.Collective {
			width = 1
		}
		width *= float64(count)
		sum += width
	}
	if sum > MaxWidth {
		return fmt.Errorf("%w: expected at most %d nodes of a sample, got %.0f", request.ErrValue, int64(MaxWidth), sum)
	}
	return nil
}

// Words describe so many samples on a graph with ids and edge ids of such widths.
func (r *Rule) Words(samples, idBits, edgeIDBits int64) (words [batch.StepWords]int64) {
	words[batch.WordSignature] = batch.StepMagic
	words[batch.WordIDBits], words[batch.StepEdgeIDBits] = idBits, edgeIDBits
	words[batch.StepSteps], words[batch.StepNumSamples] = int64(len(r.Counts)), samples
	sum := int64(0)
	for s, width := range r.Widths() {
		words[batch.StepWidths+s] = width
		sum += width
	}
	words[batch.StepNumNodes], words[batch.StepNumEdges] = samples*(sum+1), samples*sum
	place := batch.Place(8 * batch.StepWords)
	words[batch.StepNodes] = place.Next(words[batch.StepNumNodes] * idBits / 8)
	if r.EdgeIDs {
		words[batch.StepEdgeIDs] = place.Next(words[batch.StepNumEdges] * edgeIDBits / 8)
	}
	words[batch.WordSize] = place.Aligned()
	return words
}

// Affordable refuses samples that have no room in memory.
func (r *Rule) Affordable(samples, idBits, edgeIDBits int64) error {
	each := float64(idBits / 8)
	if r.EdgeIDs {
		each += float64(edgeIDBits / 8)
	}
	sum := 1.
	for _, width := range r.Widths() {
		sum += float64(width)
	}
	bytes := float64(samples) * sum * each
	if bytes >= math.MaxInt64/2 {
		return fmt.Errorf("%w: samples of %g bytes: expected fewer seeds, or fewer nodes of each", request.ErrOverflow, bytes)
	}
	return memory.Affordable(int64(bytes))
}

// Stream is that of the states of a step's samples: hop 0 of its purpose is of walks.
func Stream(b *request.Batch, step int) rng.Stream {
	return rng.NewStream(b.Seed, b.Epoch, b.Number, uint8(step+1), rng.Walking)
}

// Distinct is the place among degree edges of draw j of a transit whose draws are distinct: place j of the
// list 0, 1, ..., once for i from 0 to j place i has been swapped with one from i on. first is the number
// of the transit's draw 0; j is below degree. Every draw is so a function of the state alone, and every
// ordered choice is as likely as any other. CUDA twin: distinct in kernels/research/khop.cu.
func Distinct(state uint64, first, j, degree int64) int64 {
	swapped := func(i int64) int64 {
		return i + int64(rng.Below(rng.Draw(state, int(first+i)), uint64(degree-i)))
	}
	at := swapped(j)
	for i := j - 1; i >= 0; i-- {
		if swapped(i) == at {
			at = i
		}
	}
	return at
}
