// Package fused is the family of mode "fused", for comparisons: rows dealt out beforehand, all hops in one launch.
// On the CPU it is the family neighbor.
package fused

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family"
	"github.com/pygsampler/pygsampler/pygsampler/internal/family/neighbor"
)

const mode = "fused"

type plan struct{ *neighbor.Plan }

// Parse makes the plan of a document.
func Parse(d *family.Document) family.Plan {
	o := neighbor.ReadOptions(d)
	o.Plain(d, mode)
	return plan{neighbor.Beside(o, &cuda.Fused{Hops: cuda.Hops{Hops: o.Hops}})}
}

// Check refuses weights.
func (plan) Check(g family.Arrays) error { return neighbor.Unweighted(g, mode) }
