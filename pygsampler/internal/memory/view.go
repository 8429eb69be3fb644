package memory

import (
	"fmt"
	"math"
	"unsafe"
)

// View is n elements of T at an address that Python gave: borrowed, and valid
// only while Python keeps the array. It panics on lengths that no array has.
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

// ViewAt is n elements of T at a byte offset of m's data. It is void after Grow.
func ViewAt[T any](m Memory, offset, n int64) []T {
	return unsafe.Slice((*T)(unsafe.Add(m.c.data, offset)), n)
}
