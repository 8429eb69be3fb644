package bridge

import (
	"encoding/json"
	"fmt"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// Symbol is the address of a C function that Python calls through ctypes.
func Symbol(name string) (address int64, err error) {
	defer finish(&err)
	return core.Symbol(name)
}

// ArrowExport is the address of an Arrow C pair over memory of the CPU (device -1), which arrow_export takes over, or
// of a device, for arrow_export_device. The memory knows of which device it is.
func ArrowExport(device, mem, data, length, bits int64) (pair int64, err error) {
	defer finish(&err)
	if device != onCPU {
		return core.DeviceArrowExport(mem, data, length, int(bits))
	}
	return core.ArrowExport(mem, data, length, int(bits))
}

// ArrowImport describes a borrowed Arrow array as JSON.
func ArrowImport(schema, array int64) (description string, err error) {
	defer finish(&err)
	return core.ArrowImport(schema, array)
}

// relationAt is the relation of a handle; nil where that is 0.
func relationAt(handle int64) (*core.Relation, error) {
	if handle == 0 {
		return nil, nil
	}
	return relationOf(handle)
}

// graphOf is the graph of a handle.
func graphOf(handle int64) (*core.Graph, error) { return itemOf[*core.Graph](&graphs, handle, "graph") }

// relationOf is the relation of a handle's homogeneous graph.
func relationOf(handle int64) (*core.Relation, error) {
	g, err := graphOf(handle)
	if err != nil {
		return nil, err
	}
	return g.Relation()
}

// GraphNew is the handle of a homogeneous graph that the words at an address describe, on the CPU or on a device, as
// core.NewRelationAt says. arrays is where the arrays lie that programs read, as core.CSC has it; "" without them.
func GraphNew(words int64, arrays string) (graph int64, err error) {
	defer finish(&err)
	r, err := core.NewRelationAt(words, arrays, relationAt)
	if err != nil {
		return 0, err
	}
	return graphs.add(core.Homogeneous(r)), nil
}

// GraphClose waits for the jobs that read the graph and forgets it.
func GraphClose(graph int64) (zero int64, err error) {
	defer finish(&err)
	if g, ok := graphs.take(graph); ok {
		g.Close()
	}
	return 0, nil
}

// GraphFromCOO builds a CSC from edge lists and returns its memory.
func GraphFromCOO(src, dst, bits, numEdges, numNodes int64) (mem int64, err error) {
	defer finish(&err)
	return core.FromCOO(src, dst, int(bits), numEdges, numNodes)
}

// ExpandRows is the row of every edge of a block, as a memory.
func ExpandRows(indptr, numRows, first, bits int64) (mem int64, err error) {
	defer finish(&err)
	return core.ExpandRows(indptr, numRows, first, int(bits))
}

// PlanRead checks the document of a plan. It returns how many words describe a batch,
// and after a blank the document with what was not given in it.
func PlanRead(document string) (words string, err error) {
	defer finish(&err)
	p, err := core.NewSampler(document, 0)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s", p.CUDA().Words(), p.Document), nil
}

// SamplerNew is the handle of a document's plan, and of a seed. Its launches take at most share thousandths of a
// device; 0: no bound.
func SamplerNew(document string, seed, share int64) (sampler int64, err error) {
	defer finish(&err)
	p, err := core.NewSampler(document, uint64(seed))
	if err != nil {
		return 0, err
	}
	if share != 0 {
		if p, err = p.Within(share); err != nil {
			return 0, err
		}
	}
	return samplers.add(p), nil
}

// SamplerClose forgets the plan; jobs on their way keep theirs.
func SamplerClose(sampler int64) (zero int64, err error) {
	defer finish(&err)
	samplers.take(sampler)
	return 0, nil
}

// open is the graph and the sampler with those handles.
func open(graph, sampler int64) (g *core.Graph, o *core.Sampler, err error) {
	if g, err = graphOf(graph); err != nil {
		return g, nil, err
	}
	o, err = itemOf[*core.Sampler](&samplers, sampler, "sampler")
	return g, o, err
}

// Quantize stores rows of floats in fewer bits, as core.Quantize says.
func Quantize(list int64) (place int64, err error) {
	defer finish(&err)
	return core.Quantize(list)
}

// Gather queues the copying of rows of tables, as core.Gather says, and returns its job, negated, or with prompt the
// memory where the rows are few enough to be copied on the spot.
func Gather(list, count, size, threads, prompt int64) (memOrJob int64, err error) {
	defer finish(&err)
	j, err := core.Gather(list, count, size, threads, prompt != 0)
	if err != nil {
		return 0, err
	}
	if prompt != 0 {
		if address, finished, err := j.Wait(0); finished {
			return address, err
		}
	}
	return -jobs.add(j), nil
}

// Shuffle permutes an array in place.
func Shuffle(array, length, bits, seed, epoch int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.Shuffle(array, length, int(bits), seed, epoch)
}

// SetThreads bounds how many threads sample at once; returns the bound before.
func SetThreads(n int64) (before int64, err error) {
	defer finish(&err)
	return core.SetThreads(n)
}

// Threads is the bound that SetThreads sets.
func Threads() (n int64, err error) {
	defer finish(&err)
	return core.Threads(), nil
}

// MemoryStats is the engine's counters as JSON.
func MemoryStats() (stats string, err error) {
	defer finish(&err)
	text, err := json.Marshal(core.Stats())
	return string(text), err
}

// MemoryNew is a memory of size bytes, which are undefined.
func MemoryNew(size int64) (mem int64, err error) {
	defer finish(&err)
	return core.NewMemory(size)
}

// Trim gives memory that no batch uses back to the system (device -1), or to a device.
func Trim(device int64) (zero int64, err error) {
	defer finish(&err)
	if device != onCPU {
		return 0, core.DeviceTrim(device)
	}
	core.Trim()
	return 0, nil
}

// Shutdown ends every job.
func Shutdown() (zero int64, err error) {
	defer finish(&err)
	abortWriters()
	core.Shutdown()
	return 0, nil
}
