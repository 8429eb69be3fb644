package compiler

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/gpu/nvrtc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// generated is a program as a generator would write it: its own loop around ours. Each
// block gives the draws of its threads in reversed order, by way of shared memory.
const generated = `#include "common/philox.cuh"
struct Args { u64* out; u64 state; u32 n; };
extern "C" __global__ void __launch_bounds__(64) draws(const __grid_constant__ Args a) {
  __shared__ u64 all[64];
  u32 i = blockIdx.x * 64 + threadIdx.x;
  all[threadIdx.x] = draw_below(a.state, FIRST + i, 1000) + SHIFT;
  __syncthreads();
  if (i < a.n) a.out[i] = all[63 - threadIdx.x];
}
`

type drawArgs struct {
	out   gpu.Address
	state uint64
	n     uint32
	_     uint32
}

// need opens the first device, and says what Compile does without NVRTC.
func need(t *testing.T) (*Compiler, *gpu.Context) {
	t.Helper()
	skip := t.Skip
	if strings.Contains(os.Getenv("PYGSAMPLER_REQUIRE"), "cuda") {
		skip = t.Fatal
	}
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	c := new(Compiler)
	context, err := gpu.Retain(0)
	if err != nil {
		skip("needs a CUDA device: ", err)
	}
	t.Cleanup(func() {
		if err := context.Close(); err != nil {
			t.Error(err)
		}
	})
	if r := c.Report(); r.Error != "" {
		t.Skip(r.Error)
	}
	return c, context
}

// TestGenerated compiles two programs whose kernels have the same name, and runs both:
// each gives Go's draws, also when the other is gone.
func TestGenerated(t *testing.T) {
	c, context := need(t)
	stream, err := context.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	pool, err := context.NewPool(0)
	if err != nil {
		t.Fatal(err)
	}
	const n, first = 150, 5
	memory, err := pool.Alloc(stream, 8*n)
	if err != nil {
		t.Fatal(err)
	}
	p := context.Properties()
	modules := make([]*gpu.Module, 2)
	run := func(shift int) {
		t.Helper()
		kernel, err := gpu.KernelOf[drawArgs](modules[shift], "draws")
		if err != nil {
			t.Fatal(err)
		}
		args, got := drawArgs{out: memory.Address, state: 77, n: n}, make([]uint64, n)
		err = kernel.Launch(stream, gpu.Shape{Grid: [3]uint32{3}, Block: [3]uint32{64}}, &args)
		err = errors.Join(err, stream.Download(unsafe.Pointer(&got[0]), memory.Address, 8*n))
		if err := errors.Join(err, stream.Synchronize()); err != nil {
			t.Fatal(err)
		}
		for i, x := range got {
			from := i/64*64 + 63 - i%64
			if want := rng.Below(rng.Draw(77, first+from), 1000) + uint64(shift); x != want {
				t.Fatalf("program %d, draw %d: expected %d, got %d", shift, i, want, x)
			}
		}
	}
	for shift := range modules {
		options := []string{fmt.Sprintf("-DSHIFT=%d", shift), fmt.Sprintf("-DFIRST=%d", first)}
		image, err := c.Compile(Program{Name: "generated", Source: generated, Options: options}, p.Major, p.Minor)
		if err != nil {
			t.Fatal(err)
		}
		if modules[shift], err = context.Load(image.Code); err != nil {
			t.Fatal(err)
		}
	}
	run(0)
	run(1)
	if err := modules[0].Close(); err != nil {
		t.Fatal(err)
	}
	run(1)
	err = errors.Join(modules[1].Close(), memory.Free(stream), stream.Synchronize(), pool.Close(), stream.Close())
	if err != nil {
		t.Error(err)
	}
}

// TestGeneratedWrong has a program that is none: the error has the compiler's words and
// the place.
func TestGeneratedWrong(t *testing.T) {
	c, context := need(t)
	p := context.Properties()
	_, err := c.Compile(Program{Name: "wrong", Source: "#include \"common/philox.cuh\"\n__device__ int f() { return nothing; }\n"}, p.Major, p.Minor)
	var e *nvrtc.Error
	if !errors.As(err, &e) || e.Name != "NVRTC_ERROR_COMPILATION" || !strings.Contains(e.Log, "nothing") ||
		!strings.HasPrefix(err.Error(), "pygsampler: kernel wrong: nvrtc: wrong.cu for sm_") {
		t.Fatal(err)
	}
	if !strings.Contains(e.Log, "wrong.cu(2)") && !strings.Contains(e.Log, "wrong.cu:2:") {
		t.Errorf("expected the line, got %s", e.Log)
	}
}
