// Package csctest provides the graphs that tests of several packages sample. It serves tests only.
package csctest

import (
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Array returns a copy of a with a width in bits.
func Array(a []int64, bits int) csc.Array {
	if bits == 64 {
		return csc.Array{Bits: 64, I64: append([]int64{}, a...)}
	}
	narrow := make([]int32, len(a))
	for i, v := range a {
		narrow[i] = int32(v)
	}
	return csc.Array{Bits: 32, I32: narrow}
}

// Sparse returns n zero elements that occupy no memory until they are written.
func Sparse[T csc.Index](t *testing.T, n int64) []T {
	t.Helper()
	pages, err := memory.Map(n * int64(unsafe.Sizeof(T(0))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pages.Free)
	return memory.Slice[T](pages, n)
}

// Graph returns a graph from lists of in-neighbors, with ids and offsets of the widths; withIDs
// numbers the edges backwards. It panics if the lists are no graph.
func Graph(rows [][]int64, numNodes int64, idBits, indptrBits int, withIDs bool) *csc.Relation {
	indptr, indices := []int64{0}, []int64(nil)
	for _, row := range rows {
		indices = append(indices, row...)
		indptr = append(indptr, int64(len(indices)))
	}
	g := &csc.Relation{Indptr: Array(indptr, indptrBits), Indices: Array(indices, idBits), NumNodes: numNodes}
	if withIDs {
		ids := make([]int64, len(indices))
		for i := range ids {
			ids[i] = int64(len(ids) - 1 - i)
		}
		g.EdgeIDs = Array(ids, idBits)
	}
	if err := g.Validate(); err != nil {
		panic(err)
	}
	return g
}
