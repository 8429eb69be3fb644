package memory

/*
#cgo LDFLAGS: -lcuda -ldl -lpthread
#include "device.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
)

// home frees the memories of a device: a reference to its context and a stream, which live as long
// as the process, since a memory may be released at any time.
type home struct {
	context *gpu.Context
	stream  gpu.Stream
}

var homes struct {
	sync.Mutex
	of map[int]home
}

// OpenDevice prepares the release of the device's memories. It must precede FromDevice, which must
// not fail in the driver, since the memory exists by then.
func OpenDevice(device int) error {
	homes.Lock()
	defer homes.Unlock()
	if _, ok := homes.of[device]; ok {
		return nil
	}
	c, err := gpu.Retain(device)
	if err != nil {
		return err
	}
	s, err := c.NewStream()
	if err != nil {
		return errors.Join(err, c.Close())
	}
	if homes.of == nil {
		homes.of = make(map[int]home)
	}
	homes.of[device] = home{c, s}
	return nil
}

func homeOf(device int) (home, error) {
	homes.Lock()
	defer homes.Unlock()
	h, ok := homes.of[device]
	if !ok {
		return h, fmt.Errorf("device %d: expected it open: a fault of pygsampler", device)
	}
	return h, nil
}

// SettleDevice waits until all released memory is back on the device.
func SettleDevice(device int) error {
	h, err := homeOf(device)
	if err != nil {
		return err
	}
	return h.stream.Synchronize()
}

// FromDevice takes over a block of a device and copies the words of its header, if it has any. The
// work that wrote the block is complete. After an error the caller still owns the block.
func FromDevice(device int, m *gpu.Memory, header []int64) (Memory, error) {
	h, err := homeOf(device)
	if err != nil {
		return Memory{}, err
	}
	lease := C.pgs_lease{context: C.uintptr_t(h.context.Handle()), stream: C.uintptr_t(h.stream.Handle())}
	if m.Pooled() {
		lease.pooled = 1
	}
	c := C.pgs_device_own(C.int64_t(device), C.uint64_t(m.Address), C.int64_t(m.Size), words(header), C.int64_t(len(header)), lease)
	if c == nil {
		return Memory{}, fmt.Errorf("%w: wanted the description of a batch", ErrNoMemory)
	}
	m.Disown()
	return Memory{c}, nil
}

// OverDevice returns a batch in memory of another owner, who keeps the memory longer than the
// batch.
func OverDevice(device int, at gpu.Address, size int64, header []int64) (Memory, error) {
	c := C.pgs_device_over(C.int64_t(device), C.uint64_t(at), C.int64_t(size), words(header), C.int64_t(len(header)))
	if c == nil {
		return Memory{}, fmt.Errorf("%w: wanted the description of a batch", ErrNoMemory)
	}
	return Memory{c}, nil
}

func words(header []int64) *C.int64_t {
	return (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(header)))
}

// Device returns the index of the device that reads the memory, -1 for the host's own.
func (m Memory) Device() int { return int(m.c.device) }

// Header returns the words of the batch's header.
func (m Memory) Header(n int64) []int64 {
	return unsafe.Slice((*int64)(m.c.header), n)
}

// ordering guards the consumers of all memories.
var ordering sync.Mutex

// Consumed notes that work of the stream may read the memory, so that it is freed after that work.
// The content of the memory is already complete.
func (m Memory) Consumed(stream uintptr) {
	ordering.Lock()
	defer ordering.Unlock()
	C.pgs_device_consumer(m.c, C.uintptr_t(stream))
}

// FilledIn notes that the memory was allocated in stream order: work of the stream fills it.
func (m Memory) FilledIn(stream uintptr) {
	m.Consumed(stream)
	C.pgs_device_filled_in(m.c, C.uintptr_t(stream))
}

// Filler returns the stream of FilledIn; ok is false if the content is already complete.
func (m Memory) Filler() (stream uintptr, ok bool) {
	var s C.uintptr_t
	ok = C.pgs_device_filler(m.c, &s) != 0
	return uintptr(s), ok
}

// DeviceBytes returns the number of bytes that the memories own on a device.
func DeviceBytes(device int) int64 { return int64(C.pgs_device_bytes(C.int64_t(device))) }
