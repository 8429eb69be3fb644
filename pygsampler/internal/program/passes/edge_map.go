package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// edgeMap computes values of edges on the fly in their reader, if they have only one: nothing is
// computed twice and nothing is stored. This is legal, since each value is a function of values of
// the same edge, of its row and of its column; returned values are stored anyway.
func edgeMap(p *program.Program) (*program.Program, error) {
	takers := takersOf(p)
	return p.Marked(func(i int, n *program.Node) {
		if edgeValues(n) && !takers[i].returned && len(takers[i].nodes) == 1 {
			n.Inline = true
		}
	}), nil
}

// reduces reports whether a node reduces the values of its input.
func reduces(n *program.Node) bool { return n.Op >= program.Sum && n.Op <= program.Smallest }
