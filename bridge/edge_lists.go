package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// JoinedHops is the memory of a batch's hops joined, as core.JoinedHops says.
func JoinedHops(batch, ends int64) (mem int64, err error) {
	defer finish(&err)
	return core.JoinedHops(batch, ends)
}

// HopsSubmit is Submit, or with prompt Sample, of a batch whose memory is that of JoinedHops.
func HopsSubmit(graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, threads, prompt int64) (memOrJob int64, err error) {
	defer finish(&err)
	how := core.Submit
	if prompt != 0 {
		how = core.Sample
	}
	j, err := start(how, graph, sampler, core.Call{
		Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch,
		Exclude: exclude, NumExclude: numExclude, Threads: threads, Joined: true,
	})
	if err != nil {
		return 0, err
	}
	if prompt == 0 {
		return -jobs.add(j), nil
	}
	return handed(j)
}
