package pygsampler

import (
	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/layers"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// DeviceSegmentReduce enqueues a reduction, as cuda.Segment describes. The address list holds the
// words of SegmentReduce, with addresses on the device and an additional kind, 3:
// cuda.SegmentTaken. The position of an edge whose source is no row is written to bad, unless it is
// 0.
func DeviceSegmentReduce(device, list, stream, bad int64) error {
	g, err := deviceSegment(list, 0)
	if err != nil {
		return err
	}
	if bad%8 != 0 {
		return Errorf(KindValue, "bad: expected an address that 8 divides, got %#x", bad)
	}
	g.Bad = gpu.Address(bad)
	if err := roomFor(g, list, g.Kind != cuda.SegmentMax); err != nil {
		return err
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Reduce(g, s))
}

// DeviceSegmentDots enqueues the computation of the dot products of each edge's two rows, which are
// written to dots.
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

// DeviceSegmentTranspose enqueues the grouping of the edges by their sources, like
// SegmentTranspose; places may be 0. Memory after the last start stays unchanged. It works in bytes
// bytes at room, whose sufficient size cuda.Transposition.Room returns.
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
	if starts == 0 || rows == 0 && r.Edges > 0 {
		return Errorf(KindValue, "starts, rows: expected addresses, got %#x and %#x", starts, rows)
	}
	if err := aligned(r.IDBits/8, "indptr", r.Indptr, "indices", r.Indices, "starts", starts, "rows", rows, "places", places); err != nil {
		return err
	}
	if err := aligned(8, "room", room); err != nil {
		return err
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Transpose(&t, s))
}

// DeviceSegmentAttend enqueues the computation of SegmentAttend.
func DeviceSegmentAttend(device, list, stream int64) error {
	g, err := deviceSegment(list, 0)
	if err != nil {
		return err
	}
	if err := roomFor(g, list, false); err != nil {
		return err
	}
	if scores := edgeScoresAt(list); scores != nil {
		return deviceEdgeScores(device, scores, g, stream)
	}
	a := attentionAt(list)
	if err := a.Check(); err != nil {
		return err
	}
	if err := aligned(max(a.FloatBits, 32)/8, "source", a.Source, "target", a.Target, "edge", a.Edge, "log", a.Log, "pre", a.Pre, "to_target", a.ToTarget); err != nil {
		return err
	}
	if err := aligned(a.FloatBits/8, "alpha", a.Alpha); err != nil {
		return err
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Attend(&cuda.Attention{
		Segment: *g, Source: gpu.Address(a.Source), Target: gpu.Address(a.Target), Edge: gpu.Address(a.Edge),
		Log: gpu.Address(a.Log), Alpha: gpu.Address(a.Alpha), Pre: gpu.Address(a.Pre), ToTarget: gpu.Address(a.ToTarget), Slope: a.Slope,
		Shared: a.Shared != 0,
	}, s))
}

func deviceEdgeScores(device int64, a *layers.EdgeScores, g *cuda.Segment, stream int64) error {
	if err := a.Check(); err != nil {
		return err
	}
	if err := aligned(max(a.FloatBits, 32)/8, "att", a.Att, "scores", a.Scores, "to_att", a.ToAtt); err != nil {
		return err
	}
	if err := aligned(a.FloatBits/8, "own", a.Own, "edge", a.Edge, "to_own", a.ToOwn, "to_edge", a.ToEdge); err != nil {
		return err
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.EdgeScores(&cuda.EdgeScores{
		Segment: *g, Own: gpu.Address(a.Own), Att: gpu.Address(a.Att), Edge: gpu.Address(a.Edge), Scores: gpu.Address(a.Scores),
		ToOwn: gpu.Address(a.ToOwn), ToAtt: gpu.Address(a.ToAtt), ToEdge: gpu.Address(a.ToEdge), Slope: a.Slope,
	}, s))
}

// DeviceSegmentSoftmax enqueues the computation of SegmentSoftmax.
func DeviceSegmentSoftmax(device, list, stream int64) error {
	g, err := deviceSegment(list, 0)
	if err != nil {
		return err
	}
	grad := scoresAt(list).Grad
	if err := aligned(int64(g.FloatBits/8), "grad", grad); err != nil {
		return err
	}
	if err := roomFor(g, list, false); err != nil {
		return err
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Softmax(&cuda.Scores{Segment: *g, Grad: gpu.Address(grad)}, s))
}

// roomFor gives a segment the scratch for long rows at the end of a reduction's words, if any, which
// is to be as large as it is needed for a plain sum, or for another kernel.
func roomFor(g *cuda.Segment, list int64, plain bool) error {
	w := memory.View[int64](list, segmentWords)[segmentWords-2:]
	if need := int64(g.RoomBytes(plain)); w[0] != 0 && w[1] < need {
		return Errorf(KindValue, "room: expected %d bytes, got %d at %#x", need, w[1], w[0])
	}
	g.Room = gpu.Address(w[0])
	return aligned(8, "room", w[0])
}

// aligned returns an error for the first of the named addresses that is not a multiple of to.
func aligned(to int64, named ...any) error {
	for i := 0; i < len(named); i += 2 {
		if at := named[i+1].(int64); at%to != 0 {
			return Errorf(KindValue, "%s: expected an address that %d divides, got %#x", named[i], to, at)
		}
	}
	return nil
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
	if err := aligned(r.FloatBits/8, "x", r.X, "weights", r.Weights, "out", r.Out, "dots", dots); err != nil {
		return nil, err
	}
	if err := aligned(r.IDBits/8, "indptr", r.Indptr, "indices", r.Indices, "best", r.Best, "of", r.IDs, "degrees", r.Degrees, "places", r.Places); err != nil {
		return nil, err
	}
	return &cuda.Segment{
		X: gpu.Address(r.X), Indptr: gpu.Address(r.Indptr), Indices: gpu.Address(r.Indices), Weights: gpu.Address(r.Weights),
		Out: gpu.Address(r.Out), Best: gpu.Address(r.Best), IDs: gpu.Address(r.IDs), Degrees: gpu.Address(r.Degrees),
		Places: gpu.Address(r.Places), Table: uint64(r.Table), Brain: r.Brain != 0, Sources: uint64(r.Sources), Rows: uint64(r.Rows),
		Edges: uint64(r.Edges), Width: uint64(r.Width), Heads: uint64(r.Heads), Kind: kind,
		IDBits: int(r.IDBits), FloatBits: int(r.FloatBits), Piece: uint64(r.Piece),
	}, nil
}
