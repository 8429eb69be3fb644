package csc

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Parallel runs f over [lo, hi) in parts, one for each core; a short range runs in the caller.
func Parallel(lo, hi int64, f func(lo, hi int64)) {
	parts := min(int64(runtime.GOMAXPROCS(0)), (hi-lo)>>16+1)
	if parts <= 1 {
		f(lo, max(lo, hi))
		return
	}
	Together(parts, func(p int64) { f(lo+(hi-lo)*p/parts, lo+(hi-lo)*(p+1)/parts) })
}

// Together runs f for each part on its own goroutine. It re-raises a panic of one in the caller
// once all have ended: in a goroutine without a handler it would end the process, and arrays may
// change, or a mapped file become shorter, under a reader. A single part runs in the caller: to
// wake a thread for a small graph takes many times as long as the work.
func Together(parts int64, f func(part int64)) {
	if parts == 1 {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		f(0)
		return
	}
	var wg sync.WaitGroup
	panics := make([]any, parts)
	for p := range parts {
		wg.Go(func() {
			defer func() { panics[p] = recover() }()
			debug.SetPanicOnFault(true)
			f(p)
		})
	}
	wg.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
}

// Crew provides workers.
type Crew interface {
	// Borrow returns up to n workers, possibly none, without waiting.
	Borrow(n int) int
	Return(n int)
}

// Crewed runs work, which processes units one after another, in the caller, or together with as
// many workers as the crew provides if there are several units. If Limit says that the crew could
// provide workers but has none now, workers join as soon as it has some.
func Crewed(crew Crew, units int64, work func()) {
	if units <= 1 {
		work()
		return
	}
	most := int(min(units-1, 256))
	extra := crew.Borrow(most)
	if lends, is := crew.(interface{ Limit() int }); extra == 0 && is && lends.Limit() > 0 {
		later(crew, most, work)
		return
	}
	defer crew.Return(extra)
	Together(int64(extra+1), func(int64) { work() })
}

// look is the interval at which later asks for workers: the jobs that hold them take some
// milliseconds.
const look = 100 * time.Microsecond

// later runs work on a goroutine, and together with workers as soon as the crew has some to lend.
func later(crew Crew, most int, work func()) {
	over := make(chan struct{})
	Together(2, func(part int64) {
		if part == 0 {
			defer close(over)
			work()
			return
		}
		for asked := time.NewTicker(look); ; {
			select {
			case <-over:
				asked.Stop()
				return
			case <-asked.C:
			}
			if extra := crew.Borrow(most); extra > 0 {
				asked.Stop()
				defer crew.Return(extra)
				Together(int64(extra), func(int64) { work() })
				return
			}
		}
	})
}
