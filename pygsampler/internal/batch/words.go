package batch

// Python and the kernels use these constants, too: `go generate ./pygsampler/internal/constants`
// writes them there. This file imports nothing.

// HeaderVersion is the version of the words that describe a result. Other versions are rejected.
const HeaderVersion = 2

// Magic is the first word of every batch: "PGSB" in the low half, the version in the high one.
const Magic = HeaderVersion<<32 | 0x50475342

// Alignment is the number of bytes that the offset of every array is a multiple of: each array
// begins on its own cache line.
const Alignment = 64

// Words that every header begins with. Behind them come TypeWords for each node type, a block for
// each hop and relation, outermost hop first, the width of the edge ids of each relation, for each
// node type how many nodes it had when each hop began, and in the end, and the extra arrays.
// Offsets are in bytes from the start of the batch; 0 is none.
const (
	WordSignature = iota // Magic
	WordIDBits
	WordNumHops
	WordNumTypes
	WordNumRelations
	WordNumExtras
	WordSize     // bytes of the batch
	WordCapacity // of a batch in a caller's memory on a device: bytes that would do for the next
	FixedWords   = 8
)

// Words of a node type.
const (
	TypeNumNodes    = iota
	TypeNodes       // distinct nodes, by first occurrence
	TypeNumOutput   // seeds, duplicates counted
	TypeOutputNodes // the seeds with repetitions; Nodes if they are distinct
	TypeOutputIndex // for each seed its position in nodes
	TypeSubgraphIDs // for each node the seed of its subgraph; 0 where subgraphs share nodes
	TypeWords       = 8
)

// Words of the first node type, which is the only one of a homogeneous graph, and the first word of
// the blocks of such a graph.
const (
	WordNumNodes    = FixedWords + TypeNumNodes
	WordNodes       = FixedWords + TypeNodes
	WordNumOutput   = FixedWords + TypeNumOutput
	WordOutputNodes = FixedWords + TypeOutputNodes
	WordOutputIndex = FixedWords + TypeOutputIndex
	WordSubgraphIDs = FixedWords + TypeSubgraphIDs
	FirstBlock      = FixedWords + TypeWords
)

// Words of a block.
const (
	BlockNumSrc = iota
	BlockNumDst
	BlockNumEdges
	BlockIndptr
	BlockIndices
	BlockEdgeIDs
	BlockFirstDst    // place of the first destination among the nodes
	BlockEdgeWeights // for each edge its factor, in float32; 0 where the plan asks for none
	BlockWords       = 8
)

// Words of an extra array.
const (
	ExtraKind   = iota // 0: float32; 1: ids
	ExtraLength        //
	ExtraOffset        //
	ExtraWidth         // of dense rows: how many numbers each has, and 1 more; 0: of another array
	ExtraWords  = 4
)

// WalkMagic is the first word of walks: "PGSW", and the version.
const WalkMagic = HeaderVersion<<32 | 0x50475357

// Words of walks, after the common words of headers.
const (
	WalkEdgeIDBits = FixedWords + iota
	WalkSteps      // of a walk at most
	WalkNumWalks
	WalkNodes    // [steps + 1][walks]: where each walk is; -1 after its end
	WalkNumNodes //
	WalkEdgeIDs  // [steps][walks]; -1 where no edge was taken; 0: not asked for
	WalkNumEdges //
	WalkLengths  // of each walk its steps
	WalkPerSeed  // walks of each seed, one behind another
	WalkNumTop   //
	WalkTopNodes // [seeds][top]: which nodes its walks have visited most; -1 behind them
	WalkVisits   // [seeds][top]: how often; 0 behind them
	WalkSlots    // [steps][walks]: which of a sample's roots took the step; 0: they have one each
	WalkWords    = 24
)

// ContextMagic is the first word of contexts: "PGSC", and the version.
const ContextMagic = HeaderVersion<<32 | 0x50475343

// Words of contexts, after the common words of headers.
const (
	ContextNumSeeds  = FixedWords + iota
	ContextPlaces    // of rows of a context at most
	ContextNumPlaces // of all contexts
	ContextNodes     // [seeds][places]; -1 behind a context's rows, as in all but the last three
	ContextTypes     // the same: of each row its node type; 0: a homogeneous graph has none
	ContextHops      // the same: how many edges a row is from the seed
	ContextParents   // the same: the place of the row that it was reached from; -1 for a seed
	ContextMask      // the same: whether there is a row
	ContextCells     // the same: how many cells a row has, 0 for none; 0: the budget counts rows
	ContextLengths   // [seeds]: rows of each context
	ContextWords     = 24
)

// StepMagic is the first word of samples by steps: "PGSH", and the version.
const StepMagic = HeaderVersion<<32 | 0x50475348

// Words of samples by steps, after the common words of headers.
const (
	StepEdgeIDBits = FixedWords + iota
	StepSteps      // of a sample
	StepNumSamples
	StepNodes         // [samples] roots, then for each step [samples][width]; -1 where there is none
	StepNumNodes      //
	StepEdgeIDs       // for each step [samples][width]; -1 where there is none; 0: not asked for
	StepNumEdges      //
	StepWidths   = 16 // of each step: nodes of a sample
	StepWords    = 32 // for 16 steps
)

// Places of the two widths that descriptors of a block name, in a list that begins with a 0.
const (
	WidthIDs     = 1
	WidthEdgeIDs = 2
)

// The words of a block that are offsets are adjacent.
const (
	BlockFirstOffset = BlockIndptr
	BlockOffsets     = 3
)
