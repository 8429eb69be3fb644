package csc

import (
	"fmt"
	"strings"
)

// HeteroGraph is a graph with types: each relation is a graph of its own, whose rows are the vertices
// of one type and whose neighbours are those of another. Ids count within a type. It borrows what
// it is made of, and any number of goroutines may read it.
type HeteroGraph struct {
	Kinds     []NodeType // of vertices, in the user's order
	Relations []Relation
}

// NodeType is a type of vertices.
type NodeType struct {
	Name  string
	Nodes int64
	Salt  uint64 // as that of a relation, of its name
}

// Relation is a type of edges.
type Relation struct {
	Graph    *Graph
	Name     string // "src__rel__dst"
	Short    string // "rel", which other relations may have too
	Src, Dst int    // places among the kinds
	// Salt is the first 8 bytes of BLAKE2b of the name, little-endian: what the draws of its rows
	// differ by from those of other relations.
	Salt uint64
}

// Mixed says whether rows draw by their relation too. A graph of one type of vertices and
// one of edges is a graph without types, and sampled as one.
func (t *HeteroGraph) Mixed() bool { return len(t.Kinds) > 1 || len(t.Relations) > 1 }

// IDBits is the width of the ids of all relations.
func (t *HeteroGraph) IDBits() int {
	if len(t.Relations) == 0 {
		return 64
	}
	return t.Relations[0].Graph.Indices.Bits
}

// Validate checks what concerns several relations; each graph is valid by itself. Its vertices
// are those of the larger type, so that neighbours may be beyond theirs: they are looked at then.
func (t *HeteroGraph) Validate() error {
	for _, r := range t.Relations {
		if uint(r.Src) >= uint(len(t.Kinds)) || uint(r.Dst) >= uint(len(t.Kinds)) {
			return valueError("relations[%q]: expected two of %d types of vertices, got %d and %d", r.Name, len(t.Kinds), r.Src, r.Dst)
		}
		g, src, dst := r.Graph, t.Kinds[r.Src].Nodes, t.Kinds[r.Dst].Nodes
		switch {
		case g.Indices.Bits != t.IDBits():
			return valueError("relations[%q]: expected ids of %d bits, as the first relation has them, got %d", r.Name, t.IDBits(), g.Indices.Bits)
		case g.Kinds > 0:
			return valueError("relations[%q]: expected a graph whose rows are not split, got %d types", r.Name, g.Kinds)
		case g.Rows() > dst:
			return valueError("relations[%q]: expected at most %d rows, one for each vertex, got %d", r.Name, dst, g.Rows())
		case g.NumNodes <= src:
			continue
		}
		bad32 := func(a []int32) int64 { return outsideIn(a, src) }
		bad64 := func(a []int64) int64 { return outsideIn(a, src) }
		if i := firstIn(g.Indices, bad32, bad64); i >= 0 {
			return valueError("%s: %s", strings.ReplaceAll(r.Name, "__", " "), Outside(i, src, g.Indices.At(i)))
		}
	}
	return nil
}

// Relation is the place of the relation with that name, or -1.
func (t *HeteroGraph) Relation(name string) int {
	for i := range t.Relations {
		if t.Relations[i].Name == name {
			return i
		}
	}
	return -1
}

// Find is the place of the relation with that name, or of the only one with that short name. The error
// continues "expected ".
func (t *HeteroGraph) Find(name string) (int, error) {
	if i := t.Relation(name); i >= 0 {
		return i, nil
	}
	all, matches := make([]int, len(t.Relations)), []int{}
	for i := range t.Relations {
		all[i] = i
		if t.Relations[i].Short == name && name != "" {
			matches = append(matches, i)
		}
	}
	switch len(matches) {
	case 0:
		return 0, fmt.Errorf("edge types of the graph, got %q; there are %s", name, t.list(all))
	case 1:
		return matches[0], nil
	default:
		return 0, fmt.Errorf("a name that only one edge type has, got %q; it can be any of %s", name, t.list(matches))
	}
}

// Written is a relation as Python writes its edge type.
func (t *HeteroGraph) Written(i int) string {
	r := &t.Relations[i]
	return fmt.Sprintf("('%s', '%s', '%s')", t.Kinds[r.Src].Name, r.Short, t.Kinds[r.Dst].Name)
}

// mostListed is how many edge types an error names.
const mostListed = 20

func (t *HeteroGraph) list(relations []int) string {
	names, more := []string{}, ""
	if n := len(relations) - mostListed; n > 0 {
		relations, more = relations[:mostListed], fmt.Sprintf(" and %d more", n)
	}
	for _, i := range relations {
		names = append(names, t.Written(i))
	}
	return strings.Join(names, ", ") + more
}
