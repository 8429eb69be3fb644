// Package fused is the family of mode "fused", for comparisons: rows are assigned before the launch,
// and one launch runs all hops. On the CPU it is the family neighbor.
package fused

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/neighbor"
	research "github.com/pygsampler/pygsampler/pygsampler/internal/research/cuda"
)

// Parse makes the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	return neighbor.ForComparison(d, "fused", func(o neighbor.Options) cuda.Plan {
		return &research.Fused{Hops: cuda.Hops{Hops: o.Hops}}
	})
}
