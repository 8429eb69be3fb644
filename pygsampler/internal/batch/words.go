package batch

// The constants here are those of Python and of the kernels, too: `go generate
// ./pygsampler/internal/constants` writes them down there. This file imports nothing.

// Magic is the first word of every batch ("PGSB").
const Magic = 0x50475342

// Alignment is what the offset of every array is a multiple of: each begins on a cache
// line of its own.
const Alignment = 64

// Words of the header. Offsets are in bytes from the start of the batch.
const (
	WordSignature = iota // Magic
	WordIDBits
	WordEdgeIDBits
	WordHops
	WordNumOutput   // seeds, duplicates counted
	WordNodes       // distinct vertices, by first occurrence
	WordNumNodes    //
	WordOutputNodes // the seeds as given; Nodes where they are distinct
	WordOutputIndex // for each seed its position in nodes
	WordSize        // bytes of the batch
	WordTrees       // for each vertex the seed whose tree it is in; 0 where trees share vertices
	WordCapacity    // of a batch in a caller's memory on a device: bytes that would do for the next
	HeaderWords     = 16
)

// Words of a block; blocks follow the header, outermost hop first.
const (
	BlockNumSrc = iota
	BlockNumDst
	BlockNumEdges
	BlockIndptr
	BlockIndices
	BlockEdgeIDs
	BlockFirstDst    // place of the first destination among the vertices
	BlockEdgeWeights // for each edge its factor, in float32; 0 where the plan asks for none
	BlockWords       = 8
)

// The words of a block that are offsets stand together.
const (
	BlockFirstOffset = BlockIndptr
	BlockOffsets     = 3
)
