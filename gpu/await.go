package gpu

// #include "await.h"
// #cgo noescape gpu_await
// #cgo nocallback gpu_await
import "C"

import (
	"time"
	"unsafe"
)

// Await waits until the word is no longer 0, up to the given time, and reports
// whether it is; something else than this process's Go code writes it, such as a
// kernel to pinned memory. It looks all the time for spin, and then again and again
// after a short sleep.
//
// It waits in C: a goroutine that Python called into is locked to its thread, and
// Go's scheduler takes tens of microseconds to come back to such a one.
func Await(word *int64, spin, limit time.Duration) bool {
	return C.gpu_await((*C.int64_t)(unsafe.Pointer(word)), C.int64_t(spin), C.int64_t(limit)) != 0
}
