// Package passes optimizes programs. No pass changes a byte of a batch; each can be skipped, for
// experiments. gSampler (Gong et al., SOSP 2023), section 4, has extract-select, edge-map,
// edge-map-reduce and pre-processing.
package passes

import (
	"fmt"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
)

// Pass is a rewriting of programs. Its file says what it does, and the reason why it is legal.
type Pass struct {
	Name  string
	Rule  string   // what it does, in a line
	After []string // the passes that must have run
	Why   string   // what they leave that this one needs
	run   func(*program.Program) (*program.Program, error)
}

// Table lists the passes in the order in which they run.
var Table = []Pass{
	{Name: "fold", Rule: "constant arithmetic is evaluated", run: fold},
	{
		Name: "cse", Rule: "equal nodes without draws are merged", run: cse,
		After: []string{"fold"}, Why: "constants are equal only once they are folded",
	},
	{
		Name: "dce", Rule: "unused nodes are removed", run: dce,
		After: []string{"fold", "cse"}, Why: "both leave unused nodes behind",
	},
	{
		Name: "preprocess", Rule: "values that depend on the graph only are computed once for a graph", run: preprocess,
		After: []string{"dce"}, Why: "unused values would be cached with the graph",
	},
	{
		Name: "extract_select", Rule: "edges of a slice that are drawn at once are not stored", run: extractSelect,
		After: []string{"cse", "dce"}, Why: "the draw must be the only reader of the slice",
	},
	{
		Name: "edge_map", Rule: "edge values with one reader are computed in it", run: edgeMap,
		After: []string{"cse", "dce"}, Why: "the readers of a node are final then",
	},
	{
		Name: "edge_map_reduce", Rule: "edge values are recomputed in a reduction if that is cheap", run: edgeMapReduce,
		After: []string{"edge_map"}, Why: "the values that it leaves have several readers",
	},
	{
		Name: "vector_map", Rule: "vector elements with one reader are computed in it", run: vectorMap,
		After: []string{"dce", "preprocess"}, Why: "the readers of a node, and the cached values, are final then",
	},
	{
		Name: "layout", Rule: "the layout of data follows from its cost", run: layouts,
		After: []string{"preprocess"}, Why: "cached values are stored in any case",
	},
}

// Recognise is the name of the last step, which replaces the program by a family's plan and
// therefore is not in the table.
const Recognise = "recognise"

// Names returns the names of the passes, in order.
func Names() []string {
	var names []string
	for _, p := range Table {
		names = append(names, p.Name)
	}
	return append(names, Recognise)
}

// Step is a program after an optimization pass that changed it.
type Step struct {
	Pass    Pass
	Program *program.Program
}

// Run returns the program after the passes that are not in off, and the intermediate steps. The
// program and its marks are checked after each step.
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

// same reports whether two programs have the same nodes and marks.
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
			return fmt.Errorf("%%%d: expected a cached value to depend on the graph only", i)
		case n.Layout != program.Usual && ways[i] == (layout.Ways{}):
			return fmt.Errorf("%%%d: expected layouts to be chosen where there are two, got %s", i, n.Op)
		case n.Inline && n.Once:
			return fmt.Errorf("%%%d: expected a value to be cached or inlined, got both", i)
		case n.Inline && takers[i].returned:
			return fmt.Errorf("%%%d: expected what is returned to be stored", i)
		case n.Inline && elements(p, n):
			if !taken(p, n, takers[i]) {
				return fmt.Errorf("%%%d: expected one map to read inlined elements", i)
			}
		case n.Inline && n.Op != program.Slice && !edgeValues(n):
			return fmt.Errorf("%%%d: expected values of edges, or a slice, to be inlined, got %s", i, n.Op)
		}
	}
	return nil
}

// everywhere reports whether a value can be cached with the graph: a number, or a row of them, for
// each graph node, or one number.
func everywhere(t program.Type) bool {
	return t.Kind == program.Scalar || (t.Kind == program.Vector || t.Kind == program.Dense) && t.Along.Space == program.All
}

// edgeValues reports whether a node computes values of edges, each from its own inputs only.
func edgeValues(n *program.Node) bool {
	return n.Type.Kind == program.Matrix && n.Maps() && !n.Draws()
}

// taker lists the readers of a node.
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

// rewritten rebuilds a program node by node: change gets each node with its inputs in the new
// numbering, and returns the index of an equal existing node, or -1 for a new one.
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
