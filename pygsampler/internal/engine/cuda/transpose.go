package cuda

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// transposeArgs mirrors TransposeArgs in kernels/layers/transpose.cu.
type transposeArgs struct {
	Indptr, Indices, Starts, Rows, Places          gpu.Address
	Tiles, NumLongs, Counts, Longs, Numbers, Lists gpu.Address
	Sources, NumRows, Edges                        uint64
	Shift, Passes, IDBits, _                       uint32
}

// transposeKernels are the kernels of kernels/layers/transpose.cu, in the order of their launches.
type transposeKernels struct {
	clear, count, scan, place, order gpu.Kernel[transposeArgs]
}

func loadTranspose(e *Engine) (*transposeKernels, error) {
	var k transposeKernels
	for name, to := range map[string]*gpu.Kernel[transposeArgs]{
		"transpose_clear": &k.clear, "transpose_count": &k.count, "transpose_scan": &k.scan, "transpose_place": &k.place, "transpose_order": &k.order,
	} {
		var err error
		if *to, err = KernelOf[transposeArgs](e, "transpose", name, 0); err != nil {
			return nil, err
		}
	}
	return &k, nil
}

// MostTransposed is the maximal number of sources, rows or edges of a transposed CSR.
const MostTransposed = 1<<32 - 2

// Transposition describes the edges of a CSR that are grouped by their sources in the order of the
// edges, like the Transpose of the CPU engine's package layers. All addresses are on the device, of
// arrays that are aligned to their elements. Edges from the last offset on are padding; edges
// without a source are left out. The zero value has no edges, and no memory for the first offset.
type Transposition struct {
	Indptr  gpu.Address // [Rows + 1], ids that do not fall
	Indices gpu.Address // [Edges], ids
	Starts  gpu.Address // [Sources + 1], ids: where each source's edges begin
	RowsOf  gpu.Address // [Edges], ids: the row of each edge; as Places undefined beyond the last start
	Places  gpu.Address // [Edges], ids: which edge it is; or 0
	Scratch gpu.Address // Room bytes, aligned to 8

	Sources, Rows, Edges uint64 // at most MostTransposed
	IDBits               int    // 32 or 64
}

// Room returns the number of bytes of working memory.
func (t *Transposition) Room() uint64 {
	return 8*t.Edges + 4*(t.Edges+t.Edges/transposeLong+transposeTiles+1+t.Sources)
}

// Transpose enqueues the transposition.
func (e *Engine) Transpose(t *Transposition, s gpu.Stream) error {
	k, err := Cached(e, "transpose", loadTranspose)
	if err != nil {
		return err
	}
	a := transposeArgs{
		Indptr: t.Indptr, Indices: t.Indices, Starts: t.Starts, Rows: t.RowsOf, Places: t.Places,
		Sources: t.Sources, NumRows: t.Rows, Edges: t.Edges, IDBits: uint32(t.IDBits),
		Passes: uint32(max(1, (bits.Len64(t.Edges)+7)/8)),
	}
	for a.Shift = 8; t.Sources>>a.Shift >= transposeTiles; a.Shift++ {
	}
	a.Lists = t.Scratch
	a.Numbers = a.Lists + gpu.Address(8*t.Edges)
	a.Longs = a.Numbers + gpu.Address(4*t.Edges)
	a.Tiles = a.Longs + gpu.Address(4*(t.Edges/transposeLong))
	a.NumLongs = a.Tiles + 4*transposeTiles
	a.Counts = a.NumLongs + 4
	tiles := max(1, (t.Sources+1<<a.Shift-1)>>a.Shift)
	// The grid has as many threads as can run at a time, if there is work for them.
	blocks := func(items uint64) uint64 {
		return min((items+transposeThreads-1)/transposeThreads, 8*uint64(e.context.Properties().Multiprocessors))
	}
	edges := blocks(t.Edges)
	for _, one := range []struct {
		kernel *gpu.Kernel[transposeArgs]
		blocks uint64
	}{{&k.clear, blocks(transposeTiles + 1 + t.Sources)}, {&k.count, edges}, {&k.scan, tiles}, {&k.place, edges}, {&k.order, edges}} {
		if one.blocks == 0 {
			continue
		}
		shape := gpu.Shape{Grid: [3]uint32{uint32(one.blocks)}, Block: [3]uint32{transposeThreads}}
		if err := one.kernel.Launch(s, shape, &a); err != nil {
			return err
		}
	}
	return nil
}
