package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// TimesStart begins to put the rows of a graph into the order of the times at an address.
func TimesStart(graph int64, name, dtype string, address, length, byVertex int64) (job int64, err error) {
	defer finish(&err)
	g, ok := graphs.get(graph)
	if !ok {
		return 0, closed("graph")
	}
	j, err := core.StartTimes(g, name, dtype, address, length, byVertex != 0)
	if err != nil {
		return 0, err
	}
	return derivedJobs.add(j), nil
}

// TimedSubmit queues a batch whose seeds have times, and returns its job, negated, or with prompt the memory
// of a batch that is small enough to be made on the spot. sorted is the memory that TimesStart has made. With
// joined the memory is that of JoinedHops.
func TimedSubmit(graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, threads, prompt, joined, sorted, seedTimes, byVertex int64) (memOrJob int64, err error) {
	defer finish(&err)
	g, o, err := open(&graphs, graph, sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.SubmitTimed(g, o, core.TimedCall{Sorted: sorted, SeedTimes: seedTimes, ByVertex: byVertex != 0, Call: core.Call{
		Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch,
		Exclude: exclude, NumExclude: numExclude, Threads: threads, Joined: joined != 0,
	}}, prompt != 0)
	if err != nil {
		return 0, err
	}
	if prompt == 0 {
		return -jobs.add(j), nil
	}
	return handed(j)
}

// DeviceTimedSubmit puts a batch whose seeds have times into a stream of a device and returns its job, negated;
// sorted, seedTimes and byVertex as for TimedSubmit.
func DeviceTimedSubmit(graph, sampler, seeds, numSeeds, seedBits, seedsOnDevice, epoch, batch, exclude, numExclude, stream, own, sorted, seedTimes, byVertex int64) (job int64, err error) {
	defer finish(&err)
	g, o, err := open(&graphs, graph, sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.DeviceSubmitTimed(g, o, core.DeviceCall{
		Call: core.Call{
			Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch,
			Exclude: exclude, NumExclude: numExclude,
		},
		OnDevice: seedsOnDevice != 0, Stream: stream, Own: own != 0,
	}, core.TimedCall{Sorted: sorted, SeedTimes: seedTimes, ByVertex: byVertex != 0})
	if err != nil {
		return 0, err
	}
	return -deviceJobs.add(j), nil
}
