package cuda

// The constants here are the kernels', too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Words of a report: after the status come a detail, and the batch's header.
const (
	ReportStatus = iota
	ReportDetail
	ReportHeader
)

// Outcomes of a launch, in the first word of its report. Too small: the detail is the number of
// bytes that the kernel reached. Bins full: some node occurs too often, and the batch is repeated
// without bins. 6 is a status of research plans. Ranks full: the detail is their number. Work too
// small: the detail is the number of bytes of working memory that the program reached. Value
// refused: the detail is a node of the program; the bits of the value and its owner replace the
// header.
const (
	StatusOK             = 1
	StatusSeedOutOfRange = 2
	StatusTooSmall       = 3
	StatusTooManyEdges   = 4
	statusBinsFull       = 5
	statusRanksFull      = 7
	statusWorkTooSmall   = 8
	statusValueRefused   = 9
)

// Words of the report of validate.cu. A position is -1 if there is no violation; then its values
// are not written.
const (
	validateFirst = iota
	validateLast
	validateDecreaseAt
	validateDecreaseBefore
	validateDecreaseGot
	validateOutsideAt
	validateOutsideGot
	validateWords
)

// Limits of a batch.
const (
	MostHops  = 16
	MostEdges = 1 << 31 // of all hops, not reached: a rank and a sign share 32 bits
)

// Threads of a block: of neighbor.cu, and of the others.
const (
	threads           = 512
	validateThreads   = 512
	writeThreads      = 256 // of write_values.cu
	expandThreads     = 256
	factorThreads     = 256
	gatherThreads     = 256
	dequantizeThreads = 256
	walkThreads       = 128 // of walk.cu, a walk each, at most
	packThreads       = 256 // of walk.cu
	negativeThreads   = 256 // of negatives.cu, a number each
	tallyThreads      = 256 // of visit_counts.cu, a seed, at most
	contextThreads    = 128 // of context.cu, a warp a seed
	programThreads    = 512 // of programs
)

// Storage kinds and result types of dequantize.cu: the numbers of package quantized.
const (
	quantizedHalf = iota + 1
	quantizedBrain
	quantizedFloat8
	quantizedInt8
	quantizedInt4
)

// Floats that dequantize.cu writes.
const (
	readAsFloat = iota
	readAsHalf
	readAsBrain
)

// gatherParts is the number of tables that a launch of gather.cu reads.
const gatherParts = 8

// Direct is the largest fanout whose choices may be in shared memory.
const Direct = 32

// mostBatches is the maximal number of batches of a launch of neighbor.cu.
const mostBatches = 16

// Bins of neighbor.cu.
const (
	binRoom    = 4096 // pairs that a bin has room for
	binTable   = 8192 // places of the table of one bin in shared memory
	mostBins   = 16384
	fillStride = 16 // words from one bin's counter to the next: neighbors would queue in the cache
)

// segmentThreads is the number of threads of a block of segment.cu.
const segmentThreads = 256

// staticThreads is how many threads a block of static.cu has, but for those that sample, and
// staticSlots how many batches are on their way to where they stay.
const (
	staticThreads = 256
	staticSlots   = 3
)

// transpose.cu: the threads of a block; the maximal number of tiles of sources; the number of edges
// of a source from which on a block sorts them.
const (
	transposeThreads = 256
	transposeTiles   = 1024
	transposeLong    = 512
)

// cacheThreads is how many threads a block of cache.cu has; cacheChoices how many places a row
// that is not cached chooses among: with more of them the cache is nearer to what was used last,
// and each costs a read.
const (
	cacheThreads = 256
	cacheChoices = 8
)

// programArrays is how many of a graph's named arrays a program reads at most. The smallest of many
// keys are found by selectBits at a time, of which there are selectDigits; selectCells are the counters for three
// words of 64.
const (
	programArrays = 64
	selectBits    = 10
	selectDigits  = 1 << selectBits
	selectCells   = 3 * 7 * selectDigits
)
