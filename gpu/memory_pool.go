package gpu

// #include "calls.h"
// #cgo noescape gpu_pool_create
// #cgo nocallback gpu_pool_create
// #cgo noescape gpu_pool_reserved
// #cgo nocallback gpu_pool_reserved
// #cgo noescape gpu_alloc
// #cgo nocallback gpu_alloc
// #cgo nocallback gpu_free
import "C"

import (
	"sync/atomic"

	"github.com/mumax/3/cuda/cu"
)

// Address is a place in memory as kernels see it: on a device, or in mapped host memory. In an Args
// struct it stands for a pointer.
type Address uint64

// MemoryPool allocates memory of one device in stream order: a block may be used by work that is enqueued
// after its allocation, and is free for others once the stream has reached its release. Neither
// waits for the device.
//
// It is a separate pool, not the device's default pool, whose settings belong to the whole process.
// If the device has no pools, every allocation and every release costs a wait, and the results are
// the same.
//
// Any goroutine may use it. The zero value is of no use.
type MemoryPool struct {
	context *Context
	handle  C.handle // 0: the device has no pools
	used    atomic.Int64
	closed  atomic.Bool
}

// NewPool returns a pool that retains up to keep bytes of freed memory for later allocations
// instead of returning it to the device whenever the host waits.
func (c *Context) NewPool(keep uint64) (*MemoryPool, error) {
	p := &MemoryPool{context: c}
	if !c.properties.Pools {
		return p, nil
	}
	err := check("cuMemPoolCreate", C.gpu_pool_create(c.handle, C.int(c.number), &p.handle))
	switch code(err) {
	case 0:
	case symbolNotFound, notSupported:
		return p, nil
	default:
		return nil, err
	}
	err = check("cuMemPoolSetAttribute", C.gpu_pool_keep(c.handle, p.handle, C.uint64_t(keep)))
	if err != nil {
		C.gpu_pool_destroy(c.handle, p.handle)
		return nil, err
	}
	return p, nil
}

// Ordered reports whether the device has pools, so that no allocation waits.
func (p *MemoryPool) Ordered() bool { return p.handle != 0 }

// Alloc allocates bytes of memory, aligned to 256, with arbitrary content, for work in s from now
// on. Other streams first wait for an event recorded in s. A size of 0 is allowed and returns no
// memory.
func (p *MemoryPool) Alloc(s Stream, bytes uint64) (m Memory, err error) {
	if s.context.handle != p.context.handle {
		return m, refuse("cuMemAllocFromPoolAsync", invalidHandle, "stream: expected one of device %d, got one of device %d",
			p.context.device, s.context.device)
	}
	if bytes == 0 {
		return m, nil
	}
	if p.handle == 0 {
		err = p.context.Do(func() error {
			return try("cuMemAlloc", func() { m.Address = Address(cu.MemAlloc(int64(bytes))) })
		})
	} else {
		var address C.uint64_t
		err = check("cuMemAllocFromPoolAsync",
			C.gpu_alloc(p.context.handle, p.handle, s.handle, C.uint64_t(bytes), &address))
		m.Address = Address(address)
	}
	if err != nil {
		return Memory{}, p.context.shortage(err, "device", bytes)
	}
	m.pool, m.Size = p, bytes
	p.used.Add(int64(bytes))
	return m, nil
}

// Used returns the number of allocated bytes of the pool.
func (p *MemoryPool) Used() int64 { return p.used.Load() }

// Reserved returns the number of bytes of the device that the pool holds, allocated or not.
func (p *MemoryPool) Reserved() (int64, error) {
	if p.handle == 0 {
		return p.Used(), nil
	}
	var bytes C.uint64_t
	err := check("cuMemPoolGetAttribute", C.gpu_pool_reserved(p.context.handle, p.handle, &bytes))
	return int64(bytes), err
}

// Trim returns freed memory to the device, as far as the device no longer uses it, until the pool
// reserves at most keep bytes.
func (p *MemoryPool) Trim(keep uint64) error {
	if p.handle == 0 {
		return nil
	}
	return check("cuMemPoolTrimTo", C.gpu_pool_trim(p.context.handle, p.handle, C.uint64_t(keep)))
}

// Close releases the pool. Allocated memory stays valid, and the device gets it back once it is
// freed. After an error it may be called again.
func (p *MemoryPool) Close() error {
	if p.handle == 0 || !p.closed.CompareAndSwap(false, true) {
		return nil
	}
	err := check("cuMemPoolDestroy", C.gpu_pool_destroy(p.context.handle, p.handle))
	p.closed.Store(err == nil)
	return err
}

// Memory is a block of device memory, Size bytes at Address. The holder owns it
// and calls Free on one copy. The zero value is no memory.
type Memory struct {
	Address Address
	Size    uint64
	pool    *MemoryPool
}

// Free frees the block once the present work of s is complete. s must have waited for work of other
// streams that uses the block. After an error it may be called again; without memory it does
// nothing.
func (m *Memory) Free(s Stream) (err error) {
	if m.pool == nil {
		return nil
	}
	p := m.pool
	if p.handle != 0 {
		err = check("cuMemFreeAsync", C.gpu_free(p.context.handle, s.handle, C.uint64_t(m.Address)))
	} else if err = s.Synchronize(); err == nil {
		err = p.context.Do(func() error {
			return try("cuMemFree", func() { cu.MemFree(cu.DevicePtr(m.Address)) })
		})
	}
	if err != nil {
		return err
	}
	p.used.Add(-int64(m.Size))
	*m = Memory{}
	return nil
}

// Pooled reports whether the block is freed by cuMemFreeAsync instead of cuMemFree.
func (m Memory) Pooled() bool { return m.pool != nil && m.pool.handle != 0 }

// Disown passes the block to a new owner, which frees it by the driver's function that Pooled
// names; the pool no longer counts it.
func (m *Memory) Disown() {
	if m.pool != nil {
		m.pool.used.Add(-int64(m.Size))
		*m = Memory{}
	}
}
