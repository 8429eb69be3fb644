package walk

// The constants here are the kernels', too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// The purposes of a step's draws. Try k of node2vec has tryDraws draws from firstTry + tryDraws * k
// on: the proposal, the coin that accepts it, and the coin of the area.
const (
	stopDraw    = 0
	restartDraw = 1
	firstTry    = 2
	tryDraws    = 3
	tries       = 64
	classDraw   = firstTry + tryDraws*tries
	rankDraw    = classDraw + 1
)

// mostPath is how many kinds of edges a metapath has at most.
const mostPath = 64

// mostVisits is how many nodes the walks of a seed visit at most where the top ones are
// asked for: a block sorts them in shared memory. visitShift is where a visit's place among them
// stands below its node.
const (
	mostVisits = 2048
	visitShift = 16
)

// mostRoots is how many roots a walk of several has: a block keeps them in shared memory, in
// chunks of rootChunk.
const (
	mostRoots = 4096
	rootChunk = 128
)
