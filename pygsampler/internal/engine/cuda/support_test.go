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
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// device opens the engine on the first device. Without one, or without kernels for
// it in this build, the test skips, or fails where PYGSAMPLER_REQUIRE names cuda.
func device(t testing.TB) (*Engine, gpu.Stream) {
	t.Helper()
	e, err := Open(0)
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("PYGSAMPLER_REQUIRE"), ","), "cuda") {
			t.Fatalf("PYGSAMPLER_REQUIRE asks for cuda: %v", err)
		}
		t.Skip(err)
	}
	s, err := e.context.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Synchronize(), s.Close(), CloseAll()); err != nil {
			t.Error(err)
		}
	})
	return e, s
}

// with is a call for a batch of a request, by the persistent kernel unless it has a plan.
func with(c Call, r request.Request) Call {
	if c.Plan == nil {
		c.Plan = &Neighbors{Hops{r.Hops}}
	}
	c.Batch = r.Batch
	return c
}

// kernels are those of the graph's rows, whose thresholds a test may change.
func kernels(t testing.TB, d *Graph) *rowKernels {
	t.Helper()
	k, err := d.rowKernels()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

type alone struct{}

func (alone) Borrow(int) int { return 0 }
func (alone) Return(int)     {}

// check compares a batch of the GPU, made by several grids, with the CPU's.
func check(t *testing.T, e *Engine, s gpu.Stream, d *Graph, r *cpu.Request, grids ...int) {
	t.Helper()
	if err := compare(e, s, d, r, grids...); err != nil {
		t.Fatal(err)
	}
}

// onCPU is what the CPU engine makes of a request.
func onCPU(r *cpu.Request) (batchtest.Batch, error) {
	var stop atomic.Bool
	m, err := cpu.Sample(r, alone{}, &stop)
	if err != nil {
		return batchtest.Batch{}, err
	}
	defer m.Release()
	return batchtest.Read(m), nil
}

// read downloads a batch in device memory and frees it.
func read(b Batch, s gpu.Stream) (batchtest.Batch, error) {
	m, err := b.Download(s)
	if err != nil {
		return batchtest.Batch{}, err
	}
	defer m.Release()
	return batchtest.Read(m), b.Memory.Free(s)
}

func compare(e *Engine, s gpu.Stream, d *Graph, r *cpu.Request, grids ...int) error {
	want, err := onCPU(r)
	if err != nil {
		return err
	}
	for _, grid := range grids {
		grid = min(grid, 2*e.context.Properties().Multiprocessors)
		b, err := sample(e, d, with(Call{Exclude: excluded(r), Stream: s.Handle(), Grid: grid}, r.Request))
		if err != nil {
			return fmt.Errorf("grid %d, fanouts %v: %w", grid, r.Fanouts, err)
		}
		got, err := read(b, s)
		if err != nil {
			return err
		}
		if !got.Equal(want) {
			return fmt.Errorf("grid %d, %d seeds, fanouts %v, replace %v, new %v, disjoint %v:\n got %.300s\nwant %.300s",
				grid, r.Seeds.Len(), r.Fanouts, r.Replace, r.OnlyNew, r.Disjoint, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
	return nil
}

// excluded is the CSC positions that a request samples around.
func excluded(r *cpu.Request) (positions []int64) {
	for v := range r.Relation.NumRows() {
		for _, p := range r.Exclude.Offsets(v) {
			positions = append(positions, r.Relation.Indptr.Element(v)+p)
		}
	}
	return positions
}

func sample(e *Engine, d *Graph, c Call) (Batch, error) {
	f, err := e.Start(d, &c)
	if err != nil {
		return Batch{}, err
	}
	b, _, err := f.Wait(-1)
	return b, err
}

// upload is a graph on the device, until the end of the test.
func upload(t *testing.T, e *Engine, g *csc.Relation) *Graph {
	t.Helper()
	d, free, err := e.Upload(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := free(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// graphOf is csctest.Graph, here and on the device.
func graphOf(t *testing.T, e *Engine, rows [][]int64, numNodes int64, idBits, indptrBits int, withIDs bool) (*csc.Relation, *Graph) {
	t.Helper()
	g := csctest.Graph(rows, numNodes, idBits, indptrBits, withIDs)
	return g, upload(t, e, g)
}

// awkward runs f on each graph of csctest.Awkward, with two trailing vertices, without and
// with edge ids, for seeds of all kinds and for fanouts of all kinds and the given ones.
func awkward(t *testing.T, e *Engine, f func(t *testing.T, d *Graph, r cpu.Request), more ...[]int64) {
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
