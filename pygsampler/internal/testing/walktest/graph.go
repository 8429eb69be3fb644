// Package walktest provides graphs to walk on, and reads the walks of a result. It serves tests
// only.
package walktest

import (
	"slices"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// Graph returns a graph from lists of out-neighbors, which are sorted, with adjacency; withIDs
// numbers the edges backwards. weight, if not nil, is the weight of the edge at a position.
func Graph(rows [][]int64, nodes int64, idBits, indptrBits int, withIDs bool, weight func(p int) float64) *csc.Relation {
	back := make([][]int64, nodes)
	for v, row := range rows {
		slices.Sort(row)
		for _, x := range row {
			back[x] = append(back[x], int64(v))
		}
	}
	g := csctest.Graph(rows, nodes, idBits, indptrBits, withIDs)
	g.Back = csctest.Graph(back, nodes, idBits, indptrBits, false)
	if weight == nil {
		return g
	}
	g.Alias, g.Sums = make([]uint64, g.NumEdges()), make([]uint64, g.NumEdges())
	var s weights.Scratch
	for v := range g.NumRows() {
		lo, hi := g.Indptr.Element(v), g.Indptr.Element(v+1)
		row := make([]float64, hi-lo)
		for i := range row {
			row[i] = weight(int(lo) + i)
		}
		s.BuildTables(row, g.Alias[lo:hi], g.Sums[lo:hi])
	}
	return g
}

// Walks holds the walks of a memory, by walk.
type Walks struct {
	Nodes, EdgeIDs [][]int64 // a row is a walk; EdgeIDs nil where they were not asked for
	Lengths        []int64
	Top, Visits    []int64   // [seeds][top]
	Slots          [][]int64 // by walk
}

// Read copies walks.
func Read(m memory.Memory) (w Walks) {
	words := memory.ViewAt[int64](m, 0, batch.WalkWords)
	walks, steps := words[batch.WalkNumWalks], words[batch.WalkSteps]
	turned := func(at, columns, bits int64) [][]int64 {
		flat := batchtest.Ints(m, at, walks*columns, bits)
		rows := make([][]int64, walks)
		for i := range rows {
			for s := range columns {
				rows[i] = append(rows[i], flat[s*walks+int64(i)])
			}
		}
		return rows
	}
	w.Nodes = turned(words[batch.WalkNodes], steps+1, words[batch.WordIDBits])
	if at := words[batch.WalkEdgeIDs]; at != 0 {
		w.EdgeIDs = turned(at, steps, words[batch.WalkEdgeIDBits])
	}
	if at := words[batch.WalkSlots]; at != 0 {
		w.Slots = turned(at, steps, 32)
	}
	if at := words[batch.WalkTopNodes]; at != 0 {
		w.Top = batchtest.Ints(m, at, words[batch.WalkNumTop], words[batch.WordIDBits])
		w.Visits = batchtest.Ints(m, words[batch.WalkVisits], words[batch.WalkNumTop], 32)
	}
	w.Lengths = batchtest.Ints(m, words[batch.WalkLengths], walks, 32)
	return w
}

// Sample returns the walks of a request, by one thread.
func Sample(r *walk.Request) (Walks, error) {
	m, err := Memory(r)
	if err != nil {
		return Walks{}, err
	}
	defer m.Release()
	return Read(m), nil
}

// Memory returns the memory of the walks of a request.
func Memory(r *walk.Request) (memory.Memory, error) {
	var stop atomic.Bool
	return walk.Sample(r, alone{}, &stop)
}

type alone struct{}

func (alone) Borrow(int) int { return 0 }
func (alone) Return(int)     {}

// Alone is a crew without workers.
var Alone csc.Crew = alone{}
