package cuda

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	researchcpu "github.com/pygsampler/pygsampler/pygsampler/internal/research/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/walktest"
)

// device opens the engine on the first device. Without one, or without kernels for
// it in this build, the test skips, or fails where PYGSAMPLER_REQUIRE names cuda.
func device(t testing.TB) (*cuda.Engine, gpu.Stream) {
	t.Helper()
	e, err := cuda.Open(0)
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("PYGSAMPLER_REQUIRE"), ","), "cuda") {
			t.Fatalf("PYGSAMPLER_REQUIRE asks for cuda: %v", err)
		}
		t.Skip(err)
	}
	s, err := e.Context().NewStream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Synchronize(), s.Close(), cuda.CloseAll()); err != nil {
			t.Error(err)
		}
	})
	return e, s
}

// with is a call for a batch of a request, in a mode unless it has a plan.
func with(c cuda.Call, r request.Request, mode string) cuda.Call {
	if c.Plan == nil {
		hops := cuda.Hops{Hops: r.Hops}
		switch mode {
		case "queue":
			c.Plan = &Queue{Hops: hops}
		case "fused":
			c.Plan = &Fused{hops}
		case "bsp":
			c.Plan = &BSP{hops}
		case "auto":
			c.Plan = &cuda.Neighbors{Hops: hops}
		default:
			c.Plan = reservoirOf(hops, mode)
		}
	}
	c.Batch = r.Batch
	return c
}

// onCPU is what the CPU engine makes of a request.
func onCPU(r *cpu.Request) (batchtest.Batch, error) {
	var stop atomic.Bool
	m, err := cpu.Sample(r, walktest.Alone, &stop)
	if err != nil {
		return batchtest.Batch{}, err
	}
	defer m.Release()
	return batchtest.Read(m), nil
}

// read downloads a batch in device memory and frees it.
func read(b cuda.Batch, s gpu.Stream) (batchtest.Batch, error) {
	m, err := b.Download(s)
	if err != nil {
		return batchtest.Batch{}, err
	}
	defer m.Release()
	return batchtest.Read(m), b.Memory.Free(s)
}

func sample(e *cuda.Engine, d *cuda.Graph, c cuda.Call) (cuda.Batch, error) {
	f, err := e.Start(d, &c)
	if err != nil {
		return cuda.Batch{}, err
	}
	b, _, err := f.Wait(-1)
	return b, err
}

// probe is a plan that launches nothing, and notes which workspace it would have had.
type probe struct {
	cuda.Plan
	space *cuda.Workspace
}

var errProbe = errors.New("a probe")

func (p *probe) Fit(f *cuda.Flight) error {
	p.space = f.Space()
	return errProbe
}

// idle is the workspace that the next batch of a graph will have.
func idle(t *testing.T, e *cuda.Engine, d *cuda.Graph) *cuda.Workspace {
	t.Helper()
	p := &probe{Plan: &BSP{}}
	if _, err := e.Start(d, &cuda.Call{Plan: p, Batch: request.Batch{Seeds: csctest.Array(nil, 64)}}); !errors.Is(err, errProbe) {
		t.Fatal(err)
	}
	return p.space
}

// upload is a graph on the device, until the end of the test.
func upload(t *testing.T, e *cuda.Engine, g *csc.Relation) *cuda.Graph {
	t.Helper()
	d, free, err := e.Upload(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.Close(), free()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// graphOf is csctest.Graph, here and on the device.
func graphOf(t *testing.T, e *cuda.Engine, rows [][]int64, numNodes int64, idBits, indptrBits int, withIDs bool) (*csc.Relation, *cuda.Graph) {
	t.Helper()
	g := csctest.Graph(rows, numNodes, idBits, indptrBits, withIDs)
	return g, upload(t, e, g)
}

// awkward runs f on each graph of csctest.Awkward, with two trailing nodes, without and
// with edge ids, for seeds of all kinds and for fanouts of all kinds and the given ones.
func awkward(t *testing.T, e *cuda.Engine, f func(t *testing.T, d *cuda.Graph, r cpu.Request), more ...[]int64) {
	for name, rows := range csctest.Awkward(50000) {
		t.Run(name, func(t *testing.T) {
			n := int64(len(rows))
			for _, withIDs := range []bool{false, true} {
				g, d := graphOf(t, e, rows, n+2, 64, 32, withIDs)
				for _, seeds := range [][]int64{{}, {n + 1}, {0, n, 0, 0}} {
					for _, fanouts := range append([][]int64{{2, 3}, {-1, -1}, {1500, 1}, {0}}, more...) {
						f(t, d, cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 3, Seeds: csctest.Array(seeds, 64)}}})
					}
				}
			}
		})
	}
}

// Batches of a mode that several batches of one launch stand around.
func TestManyOfDifferentModes(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(400, 1), 410, 32, 64, false)
	modes := map[int]string{2: "queue", 5: "bsp", 6: "fused", 9: "reservoir"}
	requests, calls := make([]cpu.Request, 12), make([]*cuda.Call, 12)
	for i := range calls {
		mode := "auto"
		if other, is := modes[i]; is {
			mode = other
		}
		requests[i] = cpu.Request{Relation: g, Request: request.Request{
			Hops: request.Hops{Fanouts: []int64{9, 8}}, Batch: request.Batch{Number: uint64(i), Seeds: csctest.Array(csctest.Squares(33*(i%3), 410), 32)},
		}}
		if ofReservoirs(mode) {
			requests[i].Draw = researchcpu.Reservoirs
		}
		c := with(cuda.Call{Stream: s.Handle(), Own: true}, requests[i].Request, mode)
		calls[i] = &c
	}
	flights, err := e.StartMany(d, calls)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range flights {
		b, _, err := f.Wait(-1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(b, s)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := onCPU(&requests[i]); err != nil || !got.Equal(want) {
			t.Errorf("batch %d, mode %q: %v\n got %.300s\nwant %.300s", i, modes[i], err, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}

// A caller whose memory is too small is told what would do, and so is one whose batch
// arrived, of the next.
func TestCapacityOfACallersMemory(t *testing.T) {
	e, s := device(t)
	g := csctest.Graph(csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	for _, mode := range []string{"queue", "bsp", "fused", "reservoir"} {
		d := upload(t, e, g)
		r := request.Request{Hops: request.Hops{Fanouts: []int64{4, 4}}, Batch: request.Batch{Seeds: csctest.Array(csctest.Steps(500, 1), 32)}}
		c := with(cuda.Call{Stream: s.Handle()}, r, mode)
		c.OutBytes = 1000
		for try := 0; ; try++ {
			m, err := e.MemoryPool().Alloc(s, c.OutBytes)
			if err != nil {
				t.Fatal(err)
			}
			call := c
			call.Out = m.Address
			b, err := sample(e, d, call)
			if err := errors.Join(err, m.Free(s)); err != nil {
				t.Fatal(err)
			}
			known := d.Capacity(c.Plan, 500)
			if b.Needed == 0 {
				size := b.Header[batch.WordSize]
				if capacity := b.Header[batch.WordCapacity]; capacity != int64(known) || capacity < size*5/4 || try == 0 {
					t.Errorf("%s: try %d: %d bytes, the batch says %d, the graph knows %d", mode, try, size, capacity, known)
				}
				break
			}
			if b.Needed != known || b.Needed <= c.OutBytes || try > 10 {
				t.Fatalf("%s: try %d: %d bytes were too few, the batch says %d, the graph knows %d", mode, try, c.OutBytes, b.Needed, known)
			}
			c.OutBytes = b.Needed
		}
		// A batch in the engine's memory says no capacity.
		b, err := sample(e, d, c)
		if err != nil {
			t.Fatal(err)
		}
		if b.Header[batch.WordCapacity] != 0 {
			t.Errorf("%s: header %v", mode, b.Header)
		}
		if err := b.Memory.Free(b.Stream); err != nil {
			t.Fatal(err)
		}
	}
}
