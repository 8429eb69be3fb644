package gpu

// #include "calls.h"
// #cgo noescape gpu_pointer_attribute
// #cgo nocallback gpu_pointer_attribute
import "C"

import "github.com/mumax/3/cuda/cu"

// Location is the driver's description of an address.
type Location struct {
	Device int  // the device that has the memory, or for which host memory was pinned
	Host   bool // host memory
}

// Locate finds the place of memory. Host memory that the driver does not know is Host with Device
// -1. Memory in a Span belongs to the device of the span, wherever its pieces are.
func Locate(a Address) (Location, error) {
	if s, ok := spanAt(a); ok {
		return Location{Device: s.Device()}, nil
	}
	if err := start(); err != nil {
		return Location{}, err
	}
	kind, err := attributeOf(a, C.CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
	if code(err) == invalidValue {
		return Location{Device: -1, Host: true}, nil
	}
	if err != nil {
		return Location{}, err
	}
	device, err := attributeOf(a, C.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
	return Location{Device: int(device), Host: cu.MemoryType(kind) == cu.MemoryTypeHost}, err
}

func attributeOf(a Address, attribute C.int) (uint64, error) {
	var value C.uint64_t
	err := check("cuPointerGetAttribute", C.gpu_pointer_attribute(C.uint64_t(a), attribute, &value))
	return uint64(value), err
}
