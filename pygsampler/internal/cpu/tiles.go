package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// tileRows is how many rows a worker takes at a time: enough independent loads to
// keep the memory busy, few enough that a tile's edges stay in the second-level
// cache until they are claimed.
const tileRows = 128

// crewTiles is how many tiles a hop needs before waking another worker pays.
const crewTiles = 8

// workers is how many workers, the caller's goroutine counted, a hop of n tiles
// gets; it must be given back by Return(workers - 1).
func workersFor(crew Crew, n int64) int {
	if n < crewTiles {
		return 1
	}
	return 1 + crew.Borrow(int(min(n/(crewTiles/2), 256))-1)
}

// each runs f for every tile, on all workers, in any order.
func each(workers int, n int64, stop *atomic.Bool, f func(worker int, tile int64)) error {
	var next atomic.Int64
	return together(workers, func(w int) {
		for !stop.Load() {
			t := next.Add(1) - 1
			if t >= n {
				return
			}
			f(w, t)
		}
	})
}

// pipeline draws every tile, on all workers, and claims the drawn tiles in order,
// one at a time. Whoever finds the next tile drawn claims it, else draws another,
// so no worker waits while there is work of either kind.
func pipeline(workers int, drawn []int32, stop *atomic.Bool, draw func(worker int, tile int64), claim func(tile int64)) error {
	clear(drawn)
	n := int64(len(drawn))
	if workers == 1 {
		for t := range n {
			if stop.Load() {
				break
			}
			draw(0, t)
			claim(t)
		}
		return nil
	}
	var next, claimed atomic.Int64
	var claiming atomic.Bool
	// claimDrawn leaves no drawn tile behind: one drawn while another worker holds
	// the claim is found by that worker's check after it has let go.
	claimDrawn := func() {
		for {
			t := claimed.Load()
			if t >= n || atomic.LoadInt32(&drawn[t]) == 0 || !claiming.CompareAndSwap(false, true) {
				return
			}
			for t = claimed.Load(); t < n && atomic.LoadInt32(&drawn[t]) != 0 && !stop.Load(); t++ {
				claim(t)
				claimed.Store(t + 1)
			}
			claiming.Store(false)
			if stop.Load() {
				return
			}
		}
	}
	return together(workers, func(w int) {
		defer func() {
			if p := recover(); p != nil {
				// The others wait for this worker's tile otherwise.
				stop.Store(true)
				panic(p)
			}
		}()
		for !stop.Load() {
			t := next.Add(1) - 1
			if t >= n {
				break
			}
			draw(w, t)
			atomic.StoreInt32(&drawn[t], 1)
			claimDrawn()
		}
		for w == 0 && claimed.Load() < n && !stop.Load() {
			claimDrawn()
			runtime.Gosched()
		}
	})
}

// together runs f on all workers, worker 0 in the caller, and waits for all of
// them; a panic of any becomes an error.
func together(workers int, f func(worker int)) error {
	errs := make([]error, workers)
	guarded := func(w int) {
		defer recovered(&errs[w])
		f(w)
	}
	var wg sync.WaitGroup
	for w := 1; w < workers; w++ {
		wg.Go(func() { guarded(w) })
	}
	guarded(0)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
