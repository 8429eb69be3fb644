package pygsampler

import "github.com/pygsampler/pygsampler/pygsampler/internal/memory/finalizer"

// SetEnds says how each kind of handle ends when the Python object that has it goes.
func SetEnds(functions []func(handle int64)) { finalizer.Set(functions) }

// Destructors is how many destructors of Python objects are running.
func Destructors() int64 { return finalizer.Running() }
