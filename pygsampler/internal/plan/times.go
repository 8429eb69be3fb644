package plan

import (
	"math"
	"slices"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
)

// Times holds the times of a graph, or of each relation of a heterogeneous graph, and of the seeds
// of a batch.
type Times struct {
	Of    []*times.SortedRows // of the graph, or of each relation; nil: they have none
	Seeds []int64             // keys
}

// Float reports whether the times are float64; all times of a graph have the same type.
func (t *Times) Float() bool {
	return slices.ContainsFunc(t.Of, func(r *times.SortedRows) bool { return r != nil && r.Float })
}

// CPU returns the times for the CPU engine under a rule, of the graph or of each relation; nil:
// there are none.
func (t *Times) CPU(rule times.Rule) []*cpu.Times {
	if t == nil {
		return nil
	}
	told := make([]*cpu.Times, len(t.Of))
	for i, rows := range t.Of {
		if rows != nil {
			told[i] = &cpu.Times{SortedRows: *rows, Rule: rule, Seeds: t.Seeds}
		}
	}
	return told
}

// CUDA returns the times for a device under a rule; keys are the device addresses of the keys of
// each relation.
func (t *Times) CUDA(rule times.Rule, keys []gpu.Address) *cuda.Times {
	return &cuda.Times{Rule: rule, Float: t.Float(), Keys: keys, Seeds: t.Seeds}
}

// noWindow is a window that leaves edges of any time.
const noWindow = 1 << 62

// ReadRule reads the fields that say which edges a bound admits.
func ReadRule(d *Document) (r times.Rule) {
	r.Before = d.OneOf("compare", "le", "lt") == "lt"
	r.Carry = d.OneOf("carry", "seed", "edge") == "edge"
	r.Last = d.OneOf("strategy", "uniform", "last") == "last"
	if r.Window = d.Number("window", 0, noWindow, noWindow, "from 0 to 2**62"); r.Window == noWindow {
		r.Window = math.Inf(1)
	}
	return r
}
