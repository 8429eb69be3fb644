// Package batch is the memory of a sampled batch: one region that begins with a
// header of 64-bit words and holds every array at an offset, so that all arrays
// are views and one reference keeps them.
package batch

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Words is how many words describe a batch.
func Words(hops int) int { return BlockAt(hops) }

// ProgramWords is how many words describe a batch with so many arrays beside its blocks.
func ProgramWords(blocks, extras int) int { return ExtraAt(blocks, extras) }

// ExtraAt is the first word of an array beside the blocks of a batch, of which there are so many.
func ExtraAt(blocks, extra int) int { return BlockAt(blocks) + ExtraWords*extra }

// BlockAt is the first word of a block, of which 0 is the outermost.
func BlockAt(block int) int { return HeaderWords + BlockWords*block }

// Block is the words of a block among those that describe a batch.
func Block(words []int64, block int) []int64 { return words[BlockAt(block):BlockAt(block+1)] }

// TypedLayout is where the words of a batch of a graph with types stand.
type TypedLayout struct{ Hops, Types, Relations int }

// Type is the first word of a type.
func (l TypedLayout) Type(t int) int { return HeaderWords + TypeWords*t }

// Count is the word that says how many vertices of a type there were when a hop began, of which
// 0 is next to the seeds; there are as many hops and one.
func (l TypedLayout) Count(t, hop int) int { return l.Type(l.Types) + t*(l.Hops+1) + hop }

// EdgeIDBits is the word that has the width of the edge ids of a relation.
func (l TypedLayout) EdgeIDBits(r int) int { return l.Count(l.Types, 0) + r }

// Block is the first word of a block, of which those of the outermost hop are first.
func (l TypedLayout) Block(i, r int) int {
	return l.EdgeIDBits(l.Relations) + BlockWords*(i*l.Relations+r)
}

// Words is how many there are.
func (l TypedLayout) Words() int { return l.Block(l.Hops, 0) }

// NewTypedBuilder is NewBuilder for a graph with types.
func NewTypedBuilder(l TypedLayout, guess int64) (*Builder, error) {
	b, err := newBuilder(l.Words(), guess)
	if err != nil {
		return nil, err
	}
	b.Set(WordSignature, TypedMagic)
	b.Set(TypedHops, int64(l.Hops))
	b.Set(TypedNumTypes, int64(l.Types))
	b.Set(TypedNumRelations, int64(l.Relations))
	return b, nil
}

// SetWords writes words from one on.
func (b *Builder) SetWords(first int, words ...int64) {
	for i, value := range words {
		b.Set(first+i, value)
	}
}

// Widths are the bytes of an id and of an edge's id.
type Widths struct{ ID, EdgeID int64 }

// Vertices is the bytes of a list of vertices, or of their trees.
func (w Widths) Vertices(n int64) int64 { return n * w.ID }

// Block is the bytes of a block's arrays.
func (w Widths) Block(rows, edges int64) (indptr, indices, edgeIDs int64) {
	return (rows + 1) * w.ID, edges * w.ID, edges * w.EdgeID
}

// EdgeWeights is the bytes of a block's factors.
func EdgeWeights(edges int64) int64 { return edges * 4 }

// Place gives the arrays of a batch their places, one behind another. Its value is the
// bytes so far; NewPlace begins behind the words.
type Place int64

// NewPlace is behind the words that describe a batch.
func NewPlace(hops int) Place { return Place(Words(hops) * 8) }

// Aligned is where the next array begins.
func (p Place) Aligned() int64 { return (int64(p) + Alignment - 1) &^ (Alignment - 1) }

// Next is the offset of n more bytes.
func (p *Place) Next(n int64) int64 {
	offset := p.Aligned()
	*p = Place(offset + n)
	return offset
}

// Builder lays out a batch while its sizes become known, hop by hop. It owns its
// memory until Finish; slices taken from Memory are void after Alloc.
type Builder struct {
	Memory memory.Memory
	used   Place
}

// NewBuilder begins a batch of the given number of hops, with room for a first
// guess of its bytes.
func NewBuilder(hops int, guess int64) (*Builder, error) { return NewProgramBuilder(hops, 0, guess) }

// NewProgramBuilder is NewBuilder for a batch with so many arrays beside its blocks.
func NewProgramBuilder(blocks, extras int, guess int64) (*Builder, error) {
	b, err := newBuilder(ProgramWords(blocks, extras), guess)
	if err != nil {
		return nil, err
	}
	b.Set(WordSignature, Magic)
	b.Set(WordHops, int64(blocks))
	b.Set(WordExtras, int64(extras))
	return b, nil
}

// newBuilder begins with so many words, which are 0.
func newBuilder(words int, guess int64) (*Builder, error) {
	used := Place(words * 8)
	m, err := memory.New(int64(used) + guess)
	if err != nil {
		return nil, err
	}
	clear(memory.At[int64](m, 0, int64(words)))
	return &Builder{Memory: m, used: used}, nil
}

// SetRows says that an array beside so many blocks is rows of so many numbers.
func (b *Builder) SetRows(blocks, extra int, width int64) {
	b.Set(ExtraAt(blocks, extra)+ExtraWidth, width+1)
}

// SetExtra writes the words of an array beside so many blocks: ids where it is a list, else float32.
func (b *Builder) SetExtra(blocks, extra int, list bool, length, offset int64) {
	at := ExtraAt(blocks, extra)
	if list {
		b.Set(at+ExtraKind, 1)
	}
	b.Set(at+ExtraLength, length)
	b.Set(at+ExtraOffset, offset)
}

// Alloc reserves n bytes on a cache line of their own and returns their offset.
func (b *Builder) Alloc(n int64) (int64, error) {
	used := b.used
	offset := used.Next(n)
	if err := b.Memory.Grow(int64(used)); err != nil {
		return 0, err
	}
	b.used = used
	return offset, nil
}

// Set writes a word of the header.
func (b *Builder) Set(word int, value int64) {
	memory.At[int64](b.Memory, 0, int64(word)+1)[word] = value
}

// SetBlock writes the words of block i, outermost first.
func (b *Builder) SetBlock(i int, words [BlockWords]int64) {
	for w, value := range words {
		b.Set(BlockAt(i)+w, value)
	}
}

// Finish closes the batch and hands its memory, with one reference, to the caller.
// untouched is how many of its bytes were reserved and never written.
func (b *Builder) Finish(untouched int64) memory.Memory {
	b.Set(WordSize, int64(b.used))
	b.Memory.SetSize(int64(b.used) - untouched)
	return b.Memory
}

// Discard gives the memory back; all of it counts as written, for the pool's bound.
func (b *Builder) Discard() {
	b.Memory.SetSize(int64(b.used))
	b.Memory.Release()
}
