package batch

import "github.com/pygsampler/pygsampler/pygsampler/internal/batch/descriptor"

// Rows describes the arrays of a homogeneous graph's batch by words of the header.
var Rows = []descriptor.Descriptor{
	{Name: "input_nodes", Bits: WordIDBits, Length: WordNumNodes, Offset: WordNodes},
	{Name: "output_nodes", Bits: WordIDBits, Length: WordNumOutput, Offset: WordOutputNodes},
	{Name: "output_index", Bits: WordIDBits, Length: WordNumOutput, Offset: WordOutputIndex},
	{Name: "subgraph_ids", Bits: WordIDBits, Length: WordNumNodes, Offset: WordSubgraphIDs},
}

// WalkRows describes the arrays of walks.
var WalkRows = []descriptor.Descriptor{
	{Name: "nodes", Bits: WordIDBits, Length: WalkNumNodes, Offset: WalkNodes},
	{Name: "edge_ids", Bits: WalkEdgeIDBits, Length: WalkNumEdges, Offset: WalkEdgeIDs},
	{Name: "lengths", DType: "int32", Length: WalkNumWalks, Offset: WalkLengths},
	{Name: "top_nodes", Bits: WordIDBits, Length: WalkNumTop, Offset: WalkTopNodes},
	{Name: "visits", DType: "int32", Length: WalkNumTop, Offset: WalkVisits},
	{Name: "slots", DType: "int32", Length: WalkNumEdges, Offset: WalkSlots},
}

// ContextRows describes the arrays of contexts.
var ContextRows = []descriptor.Descriptor{
	{Name: "nodes", DType: "int64", Length: ContextNumPlaces, Offset: ContextNodes},
	{Name: "types", DType: "int32", Length: ContextNumPlaces, Offset: ContextTypes},
	{Name: "hops", DType: "int32", Length: ContextNumPlaces, Offset: ContextHops},
	{Name: "parents", DType: "int32", Length: ContextNumPlaces, Offset: ContextParents},
	{Name: "mask", DType: "bool", Length: ContextNumPlaces, Offset: ContextMask},
	{Name: "cells", DType: "int32", Length: ContextNumPlaces, Offset: ContextCells},
	{Name: "lengths", DType: "int32", Length: ContextNumSeeds, Offset: ContextLengths},
}

// StepRows describes the arrays of samples by steps.
var StepRows = []descriptor.Descriptor{
	{Name: "nodes", Bits: WordIDBits, Length: StepNumNodes, Offset: StepNodes},
	{Name: "edge_ids", Bits: StepEdgeIDBits, Length: StepNumEdges, Offset: StepEdgeIDs},
}

// TypeRows describes the arrays of a node type: their lengths and offsets are words of the type.
var TypeRows = []descriptor.Descriptor{
	{Name: "input_nodes", Bits: WordIDBits, Length: TypeNumNodes, Offset: TypeNodes},
	{Name: "output_nodes", Bits: WordIDBits, Length: TypeNumOutput, Offset: TypeOutputNodes},
	{Name: "output_index", Bits: WordIDBits, Length: TypeNumOutput, Offset: TypeOutputIndex},
	{Name: "subgraph_ids", Bits: WordIDBits, Length: TypeNumNodes, Offset: TypeSubgraphIDs},
}

// BlockRows describes the arrays of a block: their lengths and offsets are words of the block.
var BlockRows = []descriptor.Descriptor{
	{Name: "indptr", Bits: WidthIDs, Length: BlockNumDst, More: 1, Offset: BlockIndptr},
	{Name: "indices", Bits: WidthIDs, Length: BlockNumEdges, Offset: BlockIndices},
	{Name: "edge_ids", Bits: WidthEdgeIDs, Length: BlockNumEdges, Offset: BlockEdgeIDs},
	{Name: "edge_weights", DType: "float32", Length: BlockNumEdges, Offset: BlockEdgeWeights},
}
