package program

// Poisson is what a program of hops is whose edges stay by a chance of their destination, an edge where the number of its
// source is at most that: LABOR-0 of a graph without weights.
type Poisson struct {
	K      []int64 // of each hop, the seeds' first: edges of a column in the mean; -1: all
	Sites  []int   // whose numbers its sources have
	Values PoissonValues
}

// PoissonValues is what edges that stay have for values.
type PoissonValues uint8

const (
	NoValues  PoissonValues = iota
	OfChances               // one over the chance
	OfMeans                 // that over its mean in the column
)
