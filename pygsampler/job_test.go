package pygsampler

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// onHeap makes what address is asked for escape: memory on a goroutine's stack moves.
var onHeap atomic.Pointer[byte]

func address[T any](a []T) int64 {
	p := unsafe.Pointer(unsafe.SliceData(a))
	onHeap.Store((*byte)(p))
	return int64(uintptr(p))
}

// arrays is a CSC whose owner the test is.
type arrays struct{ indptr, indices []int64 }

// random is n vertices with degrees up to 12.
func random(n int) *arrays {
	r := rand.New(rand.NewPCG(uint64(n), 9))
	a := &arrays{indptr: []int64{0}}
	for range n {
		for range r.IntN(13) {
			a.indices = append(a.indices, r.Int64N(int64(n)))
		}
		a.indptr = append(a.indptr, int64(len(a.indices)))
	}
	return a
}

func (a *arrays) csc() CSC {
	n := int64(len(a.indptr) - 1)
	return CSC{
		Indptr: address(a.indptr), IndptrBits: 64, NumRows: n,
		Indices: address(a.indices), IDBits: 64, NumEdges: int64(len(a.indices)), NumNodes: n,
	}
}

// open is a graph over the arrays, closed at the test's end.
func (a *arrays) open(t *testing.T) *Relation {
	t.Helper()
	g, err := NewRelation(a.csc())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deadline.Within(t, time.Minute, g.Close); runtime.KeepAlive(a) })
	return g
}

func options(t *testing.T, mode string, replace bool, fanouts ...int64) *Sampler {
	t.Helper()
	o, err := planOf(mode, replace, 17, fanouts)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// quiet checks, when the test ends, that the engine has neither work nor threads
// in use, and that all memories are back.
func quiet(t *testing.T) {
	t.Helper()
	live, threads := memory.Count().Live, Threads()
	t.Cleanup(func() {
		if _, err := SetThreads(threads); err != nil {
			t.Error(err)
		}
		// A job is finished a moment before its thread is free.
		deadline := time.Now().Add(10 * time.Second)
		for {
			engine.mu.Lock()
			busy, waiting := engine.busy, len(engine.waiting)
			engine.mu.Unlock()
			if busy == 0 && waiting == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d threads are busy, %d jobs wait", busy, waiting)
			}
			time.Sleep(time.Millisecond)
		}
		if n := memory.Count().Live - live; n != 0 {
			t.Errorf("%d memories were lost", n)
		}
		if n := Stats().Jobs; n != 0 {
			t.Errorf("%d jobs are on their way", n)
		}
	})
}

// long is a call that keeps the engine busy for long: 250 hops of the whole graph.
func long(t *testing.T) (*Relation, *Sampler, Request) {
	t.Helper()
	a := random(20000)
	seeds := csctest.Steps(2000, 1)
	t.Cleanup(func() { runtime.KeepAlive(seeds) })
	fanouts := slices.Repeat([]int64{-1}, 250)
	return a.open(t), options(t, "auto", false, fanouts...), Request{Seeds: address(seeds), NumSeeds: 2000, SeedBits: 64}
}

// contents is what a memory's batch says, and releases it.
func contents(t *testing.T, at int64) string {
	t.Helper()
	m := memory.FromAddress(at)
	defer m.Release()
	b := batchtest.Read(m)
	if b.IDBits != 64 || b.EdgeIDBits != 64 {
		t.Errorf("ids of %d bits, edge ids of %d", b.IDBits, b.EdgeIDBits)
	}
	return fmt.Sprint(b)
}

// result waits for a job.
func result(t *testing.T, j *HostJob) string {
	t.Helper()
	at, finished, err := j.Wait(-1)
	if err != nil || !finished {
		t.Errorf("finished %v: %v", finished, err)
		return ""
	}
	return contents(t, at)
}

// Seeds and excluded edges are copied: their owner may reuse the memory at once.
func TestSeedsAreCopied(t *testing.T) {
	quiet(t)
	g := random(500).open(t)
	o := options(t, "auto", false, 3, 3)
	var want string
	for round := range 20 {
		seeds, exclude := []int64{5, 6, 7, 5}, []int64{1, 2, 300}
		j, err := submit(g, o, Request{
			Seeds: address(seeds), NumSeeds: 4, SeedBits: 64, Exclude: address(exclude), NumExclude: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range seeds {
			seeds[i] = -1
		}
		clear(exclude)
		if got := result(t, j); round == 0 {
			want = got
		} else if got != want {
			t.Fatal("another batch")
		}
	}
}

// Cancelled while it waits, while it runs or when it is ready, a job lets go of the
// graph before Cancel returns, and its memory is gone.
func TestCancel(t *testing.T) {
	quiet(t)
	if _, err := SetThreads(1); err != nil {
		t.Fatal(err)
	}
	g, o, c := long(t)
	for round := range 6 {
		first, err := submit(g, o, c)
		if err != nil {
			t.Fatal(err)
		}
		second, err := submit(g, o, c)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(round*round) * time.Millisecond)
		deadline.Within(t, time.Minute, second.Cancel) // though the only thread is not free
		if _, finished, _ := first.Wait(0); finished {
			t.Error("Cancel waited for another job")
		}
		deadline.Within(t, time.Minute, first.Cancel)
		if first.err != request.ErrCancelled || second.err != request.ErrCancelled {
			t.Fatalf("got %v and %v", first.err, second.err)
		}
		if n := func() int { g.mu.Lock(); defer g.mu.Unlock(); return g.jobs }(); n != 0 {
			t.Fatalf("%d jobs are in the graph", n)
		}
	}
	live := memory.Count().Live
	j, err := submit(g, options(t, "auto", false, 2), c)
	if err != nil {
		t.Fatal(err)
	}
	<-j.done
	if memory.Count().Live != live+1 {
		t.Error("no batch")
	}
	deadline.Within(t, time.Minute, j.Cancel)
	if memory.Count().Live != live {
		t.Error("the batch of a cancelled job is left")
	}
}

// Wait gives up after its time and finds the result later.
func TestWait(t *testing.T) {
	quiet(t)
	g, o, c := long(t)
	j, err := submit(g, o, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, timeout := range []int64{0, 1, 20} {
		begin := time.Now()
		at, finished, err := j.Wait(timeout)
		if at != 0 || finished || err != nil {
			t.Fatalf("a long job is finished: %v", err)
		}
		if took := time.Since(begin); took < time.Duration(timeout)*time.Millisecond {
			t.Errorf("waited %v of %d ms", took, timeout)
		}
	}
	deadline.Within(t, time.Minute, j.Cancel)
	if _, finished, err := j.Wait(0); !finished || err != request.ErrCancelled {
		t.Errorf("finished %v: %v", finished, err)
	}
	if j, err = submit(g, options(t, "auto", false, 2), c); err != nil {
		t.Fatal(err)
	}
	result(t, j)
}

// Errors of a running job come out of Wait, once, with their kind.
func TestJobErrors(t *testing.T) {
	quiet(t)
	a := random(100)
	g := a.open(t)
	seeds, none := []int64{1, 100}, []int64{1 << 40}
	for _, k := range []struct {
		call Request
		kind Kind
		text string
	}{
		{Request{Seeds: address(seeds), NumSeeds: 2, SeedBits: 64}, KindIndex, "seeds[1]: expected an id in [0, 100), got 100"},
		{
			Request{Seeds: address(seeds), NumSeeds: 1, SeedBits: 64, Exclude: address(none), NumExclude: 1},
			KindValue, "exclude[0]: expected the id of an edge of the graph, got 1099511627776",
		},
	} {
		for _, how := range []func(*Relation, *Sampler, Request) (*HostJob, error){submit, sample} {
			j, err := how(g, options(t, "auto", false, 3), k.call)
			if err != nil {
				t.Fatal(err)
			}
			_, finished, err := j.Wait(-1)
			if kind, text := KindOf(err); !finished || kind != k.kind || text != k.text {
				t.Errorf("got %s: %s, want %s: %s", kind, text, k.kind, k.text)
			}
		}
	}
	runtime.KeepAlive(seeds)
	runtime.KeepAlive(none)
}

// Arrays that change under a job end it with an error, wherever they are read, and
// leave the graph usable.
func TestChangedArrays(t *testing.T) {
	quiet(t)
	a := random(100)
	g := a.open(t)
	o, seeds, exclude := options(t, "auto", false, 3), []int64{1, 2, 3}, []int64{int64(len(a.indices)) - 1}
	good := slices.Clone(a.indptr)
	clear(a.indptr[1:])
	j, err := submit(g, o, Request{
		Seeds: address(seeds), NumSeeds: 3, SeedBits: 64, Exclude: address(exclude), NumExclude: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = j.Wait(-1)
	if kind, text := KindOf(err); kind != KindOther || !strings.HasPrefix(text, "the graph's arrays changed") {
		t.Errorf("got %s: %s", kind, text)
	}
	copy(a.indptr, good)
	if j, err = submit(g, o, Request{Seeds: address(seeds), NumSeeds: 3, SeedBits: 64}); err != nil {
		t.Fatal(err)
	}
	result(t, j)
}

// Submit refuses wrong arguments before it holds the graph.
func TestCallErrors(t *testing.T) {
	quiet(t)
	g := random(100).open(t)
	o := options(t, "auto", false, 3)
	for _, k := range []struct {
		call Request
		kind Kind
		text string
	}{
		{Request{SeedBits: 16}, KindType, "seeds: expected 32 or 64 bits, got 16"},
		{Request{}, KindType, "seeds: expected 32 or 64 bits, got 0"},
		{Request{SeedBits: 64, NumSeeds: -1}, KindValue, "seeds: expected a length >= 0, got -1"},
		{Request{SeedBits: 64, NumExclude: -2}, KindValue, "seeds: expected a length >= 0, got -2"},
		{Request{SeedBits: 64, Epoch: -1}, KindValue, "epoch: expected an integer in [0, 16777215], got -1"},
		{Request{SeedBits: 64, Epoch: 1 << 24}, KindValue, "epoch: expected an integer in [0, 16777215], got 16777216"},
		{Request{SeedBits: 64, Batch: -1}, KindValue, "batch: expected an integer in [0, 1099511627775], got -1"},
		{Request{SeedBits: 64, Batch: 1 << 40}, KindValue, "batch: expected an integer in [0, 1099511627775], got 1099511627776"},
	} {
		_, err := submit(g, o, k.call)
		if kind, text := KindOf(err); kind != k.kind || text != k.text {
			t.Errorf("%+v: got %s: %s", k.call, kind, text)
		}
	}
	// No array at all: the bridge makes an error of the panic, and Close still returns.
	for _, c := range []Request{{SeedBits: 64, NumSeeds: 5}, {SeedBits: 32, NumSeeds: 5}, {SeedBits: 64, NumExclude: 5}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("seeds at address 0")
				}
			}()
			_, _ = submit(g, o, c)
		}()
	}
	deadline.Within(t, time.Minute, g.Close)
}
