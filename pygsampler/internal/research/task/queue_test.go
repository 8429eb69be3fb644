package task

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// tree is a random tree of tasks: the children of task i, by vertex number. Deep
// and thin trees starve most workers most of the time, which is when a worker that
// leaves early loses tasks.
func tree(r *rand.Rand, size, width int) [][]int64 {
	children := make([][]int64, size)
	last := 0
	for v := 0; v < size && last < size-1; v++ {
		n := r.IntN(width + 1)
		if v == last { // the tree would end here
			n = 1
		}
		for range min(n, size-1-last) {
			last++
			children[v] = append(children[v], int64(last))
		}
	}
	return children
}

// delay holds a worker up for a random while, rarely a long one, so that any two
// steps of different workers happen in both orders.
func delay(r *rand.Rand) {
	switch k := r.IntN(2000); {
	case k < 400:
		runtime.Gosched()
	case k < 404:
		time.Sleep(time.Duration(r.IntN(50)) * time.Microsecond)
	}
}

// work is the loop of a worker as the package's contract describes it. It returns
// true once Done says so, and false when its own tasks did not fit.
func work(q *Queue, r *rand.Rand, run func(slot int64, task Task) (publish []Task)) bool {
	var ticket Ticket
	for {
		delay(r)
		slot, task, ok := q.Fetch(&ticket)
		if !ok {
			if q.Done() {
				return true
			}
			runtime.Gosched()
			continue
		}
		delay(r)
		fresh := run(slot, task)
		delay(r)
		if !q.Publish(fresh) {
			return false
		}
		delay(r)
		q.Finish()
	}
}

// Every task of a random tree runs exactly once, no worker leaves while a task is
// unfinished, and all leave in the end.
func TestEveryTaskOnce(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 25
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(uint64(round), 1))
		size := 1 + r.IntN(1500)
		children := tree(r, size, []int{1, 2, 30}[round%3])
		total := 1
		for _, c := range children {
			total += len(c)
		}
		workers, fetch := []int{1, 2, 3, 8, 24}[r.IntN(5)], []int{1, 2, 5, 16, 64}[r.IntN(5)]
		q := NewQueue(total, fetch)
		if !q.Publish([]Task{{Vertex: 0}}) {
			t.Fatal("the seed does not fit")
		}
		ran := make([]atomic.Int32, size)
		var finished atomic.Int64
		deadline.Within(t, time.Minute, func() {
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(round), uint64(w)+2))
					work(q, r, func(slot int64, task Task) (fresh []Task) {
						ran[task.Vertex].Add(1)
						if q.Task(slot) != task {
							t.Errorf("slot %d holds %v, not %v", slot, q.Task(slot), task)
						}
						for _, child := range children[task.Vertex] {
							fresh = append(fresh, Task{Vertex: child, Hop: task.Hop + 1})
						}
						finished.Add(1)
						return fresh
					})
					if n := finished.Load(); n != int64(total) {
						t.Errorf("worker %d of %d left after %d of %d tasks", w, workers, n, total)
					}
				})
			}
			wg.Wait()
		})
		for v := range ran {
			if n := ran[v].Load(); v < total && n != 1 {
				t.Fatalf("round %d: task %d ran %d times", round, v, n)
			}
		}
		if q.Published() != int64(total) || q.Overflowed() || !q.Done() {
			t.Fatalf("round %d: published %d of %d, overflowed %v", round, q.Published(), total, q.Overflowed())
		}
		seen := make([]bool, size)
		for slot := range q.Published() {
			if v := q.Task(slot).Vertex; seen[v] {
				t.Fatalf("task %d has two slots", v)
			} else {
				seen[v] = true
			}
		}
	}
}

// The last worker to publish may be held up for ever so long between its fetch and
// its publication: the others wait, though the queue looks drained.
func TestNobodyLeavesWhileATaskRuns(t *testing.T) {
	q := NewQueue(100, 16)
	q.Publish([]Task{{Vertex: 1}})
	var ticket Ticket
	if _, task, ok := q.Fetch(&ticket); !ok || task.Vertex != 1 {
		t.Fatal("the seed is not there")
	}
	left := make(chan bool)
	for range 4 {
		go func() {
			r := rand.New(rand.NewPCG(1, 1))
			left <- work(q, r, func(int64, Task) []Task { return nil })
		}()
	}
	select {
	case <-left:
		t.Fatal("a worker left while a task was running")
	case <-time.After(20 * time.Millisecond):
	}
	q.Publish([]Task{{Vertex: 2}})
	q.Finish()
	// The new task lies in this worker's ticket, so nobody else can run it.
	if _, task, ok := q.Fetch(&ticket); !ok || task.Vertex != 2 {
		t.Fatal("the published task is not there")
	}
	select {
	case <-left:
		t.Fatal("a worker left while a published task was not finished")
	case <-time.After(20 * time.Millisecond):
	}
	q.Finish()
	deadline.Within(t, 10*time.Second, func() {
		for range 4 {
			<-left
		}
	})
}

// Done is asked all the time while one worker runs a long chain of tasks, of which
// one is always unfinished. Between the two counters that Done reads, whole tasks
// come and go: in the wrong order a stale pair looks equal.
func TestDoneNeverLies(t *testing.T) {
	const length = 200_000
	q := NewQueue(length, 1)
	q.Publish([]Task{{}})
	var lies atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !q.Done() {
			}
			if q.finished.Load() < length {
				lies.Add(1)
			}
		})
	}
	deadline.Within(t, time.Minute, func() {
		var ticket Ticket
		for i := range length {
			if _, _, ok := q.Fetch(&ticket); !ok {
				t.Error("the next task is not there")
			}
			if i < length-1 {
				q.Publish([]Task{{Vertex: int64(i)}})
			}
			q.Finish()
		}
		wg.Wait()
	})
	if n := lies.Load(); n > 0 {
		t.Errorf("%d of 3 workers would have left early", n)
	}
}

// Without seeds a queue is done at once.
func TestEmptyQueue(t *testing.T) {
	for _, capacity := range []int{0, 10} {
		q := NewQueue(capacity, 4)
		if !q.Publish(nil) || !q.Done() || q.Overflowed() || q.Published() != 0 {
			t.Error("not done")
		}
		var ticket Ticket
		if _, _, ok := q.Fetch(&ticket); ok {
			t.Error("a task from nowhere")
		}
	}
}

// Tasks up to the capacity fit, one more does not; whoever publishes it is told,
// all others see the end, and tasks that fitted are untouched.
func TestOverflow(t *testing.T) {
	q := NewQueue(4, 3)
	if !q.Publish([]Task{{1, 0}, {2, 0}, {3, 0}}) || !q.Publish([]Task{{4, 1}}) || q.Overflowed() || q.Done() {
		t.Fatal("four tasks do not fit a queue of four")
	}
	if q.Publish([]Task{{5, 1}}) || !q.Overflowed() || !q.Done() {
		t.Fatal("a fifth task fits")
	}
	var ticket Ticket
	for want := int64(1); want <= 4; want++ {
		slot, task, ok := q.Fetch(&ticket)
		if !ok || task.Vertex != want || slot != want-1 {
			t.Fatalf("got %v at %d", task, slot)
		}
	}
	for range 10 {
		if _, task, ok := q.Fetch(&ticket); ok {
			t.Fatalf("got %v from beyond the end", task)
		}
	}
}

// With too little room every worker leaves, whatever it waits for.
func TestOverflowEndsAllWorkers(t *testing.T) {
	for round := range 30 {
		r := rand.New(rand.NewPCG(uint64(round), 3))
		children := tree(r, 500, 3)
		total := 1
		for _, c := range children {
			total += len(c)
		}
		q := NewQueue(1+r.IntN(total-1), 1+r.IntN(20))
		q.Publish([]Task{{Vertex: 0}})
		var told atomic.Int32
		deadline.Within(t, time.Minute, func() {
			var wg sync.WaitGroup
			for w := range 6 {
				wg.Go(func() {
					if !work(q, rand.New(rand.NewPCG(uint64(round), uint64(w))), func(_ int64, task Task) (fresh []Task) {
						for _, child := range children[task.Vertex] {
							fresh = append(fresh, Task{Vertex: child})
						}
						return fresh
					}) {
						told.Add(1)
					}
				})
			}
			wg.Wait()
		})
		if !q.Overflowed() || told.Load() == 0 {
			t.Fatalf("round %d: overflowed %v, %d told", round, q.Overflowed(), told.Load())
		}
	}
}
