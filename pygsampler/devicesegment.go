package pygsampler

import (
	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/cuda"
)

// DeviceSegmentReduce puts a reduction into the stream: what cuda.Segment says. At the address
// list are the words of SegmentReduce, with addresses of the device and a kind more, 3:
// cuda.SegmentTaken. The place of an edge whose source is no row is noted at bad, unless it is 0.
func DeviceSegmentReduce(device, list, stream, bad int64) error {
	g, err := deviceSegment(list, 0)
	if err != nil {
		return err
	}
	if bad%8 != 0 {
		return Errorf(KindValue, "bad: expected an address that 8 divides, got %#x", bad)
	}
	g.Bad = gpu.Address(bad)
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Reduce(g, s))
}

// DeviceSegmentDots puts into the stream what writes the products of each edge's two rows to
// dots.
func DeviceSegmentDots(device, list, dots, stream int64) error {
	g, err := deviceSegment(list, dots)
	if err != nil {
		return err
	}
	if dots == 0 {
		if g.Edges > 0 {
			return Errorf(KindValue, "dots: expected an address, got 0")
		}
		return nil
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Dots(g, gpu.Address(dots), s))
}

// deviceSegment is the reduction at an address. A kernel that meets a wrong address ends all
// work of the process on that device, so what can be seen here is refused.
func deviceSegment(list, dots int64) (*cuda.Segment, error) {
	if list == 0 {
		return nil, Errorf(KindValue, "list: expected an address, got 0")
	}
	r := reductionAt(list)
	kind := cuda.SegmentKind(r.Kind)
	if kind == cuda.SegmentTaken {
		if r.Best == 0 && r.Sources > 0 {
			return nil, Errorf(KindValue, "segments: expected an address of the best rows, got 0")
		}
		r.Kind = int64(cuda.SegmentSum)
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	if r.Width > cuda.MostSegmentWidth || r.Heads > cuda.MostSegmentHeads {
		return nil, Errorf(KindValue, "segments: expected a width of at most %d and at most %d heads, got %d and %d",
			cuda.MostSegmentWidth, cuda.MostSegmentHeads, r.Width, r.Heads)
	}
	for _, one := range []struct {
		name        string
		at, aligned int64
	}{
		{"x", r.X, r.FloatBits / 8}, {"indptr", r.Indptr, r.IDBits / 8}, {"indices", r.Indices, r.IDBits / 8},
		{"weights", r.Weights, r.FloatBits / 8}, {"out", r.Out, r.FloatBits / 8}, {"best", r.Best, r.IDBits / 8},
		{"dots", dots, r.FloatBits / 8},
	} {
		if one.at%one.aligned != 0 {
			return nil, Errorf(KindValue, "%s: expected an address that %d divides, got %#x", one.name, one.aligned, one.at)
		}
	}
	return &cuda.Segment{
		X: gpu.Address(r.X), Indptr: gpu.Address(r.Indptr), Indices: gpu.Address(r.Indices), Weights: gpu.Address(r.Weights),
		Out: gpu.Address(r.Out), Best: gpu.Address(r.Best), Sources: uint64(r.Sources), Rows: uint64(r.Rows),
		Edges: uint64(r.Edges), Width: uint64(r.Width), Heads: uint64(r.Heads), Kind: kind,
		IDBits: int(r.IDBits), FloatBits: int(r.FloatBits),
	}, nil
}
