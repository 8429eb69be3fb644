package memory

import (
	"fmt"
	"math"
	"unsafe"
)

// View returns n elements of T at an address of Python: borrowed, and valid only while Python keeps
// the array. It panics for impossible lengths.
func View[T any](address, n int64) []T {
	if n == 0 {
		return nil
	}
	// unsafe.Slice checks this as well, but ends the process where checkptr is on.
	if address == 0 || n < 0 || n > math.MaxInt64/int64(unsafe.Sizeof(*new(T))) {
		panic(fmt.Sprintf("array: expected an address and a length >= 0, got %d elements at %#x", n, address))
	}
	return unsafe.Slice((*T)(Pointer(address)), n)
}

// ViewAt returns n elements of T at a byte offset of m's data. The slice is invalid after Grow.
func ViewAt[T any](m Memory, offset, n int64) []T {
	return unsafe.Slice((*T)(unsafe.Add(m.c.data, offset)), n)
}
