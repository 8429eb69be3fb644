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

// home is where the memories of a device are freed: a hold on its context and a
// stream, kept as long as the process, since a memory may go at any time.
type home struct {
	context *gpu.Context
	stream  gpu.Stream
}

var homes struct {
	sync.Mutex
	of map[int]home
}

// OpenDevice makes ready what the release of the device's memories needs. It comes
// before FromDevice, which must not fail by the driver: the memory is there then.
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

// SettleDevice waits until the device has back what was released so far.
func SettleDevice(device int) error {
	h, err := homeOf(device)
	if err != nil {
		return err
	}
	return h.stream.Synchronize()
}

// FromDevice takes over a block of a device and copies the words of its header, if
// it has any. The work that wrote it has been done. After an error it is still the
// caller's.
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

// OverDevice is a batch in memory of another owner's, who keeps it longer than this.
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

// Device is the index of the device that reads the memory, -1 for the host's own.
func (m Memory) Device() int { return int(m.c.device) }

// Header is the words of the batch's header.
func (m Memory) Header(n int64) []int64 {
	return unsafe.Slice((*int64)(m.c.header), n)
}

// ordering guards the consumers of all memories.
var ordering sync.Mutex

// Consumed notes that work which is put into the stream may read the memory: it is
// freed after it. The memory's content is there already.
func (m Memory) Consumed(stream uintptr) {
	ordering.Lock()
	defer ordering.Unlock()
	C.pgs_device_consumer(m.c, C.uintptr_t(stream))
}

// FilledIn says that the memory was handed out in stream order: what fills it is
// put into the stream by others.
func (m Memory) FilledIn(stream uintptr) {
	m.Consumed(stream)
	C.pgs_device_filled_in(m.c, C.uintptr_t(stream))
}

// Filler is the stream of FilledIn; not ok where the content is there already.
func (m Memory) Filler() (stream uintptr, ok bool) {
	var s C.uintptr_t
	ok = C.pgs_device_filler(m.c, &s) != 0
	return uintptr(s), ok
}

// DeviceBytes is how much the memories own on a device.
func DeviceBytes(device int) int64 { return int64(C.pgs_device_bytes(C.int64_t(device))) }
