package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// PageRankStart begins to find the vertices around each of the roots at an address by
// personalised PageRank, as core.StartPageRank says.
func PageRankStart(graph, roots, count, bits, most, alpha, epsilon, threshold int64) (job int64, err error) {
	defer finish(&err)
	g, err := graphOf(graph)
	if err != nil {
		return 0, err
	}
	j, err := core.StartPageRank(g, roots, count, int(bits), most, alpha, epsilon, threshold)
	if err != nil {
		return 0, err
	}
	return derivedJobs.add(j), nil
}
