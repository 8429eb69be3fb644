package passes

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
)

// layouts marks nodes that have their data in one of two ways, of which a batch takes the one that costs less by its own
// sizes: vectors of all vertices whose elements edges take, made for each edge or stored for all vertices, and A[R, S],
// found by its columns or by its rows. Legal, since an element is a function of its vertex alone, and edges that are
// found by rows are put in the order of columns and places.
func layouts(p *program.Program) (*program.Program, error) {
	ways := layout.Choose(p)
	return p.Marked(func(i int, n *program.Node) {
		if ways[i] != (layout.Ways{}) {
			n.Layout = program.Cheaper
		}
	}), nil
}

// Forced is the program whose choices of some kinds, by their names in package layout, are the other way.
func Forced(p *program.Program, names []string) *program.Program {
	ways, forced := layout.Choose(p), map[layout.Ways]bool{}
	for _, name := range names {
		forced[layout.Forced[name]] = true
	}
	return p.Marked(func(i int, n *program.Node) {
		if forced[ways[i]] {
			n.Layout = program.Other
		}
	})
}
