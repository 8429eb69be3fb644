// Package plan defines what jobs, the executor and devices know about a family of samplers.
// Each family is a package below this one: it parses documents into plans, and a plan makes
// batches on the CPU and on a device.
package plan

import (
	"sync/atomic"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Plan is what a sampler does to every batch: its options, checked. It is immutable and
// serves any number of batches at once, each a function of plan, graph, and request.Batch.
// It is Homogeneous or Heterogeneous.
type Plan interface {
	// Expected guesses how many edges a batch touches; what is done in a moment is not
	// worth another thread.
	Expected(w *Work) int64
	// CPU makes a batch and hands its memory, with one reference, to the caller. It ends
	// soon after w.Stop is set, by request.ErrCancelled, and by request.ErrLarge where the
	// batch turns out larger than w.Most.
	CPU(w *Work) (memory.Memory, error)
	// CUDA is how batches are made on a device: the same plan at each call.
	CUDA() cuda.Plan
}

// Homogeneous is a plan that samples homogeneous graphs.
type Homogeneous interface {
	// Check refuses graphs whose arrays the plan cannot draw by.
	Check(g Arrays) error
}

// Heterogeneous is a plan that samples heterogeneous graphs.
type Heterogeneous interface {
	PerCall
	// Fits refuses graphs whose types the plan does not name, or that have others.
	Fits(g *csc.Graph) error
}

// PerCall is a plan whose calls have plans of their own on a device.
type PerCall interface {
	// Device is how a device makes the batches of a call that has so many seeds of each node type, and so many positions
	// to sample around of each relation; nil: none. keys are where it has those of the times of each relation.
	Device(g *csc.Graph, seeds, excluded []int64, t *Times, keys []gpu.Address) (cuda.Plan, error)
}

// Excluding is a plan that has another way where a batch leaves edges out.
type Excluding interface {
	CUDAExcluding() (cuda.Plan, error)
}

// Arrays says which arrays a graph has beside its CSC.
type Arrays struct {
	Edges     int64 // how many there are; of none there are no tables either
	Weights   bool  // tables that rows draw by
	Adjacency bool  // the transposed graph, which says who leads to whom
	Kinds     int64 // of edges that its rows are apart by; 0: they are not
	// EdgeData and VertexData are those that it has by name.
	EdgeData, VertexData map[string]csc.Values
}

// Work is a batch to be made on the CPU.
type Work struct {
	Graph   *csc.Graph
	Exclude []*csc.Exclusions // of each relation; nil: nothing is excluded
	// SeedCounts is how many of the batch's seeds are of each type of a heterogeneous graph's nodes, one behind another.
	SeedCounts []int64
	// Times is when the edges of each relation are, whose rows are in their order, and the batch's seeds; nil: not asked
	// for.
	Times *Times
	// Parts is where the rows of the relations lie, which have none themselves then; nil: there.
	Parts *cpu.Partition
	Batch request.Batch
	Most  int64 // edges of a hop; 0: any number
	Crew  cpu.Crew
	Stop  *atomic.Bool
}

// Excluded is what is excluded of the relation at a place; nil: nothing.
func (w *Work) Excluded(i int) *csc.Exclusions {
	if w.Exclude == nil {
		return nil
	}
	return w.Exclude[i]
}

// Parse makes a plan of a document whose family it is. It takes every field that it
// knows; the caller asks the document for errors.
type Parse func(d *Document) Plan
