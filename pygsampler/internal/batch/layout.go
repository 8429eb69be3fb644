// Package batch defines the memory of a sampled batch: one region that begins with a header of
// 64-bit words and holds every array at an offset, so that all arrays are views and one reference
// keeps them alive.
package batch

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Layout gives the positions of the words of a batch.
type Layout struct{ Hops, Types, Relations, Extras int }

// Homogeneous returns the layout of a batch of a homogeneous graph, which has one node type and one
// relation.
func Homogeneous(hops int) Layout { return Layout{Hops: hops, Types: 1, Relations: 1} }

// Type returns the first word of a node type.
func (l Layout) Type(t int) int { return FixedWords + TypeWords*t }

// Block returns the first word of a block; the blocks of the outermost hop are first.
func (l Layout) Block(hop, r int) int { return l.Type(l.Types) + BlockWords*(hop*l.Relations+r) }

// EdgeIDBits returns the word with the width of the edge ids of a relation.
func (l Layout) EdgeIDBits(r int) int { return l.Block(l.Hops, 0) + r }

// Count returns the word with the number of nodes of a type when a hop began, in the order of
// sampling: hop 0 is next to the seeds, and one word more follows the last hop.
func (l Layout) Count(t, hop int) int { return l.EdgeIDBits(l.Relations) + t*(l.Hops+1) + hop }

// Extra returns the first word of an extra array.
func (l Layout) Extra(i int) int { return l.Count(l.Types, 0) + ExtraWords*i }

// Words returns the number of words.
func (l Layout) Words() int { return l.Extra(l.Extras) }

// LayoutOf returns the layout in the first words of a batch, or false for any other words.
func LayoutOf(words []int64) (Layout, bool) {
	l := Layout{
		Hops: int(words[WordNumHops]), Types: int(words[WordNumTypes]),
		Relations: int(words[WordNumRelations]), Extras: int(words[WordNumExtras]),
	}
	return l, words[WordSignature] == Magic
}

// Block returns the words of a block of a homogeneous graph's batch.
func Block(words []int64, block int) []int64 {
	at := FirstBlock + BlockWords*block
	return words[at : at+BlockWords]
}

// SetWords writes words from the word first on.
func (b *Builder) SetWords(first int, words ...int64) {
	for i, value := range words {
		b.Set(first+i, value)
	}
}

// Widths are the bytes of a node id and of an edge id.
type Widths struct{ ID, EdgeID int64 }

// Nodes returns the bytes of a list of nodes, or of their trees.
func (w Widths) Nodes(n int64) int64 { return n * w.ID }

// Block returns the bytes of the arrays of a block.
func (w Widths) Block(rows, edges int64) (indptr, indices, edgeIDs int64) {
	return (rows + 1) * w.ID, edges * w.ID, edges * w.EdgeID
}

// EdgeWeights returns the bytes of the factors of a block.
func EdgeWeights(edges int64) int64 { return edges * 4 }

// Place assigns offsets to the arrays of a batch, one after another. Its value is the number of
// bytes so far.
type Place int64

// Place returns the offset after the words.
func (l Layout) Place() Place { return Place(l.Words() * 8) }

// Aligned returns the offset of the next array.
func (p Place) Aligned() int64 { return (int64(p) + Alignment - 1) &^ (Alignment - 1) }

// Next returns the offset of n more bytes.
func (p *Place) Next(n int64) int64 {
	offset := p.Aligned()
	*p = Place(offset + n)
	return offset
}

// Builder lays out a batch while its sizes become known, hop by hop. It owns its memory until
// Finish; slices of Memory are invalid after Alloc.
type Builder struct {
	Layout
	Memory memory.Memory
	used   Place
}

// NewBuilder starts a batch with room for an estimated number of bytes. Unset words are 0.
func NewBuilder(l Layout, guess int64) (*Builder, error) {
	used := l.Place()
	m, err := memory.New(int64(used) + guess)
	if err != nil {
		return nil, err
	}
	words := memory.ViewAt[int64](m, 0, int64(l.Words()))
	clear(words)
	words[WordSignature] = Magic
	words[WordNumHops], words[WordNumExtras] = int64(l.Hops), int64(l.Extras)
	words[WordNumTypes], words[WordNumRelations] = int64(l.Types), int64(l.Relations)
	return &Builder{Layout: l, Memory: m, used: used}, nil
}

// SetRows sets the width of an extra array whose elements are rows of width numbers.
func (b *Builder) SetRows(extra int, width int64) { b.Set(b.Extra(extra)+ExtraWidth, width+1) }

// SetExtra writes the words of an extra array: ids if it is a list, else float32.
func (b *Builder) SetExtra(extra int, list bool, length, offset int64) {
	at := b.Extra(extra)
	if list {
		b.Set(at+ExtraKind, 1)
	}
	b.Set(at+ExtraLength, length)
	b.Set(at+ExtraOffset, offset)
}

// Alloc reserves n bytes, aligned to a cache line, and returns their offset.
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
	memory.ViewAt[int64](b.Memory, 0, int64(word)+1)[word] = value
}

// SetBlock writes the words of block i of a homogeneous graph; the outermost block is first.
func (b *Builder) SetBlock(i int, words [BlockWords]int64) { b.SetWords(b.Block(i, 0), words[:]...) }

// Finish completes the batch and returns its memory, with one reference. untouched is the number of
// its bytes that were reserved and never written.
func (b *Builder) Finish(untouched int64) memory.Memory {
	b.Set(WordSize, int64(b.used))
	b.Memory.SetSize(int64(b.used) - untouched)
	return b.Memory
}

// Discard frees the memory; all of it counts as written, for the bound of the pool.
func (b *Builder) Discard() {
	b.Memory.SetSize(int64(b.used))
	b.Memory.Release()
}
