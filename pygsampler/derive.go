package pygsampler

import (
	"errors"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/negatives"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/pagerank"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/weights"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// derivation computes a memory from a graph on the CPU.
type derivation interface {
	// Run computes the result, with one reference; it returns csc.ErrStopped after Halt.
	Run() (memory.Memory, error)
	// Halt ends Run soon.
	Halt()
	// Progress returns the completed and the total amount of work.
	Progress() (done, total int64)
}

// DeriveJob derives arrays or sampling tables from a graph and, for some kinds, from an array over
// its edges. It ends exactly once; until then it reads the memory of the graph and of the array.
type DeriveJob struct {
	relation *Relation
	build    derivation
	done     chan struct{}
	memory   memory.Memory
	err      error
}

// deriving holds every DeriveJob that is not finished, so that Shutdown can end them.
var deriving struct {
	sync.Mutex
	jobs map[*DeriveJob]struct{}
}

// number is the set of types of weights.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// values returns a reader of the elements of an array at an address.
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

// integers returns a reader of the elements of an integer array at an address.
func integers[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32](address, length int64) func(int64) int64 {
	a := memory.View[T](address, length)
	return func(i int64) int64 { return int64(a[i]) }
}

// types are the dtypes that types of edges may have.
var types = map[string]func(address, length int64) func(int64) int64{
	"int8": integers[int8], "int16": integers[int16], "int32": integers[int32], "int64": integers[int64],
	"uint8": integers[uint8], "uint16": integers[uint16], "uint32": integers[uint32],
	"uint64": func(address, length int64) func(int64) int64 {
		a := memory.View[uint64](address, length)
		return func(i int64) int64 { return int64(min(a[i], math.MaxInt64)) }
	},
}

// StartDerivation starts to derive data from a graph on the CPU. name and dtype belong to the array
// that is read, and list is the address of the numbers: for "tables" the address and length of
// weights and 1 if they are a mask, for "times" the address and length of times and 1 if they
// belong to nodes, for "transpose" the address and length of the types of edges, the number of
// types, and 1 to leave out edge ids, for "pagerank" the address, number and bits of roots, the
// maximal number of nodes of each, and alpha, epsilon and threshold as bits, for "negatives" the
// power as bits.
func StartDerivation(g *Relation, kind, name, dtype string, list int64) (*DeriveJob, error) {
	length := map[string]int64{"tables": 3, "times": 3, "transpose": 4, "pagerank": 7, "negatives": 1}[kind]
	if length == 0 || list == 0 {
		return nil, Errorf(KindValue, "derivation: expected a known kind and an address, got %q and %#x", kind, list)
	}
	w := memory.View[int64](list, length)
	switch kind {
	case "tables":
		return startTables(g, name, dtype, w[0], w[1], w[2] != 0)
	case "times":
		return startTimes(g, name, dtype, w[0], w[1], w[2] != 0)
	case "transpose":
		return startTranspose(g, name, dtype, w[0], w[1], w[2], w[3] != 0)
	case "pagerank":
		return startPageRank(g, w[0], w[1], int(w[2]), w[3], w[4], w[5], w[6])
	}
	return startNegatives(g, w[0])
}

// startTables begins to make what rows draw by, of values by edge id at an address, which must stay
// until the job has ended. name is the array's, for errors.
func startTables(g *Relation, name, dtype string, address, length int64, mask bool) (*DeriveJob, error) {
	read := readers[dtype]
	if read == nil {
		return nil, Errorf(KindType, "%s: expected bool, integers, float32 or float64, got %s", name, dtype)
	}
	if length < 0 {
		return nil, Errorf(KindValue, "%s: expected a length >= 0, got %d", name, length)
	}
	return derive(g, &weights.Build{Relation: &g.csc, Name: name, Mask: mask, Value: read(address, length), Len: length})
}

// startTranspose starts to transpose a graph. If dtype is not empty, rows are split by the types at
// an address, by edge id, which must stay valid until the job has ended: by kinds types, or by as
// many as occur if kinds is 0. name is the name of the array, for errors. bare leaves out the edge
// ids.
func startTranspose(g *Relation, name, dtype string, address, length, kinds int64, bare bool) (*DeriveJob, error) {
	t := &csc.Transposition{Relation: &g.csc, Name: name, Bare: bare}
	if dtype != "" {
		read := types[dtype]
		if read == nil {
			return nil, Errorf(KindType, "%s: expected integers, got %s", name, dtype)
		}
		if length < 0 {
			return nil, Errorf(KindValue, "%s: expected a length >= 0, got %d", name, length)
		}
		if kinds < 0 || kinds > csc.MaxKinds {
			return nil, Errorf(KindValue, "kinds: expected 0 to %d, got %d", csc.MaxKinds, kinds)
		}
		t.Kind, t.Len, t.Kinds = read(address, length), length, kinds
	}
	return derive(g, t)
}

// derive begins a derivation of a graph.
func derive(g *Relation, build derivation) (*DeriveJob, error) {
	if g.device != nil {
		return nil, Errorf(KindValue, "graph: expected one on the CPU, got one on cuda:%d", g.device.index)
	}
	j := &DeriveJob{relation: g, build: build, done: make(chan struct{})}
	if err := g.enter(); err != nil {
		return nil, err
	}
	deriving.Lock()
	if deriving.jobs == nil {
		deriving.jobs = make(map[*DeriveJob]struct{})
	}
	deriving.jobs[j] = struct{}{}
	deriving.Unlock()
	_, ranks := build.(*pagerank.Scores)
	if !ranks && g.csc.NumNodes <= inline && g.csc.NumEdges() <= inline {
		j.run()
	} else {
		go j.run()
	}
	return j, nil
}

// inline bounds the nodes and the edges of graphs whose derivations the caller makes itself: those take less
// time than to wake a thread. Walks of PageRank look at edges many times.
const inline = 1 << 13

func (j *DeriveJob) run() {
	// The array may be of a mapped file that another process makes shorter.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			j.err = Errorf(KindOther, "derived graph: %v", p)
		}
		j.relation.leave()
		deriving.Lock()
		delete(deriving.jobs, j)
		deriving.Unlock()
		close(j.done)
	}()
	if j.memory, j.err = j.build.Run(); errors.Is(j.err, csc.ErrStopped) {
		j.err = Errorf(KindInterrupt, "cancelled")
	}
}

// Poll waits up to timeout milliseconds and returns the progress of the job: the completed and the
// total amount of work, or finished.
func (j *DeriveJob) Poll(timeout int64) (done, total int64, finished bool) {
	select {
	case <-j.done:
		// Before any timer: of one that has run out too, either would be taken.
		finished = true
	default:
		timer := time.NewTimer(time.Duration(timeout) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-j.done:
			finished = true
		case <-timer.C:
		}
	}
	done, total = j.build.Progress()
	return done, total, finished
}

// Take waits for the end and returns the address of the memory, with its reference.
func (j *DeriveJob) Take() (int64, error) {
	<-j.done
	if j.err != nil {
		return 0, j.err
	}
	return j.memory.Address(), nil
}

// Cancel ends the job and returns once it reads nothing any more.
func (j *DeriveJob) Cancel() {
	j.build.Halt()
	if _, err := j.Take(); err == nil {
		j.memory.Release()
	}
}

// endDeriving ends all of them.
func endDeriving() {
	deriving.Lock()
	jobs := make([]*DeriveJob, 0, len(deriving.jobs))
	for j := range deriving.jobs {
		j.build.Halt()
		jobs = append(jobs, j)
	}
	deriving.Unlock()
	for _, j := range jobs {
		<-j.done
	}
}

// Ascends reports whether the neighbors of each row of a graph on the CPU are in ascending order.
func (g *Relation) Ascends() (ascends bool, err error) {
	return g.asked(func() bool { return g.csc.Ascends() })
}

// HasRowsOf reports whether two graphs on the CPU have the same rows.
func (g *Relation) HasRowsOf(other *Relation) (same bool, err error) {
	var inner error
	same, err = g.asked(func() (same bool) {
		same, inner = other.asked(func() bool { return csc.EqualRows(&g.csc, &other.csc) })
		return same
	})
	return same, errors.Join(err, inner)
}

// asked answers a question that takes a look at all arrays of a graph on the CPU.
func (g *Relation) asked(question func() bool) (answer bool, err error) {
	if g.device != nil {
		return false, Errorf(KindValue, "graph: expected one on the CPU, got one on cuda:%d", g.device.index)
	}
	if err := g.enter(); err != nil {
		return false, err
	}
	defer g.leave()
	// The arrays may be of a mapped file that another process makes shorter.
	defer graphfile.RecoverFault(&err, "graph file")
	defer graphfile.FaultsPanic()()
	return question(), nil
}

// startTimes begins to put the rows of a graph into the order of time: times are at an address, one for
// each edge id or each node, and must stay until the job has ended. name is theirs, for errors.
func startTimes(g *Relation, name, dtype string, address, length int64, byVertex bool) (*DeriveJob, error) {
	if length < 0 {
		return nil, Errorf(KindValue, "%s: expected a length >= 0, got %d", name, length)
	}
	s := &times.Sort{Relation: &g.csc, Name: name, ByVertex: byVertex, Len: length}
	switch dtype {
	case "int32", "int64":
		s.Int = types[dtype](address, length)
	case "float32", "float64":
		s.Float = readers[dtype](address, length)
	default:
		return nil, Errorf(KindType, "%s: expected times of int32, int64, float32 or float64, got %s", name, dtype)
	}
	return derive(g, s)
}

// startPageRank starts to find the nodes around each root by personalized PageRank, as
// pagerank.Scores does; floats are passed as bits. The roots must stay valid until the job has
// ended.
func startPageRank(g *Relation, roots, count int64, rootBits int, most, alpha, epsilon, threshold int64) (*DeriveJob, error) {
	if rootBits != 32 && rootBits != 64 || count < 0 {
		return nil, Errorf(KindType, "roots: expected at least 0 of 32 or 64 bits, got %d of %d", count, rootBits)
	}
	if err := aligned(int64(rootBits/8), "roots", roots); err != nil {
		return nil, err
	}
	return derive(g, &pagerank.Scores{
		Relation: &g.csc, Roots: csc.Borrow(roots, count, rootBits), Most: most,
		Alpha: math.Float64frombits(uint64(alpha)), Epsilon: math.Float64frombits(uint64(epsilon)),
		Threshold: math.Float64frombits(uint64(threshold)),
	})
}

// startNegatives starts to build the table for drawing nodes in proportion to a power of their
// in-degree; the power is passed as bits.
func startNegatives(g *Relation, power int64) (*DeriveJob, error) {
	return derive(g, &negatives.Table{Relation: &g.csc, Power: math.Float64frombits(uint64(power))})
}
