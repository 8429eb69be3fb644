package pygsampler

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// One, two and seven threads, one job at a time and forty in flight, submitted or
// made on the spot, from one goroutine or from many, give the same batches.
func TestThreadsAgree(t *testing.T) {
	quiet(t)
	a := random(3000)
	g := a.open(t)
	seeds := csctest.Squares(600, 3000)
	samplers := []*Sampler{
		options(t, "auto", false, 5, 5), options(t, anotherMode, false, 5, 5), options(t, "auto", true, 4, 3, 2),
		options(t, "auto", false, 2, -1), options(t, anotherMode, true, 3, 3),
	}
	const jobs = 40
	call := func(i int) (*Sampler, Request) {
		n := int64(1 + i*8)
		return samplers[i%len(samplers)], Request{
			Seeds: address(seeds), NumSeeds: n, SeedBits: 64, Epoch: int64(i % 3), Batch: int64(i), Threads: int64(i % 4),
		}
	}
	var want [jobs]string
	for _, threads := range []int64{1, 2, 7} {
		if _, err := SetThreads(threads); err != nil {
			t.Fatal(err)
		}
		for _, how := range []func(*Relation, *Sampler, Request) (*HostJob, error){submit, sample} {
			var flying [jobs]*HostJob
			for i := range flying {
				o, c := call(i)
				var err error
				if flying[i], err = how(g, o, c); err != nil {
					t.Fatal(err)
				}
			}
			for i, j := range flying {
				got := result(t, j)
				if want[i] == "" {
					want[i] = got
				}
				if got != want[i] {
					t.Fatalf("%d threads, job %d: another batch", threads, i)
				}
			}
		}
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := w; i < jobs; i += 3 {
					o, c := call(i)
					j, err := []func(*Relation, *Sampler, Request) (*HostJob, error){submit, sample}[i%2](g, o, c)
					if err != nil {
						t.Error(err)
					} else if got := result(t, j); got != want[i] {
						t.Errorf("%d threads, job %d from goroutine %d: another batch", threads, i, w)
					}
				}
			})
		}
		wg.Wait()
	}
	// The two modes agree with each other too.
	for _, mode := range []string{"auto", anotherMode} {
		_, c := call(1)
		j, err := submit(g, options(t, mode, false, 5, 5), c)
		if err != nil {
			t.Fatal(err)
		}
		if got := result(t, j); got != want[1] {
			t.Errorf("mode %s: another batch", mode)
		}
	}
	runtime.KeepAlive(seeds)
}

// Seeds that are hubs look like a small batch and are none: it leaves the caller's
// thread, where nothing could interrupt it, and is the same batch.
func TestHubsLeaveTheCaller(t *testing.T) {
	quiet(t)
	const nodes, hubs, degree = 200_000, 50, 20_000
	a := &arrays{indptr: make([]int64, nodes+1), indices: make([]int64, hubs*degree)}
	for v := range nodes {
		a.indptr[v+1] = int64(min(v+1, hubs) * degree)
	}
	for i := range a.indices {
		a.indices[i] = int64(i % nodes)
	}
	g := a.open(t)
	seeds := csctest.Steps(hubs, 1)
	for _, large := range []bool{false, true} {
		c := Request{Seeds: address(seeds), NumSeeds: hubs, SeedBits: 64}
		if !large {
			c.NumSeeds = 2
		}
		o := options(t, "auto", false, -1)
		j, err := sample(g, o, c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := submit(g, o, c)
		if err != nil {
			t.Fatal(err)
		}
		if result(t, j) != result(t, again) {
			t.Error("another batch")
		}
		// Only now: until a job is finished its work is the executor's.
		of := j.task.(*sampleTask)
		if bounded := of.work.Most != 0; bounded == large || of.plan.Expected(&of.work) > promptEdges {
			t.Errorf("%d edges expected, bounded %v", of.plan.Expected(&of.work), bounded)
		}
	}
	runtime.KeepAlive(seeds)
}

// The number of threads may change at any time, below what is in use too.
func TestSetThreadsWhileRunning(t *testing.T) {
	quiet(t)
	g := random(3000).open(t)
	o := options(t, "auto", false, 6, 6)
	seeds := csctest.Steps(1500, 1)
	c := Request{Seeds: address(seeds), NumSeeds: 1500, SeedBits: 64}
	j, err := submit(g, o, c)
	if err != nil {
		t.Fatal(err)
	}
	want := result(t, j)
	deadline.Within(t, time.Minute, func() {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 12 {
					j, err := submit(g, o, c)
					if err != nil {
						t.Error(err)
					} else if result(t, j) != want {
						t.Error("another batch")
					}
				}
			})
		}
		stop := make(chan struct{})
		changing := make(chan struct{})
		go func() {
			defer close(changing)
			for n := int64(1); ; n = n%7 + 1 {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := SetThreads(n); err != nil {
					t.Error(err)
				}
				if got := Threads(); got != n {
					t.Errorf("%d threads, want %d", got, n)
				}
				time.Sleep(200 * time.Microsecond)
			}
		}()
		wg.Wait()
		close(stop)
		<-changing
	})
	runtime.KeepAlive(seeds)
}

// Shutdown ends what runs and what waits; the engine can still be used.
func TestShutdown(t *testing.T) {
	quiet(t)
	g, o, c := long(t)
	for range 3 {
		var jobs []*HostJob
		for range 12 {
			j, err := submit(g, o, c)
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, j)
		}
		if n := Stats().Jobs; n == 0 || n > 12 {
			t.Errorf("%d jobs on their way", n)
		}
		deadline.Within(t, time.Minute, Shutdown)
		for _, j := range jobs {
			select {
			case <-j.done:
			default:
				t.Fatal("a job is on its way after Shutdown")
			}
			if _, _, err := j.Wait(0); err != request.ErrCancelled {
				t.Errorf("got %v", err)
			}
		}
	}
	deadline.Within(t, time.Minute, Shutdown) // nothing to do
	j, err := submit(g, options(t, "auto", false, 2), c)
	if err != nil {
		t.Fatal(err)
	}
	result(t, j)
}
