package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// InducedEdges returns a memory with the edges between nodes of the same tree, as core.InducedEdges
// does.
func InducedEdges(graph, vertices, trees, count, vertexBits, treeBits int64) (mem int64, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	return core.InducedEdges(g, vertices, trees, count, int(vertexBits), int(treeBits))
}
