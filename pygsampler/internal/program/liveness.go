package program

import (
	"fmt"
	"math"
	"strconv"
)

// RowsOf is what a vector along the rows of edges runs along, and ColumnsOf one along their columns.
func (p *Program) RowsOf(edges int) Along    { return p.rows(edges) }
func (p *Program) ColumnsOf(edges int) Along { return p.columns(edges) }

// Want says what of a node a result needs.
type Want uint8

const (
	WantEdges  Want = 1 << iota // of a matrix
	WantValues                  // or what a list, vector, scalar is
)

// Wants is what the result needs of each node: of a matrix its edges may be needed and its values not. What a kept
// node is made of is not needed; nil: none is kept.
func (p *Program) Wants(kept func(i int) bool) []Want {
	wants := make([]Want, len(p.Nodes))
	for k, m := range p.Matrices {
		wants[m] |= WantEdges
		if !p.Bare[k] {
			wants[m] |= WantValues
		}
	}
	if p.Result == Subgraph {
		wants[p.List] |= WantValues
	}
	for _, e := range p.Extras {
		wants[e.Node] |= WantEdges | WantValues
	}
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		n, want := &p.Nodes[i], wants[i]
		if want == 0 {
			continue
		}
		if n.Type.Kind == Matrix {
			wants[n.Type.Edges] |= WantEdges
			if !n.Chooses() && want&WantValues == 0 {
				continue
			}
		} else if kept != nil && kept(i) {
			continue
		}
		for k, in := range n.In {
			switch {
			case p.Nodes[in].Type.Kind != Matrix:
				wants[in] |= WantValues
			case p.TakesValues(i, k, want):
				wants[in] |= WantEdges | WantValues
			default:
				wants[in] |= WantEdges
			}
		}
	}
	return wants
}

// TakesValues says that node i, of which so much is needed, reads the values of its k-th input, and not its edges alone.
func (p *Program) TakesValues(i, k int, want Want) bool {
	n := &p.Nodes[i]
	if n.Type.Kind == Matrix && !n.Chooses() && want&WantValues == 0 {
		return false
	}
	if p.Nodes[n.In[k]].Type.Kind != Matrix {
		return true
	}
	switch n.Op {
	case Column, Row, Count, Times, Data, Kept, Random, Independent, Spread, Dot:
		return false
	}
	return !n.Chooses() || want&WantValues != 0 || k > 0 && n.Op != Merge
}

// DependentText says what a chance of an edge of a vertex is not.
func DependentText(x float64, vertex int64) string {
	return fmt.Sprintf("dependent_sample: expected chances in [0, 1], got %s for vertex %d", ValueText(x), vertex)
}

// ValueText is a number as errors of a batch write it.
func ValueText(x float64) string {
	switch {
	case x != x:
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// CheckPartitioned refuses what a graph in parts does not have: a batch of it has the rows of the columns that it asks for.
func (p *Program) CheckPartitioned() error {
	wants := p.Wants(nil)
	for i := range p.Nodes {
		switch n := &p.Nodes[i]; n.Op {
		case Whole, Walk, Vertices, Degree, Features:
			if wants[i] != 0 {
				return fmt.Errorf("graph: expected one on this machine for a program with '%s', got one in parts, which has A[:, S] and A[R, S]", n.Op)
			}
		}
	}
	return nil
}
