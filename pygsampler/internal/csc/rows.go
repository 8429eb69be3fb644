package csc

import "github.com/pygsampler/pygsampler/pygsampler/internal/table"

// COORows are the arrays of a CSC that was made of a list of edges.
var COORows = []table.Row{
	{Name: "indptr", DType: "int64", Length: COONumNodes, More: 1, Offset: COOIndptr},
	{Name: "indices", Bits: COOBits, Length: COONumEdges, Offset: COOIndices},
	{Name: "edge_ids", Bits: COOEdgeIDBits, Length: COONumEdges, Offset: COOEdgeIDs},
}

// TransposedRows are the arrays of a transposed graph.
var TransposedRows = []table.Row{
	{Name: "indptr", DType: "int64", Length: TransposedNumRows, More: 1, Offset: TransposedIndptr},
	{Name: "indices", Bits: TransposedIDBits, Length: TransposedNumEdges, Offset: TransposedIndices},
	{Name: "edge_ids", Bits: TransposedEdgeIDBits, Length: TransposedNumEdges, Offset: TransposedEdgeIDs},
}
