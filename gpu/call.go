package gpu

// #include "calls.h"
import "C"

import (
	"errors"
	"fmt"

	"github.com/mumax/3/cuda/cu"
)

// OutOfMemory is the Code of an Error for exhausted device memory.
const OutOfMemory = int(cu.ERROR_OUT_OF_MEMORY)

// Results that the package answers by itself.
const (
	invalidValue   = int(cu.ERROR_INVALID_VALUE)
	invalidHandle  = int(cu.ERROR_INVALID_HANDLE)
	notReady       = int(cu.ERROR_NOT_READY)
	symbolNotFound = int(cu.ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND)
	notSupported   = int(cu.ERROR_NOT_SUPPORTED)
	peerEnabled    = int(cu.ERROR_PEER_ACCESS_ALREADY_ENABLED)
	alreadyPinned  = int(cu.ERROR_HOST_MEMORY_ALREADY_REGISTERED)
)

// check converts the result of a function of calls.h to an error; call is the name of the driver's
// function.
func check(call string, result C.int) error {
	if result == 0 {
		return nil
	}
	switch result &^ C.RESULT {
	case C.BY_CURRENT:
		call = "cuCtxGetCurrent"
	case C.BY_PUSH:
		call = "cuCtxPushCurrent"
	case C.BY_POP:
		call = "cuCtxPopCurrent"
	}
	return newError(call, cu.Result(result&C.RESULT))
}

// refuse returns the error of a call that is skipped, since it could not succeed.
func refuse(call string, code int, format string, values ...any) error {
	e := newError(call, cu.Result(code))
	e.Text = fmt.Sprintf(format, values...)
	return e
}

// code returns the driver's result in err, 0 if there is none.
func code(err error) int {
	var e *Error
	if err == nil || !errors.As(err, &e) {
		return 0
	}
	return e.Code
}

// explained adds what was asked for to an error of the driver's.
func explained(err error, format string, values ...any) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	text := fmt.Sprintf(format, values...)
	if e.Text != "" {
		text = e.Text + ": " + text
	}
	return &Error{Call: e.Call, Code: e.Code, Name: e.Name, Text: text}
}

// both is err, and what went wrong when its traces were removed, if anything did.
func both(err, undone error) error {
	if undone == nil {
		return err
	}
	return errors.Join(err, undone)
}
