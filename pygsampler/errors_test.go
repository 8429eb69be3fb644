package pygsampler

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

func TestKindOf(t *testing.T) {
	for _, k := range []struct {
		err  error
		kind Kind
		text string
	}{
		{Errorf(KindType, "x: %d", 3), KindType, "x: 3"},
		{fmt.Errorf("within: %w", Errorf(KindClosed, "y")), KindClosed, "y"},
		{fmt.Errorf("%w: seeds[0]", request.ErrIndex), KindIndex, "seeds[0]"},
		{fmt.Errorf("%w: too many", request.ErrOverflow), KindOverflow, "too many"},
		{fmt.Errorf("%w: mode", request.ErrValue), KindValue, "mode"},
		{request.ErrCancelled, KindInterrupt, "cancelled"},
		{fmt.Errorf("%w: wanted 5 bytes", memory.ErrNoMemory), KindMemory, "out of memory: wanted 5 bytes"},
		{&gpu.Error{Call: "cuInit", Code: 999, Name: "UNKNOWN"}, KindCuda, "gpu: cuInit: UNKNOWN (999)"},
		{
			&gpu.Error{Call: "cuInit", Code: 3, Name: "NOT_INITIALIZED", Text: "a forked child"}, KindCuda,
			`gpu: cuInit: NOT_INITIALIZED (3): a forked child, or sample on the CPU there: graph.to("cpu")`,
		},
		{onDevice(errors.New("no cooperative launches")), KindCuda, "no cooperative launches"},
		{onDevice(fmt.Errorf("%w: seeds[0]", request.ErrIndex)), KindIndex, "seeds[0]"},
		{errors.New("else"), KindOther, "else"},
	} {
		if kind, text := KindOf(k.err); kind != k.kind || text != k.text {
			t.Errorf("%v: got %s: %s, want %s: %s", k.err, kind, text, k.kind, k.text)
		}
	}
	if text := Errorf(KindValue, "z").Error(); text != "pygsampler: z" {
		t.Error(text)
	}
}
