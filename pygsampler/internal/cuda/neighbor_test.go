package cuda

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
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

// Every small degree with every small fanout, with and without replacement.
func TestEveryDegreeAndFanout(t *testing.T) {
	e, s := device(t)
	rows, seeds := everyDegree()
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, rows, 71, bits, 96-bits, bits == 32)
		for fanout := int64(1); fanout <= 40; fanout++ {
			for _, replace := range []bool{false, true} {
				check(t, e, s, d, &cpu.Request{Graph: g, Fanouts: []int64{fanout}, Replace: replace, Seed: uint64(fanout), Seeds: array(seeds, bits)}, 0)
			}
		}
	}
}

func TestRandomGraphs(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		for _, withIDs := range []bool{false, true} {
			g, d := graphOf(t, e, randomRows(3000, 1), 3060, bits, 64, withIDs)
			for _, size := range []int{0, 1, 31, 32, 33, 700, 10240} {
				seeds := make([]int64, size)
				for i := range seeds {
					seeds[i] = int64(i * i % 3060) // some are repeated
				}
				if size < 700 {
					for i := range seeds {
						seeds[i] = int64(i * 7)
					}
				}
				for _, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {0, 3}, {10, 0}, {5}, {64, 33}, {2, 2, 2, 2, 2}, {-1}, {40, -1}} {
					for _, replace := range []bool{false, true} {
						r := &cpu.Request{Graph: g, Fanouts: fanouts, Replace: replace, Seed: 1 << 63, Epoch: 7, Batch: 1<<39 + 5, Seeds: array(seeds, bits)}
						check(t, e, s, d, r, 0, 1, 7, 264)
					}
				}
			}
		}
	}
}

func TestAwkwardGraphs(t *testing.T) {
	e, s := device(t)
	hub := make([]int64, 50000)
	for i := range hub {
		hub[i] = int64(i % 5001)
	}
	star := append([][]int64{hub}, make([][]int64, 5000)...)
	for name, rows := range map[string][][]int64{
		"star": star, "isolated": make([][]int64, 5), "self loops": {{0, 0}, {1}, {2, 2, 2}},
		"parallel": {{1, 1, 1, 1, 1, 1}, {0, 0}}, "path": {{1}, {2}, {3}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			n := int64(len(rows))
			for _, withIDs := range []bool{false, true} {
				g, d := graphOf(t, e, rows, n+2, 64, 32, withIDs) // two trailing vertices
				for _, seeds := range [][]int64{{}, {n + 1}, {0, n, 0, 0}} {
					for _, fanouts := range [][]int64{{2, 3}, {-1, -1}, {1500, 1}, {0}} {
						check(t, e, s, d, &cpu.Request{Graph: g, Fanouts: fanouts, Seed: 3, Seeds: array(seeds, 64)}, 0, 3)
					}
				}
			}
		})
	}
}

// A batch that outgrows every buffer several times, and one of enough rows to be
// dealt anew.
func TestLargeBatches(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, randomRows(600000, 5), 600000, 32, 64, false)
	seeds := make([]int64, 200000)
	for i := range seeds {
		seeds[i] = int64(i * 3)
	}
	for _, fanouts := range [][]int64{{10, 10}, {3, 2, 4}, {-1}} {
		check(t, e, s, d, &cpu.Request{Graph: g, Fanouts: fanouts, Seed: 8, Seeds: array(seeds, 32)}, 0, 132)
	}
}

// Hops in bins: all of them, and those that come after hops on the map. Where a
// vertex comes too often for a bin, the batch is made again without.
func TestBins(t *testing.T) {
	e, s := device(t)
	hub := make([]int64, 9000)
	star := append([][]int64{hub, hub}, make([][]int64, 50)...)
	for _, edges := range []uint64{0, 500} {
		e.binEdges, e.binBytes = edges, 0
		for _, bits := range []int{32, 64} {
			g, d := graphOf(t, e, randomRows(3000, 1), 3060, bits, 64, bits == 32)
			for _, seeds := range [][]int64{{}, {5}, {1, 2, 3, 500, 9, 9}, {7, 70, 700, 1700, 2700, 3001}} {
				for _, fanouts := range [][]int64{{5}, {9, 8, 7}, {4, 4, 4, 4}} {
					check(t, e, s, d, &cpu.Request{Graph: g, Fanouts: fanouts, Seed: 4, Seeds: array(seeds, bits)}, 0, 1, 2)
				}
			}
			g, d = graphOf(t, e, star, 52, bits, 64, false)
			check(t, e, s, d, &cpu.Request{Graph: g, Fanouts: []int64{32, 32}, Replace: true, Seeds: array([]int64{0, 1}, bits)}, 0, 1)
		}
	}
}

// Hops that look for vertices that have numbers, small ones and large ones.
func TestKnownVertices(t *testing.T) {
	e, s := device(t)
	e.knownEdges = 0
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, randomRows(400, 1), 410, bits, 64, bits == 32)
		seeds := make([]int64, 300)
		for i := range seeds {
			seeds[i] = int64(i * 7 % 410)
		}
		for _, fanouts := range [][]int64{{5}, {9, 8, 7}, {4, 4, 4, 4}, {20, 20, 20}, {40, -1, 3}} {
			check(t, e, s, d, &cpu.Request{Graph: g, Fanouts: fanouts, Seed: 4, Seeds: array(seeds, bits)}, 0, 1, 2)
		}
	}
}

func TestManyRepeats(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, randomRows(3000, 1), 3000, 32, 32, false)
	grids := make([]int, 1000)
	check(t, e, s, d, &cpu.Request{Graph: g, Fanouts: []int64{5, 5}, Seed: 8, Seeds: array([]int64{1, 2, 3, 500, 9, 9}, 32)}, grids...)
}

// Tags that run out begin anew, with a cleared map.
func TestTagsRunOut(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, randomRows(3000, 1), 3000, 32, 32, false)
	r := &cpu.Request{Graph: g, Fanouts: []int64{5, 5}, Seed: 8, Seeds: array([]int64{1, 2, 3}, 32)}
	check(t, e, s, d, r, 0)
	e.idle[0].narrow.next = 2
	check(t, e, s, d, r, 0, 0, 0, 0, 0)
	if e.idle[0].narrow.next != 1<<8-1-3 {
		t.Errorf("%d tags are left", e.idle[0].narrow.next)
	}
}

// Ranks that outgrow their bits take some of the tags', and in the end the map of
// 64-bit words.
func TestRanksOutgrowTheirBits(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, randomRows(3000, 1), 3000, 32, 32, false)
	r := &cpu.Request{Graph: g, Fanouts: []int64{5, 5}, Seed: 8, Seeds: array([]int64{1, 2, 3}, 32)}
	check(t, e, s, d, r, 0)
	w := e.idle[0]
	w.narrow.shift, w.narrow.next = 4, 0 // as if 2^4 ranks were the fewest
	for shift := 4; shift <= leastShift; shift++ {
		w.narrow.shift, w.narrow.next = shift, 0
		d.needs = make(map[shape]needs)
		check(t, e, s, d, r, 0, 0)
	}
	c := Call{Request: *r}
	for ranks, want := range map[int64]int{0: plain, 1 << 30: withAll, 1<<30 - 1: plain} {
		if kind := e.kind(d, &c, needs{ranks: ranks}); kind != want {
			t.Errorf("%d ranks: kernel %d, want %d", ranks, kind, want)
		}
	}
}

func TestSeedOutOfRange(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, [][]int64{{1}, {0}}, 2, 64, 64, false)
	for _, bad := range []int64{-1, 2, 1 << 40} {
		r := cpu.Request{Graph: g, Fanouts: []int64{1}, Seeds: array([]int64{0, bad, bad}, 64)}
		_, err := sample(e, d, &Call{Request: r, Stream: s.Handle()})
		want := fmt.Sprintf("seeds[1]: expected an id in [0, 2), got %d", bad)
		if !errors.Is(err, cpu.ErrIndex) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		check(t, e, s, d, &cpu.Request{Graph: g, Fanouts: []int64{1}, Seeds: array([]int64{0, 1}, 64)}, 0)
	}
}

// Batches in flight on streams of their own do not disturb each other, and the
// pool holds no more after them than before.
func TestTogether(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, randomRows(3000, 1), 3000, 32, 64, false)
	var wg sync.WaitGroup
	for worker := range 8 {
		stream, err := e.context.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		wg.Go(func() {
			for i := range 20 {
				r := &cpu.Request{Graph: g, Fanouts: []int64{4, 6}, Seed: uint64(worker), Batch: uint64(i), Seeds: array([]int64{1, 2, 3, int64(40 * worker)}, 32)}
				if err := compare(e, stream, d, r, 16); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	used := e.pool.Used()
	for range 50 {
		check(t, e, s, d, &cpu.Request{Graph: g, Fanouts: []int64{4, 6}, Seeds: array([]int64{1, 2}, 32)}, 0)
	}
	if after := e.pool.Used(); after != used {
		t.Errorf("the pool held %d bytes, then %d", used, after)
	}
}
