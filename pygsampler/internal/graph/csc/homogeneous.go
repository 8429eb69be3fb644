package csc

import (
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// joinUnit is the number of rows that a worker processes at a time.
const joinUnit = 1 << 12

// ToHomogeneous returns the homogeneous graph of all nodes and edges: nodes are numbered type after
// type, and the id of edge e of a relation is the first id of the relation plus e. firsts holds
// these first ids, followed by their ends. The edges of a row are stored relation after relation.
func (g *Graph) ToHomogeneous(firsts []int64, crew Crew) (m memory.Memory, err error) {
	ids := firsts[len(g.Relations)]
	nodes, starts := int64(0), make([]int64, len(g.NodeTypes))
	for k, kind := range g.NodeTypes {
		starts[k] = nodes
		nodes += kind.Nodes
	}
	edges := int64(0)
	into := make([][]int, len(g.NodeTypes)) // the relations that lead to each node type
	for r, rel := range g.Relations {
		edges += rel.NumEdges()
		into[g.EdgeTypes[r].Dst] = append(into[g.EdgeTypes[r].Dst], r)
	}
	words := [JoinedWords]int64{JoinedNumNodes: nodes, JoinedNumEdges: edges, JoinedNumIDs: ids}
	size := int64(JoinedWords * 8)
	for _, part := range [][2]int64{
		{JoinedIndptr, 8 * (nodes + 1)}, {JoinedIndices, 8 * edges}, {JoinedEdgeIDs, 8 * edges},
		{JoinedEdgeTypes, 4 * ids}, {JoinedEdgeOwn, 8 * ids}, {JoinedNodeTypes, 4 * nodes}, {JoinedNodeOwn, 8 * nodes},
	} {
		words[part[0]] = align(size)
		size = words[part[0]] + part[1]
	}
	if err := memory.Affordable(size); err != nil {
		return m, err
	}
	if m, err = memory.New(size); err != nil {
		return m, err
	}
	m.SetSize(size)
	copy(memory.ViewAt[int64](m, 0, JoinedWords), words[:])
	indptr := memory.ViewAt[int64](m, words[JoinedIndptr], nodes+1)
	indices, edgeIDs := memory.ViewAt[int64](m, words[JoinedIndices], edges), memory.ViewAt[int64](m, words[JoinedEdgeIDs], edges)
	number(memory.ViewAt[int32](m, words[JoinedEdgeTypes], ids), memory.ViewAt[int64](m, words[JoinedEdgeOwn], ids), firsts[:len(g.Relations)])
	number(memory.ViewAt[int32](m, words[JoinedNodeTypes], nodes), memory.ViewAt[int64](m, words[JoinedNodeOwn], nodes), starts)
	row := int64(0)
	indptr[0] = 0
	for k, kind := range g.NodeTypes {
		for v := range kind.Nodes {
			degree := int64(0)
			for _, r := range into[k] {
				degree += g.Relations[r].degree(v)
			}
			indptr[row+1] = indptr[row] + degree
			row++
		}
	}
	var wrong atomic.Pointer[error]
	for k, kind := range g.NodeTypes {
		units := (kind.Nodes + joinUnit - 1) / joinUnit
		var next atomic.Int64
		Crewed(crew, units, func() {
			for i := next.Add(1) - 1; i < units; i = next.Add(1) - 1 {
				for v := i * joinUnit; v < min((i+1)*joinUnit, kind.Nodes); v++ {
					out := indptr[starts[k]+v]
					for _, r := range into[k] {
						rel, of := g.Relations[r], &g.EdgeTypes[r]
						degree := rel.degree(v)
						if degree == 0 {
							continue
						}
						for e := rel.Indptr.Element(v); degree > 0; e, degree, out = e+1, degree-1, out+1 {
							own := e
							if rel.EdgeIDs.Bits != 0 {
								own = rel.EdgeIDs.Element(e)
							}
							if uint64(own) >= uint64(firsts[r+1]-firsts[r]) {
								err := valueError("%s: expected edge ids in [0, %d), got %d", of.Name, firsts[r+1]-firsts[r], own)
								wrong.Store(&err)
								return
							}
							indices[out], edgeIDs[out] = starts[of.Src]+rel.Indices.Element(e), firsts[r]+own
						}
					}
				}
			}
		})
	}
	if err := wrong.Load(); err != nil {
		m.Release()
		return memory.Memory{}, *err
	}
	return m, nil
}

// degree returns the in-degree of a node.
func (g *Relation) degree(v int64) int64 {
	if v >= g.NumRows() {
		return 0
	}
	return g.Indptr.Element(v+1) - g.Indptr.Element(v)
}

// number says of each id which of the types that begin at these places it is of, and which of it.
func number(types []int32, own []int64, firsts []int64) {
	kind := 0
	for i := range types {
		for kind+1 < len(firsts) && int64(i) >= firsts[kind+1] {
			kind++
		}
		types[i], own[i] = int32(kind), int64(i)-firsts[kind]
	}
}
