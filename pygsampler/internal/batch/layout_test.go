package batch

import (
	"errors"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Every array lies on a cache line of its own, behind the header; growth moves the
// memory and keeps what was written.
func TestBuilder(t *testing.T) {
	b, err := NewBuilder(3, 0)
	if err != nil {
		t.Fatal(err)
	}
	end := int64(HeaderWords+3*BlockWords) * 8
	for _, n := range []int64{0, 1, 64, 65, 0, 1 << 20, 3} {
		offset, err := b.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if offset%64 != 0 || offset < end || offset >= end+64 {
			t.Fatalf("%d bytes at %d, behind %d", n, offset, end)
		}
		for i := range memory.At[byte](b.Memory, offset, n) {
			memory.At[byte](b.Memory, offset, n)[i] = byte(n)
		}
		end = offset + n
	}
	b.SetBlock(2, [BlockWords]int64{1, 2, 3, 4, 5, 6, 7, 8})
	b.Set(WordNumNodes, 9)
	m := b.Finish(100)
	words := memory.At[int64](m, 0, HeaderWords+3*BlockWords)
	for i, w := range words {
		want := map[int]int64{
			WordSignature: Magic, WordHops: 3, WordNumNodes: 9, WordSize: end,
			HeaderWords + 16: 1, HeaderWords + 17: 2, HeaderWords + 18: 3,
			HeaderWords + 19: 4, HeaderWords + 20: 5, HeaderWords + 21: 6, HeaderWords + 22: 7, HeaderWords + 23: 8,
		}[i]
		if w != want {
			t.Errorf("word %d is %d, want %d", i, w, want)
		}
	}
	if size := memory.View[int64](m.Address(), 3)[2]; size != end-100 {
		t.Errorf("%d bytes written, want %d", size, end-100)
	}
	m.Release()
}

// The numbers that Python and, later, CUDA read are part of the contract.
func TestWords(t *testing.T) {
	got := []int{
		WordSignature, WordIDBits, WordEdgeIDBits, WordHops, WordNumOutput, WordNodes, WordNumNodes,
		WordOutputNodes, WordOutputIndex, WordSize,
	}
	for i, w := range got {
		if w != i {
			t.Errorf("word %d has number %d", i, w)
		}
	}
	got = []int{BlockNumSrc, BlockNumDst, BlockNumEdges, BlockIndptr, BlockIndices, BlockEdgeIDs, BlockFirstDst, BlockEdgeWeights}
	for i, w := range got {
		if w != i {
			t.Errorf("word %d of a block has number %d", i, w)
		}
	}
	if HeaderWords != 16 || BlockWords != 8 || Magic != 0x50475342 {
		t.Error("another header")
	}
}

// A batch that is given up counts as written, so that the pool's bound holds.
func TestDiscard(t *testing.T) {
	memory.Trim()
	live := memory.Count().Live
	b, err := NewBuilder(1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	offset, err := b.Alloc(5000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Alloc(1 << 55); !errors.Is(err, memory.ErrNoMemory) {
		t.Error(err)
	}
	b.Discard()
	if c := memory.Count(); c.Live != live || c.Pooled != 1 || c.PooledBytes != offset+5000 {
		t.Errorf("got %+v", c)
	}
	memory.Trim()
}
