// Package csc is the storage of a graph: compressed sparse columns over arrays that the caller
// owns, and data derived from them.
package csc

import (
	"sync"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Index is the type of an array of ids or offsets.
type Index interface{ int32 | int64 }

// Array is a borrowed array of int32 or int64 elements: one of the two slices is
// in use, as Bits says. The zero value is an absent array.
type Array struct {
	Bits int
	I32  []int32
	I64  []int64
}

// Borrow returns the array at an address that stays valid as long as its owner keeps it; bits is 32
// or 64.
func Borrow(address, length int64, bits int) Array {
	if bits == 32 {
		return Array{Bits: 32, I32: memory.View[int32](address, length)}
	}
	return Array{Bits: 64, I64: memory.View[int64](address, length)}
}

// ArrayOf returns a slice as an array.
func ArrayOf[I Index](values []I) Array {
	switch v := any(values).(type) {
	case []int32:
		return Array{Bits: 32, I32: v}
	case []int64:
		return Array{Bits: 64, I64: v}
	}
	return Array{}
}

// Len returns the number of elements.
func (a Array) Len() int64 { return int64(max(len(a.I32), len(a.I64))) }

// Element returns element i.
func (a Array) Element(i int64) int64 {
	if a.Bits == 32 {
		return int64(a.I32[i])
	}
	return a.I64[i]
}

// Elements returns the slice of a whose element type is T; nil if a holds the other type.
func Elements[T Index](a Array) []T {
	var s any = a.I64
	var zero T
	if _, is32 := any(zero).(int32); is32 {
		s = a.I32
	}
	return s.([]T)
}

// Relation is the edges of one type in CSC: row v of Indices[Indptr[v]:Indptr[v+1]] lists v's
// in-neighbors. It borrows its arrays and never writes to them; after Validate its invariants hold
// for as long as the caller does not change the arrays (and reads stay bounds-checked if it does).
// Any number of goroutines may read it.
type Relation struct {
	Indptr  Array // rows+1 offsets: first 0, never decreasing, last = len(Indices)
	Indices Array // source ids in [0, NumNodes)
	EdgeIDs Array // original ids of the edges by CSC position; absent: the position
	// NumNodes counts nodes; those at and beyond len(Indptr)-1 have no in-edges.
	NumNodes int64
	// Alias and Sums are the tables that rows draw by, in the format of rng.Weights, for all rows,
	// one after another: every edge then has a positive weight. Nil: rows draw uniformly.
	Alias, Sums []uint64
	// Whole is the relation of which this relation has some edges; nil: it has all edges.
	Whole *Relation
	// Kinds is the number of edge types that rows are split by: row v*Kinds+k has the edges of node
	// v of type k, and there are NumNodes*Kinds rows. 0: one row per node.
	Kinds int64
	// Back is this relation transposed, with ascending rows that are not split by type, for
	// adjacency tests of walks that depend on the previous node. Nil: there is none.
	Back *Relation
	// EdgeData and VertexData are arrays by name, with an element for each original edge id, or for
	// each node, and Kept caches values that programs have derived from them and from the relation.
	EdgeData, VertexData map[string]Values
	Kept                 DerivedCache

	lookup     sync.Once
	inverse    []int64 // CSC position by edge id, where ids are dense
	byID       []int64 // else: CSC positions sorted by edge id
	identityID bool

	copying sync.Mutex
	copies  Copies
	copied  bool // whether copies are known
}

// NumRows returns the number of rows that Indptr describes.
func (g *Relation) NumRows() int64 { return g.Indptr.Len() - 1 }

// Weights returns the weights of a row of degree edges from CSC position start on.
func (g *Relation) Weights(start, degree int64) rng.Weights {
	return rng.Weights{Alias: g.Alias[start : start+degree], Sums: g.Sums[start : start+degree]}
}

// NumEdges returns the number of edges.
func (g *Relation) NumEdges() int64 { return g.Indices.Len() }

// EdgeIDBits returns the width of the edge ids of a sample.
func (g *Relation) EdgeIDBits() int { return EdgeIDBits(g.EdgeIDs.Bits, g.Indices.Bits, g.NumEdges()) }

// EdgeIDBits returns the width of the edge ids of a sample of a graph: the width of its own edge
// ids, or without any (0) the width of its node ids, unless the positions of its edges need more.
func EdgeIDBits(own, idBits int, edges int64) int {
	switch {
	case own != 0:
		return own
	case edges > 1<<31-1:
		return 64
	}
	return idBits
}

// Pointer returns the address of the elements; nil for an empty array.
func (a Array) Pointer() unsafe.Pointer {
	if a.Bits == 32 {
		return unsafe.Pointer(unsafe.SliceData(a.I32))
	}
	return unsafe.Pointer(unsafe.SliceData(a.I64))
}
