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
