package pygsampler

import (
	"encoding/json"
	"sync"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Degrees counts the degrees of a graph on the host, in steps of some edges. It does not keep the
// graph open: after Graph.Close every method returns an error. Any goroutine may call it; calls are
// serialized.
type Degrees struct {
	relation *Relation
	mu       sync.Mutex
	count    *csc.Degrees // nil once closed
}

// NewDegrees starts to count; parallel counts parallel edges, too.
func NewDegrees(g *Relation, parallel bool) (*Degrees, error) {
	if g.device != nil {
		return nil, Errorf(KindValue, "graph: expected one in the host's memory, got one on a device")
	}
	count, err := csc.NewDegrees(&g.csc, parallel)
	if err != nil {
		return nil, err
	}
	return &Degrees{relation: g, count: count}, nil
}

// Advance counts about edges more edges, like csc.Degrees.
func (d *Degrees) Advance(edges int64) (row int64, err error) {
	err = d.within(func() (err error) {
		row, err = d.count.Advance(edges)
		return err
	})
	return row, err
}

// Profile returns the result as JSON once all edges are counted.
func (d *Degrees) Profile() (text string, err error) {
	err = d.within(func() error {
		raw, err := json.Marshal(d.count.Profile())
		text = string(raw)
		return err
	})
	return text, err
}

// Out returns the address of a memory with the out-degree of each node, int64, over the edges
// counted so far.
func (d *Degrees) Out() (address int64, err error) {
	err = d.within(func() error {
		n := d.relation.csc.NumNodes
		if err := memory.Affordable(8 * n); err != nil {
			return err
		}
		m, err := memory.New(max(8*n, 1))
		if err != nil {
			return err
		}
		m.SetSize(8 * n)
		d.count.Out(memory.ViewAt[int64](m, 0, n))
		address = m.Address()
		return nil
	})
	return address, err
}

// Close releases the memory.
func (d *Degrees) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count != nil {
		d.count.Free()
		d.count = nil
	}
}

func (d *Degrees) within(work func() error) (err error) {
	defer graphfile.RecoverFault(&err, "graph")
	defer graphfile.FaultsPanic()()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count == nil {
		return Errorf(KindClosed, "degrees: expected an open count, got a closed one")
	}
	if err := d.relation.enter(); err != nil {
		return err
	}
	defer d.relation.leave()
	return work()
}
