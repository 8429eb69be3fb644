package csc_test

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// All 65536 of each: a float16 is sign * 2^(e-15) * 1.f, and of a subnormal 2^-14 * 0.f.
func TestWidened(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	at := int64(uintptr(unsafe.Pointer(unsafe.SliceData(all))))
	halves, is := csc.Widened(at, 1<<16, "float16")
	brains, also := csc.Widened(at, 1<<16, "bfloat16")
	runtime.KeepAlive(all)
	if !is || !also {
		t.Fatal("expected both to be widened")
	}
	for i, got := range halves {
		sign, e, f := 1-2*float64(i>>15), float64(i>>10&31), float64(i&1023)/1024
		want := math.Copysign(math.Exp2(e-15)*(1+f), sign)
		switch {
		case e == 0:
			want = math.Copysign(math.Exp2(-14)*f, sign)
		case e == 31 && f == 0:
			want = math.Inf(int(sign))
		case e == 31:
			want = math.NaN()
		}
		if math.IsNaN(want) != math.IsNaN(got) || want == want && math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("float16 %#x: expected %v, got %v", i, want, got)
		}
		want = float64(math.Float32frombits(uint32(i) << 16))
		if got := brains[i]; math.Float64bits(got) != math.Float64bits(want) && want == want {
			t.Errorf("bfloat16 %#x: expected %v, got %v", i, want, got)
		}
	}
	wide := []uint64{0, 1<<53 + 1, math.MaxUint64}
	numbers, is := csc.Widened(int64(uintptr(unsafe.Pointer(unsafe.SliceData(wide)))), 3, "uint64")
	runtime.KeepAlive(wide)
	if !is || !slices.Equal(numbers, []float64{0, 1 << 53, 1 << 64}) {
		t.Errorf("uint64: got %v", numbers)
	}
	if _, is := csc.Widened(0, 0, "float32"); is {
		t.Error("float32: expected no copy")
	}
}
