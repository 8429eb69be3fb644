package cuda

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/real"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// withFactors compares a batch with factors of the GPU with the CPU's.
func withFactors(e *Engine, s gpu.Stream, d *Graph, r *cpu.Request, grids ...int) error {
	r.EdgeWeights = true
	want, err := onCPU(r)
	if err != nil {
		return err
	}
	for _, grid := range grids {
		plan := &Factors{Neighbors{Hops{r.Hops}}}
		b, err := sample(e, d, with(Call{Plan: plan, Exclude: excluded(r), Stream: s.Handle(), Grid: grid}, r.Request))
		if err != nil {
			return err
		}
		got, err := read(b, s)
		if err != nil {
			return err
		}
		for i := range got.Blocks {
			if len(got.Blocks[i].EdgeWeights) != len(got.Blocks[i].EdgeIDs) {
				return fmt.Errorf("block %d: %d factors of %d edges", i, len(got.Blocks[i].EdgeWeights), len(got.Blocks[i].EdgeIDs))
			}
			for j, x := range got.Blocks[i].EdgeWeights {
				if y := want.Blocks[i].EdgeWeights[j]; x != y {
					return fmt.Errorf("grid %d, block %d: factor %d is %g, want %g", grid, i, j, x, y)
				}
			}
		}
		if !got.Equal(want) {
			return fmt.Errorf("grid %d: the batches differ", grid)
		}
	}
	return nil
}

// Every small degree with some fanouts, whatever the weights, also where positions have
// memory of their own.
func TestFactorsOfEveryDegree(t *testing.T) {
	e, s := device(t)
	rows, seeds := csctest.EveryDegree()
	k, err := factorsOf(e)
	if err != nil {
		t.Fatal(err)
	}
	for name, weight := range csctest.Weightings {
		g, d := weighted(t, e, rows, 71, 32, name == "ramp", weight)
		for _, fanout := range []int64{1, 2, 7, 10, 31, 32, 33, 64} {
			for _, replace := range []bool{false, true} {
				r := request.Request{Hops: request.Hops{Fanouts: []int64{fanout}, Replace: replace}, Batch: request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(seeds, 32)}}
				for _, k.narrow = range []int64{0, narrowChoices} {
					if err := withFactors(e, s, d, &cpu.Request{Relation: g, Request: r}, 0); err != nil {
						t.Fatalf("%s, fanout %d, replace %v, narrow below %d: %v", name, fanout, replace, k.narrow, err)
					}
				}
			}
		}
	}
}

// Every option, by weight and uniformly, in ids of both widths.
func TestFactorsWithEveryOption(t *testing.T) {
	e, s := device(t)
	for _, name := range []string{"heavy", ""} {
		for _, bits := range []int{32, 64} {
			g := csctest.Graph(csctest.RandomRows(3000, 1), 3060, bits, 96-bits, bits == 32)
			if name != "" {
				weigh(g, csctest.Weightings[name])
			}
			d := upload(t, e, g)
			x := everyThird(t, g)
			for _, fanouts := range [][]int64{{3, 4, 5}, {-1, 2}, {10, 0}, {64, 33}} {
				for _, replace := range []bool{false, true} {
					for _, about := range []string{"", "excluded", "new", "trees", "trees excluded"} {
						r := cpu.Request{Relation: g, Request: request.Request{
							Hops:  request.Hops{Fanouts: fanouts, Replace: replace, OnlyNew: about == "new", Disjoint: strings.HasPrefix(about, "trees")},
							Batch: request.Batch{Seed: 5, Epoch: 7, Number: 1<<39 + 5, Seeds: csctest.Array(csctest.Mixed(31), bits)},
						}}
						if strings.HasSuffix(about, "excluded") {
							r.Exclude = x
						}
						if err := withFactors(e, s, d, &r, 0, 3); err != nil {
							t.Fatalf("weights %q, %d bits, fanouts %v, replace %v, %s: %v", name, bits, fanouts, replace, about, err)
						}
					}
				}
			}
		}
	}
}

// everyThird excludes every third edge.
func everyThird(t *testing.T, g *csc.Relation) *csc.Exclusions {
	t.Helper()
	x, err := g.Exclude(csctest.Steps(int(g.NumEdges()/3), 3))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Several batches are two launches; what is wrong with one is its own error, and memory that
// holds the batch but not its factors is asked for anew.
func TestFactorsOfManyBatches(t *testing.T) {
	e, s := device(t)
	g, d := weighted(t, e, csctest.RandomRows(3000, 1), 3060, 64, false, csctest.Weightings["ramp"])
	plan := &Factors{Neighbors{Hops{request.Hops{Fanouts: []int64{5, 5}}}}}
	var calls []*Call
	for i := range 5 {
		seeds := csctest.Steps(20*i+1, 7)
		if i == 2 {
			seeds = []int64{4, 99999}
		}
		calls = append(calls, &Call{Plan: plan, Stream: s.Handle(), Batch: request.Batch{Number: uint64(i), Seeds: csctest.Array(seeds, 64)}})
	}
	for range 2 {
		flights, err := e.StartMany(d, calls)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range flights {
			b, _, err := f.Wait(-1)
			if (err != nil) != (i == 2) {
				t.Fatalf("batch %d: %v", i, err)
			}
			if i == 2 {
				continue
			}
			got, err := read(b, s)
			if err != nil {
				t.Fatal(err)
			}
			want, err := onCPU(&cpu.Request{Relation: g, EdgeWeights: true, Request: request.Request{Hops: plan.Hops.Hops, Batch: calls[i].Batch}})
			if err != nil || !got.Equal(want) {
				t.Fatalf("batch %d: differs, %v", i, err)
			}
		}
	}
	own, err := e.MemoryPool().Alloc(s, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Free(s)
	c := Call{Plan: plan, Stream: s.Handle(), Batch: request.Batch{Seeds: csctest.Array(csctest.Steps(20, 7), 64)}, Out: own.Address}
	for c.OutBytes = 64; ; c.OutBytes += 64 {
		b, err := sample(e, d, c)
		if err != nil || c.OutBytes > own.Size {
			t.Fatal(err, c.OutBytes)
		}
		if b.Needed == 0 {
			if size := uint64(b.Header[batch.WordSize]); size > c.OutBytes || size+64 <= c.OutBytes {
				t.Fatalf("%d bytes of %d", size, c.OutBytes)
			}
			break
		}
		if b.Needed <= c.OutBytes {
			t.Fatalf("%d bytes were too few, and %d would do", c.OutBytes, b.Needed)
		}
	}
}

// Both engines' functions of real numbers have the same bits.
func TestRealFunctions(t *testing.T) {
	// Values of all sizes, near 1, near multiples of log(2)/2, and values of draws.
	values := []float64{
		5e-324, 0x1p-1022, math.Nextafter(0x1p-1022, 0), 0x1p-53, math.Nextafter(1, 0), 1, math.Nextafter(1, 2), math.Sqrt2,
		math.Nextafter(math.Sqrt2, 2), math.Nextafter(math.Sqrt2, 1), 64, math.Nextafter(64, 0), 1e300, math.MaxFloat64,
	}
	sameReals(t, 1_000_000, values, func(x uint64) []float64 {
		return []float64{
			math.Float64frombits(x%(0x7FF<<52-1) + 1), float64(x>>12<<1|1) * 0x1p-53,
			float64(x>>11) * 0x1p-53 * 50, float64(x>>3%184+1) * math.Ln2 / 2 * (1 + float64(int64(x))*0x1p-114),
		}
	}, "real_log(x)", real.Log, "real_one_minus_exp(x)", real.OneMinusExp)
}

// So have those of the normal distribution, by which numbers of batches change gradually.
func TestNormalFunctions(t *testing.T) {
	values := []float64{0x1p-53, 1 - 0x1p-53, 0.5, 0.075, math.Nextafter(0.075, 0), 0.925, math.Exp(-25), math.Nextafter(math.Exp(-25), 0)}
	sameReals(t, 200_000, values, func(x uint64) []float64 {
		u := float64(x>>12<<1|1) * 0x1p-53
		return []float64{u, math.Exp(-36 * u)}
	}, "real_normal_quantile(x)", real.NormalQuantile, "real_normal_below(real_normal_quantile(x) * 1.375)", func(x float64) float64 {
		return real.NormalBelow(real.NormalQuantile(x) * 1.375)
	})
	sameReals(t, 20_000, []float64{0, 1, 2}, func(x uint64) []float64 { return []float64{float64(x >> 33)} },
		"quarter((unsigned long long)x).x", func(x float64) float64 { cos, _ := real.Quarter(uint64(x), math.MaxInt32); return cos },
		"quarter((unsigned long long)x).y", func(x float64) float64 { _, sin := real.Quarter(uint64(x), math.MaxInt32); return sin })
}

// sameReals compares two functions of both engines at values and at those that some give of numbers without order.
func sameReals(t *testing.T, n int, values []float64, more func(uint64) []float64, one string, first func(float64) float64, other string, second func(float64) float64) {
	e, s := device(t)
	if r := compiler.Default.Report(); r.Error != "" {
		t.Skip(r.Error)
	}
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	type args struct {
		Values, Results gpu.Address
		N               int64
	}
	k, err := CompiledOf[args](e, compiler.Program{Name: "real", Source: `#include "common/real.cuh"
struct Args { const double* values; double* results; long long n; };
struct Pair { double x, y; };
__device__ Pair quarter(unsigned long long j) {
  Pair p;
  real_quarter(j, 2147483647ull, p.x, p.y);
  return p;
}
extern "C" __global__ void __launch_bounds__(256) both(const __grid_constant__ Args a) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += gridDim.x * blockDim.x) {
    double x = a.values[i];
    a.results[2 * i] = ` + one + `;
    a.results[2 * i + 1] = ` + other + `;
  }
}`}, "both")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(e.context.Properties().Name, "Emulated") {
		n *= 10
	}
	for i := uint64(0); len(values) < n; i++ {
		values = append(values, more(i*0x9E3779B97F4A7C15)...)
	}
	n = len(values)
	from, err := e.MemoryPool().Alloc(s, uint64(n)*8)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Free(s)
	to, err := e.MemoryPool().Alloc(s, uint64(n)*16)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Free(s)
	if err := s.Upload(from.Address, unsafe.Pointer(&values[0]), uint64(n)*8); err != nil {
		t.Fatal(err)
	}
	if err := k.Launch(s, gpu.Shape{Grid: [3]uint32{6}, Block: [3]uint32{256}}, &args{from.Address, to.Address, int64(n)}); err != nil {
		t.Fatal(err)
	}
	results := make([]float64, 2*n)
	if err := s.Download(unsafe.Pointer(&results[0]), to.Address, uint64(n)*16); err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Fatal(err)
	}
	for i, x := range values {
		if got, want := results[2*i], first(x); math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s at %x is %x, want %x", one, x, got, want)
		}
		if got, want := results[2*i+1], second(x); math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s at %x is %x, want %x", other, x, got, want)
		}
	}
}
