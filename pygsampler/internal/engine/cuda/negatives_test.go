package cuda

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/negatives"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// lentTo is a copy of an array in device memory, until the end of the test.
func lentTo[T any](t *testing.T, e *Engine, s gpu.Stream, array []T) gpu.Address {
	t.Helper()
	bytes := uint64(len(array)) * uint64(unsafe.Sizeof(*new(T)))
	m, err := e.pool.Alloc(s, max(bytes, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(s); err != nil {
			t.Error(err)
		}
	})
	if err := s.Upload(m.Address, unsafe.Pointer(unsafe.SliceData(array)), bytes); err != nil {
		t.Fatal(err)
	}
	return m.Address
}

// The CPU's numbers: uniform and by degree, in both widths, all places and some, none and more than
// threads.
func TestNegatives(t *testing.T) {
	e, s := device(t)
	g := csctest.Graph(csctest.RandomRows(900, 11), 900, 32, 64, false)
	table, err := (&negatives.Table{Relation: g, Power: .75}).Run()
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	alias := memory.ViewAt[uint64](table, 0, g.NumNodes)
	places := []int64{5, 5, 0, 1 << 40, 1<<62 - 1, 899, 3}
	for _, byDegree := range []bool{false, true} {
		for _, below := range []int64{1, g.NumNodes, 1 << 40} {
			for _, r := range []negatives.Request{
				{Rows: 0, Count: 5, Slots: 1}, {Rows: 5, Count: 0, Slots: 1}, {Rows: 1, Count: 1, Slots: 1}, {Rows: 70_000, Count: 1, Slots: 11},
				{Rows: 333, Count: 7, Slots: 1}, {Rows: 3, Count: 5000, Slots: 2}, {Rows: int64(len(places)), Count: 6, Slots: 1 << 20},
			} {
				if byDegree && below != g.NumNodes {
					continue
				}
				r.Seed, r.Epoch, r.Batch, r.Site, r.Below = 77, 1<<24-1, 1<<40-1, 255, below
				n := Negatives{}
				if byDegree {
					r.Alias, n.Alias = alias, lentTo(t, e, s, alias)
				}
				if r.Rows == int64(len(places)) {
					r.Places, n.Places = csctest.Array(places, 64), lentTo(t, e, s, places)
				}
				for _, bits := range []int{32, 64} {
					if bits == 32 && below > 1<<31 {
						continue
					}
					r.Out = csctest.Array(make([]int64, r.Rows*r.Count), bits)
					if err := r.Draw(alone{}); err != nil {
						t.Fatal(err)
					}
					// A number more, which nobody writes.
					got := csctest.Array(append(make([]int64, r.Rows*r.Count), 7), bits)
					n.Request, n.OutBits = r, bits
					n.Out = lentTo(t, e, s, got.I32)
					if bits == 64 {
						n.Out = lentTo(t, e, s, got.I64)
					}
					if err := e.Negatives(&n, s); err != nil {
						t.Fatal(err)
					}
					if err := s.Download(got.Pointer(), n.Out, uint64(got.Len()*int64(bits/8))); err != nil {
						t.Fatal(err)
					}
					last := got.Len() - 1
					same := bits == 64 && slices.Equal(got.I64[:last], r.Out.I64) || bits == 32 && slices.Equal(got.I32[:last], r.Out.I32)
					if !same || got.Element(last) != 7 {
						t.Fatalf("by degree %v, %d rows of %d, %d slots, below %d, %d bits: not the CPU's", byDegree, r.Rows, r.Count, r.Slots, below, bits)
					}
				}
			}
		}
	}
}
