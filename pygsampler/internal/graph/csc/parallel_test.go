package csc

import (
	"runtime"
	"strings"
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

// goroutine is the number of the one that asks.
func goroutine() string {
	var text [64]byte
	return strings.Fields(string(text[:runtime.Stack(text[:], false)]))[1]
}

func TestASinglePartRunsInTheCaller(t *testing.T) {
	own, ran := goroutine(), ""
	Together(1, func(int64) { ran = goroutine() })
	if ran != own {
		t.Errorf("goroutine %q, want %q", ran, own)
	}
	Together(2, func(part int64) {
		if part == 0 {
			ran = goroutine()
		}
	})
	if ran == own {
		t.Error("several parts share the caller's goroutine")
	}
	defer func() {
		if p := recover(); p != "alone" {
			t.Errorf("got %v", p)
		}
	}()
	Together(1, func(int64) { panic("alone") })
	t.Error("no panic")
}
