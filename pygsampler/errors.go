package pygsampler

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory/arrow"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Kind is the name of the Python exception that an error becomes.
type Kind string

// The kinds that Python knows.
const (
	KindType      Kind = "TypeError"
	KindValue     Kind = "ValueError"
	KindIndex     Kind = "IndexError"
	KindOverflow  Kind = "OverflowError"
	KindMemory    Kind = "MemoryError"
	KindClosed    Kind = "ClosedError"
	KindCuda      Kind = "CudaError"
	KindInterrupt Kind = "KeyboardInterrupt"
	KindOS        Kind = "OSError" // the text begins with the number of the system's error
	KindOther     Kind = "Error"
)

// Error is an error with the name of its Python exception.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return "pygsampler: " + e.Text }

// Errorf returns an Error with a formatted text.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{kind, fmt.Sprintf(format, args...)}
}

// KindOf maps an error of this module to a kind and its text for Python.
func KindOf(err error) (Kind, string) {
	var own *Error
	var value *csc.ValueError
	var driver *gpu.Error
	var wrongType *arrow.TypeError
	var wrongFile *graphfile.FormatError
	var number syscall.Errno
	switch {
	case errors.As(err, &own):
		return own.Kind, own.Text
	case errors.As(err, &value):
		return KindValue, value.Text
	case errors.As(err, &driver):
		return KindCuda, driverText(driver)
	case errors.As(err, &wrongType):
		return KindType, wrongType.Text
	case errors.As(err, &wrongFile):
		return KindValue, wrongFile.Text
	case errors.Is(err, memory.ErrNoMemory):
		return KindMemory, err.Error()
	case errors.As(err, &number):
		return KindOS, fmt.Sprintf("%d: %v", int(number), err)
	}
	for sentinel, kind := range map[error]Kind{
		request.ErrIndex: KindIndex, request.ErrOverflow: KindOverflow, request.ErrValue: KindValue, request.ErrType: KindType, weights.ErrValue: KindValue, request.ErrCancelled: KindInterrupt,
	} {
		if errors.Is(err, sentinel) {
			text := err.Error()
			if prefix := sentinel.Error() + ": "; len(text) > len(prefix) && text[:len(prefix)] == prefix {
				text = text[len(prefix):]
			}
			return kind, text
		}
	}
	return KindOther, err.Error()
}

// notInitialized is the result of cuInit in a child that was forked after its parent had used CUDA.
const notInitialized = 3

func driverText(e *gpu.Error) string {
	if e.Call == "cuInit" && e.Code == notInitialized {
		return e.Error() + ", or sample on the CPU there: graph.to(\"cpu\")"
	}
	return e.Error()
}

// onDevice makes errors of the device's engine that have no other kind CudaErrors.
func onDevice(err error) error {
	if err == nil {
		return nil
	}
	if kind, text := KindOf(err); kind == KindOther {
		return &Error{KindCuda, text}
	}
	return err
}
