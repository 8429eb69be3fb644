package csc_test

import (
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

func values(a csc.Array) []int64 {
	out := make([]int64, a.Len())
	for i := range out {
		out[i] = a.Element(int64(i))
	}
	return out
}

func TestBorrow(t *testing.T) {
	narrow, wide := csctest.Sparse[int32](t, 3), csctest.Sparse[int64](t, 2)
	copy(narrow, []int32{1, -2, 3})
	copy(wide, []int64{4, -5})
	a := csc.Borrow(int64(uintptr(unsafe.Pointer(&narrow[0]))), 3, 32)
	b := csc.Borrow(int64(uintptr(unsafe.Pointer(&wide[0]))), 2, 64)
	if a.Bits != 32 || a.Len() != 3 || a.Element(1) != -2 || b.Bits != 64 || b.Len() != 2 || b.Element(1) != -5 {
		t.Errorf("got %v and %v", a, b)
	}
	narrow[2] = 7
	if a.Element(2) != 7 || &csc.Elements[int32](a)[0] != &narrow[0] || csc.Elements[int64](a) != nil || csc.Elements[int32](b) != nil || &csc.Elements[int64](b)[0] != &wide[0] {
		t.Error("not the caller's memory")
	}
	for _, bits := range []int{32, 64} {
		if a := csc.Borrow(0, 0, bits); a.Len() != 0 || a.Bits != bits {
			t.Errorf("empty: got %v", a)
		}
	}
}

// The width of a sample's edge ids, on both sides of 2^31 edges.
func TestEdgeIDBits(t *testing.T) {
	huge := csctest.Sparse[int32](t, 1<<31)
	for _, k := range []struct {
		indices, ids csc.Array
		want         int
	}{
		{csctest.Array([]int64{0}, 32), csc.Array{}, 32},
		{csctest.Array([]int64{0}, 64), csc.Array{}, 64},
		{csctest.Array([]int64{0}, 32), csctest.Array([]int64{0}, 64), 64},
		{csctest.Array([]int64{0}, 64), csctest.Array([]int64{0}, 32), 32},
		{csc.Array{Bits: 32, I32: huge[:1<<31-1]}, csc.Array{}, 32},
		{csc.Array{Bits: 32, I32: huge}, csc.Array{}, 64},
		{csc.Array{Bits: 32, I32: huge}, csctest.Array(nil, 32), 32},
	} {
		g := csc.Relation{Indices: k.indices, EdgeIDs: k.ids}
		if got := g.EdgeIDBits(); got != k.want {
			t.Errorf("%d edges of %d bits, ids of %d: got %d, want %d", g.NumEdges(), k.indices.Bits, k.ids.Bits, got, k.want)
		}
	}
}
