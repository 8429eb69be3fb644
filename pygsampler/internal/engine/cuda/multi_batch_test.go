package cuda

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// manySeeds are sets of seeds of different sizes, one with repeated ones.
func manySeeds(count int, nodes int64) [][]int64 {
	sizes := []int{33, 0, 700, 1, 6}
	sets := make([][]int64, count)
	for i := range sets {
		sets[i] = make([]int64, sizes[i%len(sizes)])
		for j := range sets[i] {
			sets[i][j] = int64(i*31+j*7) % nodes
			if len(sets[i]) == 6 {
				sets[i][j] = int64(j * j % 5)
			}
		}
	}
	return sets
}

// manyCalls are calls for sets of seeds, numbered from batch 5 on.
func manyCalls(g *csc.Relation, sets [][]int64, like Call) []*Call {
	calls := make([]*Call, len(sets))
	for i, seeds := range sets {
		c := like
		c.Batch.Number, c.Batch.Seeds = uint64(i+5), csctest.Array(seeds, g.Indices.Bits)
		calls[i] = &c
	}
	return calls
}

// arrive waits for a flight and compares its batch with the CPU's.
func (f *Flight) arrive(r *cpu.Request, s gpu.Stream) error {
	b, done, err := f.Wait(-1)
	if err != nil || !done {
		return fmt.Errorf("batch %d: done %v, %w", r.Number, done, err)
	}
	want, err := onCPU(r)
	if err != nil {
		return err
	}
	got, err := read(b, s)
	if err != nil {
		return err
	}
	if !got.Equal(want) {
		return fmt.Errorf("batch %d, %d seeds, fanouts %v:\n got %.300s\nwant %.300s",
			r.Number, r.Seeds.Len(), r.Fanouts, fmt.Sprint(got), fmt.Sprint(want))
	}
	return nil
}

// single is a plan of which no launch makes several batches.
type single struct{ Plan }

// hopsOf is what a plan goes by.
func hopsOf(p Plan) request.Hops {
	if one, is := p.(single); is {
		p = one.Plan
	}
	return p.(*Neighbors).Hops.Hops
}

// requests keeps what the flights forget: seeds are copied when they start.
func requests(g *csc.Relation, calls []*Call) []cpu.Request {
	kept := make([]cpu.Request, len(calls))
	for i, c := range calls {
		kept[i] = cpu.Request{Relation: g, Request: request.Request{Hops: hopsOf(c.Plan), Batch: c.Batch}}
	}
	return kept
}

func checkMany(t *testing.T, e *Engine, s gpu.Stream, g *csc.Relation, d *Graph, calls []*Call) {
	t.Helper()
	kept := requests(g, calls)
	flights, err := e.StartMany(d, calls)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range flights {
		if err := f.arrive(&kept[i], s); err != nil {
			t.Fatal(err)
		}
	}
	checkIdle(t, e)
}

// checkIdle sees that every workspace came back, once.
func checkIdle(t *testing.T, e *Engine) {
	t.Helper()
	seen := map[*Workspace]bool{}
	for _, w := range e.idle {
		seen[w] = true
	}
	if e.flights != 0 || len(e.idle) != e.made || len(seen) != e.made {
		t.Fatalf("%d in flight, %d of %d workspaces idle, %d different ones", e.flights, len(e.idle), e.made, len(seen))
	}
}

func TestMany(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3060, bits, 64, bits == 32)
		for _, count := range []int{0, 1, 5, 37} {
			sets := manySeeds(count, 3060)
			for _, fanouts := range [][]int64{{3, 4, 5}, {32}} {
				for _, replace := range []bool{false, true} {
					for i, grid := range []int{0, 1, 7, 264} {
						r := request.Request{Hops: request.Hops{Fanouts: fanouts, Replace: replace}, Batch: request.Batch{Seed: 1 << 63, Epoch: 7}}
						checkMany(t, e, s, g, d, manyCalls(g, sets, with(Call{Stream: s.Handle(), Own: i%2 == 0, Grid: min(grid, kernels(t, d).resident(d))}, r)))
					}
				}
			}
		}
	}
}

// So many batches as find room together are one launch, in one stream.
func TestManyInOneLaunch(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	room := min(mostBatches, kernels(t, d).resident(d))
	calls := manyCalls(g, manySeeds(2*room+1, 3000), with(Call{Stream: s.Handle(), Own: true}, request.Request{Hops: request.Hops{Fanouts: []int64{4, 4}}}))
	flights, err := e.StartMany(d, calls)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range flights {
		if alone := i == 2*room; alone != (f.host == nil) || !alone && (f.host != flights[i/room*room].host || f.stream != flights[i/room*room].stream) {
			t.Errorf("flight %d of launches of %d: host %p, the first's %p", i, room, f.host, flights[i/room*room].host)
		}
		f.Cancel()
	}
	checkIdle(t, e)
}

// A batch that does not fit is made again, after the first of the launch has ended
// and all that is idle was given back; the others are not.
func TestManyTooSmall(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	for _, own := range []bool{false, true} {
		calls := manyCalls(g, [][]int64{{1, 2, 3}, make([]int64, 600), {4}}, with(Call{Stream: s.Handle(), Own: own}, request.Request{Hops: request.Hops{Fanouts: []int64{9, 9}, Replace: own}}))
		for i := range 600 {
			calls[1].Batch.Seeds.I32[i] = int32(i * 3)
		}
		calls[1].NumSeeds = 600
		d.learn(shapeOf(calls[1].Plan, calls[1].NumSeeds), Needs{Out: 64, Rows: 1, Edges: 1, Arrived: true})
		kept := requests(g, calls)
		flights, err := e.StartMany(d, calls)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, 2} {
			if err := flights[i].arrive(&kept[i], s); err != nil {
				t.Fatal(err)
			}
			if err := e.Trim(); err != nil {
				t.Fatal(err)
			}
			if again := flights[i].tries > 0; again != (i == 1) {
				t.Errorf("flight %d: made again %d times", i, flights[i].tries)
			}
		}
		checkIdle(t, e)
	}
}

// The same in the caller's memory, which cannot grow.
func TestManyOutTooSmall(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	m, err := e.pool.Alloc(s, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	calls := manyCalls(g, manySeeds(4, 3000), with(Call{Stream: s.Handle(), Own: true}, request.Request{Hops: request.Hops{Fanouts: []int64{4, 4}}}))
	calls[2].Out, calls[2].OutBytes = m.Address, 1000
	kept := requests(g, calls)
	flights, err := e.StartMany(d, calls)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range flights {
		if i != 2 {
			err = errors.Join(err, f.arrive(&kept[i], s))
		} else if b, _, failed := f.Wait(-1); failed != nil || b.Needed <= 1000 {
			t.Errorf("needed %d, %v", b.Needed, failed)
		}
	}
	if err = errors.Join(err, m.Free(s)); err != nil {
		t.Fatal(err)
	}
	checkIdle(t, e)
}

func TestManyWithABadSeed(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 64, 64, false)
	for range 2 {
		sets := manySeeds(4, 3000)
		sets[2][5] = 3000
		calls := manyCalls(g, sets, with(Call{Stream: s.Handle(), Own: true}, request.Request{Hops: request.Hops{Fanouts: []int64{4, 4}}}))
		kept := requests(g, calls)
		flights, err := e.StartMany(d, calls)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range flights {
			err := f.arrive(&kept[i], s)
			if i == 2 && (!errors.Is(err, request.ErrIndex) || !strings.HasSuffix(err.Error(), "seeds[5]: expected an id in [0, 3000), got 3000")) || i != 2 && err != nil {
				t.Errorf("flight %d: %v", i, err)
			}
		}
		checkIdle(t, e)
	}
}

// Calls that no launch of several can make stand between those that one can.
func TestManyOfDifferentKinds(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(400, 1), 410, 32, 64, false)
	k := kernels(t, d)
	k.knownEdges = 0
	calls := manyCalls(g, manySeeds(20, 410), with(Call{Stream: s.Handle(), Own: true}, request.Request{Hops: request.Hops{Fanouts: []int64{9, 8}}}))
	same, all := Hops{request.Hops{Fanouts: []int64{9, 8}}}, &Neighbors{Hops{request.Hops{Fanouts: []int64{-1, 40}}}}
	for i, p := range map[int]Plan{
		2: single{&Neighbors{same}}, 5: single{&Neighbors{same}}, 6: single{&Neighbors{same}}, 7: &Neighbors{same}, 11: all, 12: all,
		9:  &Neighbors{Hops{request.Hops{Fanouts: []int64{9, 7}}}},
		14: &Neighbors{Hops{request.Hops{Fanouts: []int64{9, 8}, Replace: true}}},
	} {
		calls[i].Plan = p
	}
	calls[15].Own = false
	calls[16].Batch.Seed = 77
	checkMany(t, e, s, g, d, calls)
	k.binEdges, k.binBytes = 0, 0
	checkMany(t, e, s, g, d, manyCalls(g, manySeeds(3, 410), with(Call{Stream: s.Handle(), Own: true}, request.Request{Hops: request.Hops{Fanouts: []int64{9, 8}}})))
}

// A launch that fails gives everything back, and so do those before it.
func TestManyThatDoNotLaunch(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	like := with(Call{Stream: s.Handle(), Own: true, Grid: 1}, request.Request{Hops: request.Hops{Fanouts: []int64{4, 4}}})
	checkMany(t, e, s, g, d, manyCalls(g, manySeeds(6, 3000), like))
	k := kernels(t, d)
	used, together := e.pool.Used(), k.together
	for _, own := range []bool{false, true} {
		like.Own = own
		calls := manyCalls(g, manySeeds(6, 3000), like)
		replacing := &Neighbors{Hops{request.Hops{Fanouts: []int64{4, 4}, Replace: true}}}
		for _, c := range calls[3:] {
			// More blocks than the device holds, in a launch of its own kind.
			c.Grid, c.Plan = 1<<12, replacing
		}
		k.together = 1 << 12
		flights, err := e.StartMany(d, calls)
		k.together = together
		if err == nil || flights != nil {
			t.Fatalf("%d flights, %v", len(flights), err)
		}
		checkIdle(t, e)
		if err := s.Synchronize(); err != nil {
			t.Fatal(err)
		}
		if after := e.pool.Used(); after != used {
			t.Errorf("the pool held %d bytes, then %d", used, after)
		}
	}
	calls := manyCalls(g, manySeeds(3, 3000), like)
	calls[2].NumSeeds, calls[2].Seeds = 1<<31, 1
	if _, err := e.StartMany(d, calls); !errors.Is(err, request.ErrOverflow) {
		t.Error(err)
	}
	checkMany(t, e, s, g, d, manyCalls(g, manySeeds(6, 3000), like))
}

// Tags that run out begin anew in the workspaces of which they do.
func TestManyRunsOutOfTags(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	like := with(Call{Stream: s.Handle(), Own: true}, request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}})
	checkMany(t, e, s, g, d, manyCalls(g, manySeeds(4, 3000), like))
	for i, w := range e.idle {
		SpaceOf[hopSpace](w).narrow.next = uint32(i)
	}
	for range 8 {
		checkMany(t, e, s, g, d, manyCalls(g, manySeeds(4, 3000), like))
	}
}

func TestInHalf(t *testing.T) {
	for _, c := range []struct {
		free, out, space, idle uint64
		want                   int64
	}{
		{free: 1000, out: 10, space: 90, want: 5},
		{free: 1000, out: 10, space: 90, idle: 2, want: 6}, // 2 batches, and 4 with their space
		{free: 1000, out: 100, space: 900, want: 0},
		{free: 1000, out: 100, space: 900, idle: 16, want: 5},
		{free: 1000, space: 100, idle: 3, want: 8},
	} {
		if got := inHalf(c.free, c.out, c.space, c.idle); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// A budget has room for as many batches as it has bytes for, and for one at least.
func TestTogetherInABudget(t *testing.T) {
	e, _ := device(t)
	_, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3000, 32, 64, false)
	plan := with(Call{}, request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}}).Plan
	together := func(most int64, budget uint64) int64 {
		n, err := d.Together(plan, 64, most, budget)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := together(32, 0); got != 32 {
		t.Errorf("without a budget: got %d of 32", got)
	}
	// The bytes of a batch are those that the second one needs.
	each := uint64(1)
	for together(32, each) < 2 {
		each++
		if each > 1<<24 {
			t.Fatal("no budget has room for two")
		}
		each += each / 64
	}
	each /= 2
	for _, n := range []uint64{1, 2, 5, 31} {
		if got := together(32, n*each+each/2); got != int64(n) {
			t.Errorf("%d bytes: got %d, expected %d", n*each+each/2, got, n)
		}
	}
	if got := together(32, 1); got != 1 {
		t.Errorf("a byte: got %d, expected 1", got)
	}
	if got := together(4, 1<<40); got != 4 {
		t.Errorf("all bytes: got %d, expected 4", got)
	}
}
