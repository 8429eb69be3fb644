package gpu

// #include "await.h"
// #cgo noescape gpu_await
// #cgo nocallback gpu_await
import "C"

import (
	"time"
	"unsafe"
)

// Await waits until the word is not 0, at most for limit, and reports whether it is. A writer
// outside of this process's Go code sets the word, such as a kernel that writes to pinned memory.
// Await polls without pause for spin, and then after short sleeps.
//
// It waits in C: a goroutine that Python called into is locked to its thread, and Go's scheduler
// takes tens of microseconds to resume such a goroutine.
func Await(word *int64, spin, limit time.Duration) bool {
	return C.gpu_await((*C.int64_t)(unsafe.Pointer(word)), C.int64_t(spin), C.int64_t(limit)) != 0
}
