package cuda

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	researchcpu "github.com/pygsampler/pygsampler/pygsampler/internal/research/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// reservoirs are plans of mode "reservoir" by the names that tests have for them: what changes
// times, and no batch.
var reservoirs = map[string]Reservoir{
	"reservoir":                   {Threshold: 30, SnakeBelow: -1, Schedule: true},
	"reservoir, all off":          {Threshold: NoRow},
	"reservoir, schedule":         {Threshold: NoRow, SnakeBelow: 1 << 20, Schedule: true},
	"reservoir, shared":           {Threshold: 0},
	"reservoir, shared, schedule": {Threshold: 0, SnakeBelow: 0, Schedule: true},
	"reservoir, parts":            {Threshold: 12},
	"reservoir, two streams":      {Threshold: 20, SnakeBelow: 3, Schedule: true, Apart: true},
}

func ofReservoirs(mode string) bool { return strings.HasPrefix(mode, "reservoir") }

// reservoirOf is the plan of such a name for some hops.
func reservoirOf(hops cuda.Hops, mode string) *Reservoir {
	p, ok := reservoirs[mode]
	if !ok {
		panic(mode)
	}
	p.Hops = hops
	p.Replace = false
	return &p
}

// Grids mean nothing to mode "reservoir".
func TestReservoir(t *testing.T)      { testMode(t, "reservoir", 0) }
func TestReservoirApart(t *testing.T) { testMode(t, "reservoir, two streams", 0) }

// No switch and neither threshold changes a byte.
func TestReservoirSwitches(t *testing.T) {
	e, s := device(t)
	every, all := csctest.EveryDegree()
	for mode := range reservoirs {
		t.Run(mode, func(t *testing.T) {
			for _, bits := range []int{32, 64} {
				g, d := graphOf(t, e, every, 71, bits, 96-bits, bits == 32)
				for fanout := int64(1); fanout <= 40; fanout += 3 {
					r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{fanout}}, Batch: request.Batch{Seed: uint64(fanout), Seeds: csctest.Array(all, bits)}}}
					modeCheck(t, e, s, d, r, cuda.Call{}, mode, 0)
				}
				g, d = graphOf(t, e, csctest.RandomRows(3000, 1), 3060, bits, 64, bits == 64)
				// 4000 slots find no room in shared memory.
				for _, fanouts := range [][]int64{{3, 4, 5}, {10, 0}, {4000, -1}, {200, 20}} {
					r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: fanouts}, Batch: request.Batch{Seed: 9, Epoch: 2, Number: 1<<39 + 5, Seeds: csctest.Array(csctest.Mixed(2500), bits)}}}
					modeCheck(t, e, s, d, r, cuda.Call{}, mode, 0)
				}
			}
		})
	}
}

// Thresholds of every degree and every number of blocks, of a hop whose rows fill some blocks.
func TestReservoirThresholds(t *testing.T) {
	e, s := device(t)
	every, all := csctest.EveryDegree()
	g, d := graphOf(t, e, every, 71, 32, 64, false)
	r := cpu.Request{Relation: g, Draw: researchcpu.Reservoirs, Request: request.Request{Hops: request.Hops{Fanouts: []int64{7}}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array(slices.Concat(all, all), 32)}}}
	want, err := onCPU(&r)
	if err != nil {
		t.Fatal(err)
	}
	for threshold := range uint64(73) {
		for below := range int64(8) {
			for _, schedule := range []bool{false, true} {
				p := &Reservoir{Hops: cuda.Hops{Hops: r.Hops}, Threshold: threshold, SnakeBelow: 3 * below, Schedule: schedule, Apart: threshold%2 == 0}
				b, err := sample(e, d, cuda.Call{Plan: p, Batch: r.Batch, Stream: s.Handle()})
				if err != nil {
					t.Fatal(err)
				}
				got, err := read(b, s)
				if err != nil {
					t.Fatal(err)
				}
				if !got.Equal(want) {
					t.Fatalf("%+v:\n got %.300s\nwant %.300s", p, fmt.Sprint(got), fmt.Sprint(want))
				}
			}
		}
	}
}

// Positions of graphs with more than 2^32 edges have slots of 64 bits. Such a graph is not
// made here; the engine is told that this one is.
func TestReservoirWideSlots(t *testing.T) {
	e, s := device(t)
	every, all := csctest.EveryDegree()
	g, d := graphOf(t, e, every, 71, 64, 64, false)
	r := cpu.Request{Relation: g, Draw: researchcpu.Reservoirs, Request: request.Request{Hops: request.Hops{Fanouts: []int64{9, 6}}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array(all, 64)}}}
	want, err := onCPU(&r)
	if err != nil {
		t.Fatal(err)
	}
	d.Edges = 1 << 40
	for mode := range reservoirs {
		b, err := sample(e, d, with(cuda.Call{Stream: s.Handle()}, r.Request, mode))
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(b, s)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(want) {
			t.Errorf("%s:\n got %.300s\nwant %.300s", mode, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}

func TestReservoirRefusesReplacement(t *testing.T) {
	p := &Reservoir{Hops: cuda.Hops{Hops: request.Hops{Fanouts: []int64{2}, Replace: true}}}
	if err := p.Check(nil, nil); !errors.Is(err, request.ErrValue) {
		t.Errorf("got %v", err)
	}
}

// watched is a plan that notes how many rows of a hop were said to be in the high part.
type watched struct {
	*Reservoir
	high *int64
}

type watchedHop struct {
	reservoirHop
	high *int64
}

func (p watched) Launch(f *cuda.Flight) error {
	k, err := cuda.Cached(f.Engine(), "reservoir", loadReservoir)
	if err != nil {
		return err
	}
	return launchHops(&p.Hops, f, k.bsp, &watchedHop{reservoirHop{plan: p.Reservoir, kernels: k, wide: f.Graph().Wide()}, p.high})
}

func (h *watchedHop) draw(b *bspBatch, rule request.Rule, edges int64) error {
	*h.high = b.ReportWords()[reservoirHigh]
	return h.reservoirHop.draw(b, rule, edges)
}

// The order has every row once, the high part first, and within it and the low part no row
// before one of a degree that is larger by more than a quarter.
func TestReservoirOrder(t *testing.T) {
	e, s := device(t)
	rows := csctest.RandomRows(5000, 3)
	for v, degree := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 19, 20, 31, 32, 1000, 40000} {
		rows[v] = csctest.Steps(degree, 1)
		for i := range rows[v] {
			rows[v][i] %= 5000
		}
	}
	g, d := graphOf(t, e, rows, 5000, 32, 64, false)
	r := request.Request{Hops: request.Hops{Fanouts: []int64{3}}, Batch: request.Batch{Seeds: csctest.Array(csctest.Steps(5000, 1), 32)}}
	degree := func(v uint32) int64 { return g.Indptr.Element(int64(v)+1) - g.Indptr.Element(int64(v)) }
	for _, schedule := range []bool{true, false} {
		for _, threshold := range []int64{0, 1, 2, 3, 4, 5, 6, 9, 17, 18, 33, 900, 40000, 40001, 1 << 40} {
			p := &Reservoir{Hops: cuda.Hops{Hops: r.Hops}, Threshold: uint64(threshold), SnakeBelow: -1, Schedule: schedule}
			high := int64(-1)
			b, err := sample(e, d, cuda.Call{Plan: watched{p, &high}, Batch: r.Batch, Stream: s.Handle()})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Memory.Free(s); err != nil {
				t.Fatal(err)
			}
			w := idle(t, e, d)
			want := int64(0)
			for v := range uint32(5000) {
				if degree(v) >= threshold {
					want++
				}
			}
			if high != want {
				t.Errorf("schedule %v, threshold %d: %d rows in the high part, want %d", schedule, threshold, high, want)
			}
			if !schedule && threshold == 0 {
				continue // one part, as it comes
			}
			order := make([]uint32, 5000)
			if err := s.Download(unsafe.Pointer(&order[0]), cuda.SpaceOf[reservoirSpace](w).order.Address, 4*5000); err != nil {
				t.Fatal(err)
			}
			if err := s.Synchronize(); err != nil {
				t.Fatal(err)
			}
			least := int64(math.MaxInt64)
			for i, v := range order {
				if at := degree(v); (int64(i) < high) != (at >= threshold) {
					t.Fatalf("schedule %v, threshold %d: place %d of %d has degree %d", schedule, threshold, i, high, at)
				} else if schedule && at > least*5/4 {
					t.Fatalf("schedule %v, threshold %d: place %d has degree %d after one of %d", schedule, threshold, i, at, least)
				} else {
					least = min(least, max(at, 1))
				}
			}
			slices.Sort(order)
			for i, v := range order {
				if int(v) != i {
					t.Fatalf("schedule %v, threshold %d: row %d is not there once", schedule, threshold, i)
				}
			}
		}
	}
}

// A threshold that is left to the batch gives the high part the classes of largest degrees that
// find room in shared memory, and no part of one.
func TestReservoirDerivedThreshold(t *testing.T) {
	e, s := device(t)
	k, err := cuda.Cached(e, "reservoir", loadReservoir)
	if err != nil {
		t.Fatal(err)
	}
	classOf := func(degree int64) int64 {
		exponent := int64(0)
		for degree>>exponent > 7 {
			exponent++
		}
		return exponent<<32 + degree>>exponent
	}
	for _, shape := range []struct{ rows, degree int64 }{{40, 3}, {20_000, 3}, {20_000, 90}} {
		rows := make([][]int64, shape.rows)
		for v := range shape.rows {
			for i := range shape.degree + v%97*v%13 {
				rows[v] = append(rows[v], (v+i*7)%shape.rows)
			}
		}
		g, d := graphOf(t, e, rows, shape.rows, 32, 64, false)
		for _, fanout := range []int64{3, 40} {
			r := cpu.Request{Relation: g, Draw: researchcpu.Reservoirs, Request: request.Request{Hops: request.Hops{Fanouts: []int64{fanout}}, Batch: request.Batch{Seed: 4, Seeds: csctest.Array(csctest.Steps(int(shape.rows), 1), 32)}}}
			want, err := onCPU(&r)
			if err != nil {
				t.Fatal(err)
			}
			blocks, err := k.draw[0].Occupancy(drawThreads, int(sharedOf(r.Rule(0), d)))
			if err != nil {
				t.Fatal(err)
			}
			most := int64(blocks * e.Context().Properties().Multiprocessors * drawThreads / 32)
			classes, wantHigh := map[int64]int64{}, int64(0)
			for _, row := range rows {
				classes[classOf(int64(len(row)))]++
			}
			for _, class := range slices.Backward(slices.Sorted(maps.Keys(classes))) {
				if wantHigh+classes[class] > most {
					break
				}
				wantHigh += classes[class]
			}
			high := int64(-1)
			p := &Reservoir{Hops: cuda.Hops{Hops: r.Hops}, Threshold: 1, Derived: true, SnakeBelow: -1, Schedule: true}
			b, err := sample(e, d, cuda.Call{Plan: watched{p, &high}, Batch: r.Batch, Stream: s.Handle()})
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(b, s)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Equal(want) {
				t.Errorf("%+v, fanout %d: another batch", shape, fanout)
			}
			if high != wantHigh {
				t.Errorf("%+v, fanout %d: %d rows in the high part, want %d of at most %d", shape, fanout, high, wantHigh, most)
			}
		}
	}
}
