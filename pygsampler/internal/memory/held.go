package memory

// #include "device.h"
import "C"

import (
	"fmt"
	"sync"

	"github.com/pygsampler/pygsampler/gpu"
)

// held is an object that the release of a device memory closes, in addition to freeing a block.
type held interface{ Close() error }

// holds has all that memories hold, by number.
var holds struct {
	sync.Mutex
	last int64
	of   map[int64]held
}

// FromRegistered takes over a registration of host memory on a device: its release unregisters the
// memory. Data is the address that the device uses. After an error the caller still owns the
// registration.
func FromRegistered(device int, r gpu.Registered) (Memory, error) {
	return fromHeld(device, r.Address, r.Size, &r)
}

// FromSpan takes over a span, for which the process has allocated owned bytes of the span's device:
// its release closes the span. After an error the caller still owns it.
func FromSpan(s gpu.Span, owned uint64) (Memory, error) {
	h := &heldSpan{s, int64(owned)}
	m, err := fromHeld(s.Device(), s.Address, s.Size, h)
	if err == nil {
		h.count(h.owned)
	}
	return m, err
}

// heldSpan is a span, and the bytes that it counts for on its device.
type heldSpan struct {
	span  gpu.Span
	owned int64
}

func (h *heldSpan) count(bytes int64) {
	C.pgs_device_count(C.int64_t(h.span.Device()), C.int64_t(bytes))
}

func (h *heldSpan) Close() error {
	if h.owned > 0 {
		h.count(-h.owned)
		h.owned = 0
	}
	return h.span.Close()
}

func fromHeld(device int, address gpu.Address, size uint64, h held) (Memory, error) {
	holds.Lock()
	defer holds.Unlock()
	holds.last++
	c := C.pgs_device_held(C.int64_t(device), C.uint64_t(address), C.int64_t(size), C.int64_t(holds.last))
	if c == nil {
		return Memory{}, fmt.Errorf("%w: wanted the description of a device's memory", ErrNoMemory)
	}
	if holds.of == nil {
		holds.of = make(map[int64]held)
	}
	holds.of[holds.last] = h
	return Memory{c}, nil
}

//export pgsLetGo
func pgsLetGo(number C.int64_t) {
	holds.Lock()
	h, ok := holds.of[int64(number)]
	delete(holds.of, int64(number))
	holds.Unlock()
	// An error has no receiver here, and the owner of registered memory frees it next: try again,
	// since the driver would otherwise go on reading the address.
	for tries := 0; ok && tries < 3; tries++ {
		if h.Close() == nil {
			return
		}
	}
}
