// Package induced finds the edges between the nodes of small sets.
package induced

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/smallmap"
)

// edge is one between two of a tree's nodes: the place of its source among all nodes,
// and its place in the CSC.
type edge struct{ source, place int64 }

// crewVertices is the number of nodes for each worker in addition to the caller.
const crewVertices = 256

// Edges returns a memory, with one reference, of 64-bit integers: the offsets of the in-edges of
// each node, one more than nodes; the sources of the edges, as positions among the nodes; and the
// ids of the edges. The edges are all edges between nodes of one tree, trees[i] being the tree of
// vertices[i], in the order of their targets and of the CSC. If a tree has a node twice, each
// occurrence has the in-edges, and out-edges come from the first.
func Edges(g *csc.Relation, vertices, trees csc.Array, crew csc.Crew) (m memory.Memory, err error) {
	count := vertices.Len()
	members, err := membersOf(g, vertices, trees)
	if err != nil {
		return m, err
	}
	// 16 bytes for each tree's list are little compared to the edges of a node.
	found := make([][]edge, len(members))
	starts := make([]int64, count+1)
	// A thread is woken for some hundred nodes, not for each tree.
	units := min(int64(len(members)), 1+count/crewVertices)
	var next atomic.Int64
	csc.Crewed(crew, units, func() {
		var t smallmap.Table
		for i := next.Add(1) - 1; i < int64(len(members)); i = next.Add(1) - 1 {
			if g.Indices.Bits == 32 {
				found[i] = among(g, csc.Elements[int32](g.Indices), vertices, members[i], &t, starts)
			} else {
				found[i] = among(g, csc.Elements[int64](g.Indices), vertices, members[i], &t, starts)
			}
		}
	})
	for i := range count {
		starts[i+1] += starts[i]
	}
	total := starts[count]
	size := 8 * (count + 1 + 2*total)
	if err := memory.Affordable(size); err != nil {
		return m, err
	}
	if m, err = memory.New(size); err != nil {
		return m, err
	}
	m.SetSize(size)
	out := memory.ViewAt[int64](m, 0, count+1+2*total)
	copy(out, starts)
	sources, ids := out[count+1:][:total], out[count+1+total:]
	next.Store(0)
	csc.Crewed(crew, units, func() {
		for i := next.Add(1) - 1; i < int64(len(members)); i = next.Add(1) - 1 {
			left := found[i]
			for _, member := range members[i] {
				for at := starts[member]; at < starts[member+1]; at++ {
					e := left[0]
					left = left[1:]
					sources[at], ids[at] = e.source, e.place
					if g.EdgeIDs.Bits != 0 {
						ids[at] = g.EdgeIDs.Element(e.place)
					}
				}
			}
		}
	})
	return m, nil
}

// membersOf is the places of each tree's nodes, ascending.
func membersOf(g *csc.Relation, vertices, trees csc.Array) ([][]int64, error) {
	if trees.Len() != vertices.Len() {
		return nil, fmt.Errorf("%w: trees: expected one for each of %d nodes, got %d", request.ErrValue, vertices.Len(), trees.Len())
	}
	var largest int64 = -1
	for i := range vertices.Len() {
		if v := vertices.Element(i); v < 0 || v >= g.NumNodes {
			return nil, fmt.Errorf("%w: nodes: expected ids below %d, got %d", request.ErrIndex, g.NumNodes, v)
		}
		// A tree has a node at least, but for those of which none is left.
		t := trees.Element(i)
		if t < 0 || t >= vertices.Len() {
			return nil, fmt.Errorf("%w: trees: expected numbers below that of the nodes, %d, got %d", request.ErrValue, vertices.Len(), t)
		}
		largest = max(largest, t)
	}
	sizes := make([]int64, largest+1)
	for i := range trees.Len() {
		sizes[trees.Element(i)]++
	}
	all, members := make([]int64, trees.Len()), make([][]int64, largest+1)
	for t, size := range sizes {
		members[t], all = all[:0:size], all[size:]
	}
	for i := range trees.Len() {
		members[trees.Element(i)] = append(members[trees.Element(i)], i)
	}
	return members, nil
}

// among returns the edges between the members of a tree, and writes the in-degree of each after its
// place.
func among[I csc.Index](g *csc.Relation, indices []I, vertices csc.Array, members []int64, t *smallmap.Table, counts []int64) []edge {
	t.Clear()
	first := make([]int64, 0, len(members))
	for _, member := range members {
		if _, fresh := t.Number(vertices.Element(member)); fresh {
			first = append(first, member)
		}
	}
	var found []edge
	for _, member := range members {
		v := vertices.Element(member)
		if v >= g.NumRows() {
			continue
		}
		before := len(found)
		start := g.Indptr.Element(v)
		for i, u := range indices[start:g.Indptr.Element(v+1)] {
			if n := t.Find(int64(u)); n >= 0 {
				found = append(found, edge{first[n], start + int64(i)})
			}
		}
		counts[member+1] = int64(len(found) - before)
	}
	return slices.Clip(found)
}
