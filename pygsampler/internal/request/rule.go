package request

// Rule says which edges a row contributes at a hop: how many, and whether it draws them. The degree
// of a row is the number of its edges that are not excluded. CUDA twin: gives_all in
// kernels/common/choose.cuh.
type Rule struct {
	Fanout  int64 // -1: all
	Replace bool
}

// Rule returns the rule of a hop; hop 0 is next to the seeds.
func (h *Hops) Rule(hop int) Rule { return Rule{h.Fanouts[len(h.Fanouts)-1-hop], h.Replace} }

// TakesAll reports whether a row contributes all its edges, in CSC order, without a draw.
func (r Rule) TakesAll(degree int64) bool {
	return r.Fanout < 0 || degree == 0 || !r.Replace && degree <= r.Fanout
}

// Take returns the number of edges that a row contributes.
func (r Rule) Take(degree int64) int64 {
	if r.TakesAll(degree) {
		return degree
	}
	return r.Fanout
}

// Factor returns the factor of a row's uniformly sampled edges for which sums over them are
// unbiased estimates of sums over all its edges: one over the chance of each to be drawn, or with
// replacement over the expected number of its draws.
func (r Rule) Factor(degree int64) float32 {
	if r.TakesAll(degree) {
		return 1
	}
	return float32(float64(degree) / float64(r.Fanout))
}

// Mean returns the approximate number of edges per row for a mean degree.
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

// Most returns the maximal number of edges of a row of any degree; bounded is false if there is
// none.
func (r Rule) Most() (edges int64, bounded bool) { return r.Fanout, r.Fanout >= 0 }

// Expect estimates the size of a batch of seeds seeds, if rows have the mean degree and all sampled
// nodes differ, with the whole graph at each hop at most. It passes the rows and the edges of each
// hop, from the seeds on, to hop, and returns the number of nodes of all hops.
func (h *Hops) Expect(seeds, nodes int64, degree float64, hop func(rows, edges float64)) (vertices float64) {
	vertices = float64(seeds)
	for i := range h.Fanouts {
		edges := vertices * h.Rule(i).Mean(degree)
		hop(vertices, edges)
		vertices = min(vertices+edges, float64(max(nodes, 1)))
	}
	return vertices
}
