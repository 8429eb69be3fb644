package walk

// The constants here are the kernels', too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Which of a step's own draws are for what. Try k of node2vec has so many from firstTry +
// tryDraws * k on: the proposal, the coin that accepts it, and the coin of the area.
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
