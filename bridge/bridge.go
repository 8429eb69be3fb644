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

// ArrowExport is the address of an Arrow C pair; arrow_export takes it over.
func ArrowExport(mem, data, length, bits int64) (pair int64, err error) {
	defer finish(&err)
	return core.ArrowExport(mem, data, length, int(bits))
}

// ArrowImport describes a borrowed Arrow array as JSON.
func ArrowImport(schema, array int64) (description string, err error) {
	defer finish(&err)
	return core.ArrowImport(schema, array)
}

// graphAt is the graph of a handle; nil where that is 0.
func graphAt(handle int64) (*core.Graph, error) {
	if handle == 0 {
		return nil, nil
	}
	g, ok := graphs.get(handle)
	if !ok {
		return nil, closed("graph")
	}
	return g, nil
}

// GraphNew validates a borrowed CSC and returns its handle. alias and sums are what its
// rows draw by, or 0; whole is the graph of which it has some edges, or 0.
func GraphNew(indptr, indptrBits, numRows, indices, idBits, numEdges, edgeIDs, edgeIDBits, numNodes, alias, sums, whole int64) (graph int64, err error) {
	defer finish(&err)
	return newGraph(core.NewGraph, indptr, indptrBits, numRows, indices, idBits, numEdges, edgeIDs, edgeIDBits, numNodes, alias, sums, whole)
}

// newGraph is the handle of a graph that make makes of a CSC at Python's addresses.
func newGraph(make func(core.CSC) (*core.Graph, error), indptr, indptrBits, numRows, indices, idBits, numEdges, edgeIDs, edgeIDBits, numNodes, alias, sums, whole int64) (graph int64, err error) {
	all, err := graphAt(whole)
	if err != nil {
		return 0, err
	}
	g, err := make(core.CSC{
		Indptr: indptr, IndptrBits: int(indptrBits), NumRows: numRows,
		Indices: indices, IDBits: int(idBits), NumEdges: numEdges,
		EdgeIDs: edgeIDs, EdgeIDBits: int(edgeIDBits), NumNodes: numNodes,
		Alias: alias, Sums: sums, Whole: all,
	})
	if err != nil {
		return 0, err
	}
	return graphs.add(g), nil
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

// SamplerNew is the handle of a document's plan, and of a seed.
func SamplerNew(document string, seed int64) (sampler int64, err error) {
	defer finish(&err)
	p, err := core.NewSampler(document, uint64(seed))
	if err != nil {
		return 0, err
	}
	return samplers.add(p), nil
}

// SamplerWithin is SamplerNew, of a sampler whose launches take at most so many thousandths
// of a device.
func SamplerWithin(document string, seed, share int64) (sampler int64, err error) {
	defer finish(&err)
	p, err := core.NewSampler(document, uint64(seed))
	if err != nil {
		return 0, err
	}
	if p, err = p.Within(share); err != nil {
		return 0, err
	}
	return samplers.add(p), nil
}

// SamplerClose forgets the plan; jobs on their way keep theirs.
func SamplerClose(sampler int64) (zero int64, err error) {
	defer finish(&err)
	samplers.take(sampler)
	return 0, nil
}

// Submit queues a batch and returns its job, negated: where a call gives a memory or a
// job, what is positive is a memory.
func Submit(graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, threads int64) (job int64, err error) {
	defer finish(&err)
	j, err := start(core.Submit, graph, sampler, core.Call{
		Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch,
		Exclude: exclude, NumExclude: numExclude, Threads: threads,
	})
	if err != nil {
		return 0, err
	}
	return -jobs.add(j), nil
}

// Sample returns the memory of a batch where it is small enough to be made on the
// spot, else the job, negated, to wait for.
func Sample(graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, threads int64) (memOrJob int64, err error) {
	defer finish(&err)
	j, err := start(core.Sample, graph, sampler, core.Call{
		Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch,
		Exclude: exclude, NumExclude: numExclude, Threads: threads,
	})
	if err != nil {
		return 0, err
	}
	return handed(j)
}

// handed is the memory of a job that is finished, else the job, negated.
func handed(j *core.Job) (memOrJob int64, err error) {
	if address, finished, err := j.Wait(0); finished {
		return address, err
	}
	return -jobs.add(j), nil
}

func start(how func(*core.Graph, *core.Sampler, core.Call) (*core.Job, error), graph, sampler int64, c core.Call) (*core.Job, error) {
	g, o, err := open(&graphs, graph, sampler)
	if err != nil {
		return nil, err
	}
	return how(g, o, c)
}

// open is the graph of a table and the sampler with those handles.
func open[G any](of *table[G], graph, sampler int64) (g G, o *core.Sampler, err error) {
	g, ok := of.get(graph)
	if !ok {
		return g, nil, closed("graph")
	}
	if o, ok = samplers.get(sampler); !ok {
		return g, nil, closed("sampler")
	}
	return g, o, nil
}

// Gather queues the copying of rows of tables, as core.Gather says, and returns its job,
// negated.
func Gather(list, count, size, threads int64) (job int64, err error) {
	defer finish(&err)
	j, err := core.Gather(list, count, size, threads)
	if err != nil {
		return 0, err
	}
	return -jobs.add(j), nil
}

// GatherNow returns the memory where the rows are few enough to be copied on the spot,
// else the job, negated.
func GatherNow(list, count, size, threads int64) (memOrJob int64, err error) {
	defer finish(&err)
	j, err := core.GatherNow(list, count, size, threads)
	if err != nil {
		return 0, err
	}
	return handed(j)
}

// Wait waits up to timeoutMS milliseconds (-1: for ever) and returns the job's
// memory, or 0 while it is on its way.
func Wait(job, timeoutMS int64) (mem int64, err error) {
	defer finish(&err)
	j, ok := jobs.get(job)
	if !ok {
		return 0, closed("job")
	}
	address, finished, err := j.Wait(timeoutMS)
	if !finished {
		return 0, nil
	}
	if _, mine := jobs.take(job); !mine {
		// Another thread took the result, or cancelled, while this one waited.
		return 0, closed("job")
	}
	return address, err
}

// JobSpan waits as Wait does, and leaves the job as it is: it writes when the work on it
// began and ended, in nanoseconds of CLOCK_MONOTONIC, to an address, and returns 1.
func JobSpan(job, timeoutMS, address int64) (done int64, err error) {
	defer finish(&err)
	if err := room(2, address); err != nil {
		return 0, err
	}
	j, ok := jobs.get(job)
	if !ok {
		return 0, closed("job")
	}
	if finished, err := j.Span(timeoutMS, address); !finished || err != nil {
		return 0, err
	}
	return 1, nil
}

// Cancel ends a job; it returns once no memory of the graph is read for it.
func Cancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := jobs.take(job); ok {
		j.Cancel()
	}
	return 0, nil
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

// Trim gives memory that no batch uses back to the system.
func Trim() (zero int64, err error) {
	defer finish(&err)
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
