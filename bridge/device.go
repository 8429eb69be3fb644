package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// DeviceCount is the number of CUDA devices, 0 without a driver.
func DeviceCount() (n int64, err error) {
	defer finish(&err)
	return core.DeviceCount()
}

// DeviceName is the name of CUDA device i.
func DeviceName(i int64) (name string, err error) {
	defer finish(&err)
	return core.DeviceName(i)
}

// DriverVersion is the CUDA version of the driver, 0 without one.
func DriverVersion() (version int64, err error) {
	defer finish(&err)
	return core.DriverVersion()
}

// DeviceUpload copies host memory to a device; the memory is complete.
func DeviceUpload(device, address, bytes, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceUpload(device, address, bytes, stream)
}

// DeviceDownload copies memory of a device to the host; the memory is complete.
func DeviceDownload(device, address, bytes, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceDownload(device, address, bytes, stream)
}

// DeviceAlloc is new memory of a device, for work that is put into the stream.
func DeviceAlloc(device, bytes, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceAlloc(device, bytes, stream)
}

// DeviceRegister page-locks host memory until the memory that it returns is
// released.
func DeviceRegister(device, address, bytes int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceRegister(device, address, bytes)
}

// DeviceOrder lets work that is put into the stream from now on use a memory.
func DeviceOrder(mem, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceOrder(mem, stream)
}

// DeviceAfter lets work that is put into a stream from now on come after what is in another now.
func DeviceAfter(device, stream, other int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceAfter(device, stream, other)
}

// DeviceExpand puts the edges of batches' blocks one by one into a stream, as
// core.DeviceExpand says.
func DeviceExpand(device, count, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceExpand(device, count, list, stream)
}

// DeviceGather puts copies of tables' rows into a stream, as core.DeviceGather says.
func DeviceGather(device, count, list, beside, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceGather(device, count, list, beside != 0, stream)
}

// DeviceCachePut puts into a stream what brings rows into a cache, as core.DeviceCachePut says.
func DeviceCachePut(device, list, places, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceCachePut(device, list, places, stream)
}

// DeviceCacheAdmit puts into a stream what lets a cache have the rows of a gather, as
// core.DeviceCacheAdmit says.
func DeviceCacheAdmit(device, list, stamps, bids, now, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceCacheAdmit(device, list, stamps, bids, now, stream)
}

// DeviceCountIDs puts into a stream what counts ids, as core.DeviceCountIDs says.
func DeviceCountIDs(device, ids, count, bits, counts, rows, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceCountIDs(device, ids, count, bits, counts, rows, stream)
}

// DeviceWriteEdges writes some values of an array of a graph on a device, as core.Relation.WriteEdges says.
func DeviceWriteEdges(graph int64, name string, ids, values, count int64) (zero int64, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	return 0, g.WriteEdges(name, ids, values, count)
}

// DeviceFill is new memory of a device, of words of 32 bits that all have a value.
func DeviceFill(device, words, value, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceFill(device, words, value, stream)
}

// DeviceDestinations is the destinations of the edges of all blocks of a batch, as a
// memory that is complete.
func DeviceDestinations(batch, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceDestinations(batch, stream)
}

// DeviceCapacity is how many bytes at out would do for a batch of so many seeds. Where
// they are too few Wait says so; where they were enough the batch's header says
// how many would do for the next one.
func DeviceCapacity(graph, sampler, numSeeds int64) (bytes int64, err error) {
	defer finish(&err)
	g, o, err := open(graph, sampler)
	if err != nil {
		return 0, err
	}
	return core.DeviceCapacity(g, o, numSeeds)
}

// DeviceConcurrency is how many batches of so many seeds may be on their way at a time, at most so many and within so many bytes, as core.DeviceConcurrency says.
func DeviceConcurrency(graph, sampler, numSeeds, most, budget int64) (n int64, err error) {
	defer finish(&err)
	g, o, err := open(graph, sampler)
	if err != nil {
		return 0, err
	}
	return core.DeviceConcurrency(g, o, numSeeds, most, budget)
}

// DeviceStats is what we hold of a device, as JSON.
func DeviceStats(device int64) (stats string, err error) {
	defer finish(&err)
	s, err := core.DeviceStats(device)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(s)
	return string(text), err
}
