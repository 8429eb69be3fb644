package gpu

import (
	"fmt"

	"github.com/mumax/3/cuda/cu"
)

// Results that are no failure of the driver: it is absent, sees no device, or is
// the library without content that CUDA's own tool kit links programs with.
const (
	noDevice    = cu.ERROR_NO_DEVICE
	stubLibrary = cu.Result(34)
)

// Error is a failed call of the driver. The zero value is no error of the driver and is never
// returned.
type Error struct {
	Call string // the driver's function, as in cuda.h
	Code int    // its CUresult, never 0
	Name string // the code's name in cuda.h, e.g. CUDA_ERROR_NO_DEVICE
	Text string // what it means, in words; empty where nobody says
}

func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("gpu: %s: %s (%d)", e.Call, e.Name, e.Code)
	}
	return fmt.Sprintf("gpu: %s: %s (%d): %s", e.Call, e.Name, e.Code, e.Text)
}

func newError(call string, result cu.Result) *Error {
	name, text := explain(result)
	if name == "" {
		name = result.String()
	}
	switch {
	case result == noDevice && loadFailure() != "":
		text = loadFailure()
	case result == cu.ERROR_NOT_INITIALIZED && call == "cuInit":
		text = "a process that was forked from one that has used CUDA cannot use it; " +
			"start processes with the spawn method"
	case result == cu.ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
		text = "the installed driver lacks this function"
	}
	return &Error{Call: call, Code: int(result), Name: name, Text: text}
}

// try runs one driver call through mumax, which panics with the result of a call that fails, and
// returns that as an *Error. Any other panic is a broken invariant of ours and goes on. Nothing may
// call cu but a function passed to try.
func try(call string, f func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case cu.Result:
			err = newError(call, p)
		default:
			panic(p)
		}
	}()
	f()
	return nil
}
