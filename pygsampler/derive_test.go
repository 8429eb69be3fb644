package pygsampler

import (
	"errors"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

func transposeJob(t *testing.T, g *Relation, types []int8) *DeriveJob {
	t.Helper()
	j, err := startTranspose(g, "t", "int8", address(types), int64(len(types)), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestTransposeJob(t *testing.T) {
	before := memory.Count().Live
	a := random(3000)
	g := a.open(t)
	types := make([]int8, len(a.indices))
	types[7] = 3
	j := transposeJob(t, g, types)
	for finished := false; !finished; {
		var done, total int64
		if done, total, finished = j.Poll(1); done > total || total != 3*int64(len(types)) {
			t.Fatalf("%d of %d looks", done, total)
		}
	}
	at, err := j.Take()
	if err != nil {
		t.Fatal(err)
	}
	m := memory.FromAddress(at)
	words := memory.ViewAt[int64](m, 0, csc.TransposedWords)
	if words[csc.TransposedNumRows] != 4*3000 || words[csc.TransposedKinds] != 4 || words[csc.TransposedNumEdges] != int64(len(types)) {
		t.Errorf("words %v", words)
	}
	m.Release()
	if n := memory.Count().Live; n != before {
		t.Errorf("%d memories were lost", n-before)
	}
}

// A small graph's is there when the call returns: no thread was woken for it.
func TestSmallTransposeIsThereAtOnce(t *testing.T) {
	a := random(20)
	g := a.open(t)
	for _, types := range [][]int8{make([]int8, len(a.indices)), {1}} {
		j := transposeJob(t, g, types)
		if _, _, finished := j.Poll(0); !finished {
			t.Fatal("still on its way")
		}
		at, err := j.Take()
		if wrong := len(types) == 1; wrong != (err != nil) {
			t.Fatalf("%d types: %v", len(types), err)
		}
		if err == nil {
			memory.FromAddress(at).Release()
		}
	}
}

// However far they are when they are ended, nothing is lost and nothing is read afterwards.
func TestTransposeJobsEnd(t *testing.T) {
	before := memory.Count().Live
	a := random(50_000)
	g := a.open(t)
	types := make([]int8, len(a.indices))
	for i := range 40 {
		j := transposeJob(t, g, types)
		if i%4 != 0 {
			j.Poll(int64(i % 4))
		}
		j.Cancel()
		select {
		case <-j.done:
		default:
			t.Fatal("a cancelled job reads on")
		}
	}
	j := transposeJob(t, g, types)
	endDeriving()
	if _, err := j.Take(); err != nil {
		if kind, text := KindOf(err); kind != KindInterrupt || text != "cancelled" {
			t.Errorf("at the end of the process: %v", err)
		}
	} else {
		j.memory.Release()
	}
	if n := memory.Count().Live; n != before {
		t.Errorf("%d memories were lost", n-before)
	}
}

func TestFormsOfClosedGraphs(t *testing.T) {
	g := random(20).open(t)
	other := random(20).open(t)
	if same, err := g.HasRowsOf(other); err != nil || !same {
		t.Errorf("the rows of an equal graph: %v, %v", same, err)
	}
	other.Close()
	closed := func(what string, err error) {
		t.Helper()
		if kind, _ := KindOf(err); err == nil || kind != KindClosed {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := g.HasRowsOf(other)
	closed("the rows of a closed graph", err)
	_, err = other.Ascends()
	closed("ascends", err)
	_, err = startTranspose(other, "", "", 0, 0, 0, true)
	closed("transposed", err)
	var value *csc.ValueError
	types := []int8{-1}
	j, err := startTranspose(g, "t", "int8", address(types), 1, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Take(); !errors.As(err, &value) {
		t.Errorf("types that are none: %v", err)
	}
}
