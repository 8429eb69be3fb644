package cpu

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// The rule of the maps, on both sides of every limit.
func TestNumberBy(t *testing.T) {
	const million = 1 << 20
	for _, k := range []struct {
		nodes, seeds int64
		fanouts      []int64
		limit        int64
		want         numbering
		bound        int64
	}{
		{100, 3, []int64{2, 2}, 0, narrowMap, 28},
		{100, 20, []int64{2, 2}, 0, narrowMap, 101},
		{100, 0, []int64{2, 2}, 0, narrowMap, 1},
		{100, 3, []int64{2, -1}, 0, narrowMap, 101},
		{100, 3, []int64{2, 2}, 400, narrowMap, 28},
		{100, 3, []int64{2, 2}, 399, hashed, 28},
		{64 * million, 1000, []int64{10}, 0, narrowMap, 11001},
		{64*million + 1, 1000, []int64{10}, 0, hashed, 11001},
		{64*million + 1, 1000, []int64{10}, 1 << 40, narrowMap, 11001},
		{32 * million, 1 << 24, []int64{0}, 0, wideMap, 1<<24 + 1},
		{32 * million, 1<<24 - 1, []int64{0}, 0, narrowMap, 1 << 24},
		{32 * million, 1000, []int64{-1}, 0, wideMap, 32*million + 1},
		{32*million + 1, 1000, []int64{-1}, 0, hashed, 32*million + 2},
		{1<<32 - 1, 1, []int64{-1}, 1 << 40, wideMap, 1 << 32},
		{1 << 32, 1, []int64{-1}, 1 << 40, hashed, 1<<32 + 1},
		{1 << 48, 1, []int64{-1}, 1 << 62, hashed, 1<<48 + 1},
		// Products beyond any integer.
		{1000, 10, slices.Repeat([]int64{1<<31 - 1}, 256), 0, narrowMap, 1001},
	} {
		r := Request{Relation: &csc.Relation{NumNodes: k.nodes}, MapBytes: k.limit, Request: request.Request{Hops: request.Hops{Fanouts: k.fanouts}}}
		r.Seeds = csc.Array{Bits: 32, I32: csctest.Sparse[int32](t, k.seeds)}
		if got, bound := r.numberBy(), r.bound(); got != k.want || bound != k.bound {
			t.Errorf("%d nodes, %d seeds, %.40v, limit %d: got %d with bound %d, want %d with %d",
				k.nodes, k.seeds, k.fanouts, k.limit, got, bound, k.want, k.bound)
		}
	}
}

// batches runs many batches of random ids through one numbering and compares each
// with a map: the numbers, the list of vertices, and nothing from batches before.
// With many vertices most entries stay as they are for hundreds of batches, and
// come back to life where a tag comes back.
func batches(t *testing.T, count int, vertices []int64, begin func(), claim func(ids, nodes []int64, n int64) int64) {
	t.Helper()
	for b := range count {
		begin()
		number := map[int64]int64{}
		var want []int64
		nodes, n := make([]int64, len(vertices)+1), int64(0)
		for part := range 3 {
			ids, wantIDs := make([]int64, 40), make([]int64, 40)
			state := rng.Mix(uint64(b*3 + part))
			for i := range ids {
				v := vertices[rng.Below(rng.Draw(state, i), uint64(len(vertices)))]
				if _, ok := number[v]; !ok {
					number[v] = int64(len(want))
					want = append(want, v)
				}
				ids[i], wantIDs[i] = v, number[v]
			}
			n = claim(ids, nodes, n)
			if !slices.Equal(ids, wantIDs) || !slices.Equal(nodes[:n], want) {
				t.Fatalf("batch %d: got %v of %v, want %v of %v", b, ids, nodes[:n], wantIDs, want)
			}
		}
	}
}

// upTo is n vertices, the last of them last.
func upTo(n, last int64) (a []int64) {
	for i := range n {
		a = append(a, i*last/(n-1))
	}
	return a
}

func TestDirectMapTags(t *testing.T) {
	var narrow directMap[uint32]
	defer narrow.free()
	batches(t, 600, upTo(20000, 19999), func() {
		if err := narrow.begin(20000, narrowNumbers); err != nil {
			t.Fatal(err)
		}
		if narrow.tag == 0 {
			t.Fatal("a cleared map's entries are live")
		}
	}, func(ids, nodes []int64, n int64) int64 { return claimDirect(&narrow, ids, nodes, n) })

	var wide directMap[uint64]
	defer wide.free()
	wraps := 0
	batches(t, 60, upTo(20000, 19999), func() {
		before := wide.tag
		if before == 20*wideNumbers {
			before = (1<<32 - 5) * wideNumbers
			wide.tag = before
		}
		if err := wide.begin(20000, wideNumbers); err != nil {
			t.Fatal(err)
		}
		if wide.tag < before {
			wraps++
		}
	}, func(ids, nodes []int64, n int64) int64 { return claimDirect(&wide, ids, nodes, n) })
	if wraps == 0 {
		t.Error("the tag never ran out")
	}
}

// The last number that fits beside the tag.
func TestDirectMapLastNumber(t *testing.T) {
	var narrow directMap[uint32]
	defer narrow.free()
	for range 2 {
		if err := narrow.begin(10, narrowNumbers); err != nil {
			t.Fatal(err)
		}
		nodes := csctest.Sparse[int32](t, narrowNumbers)
		ids := []int32{7, 3, 7}
		if n := claimDirect(&narrow, ids, nodes, narrowNumbers-3); n != narrowNumbers-1 ||
			!slices.Equal(ids, []int32{narrowNumbers - 3, narrowNumbers - 2, narrowNumbers - 3}) {
			t.Fatalf("got %v, %d", ids, n)
		}
	}
}

// A map serves graphs of any size, one after the other.
func TestDirectMapOfAnotherGraph(t *testing.T) {
	var m directMap[uint32]
	defer m.free()
	for _, size := range []int64{100, 5000, 50, 5000, 10000, 1} {
		vertices := upTo(2, size-1)
		batches(t, 3, vertices, func() {
			if err := m.begin(size, narrowNumbers); err != nil {
				t.Fatal(err)
			}
		}, func(ids, nodes []int64, n int64) int64 { return claimDirect(&m, ids, nodes, n) })
	}
}

// Ids up to 48 bits, tags up to 16, and growth in the middle of a batch.
func TestHashTable(t *testing.T) {
	var h hashTable
	defer func() { h.pages.Free() }()
	vertices := upTo(10000, 1<<48-1)
	wraps := 0
	batches(t, 60, vertices, func() {
		if h.tag == 20 {
			h.tag = 1<<16 - 5
		}
		before := h.tag
		h.begin()
		if h.tag < before {
			wraps++
		}
		if err := h.reserve(int64(len(vertices)), 0, nil); err != nil {
			t.Fatal(err)
		}
	}, func(ids, nodes []int64, n int64) int64 { return claimHashed(&h, ids, nodes, n) })
	if wraps == 0 || len(h.entries) != 2<<15 {
		t.Errorf("%d wraps, %d words", wraps, len(h.entries))
	}

	// Half full at the most, whatever was there before, with every entry kept.
	h.begin()
	nodes := make([]int64, 1<<16)
	n := int64(0)
	for _, count := range []int64{1, 512, 513, 3000, 2000, 1 << 14, 1<<14 + 1, 1<<15 + 1} {
		if err := h.reserve(count, n, func(i int64) uint64 { return uint64(nodes[i]) }); err != nil {
			t.Fatal(err)
		}
		if size := int64(len(h.entries)) / 2; size < 2*count {
			t.Fatalf("%d entries for %d vertices", size, count)
		}
		for n < count {
			ids := []int64{n * 0x5DEECE66D & (1<<48 - 1), n / 2 * 0x5DEECE66D & (1<<48 - 1)}
			if next := claimHashed(&h, ids, nodes, n); next != n+1 || ids[0] != n || ids[1] != n/2 {
				t.Fatalf("vertex %d: got %v and %d", n, ids, next)
			}
			n++
		}
	}
}

// The table grows between the hops of one batch and numbers as the maps do.
func TestHashGrowsBetweenHops(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(20000, 3), 20000, 64, 64, false)
	var stop atomic.Bool
	r := Request{Relation: g, MapBytes: 1, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4, 4, 4, 4, 4}}, Batch: request.Batch{Seed: 1, Seeds: csctest.Array(upTo(50, 19999), 64)}}}
	in := &sampling[int64]{Request: &r, scratch: &scratch{}, team: muster(idle(0), 0), stop: &stop}
	defer in.team.dismiss()
	if err := in.begin(); err != nil {
		t.Fatal(err)
	}
	defer in.out.Discard()
	in.rows, _ = in.tiles()
	grown := 0
	for hop := range r.Fanouts {
		before := len(in.table.entries)
		if err := in.hop(hop); err != nil {
			t.Fatal(err)
		}
		if len(in.table.entries) > before {
			grown++
		}
	}
	if want := reference(&r).Nodes; grown < 2 || !slices.Equal(in.nodes()[:in.n], want) {
		t.Errorf("the table grew %d times; %d vertices, want %d", grown, in.n, len(want))
	}
}

// Through the engine: more batches than a narrow map has tags, on one scratch.
func TestManyBatches(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(60, 5), 60, 32, 32, false)
	for b := range uint64(600) {
		r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{2, 3}}, Batch: request.Batch{Number: b, Seeds: csctest.Array([]int64{int64(b % 60), 5}, 64)}}}
		want := reference(&r)
		for _, limit := range []int64{0, 1} {
			r.MapBytes = limit
			if got := sample(t, &r, idle(0)); !slices.Equal(got.Nodes, want.Nodes) || !slices.Equal(got.Blocks[0].Indices, want.Blocks[0].Indices) {
				t.Fatalf("batch %d, limit %d: got %v, want %v", b, limit, got, want)
			}
		}
	}
}

// A map that is larger than the cache is read ahead, whatever the number of ids.
func TestLargeMap(t *testing.T) {
	const vertices = largeMap
	var m directMap[uint32]
	draw := rand.New(rand.NewPCG(5, 6))
	for _, count := range []int{0, 1, ahead - 1, ahead, ahead + 1, 2 * ahead, 3*ahead + 7, 1000} {
		if err := m.begin(vertices, narrowNumbers); err != nil {
			t.Fatal(err)
		}
		ids, nodes := make([]int64, count), make([]int64, count+1)
		number, want := map[int64]int64{}, make([]int64, count)
		for k := range ids {
			// Every third is one of few, which come again.
			if ids[k] = draw.Int64N(vertices); k%3 == 0 {
				ids[k] = int64(k % 5)
			}
			if _, ok := number[ids[k]]; !ok {
				number[ids[k]] = int64(len(number))
			}
			want[k] = number[ids[k]]
		}
		if n := claimDirect(&m, ids, nodes, 0); n != int64(len(number)) || !slices.Equal(ids, want) {
			t.Errorf("%d ids: %d vertices, want %d, or other numbers", count, n, len(number))
		}
		for v, n := range number {
			if nodes[n] != v {
				t.Errorf("%d ids: vertex %d is %d, want %d", count, n, nodes[n], v)
			}
		}
	}
	m.free()
}
