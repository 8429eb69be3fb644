package csc

// The constants here are Python's, too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Words at the beginning of a CSC that was made of a list of edges. Offsets are in bytes.
const (
	COONumNodes = iota
	COONumEdges
	COOBits // of vertices
	COOEdgeIDBits
	COOIndptr
	COOIndices
	COOEdgeIDs
	COOWords
)
