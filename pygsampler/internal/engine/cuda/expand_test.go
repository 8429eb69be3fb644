package cuda

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// expandable is a batch of blocks with these degrees in device memory: numbers of
// destinations begin at 1000 times the block's place, sources count down.
func expandable(t *testing.T, e *Engine, s gpu.Stream, bits int, degrees [][]int64) (gpu.Address, []int64, []csc.Array) {
	t.Helper()
	words := make([]int64, batch.Homogeneous(len(degrees)).Words())
	words[batch.WordSignature], words[batch.WordIDBits], words[batch.WordNumHops] = batch.Magic, int64(bits), int64(len(degrees))
	size, arrays := int64(len(words)*8), []csc.Array(nil)
	for i, rows := range degrees {
		indptr := []int64{0}
		for _, d := range rows {
			indptr = append(indptr, indptr[len(indptr)-1]+d)
		}
		edges := indptr[len(indptr)-1]
		indices := make([]int64, edges)
		for j := range indices {
			indices[j] = 1<<30 - int64(j)
		}
		w := batch.Block(words, i)
		w[batch.BlockNumDst], w[batch.BlockNumEdges], w[batch.BlockFirstDst] = int64(len(rows)), edges, int64(1000*i)
		w[batch.BlockIndptr] = size
		w[batch.BlockIndices] = size + int64(len(indptr)*bits/8)
		size = w[batch.BlockIndices] + edges*int64(bits/8)
		arrays = append(arrays, csctest.Array(indptr, bits), csctest.Array(indices, bits))
	}
	m, err := e.pool.Alloc(s, uint64(size))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(s); err != nil {
			t.Error(err)
		}
	})
	for i := range degrees {
		for j, offset := range []int64{batch.Block(words, i)[batch.BlockIndptr], batch.Block(words, i)[batch.BlockIndices]} {
			a := arrays[2*i+j]
			if err := s.Upload(m.Address+gpu.Address(offset), a.Pointer(), uint64(a.Len())*uint64(bits/8)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m.Address, words, arrays
}

// The CPU's destinations, and the sources as they are, whatever the rows: none, empty
// ones, as many edges as one block of threads has and one more, a huge row among many
// short ones, all edges in one.
func TestExpandEqualsTheCPU(t *testing.T) {
	e, s := device(t)
	short := make([]int64, 3000)
	for i := range short {
		short[i] = int64(i % 4)
	}
	huge := append(append(append([]int64{}, short...), 70_000, 0, 0, 3), short...)
	cases := [][][]int64{
		{{}}, {{0}}, {{1}}, {{0, 0, 0}, {0}}, {{5, 0, 0, 2, 0}}, {{expandThreads}, {expandThreads + 1, 0}},
		{huge, {7}, {}, {0, 1}, short}, {make([]int64, 5000), {100_000}},
	}
	for i := range MostHops {
		cases = append(cases, slices.Repeat([][]int64{{int64(i), 0, 3}}, i))
	}
	for _, degrees := range cases {
		for _, bits := range []int{32, 64} {
			data, words, arrays := expandable(t, e, s, bits, degrees)
			for _, x := range []Expansion{{words, data, bits, false, 0}, {words, data, bits, true, 0}, {words, data, 64, true, 0}, {words, data, 64, false, 0}} {
				checkExpansions(t, e, s, []Expansion{x}, [][]csc.Array{arrays})
			}
		}
	}
}

// Several batches in both widths, of more blocks than a launch has, each to its place.
func TestExpandSeveralAtOnce(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		var all []Expansion
		var arrays [][]csc.Array
		for i := range 7 {
			data, words, of := expandable(t, e, s, bits, slices.Repeat([][]int64{{int64(i), 0, 3}, {0}, {int64(400 * i)}}, i))
			all = append(all, Expansion{words, data, bits, false, 0}, Expansion{words, data, 64, true, 0})
			arrays = append(arrays, of, of)
		}
		checkExpansions(t, e, s, all, arrays)
	}
}

// checkExpansions compares what one call writes for all with the CPU's.
func checkExpansions(t *testing.T, e *Engine, s gpu.Stream, all []Expansion, arrays [][]csc.Array) {
	t.Helper()
	outs := make([]gpu.Memory, len(all))
	for i, x := range all {
		// A word more, which nobody may write to.
		out, err := e.pool.Alloc(s, x.Bytes()+8)
		if err == nil {
			err = s.Fill32(out.Address, 0x5A5A5A5A, (x.Bytes()+8)/4)
		}
		if err != nil {
			t.Fatal(err)
		}
		outs[i], all[i].Out = out, out.Address
	}
	if err := e.Expand(all, s); err != nil {
		t.Fatal(err)
	}
	for i, x := range all {
		checkExpansion(t, s, x, arrays[i])
		if err := outs[i].Free(s); err != nil {
			t.Fatal(err)
		}
	}
}

func checkExpansion(t *testing.T, s gpu.Stream, x Expansion, arrays []csc.Array) {
	t.Helper()
	var want []int64
	for i := range int(x.Words[batch.WordNumHops]) {
		if x.Both {
			want = append(want, values(arrays[2*i+1])...)
		}
		m, err := csc.ExpandRows(arrays[2*i], batch.Block(x.Words, i)[batch.BlockFirstDst])
		if err != nil {
			t.Fatal(err)
		}
		n := batch.Block(x.Words, i)[batch.BlockNumEdges]
		want = append(want, values(csc.Borrow(int64(uintptr(m.Pointer())), n, arrays[2*i].Bits))...)
		m.Release()
	}
	if got := int64(x.Bytes()); got != int64(len(want)*x.Bits/8) {
		t.Fatalf("got %d bytes, want %d numbers of %d bits", got, len(want), x.Bits)
	}
	m, err := memory.New(int64(x.Bytes() + 8))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	if err := s.Download(unsafe.Pointer(m.Pointer()), x.Out, x.Bytes()+8); err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Fatal(err)
	}
	at := int64(uintptr(m.Pointer()))
	if got := values(csc.Borrow(at, int64(len(want)), x.Bits)); !slices.Equal(got, want) {
		t.Fatalf("%d of %d bits, both %v: got %.200v, want %.200v", x.Words[batch.WordIDBits], x.Bits, x.Both, got, want)
	}
	if behind := memory.View[uint32](at+int64(x.Bytes()), 2); behind[0] != 0x5A5A5A5A || behind[1] != 0x5A5A5A5A {
		t.Fatalf("wrote %x behind the last edge", behind)
	}
}

func values(a csc.Array) []int64 {
	all := make([]int64, a.Len())
	for i := range all {
		all[i] = a.Element(int64(i))
	}
	return all
}
