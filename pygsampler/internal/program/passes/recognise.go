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

// Poisson is the hops that a program is whose edges stay by their destinations' chances, or nil: hop by hop a slice, those of
// its edges whose source has a number that is at most min(1, K / degree), and all vertices so far,
//
//	S0 = seeds; Ci = A[:, Si]; p = min(Ki / |Ci|, 1); Fi = Ci where r <= p; Bi = Fi, or values v; Si+1 = Si | Bi.row()
//
// r being a number of all vertices, alike in all hops or not, and v 1/p, or x |x| / sum(x) along columns with x = 1/p. Legal,
// since the kernel of such hops does these steps; on the CPU the executor does.
func Poisson(p *program.Program) *program.Poisson {
	last := len(p.Matrices) - 1
	if p.Result != program.Blocks || len(p.Extras) > 0 || p.Weight != "" || len(p.Matrices) > rng.MaxHops {
		return nil
	}
	found := new(program.Poisson)
	frontier := -1
	for hop := range p.Matrices {
		b := p.Matrices[last-hop]
		h, is := poissonHop(p, b)
		if p.Bare[last-hop] {
			h.values = program.NoValues
		}
		if !is || hop > 0 && h.values != found.Values {
			return nil
		}
		if hop == 0 && p.Nodes[h.list].Op != program.Seeds || hop > 0 && !grown(p, h.list, frontier, p.Nodes[p.Matrices[last-hop+1]].Type.Edges) {
			return nil
		}
		frontier, found.Values = h.list, h.values
		found.K, found.Sites = append(found.K, h.k), append(found.Sites, h.site)
	}
	return found
}

// poissonOf is a hop of Poisson.
type poissonOf struct {
	k          int64
	site, list int
	values     program.PoissonValues
}

// poissonHop is what a block of Poisson is, or false.
func poissonHop(p *program.Program, block int) (h poissonOf, is bool) {
	filter := p.Nodes[block].Type.Edges
	f := &p.Nodes[filter]
	if f.Op != program.Filter {
		return h, false
	}
	slice := f.In[0]
	test := &p.Nodes[f.In[1]]
	if p.Nodes[slice].Op != program.Slice || test.Op != program.LessEqual {
		return h, false
	}
	number, chance := spreadOf(p, test.In[0], slice, 1), spreadOf(p, test.In[1], slice, 0)
	if number < 0 || chance < 0 {
		return h, false
	}
	r := &p.Nodes[number]
	if r.Op != program.Random || len(r.In) > 0 || r.Batches > 1 {
		return h, false
	}
	h.site, h.list = r.Site, p.Nodes[slice].In[0]
	if h.k, is = chanceOf(p, chance, slice); !is {
		return h, false
	}
	h.values, is = valuesOf(p, block, filter, chance)
	return h, is
}

// spreadOf is the vector whose values the edges of a matrix have along an axis, or -1.
func spreadOf(p *program.Program, node, edges, axis int) int {
	n := &p.Nodes[node]
	if n.Op != program.Spread || n.Axis != axis || n.In[0] != edges {
		return -1
	}
	return n.In[1]
}

func isConst(p *program.Program, node int, value float64) bool {
	return p.Nodes[node].Op == program.Const && p.Nodes[node].Value == value
}

// chanceOf is K of min(K / |C|, 1), and -1 of min(|C|, 1).
func chanceOf(p *program.Program, node, slice int) (k int64, is bool) {
	counts := func(node int) bool {
		n := &p.Nodes[node]
		return n.Op == program.Count && n.Axis == 0 && n.In[0] == slice
	}
	n := &p.Nodes[node]
	if n.Op != program.Min || !isConst(p, n.In[1], 1) {
		return 0, false
	}
	if counts(n.In[0]) {
		return -1, true
	}
	ratio := &p.Nodes[n.In[0]]
	if ratio.Op != program.Div || p.Nodes[ratio.In[0]].Op != program.Const || !counts(ratio.In[1]) {
		return 0, false
	}
	value := p.Nodes[ratio.In[0]].Value
	return int64(value), value >= 0 && value <= request.MaxFanout && value == float64(int64(value))
}

// valuesOf is what the values of a block are: its filter's, which are ones, or made of a chance.
func valuesOf(p *program.Program, block, filter, chance int) (program.PoissonValues, bool) {
	if block == filter {
		return program.NoValues, true
	}
	inverse := func(node int) bool {
		v := spreadOf(p, node, filter, 0)
		return v >= 0 && p.Nodes[v].Op == program.Div && isConst(p, p.Nodes[v].In[0], 1) && p.Nodes[v].In[1] == chance
	}
	if inverse(block) {
		return program.OfChances, true
	}
	scaled := &p.Nodes[block]
	if scaled.Op != program.Mul || scaled.Axis != 0 || !inverse(scaled.In[0]) {
		return 0, false
	}
	ratio := &p.Nodes[scaled.In[1]]
	if ratio.Op != program.Div {
		return 0, false
	}
	count, sum := &p.Nodes[ratio.In[0]], &p.Nodes[ratio.In[1]]
	of := func(n *program.Node, op program.Op) bool {
		return n.Op == op && n.Axis == 0 && p.Nodes[n.In[0]].Type.Edges == filter
	}
	return program.OfMeans, of(count, program.Count) && of(sum, program.Sum) && sum.In[0] == scaled.In[0]
}
