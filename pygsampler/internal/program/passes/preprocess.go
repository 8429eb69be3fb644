package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// preprocess marks what is made once for a graph and kept with it: vectors and dense rows of all nodes (A @ X)
// and scalars that are functions of the graph alone, and of those the last ones, which
// something else takes: what they are made of is not needed then. Arrays and degrees are
// there already. Legal as long as the graph's arrays are left alone.
func preprocess(p *program.Program) (*program.Program, error) {
	fixed, takers := p.Fixed(), takersOf(p)
	return p.Marked(func(i int, n *program.Node) {
		if !fixed[i] || !everywhere(n.Type) {
			return
		}
		switch n.Op {
		case program.Vertices, program.Features, program.Degree, program.Number, program.Const:
			return
		}
		for _, taker := range takers[i].nodes {
			// A node's chances times an edge's value are nothing that a graph keeps.
			n.Once = n.Once || !fixed[taker] || !everywhere(p.Nodes[taker].Type)
		}
		n.Once = n.Once || takers[i].returned
	}), nil
}
