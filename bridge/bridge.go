package bridge

import (
	"encoding/json"
	"fmt"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// Symbol returns the address of a C function that Python calls through ctypes.
func Symbol(name string) (address int64, err error) {
	defer finish(&err)
	return core.Symbol(name)
}

// ArrowExport returns the address of an Arrow C pair over CPU memory (device -1), which
// arrow_export takes over, or over device memory, for arrow_export_device. The memory records its
// device.
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

// relationAt returns the relation of a handle; nil for 0.
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

// GraphNew returns the handle of a homogeneous graph on the CPU or on a device; the words at the
// address words describe it, as in core.NewRelationAt. arrays lists the arrays that programs read,
// in the format of core.CSC; it is empty without them.
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

// ExpandRows returns a memory with the row of every edge of a block.
func ExpandRows(indptr, numRows, first, bits int64) (mem int64, err error) {
	defer finish(&err)
	return core.ExpandRows(indptr, numRows, first, int(bits))
}

// PlanRead checks the document of a plan. It returns the number of words that describe a batch,
// and, after a blank, the document with defaults filled in.
func PlanRead(document string) (words string, err error) {
	defer finish(&err)
	p, err := core.NewSampler(document, 0)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s", p.CUDA().Words(), p.Document), nil
}

// SamplerNew returns the handle of a sampler: the plan of a document, and a seed. Its launches take
// at most share thousandths of a device; 0 sets no bound.
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

// SamplerClose forgets the sampler; running jobs keep its plan.
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

// Quantize stores rows of floats in fewer bits, as core.Quantize does.
func Quantize(list int64) (place int64, err error) {
	defer finish(&err)
	return core.Quantize(list)
}

// Gather starts to copy rows of tables, as core.Gather does, and returns its job, negated. With
// prompt, it returns the memory instead if the rows are few enough to be copied at once.
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

// SetThreads bounds the number of threads that sample at once and returns the previous bound.
func SetThreads(n int64) (before int64, err error) {
	defer finish(&err)
	return core.SetThreads(n)
}

// Threads returns the bound that SetThreads sets.
func Threads() (n int64, err error) {
	defer finish(&err)
	return core.Threads(), nil
}

// MemoryStats returns the engine's counters as JSON.
func MemoryStats() (stats string, err error) {
	defer finish(&err)
	text, err := json.Marshal(core.Stats())
	return string(text), err
}

// MemoryNew returns a memory of size bytes with undefined content.
func MemoryNew(size int64) (mem int64, err error) {
	defer finish(&err)
	return core.NewMemory(size)
}

// Trim returns unused memory to the system (device -1) or to a device.
func Trim(device int64) (zero int64, err error) {
	defer finish(&err)
	if device != onCPU {
		return 0, core.DeviceTrim(device)
	}
	core.Trim()
	return 0, nil
}

// Shutdown ends all jobs.
func Shutdown() (zero int64, err error) {
	defer finish(&err)
	abortWriters()
	core.Shutdown()
	return 0, nil
}
