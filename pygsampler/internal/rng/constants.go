package rng

// The constants here are the kernels', too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Philox4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011.
const (
	philoxM0     = 0xD2511F53
	philoxM1     = 0xCD9E8D57
	philoxW0     = 0x9E3779B9
	philoxW1     = 0xBB67AE85
	philoxRounds = 10
)

// SplitMix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014. Its increment, and the factors of its finaliser.
const (
	golden    = 0x9E3779B97F4A7C15
	mixFirst  = 0xBF58476D1CE4E5B9
	mixSecond = 0x94D049BB133111EB
)

// spare is how many further draws by weight a row makes for each choice before it asks
// the sums.
const spare = 2

// gaps is the first draw, in units of the fanout, of the gaps between arrivals: after all draws
// that choices use.
const gaps = 2 + spare

// short is up to how many edges a row makes none of them: most would be refused.
const short = 32

// Purpose separates uses of the random numbers with the same seed, epoch and batch.
type Purpose uint8

const (
	// Neighbors is the choice of in-neighbors of a row.
	Neighbors Purpose = 0
	// Shuffling is the order of the seeds in an epoch.
	Shuffling Purpose = 1
	// Walking is the choice of a walk's edges. The number of the walk replaces the node of a row.
	Walking Purpose = 2
	// Candidates is the number that a node of a program draws, the same for all rows that read it.
	Candidates Purpose = 3
	// Negatives is the data of walks other than their steps: negative samples, and the windows of
	// their nodes. The number of the walk replaces the node of a row, and for a draw of a program
	// its number.
	Negatives Purpose = 4
	// Edges is the number that an edge of a program draws, by its original id.
	Edges Purpose = 5
	// Reservoirs is the choice of in-neighbors in a row that is scanned.
	Reservoirs Purpose = 6
)

// Positions of hop and purpose in word 1 of the counter, above the node's bits from 32 on.
const (
	hopShift     = 16
	purposeShift = 24
)
