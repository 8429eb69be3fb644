package times

import "github.com/pygsampler/pygsampler/pygsampler/internal/batch/descriptor"

// TableRows describes the arrays of rows in the order of time.
var TableRows = []descriptor.Descriptor{
	{Name: "indices", Bits: TimesIDBits, Length: TimesNumEdges, Offset: TimesIndices},
	{Name: "edge_ids", Bits: TimesEdgeIDBits, Length: TimesNumEdges, Offset: TimesEdgeIDs},
}
