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

// DeviceSegmentTranspose puts into the stream what groups the edges by their sources, as
// SegmentTranspose does; places may be 0. What is beyond the last start stays as it was. It works
// in so many bytes at room, of which cuda.Transposition's Room says how many it takes.
func DeviceSegmentTranspose(device, list, starts, rows, places, room, bytes, stream int64) error {
	if list == 0 {
		return Errorf(KindValue, "list: expected an address, got 0")
	}
	r := reductionAt(list)
	if err := r.Check(); err != nil {
		return err
	}
	t := cuda.Transposition{
		Indptr: gpu.Address(r.Indptr), Indices: gpu.Address(r.Indices), Starts: gpu.Address(starts), RowsOf: gpu.Address(rows),
		Places: gpu.Address(places), Scratch: gpu.Address(room), Sources: uint64(r.Sources), Rows: uint64(r.Rows),
		Edges: uint64(r.Edges), IDBits: int(r.IDBits),
	}
	if most := max(r.Sources, r.Rows, r.Edges); most > cuda.MostTransposed {
		return Errorf(KindValue, "segments: expected at most %d sources, rows and edges, got %d", cuda.MostTransposed, most)
	}
	if need := int64(t.Room()); room == 0 || bytes < need {
		return Errorf(KindValue, "room: expected %d bytes, got %d at %#x", need, bytes, room)
	}
	for _, one := range []struct {
		name        string
		at, aligned int64
		needed      bool
	}{
		{"indptr", r.Indptr, r.IDBits / 8, true}, {"indices", r.Indices, r.IDBits / 8, r.Edges > 0}, {"starts", starts, r.IDBits / 8, true},
		{"rows", rows, r.IDBits / 8, r.Edges > 0}, {"places", places, r.IDBits / 8, false}, {"room", room, 8, true},
	} {
		if one.at == 0 && one.needed {
			return Errorf(KindValue, "%s: expected an address, got 0", one.name)
		} else if one.at%one.aligned != 0 {
			return Errorf(KindValue, "%s: expected an address that %d divides, got %#x", one.name, one.aligned, one.at)
		}
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Transpose(&t, s))
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
	if max(r.Sources, r.Table) > cuda.MostTransposed {
		return nil, Errorf(KindValue, "segments: expected at most %d sources and rows of x, got %d and %d", cuda.MostTransposed, r.Sources, r.Table)
	}
	for _, one := range []struct {
		name        string
		at, aligned int64
	}{
		{"x", r.X, r.FloatBits / 8}, {"indptr", r.Indptr, r.IDBits / 8}, {"indices", r.Indices, r.IDBits / 8},
		{"weights", r.Weights, r.FloatBits / 8}, {"out", r.Out, r.FloatBits / 8}, {"best", r.Best, r.IDBits / 8},
		{"dots", dots, r.FloatBits / 8}, {"of", r.IDs, r.IDBits / 8}, {"degrees", r.Degrees, r.IDBits / 8}, {"places", r.Places, r.IDBits / 8},
	} {
		if one.at%one.aligned != 0 {
			return nil, Errorf(KindValue, "%s: expected an address that %d divides, got %#x", one.name, one.aligned, one.at)
		}
	}
	return &cuda.Segment{
		X: gpu.Address(r.X), Indptr: gpu.Address(r.Indptr), Indices: gpu.Address(r.Indices), Weights: gpu.Address(r.Weights),
		Out: gpu.Address(r.Out), Best: gpu.Address(r.Best), IDs: gpu.Address(r.IDs), Degrees: gpu.Address(r.Degrees),
		Places: gpu.Address(r.Places), Table: uint64(r.Table), Brain: r.Brain != 0, Sources: uint64(r.Sources), Rows: uint64(r.Rows),
		Edges: uint64(r.Edges), Width: uint64(r.Width), Heads: uint64(r.Heads), Kind: kind,
		IDBits: int(r.IDBits), FloatBits: int(r.FloatBits),
	}, nil
}
