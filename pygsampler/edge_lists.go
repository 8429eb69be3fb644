package pygsampler

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch/edgelists"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/induced"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// EdgeLists returns the address of a memory with the joined hops of a batch on the CPU, as
// edgelists.Concatenate describes. ends is the address of the source and target types of each relation
// of a heterogeneous batch.
func EdgeLists(data, ends int64) (int64, error) {
	if err := aligned(8, "batch", data, "ends", ends); err != nil {
		return 0, err
	}
	m, err := edgelists.Concatenate(data, memory.View[int64](ends, 2*edgelists.Relations(data)))
	if err != nil {
		return 0, err
	}
	return m.Address(), nil
}

// joined is a batch with its hops joined, in its place.
func joined(m memory.Memory, ends []int64) (memory.Memory, error) {
	defer m.Release()
	return edgelists.Concatenate(int64(uintptr(m.Pointer())), ends)
}

// InducedEdges returns the address of a memory with the edges of a graph on the CPU between nodes
// of the same tree, as induced.Edges describes. vertices and trees are the addresses of count nodes
// and of the tree of each. The caller's thread and idle threads do the work.
func InducedEdges(g *Relation, vertices, trees, count int64, vertexBits, treeBits int) (address int64, err error) {
	if g.device != nil || g.csc.Kinds > 0 {
		return 0, Errorf(KindValue, "graph: expected one on the CPU whose edges have no types, got another")
	}
	if count < 0 || vertexBits != 32 && vertexBits != 64 || treeBits != 32 && treeBits != 64 {
		return 0, Errorf(KindType, "nodes: expected at least 0 of 32 or 64 bits, got %d of %d, trees of %d", count, vertexBits, treeBits)
	}
	if err := aligned(int64(vertexBits/8), "nodes", vertices); err != nil {
		return 0, err
	}
	if err := aligned(int64(treeBits/8), "trees", trees); err != nil {
		return 0, err
	}
	if err := g.enter(); err != nil {
		return 0, err
	}
	defer g.leave()
	// The arrays may be of a mapped file that another process makes shorter.
	defer graphfile.RecoverFault(&err, "graph file")
	defer graphfile.FaultsPanic()()
	m, err := induced.Edges(&g.csc, csc.Borrow(vertices, count, vertexBits), csc.Borrow(trees, count, treeBits), crewOf(0))
	if err != nil {
		return 0, err
	}
	return m.Address(), nil
}
