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

// busy lends workers after some questions; it could lend limit.
type busy struct {
	limit           int
	asked, returned atomic.Int64
	from            int64
}

func (b *busy) Limit() int { return b.limit }

func (b *busy) Borrow(n int) int {
	if b.asked.Add(1) < b.from {
		return 0
	}
	return min(n, b.limit)
}

func (b *busy) Return(n int) { b.returned.Add(int64(n)) }

func TestWorkersJoinAsSoonAsThereAreSome(t *testing.T) {
	for _, limit := range []int{0, 1, 3} {
		crew := &busy{limit: limit, from: 4}
		var done, workers atomic.Int64
		Crewed(crew, 100, func() {
			workers.Add(1)
			// The last units wait for all who are to come.
			for done.Add(1) <= 100 {
				for done.Load() > 90 && workers.Load() <= int64(limit) {
					runtime.Gosched()
				}
			}
		})
		if got := workers.Load(); got != int64(limit)+1 {
			t.Errorf("limit %d: %d workers, want %d", limit, got, limit+1)
		}
		if crew.returned.Load() != int64(limit) {
			t.Errorf("limit %d: %d returned", limit, crew.returned.Load())
		}
		if limit == 0 && crew.asked.Load() != 1 {
			t.Errorf("who lends nobody was asked %d times", crew.asked.Load())
		}
	}
	// Work that ends before is not waited for longer than a look takes; a panic is the caller's.
	crew := &busy{limit: 2, from: 1 << 40}
	Crewed(crew, 5, func() {})
	defer func() {
		if p := recover(); p != "work" {
			t.Errorf("got %v", p)
		}
	}()
	Crewed(crew, 5, func() { panic("work") })
}
