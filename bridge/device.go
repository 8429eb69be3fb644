package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// DeviceCount returns the number of CUDA devices, 0 without a driver.
func DeviceCount() (n int64, err error) {
	defer finish(&err)
	return core.DeviceCount()
}

// DeviceName returns the name of CUDA device i.
func DeviceName(i int64) (name string, err error) {
	defer finish(&err)
	return core.DeviceName(i)
}

// DriverVersion returns the CUDA version of the driver, 0 without one.
func DriverVersion() (version int64, err error) {
	defer finish(&err)
	return core.DriverVersion()
}

// DeviceUpload copies host memory to a device and returns when the copy is complete.
func DeviceUpload(device, address, bytes, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceUpload(device, address, bytes, stream)
}

// DeviceDownload copies device memory to the host and returns when the copy is complete.
func DeviceDownload(device, address, bytes, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceDownload(device, address, bytes, stream)
}

// DeviceAlloc returns new device memory for work that is enqueued on the stream.
func DeviceAlloc(device, bytes, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceAlloc(device, bytes, stream)
}

// DeviceRegister page-locks host memory until the returned memory is released.
func DeviceRegister(device, address, bytes int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceRegister(device, address, bytes)
}

// DeviceOrder makes a memory usable for work that is enqueued on the stream from now on.
func DeviceOrder(mem, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceOrder(mem, stream)
}

// DeviceAfter orders later work of a stream after the present work of another stream.
func DeviceAfter(device, stream, other int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceAfter(device, stream, other)
}

// DeviceExpand enqueues the expansion of blocks of batches into edge lists, as core.DeviceExpand
// does.
func DeviceExpand(device, count, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceExpand(device, count, list, stream)
}

// DeviceGather enqueues copies of rows of tables, as core.DeviceGather does.
func DeviceGather(device, count, list, beside, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceGather(device, count, list, beside != 0, stream)
}

// DeviceCachePut enqueues the copying of rows into a cache, as core.DeviceCachePut does.
func DeviceCachePut(device, list, places, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceCachePut(device, list, places, stream)
}

// DeviceCacheAdmit enqueues the admission of the rows of a gather to a cache, as
// core.DeviceCacheAdmit does.
func DeviceCacheAdmit(device, list, stamps, bids, now, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceCacheAdmit(device, list, stamps, bids, now, stream)
}

// DeviceCountIDs enqueues the counting of ids, as core.DeviceCountIDs does.
func DeviceCountIDs(device, ids, count, bits, counts, rows, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceCountIDs(device, ids, count, bits, counts, rows, stream)
}

// DeviceWriteEdges writes some values of an edge array of a graph on a device, as
// core.Relation.WriteEdges does.
func DeviceWriteEdges(graph int64, name string, ids, values, count int64) (zero int64, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	return 0, g.WriteEdges(name, ids, values, count)
}

// DeviceFill returns new device memory of 32-bit words that all have the same value.
func DeviceFill(device, words, value, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceFill(device, words, value, stream)
}

// DeviceDestinations returns a complete memory with the destinations of the edges of all blocks of
// a batch.
func DeviceDestinations(batch, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceDestinations(batch, stream)
}

// DeviceCapacity returns a sufficient number of bytes at Out for a batch of numSeeds seeds. If they
// are too few, Wait reports it; if they are enough, the header of the batch recommends a capacity
// for the next batch.
func DeviceCapacity(graph, sampler, numSeeds int64) (bytes int64, err error) {
	defer finish(&err)
	g, o, err := open(graph, sampler)
	if err != nil {
		return 0, err
	}
	return core.DeviceCapacity(g, o, numSeeds)
}

// DeviceConcurrency returns the number of batches of numSeeds seeds that may run at the same time,
// at most most, within budget bytes, as core.DeviceConcurrency does.
func DeviceConcurrency(graph, sampler, numSeeds, most, budget int64) (n int64, err error) {
	defer finish(&err)
	g, o, err := open(graph, sampler)
	if err != nil {
		return 0, err
	}
	return core.DeviceConcurrency(g, o, numSeeds, most, budget)
}

// DeviceStats returns the memory that this process holds on a device, as JSON.
func DeviceStats(device int64) (stats string, err error) {
	defer finish(&err)
	s, err := core.DeviceStats(device)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(s)
	return string(text), err
}
