package cuda

// The constants here are the kernels', too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Words of a report: after the status come a detail, and the batch's header.
const (
	ReportStatus = iota
	ReportDetail
	ReportHeader
)

// How a launch ends, in the first word of its report. Too small: the detail is to how
// many bytes the kernel got. Bins full: some vertex came too often; again, without
// bins. 6 is a status of research plans. Ranks full: the detail is how many there are. Work too small: the detail is how
// many bytes of working memory the program got to. Value refused: the detail is a node of the program;
// where the header would be stand the bits of the value, and whose it is.
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

// Words of the report of validate.cu. A place is -1 where there is no offender; then
// its values are not written.
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

// How values of dequantize.cu are stored, and what they are read as: the numbers of package quantized.
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

// gatherParts is how many tables a launch of gather.cu reads.
const gatherParts = 8

// Direct is the largest fanout whose choices may stand in shared memory.
const Direct = 32

// mostBatches is how many batches a launch of neighbor.cu makes.
const mostBatches = 16

// Bins of neighbor.cu.
const (
	binRoom    = 4096 // pairs that a bin has room for
	binTable   = 8192 // places of the table of one bin in shared memory
	mostBins   = 16384
	fillStride = 16 // words from one bin's counter to the next: neighbours would queue in the cache
)

// segmentThreads is how many threads a block of segment.cu has.
const segmentThreads = 256

// staticThreads is how many threads a block of static.cu has, but for those that sample, and
// staticSlots how many batches are on their way to where they stay.
const (
	staticThreads = 256
	staticSlots   = 3
)

// transpose.cu: threads of a block; at most so many tiles of sources; from how many edges of a
// source on a block sorts them.
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
