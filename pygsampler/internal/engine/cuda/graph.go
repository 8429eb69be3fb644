package cuda

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// Arrays is a borrowed CSC in memory that the device reads: its own, or page-locked host memory.
type Arrays struct {
	Indptr, Indices, EdgeIDs       gpu.Address // EdgeIDs 0: an edge's id is its position
	IndptrBits, IDBits, EdgeIDBits int
	Rows, Nodes, Edges             int64
	Alias, Sums                    gpu.Address // what rows draw by, as csc.Graph has it; 0: uniformly
	Kinds                          int64       // how many types of edges rows are split by, as csc.Relation has it
	Shared                         bool        // several devices share the arrays of edges, so that none is to have copies
}

// Graph is a CSC that an engine samples, with the sizes that its batches have needed so far.
type Graph struct {
	Arrays
	Back    *Graph       // the transposed graph, as csc.Graph has it; nil: none
	packing packing      // what walks read
	named   named        // what programs read
	made    derivedCache // and data that is derived from it once
	alone   *Graph       // the same as a heterogeneous one; nil: nobody asked
	// The schema and the relations of a heterogeneous graph, which has no arrays of its own; nil
	// for a homogeneous graph.
	schema    *csc.Schema
	relations []*Graph

	engine *Engine

	mu       sync.Mutex
	needs    map[shape]Needs       // of the batches so far
	programs map[string]*programOn // whose batches have been launched, by their texts
}

// NewGraph returns a graph over the arrays, which it trusts; Validate checks them.
func (e *Engine) NewGraph(a Arrays) *Graph {
	return &Graph{Arrays: a, engine: e, needs: make(map[shape]Needs), programs: make(map[string]*programOn)}
}

// SampleBits is the width of the edge ids of a sample.
func (g *Graph) SampleBits() int { return csc.EdgeIDBits(int(g.StoredEdgeIDBits()), g.IDBits, g.Edges) }

// Widths returns the widths of the arrays of a batch.
func (g *Graph) Widths() batch.Widths {
	return batch.Widths{ID: int64(g.IDBits / 8), EdgeID: int64(g.SampleBits() / 8)}
}

// StoredEdgeIDBits is the width of the graph's own edge ids, 0 without.
func (g *Graph) StoredEdgeIDBits() uint32 {
	if g.EdgeIDs == 0 {
		return 0
	}
	return uint32(g.EdgeIDBits)
}

// Wide is 1 where ids are int64, else 0.
func (g *Graph) Wide() int { return g.IDBits/32 - 1 }

// Upload copies a graph to the device, with its named arrays and its transposed graph; free
// releases the copies.
func (e *Engine) Upload(g *csc.Relation) (d *Graph, free func() error, err error) {
	if g.Back != nil {
		back, freeBack, err := e.Upload(g.Back)
		if err != nil {
			return nil, nil, err
		}
		plain := &csc.Relation{
			Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, NumNodes: g.NumNodes,
			Alias: g.Alias, Sums: g.Sums, Kinds: g.Kinds, EdgeData: g.EdgeData, VertexData: g.VertexData,
		}
		d, free, err := e.Upload(plain)
		if err != nil {
			return nil, nil, errors.Join(err, freeBack())
		}
		d.Back = back
		return d, func() error { return errors.Join(free(), freeBack()) }, nil
	}
	var held []gpu.Memory
	stream, err := e.context.NewStream()
	if err != nil {
		return nil, nil, err
	}
	free = func() error {
		var errs []error
		for i := range held {
			errs = append(errs, held[i].Free(stream))
		}
		return errors.Join(append(errs, stream.Synchronize(), stream.Close())...)
	}
	a := Arrays{
		IndptrBits: g.Indptr.Bits, IDBits: g.Indices.Bits, EdgeIDBits: g.EdgeIDs.Bits,
		Rows: g.NumRows(), Nodes: g.NumNodes, Edges: g.NumEdges(), Kinds: g.Kinds,
	}
	edges := uint64(g.NumEdges())
	for _, part := range []struct {
		to    *gpu.Address
		from  unsafe.Pointer
		bytes uint64
	}{
		{&a.Indptr, g.Indptr.Pointer(), uint64(g.Indptr.Len()) * uint64(g.Indptr.Bits/8)},
		{&a.Indices, g.Indices.Pointer(), edges * uint64(g.Indices.Bits/8)},
		{&a.EdgeIDs, g.EdgeIDs.Pointer(), edges * uint64(g.EdgeIDs.Bits/8)},
		{&a.Alias, unsafe.Pointer(unsafe.SliceData(g.Alias)), uint64(len(g.Alias)) * 8},
		{&a.Sums, unsafe.Pointer(unsafe.SliceData(g.Sums)), uint64(len(g.Sums)) * 8},
	} {
		m, err := e.pool.Alloc(stream, part.bytes)
		if err == nil {
			held = append(held, m)
			*part.to = m.Address
			err = stream.Upload(m.Address, part.from, part.bytes)
		}
		if err != nil {
			return nil, nil, errors.Join(err, free())
		}
	}
	d = e.NewGraph(a)
	if err := d.Bring(g.EdgeData, g.VertexData); err != nil {
		return nil, nil, errors.Join(err, free())
	}
	arrays := free
	free = func() error { return errors.Join(d.named.free(e.stream), d.made.free(e.stream), arrays()) }
	return d, free, stream.Synchronize()
}
