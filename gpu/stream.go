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

// Stream is a queue of work on a device, created here or by a caller. Its work runs in order. It is
// a value that may be copied; copies are the same queue.
//
// Any goroutine may use it, except the per-thread stream (handle 2), which is another queue on
// every thread: use it only before the call of its owner returns, never from a new goroutine.
//
// The zero value is of no use.
type Stream struct {
	context *Context
	handle  C.handle
	owned   bool
}

// NewStream returns a stream that does not synchronize with the legacy stream. The caller owns it
// and calls Close on one copy.
func (c *Context) NewStream() (Stream, error) {
	s := Stream{context: c, owned: true}
	if err := check("cuStreamCreate", C.gpu_stream_create(c.handle, &s.handle)); err != nil {
		return Stream{}, err
	}
	return s, nil
}

// Wrap returns a Stream for a handle of the caller: 0 and 1 for the legacy stream, 2 for the
// calling thread's own, else a CUstream (cudaStream_t), which must be alive and of this context.
// The caller remains its owner.
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

// Context returns the context that the stream's work runs in.
func (s Stream) Context() *Context { return s.context }

// Handle returns the driver's CUstream.
func (s Stream) Handle() uintptr { return uintptr(s.handle) }

// Wait makes later work of the stream wait for e on the device; the caller does not wait. An event
// that was never recorded delays nothing.
func (s Stream) Wait(e Event) error {
	return check("cuStreamWaitEvent", C.gpu_stream_wait(s.context.handle, s.handle, e.handle))
}

// Done reports whether all work of the stream is complete. It returns the error of failed work.
func (s Stream) Done() (bool, error) {
	return ready("cuStreamQuery", C.gpu_stream_query(s.context.handle, s.handle))
}

// Synchronize waits until all work of the stream is complete.
func (s Stream) Synchronize() error {
	return check("cuStreamSynchronize", C.gpu_stream_synchronize(s.context.handle, s.handle))
}

// Close releases a stream of NewStream at once; the driver completes its work. On any other stream
// it does nothing. After an error it may be called again.
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
