package task

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Claim against a set of (vertex, hop) pairs, as Algorithm 2 of the paper keeps it,
// for every number of hops up to the most that a word holds.
func TestClaimAgainstPairs(t *testing.T) {
	for _, hops := range []int{1, 2, 3, 31, 32, 33, 63, MaxHops} {
		words := make([]uint64, 5)
		seen := NewSeen(words, hops)
		pairs := map[Task]bool{}
		// Later hops first and last, and each twice.
		for _, hop := range []int{hops - 1, hops - 1, hops / 2, hops / 3, hops, 0, 0, hops - 1, hops + 3} {
			for v := int64(0); v < 5; v += 2 {
				var want []Task
				for h := hop; h < hops; h++ {
					if k := (Task{v, uint8(h)}); !pairs[k] {
						pairs[k] = true
						want = append(want, k)
					}
				}
				prefix := []Task{{-1, 7}}
				got := seen.Claim(prefix, v, hop)
				if fmt.Sprint(got) != fmt.Sprint(append(prefix, want...)) {
					t.Fatalf("%d hops, vertex %d from hop %d: got %v, want %v", hops, v, hop, got[1:], want)
				}
			}
		}
		if words[1] != 0 || words[3] != 0 {
			t.Errorf("%d hops: vertices that nobody claimed are marked", hops)
		}
	}
}

// Many goroutines claim the same nodes from different hops on, and each task falls to exactly
// one.
func TestClaimOnce(t *testing.T) {
	const vertices, workers = 5000, 8
	for _, hops := range []int{3, MaxHops} {
		words := make([]uint64, vertices)
		seen := NewSeen(words, hops)
		claimed := make([][]Task, workers)
		var wg sync.WaitGroup
		var ready atomic.Int32
		for w := range workers {
			wg.Go(func() {
				for ready.Add(1); ready.Load() < workers; {
					runtime.Gosched() // all begin together, on the same words
				}
				for round := range hops {
					for v := range int64(vertices) {
						claimed[w] = seen.Claim(claimed[w], v, hops-1-round)
					}
				}
			})
		}
		wg.Wait()
		count := map[Task]int{}
		for _, tasks := range claimed {
			for _, task := range tasks {
				count[task]++
			}
		}
		if len(count) != vertices*hops {
			t.Errorf("%d hops: %d tasks were claimed, want %d", hops, len(count), vertices*hops)
		}
		for task, n := range count {
			if n != 1 {
				t.Fatalf("%v was claimed %d times", task, n)
			}
		}
	}
}
