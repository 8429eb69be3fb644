package csc

import (
	"fmt"
	"strings"
)

// Graph is a set of relations with the schema of their node and edge types. A homogeneous graph has
// no schema and one relation; ids of a heterogeneous graph count within a type. It borrows its
// arrays, and any number of goroutines may read it.
type Graph struct {
	*Schema   // nil: the graph is homogeneous
	Relations []*Relation
}

// Schema lists the types of nodes and edges, in the user's order; the relation of an edge type has
// the same index. The rows of a relation are the nodes of one type and its neighbors are nodes of
// another.
type Schema struct {
	NodeTypes []NodeType
	EdgeTypes []EdgeType
}

// NodeType is a type of nodes.
type NodeType struct {
	Name  string
	Nodes int64
	Salt  uint64 // as that of an edge type, of its name
}

// EdgeType is a type of edges.
type EdgeType struct {
	Name     string // "src__rel__dst"
	Short    string // "rel", which other edge types may have too
	Src, Dst int    // places among the node types
	// Salt is the first 8 bytes of BLAKE2b of the name, little-endian; it makes the draws of its
	// rows differ from those of other edge types.
	Salt uint64
}

// Homogeneous returns the graph of one relation and no schema.
func Homogeneous(r *Relation) *Graph { return &Graph{Relations: []*Relation{r}} }

// Add adds an edge type and its relation.
func (g *Graph) Add(of EdgeType, r *Relation) {
	g.EdgeTypes, g.Relations = append(g.EdgeTypes, of), append(g.Relations, r)
}

// Relation returns the relation with an index; a homogeneous graph has relation 0 only.
func (g *Graph) Relation(i int) *Relation { return g.Relations[i] }

// Mixed reports whether the draws of rows depend on the edge type. A graph of one node type and one
// edge type is sampled as a homogeneous graph.
func (s *Schema) Mixed() bool { return len(s.NodeTypes) > 1 || len(s.EdgeTypes) > 1 }

// IDBits returns the width of the ids of all relations.
func (g *Graph) IDBits() int {
	if len(g.Relations) == 0 {
		return 64
	}
	return g.Relations[0].Indices.Bits
}

// Validate checks the invariants across the relations of a heterogeneous graph; each relation is
// valid by itself. A relation has as many nodes as the larger of its two types, so that neighbors
// may exceed the other type: they are read in this case.
func (g *Graph) Validate() error {
	for i, e := range g.EdgeTypes {
		if uint(e.Src) >= uint(len(g.NodeTypes)) || uint(e.Dst) >= uint(len(g.NodeTypes)) {
			return valueError("relations[%q]: expected two of %d node types, got %d and %d", e.Name, len(g.NodeTypes), e.Src, e.Dst)
		}
		r, src, dst := g.Relations[i], g.NodeTypes[e.Src].Nodes, g.NodeTypes[e.Dst].Nodes
		switch {
		case r.Indices.Bits != g.IDBits():
			return valueError("relations[%q]: expected ids of %d bits, as the first relation has them, got %d", e.Name, g.IDBits(), r.Indices.Bits)
		case r.Kinds > 0:
			return valueError("relations[%q]: expected rows that are not split, got %d types", e.Name, r.Kinds)
		case r.NumRows() > dst:
			return valueError("relations[%q]: expected at most %d rows, one for each node, got %d", e.Name, dst, r.NumRows())
		case r.NumNodes <= src:
			continue
		}
		bad32 := func(a []int32) int64 { return outsideIn(a, src) }
		bad64 := func(a []int64) int64 { return outsideIn(a, src) }
		if i := firstIn(r.Indices, bad32, bad64); i >= 0 {
			return valueError("%s: %s", strings.ReplaceAll(e.Name, "__", " "), Outside(i, src, r.Indices.Element(i)))
		}
	}
	return nil
}

// EdgeType returns the index of the edge type with a name, or -1.
func (s *Schema) EdgeType(name string) int {
	for i := range s.EdgeTypes {
		if s.EdgeTypes[i].Name == name {
			return i
		}
	}
	return -1
}

// Find returns the index of the edge type with a name, or of the only one with that short name. The
// error continues "expected ".
func (s *Schema) Find(name string) (int, error) {
	if i := s.EdgeType(name); i >= 0 {
		return i, nil
	}
	all, matches := make([]int, len(s.EdgeTypes)), []int{}
	for i := range s.EdgeTypes {
		all[i] = i
		if s.EdgeTypes[i].Short == name && name != "" {
			matches = append(matches, i)
		}
	}
	switch len(matches) {
	case 0:
		return 0, fmt.Errorf("edge types of the graph, got %q; there are %s", name, s.list(all))
	case 1:
		return matches[0], nil
	default:
		return 0, fmt.Errorf("a name that only one edge type has, got %q; it can be any of %s", name, s.list(matches))
	}
}

// Written returns an edge type in the notation of Python.
func (s *Schema) Written(i int) string {
	e := &s.EdgeTypes[i]
	return fmt.Sprintf("('%s', '%s', '%s')", s.NodeTypes[e.Src].Name, e.Short, s.NodeTypes[e.Dst].Name)
}

// mostListed is the maximal number of edge types that an error names.
const mostListed = 20

func (s *Schema) list(types []int) string {
	names, more := []string{}, ""
	if n := len(types) - mostListed; n > 0 {
		types, more = types[:mostListed], fmt.Sprintf(" and %d more", n)
	}
	for _, i := range types {
		names = append(names, s.Written(i))
	}
	return strings.Join(names, ", ") + more
}
