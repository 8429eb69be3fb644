package wholerows

import (
	"errors"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// The plan is for parts to answer by: it makes no batches, and misses no array silently.
func TestWhatIsRefused(t *testing.T) {
	d := plan.Read(`{"family": "rows", "arrays": ["w", "x"]}`)
	d.Name("family", "a family")
	p := Parse(d).(*Plan)
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.CPU(new(plan.Work)); !errors.Is(err, request.ErrValue) {
		t.Errorf("a batch: %v", err)
	}
	if err := p.CUDA().Check(nil, nil); !errors.Is(err, request.ErrValue) {
		t.Errorf("a batch on a device: %v", err)
	}
	has := map[string]csc.Values{"w": csc.ValuesOf([]int32{4})}
	if err := p.Check(plan.Arrays{EdgeData: has}); !errors.Is(err, request.ErrValue) {
		t.Errorf("without x: %v", err)
	}
	has["x"] = csc.ValuesOf([]float64{0.5})
	if err := p.Check(plan.Arrays{EdgeData: has}); err != nil {
		t.Error(err)
	}
}
