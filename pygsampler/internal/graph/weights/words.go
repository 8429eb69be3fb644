package weights

// The constants here are Python's, too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Words at the beginning of the tables that rows draw by. Offsets are in bytes, 0 if there is no
// such array: for a mask, or for a graph without removed edges, whose CSC then is that of the
// graph.
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
