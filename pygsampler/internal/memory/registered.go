package memory

// #include "device.h"
import "C"

import (
	"fmt"
	"sync"

	"github.com/pygsampler/pygsampler/gpu"
)

// registrations has those that memories hold, by number.
var registrations struct {
	sync.Mutex
	last int64
	of   map[int64]gpu.Registered
}

// FromRegistered takes over a registration of host memory on a device: its release
// ends it. Data is the address that the device sees. After an error the
// registration is still the caller's.
func FromRegistered(device int, r gpu.Registered) (Memory, error) {
	registrations.Lock()
	defer registrations.Unlock()
	registrations.last++
	c := C.pgs_device_registered(C.int64_t(device), C.uint64_t(r.Address), C.int64_t(r.Size), C.int64_t(registrations.last))
	if c == nil {
		return Memory{}, fmt.Errorf("%w: wanted the description of a registration", ErrNoMemory)
	}
	if registrations.of == nil {
		registrations.of = make(map[int64]gpu.Registered)
	}
	registrations.of[registrations.last] = r
	return Memory{c}, nil
}

//export pgsUnregister
func pgsUnregister(number C.int64_t) {
	registrations.Lock()
	r, ok := registrations.of[int64(number)]
	delete(registrations.of, int64(number))
	registrations.Unlock()
	// Nobody is left to be told of an error, and the owner of the memory frees it
	// next: try again, since the driver would go on reading what lies there then.
	for tries := 0; ok && tries < 3; tries++ {
		if r.Close() == nil {
			return
		}
	}
}
