package program

// Poisson is what a program of hops is whose edges stay by chances, an edge where the number of its source is at most that: LABOR
// of a graph without weights.
type Poisson struct {
	K      []int64 // of each hop, the seeds' first: edges of a column in the mean; -1: all, of LABOR-0
	Rounds int     // i of LABOR-i
	Sites  []int   // whose numbers its sources have
	Values PoissonValues
}

// PoissonValues is what edges that stay have for values.
type PoissonValues uint8

const (
	NoValues  PoissonValues = iota
	OfChances               // one over its chance
	OfMeans                 // that over its mean in the column
)
