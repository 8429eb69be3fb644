package program

import (
	"fmt"
	"slices"
)

// Rebuilt returns the program with other nodes, whose types it infers anew; at maps each old node
// to its new index, for the returned values, or -1 if it is removed. Optimization passes end with
// it.
func (p *Program) Rebuilt(nodes []Node, at []int) (*Program, error) {
	q := &Program{Result: p.Result, List: p.List, Bare: p.Bare, Weight: p.Weight, Timed: p.Timed}
	for i, n := range nodes {
		t, err := q.typeOf(&n, i)
		if err != nil {
			return nil, fmt.Errorf("%%%d: %w", i, err)
		}
		n.Type = t
		q.Nodes = append(q.Nodes, n)
	}
	for _, m := range p.Matrices {
		q.Matrices = append(q.Matrices, at[m])
	}
	if p.Result == Subgraph {
		q.List = at[p.List]
	}
	for _, e := range p.Extras {
		q.Extras = append(q.Extras, Extra{e.Name, at[e.Node], e.Block})
	}
	return q, q.Check()
}

// Marked returns the program with marks on its nodes, Inline, Once and Layout, which change no
// value.
func (p *Program) Marked(mark func(i int, n *Node)) *Program {
	q := *p
	q.Nodes = append([]Node(nil), p.Nodes...)
	for i := range q.Nodes {
		mark(i, &q.Nodes[i])
	}
	return &q
}

// Returned lists the nodes that the result consists of.
func (p *Program) Returned() []int {
	nodes := append([]int(nil), p.Matrices...)
	if p.Result == Subgraph {
		nodes = append(nodes, p.List)
	}
	for _, e := range p.Extras {
		nodes = append(nodes, e.Node)
	}
	return nodes
}

// Fixed reports for each node whether it is a function of the graph only: no seed and no random
// number affects it.
func (p *Program) Fixed() []bool {
	fixed := make([]bool, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		// Inputs change from batch to batch.
		fixed[i] = n.Op != Seeds && n.Op != Project && n.Op != Item && n.Op != Kept && !n.Draws()
		for _, in := range n.In {
			fixed[i] = fixed[i] && fixed[in]
		}
	}
	return fixed
}

// Arrays returns the names of the arrays of edges and of nodes that are read, in order.
func (p *Program) Arrays() (edges, vertices []string) {
	if p.Weight != "" && slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Op == Whole || n.Op == Slice || n.Op == Cross }) {
		edges = append(edges, p.Weight)
	}
	for i := range p.Nodes {
		switch n := &p.Nodes[i]; n.Op {
		case Data:
			edges = append(edges, n.Name)
		case Vertices, Features:
			vertices = append(vertices, n.Name)
		}
	}
	slices.Sort(edges)
	slices.Sort(vertices)
	return slices.Compact(edges), slices.Compact(vertices)
}
