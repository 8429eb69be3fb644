package pygsampler

import (
	"os"
	"strings"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory/finalizer"
)

// ownVariables is how the names of the project's variables begin.
const ownVariables = "PYGSAMPLER_"

// SetEnvironment has Go know of variables what Python does, which may have changed them since the process
// began: those that are given, and of the project's own no others.
func SetEnvironment(given map[string]string) error {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if _, is := given[name]; !is && strings.HasPrefix(name, ownVariables) {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	for name, value := range given {
		// What is right already is left alone: C's environment is not to be written without need.
		if old, set := os.LookupEnv(name); !set || old != value {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetEnds says how each kind of handle ends when the Python object that has it goes.
func SetEnds(functions []func(handle int64)) { finalizer.Set(functions) }

// Destructors is how many destructors of Python objects are running.
func Destructors() int64 { return finalizer.Running() }
