// Package layers computes the layer operations of GNNs on the CPU: for each row of a CSR the sum,
// the mean or the maximum of the table rows that its edges name, and attention over them. The
// loops are C, whose compiler uses wide registers.
package layers

/*
#cgo CFLAGS: -O3 -std=c11
#include <stdlib.h>
#include "reduce.h"
*/
import "C"

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Kinds of reductions.
const (
	Sum  = C.PGS_SUM
	Mean = C.PGS_MEAN
	Max  = C.PGS_MAX
)

// Reduction describes a reduction by the addresses of arrays in C order that Python keeps alive.
// Edges from the last offset on are padding and are never read.
type Reduction struct {
	X       int64 // [Table, Width], floats
	Indptr  int64 // [Rows + 1], ids, from 0 to at most Edges
	Indices int64 // [Edges], ids: sources
	Weights int64 // [Edges, Heads], floats; 0: none
	Out     int64 // [Rows, Width], floats
	Best    int64 // of Max [Rows, Width], ids: which source it was, -1 of none

	Sources, Rows, Edges, Width, Heads int64

	Kind, IDBits, FloatBits int64
	Brain                   int64 // whether floats of 16 bits are bfloat16

	IDs     int64 // [Sources], ids: the row of X that a source has; 0: its own
	Table   int64 // rows of X; as many as sources without IDs
	Degrees int64 // [Sources + 1], ids: offsets, by whose steps each source's row is divided; 0: none
	Places  int64 // [Edges], ids: which weight an edge has, if any; 0: its own

	// Piece splits the sums of rows of at least 2 Piece edges into sums of pieces of Piece edges,
	// the last of which has the rest; 0: rows are sums of edges.
	Piece int64
}

// unitValues is about how many values a worker reads at a time.
const unitValues = 1 << 18

// Reduce computes Out, and Best.
func (r *Reduction) Reduce(crew csc.Crew) error {
	c, err := r.checked()
	if err != nil {
		return err
	}
	most := int64(math.MaxInt64)
	if r.Piece > 0 {
		// From so many edges on a row is more work than others are between two looks at it.
		most = max(2*r.Piece, 4*unitValues/r.Width)
	}
	skipped := new(C.int32_t)
	err = r.rows(crew, func(low, high C.int64_t) C.int64_t { return C.pgs_reduce(&c, low, high, C.int64_t(most), skipped) })
	if err != nil || *skipped == 0 {
		return err
	}
	indptr := csc.Borrow(r.Indptr, r.Rows+1, int(r.IDBits))
	for row := range r.Rows {
		if edges := indptr.Element(row+1) - indptr.Element(row); edges >= most {
			if err := r.reduceLong(&c, row, edges/r.Piece, crew); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduceLong computes a row of several pieces.
func (r *Reduction) reduceLong(c *C.pgs_reduction, row, pieces int64, crew csc.Crew) error {
	values := pieces * r.Width
	sums := C.malloc(C.size_t(values * max(r.FloatBits, 32) / 8))
	defer C.free(sums)
	var best unsafe.Pointer
	if r.Best != 0 {
		best = C.malloc(C.size_t(values * r.IDBits / 8))
		defer C.free(best)
	}
	err := r.units(crew, pieces, max(1, unitValues/(r.Piece*r.Width)), func(low, high C.int64_t) C.int64_t {
		return C.pgs_reduce_pieces(c, C.int64_t(row), low, high, sums, best)
	})
	if err == nil {
		C.pgs_fold_pieces(c, C.int64_t(row), C.int64_t(pieces), sums, best)
	}
	return err
}

// Dots writes to dots [Edges, Heads] the dot products of each edge's row of X and row of Out; 0 for
// padding.
func (r *Reduction) Dots(dots int64, crew csc.Crew) error {
	c, err := r.checked()
	if err != nil {
		return err
	}
	r.clearPadding(dots, r.Heads*r.FloatBits/8)
	return r.rows(crew, func(low, high C.int64_t) C.int64_t { return C.pgs_dots(&c, pointer(dots), low, high) })
}

// clearPadding clears the padding of an array with each bytes per edge.
func (r *Reduction) clearPadding(array, each int64) {
	last := csc.Borrow(r.Indptr, r.Rows+1, int(r.IDBits)).Element(r.Rows)
	clear(memory.View[byte](array+last*each, (r.Edges-last)*each))
}

// Transpose groups the edges by their sources: starts [Sources + 1], and the row and the position
// of each edge, in the order of the edges. places may be 0 to leave the positions out.
func (r *Reduction) Transpose(starts, rows, places int64) error {
	c, err := r.checked()
	if err != nil {
		return err
	}
	return r.fault(int64(C.pgs_transpose(&c, pointer(starts), pointer(rows), pointer(places))))
}

// Check validates all fields; it does not read the arrays.
func (r *Reduction) Check() error {
	switch {
	case r.IDBits != 32 && r.IDBits != 64 || r.FloatBits != 16 && r.FloatBits != 32 && r.FloatBits != 64:
		return fmt.Errorf("%w: segments: expected ids of 32 or 64 bits and floats of 16, 32 or 64, got ids of %d and floats of %d", request.ErrType, r.IDBits, r.FloatBits)
	case r.Kind < Sum || r.Kind > Max:
		return fmt.Errorf("%w: segments: expected a kind from %d to %d, got %d", request.ErrValue, Sum, Max, r.Kind)
	case min(r.Sources, r.Rows, r.Edges) < 0 || r.Width < 1 || r.Heads < 1 || r.Width%r.Heads != 0:
		return fmt.Errorf("%w: segments: expected sizes >= 0 and heads that divide the width, got %+v", request.ErrValue, *r)
	case r.Piece < 0 || r.Piece%8 != 0 || r.Piece > 1<<30:
		return fmt.Errorf("%w: segments: expected a multiple of 8 edges in a piece, got %d", request.ErrValue, r.Piece)
	case r.Table < 0 || r.IDs == 0 && r.Table != r.Sources:
		return fmt.Errorf("%w: segments: expected a row of x for each of %d sources, or ids, got %d rows", request.ErrValue, r.Sources, r.Table)
	case r.Degrees != 0 && (r.Weights != 0 || r.IDs != 0) || r.Places != 0 && r.IDs != 0:
		return fmt.Errorf("%w: segments: expected degrees alone, and places without ids, got %+v", request.ErrValue, *r)
	case r.Indptr == 0 || r.Rows > 0 && r.Out == 0 || r.Table > 0 && r.X == 0 || r.Edges > 0 && r.Indices == 0:
		return fmt.Errorf("%w: segments: expected addresses, got %+v", request.ErrValue, *r)
	}
	return nil
}

func (r *Reduction) checked() (c C.pgs_reduction, err error) {
	if err := r.Check(); err != nil {
		return c, err
	}
	indptr := csc.Borrow(r.Indptr, r.Rows+1, int(r.IDBits))
	if first, last := indptr.Element(0), indptr.Element(r.Rows); first != 0 || last < 0 || last > r.Edges {
		return c, fmt.Errorf("%w: indptr: expected values from 0 to at most %d, got %d to %d", request.ErrValue, r.Edges, first, last)
	}
	return C.pgs_reduction{
		x: pointer(r.X), indptr: pointer(r.Indptr), indices: pointer(r.Indices), weights: pointer(r.Weights),
		out: pointer(r.Out), best: pointer(r.Best), sources: C.int64_t(r.Sources), rows: C.int64_t(r.Rows),
		edges: C.int64_t(r.Edges), width: C.int64_t(r.Width), heads: C.int64_t(r.Heads), kind: C.int32_t(r.Kind),
		id_bits: C.int32_t(r.IDBits), float_bits: C.int32_t(r.FloatBits), brain: C.int32_t(r.Brain),
		ids: pointer(r.IDs), table: C.int64_t(r.Table), degrees: pointer(r.Degrees), places: pointer(r.Places),
		piece: C.int64_t(r.Piece),
	}, nil
}

// rows calls work for all rows, in units, on as many cores as are idle.
func (r *Reduction) rows(crew csc.Crew, work func(low, high C.int64_t) C.int64_t) error {
	// Edges make the work, and most rows have as many as others.
	each := max(1, r.Edges/max(r.Rows, 1)) * r.Width
	return r.units(crew, r.Rows, max(1, unitValues/each), work)
}

// units calls work for items items, in units of size, on all idle cores.
func (r *Reduction) units(crew csc.Crew, items, size int64, work func(low, high C.int64_t) C.int64_t) error {
	units := (items + size - 1) / size
	var next, wrong atomic.Int64
	wrong.Store(-1)
	worker := func() {
		for {
			low := (next.Add(1) - 1) * size
			if low >= items {
				return
			}
			if place := int64(work(C.int64_t(low), C.int64_t(min(low+size, items)))); place != -1 {
				wrong.Store(place)
			}
		}
	}
	csc.Crewed(crew, units, worker)
	return r.fault(wrong.Load())
}

// fault returns the error for a result of the C functions.
func (r *Reduction) fault(place int64) error {
	switch {
	case place == -1:
		return nil
	case place == -2:
		return fmt.Errorf("%w: indptr: expected values that do not fall", request.ErrValue)
	case place < 0:
		return fmt.Errorf("%w: segments: expected room for a row of %d values", memory.ErrNoMemory, r.Width)
	}
	found := csc.Borrow(r.Indices, r.Edges, int(r.IDBits)).Element(place)
	if r.IDs != 0 && found >= 0 && found < r.Sources {
		return fmt.Errorf("%w: of[%d]: expected a row of x in [0, %d), got %d", request.ErrIndex, found, r.Table, csc.Borrow(r.IDs, r.Sources, int(r.IDBits)).Element(found))
	}
	return fmt.Errorf("%w: indices[%d]: expected a row of x in [0, %d), got %d", request.ErrIndex, place, r.Sources, found)
}

func pointer(address int64) unsafe.Pointer { return memory.Pointer(address) }
