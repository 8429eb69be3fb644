package cuda

import (
	"errors"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// named holds copies of a graph's named arrays, for programs; they do not change while batches are
// running, and between batches only WriteEdges changes them. The zero value is empty.
type named struct {
	edges, vertices map[string]data
	held            []gpu.Memory
}

// data is an array of one number for each edge id, or node.
type data struct {
	address gpu.Address
	dtype   csc.DType
	length  int64
}

// Bring copies named arrays to the device, where programs read them until the graph is closed; it
// must be called before the first batch.
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

// writeArgs mirrors WriteArgs in kernels/graph/write_values.cu.
type writeArgs struct {
	To, IDs, Values gpu.Address
	Count, Length   uint64
}

func loadWrite(e *Engine) (*gpu.Kernel[writeArgs], error) {
	k, err := KernelOf[writeArgs](e, "write_values", "write_values", 0)
	return &k, err
}

// WriteEdges writes values of some edges, by their ids, into the named array of 64-bit floats that
// Bring has copied, and drops the results that programs have derived from arrays. ids must be
// distinct, and no batch of the graph may be running.
func (g *Graph) WriteEdges(name string, ids []int64, values []float64) (err error) {
	e, to := g.engine, g.named.edges[name]
	kernel, err := Cached(e, "write_values", loadWrite)
	if err != nil || len(ids) == 0 {
		return err
	}
	g.made.Lock()
	defer g.made.Unlock()
	s, bytes := e.stream, uint64(len(ids))*8
	m, err := e.pool.Alloc(s, 2*bytes)
	if err != nil {
		return err
	}
	args := writeArgs{to.address, m.Address, m.Address + gpu.Address(bytes), uint64(len(ids)), uint64(to.length)}
	err = errors.Join(
		freeAll(g.made.ofArrays, s),
		s.Upload(args.IDs, unsafe.Pointer(unsafe.SliceData(ids)), bytes),
		s.Upload(args.Values, unsafe.Pointer(unsafe.SliceData(values)), bytes),
	)
	if err == nil {
		blocks := min((args.Count+writeThreads-1)/writeThreads, 8*uint64(e.context.Properties().Multiprocessors))
		shape := gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{writeThreads}}
		err = kernel.Launch(s, shape, &args)
	}
	// Batches in other streams read the array.
	return errors.Join(err, m.Free(s), s.Synchronize())
}

func (n *named) free(s gpu.Stream) error {
	var errs []error
	for i := range n.held {
		errs = append(errs, n.held[i].Free(s))
	}
	*n = named{}
	return errors.Join(errs...)
}
