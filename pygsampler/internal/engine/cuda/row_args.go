package cuda

import "github.com/pygsampler/pygsampler/gpu"

// RowsArgs mirrors RowsArgs in kernels/common/row_draw.cuh.
type RowsArgs struct {
	Indptr, Indices, EdgeIDs, Excluded           gpu.Address
	Map                                          gpu.Address
	NumRows, NumNodes, NumEdges, NumExcluded     uint64
	IndptrBits, EdgeIDBits, OutEdgeBits, Replace uint32
	Key0, Key1, Batch0, Batch1, Tag, _           uint32
}

// RowsArgs is the graph, the map under a tag of its own, and the random numbers of
// a flight's next launch.
func (h *Hops) RowsArgs(f *Flight) (RowsArgs, error) {
	c, g, w := &f.call, f.graph, f.space
	vertices := &SpaceOf[hopSpace](w).wide
	random := c.Random()
	tag, err := vertices.tag(w, g.Nodes, 32, f.stream)
	return RowsArgs{
		Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, Excluded: w.excluded.Address, Map: vertices.Address,
		NumRows: uint64(g.Rows), NumNodes: uint64(g.Nodes), NumEdges: uint64(g.Edges), NumExcluded: uint64(len(c.Exclude)),
		IndptrBits: uint32(g.IndptrBits), EdgeIDBits: g.StoredEdgeIDBits(), OutEdgeBits: uint32(g.SampleBits()),
		Replace: Word(h.Replace), Key0: random[0], Key1: random[1], Batch0: random[2], Batch1: random[3], Tag: tag,
	}, err
}
