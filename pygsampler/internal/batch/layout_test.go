package batch

import (
	"errors"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Every array lies on a cache line of its own, behind the header; growth moves the
// memory and keeps what was written.
func TestBuilder(t *testing.T) {
	b, err := NewBuilder(Homogeneous(3), 0)
	if err != nil {
		t.Fatal(err)
	}
	end := int64(b.Words()) * 8
	for _, n := range []int64{0, 1, 64, 65, 0, 1 << 20, 3} {
		offset, err := b.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if offset%64 != 0 || offset < end || offset >= end+64 {
			t.Fatalf("%d bytes at %d, behind %d", n, offset, end)
		}
		for i := range memory.ViewAt[byte](b.Memory, offset, n) {
			memory.ViewAt[byte](b.Memory, offset, n)[i] = byte(n)
		}
		end = offset + n
	}
	b.SetBlock(2, [BlockWords]int64{1, 2, 3, 4, 5, 6, 7, 8})
	b.Set(WordNumNodes, 9)
	m := b.Finish(100)
	words := memory.ViewAt[int64](m, 0, int64(b.Words()))
	for i, w := range words {
		want := map[int]int64{
			WordSignature: Magic, WordNumHops: 3, WordNumTypes: 1, WordNumRelations: 1, WordNumNodes: 9, WordSize: end,
			FirstBlock + 16: 1, FirstBlock + 17: 2, FirstBlock + 18: 3,
			FirstBlock + 19: 4, FirstBlock + 20: 5, FirstBlock + 21: 6, FirstBlock + 22: 7, FirstBlock + 23: 8,
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
		WordSignature, WordIDBits, WordNumHops, WordNumTypes, WordNumRelations, WordNumExtras, WordSize, WordCapacity,
		WordNumNodes, WordNodes, WordNumOutput, WordOutputNodes, WordOutputIndex, WordSubgraphIDs,
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
	if FirstBlock != 16 || BlockWords != 8 || Magic != 2<<32|0x50475342 {
		t.Error("another header")
	}
	l := Layout{Hops: 2, Types: 3, Relations: 4, Extras: 5}
	got = []int{l.Type(0), l.Type(2), l.Block(0, 0), l.Block(1, 3), l.EdgeIDBits(1), l.Count(0, 0), l.Count(2, 2), l.Extra(1), l.Words()}
	if want := []int{8, 24, 32, 88, 97, 100, 108, 113, 129}; !slices.Equal(got, want) {
		t.Errorf("a layout has words %v, want %v", got, want)
	}
}

// A batch that is given up counts as written, so that the pool's bound holds.
func TestDiscard(t *testing.T) {
	memory.Trim()
	live := memory.Count().Live
	b, err := NewBuilder(Homogeneous(1), 1000)
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
