package csc

// The constants here are Python's, too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Words at the beginning of a CSC that was built from a list of edges. Offsets are in bytes.
const (
	COONumNodes = iota
	COONumEdges
	COOBits // of nodes
	COOEdgeIDBits
	COOIndptr
	COOIndices
	COOEdgeIDs
	COOWords
)

// Words at the beginning of a transposed graph. Offsets are in bytes; the offset of edge ids is 0
// if they were left out.
const (
	TransposedNumRows = iota // of nodes, times types
	TransposedNumEdges
	TransposedIDBits
	TransposedEdgeIDBits
	TransposedIndptr
	TransposedIndices
	TransposedEdgeIDs
	TransposedKinds // how many types its rows are split by; 0: they are not
	TransposedWords
)

// Words at the beginning of a heterogeneous graph whose types were joined. Offsets are in bytes.
const (
	JoinedNumNodes = iota
	JoinedNumEdges
	JoinedNumIDs // of edges
	JoinedIndptr
	JoinedIndices
	JoinedEdgeIDs
	JoinedEdgeTypes
	JoinedEdgeOwn // ids within the type
	JoinedNodeTypes
	JoinedNodeOwn
	JoinedWords
)
