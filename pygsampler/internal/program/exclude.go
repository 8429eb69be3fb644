package program

import (
	"fmt"
	"slices"
)

// Excluding is the program for batches that leave edges out: of each A[:, S] and A[R, S] those edges stay that are not
// excluded. A itself, and so what is made of the graph alone, has all edges. An error says what would meet them.
func (p *Program) Excluding() (*Program, error) {
	at := make([]int, len(p.Nodes))
	var nodes []Node
	put := func(n Node) int {
		nodes = append(nodes, n)
		return len(nodes) - 1
	}
	for i := range p.Nodes {
		n := p.Nodes[i]
		if n.Op == Walk || n.Op >= Individual && n.Op <= Merge && p.edgesOp(p.Nodes[n.In[0]].Type.Edges) == Whole {
			return nil, fmt.Errorf("exclude: expected a program that takes edges by A[:, S] and A[R, S], got one with %s", n.Op)
		}
		n.In = slices.Clone(n.In)
		for k, in := range n.In {
			n.In[k] = at[in]
		}
		if at[i] = put(n); n.Op == Slice || n.Op == Cross {
			kept := put(Node{Op: Kept, In: []int{at[i]}, Axis: -1})
			at[i] = put(Node{Op: Filter, In: []int{at[i], kept}, Axis: -1})
		}
	}
	return p.Rebuilt(nodes, at)
}

// Excludes says that the program asks which edges a batch leaves out.
func (p *Program) Excludes() bool {
	return slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Op == Kept })
}
