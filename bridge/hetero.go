package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

var typed table[*core.HeteroGraph]

// TypedNew is the handle of a graph with types that a document describes; the document names the
// handle of a graph for each relation.
func TypedNew(document string) (graph int64, err error) {
	defer finish(&err)
	var named struct {
		Graphs []int64 `json:"graphs"`
	}
	if err := json.Unmarshal([]byte(document), &named); err != nil {
		return 0, core.Errorf(core.KindValue, "graph: expected a JSON object, got %v", err)
	}
	relations := make([]*core.Graph, len(named.Graphs))
	for i, handle := range named.Graphs {
		g, ok := graphs.get(handle)
		if !ok {
			return 0, closed("graph")
		}
		relations[i] = g
	}
	g, err := core.NewHetero(document, relations)
	if err != nil {
		return 0, err
	}
	return typed.add(g), nil
}

// TypedClose forgets it; the graphs of its relations are closed by themselves.
func TypedClose(graph int64) (zero int64, err error) {
	defer finish(&err)
	typed.take(graph)
	return 0, nil
}

// TypedJoin is the memory of the graph without types of a graph with types; ids is the address of where
// those of each relation's edges begin, and of where they end.
func TypedJoin(graph, ids int64) (mem int64, err error) {
	defer finish(&err)
	g, ok := typed.get(graph)
	if !ok {
		return 0, closed("graph")
	}
	return g.Join(ids)
}

// TypedSubmit queues a batch of a graph with types, and returns its job, negated, or with prompt
// the memory of a batch that is small enough to be made on the spot. counts is the address of how
// many seeds each type has, and how many excluded edges each relation; sorted and seedTimes are 0, or
// addresses of times. With joined the memory is that of JoinedHops.
func TypedSubmit(graph, sampler, seeds, numSeeds, seedBits, counts, sorted, seedTimes, epoch, batch, exclude, numExclude, threads, prompt, joined int64) (memOrJob int64, err error) {
	defer finish(&err)
	g, o, err := open(&typed, graph, sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.SubmitHetero(g, o, core.HeteroCall{Counts: counts, Sorted: sorted, SeedTimes: seedTimes, Call: core.Call{
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

// DeviceTypedSubmit puts a batch of a graph with types into a stream of a device and returns its job,
// negated; counts as for TypedSubmit. For a caller who waits at once timeoutMS is above 0: it waits so many milliseconds
// at most, and returns the batch's memory where that is there by then.
func DeviceTypedSubmit(graph, sampler, seeds, numSeeds, seedBits, seedsOnDevice, counts, sorted, seedTimes, epoch, batch, exclude, numExclude, stream, own, timeoutMS int64) (memOrJob int64, err error) {
	defer finish(&err)
	g, o, err := open(&typed, graph, sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.DeviceSubmitHetero(g, o, core.DeviceCall{
		Call: core.Call{
			Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch,
			Exclude: exclude, NumExclude: numExclude,
		},
		OnDevice: seedsOnDevice != 0, Stream: stream, Own: own != 0,
	}, core.HeteroCall{Counts: counts, Sorted: sorted, SeedTimes: seedTimes})
	if err != nil {
		return 0, err
	}
	if timeoutMS > 0 {
		if address, finished, err := j.Wait(timeoutMS); finished && (err != nil || address > 0) {
			return address, err
		}
	}
	return -deviceJobs.add(j), nil
}
