package program

import (
	"os"
	"testing"
)

// Without the costs that this machine's user has measured, which plans and explain depend on.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "costs")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("PYGSAMPLER_CACHE", folder)
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}
