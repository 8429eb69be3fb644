package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// vectorMap makes elements of vectors where they are taken, if one map takes them: another vector along the same list, or
// values of edges that were drawn, of which there are fewer than elements as a rule. Legal, since each element is a
// function of elements of the same node; what is returned is stored anyway.
func vectorMap(p *program.Program) (*program.Program, error) {
	takers := takersOf(p)
	return p.Marked(func(i int, n *program.Node) {
		n.Inline = n.Inline || !n.Once && elements(p, n) && taken(p, n, takers[i])
	}), nil
}

// elements says that a node makes elements of a vector along a list, each of its own inputs' alone, at the same place of
// the list, or of all nodes.
func elements(p *program.Program, n *program.Node) bool {
	return n.Type.Kind == program.Vector && n.Type.Along.Space != program.All && (n.Maps() && !n.Draws() || n.Op == program.Gather && !p.Inherits(n))
}

// taken says that one map takes the elements of a vector, each once or seldom.
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
