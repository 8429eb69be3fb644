// Package coststest isolates tests from the costs that this machine's user has measured.
package coststest

import (
	"os"
	"testing"
)

// Main runs the tests of a package whose plans depend on costs, without measured costs.
func Main(m *testing.M) {
	folder, err := os.MkdirTemp("", "costs")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("PYGSAMPLER_CACHE", folder)
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}
