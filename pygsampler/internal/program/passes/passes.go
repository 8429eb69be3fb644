// Package passes rewrites programs so that they run faster. No pass changes a byte of a
// batch; each can be left out, for experiments. gSampler (Gong et al., SOSP 2023), section 4,
// has extract-select, edge-map, edge-map-reduce and pre-processing.
package passes

import (
	"fmt"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
)

// Pass is a rewriting. It is what its file says, and legal where that says so.
type Pass struct {
	Name  string
	Rule  string   // what it does, in a line
	After []string // the passes that must have run
	Why   string   // what they leave that this one needs
	run   func(*program.Program) (*program.Program, error)
}

// Table are the passes in the order in which they run.
var Table = []Pass{
	{Name: "fold", Rule: "arithmetic of constants is done now", run: fold},
	{
		Name: "cse", Rule: "equal nodes that draw nothing are one", run: cse,
		After: []string{"fold"}, Why: "constants are equal once they are folded",
	},
	{
		Name: "dce", Rule: "nodes that nobody takes are gone", run: dce,
		After: []string{"fold", "cse"}, Why: "both leave nodes behind that nobody takes",
	},
	{
		Name: "preprocess", Rule: "what depends on the graph alone is made once for a graph", run: preprocess,
		After: []string{"dce"}, Why: "what nobody takes would be kept with the graph",
	},
	{
		Name: "extract_select", Rule: "edges of a slice that are drawn at once are not stored", run: extractSelect,
		After: []string{"cse", "dce"}, Why: "the draw has to be the one that takes the slice",
	},
	{
		Name: "edge_map", Rule: "values of edges that one node takes are made there", run: edgeMap,
		After: []string{"cse", "dce"}, Why: "who else takes a node is known then",
	},
	{
		Name: "edge_map_reduce", Rule: "values of edges are made anew for a reduction where that is cheap", run: edgeMapReduce,
		After: []string{"edge_map"}, Why: "what it has left is taken by several",
	},
	{
		Name: "vector_map", Rule: "elements of vectors that one map takes are made there", run: vectorMap,
		After: []string{"dce", "preprocess"}, Why: "who else takes a node, and what is kept, is known then",
	},
	{
		Name: "layout", Rule: "how data is laid out follows from what that costs", run: layouts,
		After: []string{"preprocess"}, Why: "what is kept with the graph is stored in any case",
	},
}

// Recognise is the name of the last step, which replaces the program by a family's plan
// and so is none of the table.
const Recognise = "recognise"

// Names are those of all passes, in order.
func Names() []string {
	var names []string
	for _, p := range Table {
		names = append(names, p.Name)
	}
	return append(names, Recognise)
}

// Step is a program after a pass that changed it.
type Step struct {
	Pass    Pass
	Program *program.Program
}

// Run is the program after all passes but those that are off, and the steps on the way.
// After each the program is checked, and its marks are.
func Run(p *program.Program, off []string) (*program.Program, []Step, error) {
	var steps []Step
	for _, pass := range Table {
		if slices.Contains(off, pass.Name) {
			continue
		}
		q, err := pass.run(p)
		if err == nil {
			err = q.Check()
		}
		if err == nil {
			err = checkMarks(q)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("pass %s: %w", pass.Name, err)
		}
		if !same(p, q) {
			steps = append(steps, Step{pass, q})
		}
		p = q
	}
	return p, steps, nil
}

// same says that two programs have the same nodes and marks.
func same(p, q *program.Program) bool {
	return p.String() == q.String() && slices.EqualFunc(p.Nodes, q.Nodes, func(a, b program.Node) bool {
		return a.Inline == b.Inline && a.Once == b.Once && a.Layout == b.Layout
	})
}

// checkMarks refuses marks on nodes that cannot have them.
func checkMarks(p *program.Program) error {
	fixed, takers, ways := p.Fixed(), takersOf(p), layout.Choose(p)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch {
		case n.Once && (!fixed[i] || !everywhere(n.Type)):
			return fmt.Errorf("%%%d: expected a value of the graph alone to be made once", i)
		case n.Layout != program.Usual && ways[i] == (layout.Ways{}):
			return fmt.Errorf("%%%d: expected layouts to be chosen where there are two, got %s", i, n.Op)
		case n.Inline && n.Once:
			return fmt.Errorf("%%%d: expected a value to be made once, or anew, got both", i)
		case n.Inline && takers[i].returned:
			return fmt.Errorf("%%%d: expected what is returned to be stored", i)
		case n.Inline && elements(p, n):
			if !taken(p, n, takers[i]) {
				return fmt.Errorf("%%%d: expected one map to take elements that are made there", i)
			}
		case n.Inline && n.Op != program.Slice && !edgeValues(n):
			return fmt.Errorf("%%%d: expected values of edges, or a slice, to be made where they are taken, got %s", i, n.Op)
		}
	}
	return nil
}

// everywhere says that a value can be kept with the graph: one, or a row of them, for each vertex, or one.
func everywhere(t program.Type) bool {
	return t.Kind == program.Scalar || (t.Kind == program.Vector || t.Kind == program.Dense) && t.Along.Space == program.All
}

// edgeValues says that a node makes values of edges, each of its own inputs' alone.
func edgeValues(n *program.Node) bool {
	return n.Type.Kind == program.Matrix && n.Maps() && !n.Draws()
}

// taker is who takes a node.
type taker struct {
	nodes    []int // once for each time
	returned bool
}

func takersOf(p *program.Program) []taker {
	takers := make([]taker, len(p.Nodes))
	for i := range p.Nodes {
		for _, in := range p.Nodes[i].In {
			takers[in].nodes = append(takers[in].nodes, i)
		}
	}
	for _, node := range p.Returned() {
		takers[node].returned = true
	}
	return takers
}

// rewritten rebuilds a program node by node: change sees each with its inputs as they are
// numbered now, and says which node it is, of those that there are, or -1 for a new one.
func rewritten(p *program.Program, change func(n *program.Node, nodes []program.Node) int) (*program.Program, error) {
	at := make([]int, len(p.Nodes))
	var nodes []program.Node
	for i := range p.Nodes {
		n := p.Nodes[i]
		n.In = slices.Clone(n.In)
		for k, in := range n.In {
			n.In[k] = at[in]
		}
		if at[i] = change(&n, nodes); at[i] < 0 {
			at[i] = len(nodes)
			nodes = append(nodes, n)
		}
	}
	return p.Rebuilt(nodes, at)
}
