package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

var deviceStatics table[*core.DeviceStatic]

func staticAt(handle int64) (*core.DeviceStatic, error) {
	s, ok := deviceStatics.get(handle)
	if !ok {
		return nil, closed("static")
	}
	return s, nil
}

// DeviceStaticNew makes room for batches that launches of a CUDA graph make, as
// core.NewDeviceStatic says.
func DeviceStaticNew(graph, sampler, seeds, seedBits, grid, count, most int64) (handle int64, err error) {
	defer finish(&err)
	g, p, err := open[*core.Graph](graph, sampler)
	if err != nil {
		return 0, err
	}
	s, err := core.NewDeviceStatic(g, p, seeds, seedBits, grid, count, most)
	if err != nil {
		return 0, err
	}
	return deviceStatics.add(s), nil
}

// DeviceStaticBegin begins a pass, as core.DeviceStatic.Begin says.
func DeviceStaticBegin(handle, seeds, numSeeds, count, parts, epoch, first, stride, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Begin(seeds, numSeeds, count, parts, epoch, first, stride, stream)
}

// DeviceStaticSample puts the next batch into a stream.
func DeviceStaticSample(handle, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Sample(stream)
}

// DeviceStaticSpread copies the next batch to arrays, as core.DeviceStatic.Spread says.
func DeviceStaticSpread(handle, count, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Spread(count, list, stream)
}

// DeviceStaticEdges writes a block's edges one by one, as core.DeviceStatic.Edges says.
func DeviceStaticEdges(handle, bits, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Edges(bits, list, stream)
}

// DeviceStaticWait waits for batch i of the pass, as core.DeviceStatic.Wait says.
func DeviceStaticWait(handle, i, timeoutMS, count, words int64) (state int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return s.Wait(i, timeoutMS, count, words)
}

// DeviceStaticEdgeBits is how wide the ids of edges in such batches are.
func DeviceStaticEdgeBits(handle int64) (bits int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return s.EdgeBits()
}

// DeviceStaticClose gives the memory of such batches back.
func DeviceStaticClose(handle int64) (zero int64, err error) {
	defer finish(&err)
	if s, ok := deviceStatics.take(handle); ok {
		s.Close()
	}
	return 0, nil
}

// DeviceStaticTypedNew is DeviceStaticNew for a graph with types, as core.NewDeviceStaticHetero says.
func DeviceStaticTypedNew(graph, sampler, sorted, seedBits, grid, count, most int64) (handle int64, err error) {
	defer finish(&err)
	g, p, err := open[*core.HeteroGraph](graph, sampler)
	if err != nil {
		return 0, err
	}
	s, err := core.NewDeviceStaticHetero(g, p, sorted, seedBits, grid, count, most)
	if err != nil {
		return 0, err
	}
	return deviceStatics.add(s), nil
}

// DeviceStaticAloneNew is the same for a graph without types, as core.NewDeviceStaticAlone says.
func DeviceStaticAloneNew(graph, sampler, sorted, byVertex, seedBits, grid, count, most int64) (handle int64, err error) {
	defer finish(&err)
	g, p, err := open[*core.Graph](graph, sampler)
	if err != nil {
		return 0, err
	}
	s, err := core.NewDeviceStaticAlone(g, p, sorted, byVertex != 0, seedBits, grid, count, most)
	if err != nil {
		return 0, err
	}
	return deviceStatics.add(s), nil
}

// DeviceStaticTypedPlace says where batches go, as core.DeviceStatic.PlaceHetero says.
func DeviceStaticTypedPlace(handle, count, list int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.PlaceHetero(count, list)
}

// DeviceStaticTypedBegin begins a pass, as core.DeviceStatic.BeginHetero says.
func DeviceStaticTypedBegin(handle, seeds, times, numSeeds, count, parts, counts, exclude, starts, epoch, first, stride, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.BeginHetero(seeds, times, numSeeds, count, parts, counts, exclude, starts, epoch, first, stride, stream)
}

// DeviceStaticTypedSpread copies the next batch to where DeviceStaticTypedPlace has said.
func DeviceStaticTypedSpread(handle, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.SpreadHetero(stream)
}

// DeviceStaticTypedEdgeBits is how wide the ids of a relation's edges in such batches are.
func DeviceStaticTypedEdgeBits(handle, relation int64) (bits int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return s.EdgeBitsHetero(relation)
}
