package program

import (
	"fmt"
	"strings"
)

var kinds = map[byte]Kind{'l': List, 'm': Matrix, 'v': Vector, 'd': Dense}

var kindNames = []string{"a list of nodes", "a matrix", "a vector", "a scalar", "dense rows"}

func (k Kind) String() string { return kindNames[k] }

// typeOf infers the type of node i; an error describes an invalid input.
func (p *Program) typeOf(n *Node, i int) (t Type, err error) {
	s := specs[n.Op]
	least := len(strings.TrimSuffix(s.in, "?"))
	most := least
	if least < len(s.in) {
		least--
	}
	if len(n.In) < least || len(n.In) > most {
		return t, fmt.Errorf("%s: expected %d inputs, got %d", n.Op, most, len(n.In))
	}
	in := make([]Type, len(n.In))
	for k, node := range n.In {
		in[k] = p.Nodes[node].Type
		want, one := kinds[s.in[k]]
		if one && in[k].Kind != want || !one && (in[k].Kind == List || in[k].Kind == Dense) {
			return t, fmt.Errorf("%s: expected %s as input %d, got %s", n.Op, map[bool]string{true: want.String(), false: "values"}[one], k, in[k].Kind)
		}
	}
	own := Along{Of, i}
	switch n.Op {
	case Seeds, Concat:
		return Type{Kind: List, Along: own}, nil
	case Draw:
		return Type{Kind: List, Along: own, Distinct: !n.Replace && p.distinct(in[0].Along)}, nil
	case Roots, Walk:
		if n.K < 0 {
			return t, fmt.Errorf("%s: k: expected an integer >= 0, got %d", n.Op, n.K)
		}
		return Type{Kind: List, Along: own}, nil
	case Union, Unique:
		return Type{Kind: List, Along: own, Distinct: true}, nil
	case Pick:
		if in[1].Along != in[0].Along {
			return t, fmt.Errorf("pick: expected a vector along the list")
		}
		return Type{Kind: List, Along: own, Distinct: in[0].Distinct}, nil
	case Column:
		return Type{Kind: List, Along: p.columns(in[0].Edges), Distinct: true}, nil
	case Row:
		return Type{Kind: List, Along: p.rows(in[0].Edges), Distinct: true}, nil
	case Whole, Slice, Extract:
		return Type{Kind: Matrix, Edges: i}, nil
	case Cross:
		if !in[0].Distinct || !in[1].Distinct {
			return t, fmt.Errorf("cross: expected lists of distinct nodes for A[rows, columns]: unique() makes them so")
		}
		return Type{Kind: Matrix, Edges: i}, nil
	case Data, Kept:
		return Type{Kind: Matrix, Edges: in[0].Edges}, nil
	case Individual, Dependent, Filter, TopK:
		if len(in) > 1 && in[1].Edges != in[0].Edges {
			return t, fmt.Errorf("%s: expected values of the same edges, got those of others", n.Op)
		}
		return Type{Kind: Matrix, Edges: i}, nil
	case Merge:
		if p.columns(in[0].Edges) != p.columns(in[1].Edges) {
			return t, fmt.Errorf("merge: expected matrices with the same columns, got others")
		}
		return Type{Kind: Matrix, Edges: i}, nil
	case Collective:
		if len(in) > 1 && !p.fits(in[1].Along, in[0].Edges, 1) {
			if p.fits(in[1].Along, in[0].Edges, 0) {
				return t, fmt.Errorf("collective: expected a vector along the matrix's rows, as sum(axis=1) makes, got one along its columns; gSampler's listing of LADIES (SOSP 2023, Figure 3b) is printed with axis=0, and its Figure 2 with axis=1")
			}
			return t, fmt.Errorf("collective: expected a vector along the matrix's rows, got one along something else")
		}
		return Type{Kind: Matrix, Edges: i}, nil
	case Cap:
		if n.K < 0 {
			return t, fmt.Errorf("cap: k: expected an integer >= 0, got %d", n.K)
		}
		return Type{Kind: Vector, Along: in[0].Along}, nil
	case Labor:
		if in[1].Edges != in[0].Edges {
			return t, fmt.Errorf("labor: expected values of the same edges, got those of others")
		}
		return Type{Kind: Vector, Along: p.columns(in[0].Edges)}, nil
	case Level:
		if !p.fits(in[1].Along, in[0].Edges, 0) {
			return t, fmt.Errorf("level: expected a vector along the matrix's columns, got one along something else")
		}
		return Type{Kind: Vector, Along: p.columns(in[0].Edges)}, nil
	case Vertices, Degree, Number:
		return Type{Kind: Vector}, nil
	case Const:
		return Type{Kind: Scalar}, nil
	case Random:
		if len(in) == 0 {
			return Type{Kind: Vector}, nil
		}
		return Type{Kind: Matrix, Edges: in[0].Edges}, nil
	case Sum, Mean, Largest, Smallest, Count:
		switch {
		case in[0].Kind == Scalar:
			return t, fmt.Errorf("%s: expected a matrix or a vector, got a scalar", n.Op)
		case in[0].Kind == Vector && n.Axis < 0:
			return Type{Kind: Scalar}, nil
		case in[0].Kind == Vector:
			return t, fmt.Errorf("%s: axis: expected None for a vector, got %d", n.Op, n.Axis)
		case n.Axis == 0:
			return Type{Kind: Vector, Along: p.columns(in[0].Edges)}, nil
		case n.Axis == 1:
			return Type{Kind: Vector, Along: p.rows(in[0].Edges)}, nil
		}
		return t, fmt.Errorf("%s: axis: expected 0 (a value a column) or 1 (a value a row) for a matrix, got None", n.Op)
	case Times:
		if p.Nodes[n.In[0]].Op != Collective {
			return t, fmt.Errorf("times: expected what collective_sample has returned, got %s", p.Nodes[n.In[0]].Op)
		}
		return Type{Kind: Vector, Along: p.rows(in[0].Edges)}, nil
	case Gather:
		if in[0].Along.Space == All || in[0].Along == in[1].Along || in[1].Along.Space == Rows && p.fits(in[0].Along, in[1].Along.Node, 1) {
			return Type{Kind: Vector, Along: in[1].Along}, nil
		}
		return t, fmt.Errorf("gather: expected a vector of all nodes or along that list, got one along another; v[B.row()] takes one along the rows of what B was chosen from, and so does B.div(v, axis=1)")
	case IsIn:
		return Type{Kind: Vector, Along: in[0].Along}, nil
	case Features, Take, Project, Dot, Item, Multiply, Entry:
		return p.denseType(n, in)
	case Independent:
		if r := &p.Nodes[n.In[1]]; r.Op != Random || n.Axis != 1 {
			return t, fmt.Errorf("independent: expected random numbers of all nodes and axis 1, got %s and axis %d", r.Op, n.Axis)
		}
	}
	return p.mapType(n, in)
}

// mapType infers the type of an elementwise operator: a matrix if an input is one, else a vector.
func (p *Program) mapType(n *Node, in []Type) (t Type, err error) {
	t = Type{Kind: Scalar}
	for _, x := range in {
		switch {
		case x.Kind == Matrix && t.Kind != Matrix:
			t = x
		case x.Kind == Matrix && x.Edges != t.Edges:
			return t, fmt.Errorf("%s: expected matrices of the same edges, got those of others", n.Op)
		case x.Kind == Vector && t.Kind == Scalar:
			t = x
		case x.Kind == Vector && t.Kind == Vector && t.Along.Space == All:
			t = x
		case x.Kind == Vector && t.Kind == Vector && x.Along.Space != All && x.Along != t.Along:
			return t, fmt.Errorf("%s: expected vectors along the same list, got some along others", n.Op)
		}
	}
	for _, x := range in {
		if t.Kind != Matrix || x.Kind != Vector {
			continue
		}
		if n.Axis < 0 {
			return t, fmt.Errorf("%s: axis: expected 0 (a vector along columns) or 1 (along rows), got None", n.Op)
		}
		if !p.fits(x.Along, t.Edges, n.Axis) {
			return t, fmt.Errorf("%s: expected a vector along the matrix's %s, got one along something else", n.Op, []string{"columns", "rows"}[n.Axis])
		}
	}
	return Type{Kind: t.Kind, Edges: t.Edges, Along: t.Along}, nil
}

// columns returns the list that a vector along a matrix's columns runs along: the columns of the
// matrix that was sliced by a list and that its edges come from, since a choice of edges does not
// change columns.
func (p *Program) columns(edges int) Along {
	for p.edgesOp(edges) >= Individual && p.edgesOp(edges) != Extract {
		edges = p.Nodes[p.Nodes[edges].In[0]].Type.Edges
	}
	if p.edgesOp(edges) == Whole {
		return Along{All, 0}
	}
	if list := p.Nodes[p.ColumnList(edges)].Type; list.Distinct {
		return list.Along
	}
	return Along{Columns, edges}
}

// ColumnList returns the list of the columns of a Slice, a Cross or an Extract.
func (p *Program) ColumnList(edges int) int {
	n := &p.Nodes[edges]
	return n.In[len(n.In)-1]
}

// rows returns the list that a vector along a matrix's rows runs along.
func (p *Program) rows(edges int) Along {
	if p.edgesOp(edges) == Whole {
		return Along{All, 0}
	}
	return Along{Rows, edges}
}

func (p *Program) edgesOp(edges int) Op { return p.Nodes[edges].Op }

// distinct reports whether no node has two elements in a vector along a.
func (p *Program) distinct(a Along) bool {
	return a.Space != Of || p.Nodes[a.Node].Type.Distinct
}

// induced reports whether a matrix's columns are the nodes of a list, and its rows are among them.
func (p *Program) induced(m Node, list Type) bool {
	return m.Type.Kind == Matrix && list.Distinct && p.columns(m.Type.Edges) == list.Along &&
		(list.Along.Space == All || p.within(m.Type.Edges, list.Along))
}

// within reports whether the rows of edges are nodes of the list along a.
func (p *Program) within(edges int, a Along) bool {
	n := &p.Nodes[edges]
	switch {
	case n.Op == Cross:
		return p.Nodes[n.In[0]].Type.Along == a
	case n.Op == Merge:
		return p.within(p.Nodes[n.In[0]].Type.Edges, a) && p.within(p.Nodes[n.In[1]].Type.Edges, a)
	case n.Op == Filter && p.among(n.In[1], a):
		return true
	case n.Op >= Individual:
		return p.within(p.Nodes[n.In[0]].Type.Edges, a)
	}
	return false
}

// among reports whether a mask is 0 for all edges except those from nodes of the list along a.
func (p *Program) among(mask int, a Along) bool {
	n := &p.Nodes[mask]
	if n.Op != Spread || n.Axis != 1 {
		return false
	}
	members := &p.Nodes[n.In[1]]
	return members.Op == IsIn && p.Nodes[members.In[1]].Type.Along == a
}

// fits reports whether each edge of a matrix has an element of a vector: along its own columns, its
// own rows or those of a matrix that it was chosen from, or over all graph nodes.
func (p *Program) fits(a Along, edges, axis int) bool {
	if a.Space == All {
		return true
	}
	if axis == 0 {
		return a == p.columns(edges)
	}
	for ; edges >= 0; edges = p.Parent(edges) {
		if a == p.rows(edges) || p.edgesOp(edges) == Cross && a == p.Nodes[p.Nodes[edges].In[0]].Type.Along {
			return true
		}
	}
	return false
}

// Check validates the returned values, and that no two nodes draw the same numbers. Every
// optimization pass ends with it.
func (p *Program) Check() error {
	sites := map[int]int{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, in := range n.In {
			if in < 0 || in >= i {
				return fmt.Errorf("%%%d: takes %%%d, which is not before it", i, in)
			}
		}
		t, err := p.typeOf(n, i)
		if err != nil {
			return fmt.Errorf("%%%d: %w", i, err)
		}
		if t != n.Type {
			return fmt.Errorf("%%%d: has another type than its inputs make", i)
		}
		if !n.Draws() {
			continue
		}
		if other, twice := sites[n.Site]; twice {
			// The nodes' numbers may be looked at again, those of edges where some were chosen, and those of a race.
			of := p.Nodes[other]
			if p.again(n, &of) || numbers(n) && (numbers(&of) || of.Op == Collective && !of.Replace) {
				continue
			}
			return fmt.Errorf("%%%d: draws at site %d as %%%d does", i, n.Site, other)
		}
		sites[n.Site] = i
	}
	switch {
	case p.Result == Vectors && len(p.Matrices) > 0 || p.Result != Vectors && len(p.Matrices) == 0:
		return fmt.Errorf("return: expected matrices of blocks, or of a subgraph, got %d", len(p.Matrices))
	case p.Result == Vectors && len(p.Extras) == 0:
		return fmt.Errorf("return: expected something, got nothing")
	case p.Result == Subgraph && p.Nodes[p.List].Type.Kind != List:
		return fmt.Errorf("return: expected a list of nodes for a subgraph, got %s", p.Nodes[p.List].Type.Kind)
	case p.Result == Subgraph && !p.induced(p.Nodes[p.Matrices[0]], p.Nodes[p.List].Type):
		return fmt.Errorf("return: expected the matrix A[list, list] of a subgraph's nodes, got another")
	}
	for _, m := range p.Matrices {
		t := p.Nodes[m].Type
		if t.Kind != Matrix {
			return fmt.Errorf("return: %%%d: expected a matrix of chosen edges, got %s", m, t.Kind)
		}
		if p.edgesOp(t.Edges) == Whole {
			return fmt.Errorf("return: %%%d: expected a matrix of chosen edges, got one of all edges of the graph", m)
		}
	}
	type place struct {
		name  string
		block int
	}
	names := map[place]bool{}
	for _, e := range p.Extras {
		own := place{e.Name, e.Block}
		if names[own] {
			return fmt.Errorf("return: %q: expected a name once, got it twice", e.Name)
		}
		names[own] = true
		if e.Block > 0 {
			if e.Block > len(p.Matrices) || e.Name == "w" {
				return fmt.Errorf("return: %q: expected another name than w, of one of %d matrices", e.Name, len(p.Matrices))
			}
			if t := p.Nodes[e.Node].Type; t.Kind != Matrix || t.Edges != p.Nodes[p.Matrices[e.Block-1]].Type.Edges {
				return fmt.Errorf("return: %q: expected values of the same edges as %%%d has, got others", e.Name, p.Matrices[e.Block-1])
			}
			continue
		}
		if k := p.Nodes[e.Node].Type.Kind; k != List && k != Vector && k != Dense {
			return fmt.Errorf("return: %q: expected a vector, dense rows or a list, got %s", e.Name, k)
		}
	}
	return nil
}

// Places returns, for each array that a program returns by name, the nodes that its elements belong
// to: "all_nodes" are those of the graph, "nodes" those of a subgraph, in order, "seeds" the seeds
// with their duplicates, and "unique_seeds" the seeds without duplicates. "" is for lists, and for
// vectors along another list.
func (p *Program) Places() []string {
	var places []string
	for _, e := range p.Extras {
		if e.Block > 0 {
			continue
		}
		t := p.Nodes[e.Node].Type
		place := ""
		switch {
		case t.Kind != Vector && t.Kind != Dense:
		case p.Result == Subgraph && t.Along == p.Nodes[p.List].Type.Along:
			place = "nodes"
		case t.Along.Space == All:
			place = "all_nodes"
		case t.Along.Space == Of && p.Nodes[t.Along.Node].Op == Seeds:
			place = "seeds"
		case t.Along.Space != Rows && p.ofSeeds(p.Nodes[t.Along.Node]):
			place = "unique_seeds"
		}
		places = append(places, place)
	}
	return places
}

// ofSeeds reports whether a node is the list of distinct seeds, or has them as columns.
func (p *Program) ofSeeds(n Node) bool {
	return (n.Op == Unique || n.Op == Slice || n.Op == Extract) && p.Nodes[n.In[len(n.In)-1]].Op == Seeds
}

// numbers reports whether a node is the random numbers of all graph nodes.
func numbers(n *Node) bool { return n.Op == Random && len(n.In) == 0 }

// again reports whether n reads the same random numbers as of, for some of its edges.
func (p *Program) again(n, of *Node) bool {
	if n.Op != Random || of.Op != Random || len(n.In) == 0 || len(of.In) == 0 {
		return false
	}
	for e := p.Parent(n.Type.Edges); e >= 0; e = p.Parent(e) {
		if e == of.Type.Edges {
			return true
		}
	}
	return false
}
