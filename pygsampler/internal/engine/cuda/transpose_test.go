package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
)

// transposed compares both engines' CSR over the sources, with padding behind the edges, where
// nothing is written beside it.
func transposed(t *testing.T, e *Engine, s gpu.Stream, indptr, indices []int64, sources, idBits, padding int) {
	t.Helper()
	name := fmt.Sprintf("%d edges in %d rows of %d sources, ids of %d bits", len(indices), len(indptr)-1, sources, idBits)
	g := &segments{e: e, s: s, sources: sources, width: 1, heads: 1, idBits: idBits, floatBits: 32, indptr: indptr, indices: indices, x: make([]float64, sources), padding: padding}
	defer func() {
		g.pinned.Unpin()
		g.memory.free(t, s)
	}()
	size, edges := idBits/8, len(indices)+padding
	untouched := func(n int) []byte { return bytes.Repeat([]byte{0x5A}, n*size) }
	starts, rows, places := untouched(sources+1), untouched(edges), untouched(edges)
	here := g.onHost(SegmentSum, false, nil, nil)
	if err := here.Transpose(g.here(starts), g.here(rows), g.here(places)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	r := g.onDevice(t, SegmentSum, false)
	there := Transposition{
		Indptr: r.Indptr, Indices: r.Indices, Starts: g.put(t, untouched(sources+3), 0), RowsOf: g.put(t, untouched(edges+2), 0),
		Places: g.put(t, untouched(edges+2), 0), Sources: r.Sources, Rows: r.Rows, Edges: r.Edges, IDBits: idBits,
	}
	room := there.Room()
	there.Scratch = g.put(t, bytes.Repeat([]byte{0x5A}, int(room)+16), 0)
	check := func(what string, got []byte, want []byte) {
		t.Helper()
		for i := range len(want) / size {
			if a, b := got[i*size:][:size], want[i*size:][:size]; !bytes.Equal(a, b) {
				t.Fatalf("%s: %s[%d]: got %x, want %x", name, what, i, a, b)
			}
		}
	}
	for range 2 {
		if err := e.Transpose(&there, s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		check("starts", download(t, s, there.Starts, (sources+3)*size), append(starts, untouched(2)...))
		check("rows", download(t, s, there.RowsOf, (edges+2)*size), append(rows, untouched(2)...))
		check("places", download(t, s, there.Places, (edges+2)*size), append(places, untouched(2)...))
		if !bytes.Equal(download(t, s, there.Scratch+gpu.Address(room), 16), bytes.Repeat([]byte{0x5A}, 16)) {
			t.Fatalf("%s: written beyond the scratch", name)
		}
	}
	// Once more without places.
	there.Places = 0
	if err := e.Transpose(&there, s); err != nil {
		t.Fatal(err)
	}
	check("rows", download(t, s, there.RowsOf, (edges+2)*size), append(rows, untouched(2)...))
}

// csr is rows of random degrees up to a bound, whose edges' sources the function draws.
func csr(rows, most int, source func(random *rand.Rand) int64) (indptr, indices []int64) {
	random := rand.New(rand.NewPCG(uint64(rows), uint64(most)))
	indptr = []int64{0}
	for range rows {
		for range random.IntN(most + 1) {
			indices = append(indices, source(random))
		}
		indptr = append(indptr, int64(len(indices)))
	}
	return indptr, indices
}

// Each source's edges in their order, as the CPU has them: lists of every length, of none, of one
// source that all edges have, of lengths where a block begins to sort and where it has several
// bytes to go by.
func TestTransposeOrders(t *testing.T) {
	e, s := device(t)
	for _, idBits := range []int{32, 64} {
		for _, sources := range []int{1, 2, 31, 256, 257, 5000} {
			for _, rows := range []int{0, 1, 2, 40, 700} {
				indptr, indices := csr(rows, 9, func(r *rand.Rand) int64 { return r.Int64N(int64(sources)) })
				transposed(t, e, s, indptr, indices, sources, idBits, rows%3)
			}
		}
		// Few sources have most edges.
		indptr, indices := csr(3000, 12, func(r *rand.Rand) int64 {
			if r.IntN(3) == 0 {
				return r.Int64N(900)
			}
			return []int64{3, 899, 17, 18}[r.IntN(4)]
		})
		transposed(t, e, s, indptr, indices, 900, idBits, 7)
		for _, n := range []int{transposeLong - 1, transposeLong, transposeLong + 1, 1 << 16, 1<<16 + 300} {
			hub := make([]int64, n)
			transposed(t, e, s, []int64{0, 1, 1, int64(n)}, hub, 3, idBits, 1)
		}
	}
	transposed(t, e, s, []int64{0}, nil, 0, 64, 0)
	transposed(t, e, s, []int64{0, 0}, nil, 4, 32, 5)
	// More sources than tiles of the smallest size.
	indptr, indices := csr(500, 20, func(r *rand.Rand) int64 { return r.Int64N(1 << 19) })
	transposed(t, e, s, indptr, indices, 1<<19, 32, 0)
}

// Edges whose source is none are left out; the others keep their order.
func TestTransposeBadIDs(t *testing.T) {
	e, s := device(t)
	g := randomSegments(t, e, s, []int{300, 0, 900, 5}, 40, 1, 1, 32, 32)
	var want []uint32
	for e := range g.indices {
		if e%5 == 0 {
			g.indices[e] = []int64{-1, 40, 1<<31 - 1}[e%3]
		}
	}
	for source := range int64(40) {
		for e, found := range g.indices {
			if found == source {
				want = append(want, uint32(e))
			}
		}
	}
	r := g.onDevice(t, SegmentSum, false)
	n := len(g.indices)
	there := Transposition{
		Indptr: r.Indptr, Indices: r.Indices, Starts: g.put(t, make([]byte, 41*4), 0), RowsOf: g.put(t, make([]byte, n*4), 0),
		Places: g.put(t, make([]byte, n*4), 0), Sources: r.Sources, Rows: r.Rows, Edges: r.Edges, IDBits: 32,
	}
	there.Scratch = g.put(t, make([]byte, there.Room()), 0)
	if err := e.Transpose(&there, s); err != nil {
		t.Fatal(err)
	}
	if last := binary.LittleEndian.Uint32(download(t, s, there.Starts+40*4, 4)); int(last) != len(want) {
		t.Fatalf("%d edges, want %d", last, len(want))
	}
	places := download(t, s, there.Places, len(want)*4)
	for i, e := range want {
		if got := binary.LittleEndian.Uint32(places[4*i:]); got != e {
			t.Fatalf("places[%d]: got %d, want %d", i, got, e)
		}
	}
}
