package real

import (
	"math"
	"math/rand/v2"
	"testing"
)

// off is the relative difference of two numbers.
func off(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / math.Abs(want)
}

// log is the library's, which is wrong for subnormal numbers on amd64.
func log(x float64) float64 {
	m, e := math.Frexp(x)
	if x >= 0x1p-1022 {
		return math.Log(x)
	}
	return math.Log(m) + float64(e)*math.Ln2
}

// The library's own functions are within an ulp of the truth.
func TestNearTheTruth(t *testing.T) {
	const most = 8e-16
	logs := []float64{
		5e-324, 1e-310, 0x1p-1022, math.Nextafter(0x1p-1022, 0), 0x1p-53, 0.5, math.Sqrt2 / 2, math.Nextafter(1, 0), 1,
		math.Nextafter(1, 2), math.Sqrt2, math.Nextafter(math.Sqrt2, 2), 2, 3, 1e300, math.MaxFloat64,
	}
	exps := []float64{
		0, 5e-324, 1e-300, 1e-35, 1e-17, 0x1p-53, 0.34, math.Ln2 / 2, math.Nextafter(math.Ln2/2, 1), 0.35, 0.5, math.Ln2,
		1, 1.0397, 1.04, 20, 36.7, 37.4, math.Nextafter(64, 0), 64, 1e20, math.MaxFloat64,
	}
	draw := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		logs = append(logs, draw.Float64(), math.Float64frombits(draw.Uint64N(0x7FF<<52-1)+1), 1+(draw.Float64()-0.5)*1e-3)
		exps = append(exps, draw.Float64()*50, math.Exp(-90*draw.Float64()), draw.Float64())
	}
	for _, x := range logs {
		if got, want := Log(x), log(x); off(got, want) > most {
			t.Fatalf("Log(%g) is %g, want %g", x, got, want)
		}
	}
	for _, x := range exps {
		if got, want := OneMinusExp(x), -math.Expm1(-x); off(got, want) > most {
			t.Fatalf("OneMinusExp(%g) is %g, want %g", x, got, want)
		}
	}
}

// Exp is near the truth, subnormal results included, and exact at the ends; so are the ends of FullLog.
func TestExp(t *testing.T) {
	inf := math.Inf(1)
	for x, want := range map[float64]float64{
		0: 1, math.Copysign(0, -1): 1, inf: inf, -inf: 0, 709.79: inf, -745.15: 0, 5e-324: 1, -1e-300: 1, math.MaxFloat64: inf, -math.MaxFloat64: 0,
	} {
		if got := Exp(x); got != want {
			t.Errorf("Exp(%g) is %g, want %g", x, got, want)
		}
	}
	if got := Exp(math.NaN()); got == got {
		t.Errorf("Exp(NaN) is %g", got)
	}
	edges := []float64{1, -1, math.Ln2, math.Ln2 / 2, math.Nextafter(math.Ln2/2, 1), -math.Ln2 / 2, 709.78, -708.39, -708.4, -745.1, -745.13, 20.5, 1e-17}
	draw := rand.New(rand.NewPCG(3, 4))
	for range 1_000_000 {
		edges = append(edges, (draw.Float64()-0.5)*1418, (draw.Float64()-0.5)*4)
	}
	for _, x := range edges {
		got, want := Exp(x), math.Exp(x)
		// A subnormal number is near where it is the next one at most.
		if off(got, want) > 8e-16 && math.Abs(got-want) > 5e-324 {
			t.Fatalf("Exp(%g) is %g, want %g", x, got, want)
		}
	}
	for x, want := range map[float64]float64{0: -inf, math.Copysign(0, -1): -inf, inf: inf, 1: 0, math.MaxFloat64: Log(math.MaxFloat64)} {
		if got := FullLog(x); got != want {
			t.Errorf("FullLog(%g) is %g, want %g", x, got, want)
		}
	}
	for _, x := range []float64{-1, -inf, math.NaN(), -5e-324} {
		if got := FullLog(x); got == got {
			t.Errorf("FullLog(%g) is %g", x, got)
		}
	}
}
