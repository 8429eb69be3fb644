package csc

import "github.com/pygsampler/pygsampler/pygsampler/internal/table"

// COORows are the arrays of a CSC that was made of a list of edges.
var COORows = []table.Row{
	{Name: "indptr", DType: "int64", Length: COONumNodes, More: 1, Offset: COOIndptr},
	{Name: "indices", Bits: COOBits, Length: COONumEdges, Offset: COOIndices},
	{Name: "edge_ids", Bits: COOEdgeIDBits, Length: COONumEdges, Offset: COOEdgeIDs},
}
