// Package program represents samplers that users write: a function over the graph as a matrix,
// traced into a list of nodes. gSampler (Gong et al., SOSP 2023), section 3, has the operators;
// docs/algorithms/programs.md explains each. A program is one text, one line per node:
//
//	%0 = seeds
//	%1 = slice %0
//	%2 = individual %1 k=10 replace=false site=0
//	return blocks %2
package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind of a node's value.
type Kind uint8

const (
	List   Kind = iota // nodes in an order
	Matrix             // edges, column by column, each with a value
	Vector             // a value for each node of a list, or of all nodes
	Scalar
	Dense // a row of numbers for each node of a list, or of all nodes
)

// Space is the kind of list that a vector has an element for each member of.
type Space uint8

const (
	All     Space = iota // all nodes
	Columns              // the columns of the matrix of a node
	Rows                 // the rows of the edges of the matrix of a node, by first occurrence
	Of                   // the list of a node
)

// Along identifies the list that a vector runs along, or the identity of a list: two vectors can be
// combined if they run along the same.
type Along struct {
	Space Space
	Node  int
}

// Type holds the properties of a node's value that are known before sampling.
type Type struct {
	Kind     Kind
	Edges    int   // of a Matrix: the node that chose its edges
	Along    Along // of a Vector, of a List and of Dense
	Distinct bool  // of a List: no node stands in it twice
}

// Layout is the layout of a node's data, if there are two (see package layout); no value depends on
// it.
type Layout uint8

const (
	Usual   Layout = iota // the way of both engines
	Cheaper               // the one that costs less, by the sizes that a batch turns out to have, where the engine has both
	Other                 // the other one, where the engine has it
)

// Node is an operator, its inputs, and the properties that follow from them.
type Node struct {
	Op      Op
	In      []int   // nodes before this one
	K       int64   // Individual, Collective, TopK, Draw: how many; -1: all
	Replace bool    // of those that draw
	Site    int     // of those that draw: which random numbers are theirs
	Batches int64   // of a Random: the period of rng.Dependent; 0 is 1
	Axis    int     // 0: columns, 1: rows, -1: none
	Name    string  // of an array
	Value   float64 // of a Const
	Tensor  *Tensor // of a Project and an Item: the input, once it is bound
	Type    Type

	// Marks of optimization passes; they change no value.
	Inline bool // recomputed by its reader instead of stored: maps, and a Slice whose edges are drawn at once
	Once   bool // a function of the graph only: computed once for a graph, and cached with it
	Layout Layout
}

// Extra is a vector or a list that is returned by a name, or the values of a block's edges.
type Extra struct {
	Name  string
	Node  int
	Block int // for values of edges, from 1 on: the index of their matrix; 0: an array apart from the blocks
}

// Result is the kind of a program's result.
type Result uint8

const (
	Blocks   Result = iota // matrices, outermost hop first: a block each
	Subgraph               // one matrix, with the nodes of a list
	Vectors                // extras alone
)

// Program is a list of checked nodes, each after its inputs. It is immutable, and serves any number
// of batches at once.
type Program struct {
	Nodes    []Node
	Result   Result
	Matrices []int  // of Blocks, outermost first; of a Subgraph one
	Bare     []bool // of those: whether their own values are left out
	List     int    // of a Subgraph: its nodes
	Extras   []Extra
	Weight   string // the edge array that the graph's matrix has for values; "": ones

	Timed bool // a batch has an array of the microseconds of each node, and of writing the batch
}

// Keeps reports whether the node's values are cached with the graph: it is marked so, and of a kind
// with values.
func (n *Node) Keeps() bool {
	k := n.Type.Kind
	return n.Once && (k == Scalar || (k == Vector || k == Dense) && n.Type.Along.Space == All)
}

// NumExtras returns the number of arrays that a batch has in addition to its blocks.
func (p *Program) NumExtras() int {
	if p.Timed {
		return len(p.Extras) + 1
	}
	return len(p.Extras)
}

// String returns the text.
func (p *Program) String() string {
	var b strings.Builder
	for i := range p.Nodes {
		fmt.Fprintf(&b, "%%%d = %s\n", i, p.Nodes[i].text())
	}
	b.WriteString("return " + p.Result.String())
	separate := []string{" ", ", "}
	if p.Result == Subgraph {
		fmt.Fprintf(&b, " %%%d", p.List)
		separate[0] = separate[1]
	}
	for i, n := range p.Matrices {
		b.WriteString(separate[min(i, 1)])
		if p.Bare[i] {
			b.WriteByte('~')
		}
		fmt.Fprintf(&b, "%%%d", n)
	}
	for _, e := range p.Extras {
		fmt.Fprintf(&b, " %q", e.Name)
		if e.Block > 0 {
			fmt.Fprintf(&b, "[%d]", e.Block-1)
		}
		fmt.Fprintf(&b, "=%%%d", e.Node)
	}
	return b.String()
}

var results = []string{"blocks", "subgraph", "vectors"}

func (r Result) String() string { return results[r] }

// text returns the node as its line writes it.
func (n *Node) text() string {
	var b strings.Builder
	b.WriteString(n.Op.String())
	for i, in := range n.In {
		b.WriteString([]string{" ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%%%d", in)
	}
	for _, name := range strings.Fields(specs[n.Op].attrs) {
		switch name {
		case "k":
			fmt.Fprintf(&b, " k=%d", n.K)
		case "replace":
			fmt.Fprintf(&b, " replace=%t", n.Replace)
		case "site":
			fmt.Fprintf(&b, " site=%d", n.Site)
		case "batches":
			if n.Batches > 1 {
				fmt.Fprintf(&b, " batches=%d", n.Batches)
			}
		case "axis":
			if n.Axis >= 0 {
				fmt.Fprintf(&b, " axis=%d", n.Axis)
			}
		case "name":
			fmt.Fprintf(&b, " name=%q", n.Name)
		case "value":
			b.WriteString(" value=" + strconv.FormatFloat(n.Value, 'g', -1, 64))
		}
	}
	return b.String()
}

// Key returns the node's line without its number: two nodes with the same key and no site have the
// same value.
func (n *Node) Key() string {
	if n.Tensor != nil {
		return n.text() + " of " + n.Tensor.digest
	}
	return n.text()
}

// Draws reports whether the node draws random numbers.
func (n *Node) Draws() bool { return slices.Contains(strings.Fields(specs[n.Op].attrs), "site") }

// Maps reports whether the node computes each value from one element of each input.
func (n *Node) Maps() bool { return n.Op >= Const && n.Op <= Spread }

// Chooses reports whether the node selects edges, so that its matrix has its own.
func (n *Node) Chooses() bool {
	return n.Op == Whole || n.Op == Slice || n.Op == Cross || n.Op >= Individual && n.Op <= Merge
}

// Inherits reports whether a node reads, for the rows of a matrix, elements along the rows of the
// matrix that it was chosen from.
func (p *Program) Inherits(n *Node) bool {
	if n.Op != Gather {
		return false
	}
	of := p.Nodes[n.In[0]].Type.Along
	return of.Space != All && of != n.Type.Along
}

// Parent returns the matrix that a chosen matrix has some edges of; -1: the graph's.
func (p *Program) Parent(edges int) int {
	if n := &p.Nodes[edges]; n.Op >= Individual && n.Op <= Extract {
		return p.Nodes[n.In[0]].Type.Edges
	}
	return -1
}

// Valued reports whether the k-th returned matrix has its own values in the batch.
func (p *Program) Valued(k int) bool { return !p.Bare[k] && !p.Ones(p.Matrices[k]) }

// Ones reports whether a matrix has the unchanged values of the graph's matrix without weights: a
// batch has no array of them.
func (p *Program) Ones(matrix int) bool {
	n := &p.Nodes[matrix]
	switch n.Op {
	case Whole, Slice, Cross:
		return p.Weight == ""
	case Individual, Collective, Dependent, Filter, TopK, Extract:
		return p.Ones(n.In[0])
	case Merge:
		return p.Ones(n.In[0]) && p.Ones(n.In[1])
	}
	return false
}
