package pygsampler

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/pagerank"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// StartPageRank begins to find the vertices around each of some roots by personalised
// PageRank, as pagerank.Scores says; of numbers the bits are given. The roots must stay
// until the job has ended.
func StartPageRank(g *Graph, roots, count int64, rootBits int, most, alpha, epsilon, threshold int64) (*DeriveJob, error) {
	if rootBits != 32 && rootBits != 64 || count < 0 {
		return nil, Errorf(KindType, "roots: expected at least 0 of 32 or 64 bits, got %d of %d", count, rootBits)
	}
	if err := aligned(int64(rootBits/8), "roots", roots); err != nil {
		return nil, err
	}
	return derive(g, &pagerank.Scores{
		Graph: &g.csc, Roots: csc.Borrow(roots, count, rootBits), Most: most,
		Alpha: math.Float64frombits(uint64(alpha)), Epsilon: math.Float64frombits(uint64(epsilon)),
		Threshold: math.Float64frombits(uint64(threshold)),
	})
}
