package cuda

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// SingleType has a plan of homogeneous graphs make the batches of a graph with one node type and one edge
// type, which are the same bytes: it knows of neither what the kernel of many types looks up.
type SingleType struct {
	Plan
	Name string // of the node type
}

func (p *SingleType) outside(f *Flight, i int64) error {
	return fmt.Errorf("%w: seeds[%q][%d]: expected an id in [0, %d), got %s", request.ErrIndex, p.Name, i, f.graph.Nodes, f.seed(i))
}
