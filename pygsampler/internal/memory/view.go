package memory

import "unsafe"

// View is n elements of T at an address that Python gave: borrowed, and valid
// only while Python keeps the array.
func View[T any](address, n int64) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(pointer(address)), n)
}

// At is n elements of T at a byte offset of m's data. It is void after Grow.
func At[T any](m Memory, offset, n int64) []T {
	return unsafe.Slice((*T)(unsafe.Add(m.c.data, offset)), n)
}
