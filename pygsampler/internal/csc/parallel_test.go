package csc

import (
	"sync/atomic"
	"testing"
)

func TestAPanicOfAPartIsTheCallers(t *testing.T) {
	var ran atomic.Int64
	defer func() {
		if p := recover(); p != "part 1" || ran.Load() != 3 {
			t.Fatalf("%v after %d parts", p, ran.Load())
		}
	}()
	Together(3, func(part int64) {
		ran.Add(1)
		if part == 1 {
			panic("part 1")
		}
	})
	t.Fatal("no panic")
}
