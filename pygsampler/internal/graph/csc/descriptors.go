package csc

import "github.com/pygsampler/pygsampler/pygsampler/internal/batch/descriptor"

// COORows describes the arrays of a CSC that was built from a list of edges.
var COORows = []descriptor.Descriptor{
	{Name: "indptr", DType: "int64", Length: COONumNodes, More: 1, Offset: COOIndptr},
	{Name: "indices", Bits: COOBits, Length: COONumEdges, Offset: COOIndices},
	{Name: "edge_ids", Bits: COOEdgeIDBits, Length: COONumEdges, Offset: COOEdgeIDs},
}

// TransposedRows describes the arrays of a transposed graph.
var TransposedRows = []descriptor.Descriptor{
	{Name: "indptr", DType: "int64", Length: TransposedNumRows, More: 1, Offset: TransposedIndptr},
	{Name: "indices", Bits: TransposedIDBits, Length: TransposedNumEdges, Offset: TransposedIndices},
	{Name: "edge_ids", Bits: TransposedEdgeIDBits, Length: TransposedNumEdges, Offset: TransposedEdgeIDs},
}

// JoinedRows describes the arrays of a homogeneous graph that was built from a heterogeneous graph.
var JoinedRows = []descriptor.Descriptor{
	{Name: "indptr", DType: "int64", Length: JoinedNumNodes, More: 1, Offset: JoinedIndptr},
	{Name: "indices", DType: "int64", Length: JoinedNumEdges, Offset: JoinedIndices},
	{Name: "edge_ids", DType: "int64", Length: JoinedNumEdges, Offset: JoinedEdgeIDs},
	{Name: "edge_types", DType: "int32", Length: JoinedNumIDs, Offset: JoinedEdgeTypes},
	{Name: "edge_own", DType: "int64", Length: JoinedNumIDs, Offset: JoinedEdgeOwn},
	{Name: "node_types", DType: "int32", Length: JoinedNumNodes, Offset: JoinedNodeTypes},
	{Name: "node_own", DType: "int64", Length: JoinedNumNodes, Offset: JoinedNodeOwn},
}
