// Package finalizer releases engine handles when their Python owners are destroyed: a
// destructor in C (see finalizer.h) calls the function that the bridge has set for it.
package finalizer

/*
#cgo CFLAGS: -O2 -std=gnu11
#include "finalizer.h"
*/
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

var ends atomic.Pointer[[]func(number int64)]

// Set sets the closing function of each kind of handle. A function must accept any number.
func Set(functions []func(number int64)) {
	if len(functions) > C.PGS_FINALIZER_KINDS {
		panic(fmt.Sprintf("finalizer: expected at most %d kinds, got %d", C.PGS_FINALIZER_KINDS, len(functions)))
	}
	ends.Store(&functions)
}

// Shut disables all destructors from now on.
func Shut() { C.pgs_finalizer_shut() }

// Running returns the number of destructors that are running in the engine.
func Running() int64 { return int64(C.pgs_finalizer_running()) }

// Destructor returns the address of the C function that installs the destructor of a class.
func Destructor() int64 { return int64(uintptr(unsafe.Pointer(C.pgs_destructor))) }

//export pgs_finalizer_end
func pgs_finalizer_end(kind, number C.int64_t) {
	// An error has no receiver here.
	defer func() { _ = recover() }()
	(*ends.Load())[kind](int64(number))
}

//export pgs_finalizer_release
func pgs_finalizer_release(address C.int64_t) {
	memory.FromAddress(int64(address)).Release()
}
