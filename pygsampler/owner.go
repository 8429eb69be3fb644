package pygsampler

import "github.com/pygsampler/pygsampler/pygsampler/internal/owner"

// SetEnds says how each kind of handle ends when the Python object that has it goes.
func SetEnds(functions []func(handle int64)) { owner.Set(functions) }
