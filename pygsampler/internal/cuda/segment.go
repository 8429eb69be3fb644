package cuda

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// segmentArgs mirrors SegmentArgs in kernels/segment.cu.
type segmentArgs struct {
	X, Indptr, Indices, Weights, Out, Best, Dots, Bad    gpu.Address
	Sources, Rows, Edges                                 uint64
	Width, Heads, Mean, IDBits, FloatBits, Vector, Group uint32
}

// segmentKernels are those of kernels/segment.cu.
type segmentKernels struct {
	sum, max, taken, dots gpu.Kernel[segmentArgs]
}

func loadSegment(e *Engine) (*segmentKernels, error) {
	var k segmentKernels
	for name, to := range map[string]*gpu.Kernel[segmentArgs]{
		"segment_sum": &k.sum, "segment_max": &k.max, "segment_taken": &k.taken, "segment_dots": &k.dots,
	} {
		var err error
		if *to, err = KernelOf[segmentArgs](e, "segment", name, 0); err != nil {
			return nil, err
		}
	}
	return &k, nil
}

// What a row has at most which is reduced: values, and heads. A part of a row, or a head, is a
// row of the grid.
const (
	MostSegmentWidth = 1 << 20
	MostSegmentHeads = 1<<16 - 1
)

// SegmentKind is what a row becomes of those that its edges name.
type SegmentKind int

// Kinds of reductions; the first three are those of internal/segment.
const (
	SegmentSum SegmentKind = iota
	SegmentMean
	SegmentMax
	// SegmentTaken adds what those have whose Best is the row: the gradient of SegmentMax,
	// where the edges are grouped by their sources and those of one source and row stand side
	// by side.
	SegmentTaken
)

// Segment is rows of a table that are to be reduced over the segments of a CSR, as
// internal/segment's Reduction does, which has the same bits. All addresses are the device's, of
// arrays in C order without gaps that are aligned to their elements. An edge whose source is no
// row of X adds nothing. The zero value has no rows.
type Segment struct {
	X       gpu.Address // [Sources, Width], floats
	Indptr  gpu.Address // [Rows + 1], ids that do not fall
	Indices gpu.Address // [Edges], ids: rows of X
	Weights gpu.Address // [Edges, Heads], floats, for sums and means; 0: all are 1
	Out     gpu.Address // [Rows, Width], floats; Dots reads it
	Best    gpu.Address // of SegmentMax [Rows, Width], ids, or 0; read for SegmentTaken: [Sources, Width]
	Bad     gpu.Address // 64 bits that become at most the place of an id outside of X; or 0

	Sources, Rows, Edges uint64
	Width                uint64 // 1 to MostSegmentWidth
	Heads                uint64 // divides Width, at most MostSegmentHeads
	Kind                 SegmentKind
	IDBits, FloatBits    int // 32 or 64
}

// shape is how many columns one load has, and how many lanes take a row of columns, of which each
// part begins where a load does.
func (a *segmentArgs) shape(columns, apart uint64) (vectors uint64) {
	value := uint64(a.FloatBits / 8)
	vector := min(lowest(apart, 16/value), lowest(uint64(a.X|a.Out), 16)/value)
	if value == 4 && vector < 4 {
		vector = 1
	}
	vectors = (columns + vector - 1) / vector
	a.Vector, a.Group = uint32(vector), uint32(bits.Len64(min(vectors, 32)-1))
	return vectors
}

// args is the part that all launches share.
func (g *Segment) args() segmentArgs {
	a := segmentArgs{
		X: g.X, Indptr: g.Indptr, Indices: g.Indices, Weights: g.Weights, Out: g.Out, Best: g.Best, Bad: g.Bad,
		Sources: g.Sources, Rows: g.Rows, Edges: g.Edges, Width: uint32(g.Width), Heads: uint32(g.Heads),
		IDBits: uint32(g.IDBits), FloatBits: uint32(g.FloatBits),
	}
	if g.Kind == SegmentMean {
		a.Mean = 1
	}
	return a
}

// Reduce puts the reduction into a stream.
func (e *Engine) Reduce(g *Segment, s gpu.Stream) error {
	k, err := Kept(e, "segment", loadSegment)
	if err != nil || g.Rows == 0 {
		return err
	}
	a, kernel, apart := g.args(), &k.sum, g.Width
	switch {
	case g.Kind == SegmentMax:
		kernel = &k.max
	case g.Kind == SegmentTaken:
		kernel = &k.taken
	case g.Weights != 0:
		// The columns of a vector are of one head.
		apart = g.Width / g.Heads
	}
	return a.launch(kernel, (a.shape(g.Width, apart)+31)/32, s)
}

// Dots puts into a stream what writes to dots, [Edges, Heads], for each edge the products of
// its row of X and its row of Out. They are the same on every run of a device, and those of
// internal/segment up to the order of their sums.
func (e *Engine) Dots(g *Segment, dots gpu.Address, s gpu.Stream) error {
	k, err := Kept(e, "segment", loadSegment)
	if err != nil || g.Rows == 0 || g.Edges == 0 {
		return err
	}
	a, each := g.args(), g.Width/g.Heads
	a.Dots = dots
	a.shape(each, each)
	return a.launch(&k.dots, g.Heads, s)
}

// mostSegmentBlocks is how many blocks work on a part at most; each then has several rows. Before
// that each thread has one, so that the device deals out rows of all lengths as it goes.
const mostSegmentBlocks = 1 << 20

func (a *segmentArgs) launch(k *gpu.Kernel[segmentArgs], parts uint64, s gpu.Stream) error {
	each := uint64(segmentThreads) >> a.Group
	blocks := min((a.Rows+each-1)/each, mostSegmentBlocks)
	shape := gpu.Shape{Grid: [3]uint32{uint32(blocks), uint32(parts)}, Block: [3]uint32{segmentThreads}}
	return k.Launch(s, shape, a)
}
