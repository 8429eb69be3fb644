// Package plan defines the interface between a family of samplers and jobs, executor and devices.
// Each family is a package below this one: it parses documents into plans, and a plan samples
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

// Plan holds the validated options of a sampler. It is immutable and serves any number of batches
// at once, each a function of plan, graph, and request.Batch. It is Homogeneous or Heterogeneous.
type Plan interface {
	// Expected estimates the number of edges that a batch reads; a small batch is not worth another
	// thread.
	Expected(w *Work) int64
	// CPU samples a batch and returns its memory, with one reference. It ends with
	// request.ErrCancelled soon after w.Stop is set, and with request.ErrLarge if the batch turns
	// out larger than w.Most.
	CPU(w *Work) (memory.Memory, error)
	// CUDA returns the plan on a device: the same plan at each call.
	CUDA() cuda.Plan
}

// Homogeneous is a plan that samples homogeneous graphs.
type Homogeneous interface {
	// Check returns an error for graphs without the arrays that the plan draws by.
	Check(g Arrays) error
}

// Heterogeneous is a plan that samples heterogeneous graphs.
type Heterogeneous interface {
	PerCall
	// Fits returns an error for graphs whose types do not match the plan.
	Fits(g *csc.Graph) error
}

// PerCall is a plan with a separate device plan for each call.
type PerCall interface {
	// Device returns the device plan of a call; seeds and excluded hold the number of seeds of each
	// node type and of excluded positions of each relation, nil without any. keys are the device
	// addresses of the time keys of each relation.
	Device(g *csc.Graph, seeds, excluded []int64, t *Times, keys []gpu.Address) (cuda.Plan, error)
}

// Excluding is a plan with another device plan for batches that leave edges out.
type Excluding interface {
	CUDAExcluding() (cuda.Plan, error)
}

// Arrays says which arrays a graph has in addition to its CSC.
type Arrays struct {
	Edges     int64 // how many there are; of none there are no tables either
	Weights   bool  // tables that rows draw by
	Adjacency bool  // the transposed graph, which says who leads to whom
	Kinds     int64 // of edges that its rows are apart by; 0: they are not
	// EdgeData and VertexData are the named arrays.
	EdgeData, VertexData map[string]csc.Values
}

// Work is a batch to sample on the CPU.
type Work struct {
	Graph   *csc.Graph
	Exclude []*csc.Exclusions // of each relation; nil: nothing is excluded
	// SeedCounts is the number of the batch's seeds of each node type of a heterogeneous graph; the
	// seeds are stored one type after another.
	SeedCounts []int64
	// Times holds the times of the edges of each relation, whose rows are sorted by time, and of
	// the batch's seeds; nil: the batch is not temporal.
	Times *Times
	// Parts describes the partitions of relations without rows of their own; nil: the rows are
	// local.
	Parts *cpu.Partition
	Batch request.Batch
	Most  int64 // edges of a hop; 0: any number
	Crew  cpu.Crew
	Stop  *atomic.Bool
}

// Excluded returns the exclusions of the relation with index i; nil: there are none.
func (w *Work) Excluded(i int) *csc.Exclusions {
	if w.Exclude == nil {
		return nil
	}
	return w.Exclude[i]
}

// Parse returns the plan of a document of its family. It reads every field that it knows; the
// caller asks the document for errors.
type Parse func(d *Document) Plan
