package gpu

// #include "calls.h"
// #cgo nocallback gpu_register
import "C"

import (
	"os"
	"slices"
	"sync"
	"unsafe"
)

// Registered is host memory of another owner that is pinned in place, so that kernels can read it
// at Address. It must stay allocated until Close.
//
// The driver pins whole pages and each page only once, while arrays share pages with their
// neighbors and may be registered for several graphs. So one table holds all registered pages with
// the number of their users; a page is unpinned with its last user. Memory that others have pinned
// as one range, such as torch, is used unchanged.
//
// The caller that registers it owns it. Any goroutine may use it. The zero value is no memory.
type Registered struct {
	Address Address
	Size    uint64
	pages   []*pages
}

// pages is a run of pages that this package has pinned.
type pages struct {
	start, end uintptr
	context    *Context // a hold of its own: the maker's may end before another user's
	users      int
}

// registry has all runs of the process, by address; they do not overlap.
var registry struct {
	sync.Mutex
	runs []*pages
}

// Register pins the bytes at pointer, which the process itself may have mapped read-only, such as a
// file. One GB of resident memory takes some 10 ms.
func (c *Context) Register(pointer unsafe.Pointer, bytes uint64) (r Registered, err error) {
	if bytes == 0 {
		return r, nil
	}
	if !c.properties.RegistersHost || !c.properties.MapsHost {
		return r, refuse("cuMemHostRegister", notSupported, "device %d cannot read host memory in place", c.device)
	}
	first, page := uintptr(pointer), uintptr(os.Getpagesize())
	start, end := first&^(page-1), (first+uintptr(bytes)+page-1)&^(page-1)

	registry.Lock()
	defer registry.Unlock()
	r = Registered{Size: bytes}
	for at := start; at < end; {
		run, err := c.pin(at, end)
		if err != nil {
			if undone := r.release(); undone != nil {
				return Registered{}, both(err, undone)
			}
			if address, ok := c.pinnedByOthers(first, bytes); ok && code(err) != OutOfMemory {
				return Registered{Address: address, Size: bytes}, nil
			}
			if code(err) != OutOfMemory {
				return Registered{}, explained(err, "%d bytes of host memory, of which a part may be pinned already", bytes)
			}
			return Registered{}, c.shortage(err, "registered host", uint64(end-start))
		}
		run.users++
		r.pages = append(r.pages, run)
		at = run.end
	}
	r.Address, err = c.addressIn(r.pages, first)
	if err != nil {
		return Registered{}, both(err, r.release())
	}
	return r, nil
}

// pin returns the run with the page at `at`. A new run extends to end, or to the next run.
func (c *Context) pin(at, end uintptr) (*pages, error) {
	i, _ := slices.BinarySearchFunc(registry.runs, at, func(p *pages, at uintptr) int {
		if p.end <= at {
			return -1
		}
		return 1
	})
	if i < len(registry.runs) {
		if next := registry.runs[i]; next.start <= at {
			return next, nil
		} else if next.start < end {
			end = next.start
		}
	}
	hold, err := Retain(c.device)
	if err != nil {
		return nil, err
	}
	readOnly := C.int(0)
	if c.properties.RegistersReadOnly {
		readOnly = 1
	}
	err = check("cuMemHostRegister", C.gpu_register(hold.handle, C.handle(at), C.uint64_t(end-at), readOnly))
	if err != nil {
		return nil, both(err, hold.Close())
	}
	run := &pages{start: at, end: end, context: hold}
	registry.runs = slices.Insert(registry.runs, i, run)
	return run, nil
}

// addressIn returns the address of p for kernels, if p is in the first of runs and the device maps
// all of them in the same order as the host.
func (c *Context) addressIn(runs []*pages, p uintptr) (Address, error) {
	var shift Address
	for i, run := range runs {
		address, err := c.address(run.start)
		if err != nil {
			return 0, err
		}
		if i == 0 {
			shift = address - Address(run.start)
		} else if address-Address(run.start) != shift {
			return 0, refuse("cuMemHostGetDevicePointer", alreadyPinned,
				"parts of the memory were registered apart, and device %d does not see them in a row", c.device)
		}
	}
	return Address(p) + shift, nil
}

// pinnedByOthers finds memory that lies as a whole in one block that the driver
// already knows.
func (c *Context) pinnedByOthers(p uintptr, bytes uint64) (Address, bool) {
	const rangeStart, rangeSize = C.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, C.CU_POINTER_ATTRIBUTE_RANGE_SIZE
	address, err := c.address(p)
	if err != nil {
		return 0, false
	}
	start, err := attributeOf(address, rangeStart)
	if err != nil {
		return 0, false
	}
	size, err := attributeOf(address, rangeSize)
	return address, err == nil && start <= uint64(address) && uint64(address)+bytes <= start+size
}

// Close unpins the pages without another registration. After an error it may be called again;
// without memory it does nothing.
func (r *Registered) Close() error {
	registry.Lock()
	defer registry.Unlock()
	if err := r.release(); err != nil {
		return err
	}
	*r = Registered{}
	return nil
}

// release lets go of the last run first, so that what an error leaves is still
// a list of runs that are held.
func (r *Registered) release() error {
	for n := len(r.pages); n > 0; n = len(r.pages) {
		run := r.pages[n-1]
		if run.users == 1 {
			if err := run.unpin(); err != nil {
				return err
			}
		}
		run.users--
		r.pages = r.pages[:n-1]
	}
	return nil
}

func (run *pages) unpin() error {
	if i := slices.Index(registry.runs, run); i >= 0 {
		err := check("cuMemHostUnregister", C.gpu_unregister(run.context.handle, C.handle(run.start)))
		if err != nil {
			return err
		}
		registry.runs = slices.Delete(registry.runs, i, i+1)
	}
	return run.context.Close()
}
