// Package contexts samples contexts of fixed length on the CPU: around each seed the nearest rows
// of a graph, latest first, up to a budget. docs/guide/tables.md has the law;
// kernels/hetero/context.cu is the CUDA twin.
package contexts

import (
	"fmt"
	"math"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// MaxBudget is the largest budget: a table of the rows of a context has some slots for each.
const MaxBudget = 1 << 16

// Rule says which rows a context has.
type Rule struct {
	Budget int64
	Width  int64   // edges of a row and a relation that are looked at; 0: all
	Cells  []int64 // of a row of each node type; nil: the budget counts rows
	Times  times.Rule
}

// Cost returns the part of the budget that a row of a node type takes.
func (r *Rule) Cost(kind int) int64 {
	if r.Cells == nil {
		return 1
	}
	return r.Cells[kind]
}

// Places returns the maximal number of rows of a context.
func (r *Rule) Places() int64 {
	if r.Cells == nil {
		return r.Budget
	}
	return max(r.Budget/slices.Min(r.Cells), 1)
}

// CheckCells returns an error for seeds of a node type whose rows do not fit.
func (r *Rule) CheckCells(s *csc.Schema, counts []int64) error {
	for kind, cost := range r.Cells {
		if cost <= r.Budget || counts != nil && counts[kind] == 0 {
			continue
		}
		of := "a seed"
		if s != nil {
			of = fmt.Sprintf("a seed of %q", s.NodeTypes[kind].Name)
		}
		return fmt.Errorf("%w: budget: expected at least the cells of %s, which are %d, got %d", request.ErrValue, of, cost, r.Budget)
	}
	return nil
}

// Words returns the words that describe the contexts of seeds seeds. They depend on that number
// only, and so do the offsets of the arrays.
func (r *Rule) Words(seeds int64, types bool) (words [batch.ContextWords]int64) {
	all := seeds * r.Places()
	words[batch.WordSignature], words[batch.WordIDBits] = batch.ContextMagic, 64
	words[batch.ContextNumSeeds], words[batch.ContextPlaces], words[batch.ContextNumPlaces] = seeds, r.Places(), all
	place := batch.Place(8 * batch.ContextWords)
	words[batch.ContextLengths] = place.Next(seeds * 4)
	words[batch.ContextNodes] = place.Next(all * 8)
	if types {
		words[batch.ContextTypes] = place.Next(all * 4)
	}
	words[batch.ContextHops] = place.Next(all * 4)
	words[batch.ContextParents] = place.Next(all * 4)
	if r.Cells != nil {
		words[batch.ContextCells] = place.Next(all * 4)
	}
	words[batch.ContextMask] = place.Next(all)
	words[batch.WordSize] = place.Aligned()
	return words
}

// bytesOfPlace is more than a place takes.
const bytesOfPlace = 32

// Affordable returns an error for contexts that do not fit into memory.
func (r *Rule) Affordable(seeds int64) error {
	bytes := float64(seeds) * float64(r.Places()) * bytesOfPlace
	if bytes >= math.MaxInt64/2 {
		return fmt.Errorf("%w: contexts of %g bytes: expected fewer seeds, or a smaller budget", request.ErrOverflow, bytes)
	}
	return memory.Affordable(int64(bytes))
}
