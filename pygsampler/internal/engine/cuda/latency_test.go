package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// synthetic is a power-law graph with the counts of a paper's data set: nodes,
// edges, exponent of the degrees. Neighbours are popular by a square law.
type synthetic struct {
	nodes, edges int64
	exponent     float64
}

var synthetics = map[string]synthetic{
	"physics": {34_493, 495_924, 2.4}, "flickr": {89_250, 899_756, 2.4}, "yelp": {716_847, 13_954_819, 2.3},
	"arxiv": {169_343, 1_166_243, 2.4}, "reddit": {232_965, 114_615_892, 2.2}, "products": {2_449_029, 123_718_280, 2.2},
	"papers100m": {111_059_956, 1_615_685_872, 2.4},
}

// inParts runs f over parts of [0, n) on all cores.
func inParts(n int64, f func(lo, hi int64)) {
	var wg sync.WaitGroup
	parts := int64(runtime.GOMAXPROCS(0))
	for p := range parts {
		wg.Go(func() { f(n*p/parts, n*(p+1)/parts) })
	}
	wg.Wait()
}

func uniform(stream rng.Stream, i int64) float64 {
	return float64(stream.State(uint64(i))>>11) / (1 << 53)
}

// onDevice makes the graph and uploads it; the second result is all vertices in a
// random order, on the device.
func (s synthetic) onDevice(e *Engine) (*Graph, gpu.Memory, func() error, error) {
	weights := make([]float64, s.nodes)
	degrees, pick, order := rng.NewStream(1, 0, 0, 0, 0), rng.NewStream(1, 0, 1, 0, 0), rng.NewStream(1, 0, 2, 0, 0)
	inParts(s.nodes, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			weights[v] = min(math.Pow(max(uniform(degrees, v), 1e-12), -1/(s.exponent-1)), float64(s.nodes)/20)
		}
	})
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	indptr, given := make([]int64, s.nodes+1), int64(0)
	for v, w := range weights {
		indptr[v+1] = min(max(int64(w*float64(s.edges)/sum), 1), s.nodes-1)
		given += indptr[v+1]
	}
	for i := given; i < s.edges; i++ {
		indptr[1+order.State(uint64(i))%uint64(s.nodes)]++
	}
	for v := range s.nodes {
		indptr[v+1] += indptr[v]
	}
	perm := make([]int32, s.nodes)
	for i := range perm {
		perm[i] = int32(i)
	}
	rng.Shuffle(perm, 7, 0)
	indices := make([]int32, indptr[s.nodes])
	inParts(int64(len(indices)), func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			u := uniform(pick, i)
			indices[i] = perm[min(int64(u*u*float64(s.nodes)), s.nodes-1)]
		}
	})
	stream, err := e.context.NewStream()
	if err != nil {
		return nil, gpu.Memory{}, nil, err
	}
	var held []gpu.Memory
	up := func(p unsafe.Pointer, bytes int) gpu.Address {
		m, failed := e.pool.Alloc(stream, uint64(bytes))
		held = append(held, m)
		err = errors.Join(err, failed)
		for at := 0; at < bytes && err == nil; at += 256 << 20 {
			err = stream.Upload(m.Address+gpu.Address(at), unsafe.Add(p, at), uint64(min(256<<20, bytes-at)))
		}
		return m.Address
	}
	a := Arrays{IndptrBits: 64, IDBits: 32, Rows: s.nodes, Nodes: s.nodes, Edges: int64(len(indices))}
	a.Indptr = up(unsafe.Pointer(&indptr[0]), 8*len(indptr))
	a.Indices = up(unsafe.Pointer(&indices[0]), 4*len(indices))
	rng.Shuffle(perm, 8, 0)
	up(unsafe.Pointer(&perm[0]), 4*len(perm))
	return e.NewGraph(a), held[2], func() error {
		var errs []error
		for i := range held {
			errs = append(errs, held[i].Free(stream))
		}
		return errors.Join(append(errs, stream.Synchronize(), stream.Close())...)
	}, errors.Join(err, stream.Synchronize())
}

// TestLatency prints a table of times, where PYGSAMPLER_LATENCY names graphs:
// "arxiv,products". PYGSAMPLER_SHAPES narrows it, PYGSAMPLER_BINS sets from how many edges and
// bytes of the map hops are binned.
func TestLatency(t *testing.T) {
	names := os.Getenv("PYGSAMPLER_LATENCY")
	if names == "" {
		t.Skip("measures only where PYGSAMPLER_LATENCY names graphs")
	}
	e, _ := device(t)
	for _, name := range strings.Split(names, ",") {
		g, order, free, err := synthetics[name].onDevice(e)
		if err != nil {
			t.Fatal(err)
		}
		if bins := os.Getenv("PYGSAMPLER_BINS"); bins != "" {
			k := kernels(t, g)
			if _, err := fmt.Sscan(bins, &k.binEdges, &k.binBytes); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			batch   int64
			fanouts []int64
		}{
			{1024, []int64{10, 10}}, {1024, []int64{15, 10, 5}}, {2048, []int64{10, 10, 10}}, {4096, []int64{15, 15}},
			{10240, []int64{10, 10, 10}}, {10240, []int64{15, 15, 15}}, {10240, []int64{20, 20, 20}},
		} {
			text := fmt.Sprintf("%dx%v", c.batch, c.fanouts)
			if only := os.Getenv("PYGSAMPLER_SHAPES"); only != "" && !strings.Contains(only, fmt.Sprint(c.batch)) {
				continue
			}
			if err := measure(t, e, g, order, name+" "+text, c.batch, c.fanouts); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(e.Trim(), free()); err != nil {
			t.Fatal(err)
		}
	}
}

func measure(t *testing.T, e *Engine, g *Graph, order gpu.Memory, what string, size int64, fanouts []int64) error {
	sets := g.Nodes / size
	plan := with(Call{}, request.Request{Hops: request.Hops{Fanouts: fanouts}}).Plan
	call := func(i int64) Call {
		return Call{
			Plan: plan, Batch: request.Batch{Seed: 1, Number: uint64(i)}, Seeds: order.Address + gpu.Address(4*size*(i%sets)),
			NumSeeds: size, SeedBits: 32, Own: true,
		}
	}
	for i := range int64(3) { // capacities are learned
		b, err := sample(e, g, call(i))
		if err != nil {
			return err
		}
		if err := b.Memory.Free(e.stream); err != nil {
			return err
		}
	}
	need := g.need(plan, size).Out * 5 / 4
	outs := make([]gpu.Memory, 8)
	for i := range outs {
		var err error
		if outs[i], err = e.pool.Alloc(e.stream, need); err != nil {
			return err
		}
	}
	defer func() {
		for i := range outs {
			outs[i].Free(e.stream)
		}
	}()
	if err := e.stream.Synchronize(); err != nil {
		return err
	}
	next := int64(0)
	start := func(own bool) (*Flight, error) {
		c := call(next)
		if !own {
			c.Own, c.Stream = false, e.stream.Handle()
		}
		c.Out, c.OutBytes = outs[next%8].Address, need
		next++
		return e.Start(g, &c)
	}
	finish := func(f *Flight) (edges int64, err error) {
		b, _, err := f.Wait(-1)
		if err == nil && b.Needed > 0 {
			err = fmt.Errorf("%d bytes were too few", need)
		}
		if err == nil {
			for i := range fanouts {
				edges += b.Header[batch.FirstBlock+batch.BlockWords*i+batch.BlockNumEdges]
			}
		}
		return edges, err
	}
	var times []float64
	var edges int64
	for range 200 {
		begin := time.Now()
		f, err := start(false)
		if err != nil {
			return err
		}
		got, err := finish(f)
		if err != nil {
			return err
		}
		times = append(times, float64(time.Since(begin))/1e3)
		edges += got
	}
	slices.Sort(times)
	line := fmt.Sprintf("%-28s %9d edges  %7.1f us (quartiles %.1f %.1f)  in flight", what, edges/200, times[100], times[50], times[150])
	for _, depth := range []int{2, 4, 8} {
		var flights []*Flight
		begin := time.Now()
		for i := range 200 + depth {
			if i < 200 {
				f, err := start(true)
				if err != nil {
					return err
				}
				flights = append(flights, f)
			}
			if len(flights) == depth || i >= 200 && len(flights) > 0 {
				if _, err := finish(flights[0]); err != nil {
					return err
				}
				flights = flights[1:]
			}
		}
		line += fmt.Sprintf("  %d: %.1f", depth, float64(time.Since(begin))/200e3)
	}
	fmt.Println(line)
	return nil
}
