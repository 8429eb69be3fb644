package cuda

import (
	"errors"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// named is copies of a graph's named arrays, for programs; nothing changes in them while batches are on
// their way. The zero value has none.
type named struct {
	edges, vertices map[string]data
	held            []gpu.Memory
}

// data is an array of one number for each edge id, or vertex.
type data struct {
	address gpu.Address
	dtype   csc.DType
	length  int64
}

// Bring copies named arrays to the device, where programs read them until the graph is closed; before its
// first batch.
func (g *Graph) Bring(edges, vertices map[string]csc.Values) (err error) {
	s := g.engine.stream
	bring := func(from map[string]csc.Values) (map[string]data, error) {
		found := make(map[string]data, len(from))
		for name, v := range from {
			m, err := g.engine.pool.Alloc(s, uint64(max(v.Bytes(), 1)))
			if err != nil {
				return nil, err
			}
			g.named.held = append(g.named.held, m)
			if err := s.Upload(m.Address, v.Pointer(), uint64(v.Bytes())); err != nil {
				return nil, err
			}
			found[name] = data{m.Address, v.DType, v.Len()}
		}
		return found, nil
	}
	if g.named.edges, err = bring(edges); err == nil {
		g.named.vertices, err = bring(vertices)
	}
	if err == nil && len(g.named.held) > 0 {
		// Batches in other streams read them too.
		err = s.Synchronize()
	}
	if err != nil {
		return errors.Join(err, g.named.free(s))
	}
	return nil
}

func (n *named) free(s gpu.Stream) error {
	var errs []error
	for i := range n.held {
		errs = append(errs, n.held[i].Free(s))
	}
	*n = named{}
	return errors.Join(errs...)
}
