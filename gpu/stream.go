package gpu

// #include "calls.h"
// #cgo noescape gpu_stream_create
// #cgo nocallback gpu_stream_create
// #cgo noescape gpu_stream_context
// #cgo nocallback gpu_stream_context
// #cgo nocallback gpu_stream_wait
// #cgo nocallback gpu_stream_query
import "C"

import "github.com/mumax/3/cuda/cu"

// Streams that exist without having been created, as DLPack, torch and the driver
// number them.
const (
	LegacyStream    uintptr = 1 // waits for, and is waited for by, all blocking streams
	PerThreadStream uintptr = 2 // each thread's own
)

// Stream is a queue of work on a device: a caller's or one of ours. What is put
// in runs in order. It is a value, to be copied freely; copies are the same queue.
//
// Any goroutine may use it, except the per-thread one (handle 2), which is
// another queue on every thread: use that only before returning to the caller
// who gave it, never from a goroutine of one's own.
//
// The zero value is of no use.
type Stream struct {
	context *Context
	handle  C.handle
	owned   bool
}

// NewStream makes a stream that does not wait for the legacy stream, nor that for
// it. The caller owns it and calls Close on one copy.
func (c *Context) NewStream() (Stream, error) {
	s := Stream{context: c, owned: true}
	if err := check("cuStreamCreate", C.gpu_stream_create(c.handle, &s.handle)); err != nil {
		return Stream{}, err
	}
	return s, nil
}

// Wrap makes a Stream of a caller's: 0 and 1 for the legacy stream, 2 for the
// calling thread's own, else a CUstream (cudaStream_t), which must be alive and
// of this context. The caller goes on owning it.
func (c *Context) Wrap(handle uintptr) (Stream, error) {
	s := Stream{context: c, handle: C.handle(handle)}
	if handle <= PerThreadStream {
		return s, nil
	}
	if handle == ^uintptr(0) {
		return Stream{}, refuse("cuStreamGetCtx", invalidHandle,
			"stream: expected a stream, got -1, which says that there is no need for one")
	}
	var owner C.handle
	if err := check("cuStreamGetCtx", C.gpu_stream_context(c.handle, s.handle, &owner)); err != nil {
		return Stream{}, err
	}
	if owner != c.handle {
		return Stream{}, refuse("cuStreamGetCtx", invalidHandle,
			"stream: expected one of device %d's primary context, got one of another context", c.device)
	}
	return s, nil
}

// Context is where the stream's work runs.
func (s Stream) Context() *Context { return s.context }

// Handle is the driver's CUstream.
func (s Stream) Handle() uintptr { return uintptr(s.handle) }

// Wait lets what is put into the stream from now on wait for e, on the device;
// the caller does not. An event never recorded is no reason to wait.
func (s Stream) Wait(e Event) error {
	return check("cuStreamWaitEvent", C.gpu_stream_wait(s.context.handle, s.handle, e.handle))
}

// Done reports whether all work in the stream has been done. Where that work
// failed it is the failure.
func (s Stream) Done() (bool, error) {
	return ready("cuStreamQuery", C.gpu_stream_query(s.context.handle, s.handle))
}

// Synchronize waits until all work in the stream has been done.
func (s Stream) Synchronize() error {
	return check("cuStreamSynchronize", C.gpu_stream_synchronize(s.context.handle, s.handle))
}

// Close gives a stream of NewStream back, at once; the driver finishes the work in
// it. On any other it does nothing. After an error it may be tried again.
func (s *Stream) Close() error {
	if !s.owned {
		return nil
	}
	// One of ours, whose handle is an address: it may be a pointer in Go.
	stream := cu.Stream(s.handle)
	if err := s.context.Do(func() error { return try("cuStreamDestroy", stream.Destroy) }); err != nil {
		return err
	}
	*s = Stream{}
	return nil
}

func ready(call string, result C.int) (bool, error) {
	if int(result) == notReady {
		return false, nil
	}
	return result == 0, check(call, result)
}
