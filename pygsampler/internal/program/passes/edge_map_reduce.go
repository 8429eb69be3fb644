package passes

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
)

// edgeMapReduce computes values of edges again in each reader, if one of these is a reduction and
// they cost no more than writing and reading them, or if they are values of all edges of the graph,
// which are reduced once. This is legal for the same reason as edgeMap.
func edgeMapReduce(p *program.Program) (*program.Program, error) {
	takers, fixed := takersOf(p), p.Fixed()
	known, _ := costs.Measured()
	// The maximal number of operations for which a value is recomputed instead of written and read.
	cheapest := known.Operations()
	cost := make([]int, len(p.Nodes))
	return p.Marked(func(i int, n *program.Node) {
		if !edgeValues(n) {
			return
		}
		cost[i] = operations(n, cheapest)
		for _, in := range n.In {
			cost[i] = min(cost[i]+cost[in], cheapest+1)
		}
		if takers[i].returned || n.Inline {
			return
		}
		for _, taker := range takers[i].nodes {
			if reduces(&p.Nodes[taker]) && (cost[i] <= cheapest || fixed[i]) {
				n.Inline = true
			}
		}
		if !n.Inline {
			// Who takes it reads it where it is stored.
			cost[i] = 0
		}
	}), nil
}

// operations returns the cost of an operator in operations of about a cycle; more than cheapest
// means expensive.
func operations(n *program.Node, cheapest int) int {
	switch n.Op {
	case program.Exp, program.Log:
		return cheapest + 1
	case program.Pow, program.Div, program.Sqrt:
		return 2
	}
	return 1
}
