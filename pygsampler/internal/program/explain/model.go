package explain

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// Graph is the model's view of a graph: its size, and the numbers per node of its arrays.
type Graph struct {
	Nodes, Edges int64
	Widths       map[string]int64
	Device       bool // it is on a GPU
}

// size is about how large a node's value is: of a list and of a vector the elements; of
// a matrix the edges, its columns and its distinct rows; of dense rows their number and their length.
type size struct{ elements, columns, rows, width float64 }

// Sizes of things in the engine's memory: a node and a value, and what an edge that was
// chosen is known by: its place, column and row.
const (
	idBytes     = 8
	valueBytes  = 8
	numberBytes = 4 // of dense rows
	chosenBytes = 16
)

// sizes estimates the sizes of all nodes for a batch of seeds seeds, if every graph node has the
// mean degree, graph nodes are drawn at random, and masks select half.
func sizes(p *program.Program, g Graph, seeds int64) []size {
	nodes, edges := float64(g.Nodes), float64(g.Edges)
	degree := edges / max(nodes, 1)
	found := make([]size, len(p.Nodes))
	for i := range p.Nodes {
		n, s := &p.Nodes[i], &found[i]
		in := make([]size, 3)
		for k, node := range n.In {
			in[k] = found[node]
		}
		most := float64(n.K)
		if n.K < 0 {
			most = math.Inf(1)
		}
		a, b := in[0], in[1]
		switch n.Op {
		case program.Seeds:
			s.elements = float64(seeds)
		case program.Column:
			s.elements = a.columns
		case program.Row:
			s.elements = a.rows
		case program.Union:
			s.elements = distinct(a.elements+b.elements, nodes)
		case program.Unique:
			s.elements = distinct(a.elements, nodes)
		case program.Concat:
			s.elements = a.elements + b.elements
		case program.Pick:
			s.elements = a.elements / 2
		case program.Draw:
			if s.elements = min(most, a.elements); n.Replace && n.K >= 0 {
				s.elements = most
			}
		case program.Roots:
			s.elements = most
		case program.Walk:
			s.elements = a.elements * (most + 1)
		case program.Whole:
			*s = size{elements: edges, columns: nodes, rows: nodes}
		case program.Slice:
			s.columns = min(a.elements, nodes)
			s.elements = s.columns * degree
			s.rows = distinct(s.elements, nodes)
		case program.Cross:
			s.columns = b.elements
			s.elements = b.elements * degree * a.elements / max(nodes, 1)
			s.rows = min(a.elements, s.elements)
		case program.Individual, program.TopK:
			each := min(a.elements/max(a.columns, 1), most)
			if n.Replace && n.K >= 0 {
				each = most
			}
			*s = size{elements: a.columns * each, columns: a.columns, rows: distinct(a.columns*each, a.rows)}
		case program.Collective:
			s.columns, s.rows = a.columns, min(most, a.rows)
			s.elements = a.elements * s.rows / max(a.rows, 1)
		case program.Dependent, program.Filter:
			*s = size{elements: a.elements / 2, columns: a.columns, rows: distinct(a.elements/2, a.rows)}
		case program.Extract:
			// About as many edges in each as there are in those of the matrix.
			s.columns = min(b.elements, nodes)
			s.elements = min(s.columns/max(a.columns, 1), 1) * a.elements
			s.rows = distinct(s.elements, a.rows)
		case program.IsIn:
			s.elements = a.elements
		case program.Merge:
			*s = size{elements: a.elements + b.elements, columns: a.columns, rows: distinct(a.elements+b.elements, nodes)}
		case program.Vertices, program.Degree, program.Number:
			s.elements = nodes
		case program.Gather:
			s.elements = b.elements
		case program.Features:
			*s = size{elements: nodes, width: float64(g.Widths[n.Name])}
		case program.Take:
			*s = size{elements: b.elements, width: a.width}
		case program.Project:
			_, h := n.Tensor.Matrix()
			*s = size{elements: a.elements, width: float64(h)}
		case program.Multiply:
			*s = size{elements: []float64{a.columns, a.rows}[n.Axis], width: b.width}
		case program.Entry:
			s.elements = a.elements
		default:
			*s = derived(p, n, in, nodes)
		}
	}
	return found
}

// derived is the size of what is as large as one of its inputs.
func derived(p *program.Program, n *program.Node, in []size, nodes float64) size {
	switch {
	case n.Type.Kind == program.Scalar:
		return size{elements: 1}
	case n.Type.Kind == program.Vector && len(n.In) == 0:
		return size{elements: nodes}
	case n.Type.Kind == program.Vector && p.Nodes[n.In[0]].Type.Kind == program.Matrix:
		if n.Op == program.Times || n.Axis == 1 {
			return size{elements: in[0].rows}
		}
		return size{elements: in[0].columns}
	}
	var largest size
	for k, node := range n.In {
		if p.Nodes[node].Type.Kind == n.Type.Kind && in[k].elements >= largest.elements {
			largest = in[k]
		}
	}
	return largest
}

// distinct estimates the number of distinct results of random draws from a number of things.
func distinct(looks, things float64) float64 {
	if things <= 0 {
		return 0
	}
	return things * -math.Expm1(-looks/things)
}

// bytes returns the number of bytes that a node stores for a batch.
func bytes(n *program.Node, s size) float64 {
	switch {
	case n.Inline:
		return 0
	case n.Type.Kind == program.Scalar:
		return valueBytes
	case n.Type.Kind == program.List:
		return idBytes * s.elements
	case n.Type.Kind == program.Vector:
		if n.Op == program.Vertices || n.Op == program.Degree || n.Op == program.Number {
			return 0
		}
		return valueBytes * s.elements
	case n.Op == program.Whole || n.Op == program.Data || n.Op == program.Features:
		return 0
	case n.Type.Kind == program.Dense:
		return numberBytes * s.elements * s.width
	case n.Op == program.Slice:
		// Whole columns are ranges of the graph's.
		return 2 * idBytes * s.columns
	case n.Chooses():
		return chosenBytes * s.elements
	}
	return valueBytes * s.elements
}

// Work estimates the number of elements that a batch reads and that are not cached with the graph.
func Work(p *program.Program, g Graph, seeds int64) float64 {
	total, fixed := 0.0, p.Fixed()
	for i, s := range sizes(p, g, seeds) {
		if !fixed[i] {
			total += s.elements * max(s.width, 1)
		}
	}
	return total
}
