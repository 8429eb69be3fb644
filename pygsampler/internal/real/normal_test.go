package real

import (
	"math"
	"math/rand/v2"
	"testing"
)

func below(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func TestNormalBelow(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 6))
	values := []float64{0, math.Copysign(0, -1), 3, -3, 2.999999999, -2.999999999, -8.2, 8.2, -12, 12, 5e-324}
	for range 300_000 {
		values = append(values, (draw.Float64()-0.5)*24)
	}
	for _, x := range values {
		// Tails too are near, relatively: numbers there are compared with small chances.
		if got, want := NormalBelow(x), below(x); off(got, want) > 1e-12 {
			t.Fatalf("NormalBelow(%g) is %g, want %g", x, got, want)
		}
	}
	if got := NormalBelow(-40); got != 0 {
		t.Errorf("NormalBelow(-40) is %g", got)
	}
	if got := NormalBelow(40); got != 1 {
		t.Errorf("NormalBelow(40) is %g", got)
	}
}

// The quantile is the inverse, of numbers next to 0 and 1 as well.
func TestNormalQuantile(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 8))
	values := []float64{0x1p-53, 1 - 0x1p-53, 0.5, 0.075, math.Nextafter(0.075, 0), 0.925, math.Exp(-25), math.Nextafter(math.Exp(-25), 0), 1e-300}
	for range 300_000 {
		values = append(values, draw.Float64(), math.Exp(-36*draw.Float64()))
	}
	for _, p := range values {
		x := NormalQuantile(p)
		// At the other side of 1/2 the distribution is 1 but for roundings.
		if got := below(x); off(got, p) > 2e-13+1e-15*x*x || (p < 0.5) != (x < 0) && p != 0.5 {
			t.Fatalf("NormalQuantile(%g) is %g, and the distribution there %g", p, x, got)
		}
		if q := 1 - p; p > 1e-3 && p < 0.999 && math.Abs(NormalQuantile(q)+x) > 1e-12 {
			t.Fatalf("NormalQuantile(%g) is %g, of %g %g", p, x, q, NormalQuantile(q))
		}
	}
}

func TestQuarter(t *testing.T) {
	for _, k := range []uint64{1, 2, 3, 4, 7, 97, 1 << 20, math.MaxInt32} {
		for _, j := range []uint64{0, 1, k / 3, k / 2, (k + 1) / 2, k - 1, k} {
			cos, sin := Quarter(j, k)
			angle := float64(j) / float64(k) * math.Pi / 2
			if math.Abs(cos-math.Cos(angle)) > 3e-16 || math.Abs(sin-math.Sin(angle)) > 3e-16 {
				t.Fatalf("%d of %d: %g, %g, want %g, %g", j, k, cos, sin, math.Cos(angle), math.Sin(angle))
			}
		}
	}
	if cos, sin := Quarter(0, 5); cos != 1 || sin != 0 {
		t.Errorf("0 of 5: %g, %g", cos, sin)
	}
}
