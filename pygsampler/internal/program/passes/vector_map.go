package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// vectorMap computes elements of vectors in their reader, if it is a single map: another vector
// along the same list, or values of drawn edges, which are usually fewer than elements. This is
// legal, since each element is a function of elements of the same node; returned values are stored
// anyway.
func vectorMap(p *program.Program) (*program.Program, error) {
	takers := takersOf(p)
	return p.Marked(func(i int, n *program.Node) {
		n.Inline = n.Inline || !n.Once && elements(p, n) && taken(p, n, takers[i])
	}), nil
}

// elements reports whether a node computes elements of a vector along a list, each from its own
// inputs only, at the same position of the list, or of all graph nodes.
func elements(p *program.Program, n *program.Node) bool {
	return n.Type.Kind == program.Vector && n.Type.Along.Space != program.All && (n.Maps() && !n.Draws() || n.Op == program.Gather && !p.Inherits(n))
}

// taken reports whether one map reads the elements of a vector, each once or rarely.
func taken(p *program.Program, n *program.Node, by taker) bool {
	if by.returned || len(by.nodes) != 1 {
		return false
	}
	t := &p.Nodes[by.nodes[0]]
	if t.Type.Kind == program.Vector {
		return t.Maps() && t.Type.Along == n.Type.Along
	}
	if !edgeValues(t) {
		return false
	}
	chosen := p.Nodes[t.Type.Edges].Op
	return chosen == program.Individual || chosen == program.Collective || chosen == program.Dependent
}
