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

// StaticNew allocates the memory of batches that are sampled by a CUDA graph, as core.NewStaticAt
// does; the words at an address describe them.
func StaticNew(words int64) (handle int64, err error) {
	defer finish(&err)
	s, err := core.NewStaticAt(words, open)
	if err != nil {
		return 0, err
	}
	return statics.add(s), nil
}

// StaticPlace sets the addresses that batches are copied to, as core.DeviceStatic.Place does.
func StaticPlace(handle, count, list int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Place(count, list)
}

// StaticBegin starts an epoch, which the words at an address describe, as core.DeviceStatic.Begin
// does.
func StaticBegin(handle, words int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Begin(words)
}

// StaticSample enqueues the next batch on a stream.
func StaticSample(handle, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Sample(stream)
}

// StaticFill copies the next batch to the arrays that StaticPlace has set.
func StaticFill(handle, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Fill(stream)
}

// StaticEdges expands the edges of a block into lists, as core.DeviceStatic.Edges does.
func StaticEdges(handle, bits, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return 0, s.Edges(bits, list, stream)
}

// StaticEdgeBits returns the width of the edge ids of a relation in static batches; a homogeneous
// graph has relation 0 only.
func StaticEdgeBits(handle, relation int64) (bits int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return s.EdgeBits(relation)
}

// StaticWait waits for batch i of the epoch, as core.DeviceStatic.Wait does.
func StaticWait(handle, i, timeoutMS, count, words int64) (state int64, err error) {
	defer finish(&err)
	s, err := staticAt(handle)
	if err != nil {
		return 0, err
	}
	return s.Wait(i, timeoutMS, count, words)
}

// StaticClose releases the memory of static batches.
func StaticClose(handle int64) (zero int64, err error) {
	defer finish(&err)
	if s, ok := statics.take(handle); ok {
		s.Close()
	}
	return 0, nil
}
