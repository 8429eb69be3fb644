// Package explain describes a program, optimization pass by pass, and estimates its cost on a
// graph.
package explain

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/passes"
)

// Text describes the program as it was traced, after each optimization pass that changed it, and as
// it runs: its nodes with estimates of their elements and bytes in a batch of seeds seeds.
func Text(traced *program.Program, steps []passes.Step, runs *program.Program, where string, g Graph, seeds int64) string {
	var b strings.Builder
	b.WriteString("as traced\n")
	writeMarked(&b, traced)
	writeSum(&b, traced, g, seeds)
	for _, s := range steps {
		fmt.Fprintf(&b, "\nafter %s: %s\n", s.Pass.Name, s.Pass.Rule)
		writeMarked(&b, s.Program)
		writeSum(&b, s.Program, g, seeds)
	}
	fmt.Fprintf(&b, "\nruns as %s\n", where)
	costs, here := costs.Measured()
	if !here {
		b.WriteString("times by the costs of another machine: 'pygsampler calibrate' measures those of this one\n")
	}
	fmt.Fprintf(&b, "a batch of %d seeds on a graph of %d nodes and %d edges, if all had the mean degree:\n", seeds, g.Nodes, g.Edges)
	writeCosts(&b, runs, g, seeds, costs)
	writeLayouts(&b, runs, g, seeds, costs)
	return b.String()
}

// writeMarked writes the program's lines, with their marks at the end.
func writeMarked(b *strings.Builder, p *program.Program) {
	lines := strings.Split(p.String(), "\n")
	width := 0
	for _, line := range lines[:len(lines)-1] {
		width = max(width, len(line))
	}
	for i, line := range lines {
		if i < len(p.Nodes) && mark(&p.Nodes[i]) != "" {
			line = fmt.Sprintf("%-*s  # %s", width, line, mark(&p.Nodes[i]))
		}
		b.WriteString("  " + line + "\n")
	}
}

// writeSum writes the cost of a batch under a plan, so that the saving of a step is visible.
func writeSum(b *strings.Builder, p *program.Program, g Graph, seeds int64) {
	batch, graph := memory(p, sizes(p, g, seeds))
	fmt.Fprintf(b, "  # about %s elements and %s bytes a batch", short(Work(p, g, seeds)), short(batch))
	if graph > 0 {
		fmt.Fprintf(b, ", and %s bytes kept with the graph", short(graph))
	}
	b.WriteString("\n")
}

// memory returns the number of bytes that a batch stores, and of bytes that are cached with the
// graph.
func memory(p *program.Program, found []size) (batch, graph float64) {
	fixed := p.Fixed()
	for i := range p.Nodes {
		switch n := &p.Nodes[i]; {
		case n.Once:
			graph += bytes(n, found[i])
		case !fixed[i]:
			batch += bytes(n, found[i])
		}
	}
	return batch, graph
}

// mark returns the decisions of the optimization passes about a node.
func mark(n *program.Node) string {
	switch {
	case n.Inline:
		return "made where it is taken"
	case n.Once:
		return "once a graph"
	case n.Layout == program.Cheaper:
		return "layout by costs"
	}
	return ""
}

var kinds = map[program.Kind]string{program.List: "list", program.Matrix: "matrix", program.Vector: "vector", program.Scalar: "scalar", program.Dense: "rows"}

// writeCosts writes the table of nodes, columns aligned.
func writeCosts(b *strings.Builder, p *program.Program, g Graph, seeds int64, costs costs.Costs) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  node\tkind\telements\tbytes\tus\t")
	lines := strings.Split(p.String(), "\n")
	found := sizes(p, g, seeds)
	batch, graph := memory(p, found)
	times, writing := times(p, found, g, costs)
	sum := writing
	for i, s := range found {
		n := &p.Nodes[i]
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", lines[i], kinds[n.Type.Kind], short(s.elements), short(bytes(n, s)), microseconds(times[i]), mark(n))
		sum += times[i]
	}
	_ = w.Flush()
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	fmt.Fprintf(b, "  in all %s bytes a batch", short(batch))
	if graph > 0 {
		fmt.Fprintf(b, ", and %s kept with the graph", short(graph))
	}
	fmt.Fprintf(b, "; about %s us of one core of the CPU, %s of them to write the batch\n", microseconds(sum), microseconds(writing))
}

// microseconds returns a short number, with another digit if it is small.
func microseconds(x float64) string {
	if x > 0 && x < 9.95 {
		return fmt.Sprintf("%.1f", x)
	}
	return short(x)
}

// short is a number in few digits: 12, 3.4K, 56M.
func short(x float64) string {
	for _, unit := range []string{"", "K", "M", "G"} {
		switch {
		case x < 9.95 && unit != "":
			return fmt.Sprintf("%.1f%s", x, unit)
		case x < 999.5:
			return fmt.Sprintf("%.0f%s", x, unit)
		}
		x /= 1000
	}
	return fmt.Sprintf("%.0fT", x)
}
