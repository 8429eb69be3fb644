package gpu

// #include "calls.h"
// #cgo noescape gpu_host_alloc
// #cgo nocallback gpu_host_alloc
// #cgo noescape gpu_host_address
// #cgo nocallback gpu_host_address
import "C"

import (
	"unsafe"

	"github.com/mumax/3/cuda/cu"
)

// Pinned is page-locked host memory that kernels can use: Size bytes at Pointer for the host and at
// Address for kernels and copies. The driver allocates it, so the garbage collector neither moves
// nor frees it.
//
// The caller that allocates it owns it and calls Close when no work uses it. Any goroutine may use
// it. The zero value is no memory.
type Pinned struct {
	Pointer unsafe.Pointer
	Address Address
	Size    uint64
	context *Context
}

// AllocPinned allocates bytes of pinned host memory, whose pages every device can use. It costs
// some tens of microseconds and more, so callers should reuse the memory.
func (c *Context) AllocPinned(bytes uint64) (p Pinned, err error) {
	if bytes == 0 {
		return p, nil
	}
	p = Pinned{Size: bytes, context: c}
	err = check("cuMemHostAlloc", C.gpu_host_alloc(c.handle, C.uint64_t(bytes), &p.Pointer))
	if err != nil {
		return Pinned{}, c.shortage(err, "pinned host", bytes)
	}
	if p.Address, err = c.address(uintptr(p.Pointer)); err != nil {
		return Pinned{}, both(err, p.free())
	}
	return p, nil
}

// Bytes returns the memory as a slice, valid until Close.
func (p Pinned) Bytes() []byte { return unsafe.Slice((*byte)(p.Pointer), p.Size) }

// Close frees the memory; it waits for work on the device. After an error it may be called again;
// without memory it does nothing.
func (p *Pinned) Close() error {
	if p.Pointer == nil {
		return nil
	}
	if err := p.free(); err != nil {
		return err
	}
	*p = Pinned{}
	return nil
}

func (p *Pinned) free() error {
	return p.context.Do(func() error { return try("cuMemFreeHost", func() { cu.MemFreeHost(p.Pointer) }) })
}

// address returns the address of the pinned host memory at p for kernels of this context.
func (c *Context) address(p uintptr) (Address, error) {
	var address C.uint64_t
	err := check("cuMemHostGetDevicePointer", C.gpu_host_address(c.handle, C.handle(p), &address))
	return Address(address), err
}
