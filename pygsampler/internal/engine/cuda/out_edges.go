package cuda

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/source"
)

// outEdgeIndex is the out-edges of a graph on a device, or the way to them: once batches have lost the time that finding all
// of them takes, they are found, and no loss is ever more than about twice what is least.
type outEdgeIndex struct {
	lost    float64 // nanoseconds
	refused bool    // there is no memory for them
}

// outEdges is the key of the out-edges among the derived data of a graph.
const outEdges = "out-edges"

// between sets the inputs of the choice for A[R, S]: the costs of both ways, and the out-edges if
// they exist, or if they are worth computing now.
func (p *Programs) between(f *Flight, args *programArgs) error {
	if !p.text.Between {
		return nil
	}
	g := f.graph
	d, _ := costs.MeasuredDevice()
	args.CostIn, args.CostBit, args.CostOut, args.CostMore = float32(d.In), float32(d.Bit), float32(d.Out), float32(d.More)
	g.made.Lock()
	defer g.made.Unlock()
	m, there := g.made.of[outEdges]
	starts := (4*(uint64(g.Nodes)+1) + 63) &^ 63
	if !there {
		if g.Edges == 0 || g.Edges >= MostEdges || !p.text.ByRows && (g.made.turning.refused || g.made.turning.lost < d.Turn*float64(g.Edges)) {
			return nil
		}
		if !p.text.ByRows {
			// Memory that a graph on the host does without, or that devices share, is not theirs to take.
			where, err := gpu.Locate(g.Indices)
			if err != nil {
				return err
			}
			if g.Shared || where.Host {
				g.made.turning.refused = true
				return nil
			}
		}
		var err error
		if m, err = p.turned(f, starts+8*uint64(g.Edges)); errors.Is(err, memory.ErrNoMemory) && !p.text.ByRows {
			g.made.turning.refused = true
			return nil
		} else if err != nil {
			return err
		}
		g.made.keep(outEdges, m)
	}
	args.OutStarts, args.OutEdges = m.Address, m.Address+gpu.Address(starts)
	return nil
}

// turned computes them, in bytes bytes of memory.
func (p *Programs) turned(f *Flight, bytes uint64) (gpu.Memory, error) {
	m, err := f.engine.pool.Alloc(f.stream, bytes)
	if err != nil {
		return m, err
	}
	text, words := source.Turning(), f.space.words()
	if err = p.tried(f, &text, keyOf(&text), m, 4*uint64(f.graph.Nodes)+64); err == nil {
		if status := atomic.SwapInt64(&words[ReportStatus], 0); status != StatusOK {
			err = fmt.Errorf("out-edges of a graph: a kernel reported status %d: a fault of pygsampler", status)
		}
	}
	if err != nil {
		return gpu.Memory{}, errors.Join(err, m.Free(f.stream))
	}
	return m, nil
}

// lost adds up what a batch has lost by the layouts that it had to take; its word is none of the batch's.
func (p *Programs) lost(f *Flight) {
	if !p.text.Between {
		return
	}
	g, word := f.graph, &f.batch.Header[batch.WordCapacity]
	g.made.Lock()
	defer g.made.Unlock()
	g.made.turning.lost += float64(*word)
	*word = 0
}
