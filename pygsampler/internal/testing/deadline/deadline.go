// Package deadline ends tests that would wait for ever. It serves tests only.
package deadline

import (
	"runtime"
	"testing"
	"time"
)

// Within fails the test, with all stacks, if f does not return in time.
func Within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
		stacks := make([]byte, 1<<16)
		t.Fatalf("still running after %v\n%s", limit, stacks[:runtime.Stack(stacks, true)])
	}
}
