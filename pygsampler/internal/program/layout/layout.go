// Package layout says which nodes of a program have a choice between two layouts of their data, and
// the cost of each: the layout selection of gSampler (Gong et al., SOSP 2023), section 4.3, as far
// as it applies here.
//
// - Elements of a vector over all graph nodes are computed edge by edge, or stored for all graph
// nodes. - The rows of A[:, S] are the rows of its edges, numbered by first occurrence, or all
// graph nodes, which need no numbers. - A[R, S] is found among the in-edges of its columns (CSC),
// or among the out-edges of its rows (CSR), which are computed once for a graph.
package layout

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
)

// Ways are the names of the two layouts of a kind of choice, the default first. The zero value
// belongs to nodes without a choice.
type Ways struct{ Usual, Other string }

// The kinds of choices.
var (
	Elements = Ways{"each edge", "all nodes"}
	Rows     = Ways{"rows of its edges", "all nodes as rows"}
	Between  = Ways{"in-edges of columns", "out-edges of rows"}
)

// Forced holds the names of the other layouts, by which experiments select them.
var Forced = map[string]Ways{"vertices": Elements, "all_rows": Rows, "out_edges": Between}

// Choose returns the choices of all nodes. A vector over all graph nodes has one if edges read its
// elements and these are computed from others; arrays and degrees are read in place. A slice has
// one if its rows are reduced or chosen, and neither their order nor their number is visible.
func Choose(p *program.Program) []Ways {
	ways := make([]Ways, len(p.Nodes))
	unseen(p, ways)
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

// OnDevice returns the choices that GPU kernels have, too: A[R, S], unless R is S, since they then
// have about as many out-edges as in-edges, and finding an edge by its row costs as much as reading
// several.
func OnDevice(p *program.Program) []Ways {
	ways := Choose(p)
	for i := range p.Nodes {
		if n := &p.Nodes[i]; ways[i] != Between || n.In[0] == n.In[1] && n.Layout != program.Other {
			ways[i] = Ways{}
		}
	}
	return ways
}

// unseen finds the slices whose rows may be all nodes.
func unseen(p *program.Program, ways []Ways) {
	seen := make([]bool, len(p.Nodes))
	for _, node := range p.Returned() {
		switch t := p.Nodes[node].Type; {
		case t.Kind == program.Matrix:
			seen[t.Edges] = true
		case t.Kind != program.Scalar && t.Along.Space == program.Rows:
			seen[t.Along.Node] = true
		}
	}
	for t := range p.Nodes {
		n := &p.Nodes[t]
		for k, in := range n.In {
			of := p.Nodes[in].Type
			if of.Kind == program.Matrix && p.Nodes[of.Edges].Op == program.Slice {
				switch {
				case n.Op == program.Row, n.Op == program.Multiply && n.Axis == 1, n.Op == program.Collective && k == 0 && !asRows(p, n):
					seen[of.Edges] = true
				case n.Op == program.Collective && k == 0, reduces(n) && n.Axis == 1:
					ways[of.Edges] = Rows
				}
			}
			if of.Kind != program.Matrix && of.Kind != program.Scalar && of.Along.Space == program.Rows && !unordered(p, n, in) {
				seen[of.Along.Node] = true
			}
		}
	}
	for i := range ways {
		if seen[i] {
			ways[i] = Ways{}
		}
	}
}

// asRows reports whether a draw of rows is the same as a draw of all graph nodes: each draws
// separately, by a reduction of its edges, which is 0 if there are none.
func asRows(p *program.Program, draw *program.Node) bool {
	if draw.Replace && draw.K >= 0 {
		return false
	}
	if len(draw.In) == 1 {
		return true
	}
	by := &p.Nodes[draw.In[1]]
	return reduces(by) && by.Type.Along == program.Along{Space: program.Rows, Node: p.Nodes[draw.In[0]].Type.Edges}
}

// unordered reports whether a node reads elements of a vector along rows one by one: for edges, for
// another such vector, or to draw by.
func unordered(p *program.Program, n *program.Node, vector int) bool {
	if n.Op == program.Collective {
		return p.Nodes[n.In[0]].Type.Edges != p.Nodes[vector].Type.Along.Node || asRows(p, n)
	}
	return n.Maps() && (n.Type.Kind == program.Matrix || n.Type.Kind == program.Vector)
}

func reduces(n *program.Node) bool { return n.Op >= program.Sum && n.Op <= program.Count }

// computed reports whether the elements of a vector over all graph nodes are computed.
func computed(n *program.Node) bool {
	all := n.Type.Kind == program.Vector && n.Type.Along.Space == program.All
	return all && (n.Op == program.Random || n.Maps() && len(n.In) > 0)
}

// Work is the cost in nanoseconds of an element of a vector over all graph nodes: computed for an
// edge, or in sequence.
type Work struct{ Edge, Vertex float64 }

// Works returns the costs of all nodes.
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

// Elements returns the nanoseconds of a vector's elements for a number of edges, in both layouts.
func (w Work) Elements(c costs.Costs, edges, vertices float64) (usual, other float64) {
	return w.Edge * edges, w.Vertex*vertices + c.Gather*edges
}

// AsRows returns the nanoseconds of finding the rows of a number of edges, and of a sum along them,
// in both layouts.
func AsRows(c costs.Costs, edges, vertices float64) (usual, other float64) {
	return c.Row * edges, c.Wide*edges + c.Vertex*vertices
}

// Cross returns the nanoseconds of A[R, S] in both layouts: for in in-edges of its columns, and out
// out-edges of its rows.
func Cross(c costs.Costs, in, out float64) (usual, other float64) { return c.Look * in, c.Out * out }

// Transpose returns the nanoseconds of finding the out-edges of all nodes of a graph, once.
func Transpose(c costs.Costs, edges float64) float64 { return c.Turn * edges }

// CrossOnDevice is Cross for a GPU.
func CrossOnDevice(d costs.Device, in, out float64) (usual, other float64) {
	return d.In * in, d.Bit*in + d.Out*out + d.More
}
