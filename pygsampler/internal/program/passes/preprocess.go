package passes

import "github.com/pygsampler/pygsampler/pygsampler/internal/program"

// preprocess marks values that are computed once for a graph and cached with it: vectors and dense
// rows of all graph nodes (A @ X) and scalars that are functions of the graph only, and of those
// the last ones, which another node reads: their inputs are then not needed. Arrays and degrees
// exist already. This is legal as long as the graph's arrays do not change.
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
