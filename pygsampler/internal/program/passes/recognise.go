package passes

import (
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Neighbors returns the neighbor sampling that a program is equal to, or false: hop by hop a slice,
// a uniform draw of its columns, and all nodes so far,
//
//	S0 = seeds; Bi = A[:, Si].individual_sample(Ki); Si+1 = Si | Bi.row()
//
// with site i for hop i. This is legal, since a program's draws are then PGSampler's, by
// docs/developer/operator-rules.md. Blocks then have no values, like in a program without weights.
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

// grown reports whether a list consists of the previous list, with distinct nodes, and the rows of
// a block.
func grown(p *program.Program, list, before, block int) bool {
	n := &p.Nodes[list]
	if n.Op != program.Union {
		return false
	}
	first, rows := n.In[0], &p.Nodes[n.In[1]]
	if column := &p.Nodes[first]; column.Op == program.Column {
		// The column has to be of the block, or of the slice that it was drawn from.
		edges := p.Nodes[column.In[0]].Type.Edges
		if edges != block && edges != p.Parent(block) {
			return false
		}
	} else if first != before {
		return false
	}
	return rows.Op == program.Row && p.Nodes[rows.In[0]].Type.Edges == block
}

// Poisson returns the hops of Poisson sampling that a program is equal to, or nil: hop by hop a
// slice, those of its edges whose source has a number that is at most the chance, and all nodes so
// far,
//
//	S0 = seeds; Ci = A[:, Si]; Fi = Ci where r <= p; Bi = Fi, or values v; Si+1 = Si | Bi.row()
//
// with r a number of all graph nodes, the same in all hops or not, p the chance of the column,
// min(Ki / |Ci|, 1), or the chance of LABOR-i, min(c pi, 1), which chancesOf recognizes, and v 1/p,
// or x |x| / sum(x) along columns with x = 1/p. This is legal, since the kernel of such hops
// executes these steps; on the CPU the executor does.
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
		if !is || hop > 0 && (h.values != found.Values || h.rounds != found.Rounds) {
			return nil
		}
		if hop == 0 && p.Nodes[h.list].Op != program.Seeds || hop > 0 && !grown(p, h.list, frontier, p.Nodes[p.Matrices[last-hop+1]].Type.Edges) {
			return nil
		}
		frontier, found.Values, found.Rounds = h.list, h.values, h.rounds
		found.K, found.Sites = append(found.K, h.k), append(found.Sites, h.site)
	}
	return found
}

// poissonOf is a hop of Poisson.
type poissonOf struct {
	k          int64
	site, list int
	rounds     int
	values     program.PoissonValues
}

// poissonHop returns the hop of Poisson sampling that a block is equal to, or false.
func poissonHop(p *program.Program, block int) (h poissonOf, is bool) {
	filter := p.Nodes[block].Type.Edges
	f := &p.Nodes[filter]
	if f.Op != program.Filter {
		return h, false
	}
	slice := p.Nodes[f.In[0]].Type.Edges
	test := &p.Nodes[f.In[1]]
	if p.Nodes[slice].Op != program.Slice || test.Op != program.LessEqual {
		return h, false
	}
	number := spreadOf(p, test.In[0], slice, 1)
	if number < 0 {
		return h, false
	}
	r := &p.Nodes[number]
	if r.Op != program.Random || len(r.In) > 0 || r.Batches > 1 {
		return h, false
	}
	h.site, h.list = r.Site, p.Nodes[slice].In[0]
	chance := spreadOf(p, test.In[1], slice, 0)
	if chance >= 0 {
		if h.k, is = chanceOf(p, chance, slice); is {
			h.values, is = valuesOf(p, block, filter, func(node int) bool {
				v := spreadOf(p, node, filter, 0)
				return v >= 0 && isOver(p, v, func(one int) bool { return isConst(p, one, 1) }, chance)
			})
		}
		return h, is
	}
	// The values of the slice are ones, and the filter applies to those over the chances.
	chance = test.In[1]
	h.k, h.rounds, is = chancesOf(p, chance, slice)
	if is {
		h.values, is = valuesOf(p, block, filter, func(node int) bool {
			return node == filter && isOver(p, f.In[0], func(of int) bool { return of == slice }, chance)
		})
	}
	return h, is
}

// isOver reports whether a node is the quotient of two nodes.
func isOver(p *program.Program, node int, is func(int) bool, by int) bool {
	n := &p.Nodes[node]
	return n.Op == program.Div && is(n.In[0]) && n.In[1] == by
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

// laborLarge is the maximal factor of LABOR.
const laborLarge = 0x1p1000

// chancesOf is K and the rounds of LABOR-i whose chances the edges of a slice of ones have: min(q c, 1), c = labor(ones, q), and q
// of round j the number of an edge's row,
//
//	pi0 = largest(labor(ones, ones)), pij = pij-1 largest(labor(ones, pij-1)), along rows
//
// factors and pi being min(x, 2^1000).
func chancesOf(p *program.Program, node, slice int) (k int64, rounds int, is bool) {
	capped := func(node int) int {
		if n := &p.Nodes[max(node, 0)]; node >= 0 && n.Op == program.Min && isConst(p, n.In[1], laborLarge) {
			return n.In[0]
		}
		return -1
	}
	// K of factors, and the ratios that they are of; -1: these are none.
	factors := func(node int) (k int64, ratios int) {
		if node = capped(node); node < 0 {
			return 0, -1
		}
		if n := &p.Nodes[node]; n.Op == program.Labor && n.In[0] == slice && n.K >= 0 {
			return n.K, n.In[1]
		}
		return 0, -1
	}
	// largest along rows; -1: there is none.
	largest := func(node int) int {
		if n := &p.Nodes[node]; n.Op == program.Largest && n.Axis == 1 {
			return n.In[0]
		}
		return -1
	}
	// True for values of edges times the factors of their columns.
	scaled := func(node, values int) (factors int, is bool) {
		n := &p.Nodes[node]
		if n.Op != program.Mul || n.Axis != 0 || n.In[0] != values {
			return 0, false
		}
		return n.In[1], true
	}
	last := &p.Nodes[node]
	if last.Op != program.Min || !isConst(p, last.In[1], 1) {
		return 0, 0, false
	}
	ratios := p.Nodes[last.In[0]].In[0]
	factor, is := scaled(last.In[0], ratios)
	if !is {
		return 0, 0, false
	}
	k, of := factors(factor)
	if of != ratios || k > request.MaxFanout {
		return 0, 0, false
	}
	for rounds = 1; ; rounds++ {
		pi := capped(spreadOf(p, ratios, slice, 1))
		if pi < 0 {
			return 0, 0, false
		}
		if n := &p.Nodes[pi]; n.Op == program.Mul {
			// The sums of the round before, and its largest factors.
			spread := largest(n.In[1])
			if spread < 0 {
				return 0, 0, false
			}
			own, of := factors(spreadOf(p, spread, slice, 0))
			if of < 0 || own != k || spreadOf(p, of, slice, 1) != n.In[0] {
				return 0, 0, false
			}
			ratios = of
			continue
		}
		first := largest(pi)
		if first < 0 {
			return 0, 0, false
		}
		if factor, is = scaled(first, slice); !is {
			return 0, 0, false
		}
		own, of := factors(factor)
		return k, rounds, of == slice && own == k
	}
}

// valuesOf returns the kind of the values of a block: those of its filter, which are ones, or
// values computed from one over chances.
func valuesOf(p *program.Program, block, filter int, inverse func(node int) bool) (program.PoissonValues, bool) {
	switch {
	case inverse(block):
		return program.OfChances, true
	case block == filter:
		return program.NoValues, p.Nodes[filter].In[0] == p.Nodes[p.Nodes[filter].In[0]].Type.Edges
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
