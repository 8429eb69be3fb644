package request

// Rule says which edges a row gives at a hop: how many, and whether it draws them.
// Its degree are the edges that are not excluded. CUDA twin: gives_all in
// kernels/common/choose.cuh.
type Rule struct {
	Fanout  int64 // -1: all
	Replace bool
}

// Rule is that of a hop, of which 0 is next to the seeds.
func (h *Hops) Rule(hop int) Rule { return Rule{h.Fanouts[len(h.Fanouts)-1-hop], h.Replace} }

// TakesAll says that a row gives all its edges, in CSC order, without a draw.
func (r Rule) TakesAll(degree int64) bool {
	return r.Fanout < 0 || degree == 0 || !r.Replace && degree <= r.Fanout
}

// Take is how many edges a row gives.
func (r Rule) Take(degree int64) int64 {
	if r.TakesAll(degree) {
		return degree
	}
	return r.Fanout
}

// Factor is by what a row's sampled edges, drawn uniformly, are to be multiplied so that
// sums over them are those over all its edges in the mean: one over the chance of each to
// be drawn, or with replacement over how often it is.
func (r Rule) Factor(degree int64) float32 {
	if r.TakesAll(degree) {
		return 1
	}
	return float32(float64(degree) / float64(r.Fanout))
}

// Mean is about how many edges each row gives where that is their mean degree.
func (r Rule) Mean(degree float64) float64 {
	switch fanout := float64(r.Fanout); {
	case r.Fanout < 0 || degree == 0:
		return degree
	case r.Replace:
		return fanout
	default:
		return min(degree, fanout)
	}
}

// Most is the most edges that a row gives, whatever its degree; false: nothing bounds them.
func (r Rule) Most() (edges int64, bounded bool) { return r.Fanout, r.Fanout >= 0 }

// Expect guesses about how large a batch of so many seeds is if rows have that mean
// degree and no two vertices meet, the whole graph at each hop at most. It tells the
// rows and the edges of each hop, from the seeds on, and returns the vertices of all.
func (h *Hops) Expect(seeds, nodes int64, degree float64, hop func(rows, edges float64)) (vertices float64) {
	vertices = float64(seeds)
	for i := range h.Fanouts {
		edges := vertices * h.Rule(i).Mean(degree)
		hop(vertices, edges)
		vertices = min(vertices+edges, float64(max(nodes, 1)))
	}
	return vertices
}
