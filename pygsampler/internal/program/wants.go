package program

import (
	"math"
	"strconv"
)

// ColumnsOf is what a vector along the columns of edges runs along.
func (p *Program) ColumnsOf(edges int) Along { return p.columns(edges) }

// RowsOf is what a vector along the rows of edges runs along.
func (p *Program) RowsOf(edges int) Along { return p.rows(edges) }

// Want says what of a node a result needs.
type Want uint8

const (
	WantEdges  Want = 1 << iota // of a matrix
	WantValues                  // or what a list, vector, scalar is
)

// Wants is what the result needs of each node: of a matrix its edges may be needed and its values not.
func (p *Program) Wants() []Want {
	wants := make([]Want, len(p.Nodes))
	for _, m := range p.Matrices {
		wants[m] |= WantEdges | WantValues
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
		}
		for k, in := range n.In {
			switch {
			case p.Nodes[in].Type.Kind != Matrix:
				wants[in] |= WantValues
			case n.Op == Column, n.Op == Row, n.Op == Count, n.Op == Times, n.Op == Data, n.Op == Random, n.Op == Spread, n.Op == Dot,
				n.Chooses() && want&WantValues == 0 && (k == 0 || n.Op == Merge):
				wants[in] |= WantEdges
			default:
				wants[in] |= WantEdges | WantValues
			}
		}
	}
	return wants
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
