package program

import (
	"fmt"
	"math"
	"strconv"
)

// RowsOf returns the list that a vector along the rows of edges runs along, and ColumnsOf along
// their columns.
func (p *Program) RowsOf(edges int) Along    { return p.rows(edges) }
func (p *Program) ColumnsOf(edges int) Along { return p.columns(edges) }

// Want says which part of a node a result needs.
type Want uint8

const (
	WantEdges  Want = 1 << iota // of a matrix
	WantValues                  // or what a list, vector, scalar is
)

// Wants returns the part of each node that the result needs: of a matrix its edges may be needed
// without its values. The inputs of a cached node are not needed; kept may be nil if no node is
// cached.
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

// TakesValues reports whether node i, of which want is needed, reads the values of its k-th input,
// in addition to its edges.
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

// DependentText describes an invalid chance of an edge of a node.
func DependentText(x float64, vertex int64) string {
	return fmt.Sprintf("dependent_sample: expected chances in [0, 1], got %s for node %d", ValueText(x), vertex)
}

// ValueText returns a number as errors of a batch print it.
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

// CheckPartitioned returns an error for operators that a partitioned graph does not support: a batch of it has
// only the rows of the columns that it requests.
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
