package pygsampler

import (
	"os"
	"strings"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory/finalizer"
)

// ownVariables is the prefix of the project's variables.
const ownVariables = "PYGSAMPLER_"

// SetEnvironment copies environment variables from Python to Go, since Python may have changed them
// after the process was started: it sets the given variables and unsets all other variables of this
// project.
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
		// Equal values are not written again: C's environment should not be written without
		// need.
		if old, set := os.LookupEnv(name); !set || old != value {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetEnds sets the closing function of each kind of handle, which is called when the owning Python
// object is destroyed.
func SetEnds(functions []func(handle int64)) { finalizer.Set(functions) }

// Destructors returns the number of running destructors of Python objects.
func Destructors() int64 { return finalizer.Running() }
