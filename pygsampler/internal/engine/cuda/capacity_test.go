package cuda

import (
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// The terms of a guess, for a graph whose figures are easy.
func TestGuess(t *testing.T) {
	g := (&Engine{}).NewGraph(Arrays{IndptrBits: 64, IDBits: 32, Rows: 100, Nodes: 100, Edges: 300})
	p := &Hops{request.Hops{Fanouts: []int64{-1, 4}}}
	// 10 rows of 4 edges, then 50 rows of 6; 100 vertices. Ids and edge ids of 4 bytes.
	want := uint64(4096 + 2*4*10 + (4*10 + 8*40 + 256) + (4*50 + 8*300 + 256) + 4*100)
	if n := g.need(&Neighbors{*p}, 10); n.Out != want || n.Rows != 50 || n.Edges != 300 || n.Arrived {
		t.Errorf("got %+v, want %d bytes, 50 rows, 300 edges", n, want)
	}
	// Edges without ids whose places need 64 bits, and a bound on what is only guessed.
	g = (&Engine{}).NewGraph(Arrays{IndptrBits: 64, IDBits: 32, Rows: 1 << 20, Nodes: 1 << 20, Edges: 1 << 40})
	if n := g.need(&Neighbors{*p}, 10); n.Out != mostOut || g.Widths() != (batch.Widths{ID: 4, EdgeID: 8}) {
		t.Errorf("got %+v, widths %+v", n, g.Widths())
	}
}

// A limit that a batch met, or a caller's memory that was too small, is noted at once;
// of rows and edges only a batch that arrived says how many there are.
func TestLearnBeforeABatchArrives(t *testing.T) {
	g := (&Engine{}).NewGraph(Arrays{IndptrBits: 64, IDBits: 32, Rows: 100, Nodes: 100, Edges: 300})
	c := Call{Plan: &Neighbors{Hops{request.Hops{Fanouts: []int64{2, 4}}}}, NumSeeds: 10}
	guess := g.need(c.Plan, c.NumSeeds)
	g.learn(shapeOf(c.Plan, c.NumSeeds), Needs{NoBins: true})
	g.learn(shapeOf(c.Plan, c.NumSeeds), Needs{Ranks: 77})
	f := &Flight{graph: g, call: c, shape: shapeOf(c.Plan, c.NumSeeds)}
	f.OutTooSmall(5 * guess.Out)
	f.OutTooSmall(3 * guess.Out)
	want := guess
	want.NoBins, want.Ranks, want.Out = true, 77, 5*guess.Out
	if got := g.need(c.Plan, c.NumSeeds); got != want || f.batch.Needed != want.Out {
		t.Errorf("got %+v and %d, want %+v", got, f.batch.Needed, want)
	}
	// Another number of seeds, of as many bits, is the same shape; other options are not.
	if got := g.need(c.Plan, 15); got.Out != want.Out {
		t.Errorf("15 seeds: %+v", got)
	}
	for _, h := range []request.Hops{
		{Fanouts: []int64{2, 5}}, {Fanouts: []int64{2, 4}, Replace: true}, {Fanouts: []int64{2, 4}, OnlyNew: true},
		{Fanouts: []int64{2, 4}, Disjoint: true}, {Fanouts: []int64{2, 4, 4}}, {Fanouts: []int64{2}},
	} {
		if got := g.need(&Neighbors{Hops{h}}, 10); got.NoBins {
			t.Errorf("%+v: %+v", h, got)
		}
	}
}

// A caller whose memory is too small is told what would do, and so is one whose batch
// arrived, of the next.
func TestCapacityOfACallersMemory(t *testing.T) {
	e, s := device(t)
	g := csctest.Graph(csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	d := upload(t, e, g)
	r := request.Request{Hops: request.Hops{Fanouts: []int64{4, 4}}, Batch: request.Batch{Seeds: csctest.Array(csctest.Steps(500, 1), 32)}}
	c := with(Call{Stream: s.Handle()}, r)
	c.OutBytes = 1000
	for try := 0; ; try++ {
		m, err := e.pool.Alloc(s, c.OutBytes)
		if err != nil {
			t.Fatal(err)
		}
		call := c
		call.Out = m.Address
		b, err := sample(e, d, call)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Free(s); err != nil {
			t.Fatal(err)
		}
		told := d.Capacity(c.Plan, 500)
		if b.Needed == 0 {
			size := b.Header[batch.WordSize]
			if capacity := b.Header[batch.WordCapacity]; capacity != int64(told) || capacity < size*5/4 || try == 0 {
				t.Errorf("try %d: %d bytes, told %d, the graph knows %d", try, size, capacity, told)
			}
			break
		}
		if b.Needed != told || b.Needed <= c.OutBytes || try > 10 {
			t.Fatalf("try %d: %d bytes were too few, told %d, the graph knows %d", try, c.OutBytes, b.Needed, told)
		}
		c.OutBytes = b.Needed
	}
	// Nobody asked for a batch in the engine's memory.
	b, err := sample(e, d, c)
	if err != nil {
		t.Fatal(err)
	}
	if b.Header[batch.WordCapacity] != 0 {
		t.Errorf("header %v", b.Header)
	}
	if err := b.Memory.Free(b.Stream); err != nil {
		t.Fatal(err)
	}
}
