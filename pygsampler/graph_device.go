package pygsampler

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// deviceGraph holds the addresses of a graph's arrays for a device.
type deviceGraph struct {
	index  int
	engine *cuda.Engine
	graph  *cuda.Graph
	host   *Relation // the same graph on the host, for lookups of edge ids; nil: there is none
}

// opened is the engines in use, so that questions for figures open none. It is read at
// each call, by threads of all devices, and so without a lock; a change replaces it.
var opened struct {
	sync.Mutex
	of atomic.Pointer[map[int]*cuda.Engine]
}

// openedDevice returns the engine of a device, nil if the device is not in use.
func openedDevice(device int64) *cuda.Engine {
	if known := opened.of.Load(); known != nil {
		return (*known)[int(device)]
	}
	return nil
}

func openDevice(device int64) (*cuda.Engine, error) {
	if e := openedDevice(device); e != nil {
		return e, nil
	}
	e, err := cuda.Open(int(device))
	if err == nil {
		err = memory.OpenDevice(int(device))
	}
	if err != nil {
		return nil, onDevice(err)
	}
	opened.Lock()
	defer opened.Unlock()
	more := make(map[int]*cuda.Engine)
	if known := opened.of.Load(); known != nil {
		maps.Copy(more, *known)
	}
	more[int(device)] = e
	opened.of.Store(&more)
	return e, nil
}

// NewDeviceRelation borrows the arrays of a CSC that a device reads: its own memory, or page-locked
// memory of the host. Unless they are trusted, a kernel validates them after all work of the
// device. host, if not nil, is the same graph on the CPU; the device copies its named arrays.
func NewDeviceRelation(device int64, c CSC, trusted bool, host *Relation) (*Relation, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if host != nil && host.device != nil {
		return nil, Errorf(KindValue, "graph: expected the same one on the CPU, got one on cuda:%d", host.device.index)
	}
	if err := csc.CheckSizes(c.NumRows, c.NumNodes, c.Kinds, c.IDBits); err != nil {
		return nil, err
	}
	if b := c.Back; b != nil && (b.device == nil || b.device.index != int(device)) {
		return nil, Errorf(KindValue, "graph: expected its transposed one on cuda:%d too, got one elsewhere", device)
	}
	e, err := openDevice(device)
	if err != nil {
		return nil, err
	}
	for _, a := range []struct {
		name    string
		address int64
		needed  bool
	}{{"indptr", c.Indptr, true}, {"indices", c.Indices, c.NumEdges > 0}, {"edge_ids", c.EdgeIDs, c.EdgeIDs != 0 && c.NumEdges > 0},
		{"alias", c.Alias, c.Alias != 0 && c.NumEdges > 0}, {"sums", c.Sums, c.Sums != 0 && c.NumEdges > 0}} {
		if a.needed {
			if err := readable(a.name, a.address, int(device)); err != nil {
				return nil, err
			}
		}
	}
	arrays := cuda.Arrays{
		Indptr: gpu.Address(c.Indptr), IndptrBits: c.IndptrBits, Indices: gpu.Address(c.Indices), IDBits: c.IDBits,
		EdgeIDs: gpu.Address(c.EdgeIDs), EdgeIDBits: c.EdgeIDBits, Rows: c.NumRows, Nodes: c.NumNodes, Edges: c.NumEdges,
		Alias: gpu.Address(c.Alias), Sums: gpu.Address(c.Sums), Kinds: c.Kinds,
		Shared: gpu.InSpan(gpu.Address(c.Indices)),
	}
	if !trusted {
		if err := e.Context().Synchronize(); err != nil {
			return nil, err
		}
		if err := e.Validate(arrays); err != nil {
			return nil, onDevice(err)
		}
		// Tables come from the host alone.
		if host != nil && host.csc.Alias != nil {
			if err := weights.Check(&host.csc); err != nil {
				return nil, err
			}
		}
	}
	graph := e.NewGraph(arrays)
	if c.Back != nil {
		graph.Back = c.Back.device.graph
	}
	if err := graph.Load(); err != nil {
		return nil, onDevice(err)
	}
	if host != nil {
		if err := graph.Bring(host.csc.EdgeData, host.csc.VertexData); err != nil {
			return nil, onDevice(err)
		}
	}
	g := &Relation{device: &deviceGraph{int(device), e, graph, host}, flying: make(map[*DeviceJob]struct{})}
	g.idle = sync.NewCond(&g.mu)
	return g, nil
}

// WriteEdges copies values of edges, 64-bit floats, from a named array on the host to the device's
// copy of the array; ids is the address of the edge ids. No batch of the relation may be running.
func (g *Relation) WriteEdges(name string, ids, values, count int64) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.leave()
	if g.device == nil || g.device.host == nil {
		return Errorf(KindValue, "graph: expected one of a CUDA device that came from the CPU, got another one")
	}
	if count < 0 || count > 0 && (ids == 0 || values == 0) {
		return Errorf(KindValue, "ids: expected addresses of at least 0 ids and values, got %d at %#x and %#x", count, ids, values)
	}
	array, is := g.device.host.csc.EdgeData[name]
	if !is || array.DType != csc.Float64 {
		return Errorf(KindValue, "edata[%q]: expected an array of float64 that the relation came with, got none", name)
	}
	edges := memory.View[int64](ids, count)
	for i, id := range edges {
		if id < 0 || id >= array.Len() {
			return Errorf(KindIndex, "ids[%d]: expected an id in [0, %d), got %d", i, array.Len(), id)
		}
	}
	return onDevice(g.device.graph.WriteEdges(name, edges, memory.View[float64](values, count)))
}

// readable refuses an address at which a kernel would fault: that ends the whole
// context, torch's work with it.
func readable(name string, address int64, device int) error {
	if address == 0 {
		return Errorf(KindValue, "%s: expected an address, got 0", name)
	}
	l, err := gpu.Locate(gpu.Address(address))
	switch {
	case err != nil:
		return err
	case l.Host && l.Device < 0:
		return Errorf(KindValue, "%s: expected memory that cuda:%d can read, got host memory that is not page-locked", name, device)
	case !l.Host && l.Device != device:
		return Errorf(KindValue, "%s: expected memory of cuda:%d, got memory of cuda:%d", name, device, l.Device)
	}
	return nil
}

// positions returns the positions of edges in the CSC by their ids.
func (d *deviceGraph) positions(ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if d.host != nil {
		if err := d.host.enter(); err != nil {
			return nil, err
		}
		defer d.host.leave()
		return d.host.csc.Positions(ids)
	}
	if d.graph.EdgeIDs != 0 {
		return nil, Errorf(KindValue, "exclude: expected a graph without edge_ids, or one that came from the CPU, "+
			"where their positions are looked up; got one of arrays of cuda:%d", d.index)
	}
	for i, id := range ids {
		if id < 0 || id >= d.graph.Edges {
			return nil, Errorf(KindValue, "exclude[%d]: expected the id of an edge of the graph, got %d", i, id)
		}
	}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// streamOf returns the engine of a device and a wrapped stream of a caller.
func streamOf(device, stream int64) (*cuda.Engine, gpu.Stream, error) {
	e, err := openDevice(device)
	if err != nil {
		return nil, gpu.Stream{}, err
	}
	s, err := e.Context().Wrap(uintptr(stream))
	return e, s, err
}
