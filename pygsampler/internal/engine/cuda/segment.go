package cuda

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// segmentArgs mirrors SegmentArgs in kernels/layers/segment.cuh.
type segmentArgs struct {
	X, Indptr, Indices, Weights, Out, Best, Dots, Bad, IDs, Degrees, Places gpu.Address
	Sources, Rows, Edges, Table                                             uint64
	Width, Heads, Mean, IDBits, FloatBits, Brain, Vector, Group             uint32
	Room                                                                    gpu.Address
	Pieces, Piece                                                           uint64
}

// segmentKernels are the kernels of kernels/layers/segment.cu, or of segment_half.cu.
type segmentKernels struct {
	sum, weighted, placed, byDegree, sumOf, weightedOf gpu.Kernel[segmentArgs]
	max, maxOf, taken, fold, foldMax, dots, dotsOf     gpu.Kernel[segmentArgs]
}

func loadSegments(file, prefix string) func(e *Engine) (*segmentKernels, error) {
	return func(e *Engine) (*segmentKernels, error) {
		var k segmentKernels
		for name, to := range map[string]*gpu.Kernel[segmentArgs]{
			"sum": &k.sum, "weighted": &k.weighted, "placed": &k.placed, "by_degree": &k.byDegree, "sum_of": &k.sumOf,
			"weighted_of": &k.weightedOf, "max": &k.max, "max_of": &k.maxOf, "taken": &k.taken, "fold": &k.fold, "fold_max": &k.foldMax, "dots": &k.dots, "dots_of": &k.dotsOf,
		} {
			var err error
			if *to, err = KernelOf[segmentArgs](e, file, prefix+name, 0); err != nil {
				return nil, err
			}
		}
		return &k, nil
	}
}

var (
	loadSegment       = loadSegments("segment", "segment_")
	loadSegmentNarrow = loadSegments("segment_half", "segment_half_")
)

// segmentKernels returns the kernels for the floats of a segment.
func (e *Engine) segmentKernels(g *Segment) (*segmentKernels, error) {
	if g.FloatBits == 16 {
		return Cached(e, "segment_half", loadSegmentNarrow)
	}
	return Cached(e, "segment", loadSegment)
}

// The maximal numbers of values and of heads of a reduced row. A part of a row, or a head, is a row
// of the grid.
const (
	MostSegmentWidth = 1 << 20
	MostSegmentHeads = 1<<16 - 1
)

// SegmentKind is the reduction that a row becomes of the rows that its edges name.
type SegmentKind int

// Kinds of reductions; the first three are those of internal/engine/cpu/layers.
const (
	SegmentSum SegmentKind = iota
	SegmentMean
	SegmentMax
	// SegmentTaken sums the values whose Best is the row: the gradient of SegmentMax. The edges are
	// grouped by their sources, and the edges of one source and row are adjacent.
	SegmentTaken
)

// Segment describes rows of a table that are reduced over the segments of a CSR, with the same bits
// as layers.Reduction of the CPU engine. All addresses are on the device, of arrays in C order
// without gaps that are aligned to their elements; X may be page-locked memory of the host. Edges
// from the last offset on are padding. An edge without a source, or whose source has no row of X,
// adds nothing; of 64-bit ids the low halves count. The zero value has no rows.
type Segment struct {
	X       gpu.Address // [Table, Width], floats
	Indptr  gpu.Address // [Rows + 1], ids that do not fall
	Indices gpu.Address // [Edges], ids: sources
	Weights gpu.Address // [Edges, Heads], floats, for sums and means; 0: all are 1
	Out     gpu.Address // [Rows, Width], floats; Dots reads it
	Best    gpu.Address // of SegmentMax [Rows, Width], ids: sources; or 0; read for SegmentTaken: [Sources, Width]
	Bad     gpu.Address // 64 bits that become at most the place of an id that is none; or 0
	IDs     gpu.Address // [Sources], ids: the row of X that a source has; 0: its own
	Degrees gpu.Address // [Sources + 1], offsets by whose steps each source's row is divided; 0, as with weights: by 1
	Places  gpu.Address // [Edges], ids: which weight an edge has, if any; 0, as with IDs: its own

	Sources, Rows, Edges uint64 // at most MostTransposed sources
	Table                uint64 // rows of X, at most MostTransposed; as many as sources without IDs
	Width                uint64 // 1 to MostSegmentWidth
	Heads                uint64 // divides Width, at most MostSegmentHeads
	Kind                 SegmentKind
	IDBits, FloatBits    int  // 32 or 64; floats 16 too
	Brain                bool // whether floats of 16 bits are bfloat16

	Piece uint64      // as internal/engine/cpu/layers's Reduction has it
	Room  gpu.Address // scratch of RoomBytes(), aligned to 8, for the work on pieces of long rows; 0: each is one group's
}

// pieces returns the number of items of a launch that process pieces of long rows.
func (g *Segment) pieces() uint64 {
	if g.Piece == 0 {
		return 0
	}
	return (g.Edges + g.Piece - 1) / g.Piece
}

// RoomBytes returns the size of Room: two values for each column of a piece, and for each head; for
// sums without a softmax, one for each column.
func (g *Segment) RoomBytes(plain bool) uint64 {
	values := 2 * (g.Width + g.Heads)
	if plain {
		values = g.Width
	}
	return g.pieces() * values * g.sumBytes()
}

// sumBytes returns the width of the values that are added.
func (g *Segment) sumBytes() uint64 { return uint64(max(g.FloatBits, 32) / 8) }

// fold puts into a stream what adds the pieces in room, of rows of a width, and writes long rows to
// out, of g's floats.
func (e *Engine) fold(g *Segment, room, out gpu.Address, width uint64, s gpu.Stream) error {
	k, err := e.segmentKernels(g)
	if err != nil {
		return err
	}
	f := *g
	f.Out, f.X, f.Width, f.Heads, f.Room = out, out, width, 1, room
	a := f.args()
	return k.fold.Launch(s, a.foldGrid(a.parts(width, width)), &a)
}

// inSums is a segment with the same rows whose values are as wide as sums.
func (g *Segment) inSums() *Segment {
	f := *g
	f.FloatBits, f.Brain = max(g.FloatBits, 32), false
	return &f
}

// shape chooses the number of columns per load, and of lanes per row of columns, each part of which
// begins at a load.
func (a *segmentArgs) shape(columns, apart uint64) (vectors uint64) {
	value := uint64(a.FloatBits / 8)
	vector := min(lowest(apart, 16/value), lowest(uint64(a.X|a.Out), 16)/value)
	vectors = (columns + vector - 1) / vector
	a.Vector, a.Group = uint32(vector), uint32(bits.Len64(min(vectors, 32)-1))
	return vectors
}

// parts returns the number of parts of a row, each a warp's vectors, of the shape that it chooses.
func (a *segmentArgs) parts(columns, apart uint64) uint64 { return (a.shape(columns, apart) + 31) / 32 }

// args is the part that all launches share.
func (g *Segment) args() segmentArgs {
	a := segmentArgs{
		X: g.X, Indptr: g.Indptr, Indices: g.Indices, Weights: g.Weights, Out: g.Out, Best: g.Best, Bad: g.Bad,
		IDs: g.IDs, Degrees: g.Degrees, Places: g.Places, Sources: g.Sources, Rows: g.Rows, Edges: g.Edges, Table: g.Table,
		Width: uint32(g.Width), Heads: uint32(g.Heads), Mean: Word(g.Kind == SegmentMean),
		IDBits: uint32(g.IDBits), FloatBits: uint32(g.FloatBits), Brain: Word(g.Brain),
		Room: g.Room, Piece: g.Piece,
	}
	if g.Room != 0 {
		a.Pieces = g.pieces()
	}
	return a
}

// Reduce enqueues the reduction.
func (e *Engine) Reduce(g *Segment, s gpu.Stream) error {
	k, err := e.segmentKernels(g)
	if err != nil || g.Rows == 0 {
		return err
	}
	a, apart, of := g.args(), g.Width, g.IDs != 0
	if g.Weights != 0 {
		// The columns of a vector are of one head.
		apart = g.Width / g.Heads
	}
	var kernel *gpu.Kernel[segmentArgs]
	switch {
	case g.Kind == SegmentMax && of:
		kernel = &k.maxOf
	case g.Kind == SegmentMax:
		kernel = &k.max
	case g.Kind == SegmentTaken:
		kernel = &k.taken
	case g.Weights != 0 && of:
		kernel = &k.weightedOf
	case g.Places != 0 && g.Weights != 0:
		kernel = &k.placed
	case g.Weights != 0:
		kernel = &k.weighted
	case g.Degrees != 0:
		kernel = &k.byDegree
	case of:
		kernel = &k.sumOf
	default:
		kernel = &k.sum
	}
	parts := a.parts(g.Width, apart)
	if err := kernel.Launch(s, a.grid(parts), &a); err != nil || a.Pieces == 0 {
		return err
	}
	kernel = &k.fold
	if g.Kind == SegmentMax {
		kernel = &k.foldMax
	}
	return kernel.Launch(s, a.foldGrid(parts), &a)
}

// manyEdges is from how many on Dots and EdgeScores, which need no room, look for long rows.
const manyEdges = 1 << 17

// Dots enqueues the computation of dots, [Edges, Heads]: for each edge the dot products of its row
// of X and its row of Out; 0 for padding. They are the same on every run of a device, and equal
// those of the CPU engine up to the order of their sums.
func (e *Engine) Dots(g *Segment, dots gpu.Address, s gpu.Stream) error {
	k, err := e.segmentKernels(g)
	if err != nil || g.Edges == 0 {
		return err
	}
	if g.Rows == 0 {
		return s.Fill8(dots, 0, g.Edges*g.Heads*uint64(g.FloatBits/8))
	}
	a, each, kernel := g.args(), g.Width/g.Heads, &k.dots
	if g.IDs != 0 {
		kernel = &k.dotsOf
	}
	a.Dots = dots
	if g.Edges >= manyEdges {
		a.Pieces = g.pieces()
	}
	a.shape(each, each)
	return kernel.Launch(s, a.grid(g.Heads), &a)
}

// mostSegmentBlocks is the maximal number of blocks of a part; each then has several rows. Below it
// each group has one row, so that the device balances rows of all lengths.
const mostSegmentBlocks = 1 << 20

// grid returns the grid for parts parts of each item.
func (a *segmentArgs) grid(parts uint64) gpu.Shape { return a.gridOf(a.Pieces+a.Rows, parts) }

// foldGrid returns the grid for parts parts of each piece.
func (a *segmentArgs) foldGrid(parts uint64) gpu.Shape { return a.gridOf(a.Pieces, parts) }

func (a *segmentArgs) gridOf(items, parts uint64) gpu.Shape {
	each := uint64(segmentThreads) >> a.Group
	blocks := min((items+each-1)/each, mostSegmentBlocks)
	return gpu.Shape{Grid: [3]uint32{uint32(blocks), uint32(parts)}, Block: [3]uint32{segmentThreads}}
}
