package negatives

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
)

// lent is a crew of so many workers.
type lent int

func (l lent) Borrow(n int) int { return min(n, int(l)) }
func (l lent) Return(int)       {}

// drawn is what a request gives, in so many bits.
func drawn(t testing.TB, r Request, bits int, workers lent) []int64 {
	t.Helper()
	r.Out = csctest.Array(make([]int64, r.Rows*r.Count), bits)
	if err := r.Draw(workers); err != nil {
		t.Fatal(err)
	}
	out := make([]int64, r.Out.Len())
	for i := range out {
		out[i] = r.Out.Element(int64(i))
	}
	return out
}

// tableOf is the alias table of a graph.
func tableOf(t testing.TB, g *csc.Relation, power float64) []uint64 {
	t.Helper()
	m, err := (&Table{Relation: g, Power: power}).Run()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	return slices.Clone(memory.ViewAt[uint64](m, 0, g.NumNodes))
}

// Each number is the draw that docs/developer/walk-draws.md names, whatever the places beside it, the width and
// the workers.
func TestTheRule(t *testing.T) {
	g := csctest.Graph(csctest.RandomRows(700, 5), 700, 32, 64, false)
	for name, alias := range map[string][]uint64{"uniform": nil, "by degree": tableOf(t, g, .75)} {
		for _, slots := range []int64{1, 7} {
			for _, count := range []int64{1, 3, 40} {
				r := Request{Seed: 1<<63 + 5, Epoch: 3, Batch: 1<<39 + 1, Site: 2, Below: g.NumNodes, Alias: alias, Rows: 2100, Slots: slots, Count: count}
				want, stream := make([]int64, r.Rows*count), rng.NewStream(r.Seed, r.Epoch, r.Batch, 2, 4)
				for i := range want {
					place := int64(i) / count
					x := rng.Draw(stream.State(uint64(place/slots)), int(place%slots*count)+i%int(count))
					if want[i] = int64(rng.Below(x, uint64(r.Below))); alias != nil {
						want[i] = rng.Weights{Alias: alias}.AliasPosition(x)
					}
				}
				for _, bits := range []int{32, 64} {
					for _, workers := range []lent{0, 5} {
						if got := drawn(t, r, bits, workers); !slices.Equal(got, want) {
							t.Fatalf("%s, %d slots, count %d, %d bits: other numbers", name, slots, count, bits)
						}
					}
				}
				some := r
				some.Rows, some.Places = 5, csctest.Array([]int64{2099, 0, 0, 77, 1000}, 64)
				for i, got := range drawn(t, some, 64, 0) {
					if place := some.Places.Element(int64(i) / count); got != want[place*count+int64(i)%count] {
						t.Fatalf("%s: place %d by itself gives %d", name, place, got)
					}
				}
			}
		}
	}
}

// The chances are those of the degrees to the power, a vertex without in-edges as one with one.
func TestChances(t *testing.T) {
	degrees := []int64{0, 1, 2, 3, 10, 100, 0, 16}
	indptr := []int64{0}
	for _, d := range degrees {
		indptr = append(indptr, indptr[len(indptr)-1]+d)
	}
	indices := make([]int64, indptr[len(indptr)-1])
	// One vertex more, beyond the rows.
	g := &csc.Relation{Indptr: csctest.Array(indptr, 64), Indices: csctest.Array(indices, 32), NumNodes: 9}
	for _, power := range []float64{0, .5, .75, .8, 1} {
		by, total := make([]float64, g.NumNodes), 0.0
		for v := range by {
			degree := 1.0
			if v < len(degrees) {
				degree = max(float64(degrees[v]), 1)
			}
			by[v] = math.Pow(degree, power)
			total += by[v]
		}
		r := Request{Seed: 9, Below: g.NumNodes, Alias: tableOf(t, g, power), Rows: 20_000, Slots: 3, Count: 10}
		if power == 0 {
			r.Alias = nil
		}
		counts := make([]float64, g.NumNodes)
		for _, v := range drawn(t, r, 32, 3) {
			counts[v]++
		}
		x := 0.0
		for v := range counts {
			want := by[v] / total * float64(r.Rows*r.Count)
			x += (counts[v] - want) * (counts[v] - want) / want
		}
		uniformity.Plausible(t, x, len(counts)-1, "power %v", power)
	}
}

// Draws of walks, places, numbers of a place, sites, batches and epochs are independent.
func TestIndependence(t *testing.T) {
	const below = 8
	base := Request{Seed: 4, Below: below, Rows: 40_000, Slots: 5, Count: 2}
	of := drawn(t, base, 64, 0)
	site, batch, epoch, seed := base, base, base, base
	site.Site, batch.Batch, epoch.Epoch, seed.Seed = 1, 1, 1, 5
	for name, pair := range map[string]func(i int) (int64, int64){
		"number":   func(i int) (int64, int64) { return of[2*i], of[2*i+1] },
		"place":    func(i int) (int64, int64) { return of[2*i], of[(2*i+2)%len(of)] },
		"walk":     func(i int) (int64, int64) { return of[2*i], of[(2*i+10)%len(of)] },
		"site":     other(of, drawn(t, site, 64, 0)),
		"batch":    other(of, drawn(t, batch, 64, 0)),
		"epoch":    other(of, drawn(t, epoch, 64, 0)),
		"the seed": other(of, drawn(t, seed, 64, 0)),
	} {
		counts := make([]float64, below*below)
		for i := range int(base.Rows) {
			a, b := pair(i)
			counts[a*below+b]++
		}
		uniformity.Plausible(t, uniformity.Uniform(counts), len(counts)-1, "another %s", name)
	}
}

func other(a, b []int64) func(int) (int64, int64) {
	return func(i int) (int64, int64) { return a[i], b[i] }
}

func TestPower(t *testing.T) {
	for x := 1.0; x < 1e12; x = x*1.7 + 1 {
		for _, p := range []float64{0, 1. / 3, .5, .7, .75, math.Nextafter(1, 0), 1} {
			if got, want := power(x, p), math.Pow(x, p); math.Abs(got/want-1) > 1e-13 {
				t.Errorf("%v to %v is %v, want %v", x, p, got, want)
			}
		}
	}
	if got := power(16, .75); got != 8 {
		t.Errorf("16 to 3/4 is %v, want 8", got)
	}
	p := powers{power: .75}
	for _, degree := range []int64{0, 1, 1023, 1024, 1023, 1 << 40} {
		if got, want := p.of(degree), power(max(float64(degree), 1), .75); got != want {
			t.Errorf("that of degree %d is %v, want %v", degree, got, want)
		}
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	for want, r := range map[string]Request{
		"rows and a count": {Rows: -1, Slots: 1},
		"slots >= 1":       {Rows: 1, Count: 1, Below: 1},
		"with nodes":       {Rows: 1, Count: 1, Slots: 1},
		"an epoch":         {Rows: 1, Count: 1, Slots: 1, Below: 1, Epoch: 1 << 24},
		"fewer draws":      {Rows: 1, Count: 4, Slots: 1 << 61, Below: 1},
	} {
		if err := r.Draw(lent(0)); !errors.Is(err, request.ErrValue) || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error with %q, got %v", want, err)
		}
	}
	if err := (&Request{Slots: 1}).Draw(lent(0)); err != nil {
		t.Error(err)
	}
	g := csctest.Graph(csctest.RandomRows(10, 1), 10, 64, 32, false)
	for _, power := range []float64{-.1, 1.1, math.NaN()} {
		if _, err := (&Table{Relation: g, Power: power}).Run(); !errors.Is(err, request.ErrValue) {
			t.Errorf("power %v: expected an error, got %v", power, err)
		}
	}
	halted := Table{Relation: g, Power: .5}
	halted.Halt()
	if _, err := halted.Run(); !errors.Is(err, csc.ErrStopped) {
		t.Errorf("expected %v, got %v", csc.ErrStopped, err)
	}
	whole := Table{Relation: g, Power: .5}
	m, err := whole.Run()
	if err != nil {
		t.Fatal(err)
	}
	m.Release()
	if done, total := whole.Progress(); done != total || total == 0 {
		t.Errorf("%d of %d done at the end", done, total)
	}
}
