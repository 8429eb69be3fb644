package passes

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
)

// layouts marks nodes with a choice between two layouts, of which a batch uses the cheaper one for
// its own sizes: vectors over all graph nodes whose elements edges read, computed for each edge or
// stored for all graph nodes, and A[R, S], found by its columns or by its rows. This is legal,
// since an element is a function of its graph node only, and edges that are found by rows are put
// in the order of columns and positions.
func layouts(p *program.Program) (*program.Program, error) {
	ways := layout.Choose(p)
	return p.Marked(func(i int, n *program.Node) {
		if ways[i] != (layout.Ways{}) {
			n.Layout = program.Cheaper
		}
	}), nil
}

// Forced returns the program with the other layout for some kinds of choices, by their names in
// package layout.
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
