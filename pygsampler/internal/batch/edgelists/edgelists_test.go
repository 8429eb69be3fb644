package edgelists

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
)

// onHeap makes what address is asked for escape: memory on a goroutine's stack moves.
var onHeap atomic.Pointer[int64]

// address is where an array is.
func address(a []int64) int64 {
	onHeap.Store(unsafe.SliceData(a))
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(a))))
}

// builder writes arrays of a batch.
type builder struct {
	t *testing.T
	*batch.Builder
}

// put writes integers of so many bits, and says where.
func (b builder) put(bits int64, values ...int64) int64 {
	b.t.Helper()
	at, err := b.Alloc(int64(len(values)) * bits / 8)
	if err != nil {
		b.t.Fatal(err)
	}
	for i, v := range values {
		if bits == 32 {
			memory.ViewAt[int32](b.Memory, at, int64(len(values)))[i] = int32(v)
		} else {
			memory.ViewAt[int64](b.Memory, at, int64(len(values)))[i] = v
		}
	}
	return at
}

// factors writes some.
func (b builder) factors(values ...float32) int64 {
	at, err := b.Alloc(int64(len(values)) * 4)
	if err != nil {
		b.t.Fatal(err)
	}
	copy(memory.ViewAt[float32](b.Memory, at, int64(len(values))), values)
	return at
}

// repeated is a batch of two hops around the seeds 50, 60 and 50, whose second one expands 70 and 80,
// or all vertices.
func repeated(t *testing.T, ids, edgeIDs int64, all bool) memory.Memory {
	made, err := batch.NewBuilder(batch.Homogeneous(2), 0)
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t, made}
	b.Set(batch.WordIDBits, ids)
	b.Set(b.EdgeIDBits(0), edgeIDs)
	b.SetWords(b.Count(0, 0), 2, 4, 5)
	b.Set(batch.WordNumOutput, 3)
	b.Set(batch.WordNumNodes, 5)
	b.Set(batch.WordNodes, b.put(ids, 50, 60, 70, 80, 90))
	b.Set(batch.WordOutputNodes, b.put(ids, 50, 60, 50))
	b.Set(batch.WordOutputIndex, b.put(ids, 0, 1, 0))
	b.SetBlock(1, [batch.BlockWords]int64{
		4, 2, 3, b.put(ids, 0, 2, 3), b.put(ids, 2, 1, 3), b.put(edgeIDs, 100, 101, 102), 0, b.factors(1, 2, 3),
	})
	if all {
		b.SetBlock(0, [batch.BlockWords]int64{
			5, 4, 3, b.put(ids, 0, 0, 1, 1, 3), b.put(ids, 0, 4, 3), b.put(edgeIDs, 103, 104, 105), 0, b.factors(4, 5, 6),
		})
	} else {
		b.SetBlock(0, [batch.BlockWords]int64{
			5, 2, 3, b.put(ids, 0, 1, 3), b.put(ids, 0, 4, 3), b.put(edgeIDs, 103, 104, 105), 2, b.factors(4, 5, 6),
		})
	}
	return b.Finish(0)
}

// cut is the pieces of a memory of joined hops, by its words.
func cut(m memory.Memory) (words []int64, pieces map[int64][][]int64) {
	words = memory.ViewAt[int64](m, 0, batch.HopsWords)
	words = memory.ViewAt[int64](m, 0, words[batch.HopsNumWords])
	pieces = map[int64][][]int64{}
	sizes := words[int64(len(words))-words[batch.HopsWide]-words[batch.HopsNarrow]:]
	for i, width := range []int64{64, 32} {
		offset, number := int64(0), words[batch.HopsWide+i]
		for _, n := range sizes[:number] {
			pieces[width] = append(pieces[width], batchtest.Ints(m, offset, n, width))
			offset += n * width / 8
		}
		sizes = sizes[number:]
	}
	return words, pieces
}

func TestJoined(t *testing.T) {
	for _, ids := range []int64{32, 64} {
		for _, edgeIDs := range []int64{32, 64} {
			for _, all := range []bool{false, true} {
				b := repeated(t, ids, edgeIDs, all)
				m, err := Concatenate(int64(uintptr(b.Pointer())), nil)
				if err != nil {
					t.Fatal(err)
				}
				row, col := []int64{3, 1, 4, 3, 1, 0, 5, 4}, []int64{0, 0, 1, 2, 2, 3, 4, 4}
				order := int64(1)
				if all {
					row, col, order = []int64{3, 1, 4, 3, 1, 0, 5, 4}, []int64{0, 0, 1, 2, 2, 1, 4, 4}, 0
				}
				words, pieces := cut(m)
				own, of := pieces[ids], pieces[edgeIDs]
				for i, want := range [][]int64{{50, 60, 50, 70, 80, 90}, row, col} {
					if !slices.Equal(own[1+i], want) {
						t.Errorf("%d, %d, %v: piece %d is %v, want %v", ids, edgeIDs, all, 1+i, own[1+i], want)
					}
				}
				at := 2
				if ids == edgeIDs {
					at = 5
				}
				if want := []int64{100, 101, 102, 100, 101, 103, 104, 105}; !slices.Equal(of[at], want) {
					t.Errorf("%d, %d, %v: edges are %v, want %v", ids, edgeIDs, all, of[at], want)
				}
				narrow := pieces[32]
				bits := narrow[len(narrow)-2]
				want := []int64{0x3F800000, 0x40000000, 0x40400000, 0x3F800000, 0x40000000, 0x40800000, 0x40A00000, 0x40C00000}
				if !slices.Equal(bits, want) {
					t.Errorf("factors are %x", bits)
				}
				about := []int64{3, 2, 1, 6, 5, 3, edgeIDs, 8}
				if got := words[batch.HopsWords:][:8]; !slices.Equal(got, about) {
					t.Errorf("words are %v, want %v", got, about)
				}
				if words[batch.HopsInOrder] != order || words[batch.HopsSize] < 8*batch.HopsRoom {
					t.Errorf("in order: %d, %d bytes", words[batch.HopsInOrder], words[batch.HopsSize])
				}
				m.Release()
				b.Release()
			}
		}
	}
}

// Two types: seeds of one are there twice, the other has trees' words for none.
func TestJoinedTypes(t *testing.T) {
	l := batch.Layout{Hops: 1, Types: 2, Relations: 2}
	made, err := batch.NewBuilder(l, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t, made}
	b.Set(batch.WordIDBits, 64)
	b.SetWords(l.Type(0), 2, b.put(64, 5, 6), 3, b.put(64, 6, 5, 6), b.put(64, 1, 0, 1), 0)
	b.SetWords(l.Type(1), 1, b.put(64, 9), 0, b.put(64), b.put(64), 0)
	b.SetWords(l.Count(0, 0), 2, 2)
	b.SetWords(l.Count(1, 0), 0, 1)
	b.SetWords(l.EdgeIDBits(0), 64, 32)
	b.SetWords(l.Block(0, 0), 1, 2, 2, b.put(64, 0, 1, 2), b.put(64, 0, 0), b.put(64, 40, 41), 0, 0)
	b.SetWords(l.Block(0, 1), 2, 0, 0, b.put(64, 0), b.put(64), b.put(32), 0, 0)
	mem := b.Finish(0)
	ends := []int64{1, 0, 0, 1}
	m, err := Concatenate(int64(uintptr(mem.Pointer())), ends)
	if err != nil {
		t.Fatal(err)
	}
	_, pieces := cut(m)
	wide := pieces[64]
	for i, want := range [][]int64{{6, 5, 6, 9}, {0, 0, 0}, {}, {0, 1, 2}, {}} {
		if !slices.Equal(wide[1+i], want) {
			t.Errorf("piece %d is %v, want %v", 1+i, wide[1+i], want)
		}
	}
	if !slices.Equal(wide[7], []int64{41, 40, 41}) {
		t.Errorf("edges are %v", wide[7])
	}
	m.Release()
	mem.Release()
}

func TestNoBatch(t *testing.T) {
	words := make([]int64, batch.FixedWords)
	words[batch.WordSignature] = batch.WalkMagic
	var value *csc.ValueError
	if _, err := Concatenate(address(words), nil); !errors.As(err, &value) {
		t.Errorf("got %v", err)
	}
}
