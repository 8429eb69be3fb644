// Package queue is the family of mode "queue": the task queue of the paper (PGSampler,
// sections III-B and III-C), without a barrier between hops, on the CPU and on a device.
package queue

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family/neighbor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

type plan struct{ *neighbor.Plan }

// Parse makes the plan of a document.
func Parse(d *family.Document) family.Plan {
	return plan{neighbor.Beside(d, "queue", func(o neighbor.Options) cuda.Plan {
		return &cuda.Queue{Hops: cuda.Hops{Hops: o.Hops}, Unordered: !o.Ordered}
	})}
}

// Expected is more than any moment has time for: the queue does not end where a hop
// turns out to be large.
func (plan) Expected(*family.Work) int64 { return math.MaxInt64 }

// CPU runs the queue.
func (p plan) CPU(w *family.Work) (memory.Memory, error) {
	return cpu.ByQueue(p.Request(w), w.Crew, w.Stop)
}
