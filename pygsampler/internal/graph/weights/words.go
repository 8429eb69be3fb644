package weights

// The constants here are Python's, too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Words at the beginning of what rows draw by. Offsets are in bytes, 0 where there is no
// such array: one that has no weights, or one of a graph that keeps all its edges, whose
// CSC then is that of the graph.
const (
	TablesNumRows = iota
	TablesNumEdges
	TablesIDBits
	TablesEdgeIDBits
	TablesIndptr
	TablesIndices
	TablesEdgeIDs
	TablesAlias
	TablesSums
	TablesWords
)
