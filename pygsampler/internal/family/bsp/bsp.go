// Package bsp is the family of mode "bsp", for comparisons: a few launches for each hop, whose size the host reads in between.
// On the CPU it is the family neighbor.
package bsp

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family/neighbor"
)

const mode = "bsp"

type plan struct{ *neighbor.Plan }

// Parse makes the plan of a document.
func Parse(d *family.Document) family.Plan {
	o := neighbor.ReadOptions(d)
	o.Plain(d, mode)
	return plan{neighbor.Beside(o, &cuda.BSP{Hops: cuda.Hops{Hops: o.Hops}})}
}

// Check refuses weights.
func (plan) Check(g family.Arrays) error { return neighbor.Unweighted(g, mode) }
