package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// PartsSubmit begins a batch of a graph in parts and returns its job, negated, as core.SubmitParts says. seedTimes is
// 0 where seeds have no times; they are float64 where floats is not 0.
func PartsSubmit(graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, bounds, numBounds, seedTimes, floats int64) (job int64, err error) {
	defer finish(&err)
	g, o, err := open(&graphs, graph, sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.SubmitParts(g, o, core.TimedCall{SeedTimes: seedTimes, Call: core.Call{
		Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch,
		Exclude: exclude, NumExclude: numExclude, Threads: 1,
	}}, bounds, numBounds, floats != 0)
	if err != nil {
		return 0, err
	}
	return -jobs.add(j), nil
}

// PartsTypedSubmit is PartsSubmit for a graph with types: counts is the address of how many seeds each type has and a 0
// for each relation, and bounds has as many numbers of each relation. Which of these have times stands at timed, 0 where
// seeds have none, as core.SubmitPartsHetero says.
func PartsTypedSubmit(graph, sampler, seeds, numSeeds, seedBits, counts, epoch, batch, bounds, numBounds, timed, seedTimes, floats int64) (job int64, err error) {
	defer finish(&err)
	g, o, err := open(&typed, graph, sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.SubmitPartsHetero(g, o, core.HeteroCall{Counts: counts, SeedTimes: seedTimes, Call: core.Call{
		Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch, Threads: 1,
	}}, bounds, numBounds, timed, floats != 0)
	if err != nil {
		return 0, err
	}
	return -jobs.add(j), nil
}

// PartsAlongSubmit begins walks along relations of a graph with types in parts and returns their job, negated, as
// core.SubmitPartsAlong says.
func PartsAlongSubmit(graph, sampler, seeds, numSeeds, seedBits, epoch, batch, bounds, numBounds, along, numAlong, roots int64) (job int64, err error) {
	defer finish(&err)
	g, o, err := open(&typed, graph, sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.SubmitPartsAlong(g, o, core.Call{
		Seeds: seeds, NumSeeds: numSeeds, SeedBits: int(seedBits), Epoch: epoch, Batch: batch, Threads: 1,
	}, bounds, numBounds, along, numAlong, roots)
	if err != nil {
		return 0, err
	}
	return -jobs.add(j), nil
}

// PartsAsked waits up to timeoutMS milliseconds (-1: for ever) for a question of a job, as core.Job.Asked says.
func PartsAsked(job, timeoutMS, address, room int64) (state int64, err error) {
	defer finish(&err)
	j, ok := jobs.get(job)
	if !ok {
		return 0, closed("job")
	}
	return j.Asked(timeoutMS, address, room)
}

// PartsAnswer answers a question, as core.Job.Answer says.
func PartsAnswer(job, answers, count int64) (zero int64, err error) {
	defer finish(&err)
	j, ok := jobs.get(job)
	if !ok {
		return 0, closed("job")
	}
	return 0, j.Answer(answers, count)
}

// PartsFail ends a job whose rows nobody will bring.
func PartsFail(job int64, why string) (zero int64, err error) {
	defer finish(&err)
	j, ok := jobs.get(job)
	if !ok {
		return 0, closed("job")
	}
	return 0, j.Fail(why)
}

// PartsRows draws rows of a part of a graph, as core.SubmitRows says: the memory where they are few, else the job,
// negated.
func PartsRows(graph, sampler, vertices, numVertices, idBits, hop, epoch, batch, exclude, numExclude, first, firstEdge, edgeIDBits, ids, numIDs, idsBits, trees, bounds, sorted, byVertex int64) (memOrJob int64, err error) {
	defer finish(&err)
	g, o, err := open(&graphs, graph, sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.SubmitRows(g, o, core.RowsCall{
		Call: core.Call{
			Seeds: vertices, NumSeeds: numVertices, SeedBits: int(idBits), Epoch: epoch, Batch: batch,
			Exclude: exclude, NumExclude: numExclude,
		},
		Hop: hop, First: first, FirstEdge: firstEdge, EdgeIDBits: int(edgeIDBits), IDs: ids, NumIDs: numIDs, IDsBits: int(idsBits), Trees: trees, Bounds: bounds,
		Sorted: sorted, ByVertex: byVertex != 0,
	})
	if err != nil {
		return 0, err
	}
	return handed(j)
}

// PartsTypedRows is PartsRows for a relation of a part of a graph with types, as core.SubmitHeteroRows says.
func PartsTypedRows(graph, sampler, relation, vertices, numVertices, idBits, hop, epoch, batch, exclude, numExclude, first, firstEdge, edgeIDBits, ids, numIDs, trees, bounds, sorted int64) (memOrJob int64, err error) {
	defer finish(&err)
	g, o, err := open(&typed, graph, sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.SubmitHeteroRows(g, o, relation, core.RowsCall{
		Call: core.Call{
			Seeds: vertices, NumSeeds: numVertices, SeedBits: int(idBits), Epoch: epoch, Batch: batch,
			Exclude: exclude, NumExclude: numExclude,
		},
		Hop: hop, First: first, FirstEdge: firstEdge, EdgeIDBits: int(edgeIDBits), IDs: ids, NumIDs: numIDs, Trees: trees, Bounds: bounds, Sorted: sorted,
	})
	if err != nil {
		return 0, err
	}
	return handed(j)
}
