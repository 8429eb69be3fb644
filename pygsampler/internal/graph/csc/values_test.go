package csc

import (
	"fmt"
	"math"
	"testing"
)

// asFloats reads an array in each of its ways.
func asFloats(t *testing.T, v Values, want []float64) {
	t.Helper()
	to := make([]float64, len(want))
	v.Range(to, 0)
	if fmt.Sprint(to) != fmt.Sprint(want) || v.Len() != int64(len(want)) {
		t.Errorf("%s: got %v, want %v", v.DType, to, want)
	}
	for i, w := range want {
		if got := v.Float64(int64(i)); got != w && got == got {
			t.Errorf("%s: element %d is %v, want %v", v.DType, i, got, w)
		}
	}
	backwards := []int32{}
	for i := range want {
		backwards = append(backwards, int32(len(want)-1-i))
	}
	Gather(v, to, backwards)
	for i, x := range to {
		if w := want[len(want)-1-i]; x != w && x == x {
			t.Errorf("%s: element %d from behind is %v, want %v", v.DType, i, x, w)
		}
	}
}

func TestValues(t *testing.T) {
	asFloats(t, ValuesOf([]int8{-128, 0, 127}), []float64{-128, 0, 127})
	asFloats(t, ValuesOf([]uint8{0, 1, 255}), []float64{0, 1, 255})
	asFloats(t, ValuesOf([]int16{-32768, 32767}), []float64{-32768, 32767})
	asFloats(t, ValuesOf([]int32{math.MinInt32, math.MaxInt32}), []float64{math.MinInt32, math.MaxInt32})
	asFloats(t, ValuesOf([]int64{1<<53 + 1, -(1<<53 + 3), math.MaxInt64}), []float64{1 << 53, -(1<<53 + 4), 1 << 63})
	asFloats(t, ValuesOf([]float32{0.1, float32(math.Inf(-1)), float32(math.NaN())}), []float64{float64(float32(0.1)), math.Inf(-1), math.NaN()})
	for n := range 40 { // about as many as are widened at a time
		x, want := make([]float32, n), make([]float64, n)
		for i := range x {
			x[i] = math.Float32frombits(uint32(i+1) * 0x1000193) // some of them subnormal
			want[i] = float64(x[i])
		}
		asFloats(t, ValuesOf(x), want)
	}
	asFloats(t, ValuesOf([]float64{0.1, 5e-324}), []float64{0.1, 5e-324})
	asFloats(t, Values{}, nil)
	for d := range dtypes {
		if got, ok := ParseDType(DType(d).String()); !ok || got != DType(d) {
			t.Errorf("%s: got %v, %v", DType(d), got, ok)
		}
	}
	if _, ok := ParseDType("complex64"); ok {
		t.Error("a type for complex64")
	}
}

// The first that is kept under a text stays.
func TestKept(t *testing.T) {
	var k DerivedCache
	if k.Get("a") != nil || k.Put("a", 1) != 1 || k.Put("a", 2) != 1 || k.Get("a") != 1 || k.Get("b") != nil {
		t.Errorf("kept %v", k.made)
	}
}
