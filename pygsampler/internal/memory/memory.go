// Package memory holds C memory: the reference-counted memory of a batch, its pool, and the DLPack
// and Arrow views, which outlive Go's part of the process. The functions whose addresses Symbol
// returns never enter Go.
package memory

/*
#cgo CFLAGS: -O2 -std=gnu11
#include "memory.h"
#include "arrow.h"
#include "python.h"
extern PyObject *pgs_memory_claim(int64_t *);
extern PyObject *pgs_tensor_maker(void);
extern PyObject *pgs_dlpack_export(void *, void *, int64_t, int32_t, int32_t, int32_t);
extern PyObject *pgs_dlpack_export_device(void *, void *, int64_t, int32_t, int32_t, int32_t, int32_t, int32_t);
extern PyObject *pgs_dlpack_export_tensor(void *, void *, int64_t *, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t);
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrNoMemory reports that the system has no memory; it is wrapped with the size.
var ErrNoMemory = errors.New("out of memory")

// Memory is a reference-counted region that C owns; Python sees it as a plain address. The zero
// value is no memory. Before it is shared it has one owner, and only this owner may grow it or
// write to it.
type Memory struct {
	c *C.pgs_memory
}

// New returns a memory of at least size bytes with one reference; its contents
// are undefined.
func New(size int64) (Memory, error) {
	m := C.pgs_memory_new(C.int64_t(size))
	if m == nil {
		return Memory{}, fmt.Errorf("%w: wanted %d bytes for a batch", ErrNoMemory, size)
	}
	return Memory{m}, nil
}

// FromAddress returns the memory at an address of Python.
func FromAddress(address int64) Memory {
	return Memory{(*C.pgs_memory)(Pointer(address))}
}

// Grow makes the capacity at least size; the contents stay, their address may
// change.
func (m Memory) Grow(size int64) error {
	if size <= int64(m.c.capacity) {
		return nil
	}
	// Half as much again, so that a batch whose hops grow remaps rarely.
	if C.pgs_memory_grow(m.c, C.int64_t(size+size/2)) != 0 && C.pgs_memory_grow(m.c, C.int64_t(size)) != 0 {
		return fmt.Errorf("%w: wanted %d bytes for a batch", ErrNoMemory, size)
	}
	return nil
}

// SetSize records the number of written bytes, which the pool counts.
func (m Memory) SetSize(n int64) { m.c.size = C.int64_t(n) }

// Release drops the caller's reference.
func (m Memory) Release() { C.pgs_memory_release(unsafe.Pointer(m.c)) }

// Pointer returns the address of the bytes.
func (m Memory) Pointer() unsafe.Pointer { return m.c.data }

// Address returns the address for Python; the reference goes with it.
func (m Memory) Address() int64 { return int64(uintptr(unsafe.Pointer(m.c))) }

// Counts are the numbers of memories that are alive or in the pool, and their bytes.
type Counts struct {
	Live        int64 `json:"live"`
	LiveBytes   int64 `json:"live_bytes"`
	Pooled      int64 `json:"pooled"`
	PooledBytes int64 `json:"pooled_bytes"`
}

// Count returns the counters.
func Count() Counts {
	var c C.pgs_memory_counts
	C.pgs_memory_count(&c)
	return Counts{int64(c.live), int64(c.live_bytes), int64(c.pooled), int64(c.pooled_bytes)}
}

// Trim returns the memory of the pool to the system.
func Trim() { C.pgs_memory_trim() }

// Symbol returns the address of a C function that Python calls directly, or 0.
func Symbol(name string) int64 {
	var p unsafe.Pointer
	switch name {
	case "memory_retain":
		p = C.pgs_memory_retain
	case "memory_release":
		p = C.pgs_memory_release
	case "memory_of_object":
		p = C.pgs_memory_of_object
	case "memory_claim":
		p = C.pgs_memory_claim
	case "tensor_maker":
		p = C.pgs_tensor_maker
	case "dlpack_export":
		p = C.pgs_dlpack_export
	case "dlpack_export_device":
		p = C.pgs_dlpack_export_device
	case "dlpack_export_tensor":
		p = C.pgs_dlpack_export_tensor
	case "arrow_export":
		p = C.pgs_arrow_export
	case "arrow_export_device":
		p = C.pgs_arrow_export_device
	}
	return int64(uintptr(p))
}

// Pointer converts an address from outside to a pointer; such memory never belongs to the Go heap,
// so the collector ignores it.
func Pointer(address int64) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}
