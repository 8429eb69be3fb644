package passes

import (
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Neighbors is the neighbour sampling that a program is, or false: hop by hop a slice, a
// uniform draw of its columns, and all vertices so far,
//
//	S0 = seeds; Bi = A[:, Si].individual_sample(Ki); Si+1 = Si | Bi.row()
//
// with site i for hop i. Legal, since a program's draws are then PGSampler's, by
// docs/operators.md. Blocks have no values then, as a program has none without weight.
func Neighbors(p *program.Program) (hops request.Hops, is bool) {
	last := len(p.Matrices) - 1
	if p.Result != program.Blocks || len(p.Extras) > 0 || p.Weight != "" || len(p.Matrices) > rng.MaxHops {
		return hops, false
	}
	frontier := -1 // the list that the hop before has been drawn for
	for hop := range p.Matrices {
		b := p.Matrices[last-hop]
		draw := &p.Nodes[b]
		if draw.Op != program.Individual || len(draw.In) != 1 || draw.Site != hop || draw.K > request.MaxFanout {
			return hops, false
		}
		slice := &p.Nodes[draw.In[0]]
		if slice.Op != program.Slice || hop > 0 && draw.Replace != hops.Replace {
			return hops, false
		}
		list := slice.In[0]
		if hop == 0 && p.Nodes[list].Op != program.Seeds || hop > 0 && !grown(p, list, frontier, p.Matrices[last-hop+1]) {
			return hops, false
		}
		frontier, hops.Replace = list, draw.Replace
		hops.Fanouts = append(hops.Fanouts, draw.K)
	}
	slices.Reverse(hops.Fanouts)
	return hops, true
}

// grown says that a list is the one before, its vertices distinct, and the rows of a block.
func grown(p *program.Program, list, before, block int) bool {
	n := &p.Nodes[list]
	if n.Op != program.Union {
		return false
	}
	first, rows := n.In[0], &p.Nodes[n.In[1]]
	if column := &p.Nodes[first]; column.Op == program.Column {
		// Of the block, or of the slice that it was drawn of.
		edges := p.Nodes[column.In[0]].Type.Edges
		if edges != block && edges != p.Parent(block) {
			return false
		}
	} else if first != before {
		return false
	}
	return rows.Op == program.Row && p.Nodes[rows.In[0]].Type.Edges == block
}
