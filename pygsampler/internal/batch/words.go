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
	WordExtras      // how many arrays more there are, described behind the blocks
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

// Words of an array more; they follow the blocks.
const (
	ExtraKind   = iota // 0: float32; 1: ids
	ExtraLength        //
	ExtraOffset        //
	ExtraWidth         // of dense rows: how many numbers each has, and 1 more; 0: of another array
	ExtraWords  = 4
)

// WalkMagic is the first word of walks ("PGSW").
const WalkMagic = 0x50475357

// Words of walks. Those that are not here are where the header of a batch has them: the
// widths of ids, the size and the capacity.
const (
	WalkSteps    = WordHops      // of a walk at most
	WalkNumWalks = WordNumOutput //
	WalkNodes    = WordNodes     // [steps + 1][walks]: where each walk is; -1 after its end
	WalkNumNodes = WordNumNodes  //
	WalkEdgeIDs  = 7             // [steps][walks]; -1 where no edge was taken; 0: not asked for
	WalkNumEdges = 8             //
	WalkLengths  = WordTrees     // of each walk its steps
	WalkPerSeed  = 12            // walks of each seed, one behind another
	WalkNumTop   = 13            //
	WalkTopNodes = 14            // [seeds][top]: which vertices its walks have visited most; -1 behind them
	WalkVisits   = 15            // [seeds][top]: how often; 0 behind them
	WalkSlots    = 16            // [steps][walks]: which of a sample's roots took the step; 0: they have one each
	WalkWords    = 20
)

// StepMagic is the first word of samples by steps ("PGSH").
const StepMagic = 0x50475348

// Words of samples by steps. Those that are not here are where the header of a batch has them.
const (
	StepSteps      = WordHops      // of a sample
	StepNumSamples = WordNumOutput //
	StepNodes      = WordNodes     // [samples] roots, then for each step [samples][width]; -1 where there is none
	StepNumNodes   = WordNumNodes  //
	StepEdgeIDs    = 7             // for each step [samples][width]; -1 where there is none; 0: not asked for
	StepNumEdges   = 8             //
	StepWidths     = 16            // of each step: vertices of a sample
	StepWords      = 32            // for 16 steps
)

// The words of a block that are offsets stand together.
const (
	BlockFirstOffset = BlockIndptr
	BlockOffsets     = 3
)
