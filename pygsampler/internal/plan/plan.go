// Package plan defines what jobs, the executor and devices know about a family of samplers.
// Each family is a package below this one: it parses documents into plans, and a plan makes
// batches on the CPU and on a device.
package plan

import (
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Plan is what a sampler does to every batch: its options, checked. It is immutable and
// serves any number of batches at once, each a function of plan, graph, and request.Batch.
type Plan interface {
	// Check refuses graphs whose arrays the plan cannot draw by.
	Check(g Arrays) error
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
	Exclude *csc.Exclusions
	// Typed is in the place of Graph where the graph has types, Excludes in that of Exclude, for
	// each relation; the batch's seeds are so many of each type of vertices, one behind another.
	Hetero     *csc.HeteroGraph
	Excludes   []*csc.Exclusions
	SeedCounts []int64
	// Times is when the edges of Graph are, or of each relation of Typed, whose rows are in their order, and
	// the batch's seeds; nil: not asked for.
	Times *Times
	// Parts is where the rows of Graph lie, which has none itself then; nil: there.
	Parts *cpu.Partition
	Batch request.Batch
	Most  int64 // edges of a hop; 0: any number
	Crew  cpu.Crew
	Stop  *atomic.Bool
}

// Parse makes a plan of a document whose family it is. It takes every field that it
// knows; the caller asks the document for errors.
type Parse func(d *Document) Plan
