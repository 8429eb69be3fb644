package cpu

import (
	"sync/atomic"
)

// tileRows is the number of rows that a worker processes at a time: enough independent loads to
// saturate the memory, few enough that a tile's edges stay in the second-level cache until they are
// claimed.
const tileRows = 128

// shared is a counter in a line of its own.
type shared struct {
	_ [cacheLine]byte
	atomic.Int64
	_ [cacheLine]byte
}

// each runs f for every tile, on all workers, in any order.
func (t *team) each(n int64, stop *atomic.Bool, f func(worker int, tile int64)) error {
	if t.size == 1 || n < 2 {
		for tile := int64(0); tile < n && !stop.Load(); tile++ {
			f(0, tile)
		}
		return nil
	}
	var next shared
	return t.run(func(w int) {
		for !stop.Load() {
			tile := next.Add(1) - 1
			if tile >= n {
				return
			}
			f(w, tile)
		}
	})
}

// pipeline draws every tile, on all workers, and claims the drawn tiles in order,
// one at a time. Whoever finds the next tile drawn claims it, else draws another,
// so no worker waits while there is work of either kind.
func (t *team) pipeline(drawn []int32, stop *atomic.Bool, draw func(worker int, tile int64), claim func(tile int64)) error {
	n := int64(len(drawn))
	if t.size == 1 || n < 2 {
		for tile := int64(0); tile < n && !stop.Load(); tile++ {
			draw(0, tile)
			claim(tile)
		}
		return nil
	}
	clear(drawn)
	var at struct {
		next, claimed shared
		claiming      atomic.Bool
	}
	next, claimed, claiming := &at.next, &at.claimed, &at.claiming
	// claimDrawn claims all drawn tiles: a tile that is drawn while another worker holds the claim
	// is found by that worker's check after it has released the claim.
	claimDrawn := func() {
		for {
			tile := claimed.Load()
			if tile >= n || atomic.LoadInt32(&drawn[tile]) == 0 || !claiming.CompareAndSwap(false, true) {
				return
			}
			tile = claimed.Load()
			for tile < n && atomic.LoadInt32(&drawn[tile]) != 0 && !stop.Load() {
				claim(tile)
				tile++
				claimed.Store(tile)
			}
			claiming.Store(false)
			if stop.Load() {
				return
			}
		}
	}
	return t.run(func(w int) {
		defer func() {
			if p := recover(); p != nil {
				// The others wait for this worker's tile otherwise.
				stop.Store(true)
				panic(p)
			}
		}()
		for !stop.Load() {
			tile := next.Add(1) - 1
			if tile >= n {
				break
			}
			draw(w, tile)
			atomic.StoreInt32(&drawn[tile], 1)
			claimDrawn()
		}
		for w == 0 && claimed.Load() < n && !stop.Load() {
			claimDrawn()
			yield()
		}
	})
}
