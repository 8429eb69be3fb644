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
	g, err := graphNew("", 0, indptr, 64, n, indices, 64, 2*n, 0, 0, n, 0, 0, 0, host.handle, 0, 0)
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

// Many goroutines wait for a job and one cancels it: at most one gets the memory,
// and all return, also while another thread closes the graph.
func TestOneGetsTheDeviceResult(t *testing.T) {
	g, s := deviceRing(t, 1000), newSampler(t, "auto", 2, 2)
	seeds := []int64{10, 50, 7, 900}
	closing := deviceRing(t, 1000).handle
	for round := range 40 {
		graph := g.handle
		if round == 39 {
			graph = closing
		}
		var jobs []int64
		for range 3 {
			job, err := submitted(deviceWords(int64(round)%2*ownStream, graph, s, address(seeds), 4, 64, 0, int64(round)))
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, -job)
		}
		var mu sync.Mutex
		results := map[int64]int{}
		var wg sync.WaitGroup
		for w := range 8 {
			job := jobs[w%3]
			wg.Go(func() {
				if w == 7 && round%2 == 0 {
					if _, err := Cancel(job); err != nil {
						t.Error(err)
					}
					return
				}
				timeout, mem, err := int64(-1), int64(0), error(nil)
				if w < 3 {
					timeout = 0
				}
				for mem == 0 && err == nil {
					mem, err = Wait(job, timeout)
					runtime.Gosched()
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					results[job]++
					if header := view(view(mem, 4)[3], 16); header[10] != 4 {
						t.Errorf("a batch of %d seeds", header[10])
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
	}
	runtime.KeepAlive(seeds)
}

// Words of a batch's header, as package batch has them.
const (
	headCapacity  = 7
	headNumOutput = 10
)

// The batches of a launch come together, or the first error does, and cancelling it
// leaves nothing.
func TestDeviceLaunch(t *testing.T) {
	g, s := deviceRing(t, 1000), newSampler(t, "auto", 2, 2)
	seeds := []int64{10, 50, 7, 900}
	submit := func(bad int) int64 {
		calls := make([]int64, 5*8)
		for i := range 5 {
			copy(calls[8*i:], []int64{address(seeds), int64(i), 64, 0, 0, int64(i), 0, 0})
		}
		for i := bad; i < 5; i += 2 {
			// Seeds beyond the graph.
			calls[8*i], calls[8*i+1] = address([]int64{5, int64(1000 + i)}), 2
		}
		launch, err := submitMany(g.handle, s, 5, address(calls), 1)
		if err != nil {
			t.Fatal(err)
		}
		return launch
	}
	launch, out := submit(5), make([]int64, 5)
	done, err := int64(0), error(nil)
	for done == 0 && err == nil {
		done, err = WaitMany(launch, 0, address(out))
	}
	if done != 1 || err != nil {
		t.Fatalf("got %d, %v", done, err)
	}
	for i, mem := range out {
		if header := view(view(mem, 4)[3], 16); header[headNumOutput] != int64(i) {
			t.Errorf("batch %d has %d seeds", i, header[headNumOutput])
		}
	}
	if _, err := WaitMany(launch, 0, address(out)); err == nil || !strings.HasPrefix(err.Error(), "ClosedError: job") {
		t.Errorf("a launch that was taken: got %v", err)
	}
	launch = submit(2)
	if done, err = WaitMany(launch, -1, address(out)); done != -3 || err != nil {
		t.Errorf("got %d, %v, want the place of the third", done, err)
	}
	if _, err := JobFault(launch, 2); err == nil || !strings.HasPrefix(err.Error(), "IndexError: seeds[1]: expected an id in [0, 1000), got 1002") {
		t.Errorf("got %v", err)
	}
	for range 3 {
		if _, err := Cancel(submit(5)); err != nil {
			t.Error(err)
		}
	}
	if stats, err := DeviceStats(0); err != nil || !strings.Contains(stats, `"flights":0`) {
		t.Errorf("got %s, %v", stats, err)
	}
	runtime.KeepAlive(seeds)
}

// Batches of a launch in a caller's memory: their words come together, also those of a
// batch that did not fit, and those before one that failed.
func TestDeviceLaunchInto(t *testing.T) {
	g, s := deviceRing(t, 1000), newSampler(t, "auto", 2, 2)
	const count, room, words = 5, 1 << 16, 32
	seeds := []int64{10, 50, 7, 900, 1234}
	mem, err := DeviceAlloc(0, count*room, 0)
	if err != nil {
		t.Fatal(err)
	}
	wait := func(small, bad int) ([]int64, error) {
		calls := make([]int64, count*8)
		for i := range count {
			bytes := int64(room)
			if i == small {
				bytes = 64
			}
			copy(calls[8*i:], []int64{address(seeds), int64(i), 64, 0, 0, int64(i), view(mem, 2)[1] + int64(i)*room, bytes})
			if i == bad {
				calls[8*i+1] = int64(len(seeds))
			}
		}
		launch, err := submitMany(g.handle, s, count, address(calls), 1)
		if err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(calls)
		out, done := make([]int64, count*words), int64(0)
		for done == 0 && err == nil {
			done, err = WaitWords(launch, 0, words, address(out))
		}
		if _, again := WaitWords(launch, 0, words, address(out)); again == nil || !strings.HasPrefix(again.Error(), "ClosedError: job") {
			t.Errorf("a launch that was taken: got %v", again)
		}
		return out, err
	}
	for _, c := range []struct{ small, bad int }{{-1, -1}, {2, -1}, {-1, 3}, {1, 4}} {
		out, err := wait(c.small, c.bad)
		if c.bad < 0 && err != nil || c.bad >= 0 && (err == nil || !strings.HasPrefix(err.Error(), "IndexError: seeds[4]: ")) {
			t.Errorf("%+v: got %v", c, err)
		}
		for i := range count {
			w := out[words*i:]
			switch {
			case i == c.bad:
				if w[0] != 0 || w[headCapacity] != 0 {
					t.Errorf("%+v: batch %d, which failed, has signature %d and capacity %d", c, i, w[0], w[headCapacity])
				}
			case i == c.small:
				if w[0] != 0 || w[headCapacity] <= 64 {
					t.Errorf("%+v: batch %d, which did not fit, has signature %d and capacity %d", c, i, w[0], w[headCapacity])
				}
			case w[0] == 0 || w[headNumOutput] != int64(i) || w[headCapacity] == 0:
				t.Errorf("%+v: batch %d has signature %d, %d seeds and capacity %d", c, i, w[0], w[headNumOutput], w[headCapacity])
			}
		}
	}
	if stats, err := DeviceStats(0); err != nil || !strings.Contains(stats, `"flights":0`) {
		t.Errorf("got %s, %v", stats, err)
	}
	runtime.KeepAlive(seeds)
}

// The calls of Python for a graph that stays in page-locked memory: the batch equals
// the batch of the graph on the host.
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
	g, err := graphNew("", 0, at[0], 64, 100, at[1], 64, 200, 0, 0, 100, 0, 0, 0, host.handle, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	seeds := []int64{10, 50}
	job, err := submitted(deviceWords(ownStream, g, s, address(seeds), 2, 64, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := Wait(-job, -1)
	if err != nil {
		t.Fatal(err)
	}
	words := view(mem, 5)
	header := view(words[3], 16)
	down, err := DeviceDownload(0, words[1]+header[9], header[8]*8, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := view(view(down, 2)[1], header[8]); !slices.Equal(got, []int64{10, 50, 11, 12, 51, 52, 13, 14, 53, 54}) {
		t.Errorf("got %v", got)
	}
	if _, err := GraphClose(g); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(seeds)
}

// Rows of a table of which one is cached, by ids of which one is bad, and behind them a table
// without ids.
func TestDeviceGather(t *testing.T) {
	deviceRing(t, 1)
	upload := func(a []int64) (mem, data int64) {
		mem, err := DeviceUpload(0, address(a), int64(len(a))*8, 0)
		if err != nil {
			t.Fatal(err)
		}
		return mem, view(mem, 2)[1]
	}
	_, table := upload([]int64{1, 2, 3, 4, 5, 6})
	_, cached := upload([]int64{30, 40})
	_, slots := upload([]int64{0xFFFFFFFF, 0xFFFFFFFF}) // -1, 0, -1 of 32 bits, and one more
	_, ids := upload([]int64{2, 1, 7, 1, 0})
	_, out := upload(make([]int64, 10))
	_, words := upload([]int64{0, -1})
	list := []int64{
		ids, 5, 64, table, 3, 16, cached, slots, out, words, words + 8,
		0, 0, 32, 0, 0, 1, 0, 0, 0, 0, 0,
	}
	if _, err := DeviceGather(0, 2, address(list), 0, 0); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int64][]int64{out: {5, 6, 30, 40, 0, 0, 30, 40, 1, 2}, words: {2, 2}} {
		mem, err := DeviceDownload(0, at, int64(len(want))*8, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := view(view(mem, 2)[1], int64(len(want))); !slices.Equal(got, want) {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	runtime.KeepAlive(list)
}
