package cuda

import (
	"errors"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// copies returns the device's copy of csc.Copies of the graph, 0 if it has no parallel edges. They
// are computed once, on the CPU, which needs a copy of the rows there.
func (g *Graph) copies() (gpu.Address, error) {
	const name = "copies"
	g.made.Lock()
	defer g.made.Unlock()
	if m, is := g.made.of[name]; is {
		return m.Address, nil
	}
	s := g.engine.stream
	host := csc.Relation{NumNodes: g.Nodes}
	var err error
	if host.Indptr, err = onHost(s, g.Indptr, g.Rows+1, g.IndptrBits); err != nil {
		return 0, err
	}
	if host.Indices, err = onHost(s, g.Indices, g.Edges, g.IDBits); err != nil {
		return 0, err
	}
	of, err := host.Copies()
	var m gpu.Memory
	if err == nil && of != nil {
		size := uint64(len(of)) * 4
		if m, err = g.engine.pool.Alloc(s, size); err != nil {
			return 0, err
		}
		// Batches in other streams read them too.
		err = errors.Join(s.Upload(m.Address, unsafe.Pointer(unsafe.SliceData(of)), size), s.Synchronize())
		if err != nil {
			return 0, errors.Join(err, m.Free(s))
		}
	}
	if err == nil {
		g.made.keep(name, m)
	}
	return m.Address, err
}

// onHost copies an array of n integers from the device.
func onHost(s gpu.Stream, from gpu.Address, n int64, bits int) (csc.Array, error) {
	if bits == 32 {
		to := make([]int32, n)
		return csc.Array{I32: to, Bits: 32}, s.Download(unsafe.Pointer(unsafe.SliceData(to)), from, uint64(n)*4)
	}
	to := make([]int64, n)
	return csc.Array{I64: to, Bits: 64}, s.Download(unsafe.Pointer(unsafe.SliceData(to)), from, uint64(n)*8)
}
