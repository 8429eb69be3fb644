// Package bsp is the family of mode "bsp", for comparisons: a few launches for each hop, between which
// the host reads the size of the hop. On the CPU it is the family neighbor.
package bsp

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/neighbor"
	research "github.com/pygsampler/pygsampler/pygsampler/internal/research/cuda"
)

// Parse makes the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	return neighbor.ForComparison(d, "bsp", func(o neighbor.Options) cuda.Plan {
		return &research.BSP{Hops: cuda.Hops{Hops: o.Hops}}
	})
}
