package gpu

// #include "calls.h"
// #cgo noescape gpu_event_create
// #cgo nocallback gpu_event_create
// #cgo nocallback gpu_event_record
// #cgo nocallback gpu_event_query
// #cgo noescape gpu_event_elapsed
// #cgo nocallback gpu_event_elapsed
import "C"

import "time"

// Event is a mark in a stream, reached when the work before it is complete. It is a value; copies
// are the same mark. A new recording moves it.
//
// The caller that creates it owns it and calls Close on one copy; work that already waits for it is
// not affected. Any goroutine may use it. The zero value is no event, and Close does nothing with
// it.
type Event struct {
	context *Context
	handle  C.handle
}

// NewEvent returns an event without a timestamp, which makes it cheap.
func (c *Context) NewEvent() (Event, error) { return c.newEvent(C.CU_EVENT_DISABLE_TIMING) }

// NewTimer returns an event for Elapsed. It is for benchmarks.
func (c *Context) NewTimer() (Event, error) { return c.newEvent(C.CU_EVENT_DEFAULT) }

func (c *Context) newEvent(flags C.uint) (Event, error) {
	e := Event{context: c}
	if err := check("cuEventCreate", C.gpu_event_create(c.handle, flags, &e.handle)); err != nil {
		return Event{}, err
	}
	return e, nil
}

// Record puts the mark after all present work of s, which must be of the event's context.
func (e Event) Record(s Stream) error {
	return check("cuEventRecord", C.gpu_event_record(e.context.handle, e.handle, s.handle))
}

// Done reports whether the mark has been reached; it is true for an event that was never recorded.
// It returns the error of failed work before the mark.
func (e Event) Done() (bool, error) {
	return ready("cuEventQuery", C.gpu_event_query(e.context.handle, e.handle))
}

// Synchronize waits until the mark has been reached.
func (e Event) Synchronize() error {
	return check("cuEventSynchronize", C.gpu_event_synchronize(e.context.handle, e.handle))
}

// Elapsed returns the time on the device from start to stop, both of NewTimer and both reached. Its
// resolution is about half a microsecond.
func Elapsed(start, stop Event) (time.Duration, error) {
	var ms C.float
	err := check("cuEventElapsedTime", C.gpu_event_elapsed(stop.context.handle, start.handle, stop.handle, &ms))
	if err != nil {
		return 0, err
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}

// Close releases the event. After an error it may be called again.
func (e *Event) Close() error {
	if e.handle == 0 {
		return nil
	}
	if err := check("cuEventDestroy", C.gpu_event_destroy(e.context.handle, e.handle)); err != nil {
		return err
	}
	*e = Event{}
	return nil
}
