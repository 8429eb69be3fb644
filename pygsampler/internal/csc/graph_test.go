package csc

import (
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// array is a borrowed copy of a in the given width.
func array(bits int, a ...int64) Array {
	if bits == 64 {
		return Array{Bits: 64, I64: append([]int64{}, a...)}
	}
	narrow := make([]int32, len(a))
	for i, v := range a {
		narrow[i] = int32(v)
	}
	return Array{Bits: 32, I32: narrow}
}

func values(a Array) []int64 {
	out := make([]int64, a.Len())
	for i := range out {
		out[i] = a.At(int64(i))
	}
	return out
}

func TestBorrow(t *testing.T) {
	narrow, wide := sparse[int32](t, 3), sparse[int64](t, 2)
	copy(narrow, []int32{1, -2, 3})
	copy(wide, []int64{4, -5})
	a := Borrow(int64(uintptr(unsafe.Pointer(&narrow[0]))), 3, 32)
	b := Borrow(int64(uintptr(unsafe.Pointer(&wide[0]))), 2, 64)
	if a.Bits != 32 || a.Len() != 3 || a.At(1) != -2 || b.Bits != 64 || b.Len() != 2 || b.At(1) != -5 {
		t.Errorf("got %v and %v", a, b)
	}
	narrow[2] = 7
	if a.At(2) != 7 || &Of[int32](a)[0] != &narrow[0] || Of[int64](a) != nil || Of[int32](b) != nil || &Of[int64](b)[0] != &wide[0] {
		t.Error("not the caller's memory")
	}
	for _, bits := range []int{32, 64} {
		if a := Borrow(0, 0, bits); a.Len() != 0 || a.Bits != bits {
			t.Errorf("empty: got %v", a)
		}
	}
}

// sparse is n zero elements that occupy no memory until they are written.
func sparse[T Index](t *testing.T, n int64) []T {
	t.Helper()
	pages, err := memory.Map(n * int64(unsafe.Sizeof(T(0))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pages.Free)
	return memory.Slice[T](pages, n)
}

// The width of a sample's edge ids, on both sides of 2^31 edges.
func TestEdgeIDBits(t *testing.T) {
	huge := sparse[int32](t, 1<<31)
	for _, k := range []struct {
		indices, ids Array
		want         int
	}{
		{array(32, 0), Array{}, 32},
		{array(64, 0), Array{}, 64},
		{array(32, 0), array(64, 0), 64},
		{array(64, 0), array(32, 0), 32},
		{Array{Bits: 32, I32: huge[:1<<31-1]}, Array{}, 32},
		{Array{Bits: 32, I32: huge}, Array{}, 64},
		{Array{Bits: 32, I32: huge}, array(32), 32},
	} {
		g := Graph{Indices: k.indices, EdgeIDs: k.ids}
		if got := g.EdgeIDBits(); got != k.want {
			t.Errorf("%d edges of %d bits, ids of %d: got %d, want %d", g.NumEdges(), k.indices.Bits, k.ids.Bits, got, k.want)
		}
	}
}
