// Package queue is the family of mode "queue": the task queue of the paper (PGSampler,
// sections III-B and III-C), without a barrier between hops, on the CPU and on a device.
package queue

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/neighbor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/cpu"
	research "github.com/pygsampler/pygsampler/pygsampler/internal/research/cuda"
)

type queuePlan struct {
	*neighbor.Plan
	fetchSize int64 // tasks that a worker fetches at a time; 0: the engine's own number
}

// Parse makes the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	fetchSize := d.Integer("fetch_size", 1, research.MostFetched, 0)
	return queuePlan{neighbor.ForComparison(d, "queue", func(o neighbor.Options) cuda.Plan {
		return &research.Queue{Hops: cuda.Hops{Hops: o.Hops}, Unordered: !o.Ordered, FetchSize: fetchSize}
	}), fetchSize}
}

// Expected is more than any moment has time for: the queue does not end where a hop
// turns out to be large.
func (queuePlan) Expected(*plan.Work) int64 { return math.MaxInt64 }

// CPU runs the queue.
func (p queuePlan) CPU(w *plan.Work) (memory.Memory, error) {
	return cpu.ByQueue(p.Request(w), int(p.fetchSize), w.Crew, w.Stop)
}
