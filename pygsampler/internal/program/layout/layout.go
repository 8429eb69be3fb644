// Package layout says which nodes of a program have their data in one of two ways, and what either takes: the choice of
// layouts of gSampler (Gong et al., SOSP 2023), section 4.3, as far as it is one here.
//
//   - A vector of all vertices whose elements edges take is made edge by edge, or stored for all vertices.
//   - A[R, S] is found among the in-edges of its columns (CSC), or among the out-edges of its rows (CSR), of which a
//     form is made once for a graph.
package layout

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
)

// Ways are what the two of a kind of choices are called, the usual one first. The zero value is of nodes without one.
type Ways struct{ Usual, Other string }

// The kinds of choices.
var (
	Elements = Ways{"each edge", "all vertices"}
	Between  = Ways{"in-edges of columns", "out-edges of rows"}
)

// Forced are names of the other ways, by which experiments ask for them.
var Forced = map[string]Ways{"vertices": Elements, "rows": Between}

// Of are the choices of all nodes. A vector of all vertices is one where edges take elements that are made of others;
// arrays and degrees are read where they are.
func Of(p *program.Program) []Ways {
	ways := make([]Ways, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op == program.Cross {
			ways[i] = Between
		}
		if n.Type.Kind != program.Matrix || !n.Maps() {
			continue
		}
		for _, in := range n.In {
			if taken := &p.Nodes[in]; computed(taken) && !taken.Once {
				ways[in] = Elements
			}
		}
	}
	return ways
}

// computed says that elements of a vector of all vertices are made of others, or of nothing.
func computed(n *program.Node) bool {
	all := n.Type.Kind == program.Vector && n.Type.Along.Space == program.All
	return all && (n.Op == program.Random || n.Maps() && len(n.In) > 0)
}

// Work is nanoseconds of an element of a vector of all vertices: made for an edge, or in its turn.
type Work struct{ Edge, Vertex float64 }

// Works are those of all nodes.
func Works(p *program.Program, c costs.Costs) []Work {
	works := make([]Work, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch {
		case n.Type.Kind != program.Vector || n.Type.Along.Space != program.All:
			continue
		case !computed(n) || n.Once:
			works[i] = Work{c.Gather, c.Map}
			continue
		case n.Op == program.Random:
			works[i] = Work{c.Random, c.Random}
		case n.Op == program.Exp, n.Op == program.Log, n.Op == program.Pow:
			works[i] = Work{c.Exp, c.Exp}
		default:
			works[i] = Work{c.Map, c.Map}
		}
		for _, in := range n.In {
			works[i].Edge += works[in].Edge
			works[i].Vertex += works[in].Vertex
		}
	}
	return works
}

// Elements are nanoseconds of a vector's elements for so many edges, by both ways.
func (w Work) Elements(c costs.Costs, edges, vertices float64) (usual, other float64) {
	return w.Edge * edges, w.Vertex*vertices + c.Gather*edges
}

// Cross is nanoseconds of A[R, S] by both ways: with so many in-edges of columns, and out-edges of rows.
func Cross(c costs.Costs, in, out float64) (usual, other float64) { return c.Look * in, c.Out * out }

// Turn is nanoseconds of finding the out-edges of all vertices of a graph, once.
func Turn(c costs.Costs, edges float64) float64 { return c.Turn * edges }
