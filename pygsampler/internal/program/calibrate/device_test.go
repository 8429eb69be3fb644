package calibrate

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
)

// The costs of a GPU, with a small graph, are valid numbers, and the device has its memory
// back.
func TestMeasureDevice(t *testing.T) {
	e, err := cuda.Open(0)
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("PYGSAMPLER_REQUIRE"), ","), "cuda") {
			t.Fatalf("PYGSAMPLER_REQUIRE asks for cuda: %v", err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := cuda.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	if r := compiler.Default.Report(); r.Error != "" {
		t.Skip(r.Error)
	}
	used := int64(0)
	for again := range 2 {
		d, err := MeasureDevice(e, Size{Vertices: 1 << 12, Degree: 8, Rows: 64})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", d)
		for _, x := range []float64{d.In, d.Bit, d.Out, d.More, d.Turn} {
			if !(x > 0) {
				t.Errorf("got %+v", d)
			}
		}
		s, err := e.Stats()
		if err != nil || again > 0 && s.Used != used {
			t.Errorf("%d bytes are in use, before %d, %v", s.Used, used, err)
		}
		used = s.Used
	}
}

// A GPU that takes 2 per in-edge, 1/2 per bit, 8 per out-edge, 70 for more barriers, and 20 per
// edge once.
func TestCosts(t *testing.T) {
	size := Size{Vertices: 1 << 12, Degree: 8, Rows: 65}
	var times [2][2][2]float64
	for g, edges := range []float64{1 << 7, 1 << 15} {
		for many, out := range []float64{8, 65 * 8} {
			times[g][0][many] = 100 + 2*edges
			times[g][1][many] = 170 + edges/2 + 8*out - 8*8
		}
	}
	if got, want := size.costs(times, 20<<15), (costs.Device{In: 2, Bit: 0.5, Out: 8, More: 70, Turn: 20}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if d := size.costs([2][2][2]float64{}, 0); !(d.In > 0 && d.Bit > 0 && d.Out > 0 && d.More > 0 && d.Turn > 0) {
		t.Errorf("got %+v of a clock that stands", d)
	}
}
