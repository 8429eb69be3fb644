// Package batch is the memory of a sampled batch: one region that begins with a
// header of 64-bit words and holds every array at an offset, so that all arrays
// are views and one reference keeps them.
package batch

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Magic is the first word of every batch ("PGSB").
const Magic = 0x50475342

// Words of the header. Python reads the same numbers.
const (
	WordMagic = iota
	WordIDBits
	WordEdgeIDBits
	WordNumHops
	WordNumOutput      // seeds, duplicates counted
	WordOffNodes       // distinct vertices, by first occurrence
	WordNumNodes       //
	WordOffOutputNodes // the seeds as given; OffNodes where they are distinct
	WordOffOutputIndex // for each seed its position in nodes
	WordBytes
	WordOffTrees // for each vertex the seed whose tree it is in; 0 where trees share vertices
	HeaderWords  = 16
)

// Words of a block; blocks follow the header, outermost hop first.
const (
	WordNumSrc = iota
	WordNumDst
	WordNumEdges
	WordOffIndptr
	WordOffIndices
	WordOffEdgeIDs
	WordFirstDst // place of the first destination among the vertices
	BlockWords   = 8
)

// Builder lays out a batch while its sizes become known, hop by hop. It owns its
// memory until Finish; slices taken from Memory are void after Alloc.
type Builder struct {
	Memory memory.Memory
	used   int64
}

// NewBuilder begins a batch of the given number of hops, with room for a first
// guess of its bytes.
func NewBuilder(hops int, guess int64) (*Builder, error) {
	header := int64(HeaderWords+BlockWords*hops) * 8
	m, err := memory.New(header + guess)
	if err != nil {
		return nil, err
	}
	b := &Builder{Memory: m, used: header}
	clear(memory.At[int64](m, 0, header/8))
	b.Set(WordMagic, Magic)
	b.Set(WordNumHops, int64(hops))
	return b, nil
}

// Alloc reserves n bytes on a cache line of their own and returns their offset.
func (b *Builder) Alloc(n int64) (int64, error) {
	offset := (b.used + 63) &^ 63
	if err := b.Memory.Grow(offset + n); err != nil {
		return 0, err
	}
	b.used = offset + n
	return offset, nil
}

// Set writes a word of the header.
func (b *Builder) Set(word int, value int64) {
	memory.At[int64](b.Memory, 0, int64(word)+1)[word] = value
}

// SetBlock writes the words of block i, outermost first.
func (b *Builder) SetBlock(i int, words [7]int64) {
	for w, value := range words {
		b.Set(HeaderWords+BlockWords*i+w, value)
	}
}

// Finish closes the batch and hands its memory, with one reference, to the caller.
// untouched is how many of its bytes were reserved and never written.
func (b *Builder) Finish(untouched int64) memory.Memory {
	b.Set(WordBytes, b.used)
	b.Memory.SetSize(b.used - untouched)
	return b.Memory
}

// Discard gives the memory back; all of it counts as written, for the pool's bound.
func (b *Builder) Discard() {
	b.Memory.SetSize(b.used)
	b.Memory.Release()
}
