// Package program is samplers that users write: a function over the graph as a matrix, traced into a list
// of nodes. gSampler (Gong et al., SOSP 2023), section 3, has the operators; docs/algorithms/programs.md says what
// each means. A program is one text, a line a node:
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

// Kind is what a node makes.
type Kind uint8

const (
	List   Kind = iota // vertices in an order
	Matrix             // edges, column by column, each with a value
	Vector             // a value for each vertex of a list, or of all vertices
	Scalar
	Dense // a row of numbers for each vertex of a list, or of all vertices
)

// Space says whose elements a vector has.
type Space uint8

const (
	All     Space = iota // all vertices
	Columns              // the columns of the matrix that node made
	Rows                 // the rows of the edges of the matrix that node made, by first occurrence
	Of                   // the list that node made
)

// Along is what a vector runs along, or what list a list is: two vectors go together where they are along
// the same.
type Along struct {
	Space Space
	Node  int
}

// Type is what is known of a node's value before anything is sampled.
type Type struct {
	Kind     Kind
	Edges    int   // of a Matrix: the node that chose its edges
	Along    Along // of a Vector, of a List and of Dense
	Distinct bool  // of a List: no vertex stands in it twice
}

// Layout is how a node has its data, where there are two ways (package layout says which); no value depends on it.
type Layout uint8

const (
	Usual   Layout = iota // the way of both engines
	Cheaper               // the one that costs less, by the sizes that a batch turns out to have, where the engine has both
	Other                 // the other one, where the engine has it
)

// Node is an operator, what it takes, and what follows from that.
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

	// What passes decide; it changes no value.
	Inline bool // made anew where it is taken, rather than stored: of maps, and of a Slice whose edges are drawn at once
	Once   bool // a function of the graph alone: made once for a graph, and kept with it
	Layout Layout
}

// Extra is a vector or a list that is returned by a name, or the values of a block's edges.
type Extra struct {
	Name  string
	Node  int
	Block int // of values of edges, from 1 on: the place of the matrix whose edges they are of; 0: beside the blocks
}

// Result is what a program returns.
type Result uint8

const (
	Blocks   Result = iota // matrices, outermost hop first: a block each
	Subgraph               // one matrix, with the vertices of a list
	Vectors                // extras alone
)

// Program is checked nodes, each behind those that it takes. It is immutable, and serves any number of
// batches at once.
type Program struct {
	Nodes    []Node
	Result   Result
	Matrices []int  // of Blocks, outermost first; of a Subgraph one
	Bare     []bool // of those: whether their own values are left out
	List     int    // of a Subgraph: its vertices
	Extras   []Extra
	Weight   string // the edge array that the graph's matrix has for values; "": ones

	Timed bool // a batch has the microseconds of each node, and of writing it, beside its arrays
}

// Keeps says that the node's values are kept with the graph: it is marked so, and of a kind that has them.
func (n *Node) Keeps() bool {
	k := n.Type.Kind
	return n.Once && (k == Scalar || (k == Vector || k == Dense) && n.Type.Along.Space == All)
}

// NumExtras is how many arrays a batch has beside its blocks.
func (p *Program) NumExtras() int {
	if p.Timed {
		return len(p.Extras) + 1
	}
	return len(p.Extras)
}

// String is the text.
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

// text is the node as its line has it.
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

// Key is the node's line without its number: two nodes of one key and no site are the same value.
func (n *Node) Key() string {
	if n.Tensor != nil {
		return n.text() + " of " + n.Tensor.digest
	}
	return n.text()
}

// Draws says that the node takes random numbers of its own.
func (n *Node) Draws() bool { return slices.Contains(strings.Fields(specs[n.Op].attrs), "site") }

// Maps says that the node makes each value of one element of each input.
func (n *Node) Maps() bool { return n.Op >= Const && n.Op <= Spread }

// Chooses says that the node makes a matrix of edges of its own.
func (n *Node) Chooses() bool {
	return n.Op == Whole || n.Op == Slice || n.Op == Cross || n.Op >= Individual && n.Op <= Merge
}

// Inherits says that a node takes, for the rows of a matrix, elements along the rows of what that was chosen from.
func (p *Program) Inherits(n *Node) bool {
	if n.Op != Gather {
		return false
	}
	of := p.Nodes[n.In[0]].Type.Along
	return of.Space != All && of != n.Type.Along
}

// Parent is the matrix of whose edges a chosen matrix has some; -1: the graph's.
func (p *Program) Parent(edges int) int {
	if n := &p.Nodes[edges]; n.Op >= Individual && n.Op <= Extract {
		return p.Nodes[n.In[0]].Type.Edges
	}
	return -1
}

// Valued says that the k-th matrix that is returned has values of its own in the batch.
func (p *Program) Valued(k int) bool { return !p.Bare[k] && !p.Ones(p.Matrices[k]) }

// Ones says that a matrix has the values of a graph's matrix without weights, which nobody has changed: a
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
