package bridge

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// deviceRing is the graph of newRing on the first device; without one the test
// skips, or fails where PYGSAMPLER_REQUIRE names cuda.
func deviceRing(t *testing.T, n int64) *ring {
	t.Helper()
	host := newRing(t, n)
	upload := func(a []int64) (mem, data int64) {
		mem, err := DeviceUpload(0, address(a), int64(len(a))*8, 0)
		if err != nil {
			if slices.Contains(strings.Split(os.Getenv("PYGSAMPLER_REQUIRE"), ","), "cuda") {
				t.Fatalf("PYGSAMPLER_REQUIRE asks for cuda: %v", err)
			}
			t.Skip(err)
		}
		return mem, view(mem, 2)[1]
	}
	_, indptr := upload(host.indptr)
	_, indices := upload(host.indices)
	g, err := DeviceGraphNew(0, indptr, 64, n, indices, 64, 2*n, 0, 0, n, 0, 0, 0, host.handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := GraphClose(g); err != nil {
			t.Error(err)
		}
		runtime.KeepAlive(host)
	})
	return &ring{host.indptr, host.indices, g}
}

// Of many who wait for a job and one who cancels it, one gets the memory at most;
// all return, also while another thread closes the graph.
func TestOneGetsTheDeviceResult(t *testing.T) {
	g, s := deviceRing(t, 1000), newSampler(t, "auto", 2, 2)
	seeds := []int64{10, 50, 7, 900}
	closing := deviceRing(t, 1000).handle
	for round := range 40 {
		graph := g.handle
		if round == 39 {
			graph = closing
		}
		calls := make([]int64, 3*8)
		for i := range 3 {
			copy(calls[8*i:], []int64{address(seeds), 4, 64, 0, 0, int64(round), 0, 0})
		}
		first, err := DeviceSubmitMany(graph, s, 3, address(calls), 0, int64(round)%2)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		results := map[int64]int{}
		var wg sync.WaitGroup
		for w := range 8 {
			job := -first + int64(w)%3
			wg.Go(func() {
				if w == 7 && round%2 == 0 {
					if _, err := DeviceCancel(job); err != nil {
						t.Error(err)
					}
					return
				}
				timeout, mem, err := int64(-1), int64(0), error(nil)
				if w < 3 {
					timeout = 0
				}
				for mem == 0 && err == nil {
					mem, err = DeviceWait(job, timeout)
					runtime.Gosched()
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					results[job]++
					if header := view(view(mem, 4)[3], 16); header[4] != 4 {
						t.Errorf("a batch of %d seeds", header[4])
					}
				} else if !strings.HasPrefix(err.Error(), "ClosedError: job") && !strings.HasPrefix(err.Error(), "KeyboardInterrupt: ") {
					t.Errorf("got %v", err)
				}
			})
		}
		if graph == closing {
			wg.Go(func() {
				if _, err := GraphClose(closing); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for job, n := range results {
			if n != 1 {
				t.Fatalf("%d got the result of job %d", n, job)
			}
		}
		if round%2 == 1 && len(results) != 3 {
			t.Fatalf("results of %d jobs", len(results))
		}
		runtime.KeepAlive(calls)
	}
	runtime.KeepAlive(seeds)
}

// What Python does with a graph that stays in page-locked memory: the batch is that
// of the graph on the host.
func TestPinnedGraphThroughBridge(t *testing.T) {
	deviceRing(t, 10) // or there is no device
	host, s := newRing(t, 100), newSampler(t, "auto", -1, -1)
	var at []int64
	for _, a := range [][]int64{host.indptr, host.indices} {
		mem, err := DeviceRegister(0, address(a), int64(len(a))*8)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, view(mem, 2)[1])
	}
	g, err := DeviceGraphNew(0, at[0], 64, 100, at[1], 64, 200, 0, 0, 100, 0, 0, 0, host.handle)
	if err != nil {
		t.Fatal(err)
	}
	seeds := []int64{10, 50}
	job, err := DeviceSubmit(g, s, address(seeds), 2, 64, 0, 0, 0, 0, 0, 0, 1, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := DeviceWait(-job, -1)
	if err != nil {
		t.Fatal(err)
	}
	words := view(mem, 5)
	header := view(words[3], 16)
	down, err := DeviceDownload(0, words[1]+header[5], header[6]*8, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := view(view(down, 2)[1], header[6]); !slices.Equal(got, []int64{10, 50, 11, 12, 51, 52, 13, 14, 53, 54}) {
		t.Errorf("got %v", got)
	}
	if _, err := GraphClose(g); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(seeds)
}
