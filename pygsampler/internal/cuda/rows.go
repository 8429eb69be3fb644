package cuda

import "github.com/pygsampler/pygsampler/gpu"

// rowsArgs mirrors RowsArgs in kernels/rows.cuh.
type rowsArgs struct {
	Indptr, Indices, EdgeIDs, Excluded           gpu.Address
	Map                                          gpu.Address
	NumRows, NumNodes, NumEdges, NumExcluded     uint64
	IndptrBits, EdgeIDBits, OutEdgeBits, Replace uint32
	Key0, Key1, Batch0, Batch1, Tag, _           uint32
}

// rowsDirect is ROWS_DIRECT of rows.cuh.
const rowsDirect = 32

// rowsArgs is the graph, the map under a tag of its own, and the random numbers of
// a flight's next launch.
func (f *Flight) rowsArgs() rowsArgs {
	c, g, w := &f.call, f.graph, f.space
	r := &c.Request
	args := rowsArgs{
		Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, Excluded: w.excluded.Address, Map: w.vertices.Address,
		NumRows: uint64(g.Rows), NumNodes: uint64(g.Nodes), NumEdges: uint64(g.Edges), NumExcluded: uint64(len(c.Exclude)),
		IndptrBits: uint32(g.IndptrBits), OutEdgeBits: uint32(g.sampleBits()),
		Key0: uint32(r.Seed), Key1: uint32(r.Seed >> 32),
		Batch0: uint32(r.Batch), Batch1: uint32(r.Batch>>32)&0xFF | r.Epoch<<8, Tag: w.tag(),
	}
	if g.EdgeIDs != 0 {
		args.EdgeIDBits = uint32(g.EdgeIDBits)
	}
	if r.Replace {
		args.Replace = 1
	}
	return args
}
