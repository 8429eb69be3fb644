package pygsampler

import (
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// dataArray is the address and type of a named array of a graph.
type dataArray struct {
	DType           string
	Address, Length int64
}

// readData borrows the arrays of a text, which must stay as long as the graph: a JSON object
// {"edges": {name: {"dtype": ..., "address": ..., "length": ...}}, "nodes": {...}}. Floats of 16
// bits and unsigned integers are copied.
func (g *Relation) readData(text string) error {
	var data struct{ Edges, Vertices map[string]dataArray }
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return Errorf(KindValue, "graph: expected arrays in JSON, got %v", err)
	}
	var err error
	if g.csc.EdgeData, err = borrowData("edata", data.Edges); err != nil {
		return err
	}
	if g.csc.VertexData, err = borrowData("ndata", data.Vertices); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(g.csc.VertexData)) {
		if length := g.csc.VertexData[name].Len(); length != g.csc.NumNodes && (g.csc.NumNodes == 0 || length%g.csc.NumNodes != 0) {
			return Errorf(KindValue, "ndata[%q]: expected a value or a row for each of %d nodes, got %d", name, g.csc.NumNodes, length)
		}
	}
	return g.csc.CheckEdgeData()
}

// borrowData are arrays of what is called so.
func borrowData(what string, arrays map[string]dataArray) (map[string]csc.Values, error) {
	found := make(map[string]csc.Values, len(arrays))
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		a := arrays[name]
		if a.Length < 0 || a.Length > 1<<48 || a.Length > 0 && a.Address == 0 {
			return nil, Errorf(KindValue, "%s[%q]: expected an address and a length from 0 to 2^48, got %d elements at %#x", what, name, a.Length, a.Address)
		}
		wide, copied := csc.Widened(a.Address, a.Length, a.DType)
		if copied {
			// The slice that Values has of it keeps it.
			a.DType, a.Address = "float64", int64(uintptr(unsafe.Pointer(unsafe.SliceData(wide))))
		}
		dtype, known := csc.ParseDType(a.DType)
		if !known {
			return nil, Errorf(KindType, "%s[%q]: expected bool, integers or floats, got %s", what, name, a.DType)
		}
		found[name] = csc.BorrowValues(a.Address, a.Length, dtype)
		runtime.KeepAlive(wide)
	}
	return found, nil
}
