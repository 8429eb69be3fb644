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
	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
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

type alone struct{}

func (alone) Borrow(int) int { return 0 }
func (alone) Return(int)     {}

// arrays is everything that a batch holds, in plain slices, with the sizes.
func arrays(m memory.Memory) (out [][]int64) {
	words := memory.At[int64](m, 0, batch.HeaderWords)
	hops := words[batch.WordNumHops]
	words = memory.At[int64](m, 0, batch.HeaderWords+batch.BlockWords*hops)
	add := func(offset, n, bits int64) {
		a := make([]int64, n)
		for i := range a {
			if bits == 32 {
				a[i] = int64(memory.At[int32](m, offset, n)[i])
			} else {
				a[i] = memory.At[int64](m, offset, n)[i]
			}
		}
		out = append(out, a)
	}
	bits, idBits := words[batch.WordIDBits], words[batch.WordEdgeIDBits]
	out = append(out, []int64{bits, idBits, hops})
	add(words[batch.WordOffNodes], words[batch.WordNumNodes], bits)
	add(words[batch.WordOffOutputNodes], words[batch.WordNumOutput], bits)
	add(words[batch.WordOffOutputIndex], words[batch.WordNumOutput], bits)
	if offset := words[batch.WordOffTrees]; offset != 0 {
		add(offset, words[batch.WordNumNodes], bits)
	}
	for i := range hops {
		w := words[batch.HeaderWords+batch.BlockWords*i:]
		out = append(out, append(slices.Clone(w[:3]), w[batch.WordFirstDst]))
		add(w[batch.WordOffIndptr], w[batch.WordNumDst]+1, bits)
		add(w[batch.WordOffIndices], w[batch.WordNumEdges], bits)
		add(w[batch.WordOffEdgeIDs], w[batch.WordNumEdges], idBits)
	}
	return out
}

// check compares a batch of the GPU, made by several grids, with the CPU's.
func check(t *testing.T, e *Engine, s gpu.Stream, d *Graph, r *cpu.Request, grids ...int) {
	t.Helper()
	if err := compare(e, s, d, r, grids...); err != nil {
		t.Fatal(err)
	}
}

// onCPU is what the CPU engine makes of a request.
func onCPU(r *cpu.Request) ([][]int64, error) {
	var stop atomic.Bool
	m, err := cpu.Sample(r, alone{}, &stop)
	if err != nil {
		return nil, err
	}
	defer m.Release()
	return arrays(m), nil
}

// read downloads a batch in device memory and frees it.
func read(b Batch, s gpu.Stream) ([][]int64, error) {
	m, err := b.Download(s)
	if err != nil {
		return nil, err
	}
	defer m.Release()
	return arrays(m), b.Memory.Free(s)
}

func compare(e *Engine, s gpu.Stream, d *Graph, r *cpu.Request, grids ...int) error {
	want, err := onCPU(r)
	if err != nil {
		return err
	}
	for _, grid := range grids {
		grid = min(grid, 2*e.context.Properties().Multiprocessors)
		b, err := sample(e, d, &Call{Request: *r, Stream: s.Handle(), Grid: grid})
		if err != nil {
			return fmt.Errorf("grid %d, fanouts %v: %w", grid, r.Fanouts, err)
		}
		got, err := read(b, s)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			return fmt.Errorf("grid %d, %d seeds, fanouts %v, replace %v, new %v, disjoint %v:\n got %.300s\nwant %.300s",
				grid, r.Seeds.Len(), r.Fanouts, r.Replace, r.OnlyNew, r.Disjoint, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
	return nil
}

func sample(e *Engine, d *Graph, c *Call) (Batch, error) {
	f, err := e.Start(d, c)
	if err != nil {
		return Batch{}, err
	}
	b, _, err := f.Wait(-1)
	return b, err
}

func array(a []int64, bits int) csc.Array {
	if bits == 64 {
		return csc.Array{Bits: 64, I64: append([]int64{}, a...)}
	}
	narrow := make([]int32, len(a))
	for i, v := range a {
		narrow[i] = int32(v)
	}
	return csc.Array{Bits: 32, I32: narrow}
}

// graphOf builds a graph from lists of in-neighbours; withIDs numbers the edges
// backwards. It is uploaded, and freed at the end of the test.
func graphOf(t *testing.T, e *Engine, rows [][]int64, numNodes int64, idBits, indptrBits int, withIDs bool) (*csc.Graph, *Graph) {
	t.Helper()
	indptr, indices := []int64{0}, []int64(nil)
	for _, row := range rows {
		indices = append(indices, row...)
		indptr = append(indptr, int64(len(indices)))
	}
	g := &csc.Graph{Indptr: array(indptr, indptrBits), Indices: array(indices, idBits), NumNodes: numNodes}
	if withIDs {
		ids := make([]int64, len(indices))
		for i := range ids {
			ids[i] = int64(len(ids) - 1 - i)
		}
		g.EdgeIDs = array(ids, idBits)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	d, free, err := e.Upload(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := free(); err != nil {
			t.Error(err)
		}
	})
	return g, d
}

// randomRows is n rows of skewed degrees, some empty; edges may be parallel or self
// loops.
func randomRows(n int, seed uint64) [][]int64 {
	rows := make([][]int64, n)
	for v := range rows {
		state := rng.NewStream(seed, 0, 0, 0, rng.Shuffling).State(uint64(v))
		degree := rng.Below(rng.Draw(state, 0), 8)
		if rng.Draw(state, 1)%16 == 0 {
			degree *= 40
		}
		for j := range degree {
			rows[v] = append(rows[v], int64(rng.Below(rng.Draw(state, int(j)+2), uint64(n))))
		}
	}
	return rows
}

// everyDegree is rows of 0 to 70 in-neighbours, and all their vertices as seeds.
func everyDegree() (rows [][]int64, seeds []int64) {
	seeds = make([]int64, 71)
	for degree := range 71 {
		row := make([]int64, degree)
		for j := range row {
			row[j] = int64((degree*7 + j*3) % 71)
		}
		rows = append(rows, row)
		seeds[degree] = int64(70 - degree)
	}
	return rows, seeds
}
