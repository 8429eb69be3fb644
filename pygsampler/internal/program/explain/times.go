package explain

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
)

// times estimates the microseconds of each node, and of writing the batch, on one core. A value
// that is computed on the fly has its own time, and the rows of a matrix count for the first node
// that needs them.
func times(p *program.Program, found []size, g Graph, c costs.Costs) (us []float64, writing float64) {
	us = make([]float64, len(p.Nodes))
	chosen := map[int]choice{}
	for _, of := range choices(p, found, g, c) {
		chosen[of.node] = of
	}
	fixed, numbered := p.Fixed(), map[int]bool{}
	rows := func(edges int, count float64) float64 {
		if numbered[edges] || p.RowsOf(edges).Space == program.All {
			return 0
		}
		numbered[edges] = true
		if of, is := chosen[edges]; is && of.ways == layout.Rows && of.taken == 1 {
			return max(of.times[1]-count*c.Column, 0)
		}
		return count * max(c.Row-c.Column, 0)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if fixed[i] {
			continue // it exists, or is computed once
		}
		var in size
		edges := -1
		if len(n.In) > 0 {
			in = found[n.In[0]]
			if of := p.Nodes[n.In[0]].Type; of.Kind == program.Matrix {
				edges = of.Edges
			}
		}
		if of, is := chosen[i]; is && of.ways != layout.Rows {
			us[i] = of.times[of.taken] / 1e3
			continue
		}
		us[i] = nanoseconds(n, in, found[i], c) / 1e3
		along := n.Op == program.Row || n.Op == program.Collective || n.Op >= program.Sum && n.Op <= program.Count && n.Axis == 1
		if edges >= 0 && (along || n.Op == program.Multiply && n.Axis == 1) {
			us[i] += rows(edges, in.elements) / 1e3
		}
	}
	for _, m := range p.Matrices {
		writing += found[m].elements * c.Write / 1e3
	}
	return us, writing
}

// nanoseconds returns the time of a node without the rows of its input.
func nanoseconds(n *program.Node, in, out size, c costs.Costs) float64 {
	switch n.Op {
	case program.Seeds, program.Column, program.Row, program.Const, program.Item, program.Features:
		return 0
	case program.Union, program.Unique, program.Concat, program.Pick, program.Cross:
		return c.Row * max(in.elements, out.elements)
	case program.Slice:
		return c.Column * out.columns
	case program.Extract:
		return c.Row*(in.columns+out.columns) + c.Column*out.elements
	case program.IsIn:
		return c.Row * out.elements
	case program.Individual:
		if len(n.In) == 1 {
			return c.Draw * out.elements
		}
		return c.Race * in.elements
	case program.Collective:
		return c.Race*in.rows + c.Column*in.elements
	case program.Draw, program.Cap:
		return c.Race * in.elements
	case program.Roots, program.Walk:
		return c.Draw * out.elements
	case program.Dependent:
		return c.Race * in.elements
	case program.Filter, program.TopK, program.Merge, program.Labor, program.Level:
		return c.Column * (in.elements + out.elements)
	case program.Sum, program.Mean, program.Largest, program.Smallest, program.Count:
		return c.Column * in.elements
	case program.Random, program.Exp, program.Log:
		return (c.Exp + c.Map) * out.elements
	case program.Project, program.Multiply, program.Dot:
		return c.Map * max(in.elements, out.elements) * max(in.width, out.width, 1)
	}
	ns := c.Map * out.elements
	if n.Type.Kind == program.Matrix && n.Maps() && !n.Inline {
		ns += c.Store * out.elements
	}
	return ns
}
