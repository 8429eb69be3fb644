package cpu

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// lender is a crew that counts what it lends and lends no worker twice.
type lender struct {
	sync.Mutex
	free, lent, returned int
}

func (l *lender) Borrow(want int) int {
	l.Lock()
	defer l.Unlock()
	n := min(l.free, max(want, 0))
	l.free -= n
	l.lent += n
	return n
}

func (l *lender) Return(n int) {
	l.Lock()
	defer l.Unlock()
	l.free += n
	l.returned += n
}

// whole says that all workers came back.
func (l *lender) whole() bool {
	l.Lock()
	defer l.Unlock()
	return l.returned == l.lent
}

// many is a promise of edges that gives a team all the workers there are.
const many = 1 << 40

func hesitate() {
	switch k := rand.IntN(200); {
	case k < 60:
		runtime.Gosched()
	case k == 60:
		time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
	}
}

// Every tile is drawn once, by workers of the team, and claimed once, in order and
// one at a time, however the workers hesitate; the same of each. One team serves
// many phases.
func TestPhases(t *testing.T) {
	for _, extra := range []int{0, 1, 2, 7, 1, 7, 1, 7} {
		crew := &lender{free: extra}
		deadline.Within(t, time.Minute, func() {
			team := muster(crew, many)
			defer team.dismiss()
			if team.size != 1+extra {
				t.Fatalf("%d workers of %d", team.size, extra)
			}
			var stop atomic.Bool
			for phase, tiles := range []int64{0, 1, 2, 3, 40, 1, 300, 2, 64, 0, 5} {
				drawn, visited := make([]atomic.Int32, tiles), make([]atomic.Int32, tiles)
				var claims []int64 // no lock: the race detector sees two claims at once
				err := team.pipeline(make([]int32, tiles), &stop, func(w int, tile int64) {
					if w < 0 || w >= team.size {
						t.Errorf("worker %d of %d", w, team.size)
					}
					hesitate()
					drawn[tile].Add(1)
				}, func(tile int64) {
					if drawn[tile].Load() != 1 {
						t.Errorf("tile %d is claimed and not drawn", tile)
					}
					claims = append(claims, tile)
					hesitate()
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := team.each(tiles, &stop, func(w int, tile int64) { hesitate(); visited[tile].Add(1) }); err != nil {
					t.Fatal(err)
				}
				for i := range tiles {
					if drawn[i].Load() != 1 || visited[i].Load() != 1 || claims[i] != i {
						t.Fatalf("phase %d tile %d: drawn %d times, visited %d times, claims %v",
							phase, i, drawn[i].Load(), visited[i].Load(), claims)
					}
				}
				if int64(len(claims)) != tiles {
					t.Fatalf("%d claims of %d tiles", len(claims), tiles)
				}
			}
		})
		if crew.lent != extra || !crew.whole() {
			t.Errorf("lent %d of %d, or kept some", crew.lent, extra)
		}
	}
}

// A small batch wakes nobody. Who was borrowed is there for the next batch at once, whether or not they have come.
func TestMuster(t *testing.T) {
	for _, k := range []struct {
		edges int64
		want  int
	}{{-5, 1}, {0, 1}, {teamEdges - 1, 1}, {teamEdges, 2}, {10 * teamEdges, 6}, {many, 6}} {
		crew := &lender{free: 5}
		team := muster(crew, k.edges)
		if team.size != k.want {
			t.Errorf("%d edges: %d workers, want %d", k.edges, team.size, k.want)
		}
		if team.dismiss(); !crew.whole() {
			t.Errorf("%d edges: workers did not come back", k.edges)
		}
	}
}

// Nobody waits for a worker that has not come, and one that comes late takes no part in what is over.
func TestLateWorkers(t *testing.T) {
	deadline.Within(t, time.Minute, func() {
		crew := &lender{}
		team := &team{crew: crew, size: 2, errs: make([]error, 2), wake: make(chan struct{}, 2)}
		var stop atomic.Bool
		var by [2]atomic.Int64
		tiles := func(w int, _ int64) { by[w].Add(1) }
		for range 3 {
			if err := team.each(40, &stop, tiles); err != nil {
				t.Fatal(err)
			}
			if err := team.pipeline(make([]int32, 40), &stop, tiles, func(int64) {}); err != nil {
				t.Fatal(err)
			}
		}
		var over sync.WaitGroup
		over.Go(func() { team.serve(1) })
		for team.asleep.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		if a, b := by[0].Load(), by[1].Load(); a != 240 || b != 0 {
			t.Errorf("%d tiles by the caller and %d by a late worker, want 240 and 0", a, b)
		}
		// Who sleeps is woken for the next phase.
		if err := team.run(func(w int) {
			by[w].Add(1)
			for by[1].Load() == 0 {
				time.Sleep(time.Millisecond)
			}
		}); err != nil {
			t.Fatal(err)
		}
		team.dismiss()
		over.Wait()
	})
}

// A panic in any phase, on any worker, ends as an error of that phase: nobody waits
// for the tile that never comes.
func TestPanicsAreErrors(t *testing.T) {
	for _, extra := range []int{0, 1, 4} {
		for _, where := range []string{"draw", "claim", "each"} {
			for _, at := range []int64{0, 13, 49} {
				deadline.Within(t, time.Minute, func() {
					team := muster(idle(extra), many)
					defer team.dismiss()
					var stop atomic.Bool
					fault := func(here string, tile int64) {
						hesitate()
						if here == where && tile == at {
							panic("tile of fate")
						}
					}
					// The same recovery as in Sample: panics of workers arrive as errors, and
					// the caller's own may also pass through.
					err := func() (err error) {
						defer recovered(&err)
						if where == "each" {
							return team.each(50, &stop, func(_ int, tile int64) { fault("each", tile) })
						}
						return team.pipeline(make([]int32, 50), &stop,
							func(_ int, tile int64) { fault("draw", tile) }, func(tile int64) { fault("claim", tile) })
					}()
					if err == nil || !strings.Contains(err.Error(), "tile of fate") {
						t.Errorf("%d workers, %s of tile %d: got %v", extra+1, where, at, err)
					}
				})
			}
		}
	}
}

// Once stop is set each worker ends with the tile it is at.
func TestStopBetweenTiles(t *testing.T) {
	for _, extra := range []int{0, 1, 4} {
		for _, where := range []string{"draw", "claim", "each"} {
			deadline.Within(t, time.Minute, func() {
				team := muster(idle(extra), many)
				defer team.dismiss()
				var stop atomic.Bool
				var after atomic.Int64
				step := func(here string, tile int64) {
					if stop.Load() {
						after.Add(1)
					} else if here == where && tile == 20 {
						stop.Store(true)
					}
				}
				var err error
				if where == "each" {
					err = team.each(1000, &stop, func(_ int, tile int64) { step("each", tile) })
				} else {
					err = team.pipeline(make([]int32, 1000), &stop,
						func(_ int, tile int64) { step("draw", tile) }, func(tile int64) { step("claim", tile) })
				}
				// Each worker may have been past its check: one draw and one claim.
				if n := after.Load(); err != nil || n > 2*int64(extra+1) {
					t.Errorf("%d workers, stopped in %s: %d more steps, %v", extra+1, where, n, err)
				}
			})
		}
	}
}
