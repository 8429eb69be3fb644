package program

import (
	"fmt"
	"slices"
)

// Excluding returns the program for batches that leave edges out: each A[:, S] and A[R, S] keeps
// only edges that are not excluded, and operators that choose among A's own edges, or a relation's,
// choose among those. A itself, and values that depend on the graph only, have all edges, so that
// they are computed once. An error names the operator that would read excluded edges.
func (p *Program) Excluding() (*Program, error) {
	x := &excluder{p: p, own: make([]bool, len(p.Nodes)), at: make([]int, len(p.Nodes)), kept: map[int]int{}}
	fixed := p.Fixed()
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch n.Op {
		case Whole:
			x.own[i] = true
		case Filter, TopK, Merge:
			x.own[i] = fixed[i] && !slices.ContainsFunc(n.In, func(in int) bool { return !x.alone(in) })
		}
	}
	for i := range p.Nodes {
		n := p.Nodes[i]
		if n.Op == Walk {
			return nil, fmt.Errorf("exclude: expected a program that takes edges by A, A[:, S] and A[R, S], got one with %s", n.Op)
		}
		chooses := n.Chooses() && !x.alone(i)
		n.In = slices.Clone(n.In)
		for k, in := range n.In {
			if n.In[k] = x.at[in]; chooses && x.alone(in) {
				n.In[k] = x.without(in)
			}
		}
		if x.at[i] = x.put(n); n.Op == Slice || n.Op == Cross {
			x.at[i] = x.filtered(x.at[i])
		}
	}
	for _, m := range p.Returned() {
		if x.alone(m) {
			x.at[m] = x.without(m)
		}
	}
	return p.Rebuilt(x.nodes, x.at)
}

// excluder is a program in the making.
type excluder struct {
	p     *Program
	own   []bool // of nodes that choose edges: they are A's own, or some that the graph alone tells
	nodes []Node
	at    []int       // which of the new nodes each old one is
	kept  map[int]int // likewise of matrices of the graph alone, without excluded edges
}

func (x *excluder) put(n Node) int {
	x.nodes = append(x.nodes, n)
	return len(x.nodes) - 1
}

// filtered is a matrix without excluded edges.
func (x *excluder) filtered(matrix int) int {
	kept := x.put(Node{Op: Kept, In: []int{matrix}, Axis: -1})
	return x.put(Node{Op: Filter, In: []int{matrix, kept}, Axis: -1})
}

// alone reports whether node i is a matrix of such edges.
func (x *excluder) alone(i int) bool {
	t := x.p.Nodes[i].Type
	return t.Kind == Matrix && x.own[t.Edges]
}

// without returns such a matrix without excluded edges: its values belong to the remaining edges.
func (x *excluder) without(i int) int {
	if made, is := x.kept[i]; is {
		return made
	}
	n := x.p.Nodes[i]
	if n.Type.Edges == i {
		x.kept[i] = x.filtered(x.at[i])
		return x.kept[i]
	}
	n.In = slices.Clone(n.In)
	for k, in := range n.In {
		if n.In[k] = x.at[in]; x.alone(in) {
			n.In[k] = x.without(in)
		}
	}
	x.kept[i] = x.put(n)
	return x.kept[i]
}

// Excludes reports whether the program depends on the edges that a batch leaves out.
func (p *Program) Excludes() bool {
	return slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Op == Kept })
}
