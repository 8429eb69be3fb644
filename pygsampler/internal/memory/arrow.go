package memory

/*
#include <stdlib.h>
#include "arrow.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// ArrowPair is a schema and an array of Arrow's C data interface in C memory, at
// the two addresses.
type ArrowPair struct {
	c *C.pgs_arrow_pair
}

// NewArrowPair describes length values at data by the format; the pair holds a
// reference to m, and its release enters no Go.
func NewArrowPair(m Memory, format string, flags, data, length int64) (ArrowPair, error) {
	f := C.CString(format)
	defer C.free(unsafe.Pointer(f))
	pair := C.pgs_arrow_new(f, C.int64_t(flags), m.c, Pointer(data), C.int64_t(length))
	if pair == nil {
		return ArrowPair{}, fmt.Errorf("%w: wanted an Arrow array", ErrNoMemory)
	}
	return ArrowPair{pair}, nil
}

// BorrowArrowPair copies structs that stay with their owner.
func BorrowArrowPair(schema, array int64) (ArrowPair, error) {
	pair := C.pgs_arrow_borrow(Pointer(schema), Pointer(array))
	if pair == nil {
		return ArrowPair{}, fmt.Errorf("%w: wanted an Arrow array", ErrNoMemory)
	}
	return ArrowPair{pair}, nil
}

// EmptyArrowPair returns a pair for an exporter to fill.
func EmptyArrowPair() (ArrowPair, error) {
	pair := (*C.pgs_arrow_pair)(C.calloc(1, C.sizeof_pgs_arrow_pair))
	if pair == nil {
		return ArrowPair{}, fmt.Errorf("%w: wanted an Arrow array", ErrNoMemory)
	}
	return ArrowPair{pair}, nil
}

// Schema returns the address of the schema's struct.
func (p ArrowPair) Schema() uintptr { return uintptr(unsafe.Pointer(&p.c.schema)) }

// Array returns the address of the array's struct.
func (p ArrowPair) Array() uintptr { return uintptr(unsafe.Pointer(&p.c.array)) }

// Address returns the address that Python passes to arrow_export, which takes the pair over.
func (p ArrowPair) Address() int64 { return int64(uintptr(unsafe.Pointer(p.c))) }

// Format returns the format string and the flags of the schema.
func (p ArrowPair) Format() (string, int64) {
	return C.GoString(p.c.schema.format), int64(p.c.schema.flags)
}

// Values returns the address of the values' buffer, 0 if an empty array has none, and the array's
// length, offset and null count.
func (p ArrowPair) Values() (data, length, offset, nulls int64) {
	a := p.c.array
	if a.n_buffers > 1 {
		data = int64(uintptr(unsafe.Slice(a.buffers, 2)[1]))
	}
	return data, int64(a.length), int64(a.offset), int64(a.null_count)
}

// Free releases both structs.
func (p ArrowPair) Free() { C.pgs_arrow_free(p.c) }
