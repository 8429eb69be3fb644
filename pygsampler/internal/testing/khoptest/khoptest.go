// Package khoptest reads the samples of a result into plain slices. It serves tests only.
package khoptest

import (
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/khop"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/walktest"
)

// Samples holds the samples of a memory: the roots and all steps, one after another. Edges is nil
// if they were not requested.
type Samples struct{ Nodes, Edges []int64 }

// Read copies samples.
func Read(m memory.Memory) (s Samples) {
	words := memory.ViewAt[int64](m, 0, batch.StepWords)
	s.Nodes = batchtest.Ints(m, words[batch.StepNodes], words[batch.StepNumNodes], words[batch.WordIDBits])
	if at := words[batch.StepEdgeIDs]; at != 0 {
		s.Edges = batchtest.Ints(m, at, words[batch.StepNumEdges], words[batch.StepEdgeIDBits])
	}
	return s
}

// Sample returns the samples of a request, by one thread.
func Sample(r *khop.Request) (Samples, error) {
	var stop atomic.Bool
	m, err := khop.Sample(r, walktest.Alone, &stop)
	if err != nil {
		return Samples{}, err
	}
	defer m.Release()
	return Read(m), nil
}
