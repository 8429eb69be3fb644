package program

// Poisson describes a program of hops of Poisson sampling, which select an edge if the number of
// its source is at most the chance: LABOR of a graph without weights.
type Poisson struct {
	K      []int64 // of each hop, the seeds' first: edges of a column in the mean; -1: all, of LABOR-0
	Rounds int     // i of LABOR-i
	Sites  []int   // whose numbers its sources have
	Values PoissonValues
}

// PoissonValues is the kind of the values of selected edges.
type PoissonValues uint8

const (
	NoValues  PoissonValues = iota
	OfChances               // one over its chance
	OfMeans                 // that over its mean in the column
)
