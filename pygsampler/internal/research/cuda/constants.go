package cuda

// The constants here are the kernels' of kernels/research too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// statusQueueFull is how a launch of queue.cu ends that ran out of room, next to the ends that all
// launches have. The detail is the bytes that the batch needs, if only those did not fit;
// else the header's first words are how many tasks, nodes and edges there were.
const statusQueueFull = 6

// Words behind REPORT_HEADER of a launch that ended with statusQueueFull.
const (
	queueFullTasks = iota
	queueFullFound
	queueFullEdges
)

// Words of the report of mode "bsp", which has its sizes one by one.
const (
	bspSize = iota // and 1
	_
	bspBadSeed // the lowest seed out of range
	bspRepeated
	reservoirHigh // rows of the high part, in mode "reservoir"
)

// Threads of a block.
const (
	queueThreads   = 512
	fusedThreads   = 512
	bspThreads     = 256
	orderThreads   = 256 // of reservoir.cu, a row each
	drawThreads    = 128 // of reservoir.cu, a warp a row
	transitThreads = 256
	khopThreads    = 256
)

// Counters of a step of transit.cu: walkers on transits that have few of them, and on those that
// have many, and tasks of the latter. The steps take turns with two sets.
const (
	transitFew = iota
	transitMany
	transitTasks
	transitCounters
)

// transit.cu: how many walkers a transit has at most that shares a warp with others; how many of
// them a block takes at most; how many edges of a row are in shared memory; nodes that a thread
// looks at side by side; and of so many nodes one has to have a walker, else walkers are asked
// where they are, and not nodes who is there.
const (
	transitWarp   = 32
	transitPiece  = 1024
	transitRow    = 2048
	transitSide   = 4
	transitSparse = 16
)

// Tiles of bsp.cu: rows, or edges and first occurrences, that know of each other.
const (
	bspRowTile  = 256
	bspEdgeTile = 1024
)

// degreeClasses is how many classes reservoir.cu sorts degrees into: four an octave, and one more, of
// which a thread of the block that comes last has each.
const degreeClasses = 256

// queueTile is the most tasks that a block of queue.cu works on at a time.
const queueTile = 256

// Counters of queue.cu, zero between launches but for the last, which is all ones.
const (
	queueProgress = iota // tasks published << 32 | tasks finished
	queueHead
	queueFound
	queueEdges
	queueStop
	queueLowestBad
)
