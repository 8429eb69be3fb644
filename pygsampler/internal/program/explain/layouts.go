package explain

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
)

// choice is a node that has its data in one of two ways: what both take, in nanoseconds, and which it is. Batches choose
// by the sizes that they have.
type choice struct {
	node  int
	ways  layout.Ways
	times [2]float64
	taken int
}

// choices returns the layout choices of a program, by the sizes of the model.
func choices(p *program.Program, found []size, g Graph, c costs.Costs) (all []choice) {
	works := layout.Works(p, c)
	for i, ways := range layout.Choose(p) {
		n := &p.Nodes[i]
		made := choice{node: i, ways: ways}
		switch ways {
		case layout.Ways{}:
			continue
		case layout.Rows:
			made.times[0], made.times[1] = layout.AsRows(c, found[i].elements, float64(g.Nodes))
		case layout.Between:
			degree := float64(g.Edges) / max(float64(g.Nodes), 1)
			made.times[0], made.times[1] = layout.Cross(c, found[n.In[1]].elements*degree, found[n.In[0]].elements*degree)
		case layout.Elements:
			edges := 0.0
			for t := range p.Nodes {
				for _, in := range p.Nodes[t].In {
					if in == i && p.Nodes[t].Type.Kind == program.Matrix {
						edges += found[t].elements
					}
				}
			}
			made.times[0], made.times[1] = works[i].Elements(c, edges, float64(g.Nodes))
		}
		if n.Layout == program.Other || n.Layout == program.Cheaper && made.times[1] < made.times[0] {
			made.taken = 1
		}
		all = append(all, made)
	}
	return all
}

// onDevice returns the layout choices of a GPU.
func onDevice(p *program.Program, found []size, g Graph, d costs.Device) (all []choice) {
	degree := float64(g.Edges) / max(float64(g.Nodes), 1)
	for i, ways := range layout.OnDevice(p) {
		n := &p.Nodes[i]
		if ways == (layout.Ways{}) {
			continue
		}
		made := choice{node: i, ways: ways}
		made.times[0], made.times[1] = layout.CrossOnDevice(d, found[n.In[1]].elements*degree, found[n.In[0]].elements*degree)
		if n.Layout == program.Other || n.Layout == program.Cheaper && made.times[1] < made.times[0] {
			made.taken = 1
		}
		all = append(all, made)
	}
	return all
}

// writeLayouts writes the choices, and what finding all out-edges takes.
func writeLayouts(b *strings.Builder, p *program.Program, g Graph, seeds int64, c costs.Costs) {
	found := sizes(p, g, seeds)
	if !g.Device {
		writeChoices(b, p, choices(p, found, g, c), layout.Transpose(c, float64(g.Edges)), outBytes*float64(g.Edges)+idBytes*float64(g.Nodes))
		return
	}
	d, here := costs.MeasuredDevice()
	all := onDevice(p, found, g, d)
	if len(all) > 0 && !here {
		b.WriteString("layouts by the costs of another GPU: 'pygsampler calibrate --device cuda' measures those of this one\n")
	}
	writeChoices(b, p, all, d.Turn*float64(g.Edges), outBytes*float64(g.Edges)+numberBytes*float64(g.Nodes))
}

// writeChoices writes what was chosen, and what it takes to find all out-edges and to keep them.
func writeChoices(b *strings.Builder, p *program.Program, all []choice, turn, bytes float64) {
	if len(all) == 0 {
		return
	}
	b.WriteString("layouts, of which batches choose by the sizes that they turn out to have:\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	lines := strings.Split(p.String(), "\n")
	turns := false
	for _, of := range all {
		ways := [2]string{of.ways.Usual, of.ways.Other}
		fmt.Fprintf(w, "  %s\t%s %s us\t%s %s us\t-> %s%s\n", lines[of.node], ways[0], microseconds(of.times[0]/1e3),
			ways[1], microseconds(of.times[1]/1e3), ways[of.taken], given(p.Nodes[of.node].Layout))
		turns = turns || of.ways == layout.Between && of.taken == 1
	}
	_ = w.Flush()
	if turns {
		fmt.Fprintf(b, "  out-edges are found once a graph, when batches have lost the %s us that it takes, and kept: about %s bytes\n",
			microseconds(turn/1e3), short(bytes))
	}
}

// outBytes is the number of bytes of an out-edge: on the CPU for ids of 32 bits.
const outBytes = 8

// given returns the reason for a layout that was not chosen by cost.
func given(l program.Layout) string {
	switch l {
	case program.Usual:
		return ", without the pass layout"
	case program.Other:
		return ", as was asked for"
	}
	return ""
}
