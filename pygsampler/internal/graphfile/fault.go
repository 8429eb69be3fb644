package graphfile

import (
	"runtime"
	"runtime/debug"
)

// A read of a mapped file that has become shorter, and a write for which the disk
// has no room, are signals that end a process. Go code can have a panic instead,
// goroutine by goroutine.

// FaultsPanic turns memory faults of mapped files into panics of this goroutine; the returned
// function restores the previous setting.
func FaultsPanic() func() {
	before := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(before) }
}

// RecoverFault, deferred, turns the panic of a fault into an error; other panics propagate.
func RecoverFault(err *error, path string) {
	p := recover()
	if p == nil {
		return
	}
	if fault, ok := p.(interface {
		runtime.Error
		Addr() uintptr
	}); ok {
		*err = formatError("%s: expected memory of a mapped file, got a fault at %#x: the file became shorter, or its disk is full",
			path, fault.Addr())
		return
	}
	panic(p)
}
