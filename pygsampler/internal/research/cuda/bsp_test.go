package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	researchcpu "github.com/pygsampler/pygsampler/pygsampler/internal/research/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// modeCompare compares batches of a mode, one for each grid, with the CPU's, and
// their layout with that of the persistent kernel.
func modeCompare(e *cuda.Engine, s gpu.Stream, d *cuda.Graph, r cpu.Request, c cuda.Call, mode string, grids ...int) error {
	if ofReservoirs(mode) {
		r.Draw, r.Replace = researchcpu.Reservoirs, false
	}
	want, err := onCPU(&r)
	if err != nil {
		return err
	}
	c.Stream = s.Handle()
	p, err := sample(e, d, with(c, r.Request, "auto"))
	if err != nil {
		return err
	}
	if err := p.Memory.Free(s); err != nil {
		return err
	}
	c = with(c, r.Request, mode)
	for _, c.Grid = range grids {
		where := fmt.Sprintf("%s, grid %d, %d seeds, fanouts %v, replace %v, %d excluded",
			mode, c.Grid, r.Seeds.Len(), r.Fanouts, r.Replace, len(c.Exclude))
		b, err := sample(e, d, c)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		got, err := read(b, s)
		if err != nil {
			return err
		}
		if !got.Equal(want) {
			return fmt.Errorf("%s:\n got %.300s\nwant %.300s", where, fmt.Sprint(got), fmt.Sprint(want))
		}
		if r.Draw != nil {
			continue // other edges than the persistent kernel's, and so another size
		}
		if got, want := b.Header, p.Header; !slices.Equal(got, want) {
			return fmt.Errorf("%s: header\n got %v\nwant %v", where, got, want)
		}
	}
	return nil
}

func modeCheck(t *testing.T, e *cuda.Engine, s gpu.Stream, d *cuda.Graph, r cpu.Request, c cuda.Call, mode string, grids ...int) {
	t.Helper()
	if err := modeCompare(e, s, d, r, c, mode, grids...); err != nil {
		t.Fatal(err)
	}
}

// testMode is what every way to launch must hold to.
func testMode(t *testing.T, mode string, grids ...int) {
	t.Run("every degree and fanout", func(t *testing.T) {
		e, s := device(t)
		rows, seeds := csctest.EveryDegree()
		for _, bits := range []int{32, 64} {
			g, d := graphOf(t, e, rows, 71, bits, 96-bits, bits == 32)
			for fanout := int64(1); fanout <= 40; fanout++ {
				for _, replace := range []bool{false, true} {
					r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{fanout}, Replace: replace}, Batch: request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(seeds, bits)}}}
					modeCheck(t, e, s, d, r, cuda.Call{}, mode, 0)
				}
			}
		}
	})
	t.Run("random", func(t *testing.T) {
		e, s := device(t)
		for _, bits := range []int{32, 64} {
			for _, withIDs := range []bool{false, true} {
				g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3060, bits, 64, withIDs)
				for _, size := range []int{0, 1, 32, 33, 700, 10240} {
					for k, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {0, 3}, {10, 0}, {64, 33}, {2, 2, 2, 2, 2}, {-1}, {40, -1}} {
						r := cpu.Request{
							Relation: g,
							Request:  request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: (k+size)%2 == 1}, Batch: request.Batch{Seed: 1 << 63, Epoch: 7, Number: 1<<39 + 5, Seeds: csctest.Array(csctest.Mixed(size), bits)}},
						}
						modeCheck(t, e, s, d, r, cuda.Call{}, mode, grids...)
					}
				}
			}
		}
	})
	t.Run("awkward", func(t *testing.T) {
		e, s := device(t)
		awkward(t, e, func(t *testing.T, d *cuda.Graph, r cpu.Request) {
			if withIDs := r.Relation.EdgeIDs.Bits != 0; withIDs == (r.Relation.NumRows()%2 == 0) { // one of the two will do
				modeCheck(t, e, s, d, r, cuda.Call{}, mode, grids...)
			}
		})
	})
	// A batch that outgrows every buffer several times.
	t.Run("large", func(t *testing.T) {
		e, s := device(t)
		g, d := graphOf(t, e, csctest.RandomRows(200000, 5), 200000, 32, 64, false)
		for _, fanouts := range [][]int64{{10, 10}, {3, 40}, {-1}} {
			r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array(csctest.Steps(60000, 3), 32)}}}
			modeCheck(t, e, s, d, r, cuda.Call{}, mode, 0)
		}
	})
	t.Run("exclusions", func(t *testing.T) {
		e, s := device(t)
		g, d := graphOf(t, e, csctest.RandomRows(500, 3), 500, 32, 64, false)
		for _, every := range []int64{1, 2, 3, 50} {
			var excluded []int64
			for p := every / 2; p < g.NumEdges(); p += every {
				excluded = append(excluded, p)
			}
			x, err := g.Exclude(excluded)
			if err != nil {
				t.Fatal(err)
			}
			for _, fanouts := range [][]int64{{3, 4}, {-1}, {40}} {
				r := cpu.Request{Relation: g, Exclude: x, Request: request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: every == 3}, Batch: request.Batch{Seed: 5, Seeds: csctest.Array(csctest.Steps(300, 1), 32)}}}
				modeCheck(t, e, s, d, r, cuda.Call{Exclude: excluded}, mode, grids...)
			}
		}
	})
	t.Run("seed out of range", func(t *testing.T) {
		e, s := device(t)
		g, d := graphOf(t, e, [][]int64{{1}, {0}}, 2, 64, 64, false)
		for _, bad := range []int64{-1, 2, 1 << 40} {
			r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{1}}, Batch: request.Batch{Seeds: csctest.Array([]int64{0, bad, bad}, 64)}}}
			_, err := sample(e, d, with(cuda.Call{Stream: s.Handle()}, r.Request, mode))
			want := fmt.Sprintf("seeds[1]: expected an id in [0, 2), got %d", bad)
			if !errors.Is(err, request.ErrIndex) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			r.Seeds = csctest.Array([]int64{0, 1, 0}, 64)
			modeCheck(t, e, s, d, r, cuda.Call{}, mode, 0)
		}
	})
	// Output of the caller's: refused while it is too small, then used.
	t.Run("given output", func(t *testing.T) {
		e, s := device(t)
		g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
		r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4, 6}}, Batch: request.Batch{Seed: 2, Seeds: csctest.Array(csctest.Steps(500, 1), 32)}}}
		c := with(cuda.Call{Stream: s.Handle()}, r.Request, mode)
		var want []int64
		for bytes, tries := uint64(64), 0; ; tries++ {
			out, err := e.MemoryPool().Alloc(s, bytes)
			if err != nil {
				t.Fatal(err)
			}
			call := c
			call.Out, call.OutBytes = out.Address, bytes
			b, err := sample(e, d, call)
			if err == nil && b.Needed == 0 {
				want = b.Header
				// Said to callers with memory of their own alone.
				want[batch.WordCapacity] = 0
			}
			if err := errors.Join(err, out.Free(s)); err != nil {
				t.Fatal(err)
			}
			if b.Needed == 0 {
				if tries == 0 {
					t.Error("64 bytes were enough")
				}
				break
			}
			if b.Needed <= bytes || tries > 30 {
				t.Fatalf("%d bytes are too few, %d would do", bytes, b.Needed)
			}
			bytes = b.Needed
		}
		b, err := sample(e, d, c)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.Header, want) || want[batch.WordNumOutput] != 500 {
			t.Errorf("header %v, want %v", want, b.Header)
		}
		if err := b.Memory.Free(s); err != nil {
			t.Fatal(err)
		}
	})
	// Wherever a batch with a wrong seed finds the caller's output too small, the next one knows nothing of it.
	t.Run("given output, wrong seed", func(t *testing.T) {
		e, s := device(t)
		g, d := graphOf(t, e, csctest.RandomRows(300, 1), 300, 64, 64, false)
		good := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{2, 2}}, Batch: request.Batch{Seeds: csctest.Array([]int64{0, 1, 2}, 64)}}}
		bad := good
		bad.Seeds = csctest.Array([]int64{0, 300, 0}, 64)
		for bytes := uint64(64); ; bytes += 64 {
			out, err := e.MemoryPool().Alloc(s, bytes)
			if err != nil {
				t.Fatal(err)
			}
			b, err := sample(e, d, with(cuda.Call{Stream: s.Handle(), Out: out.Address, OutBytes: bytes}, bad.Request, mode))
			if freed := out.Free(s); freed != nil {
				t.Fatal(freed)
			}
			modeCheck(t, e, s, d, good, cuda.Call{}, mode, 0)
			if errors.Is(err, request.ErrIndex) {
				return
			}
			if err != nil || b.Needed <= bytes {
				t.Fatalf("%d bytes are too few, %d would do: %v", bytes, b.Needed, err)
			}
		}
	})
	// Every call of the driver fails in turn: an error each time, nothing is kept, and the
	// next batch is right.
	t.Run("faults", func(t *testing.T) {
		e, s := device(t)
		defer gpu.EndFaults()
		g, d := graphOf(t, e, csctest.RandomRows(300, 1), 300, 32, 64, false)
		r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{40, 6}}, Batch: request.Batch{Seed: 2, Seeds: csctest.Array([]int64{5, 6, 5, 7}, 32)}}}
		modeCheck(t, e, s, d, r, cuda.Call{}, mode, grids...)
		used := e.MemoryPool().Used()
		for n := int64(1); ; n++ {
			c := with(cuda.Call{Stream: s.Handle(), Own: n%2 == 0}, r.Request, mode)
			gpu.Inject(gpu.Fault{First: n, Code: 999})
			b, err := sample(e, d, c)
			name := gpu.Faulted()
			gpu.EndFaults()
			if err == nil {
				if name != "" && name != "cuCtxPopCurrent_v2" {
					t.Errorf("call %d, %s: expected an error, got none", n, name)
				}
				if err := b.Memory.Free(s); err != nil {
					t.Fatal(err)
				}
			}
			modeCheck(t, e, s, d, r, cuda.Call{}, mode, grids[len(grids)-1])
			if after := e.MemoryPool().Used(); after > used {
				t.Fatalf("call %d, %s: the pool held %d bytes, then %d", n, name, used, after)
			}
			if name == "" {
				if n < 10 {
					t.Errorf("%d calls of the driver: expected more", n-1)
				}
				return
			}
		}
	})
	// Modes share workspaces, whose tags run out and begin anew.
	t.Run("tags run out", func(t *testing.T) {
		e, s := device(t)
		g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 32, false)
		r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seed: 8, Seeds: csctest.Array([]int64{1, 2, 3}, 32)}}}
		modeCheck(t, e, s, d, r, cuda.Call{}, mode, 0)
		idle(t, e, d).LeaveTags(3)
		for range 6 {
			modeCheck(t, e, s, d, r, cuda.Call{}, mode, 0, 0)
		}
	})
	t.Run("together", func(t *testing.T) {
		e, s := device(t)
		g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
		var wg sync.WaitGroup
		for worker := range 4 {
			stream, err := e.Context().NewStream()
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			wg.Go(func() {
				for i := range 10 {
					seeds := csctest.Array([]int64{1, 2, 3, int64(40 * worker)}, 32)
					r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4, 6}}, Batch: request.Batch{Seed: uint64(worker), Number: uint64(i), Seeds: seeds}}}
					if err := modeCompare(e, stream, d, r, cuda.Call{Own: i%2 == 0}, mode, grids[len(grids)-1]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		used := e.MemoryPool().Used()
		r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4, 6}}, Batch: request.Batch{Seeds: csctest.Array([]int64{1, 2}, 32)}}}
		modeCheck(t, e, s, d, r, cuda.Call{}, mode, make([]int, 30)...)
		if after := e.MemoryPool().Used(); after != used {
			t.Errorf("the pool held %d bytes, then %d", used, after)
		}
	})
}

// Grids mean nothing to mode "bsp".
func TestBSP(t *testing.T) { testMode(t, "bsp", 0) }
