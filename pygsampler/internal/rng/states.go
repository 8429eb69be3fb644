package rng

// #cgo CFLAGS: -O3 -std=c11
// #cgo noescape pgs_states
// #cgo nocallback pgs_states
// #include "states.h"
import "C"

import "unsafe"

// States puts the state of each vertex's row in the vertex's place: State of many, four times as fast where
// the processor has vectors of 256 bits.
func (s Stream) States(vertices []uint64) {
	if len(vertices) == 0 {
		return
	}
	key := [5]uint32{s.k0, s.k1, s.c1, s.c2, s.c3}
	C.pgs_states((*C.uint64_t)(unsafe.SliceData(vertices)), C.int64_t(len(vertices)), (*C.uint32_t)(&key[0]))
}
