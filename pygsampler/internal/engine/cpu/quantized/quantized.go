// Package quantized stores rows of floats in 4 to 16 bits per value, and reads them.
package quantized

/*
#cgo CFLAGS: -O3 -std=c11
#include "quantized.h"
*/
import "C"

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Kinds of stored values. From E4M3 on, kinds have scales, and a value is the product of the stored
// value and its scale.
const (
	Half  = C.PGS_HALF  // IEEE binary16
	Brain = C.PGS_BRAIN // bfloat16
	E4M3  = C.PGS_E4M3  // floats of 8 bits without infinities, of size 448 at most (OCP OFP8)
	Int8  = C.PGS_INT8  // -127 to 127
	Int4  = C.PGS_INT4  // -7 to 7, two in a byte, the first in its low bits
)

// The types that values are read as.
const (
	ToFloat = C.PGS_TO_FLOAT
	ToHalf  = C.PGS_TO_HALF
	ToBrain = C.PGS_TO_BRAIN
)

// Form is the format of the rows of a table: how they are stored and read. The zero value stands
// for rows of bytes.
type Form struct {
	Kind, To int
	ByColumn bool  // whether scales are those of columns, and not of rows
	InFile   bool  // whether table and scales may be those of a file
	Columns  int64 // values of a row, 1 or more
	Scales   int64 // address of float32, 4 bytes each; 0 of a Half and a Brain
}

// Check returns an error if the words are no format for stored rows that begin stride bytes apart.
func (f *Form) Check(stride int64) error {
	if f.Kind < Half || f.Kind > Int4 || f.To < ToFloat || f.To > ToBrain || f.Columns < 1 || f.Columns > 1<<40 ||
		f.Bytes() > stride || f.Kind <= Brain && stride%2 != 0 || (f.Scales != 0) != (f.Kind >= E4M3) || f.Scales%4 != 0 {
		return fmt.Errorf("%w: quantized: expected a kind, a dtype, columns and scales of rows of %d bytes, got %+v", request.ErrValue, stride, *f)
	}
	return nil
}

// Bytes returns the size of a stored row, without padding.
func (f *Form) Bytes() int64 {
	switch f.Kind {
	case Half, Brain:
		return 2 * f.Columns
	case Int4:
		return (f.Columns + 1) / 2
	}
	return f.Columns
}

// ReadBytes returns the size of a row as it is read.
func (f *Form) ReadBytes() int64 {
	if f.To == ToFloat {
		return 4 * f.Columns
	}
	return 2 * f.Columns
}

func (f *Form) words(stride int64) C.struct_pgs_quantized {
	q := C.struct_pgs_quantized{stride: C.int64_t(stride), columns: C.int64_t(f.Columns), kind: C.int32_t(f.Kind), to: C.int32_t(f.To)}
	if f.ByColumn {
		q.by_column = 1
	}
	return q
}

// room is private memory for data that C reads from a file: if the file becomes shorter, Go raises
// an error, while C would end the process.
type room struct {
	bytes  []byte
	scales []float32
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// roomFor returns a room with bytes bytes and scales scales.
func roomFor(bytes, scales int64) *room {
	r := rooms.Get().(*room)
	r.bytes = slices.Grow(r.bytes[:0], int(bytes))[:bytes]
	r.scales = slices.Grow(r.scales[:0], int(scales))[:scales]
	return r
}

// Read writes the rows of ids, all of which the table has, to out without gaps. Rows of the table
// begin stride bytes apart.
func Read[I int32 | int64](f *Form, table []byte, stride int64, ids []I, out []byte) {
	if len(ids) == 0 {
		return
	}
	q, scales := f.words(stride), int64(0)
	if !f.InFile {
		C.pgs_dequantize(
			&q, (*C.uint8_t)(&table[0]), (*C.float)(memory.Pointer(f.Scales)), unsafe.Pointer(&ids[0]), C.int(8*unsafe.Sizeof(ids[0])),
			C.int64_t(len(ids)), unsafe.Pointer(&out[0]))
		return
	}
	switch {
	case f.Scales != 0 && f.ByColumn:
		scales = f.Columns
	case f.Scales != 0:
		scales = int64(len(ids))
	}
	r := roomFor(int64(len(ids))*stride, scales)
	defer rooms.Put(r)
	prefetch.Copy(table, stride, ids, r.bytes)
	if f.ByColumn {
		copy(r.scales, memory.View[float32](f.Scales, scales))
	} else if scales > 0 {
		of := memory.View[float32](f.Scales, int64(len(table))/stride)
		for i, id := range ids {
			r.scales[i] = of[id]
		}
	}
	var by *C.float
	if scales > 0 {
		by = (*C.float)(&r.scales[0])
	}
	C.pgs_dequantize(&q, (*C.uint8_t)(&r.bytes[0]), by, nil, 0, C.int64_t(len(ids)), unsafe.Pointer(&out[0]))
}

// Source is a set of rows of floats to store.
type Source struct {
	Address int64 // of [Rows, Columns] floats
	Bits    int64 // of a float: 16, 32 or 64
	Brain   bool  // whether floats of 16 bits are bfloat16
	Rows    int64
}

func (s *Source) kind() C.int {
	switch {
	case s.Bits == 64:
		return C.PGS_DOUBLE
	case s.Bits == 32:
		return C.PGS_FLOAT
	case s.Brain:
		return Brain
	}
	return Half
}

// unitValues is about how many values a worker stores at a time.
const unitValues = 1 << 16

// Store writes the rows to the address out, stride bytes apart with zeros between them, and the
// scales of rows, if any, to f. With out 0 it raises the scales of columns to the greatest absolute
// values of the rows; Scale then converts them to scales. It returns the position of the first
// value that f cannot store, or -1.
func Store(f *Form, s *Source, out, stride int64, crew csc.Crew) (int64, error) {
	if err := f.Check(stride); err != nil {
		return 0, err
	}
	if s.Rows < 0 || s.Bits != 16 && s.Bits != 32 && s.Bits != 64 || s.Rows > 0 && s.Address == 0 || out == 0 && !f.ByColumn {
		return 0, fmt.Errorf("%w: quantized: expected rows of floats at an address, got %+v", request.ErrValue, *s)
	}
	size := max(1, unitValues/f.Columns)
	units := (s.Rows + size - 1) / size
	if out == 0 {
		// Units raise the same numbers.
		crew = nobody{}
	}
	var next, wrong atomic.Int64
	wrong.Store(-1)
	csc.Crewed(crew, units, func() {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for {
			unit := next.Add(1) - 1
			if unit >= units {
				return
			}
			first := unit * size
			at := storeUnit(f, s, out, stride, first, min(size, s.Rows-first))
			if at < 0 {
				continue
			}
			// The first of all is told, whoever finds it.
			for place := first*f.Columns + at; ; {
				known := wrong.Load()
				if known >= 0 && known <= place || wrong.CompareAndSwap(known, place) {
					break
				}
			}
		}
	})
	return wrong.Load(), nil
}

// nobody is a crew without workers.
type nobody struct{}

func (nobody) Borrow(int) int { return 0 }
func (nobody) Return(int)     {}

// storeUnit is Store for rows from first on, with the place among them.
func storeUnit(f *Form, s *Source, out, stride, first, rows int64) int64 {
	row := f.Columns * s.Bits / 8
	r := roomFor(rows*row, 0)
	defer rooms.Put(r)
	copy(r.bytes, memory.View[byte](s.Address+first*row, rows*row))
	q, from := f.words(stride), unsafe.Pointer(&r.bytes[0])
	scales := f.Scales
	if out == 0 {
		return int64(C.pgs_greatest(&q, from, s.kind(), C.int64_t(rows), (*C.float)(memory.Pointer(scales))))
	}
	if !f.ByColumn && scales != 0 {
		scales += 4 * first
	}
	return int64(C.pgs_quantize(&q, from, s.kind(), C.int64_t(rows), (*C.float)(memory.Pointer(scales)), (*C.uint8_t)(memory.Pointer(out+first*stride))))
}

// Scale converts the greatest absolute values of columns, which are in the scales of f, to scales.
func Scale(f *Form) {
	C.pgs_scales(C.int(f.Kind), (*C.float)(memory.Pointer(f.Scales)), C.int64_t(f.Columns))
}
