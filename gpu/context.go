package gpu

// #include "calls.h"
// #cgo noescape gpu_enter
// #cgo nocallback gpu_enter
// #cgo nocallback gpu_leave
// #cgo noescape gpu_retain
// #cgo nocallback gpu_retain
import "C"

import (
	"runtime"
	"sync"

	"github.com/mumax/3/cuda/cu"
)

// Context is one reference to a device's primary context, which torch and every other user of
// CUDA's runtime library work in: their addresses, streams and events are valid here.
//
// Invariant: it is retained from the driver, never created, and the driver keeps it alive until
// every holder has released it. Objects that are created in a Context must be closed before it. All
// functions of this package that have a context make it current for the length of their call, on
// whichever thread they run, and leave the thread's own current context as it was; so every method
// may be called from any goroutine, and at the same time from several. The zero value is of no use.
type Context struct {
	device     int
	properties Properties
	number     cu.Device
	handle     C.handle

	closing sync.Mutex
	held    bool
}

// Retain takes a reference to the primary context of device i.
func Retain(i int) (*Context, error) {
	c := &Context{device: i}
	var err error
	if c.properties, err = DeviceProperties(i); err != nil {
		return nil, err
	}
	if c.number, err = device(i); err != nil {
		return nil, err
	}
	if err := check("cuDevicePrimaryCtxRetain", C.gpu_retain(C.int(c.number), &c.handle)); err != nil {
		return nil, err
	}
	c.held = true
	return c, nil
}

// Close releases the reference. Once it has succeeded it does nothing more; after an error the
// reference remains, and Close may be called again.
func (c *Context) Close() error {
	c.closing.Lock()
	defer c.closing.Unlock()
	if !c.held {
		return nil
	}
	if err := check("cuDevicePrimaryCtxRelease", C.gpu_release(C.int(c.number))); err != nil {
		return err
	}
	c.held = false
	return nil
}

// Device returns the index of the device.
func (c *Context) Device() int { return c.device }

// Properties returns the properties of the device.
func (c *Context) Properties() Properties { return c.properties }

// Handle returns the driver's CUcontext, which is the same for all references to one device.
func (c *Context) Handle() uintptr { return uintptr(c.handle) }

// Do runs f with the context current on a thread that f has to itself. No function of this package
// needs it; many calls in a row are cheaper inside, and mumax's own calls need it. Calls may be
// nested. An error of f takes precedence over an error of the switch.
func (c *Context) Do(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var pushed C.int
	if err := check("", C.gpu_enter(c.handle, &pushed)); err != nil {
		return err
	}
	// Deferred, so that also a panic leaves the thread as it was.
	defer func() {
		if left := check("", C.gpu_leave(c.handle, pushed, 0)); err == nil {
			err = left
		}
	}()
	return f()
}

// Synchronize waits until the device has completed all work of this context, of any caller.
func (c *Context) Synchronize() error {
	return c.Do(func() error { return try("cuCtxSynchronize", cu.CtxSynchronize) })
}

// MemoryInfo returns the free and the total bytes of the device's memory, over all processes.
func (c *Context) MemoryInfo() (free, total int64, err error) {
	err = c.Do(func() error {
		return try("cuMemGetInfo", func() { free, total = cu.MemGetInfo() })
	})
	return free, total, err
}

// EnablePeer lets kernels of this context use memory of peer's device. One call is enough for the
// lifetime of the primary context.
func (c *Context) EnablePeer(peer *Context) error {
	err := c.Do(func() error {
		return try("cuCtxEnablePeerAccess", func() { cu.CtxEnablePeerAccess(cu.Context(peer.handle)) })
	})
	if code(err) == peerEnabled {
		return nil
	}
	return err
}

// shortage says in an error that is one of memory what was asked for and what
// there was, in bytes.
func (c *Context) shortage(err error, kind string, asked uint64) error {
	if code(err) != OutOfMemory {
		return err
	}
	free, total, unknown := c.MemoryInfo()
	if unknown != nil {
		return explained(err, "asked for %d bytes of %s memory on device %d", asked, kind, c.device)
	}
	return explained(err, "asked for %d bytes of %s memory on device %d, which has %d of %d bytes free",
		asked, kind, c.device, free, total)
}
