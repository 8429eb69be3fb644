package pygsampler

import (
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/weights"
)

// TablesJob makes what rows of a graph draw by, of an array over its edges. It is
// finished exactly once; until then it reads the graph's memory and the array.
type TablesJob struct {
	graph  *Graph
	build  weights.Build
	done   chan struct{}
	memory memory.Memory
	err    error
}

// deriving holds every TablesJob that is not finished, so that Shutdown can end them.
var deriving struct {
	sync.Mutex
	jobs map[*TablesJob]struct{}
}

// number is what a weight can be.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// values is how element i of an array at an address is read.
func values[T number](address, length int64) func(int64) float64 {
	a := memory.View[T](address, length)
	return func(i int64) float64 { return float64(a[i]) }
}

// readers are the dtypes that weights may have.
var readers = map[string]func(address, length int64) func(int64) float64{
	"bool": values[uint8], "int8": values[int8], "int16": values[int16], "int32": values[int32], "int64": values[int64],
	"uint8": values[uint8], "uint16": values[uint16], "uint32": values[uint32], "uint64": values[uint64],
	"float32": values[float32], "float64": values[float64],
}

// StartTables begins to make them, of values by edge id at an address, which must stay
// until the job has ended. name is the array's, for errors.
func StartTables(g *Graph, name, dtype string, address, length int64, mask bool) (*TablesJob, error) {
	if g.device != nil {
		return nil, Errorf(KindValue, "graph: expected one on the CPU, got one on cuda:%d", g.device.index)
	}
	read := readers[dtype]
	if read == nil {
		return nil, Errorf(KindType, "%s: expected bool, integers, float32 or float64, got %s", name, dtype)
	}
	if length < 0 {
		return nil, Errorf(KindValue, "%s: expected a length >= 0, got %d", name, length)
	}
	j := &TablesJob{graph: g, done: make(chan struct{})}
	j.build.Graph, j.build.Name, j.build.Mask = &g.csc, name, mask
	j.build.Value, j.build.Len = read(address, length), length
	if err := g.enter(); err != nil {
		return nil, err
	}
	deriving.Lock()
	defer deriving.Unlock()
	if deriving.jobs == nil {
		deriving.jobs = make(map[*TablesJob]struct{})
	}
	deriving.jobs[j] = struct{}{}
	go j.run()
	return j, nil
}

func (j *TablesJob) run() {
	// The array may be of a mapped file that another process makes shorter.
	debug.SetPanicOnFault(true)
	defer func() {
		if p := recover(); p != nil {
			j.err = Errorf(KindOther, "tables: %v", p)
		}
		j.graph.leave()
		deriving.Lock()
		delete(deriving.jobs, j)
		deriving.Unlock()
		close(j.done)
	}()
	if j.memory, j.err = j.build.Run(); errors.Is(j.err, weights.ErrStopped) {
		j.err = Errorf(KindInterrupt, "cancelled")
	}
}

// Poll waits up to timeout milliseconds, and says how far the job is: edges done of
// those in all, or finished.
func (j *TablesJob) Poll(timeout int64) (done, total int64, finished bool) {
	timer := time.NewTimer(time.Duration(timeout) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-j.done:
		finished = true
	case <-timer.C:
	}
	return j.build.Done.Load(), 2 * j.build.Graph.NumEdges(), finished
}

// Take waits for the end and gives the memory's address, with its reference.
func (j *TablesJob) Take() (int64, error) {
	<-j.done
	if j.err != nil {
		return 0, j.err
	}
	return j.memory.Address(), nil
}

// Cancel ends the job and returns once it reads nothing any more.
func (j *TablesJob) Cancel() {
	j.build.Stop.Store(true)
	if _, err := j.Take(); err == nil {
		j.memory.Release()
	}
}

// endDeriving ends all of them.
func endDeriving() {
	deriving.Lock()
	jobs := make([]*TablesJob, 0, len(deriving.jobs))
	for j := range deriving.jobs {
		j.build.Stop.Store(true)
		jobs = append(jobs, j)
	}
	deriving.Unlock()
	for _, j := range jobs {
		<-j.done
	}
}
