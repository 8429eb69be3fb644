package pygsampler

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// toy is a family that is nowhere but here: its batches are their seeds, one word each
// behind the words of a batch without blocks. It waits where it is told to.
type toy struct{ plan.Plan }

func (toy) Check(plan.Arrays) error     { return nil }
func (toy) Expected(w *plan.Work) int64 { return w.Batch.Seeds.Len() }
func (toy) CUDA() cuda.Plan             { return onToyDevice{new(cuda.Hops)} }
func (toy) CPU(w *plan.Work) (memory.Memory, error) {
	for w.Batch.Number == 1 && !w.Stop.Load() {
		time.Sleep(time.Millisecond)
	}
	if w.Stop.Load() {
		return memory.Memory{}, request.ErrCancelled
	}
	n := w.Batch.Seeds.Len()
	b, err := batch.NewBuilder(batch.Homogeneous(0), 8*n)
	if err != nil {
		return memory.Memory{}, err
	}
	at, err := b.Alloc(8 * n)
	copy(memory.ViewAt[int64](b.Memory, at, n), w.Batch.Seeds.I64)
	b.Set(batch.WordNodes, at)
	b.Set(batch.WordNumNodes, n)
	return b.Finish(0), err
}

type onToyDevice struct{ *cuda.Hops }

func (onToyDevice) Fit(*cuda.Flight) error { return nil }
func (onToyDevice) Used(f *cuda.Flight) cuda.Needs {
	return cuda.Needs{Out: uint64(f.Header()[batch.WordSize])}
}
func (onToyDevice) Launch(f *cuda.Flight) error {
	type args struct {
		Out, Seeds, Report gpu.Address
		N, At              int64
	}
	k, err := cuda.CompiledOf[args](f.Engine(), compiler.Program{Name: "toy", Source: `#include "common/grid.cuh"
struct Args { long long *out, *seeds; volatile long long* report; long long n, at; };
extern "C" __global__ void __launch_bounds__(32) toy(const __grid_constant__ Args a) {
  for (long long i = threadIdx.x; i < a.n; i += 32) a.out[a.at / 8 + i] = a.seeds[i];
  __syncthreads();
  if (threadIdx.x) return;
  for (int i = 0; i < FIRST_BLOCK; i++) a.report[2 + i] = 0;
  a.report[2 + WORD_NUM_TYPES] = 1; a.report[2 + WORD_NODES] = a.at; a.report[2 + WORD_NUM_NODES] = a.n; a.report[2 + WORD_SIZE] = a.at + 8 * a.n;
  __threadfence_system();
  a.report[0] = STATUS_OK;
}`}, "toy")
	place, c := batch.Homogeneous(0).Place(), f.Call()
	out, _ := f.Region()
	a := args{out, c.Seeds, f.Report(), c.NumSeeds, place.Next(8 * c.NumSeeds)}
	if err != nil {
		return err
	}
	return k.Launch(f.Stream(), gpu.Shape{Grid: [3]uint32{1}, Block: [3]uint32{32}}, &a)
}

// nodesOf is what a batch of toy holds; it is released.
func nodesOf(at int64) string {
	m := memory.FromAddress(at)
	defer m.Release()
	words := memory.ViewAt[int64](m, 0, batch.FirstBlock)
	return fmt.Sprint(memory.ViewAt[int64](m, words[batch.WordNodes], words[batch.WordNumNodes]))
}

// A family that no other code knows goes through jobs and executor, is cancelled, and
// goes through a device.
func TestAFamilyOfOnesOwn(t *testing.T) {
	quiet(t)
	families["toy"] = func(*plan.Document) plan.Plan { return toy{} }
	defer delete(families, "toy")
	p, err := NewSampler(`{"family": "toy"}`, 3)
	if err != nil {
		t.Fatal(err)
	}
	g, seeds := random(10).open(t), []int64{4, 2, 4}
	defer runtime.KeepAlive(seeds)
	c := Request{Seeds: address(seeds), NumSeeds: 3, SeedBits: 64}
	for _, how := range []func(*Relation, *Sampler, Request) (*HostJob, error){submit, sample} {
		j, err := how(g, p, c)
		if err != nil {
			t.Fatal(err)
		}
		if at, _, err := j.Wait(-1); err != nil || nodesOf(at) != "[4 2 4]" {
			t.Error(err)
		}
	}
	c.Batch = 1
	j, err := submit(g, p, c)
	if err != nil {
		t.Fatal(err)
	}
	deadline.Within(t, time.Minute, j.Cancel)
	t.Run("device", func(t *testing.T) {
		onGPU(t)
		if r := compiler.Default.Report(); r.Error != "" {
			t.Skip(r.Error)
		}
		t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
		d := pair(t, 10, false, false).device
		for range 2 {
			j, err := deviceSubmit(d, p, c)
			if err != nil {
				t.Fatal(err)
			}
			if at, _, err := j.Wait(-1); err != nil || nodesOf(downloaded(t, at)) != "[4 2 4]" {
				t.Error(err)
			}
		}
	})
}
