// Package cuda is the CUDA engine: it launches the kernels, one Args struct each,
// and owns the device memory that they work in.
package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/kernels"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
)

// Engine is a device with the kernels loaded. Any number of goroutines may use it;
// each batch in flight has a workspace of its own.
type Engine struct {
	context *gpu.Context
	module  *gpu.Module
	pool    *gpu.Pool
	narrow  gpu.Kernel[neighborArgs] // graphs of int32 ids
	wide    gpu.Kernel[neighborArgs]

	mu   sync.Mutex
	idle []*workspace
}

// keep is how much freed memory the pool holds back from the device.
const keep = 1 << 30

// Open takes a hold on a device and loads the kernels for it.
func Open(device int) (e *Engine, err error) {
	e = &Engine{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if e.context, err = gpu.Retain(device); err != nil {
		return e, err
	}
	p := e.context.Properties()
	if !p.Cooperative {
		return e, fmt.Errorf("pygsampler: %s: expected a device with cooperative launches, got one without", p.Name)
	}
	image, err := kernels.Image("neighbor", p.Major, p.Minor)
	if err != nil {
		return e, err
	}
	if e.module, err = e.context.Load(image); err != nil {
		return e, err
	}
	for name, k := range map[string]*gpu.Kernel[neighborArgs]{"neighbor32": &e.narrow, "neighbor64": &e.wide} {
		if *k, err = gpu.KernelOf[neighborArgs](e.module, name); err != nil {
			return e, err
		}
		if err = k.AllowShared(sharedBytes(direct)); err != nil {
			return e, err
		}
	}
	e.pool, err = e.context.NewPool(keep)
	return e, err
}

// Close gives everything back; no batch may be in flight.
func (e *Engine) Close() error {
	var errs []error
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.idle {
		errs = append(errs, w.close())
	}
	e.idle = nil
	if e.pool != nil {
		errs = append(errs, e.pool.Close())
	}
	if e.module != nil {
		errs = append(errs, e.module.Close())
	}
	if e.context != nil {
		errs = append(errs, e.context.Close())
	}
	return errors.Join(errs...)
}

// Graph is a graph in the memory of an engine's device.
type Graph struct {
	engine                   *Engine
	indptr, indices, edgeIDs gpu.Memory
	indptrBits, idBits       int
	edgeIDBits, sampleBits   int // of EdgeIDs, 0 without; of the edge ids of a sample
	rows, nodes, edges       int64
}

// Upload copies a graph to the device; the copies are made when it returns.
func (e *Engine) Upload(g *csc.Graph) (d *Graph, err error) {
	d = &Graph{
		engine: e, indptrBits: g.Indptr.Bits, idBits: g.Indices.Bits, edgeIDBits: g.EdgeIDs.Bits,
		sampleBits: g.EdgeIDBits(), rows: g.Rows(), nodes: g.NumNodes, edges: g.NumEdges(),
	}
	stream, err := e.context.NewStream()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	for _, part := range []struct {
		to   *gpu.Memory
		from csc.Array
	}{{&d.indptr, g.Indptr}, {&d.indices, g.Indices}, {&d.edgeIDs, g.EdgeIDs}} {
		bytes := uint64(part.from.Len()) * uint64(part.from.Bits/8)
		if *part.to, err = e.pool.Alloc(stream, bytes); err == nil {
			err = stream.Upload(part.to.Address, part.from.Pointer(), bytes)
		}
		if err != nil {
			return nil, errors.Join(err, d.free(stream))
		}
	}
	return d, stream.Synchronize()
}

// Close frees the device's copy; no batch of the graph may be in flight.
func (d *Graph) Close() error {
	stream, err := d.engine.context.NewStream()
	if err != nil {
		return err
	}
	return errors.Join(d.free(stream), stream.Synchronize(), stream.Close())
}

func (d *Graph) free(s gpu.Stream) error {
	return errors.Join(d.indptr.Free(s), d.indices.Free(s), d.edgeIDs.Free(s))
}
