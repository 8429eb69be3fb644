package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

var statics table[*core.DeviceStatic]

func staticAt(handle int64) (*core.DeviceStatic, error) {
	s, ok := statics.get(handle)
	if !ok {
		return nil, closed("static")
	}
	return s, nil
}

// StaticNew makes room for batches that launches of a CUDA graph make, as core.NewStaticAt says of the words at an address.
func StaticNew(words int64) (handle int64, err error) {
	defer finish(&err)
	s, err := core.NewStaticAt(words, open)
	if err != nil {
		return 0, err
	}
	return statics.add(s), nil
}

// StaticPlace says where batches go, as core.DeviceStatic.Place says.
func StaticPlace(handle, count, list int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Place(count, list)
}

// StaticBegin begins an epoch, as core.DeviceStatic.Begin says of the words at an address.
func StaticBegin(handle, words int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Begin(words)
}

// StaticSample puts the next batch into a stream.
func StaticSample(handle, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Sample(stream)
}

// StaticFill copies the next batch to the arrays of StaticPlace.
func StaticFill(handle, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Fill(stream)
}

// StaticEdges writes a block's edges one by one, as core.DeviceStatic.Edges says.
func StaticEdges(handle, bits, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Edges(bits, list, stream)
}

// StaticEdgeBits is how wide the ids of a relation's edges in such batches are; that of a homogeneous graph is 0.
func StaticEdgeBits(handle, relation int64) (bits int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return s.EdgeBits(relation)
}

// StaticWait waits for batch i of the epoch, as core.DeviceStatic.Wait says.
func StaticWait(handle, i, timeoutMS, count, words int64) (state int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return s.Wait(i, timeoutMS, count, words)
}

// StaticClose gives the memory of such batches back.
func StaticClose(handle int64) (zero int64, err error) {
	defer finish(&err)
	if s, ok := statics.take(handle); ok {
		s.Close()
	}
	return 0, nil
}
