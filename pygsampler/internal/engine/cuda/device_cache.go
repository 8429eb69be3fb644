package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/source"
)

// derivedCache holds data that is derived once from a graph, by name, such as the times of its
// edges, and results of programs that depend on the graph and its named arrays only, by the kernel
// that computed them. Both live until the graph is closed, the latter until the arrays change.
type derivedCache struct {
	sync.Mutex
	of, ofArrays map[string]gpu.Memory
	turning      outEdgeIndex
}

func (m *derivedCache) keep(key string, memory gpu.Memory) {
	if m.of == nil {
		m.of = make(map[string]gpu.Memory)
	}
	m.of[key] = memory
}

func (m *derivedCache) free(s gpu.Stream) error {
	return errors.Join(freeAll(m.of, s), freeAll(m.ofArrays, s))
}

func freeAll(held map[string]gpu.Memory, s gpu.Stream) error {
	var errs []error
	for key, memory := range held {
		errs = append(errs, memory.Free(s))
		delete(held, key)
	}
	return errors.Join(errs...)
}

// derivedKernel is the kernel that computes the cached inputs of a program.
type derivedKernel struct {
	text source.Text
	key  string
	err  error
}

func makingOf(p *program.Program, text *source.Text) derivedKernel {
	if len(text.Once) == 0 {
		return derivedKernel{}
	}
	made, err := source.NodeValues(p, text.Once)
	return derivedKernel{made, keyOf(&made), err}
}

// A first guess of the bytes that a whole graph takes to work in.
const (
	onceAnEdge  = 16
	onceAVertex = 64
)

// once returns the addresses of the inputs that depend on the graph only, computed now if they are
// missing: the only case in which a batch of a program waits for the device.
func (p *Programs) once(f *Flight) ([]gpu.Address, error) {
	if len(p.text.Once) == 0 {
		return nil, nil
	}
	if p.making.err != nil {
		return nil, p.making.err
	}
	g := f.graph
	offsets, bytes := make([]uint64, len(p.text.Once)), uint64(0)
	for i, node := range p.text.Once {
		size := uint64(8)
		switch p.program.Nodes[node].Type.Kind {
		case program.Vector:
			size *= uint64(g.Nodes)
		case program.Dense:
			size = 4 * uint64(g.Nodes) * p.rowWidth(g, node)
		}
		offsets[i] = bytes
		bytes += (size + 63) &^ 63
	}
	g.made.Lock()
	defer g.made.Unlock()
	m, there := g.made.ofArrays[p.making.key]
	if !there {
		var err error
		if m, err = g.engine.pool.Alloc(f.stream, bytes); err != nil {
			return nil, err
		}
		if err := p.make(f, m); err != nil {
			return nil, errors.Join(err, m.Free(f.stream))
		}
		if g.made.ofArrays == nil {
			g.made.ofArrays = make(map[string]gpu.Memory)
		}
		g.made.ofArrays[p.making.key] = m
	}
	found := make([]gpu.Address, len(offsets))
	for i, at := range offsets {
		found[i] = m.Address + gpu.Address(at)
	}
	return found, nil
}

// rowWidth returns the number of columns of dense rows: that of the array that they come from.
func (p *Programs) rowWidth(g *Graph, node int) uint64 {
	n := &p.program.Nodes[node]
	switch n.Op {
	case program.Multiply:
		return p.rowWidth(g, n.In[1])
	case program.Take:
		return p.rowWidth(g, n.In[0])
	}
	return uint64(g.named.vertices[n.Name].length / max(g.Nodes, 1))
}

// make runs the kernel that fills m, in memory of its own to work in.
func (p *Programs) make(f *Flight, m gpu.Memory) error {
	text, g, words := &p.making.text, f.graph, f.space.words()
	work := onceAnEdge*uint64(g.Edges) + onceAVertex*uint64(g.Nodes) + leastWork
	for range mostTries {
		if err := p.tried(f, text, p.making.key, m, work); err != nil {
			return err
		}
		detail := words[ReportDetail]
		switch status := atomic.SwapInt64(&words[ReportStatus], 0); status {
		case StatusOK:
			return nil
		case statusWorkTooSmall:
			work = max(2*work, uint64(detail)*5/4)
		case statusValueRefused:
			return p.refused(words, detail)
		default:
			return fmt.Errorf("what a program makes of the graph: a kernel reported status %d: a fault of pygsampler", status)
		}
	}
	return fmt.Errorf("%w: what a program makes of the graph alone takes more than %d bytes", memory.ErrNoMemory, work)
}

// tried is one launch, and the wait for it.
func (p *Programs) tried(f *Flight, text *source.Text, key string, m gpu.Memory, bytes uint64) error {
	var work, cells gpu.Memory
	pool, s := f.engine.pool, f.stream
	work, err := pool.Alloc(s, bytes)
	if err == nil {
		cells, err = pool.Alloc(s, max(uint64(text.Cells)*4, 4))
	}
	if err == nil {
		err = p.run(f, text, key, nil, nil, &programArgs{Work: work.Address, WorkBytes: work.Size, Out: m.Address, OutBytes: m.Size, Cells: cells.Address})
	}
	errs := []error{err, s.Synchronize()}
	for _, each := range []*gpu.Memory{&work, &cells} {
		if each.Address != 0 {
			errs = append(errs, each.Free(s))
		}
	}
	return errors.Join(errs...)
}
