// Package reservoir is the family of mode "reservoir", for comparisons: TurboGNN's sampling
// (section III-B), which reads each row through a reservoir with random numbers of its own. Its
// batches therefore differ from batches of the family neighbor. The CPU draws them tile by tile.
package reservoir

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/neighbor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	reservoirs "github.com/pygsampler/pygsampler/pygsampler/internal/research/cpu"
	research "github.com/pygsampler/pygsampler/pygsampler/internal/research/cuda"
)

// usualDegree is the least degree of rows whose reservoirs are in shared memory: best on an H200 by `python -m
// benchmarks.gpu turbo`, by a quarter.
const usualDegree = 512

type reservoirPlan struct{ *neighbor.Plan }

// Parse returns the plan of a document. In addition to the fields of all neighbor sampling families it
// reads the fields that change the times on a device, and nothing else.
func Parse(d *plan.Document) plan.Plan {
	device := new(research.Reservoir)
	p := reservoirPlan{neighbor.ForComparison(d, "reservoir", func(o neighbor.Options) cuda.Plan {
		if o.Replace {
			d.Refuse(request.ErrValue, "replace: expected False in mode 'reservoir', got True")
		}
		device.Hops = cuda.Hops{Hops: o.Hops}
		return device
	})}
	threshold, derived := d.IntegerOr("degree_threshold", "auto", 0, math.MaxInt64, usualDegree)
	switch d.OneOf("memory", "adaptive", "shared", "global") {
	case "adaptive":
		device.Threshold, device.Derived = uint64(threshold), derived
	case "global":
		device.Threshold = research.NoRow
	}
	device.SnakeBelow = d.Integer("block_threshold", 0, math.MaxInt32, -1)
	device.Schedule = d.Bool("schedule", true)
	if derived && !device.Schedule {
		d.Refuse(request.ErrValue, "degree_threshold: expected an integer with schedule=False, got 'auto', which goes by the order of degrees")
	}
	device.Apart = d.Integer("streams", 1, 2, 1) == 2
	return p
}

// Request is what the CPU's engine is asked for.
func (p reservoirPlan) Request(w *plan.Work) *cpu.Request {
	r := p.Plan.Request(w)
	r.Draw = reservoirs.Reservoirs
	return r
}

// Expected is what the seeds give if they have the mean degree, all of which is read.
func (p reservoirPlan) Expected(w *plan.Work) int64 { return p.Request(w).Expected() }

// CPU samples tile by tile.
func (p reservoirPlan) CPU(w *plan.Work) (memory.Memory, error) {
	return cpu.Sample(p.Request(w), w.Crew, w.Stop)
}
