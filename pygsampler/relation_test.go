package pygsampler

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// Close returns when no job reads the graph any more, and refuses later ones.
func TestCloseWaits(t *testing.T) {
	quiet(t)
	a := random(20000)
	for round := range 5 {
		g := a.open(t)
		_, _, c := long(t)
		o := options(t, "auto", false, -1, -1, -1)
		var jobs []*HostJob
		for range 6 {
			j, err := submit(g, o, c)
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, j)
		}
		if round == 0 {
			time.AfterFunc(5*time.Millisecond, func() { jobs[0].stop.Store(true) })
		}
		deadline.Within(t, time.Minute, g.Close)
		for _, j := range jobs {
			if j.err == nil && j.memory == (memory.Memory{}) {
				t.Error("a job is not finished")
			}
		}
		_, err := submit(g, o, c)
		if kind, text := KindOf(err); kind != KindClosed || text != "graph: expected an open graph, got a closed one" {
			t.Errorf("got %v", err)
		}
		deadline.Within(t, time.Minute, g.Close)
		for _, j := range jobs {
			j.Cancel()
		}
	}
}

func TestNewGraphErrors(t *testing.T) {
	a := random(100)
	edges := int64(len(a.indices))
	for _, k := range []struct {
		change func(*CSC)
		kind   Kind
		text   string
	}{
		{func(c *CSC) { c.IndptrBits = 16 }, KindType, "indptr: expected 32 or 64 bits, got 16"},
		{func(c *CSC) { c.IDBits = 0 }, KindType, "indices: expected 32 or 64 bits, got 0"},
		{func(c *CSC) { c.EdgeIDs, c.EdgeIDBits = c.Indices, 8 }, KindType, "edge_ids: expected 32 or 64 bits, got 8"},
		{func(c *CSC) { c.NumRows = -1 }, KindValue, "graph: expected sizes >= 0, got -1 rows, " +
			fmt.Sprint(edges) + " edges, 100 nodes"},
		{func(c *CSC) { c.NumNodes = 99 }, KindValue, "num_nodes: expected at least 100 (len(indptr) - 1), got 99"},
		{func(c *CSC) { c.NumEdges-- }, KindValue, fmt.Sprintf("indptr[100]: expected %d (len(indices)), got %d", edges-1, edges)},
	} {
		c := a.csc()
		k.change(&c)
		_, err := NewRelation(c)
		if kind, text := KindOf(err); kind != k.kind || text != k.text {
			t.Errorf("got %s: %s, want %s: %s", kind, text, k.kind, k.text)
		}
	}
	runtime.KeepAlive(a)
}

func TestFromCOO(t *testing.T) {
	quiet(t)
	src, dst := []int64{1, 0, 2}, []int64{0, 2, 0}
	at, err := FromCOO(address(src), address(dst), 64, 3, -1)
	if err != nil {
		t.Fatal(err)
	}
	m := memory.FromAddress(at)
	w := memory.ViewAt[int64](m, 0, 7)
	if w[0] != 3 || w[1] != 3 || !slices.Equal(memory.ViewAt[int64](m, w[4], 4), []int64{0, 2, 2, 3}) ||
		!slices.Equal(memory.ViewAt[int64](m, w[5], 3), []int64{1, 2, 0}) || !slices.Equal(memory.ViewAt[int64](m, w[6], 3), []int64{0, 2, 1}) {
		t.Errorf("got %v", w)
	}
	rows, err := ExpandRows(int64(uintptr(m.Pointer()))+w[4], 3, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	r := memory.FromAddress(rows)
	if !slices.Equal(memory.ViewAt[int64](r, 0, 3), []int64{0, 0, 2}) {
		t.Error("other rows")
	}
	r.Release()
	m.Release()
	for _, k := range []struct {
		bits            int
		edges, numNodes int64
		kind            Kind
	}{{8, 3, -1, KindType}, {64, -1, -1, KindValue}, {64, 3, -2, KindValue}, {64, 3, 2, KindValue}} {
		if _, err := FromCOO(address(src), address(dst), k.bits, k.edges, k.numNodes); err == nil {
			t.Errorf("%+v: no error", k)
		} else if kind, text := KindOf(err); kind != k.kind {
			t.Errorf("%+v: %s: %s", k, kind, text)
		}
	}
}
