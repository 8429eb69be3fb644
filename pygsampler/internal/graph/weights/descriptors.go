package weights

import "github.com/pygsampler/pygsampler/pygsampler/internal/batch/descriptor"

// Rows describes the arrays that rows draw by.
var Rows = []descriptor.Descriptor{
	{Name: "indptr", DType: "int64", Length: TablesNumRows, More: 1, Offset: TablesIndptr},
	{Name: "indices", Bits: TablesIDBits, Length: TablesNumEdges, Offset: TablesIndices},
	{Name: "edge_ids", Bits: TablesEdgeIDBits, Length: TablesNumEdges, Offset: TablesEdgeIDs},
	{Name: "alias", DType: "int64", Length: TablesNumEdges, Offset: TablesAlias},
	{Name: "sums", DType: "int64", Length: TablesNumEdges, Offset: TablesSums},
}
