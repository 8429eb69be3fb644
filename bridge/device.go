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

// DeviceGraphNew makes a graph of a CSC that a device can read, validated by a kernel
// unless it is trusted. hostGraph is the handle of the same graph on the host, or 0.
func DeviceGraphNew(device, indptr, indptrBits, numRows, indices, idBits, numEdges, edgeIDs, edgeIDBits, numNodes, alias, sums, trusted, hostGraph int64) (graph int64, err error) {
	return DeviceGraphForm(device, indptr, indptrBits, numRows, indices, idBits, numEdges, edgeIDs, edgeIDBits, numNodes, alias, sums, trusted, hostGraph, 0, 0)
}

// DeviceGraphForm is DeviceGraphNew for what was derived of a graph, as GraphForm is for
// the host; back is a graph of the same device, or 0.
func DeviceGraphForm(device, indptr, indptrBits, numRows, indices, idBits, numEdges, edgeIDs, edgeIDBits, numNodes, alias, sums, trusted, hostGraph, kinds, back int64) (graph int64, err error) {
	defer finish(&err)
	host, err := graphAt(hostGraph)
	if err != nil {
		return 0, err
	}
	transposed, err := graphAt(back)
	if err != nil {
		return 0, err
	}
	g, err := core.NewDeviceGraph(device, core.CSC{
		Indptr: indptr, IndptrBits: int(indptrBits), NumRows: numRows,
		Indices: indices, IDBits: int(idBits), NumEdges: numEdges,
		EdgeIDs: edgeIDs, EdgeIDBits: int(edgeIDBits), NumNodes: numNodes,
		Alias: alias, Sums: sums, Kinds: kinds, Back: transposed,
	}, trusted != 0, host)
	if err != nil {
		return 0, err
	}
	return graphs.add(g), nil
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
func DeviceGather(device, count, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceGather(device, count, list, stream)
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

// DeviceTally puts into a stream what counts ids, as core.DeviceTally says.
func DeviceTally(device, ids, count, bits, counts, rows, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceTally(device, ids, count, bits, counts, rows, stream)
}

// DeviceFilled is new memory of a device, of words of 32 bits that all have a value.
func DeviceFilled(device, words, value, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceFilled(device, words, value, stream)
}

// DeviceDestinations is the destinations of the edges of all blocks of a batch, as a
// memory that is complete.
func DeviceDestinations(batch, stream int64) (mem int64, err error) {
	defer finish(&err)
	return core.DeviceDestinations(batch, stream)
}

// DeviceArrowExport is the address of an Arrow C pair in memory of a device;
// arrow_export_device takes it over.
func DeviceArrowExport(mem, data, length, bits int64) (pair int64, err error) {
	defer finish(&err)
	return core.DeviceArrowExport(mem, data, length, int(bits))
}

// DeviceCapacity is how many bytes at out would do for a batch of so many seeds. Where
// they are too few DeviceWait says so; where they were enough the batch's header says
// how many would do for the next one.
func DeviceCapacity(graph, sampler, numSeeds int64) (bytes int64, err error) {
	defer finish(&err)
	g, o, err := open(&graphs, graph, sampler)
	if err != nil {
		return 0, err
	}
	return core.DeviceCapacity(g, o, numSeeds)
}

// DeviceTogether is how many batches of so many seeds may be on their way at a time, at most so many, as core.DeviceTogether says.
func DeviceTogether(graph, sampler, numSeeds, most int64) (n int64, err error) {
	defer finish(&err)
	g, o, err := open(&graphs, graph, sampler)
	if err != nil {
		return 0, err
	}
	return core.DeviceTogether(g, o, numSeeds, most)
}

// DeviceSubmit puts a batch into a stream of a device and returns its job, negated. Where seeds are
// (seedsOnDevice) is as core.DeviceCall.SeedsAt has it.
func DeviceSubmit(graph, sampler, seeds, numSeeds, seedBits, seedsOnDevice, epoch, batch, exclude, numExclude, stream, own, out, outBytes int64) (job int64, err error) {
	defer finish(&err)
	j, err := submit(graph, sampler, seeds, numSeeds, seedBits, seedsOnDevice, epoch, batch, exclude, numExclude, stream, own, out, outBytes)
	if err != nil {
		return 0, err
	}
	return -deviceJobs.add(j), nil
}

func submit(graph, sampler, seeds, numSeeds, seedBits, seedsOnDevice, epoch, batch, exclude, numExclude, stream, own, out, outBytes int64) (*core.DeviceJob, error) {
	g, o, err := open(&graphs, graph, sampler)
	if err != nil {
		return nil, err
	}
	c := core.DeviceCall{
		Call: core.Call{
			Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch,
			Exclude: exclude, NumExclude: numExclude,
		},
		Stream: stream, Own: own != 0, Out: out, OutBytes: outBytes,
	}
	c.SeedsAt(seedsOnDevice)
	return core.DeviceSubmit(g, o, c)
}

// DeviceSample is DeviceSubmit for a caller who waits at once: it waits up to timeoutMS
// milliseconds, and returns the batch's memory. Where that is not there by then, or did
// not fit out, it returns the job, negated.
func DeviceSample(graph, sampler, seeds, numSeeds, seedBits, seedsOnDevice, epoch, batch, exclude, numExclude, stream, out, outBytes, timeoutMS int64) (memOrJob int64, err error) {
	defer finish(&err)
	j, err := submit(graph, sampler, seeds, numSeeds, seedBits, seedsOnDevice, epoch, batch, exclude, numExclude, stream, 0, out, outBytes)
	if err != nil {
		return 0, err
	}
	if address, finished, err := j.Wait(timeoutMS); finished && (err != nil || address > 0) {
		return address, err
	}
	return -deviceJobs.add(j), nil
}

// DeviceSubmitMany puts several batches into a stream together: 8 integers each at
// the address calls, as core.CallsAt says. It returns their launch.
func DeviceSubmitMany(graph, sampler, count, calls, stream, own int64) (launch int64, err error) {
	defer finish(&err)
	g, o, err := open(&graphs, graph, sampler)
	if err != nil {
		return 0, err
	}
	list, err := core.CallsAt(calls, count, stream, own != 0)
	if err != nil {
		return 0, err
	}
	l, err := core.NewDeviceLaunch(g, o, list)
	if err != nil {
		return 0, err
	}
	return deviceLaunches.add(l), nil
}

// DeviceWaitMany waits up to timeoutMS milliseconds (-1: for ever) for all batches of a
// launch, and writes their memories to addresses. It returns 1 then, 0 while they are on
// their way, and minus the place of the first that failed, counted from 1: the
// launch stays for DeviceFault.
func DeviceWaitMany(launch, timeoutMS, addresses int64) (done int64, err error) {
	defer finish(&err)
	l, ok := deviceLaunches.get(launch)
	if !ok {
		return 0, closed("launch")
	}
	if addresses == 0 {
		return 0, core.Errorf(core.KindValue, "addresses: expected an address, got 0")
	}
	failed, finished := l.Wait(timeoutMS)
	switch {
	case !finished:
		return 0, nil
	case l.Err(failed) != nil:
		return -int64(failed) - 1, nil
	}
	if _, mine := deviceLaunches.take(launch); !mine {
		// Another thread has cancelled it while this one waited.
		return 0, closed("launch")
	}
	l.Take(addresses)
	return 1, nil
}

// DeviceWaitManyInto is DeviceWaitMany for batches in a caller's memory, of which nothing
// is left to release: it writes the words of each, so many, to an address, one batch
// behind the other, and ends the launch. The words of a batch that did not fit have no
// signature, and say what capacity would do. Where batches have failed it returns the
// error of the first, whose words are zeros then; those before it are good.
func DeviceWaitManyInto(launch, timeoutMS, count, words int64) (done int64, err error) {
	defer finish(&err)
	if err := room(count, words); err != nil {
		return 0, err
	}
	l, ok := deviceLaunches.get(launch)
	if !ok {
		return 0, closed("launch")
	}
	failed, finished := l.Wait(timeoutMS)
	if !finished {
		return 0, nil
	}
	if _, mine := deviceLaunches.take(launch); !mine {
		// Another thread has cancelled it while this one waited.
		return 0, closed("launch")
	}
	l.TakeWords(count, words)
	return 1, l.Err(failed)
}

// DeviceFault ends a launch of which a batch has failed, and is the error of that one.
func DeviceFault(launch, place int64) (zero int64, err error) {
	defer finish(&err)
	l, ok := deviceLaunches.take(launch)
	if !ok {
		return 0, closed("launch")
	}
	l.Cancel()
	return 0, l.Err(int(place))
}

// DeviceCancelMany ends a launch, as DeviceCancel a job.
func DeviceCancelMany(launch int64) (zero int64, err error) {
	defer finish(&err)
	if l, ok := deviceLaunches.take(launch); ok {
		l.Cancel()
	}
	return 0, nil
}

// DeviceWaitInto is DeviceWait for a batch in a caller's memory, of which nothing is
// left to release: it writes the words that describe the batch, so many, to an address,
// and returns 1.
func DeviceWaitInto(job, timeoutMS, count, words int64) (done int64, err error) {
	defer finish(&err)
	if err := room(count, words); err != nil {
		return 0, err
	}
	mem, err := wait(job, timeoutMS)
	if err != nil || mem <= 0 {
		return mem, err
	}
	core.TakeWords(mem, count, words)
	return 1, nil
}

// room is an error unless there is an address for some words. It is asked before a batch
// is taken, which nobody could release afterwards.
func room(count, words int64) error {
	if words == 0 || count < 1 {
		return core.Errorf(core.KindValue, "words: expected an address for some, got %#x for %d", words, count)
	}
	return nil
}

// DeviceWait waits up to timeoutMS milliseconds (-1: for ever). It returns the job's
// memory, or 0 while it is on its way, or minus the bytes that out would have needed.
func DeviceWait(job, timeoutMS int64) (mem int64, err error) {
	defer finish(&err)
	return wait(job, timeoutMS)
}

func wait(job, timeoutMS int64) (mem int64, err error) {
	j, ok := deviceJobs.get(job)
	if !ok {
		return 0, closed("job")
	}
	address, finished, err := j.Wait(timeoutMS)
	if !finished {
		return 0, nil
	}
	if _, mine := deviceJobs.take(job); !mine {
		// Another thread took the result, or cancelled, while this one waited.
		return 0, closed("job")
	}
	return address, err
}

// DeviceCancel ends a job; it returns once the device no longer works on it.
func DeviceCancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := deviceJobs.take(job); ok {
		j.Cancel()
	}
	return 0, nil
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

// DeviceTrim gives memory of a device back that no batch uses.
func DeviceTrim(device int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceTrim(device)
}
