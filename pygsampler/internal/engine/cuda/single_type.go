package cuda

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// SingleType samples a graph with one node type and one edge type by a plan of homogeneous graphs,
// with the same bytes: it skips the lookups that the kernel of many types does.
type SingleType struct {
	Plan
	Name string // of the node type
}

func (p *SingleType) outside(f *Flight, i int64) error {
	return fmt.Errorf("%w: seeds[%q][%d]: expected an id in [0, %d), got %s", request.ErrIndex, p.Name, i, f.graph.Nodes, f.seed(i))
}
