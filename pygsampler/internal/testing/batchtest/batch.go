// Package batchtest reads the memory of a batch into plain slices. It serves tests only.
package batchtest

import (
	"fmt"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Batch holds all arrays of a batch, and the widths of its ids.
type Batch struct {
	IDBits, EdgeIDBits         int64
	Nodes, Output, OutputIndex []int64
	Trees                      []int64 // nil where trees share nodes
	Blocks                     []Block
}

// Block is one hop of a batch.
type Block struct {
	Src, Dst, First          int64
	Indptr, Indices, EdgeIDs []int64
	EdgeWeights              []float32 // nil where there are none
}

// Ints copies n integers of bits bits from an offset in a memory.
func Ints(m memory.Memory, offset, n, bits int64) []int64 {
	if bits == 64 {
		return slices.Clone(memory.ViewAt[int64](m, offset, n))
	}
	wide := make([]int64, n)
	for i, v := range memory.ViewAt[int32](m, offset, n) {
		wide[i] = int64(v)
	}
	return wide
}

// Arrays copies the words of a batch of any graph, and all its arrays.
func Arrays(m memory.Memory, l batch.Layout) (words []int64, arrays [][]int64) {
	words = slices.Clone(memory.ViewAt[int64](m, 0, int64(l.Words())))
	ids := words[batch.WordIDBits]
	for t := range l.Types {
		about := words[l.Type(t):]
		arrays = append(arrays, Ints(m, about[batch.TypeNodes], about[batch.TypeNumNodes], ids))
		if at := about[batch.TypeSubgraphIDs]; at != 0 {
			arrays = append(arrays, Ints(m, at, about[batch.TypeNumNodes], ids))
		}
		for _, offset := range []int64{about[batch.TypeOutputNodes], about[batch.TypeOutputIndex]} {
			arrays = append(arrays, Ints(m, offset, about[batch.TypeNumOutput], ids))
		}
	}
	for hop := range l.Hops {
		for r := range l.Relations {
			b := words[l.Block(hop, r):]
			arrays = append(arrays,
				Ints(m, b[batch.BlockIndptr], b[batch.BlockNumDst]+1, ids), Ints(m, b[batch.BlockIndices], b[batch.BlockNumEdges], ids),
				Ints(m, b[batch.BlockEdgeIDs], b[batch.BlockNumEdges], words[l.EdgeIDBits(r)]))
			if at := b[batch.BlockEdgeWeights]; at != 0 {
				// The bits of factors, of 32 each.
				arrays = append(arrays, Ints(m, at, b[batch.BlockNumEdges], 32))
			}
		}
	}
	return words, arrays
}

// Read copies a batch. It panics if there is none.
func Read(m memory.Memory) (b Batch) {
	words := memory.ViewAt[int64](m, 0, batch.FixedWords)
	if words[batch.WordSignature] != batch.Magic {
		panic(fmt.Sprintf("header: expected %#x first, got %#x", batch.Magic, words))
	}
	hops := words[batch.WordNumHops]
	l := batch.Homogeneous(int(hops))
	words = memory.ViewAt[int64](m, 0, int64(l.Words()))
	b.IDBits, b.EdgeIDBits = words[batch.WordIDBits], words[l.EdgeIDBits(0)]
	b.Nodes = Ints(m, words[batch.WordNodes], words[batch.WordNumNodes], b.IDBits)
	b.Output = Ints(m, words[batch.WordOutputNodes], words[batch.WordNumOutput], b.IDBits)
	b.OutputIndex = Ints(m, words[batch.WordOutputIndex], words[batch.WordNumOutput], b.IDBits)
	if offset := words[batch.WordSubgraphIDs]; offset != 0 {
		b.Trees = Ints(m, offset, words[batch.WordNumNodes], b.IDBits)
	}
	for i := range hops {
		w := batch.Block(words, int(i))
		dst, edges := w[batch.BlockNumDst], w[batch.BlockNumEdges]
		block := Block{
			Src: w[batch.BlockNumSrc], Dst: dst, First: w[batch.BlockFirstDst],
			Indptr:  Ints(m, w[batch.BlockIndptr], dst+1, b.IDBits),
			Indices: Ints(m, w[batch.BlockIndices], edges, b.IDBits),
			EdgeIDs: Ints(m, w[batch.BlockEdgeIDs], edges, b.EdgeIDBits),
		}
		if offset := w[batch.BlockEdgeWeights]; offset != 0 {
			block.EdgeWeights = slices.Clone(memory.ViewAt[float32](m, offset, edges))
		}
		b.Blocks = append(b.Blocks, block)
	}
	return b
}

// Equal reports whether the batches have equal contents; nil is an empty array.
func (b Batch) Equal(c Batch) bool {
	return b.IDBits == c.IDBits && b.EdgeIDBits == c.EdgeIDBits && slices.Equal(b.Nodes, c.Nodes) &&
		slices.Equal(b.Output, c.Output) && slices.Equal(b.OutputIndex, c.OutputIndex) &&
		slices.Equal(b.Trees, c.Trees) && slices.EqualFunc(b.Blocks, c.Blocks, Block.equal)
}

func (b Block) equal(c Block) bool {
	return b.Src == c.Src && b.Dst == c.Dst && b.First == c.First && slices.Equal(b.Indptr, c.Indptr) &&
		slices.Equal(b.Indices, c.Indices) && slices.Equal(b.EdgeIDs, c.EdgeIDs) &&
		(b.EdgeWeights == nil) == (c.EdgeWeights == nil) && slices.Equal(b.EdgeWeights, c.EdgeWeights)
}
