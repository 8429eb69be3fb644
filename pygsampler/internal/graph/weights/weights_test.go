package weights

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
)

// tables are those of a row.
func tables(weights ...float64) rng.Weights {
	w := rng.Weights{Alias: make([]uint64, len(weights)), Sums: make([]uint64, len(weights))}
	new(Scratch).BuildTables(weights, w.Alias, w.Sums)
	return w
}

// law is the chance of each draw of an alias table.
func law(alias []uint64) []float64 {
	p := make([]float64, len(alias))
	for i, entry := range alias {
		own := float64(uint32(entry)) / (1 << 32)
		p[i] += own / float64(len(alias))
		p[entry>>32] += (1 - own) / float64(len(alias))
	}
	return p
}

// Awkward rows, by name.
func rows() map[string][]float64 {
	many := make([]float64, 5000)
	pareto := make([]float64, 700)
	for i := range many {
		many[i] = 1
	}
	for i := range pareto {
		pareto[i] = math.Pow((float64(i)+0.5)/700, -1/1.2)
	}
	heavy := slices.Clone(many)
	heavy[77] = 1e9
	return map[string][]float64{
		"one": {3}, "two": {1, 3}, "three": {1, 2, 3}, "equal": many, "pareto": pareto, "heavy": heavy,
		"subnormal": {5e-324, 1e-323, 5e-324}, "large": {1e300, 3e300, math.MaxFloat64}, "tiny": {1, 1e-300},
	}
}

// The tables have the law of the weights.
func TestRow(t *testing.T) {
	for name, weights := range rows() {
		w, total := tables(weights...), 0.0
		largest := slices.Max(weights)
		for _, x := range weights {
			total += x / largest
		}
		before := uint64(0)
		n := float64(len(weights))
		// Each edge loses less than a unit.
		lost := math.Ldexp(n, bits.Len(uint(n))-room+1)
		for i, p := range law(w.Alias) {
			want := weights[i] / largest / total
			if math.Abs(p-want) > 2/n/(1<<32)+lost {
				t.Errorf("%s: %g of edge %d by the alias table, want %g", name, p, i, want)
			}
			own := w.Sums[i] - before
			before = w.Sums[i]
			if sum := float64(own) / float64(w.Sums[len(weights)-1]); math.Abs(sum-want) > 1e-15+lost || own == 0 {
				t.Errorf("%s: %g of edge %d by the sums, want %g", name, sum, i, want)
			}
		}
		if bits.Len64(before) > room+1 {
			t.Errorf("%s: a sum of %d bits", name, bits.Len64(before))
		}
		// Scaling by a power of two changes nothing, where no weight leaves the range of doubles.
		if largest < 1e100 && slices.Min(weights) > 1e-200 {
			for _, by := range []float64{math.Ldexp(1, -60), 8} {
				scaled := slices.Clone(weights)
				for i := range scaled {
					scaled[i] *= by
				}
				if again := tables(scaled...); !slices.Equal(w.Alias, again.Alias) || !slices.Equal(w.Sums, again.Sums) {
					t.Errorf("%s: other tables of weights times %g", name, by)
				}
			}
		}
	}
}

// subsets is the chance of each set of k edges by successive sampling.
func subsets(weights []float64, k int, set uint64, p float64, found map[uint64]float64) {
	if bits.OnesCount64(set) == k {
		found[set] += p
		return
	}
	left := 0.0
	for i, w := range weights {
		if set>>i&1 == 0 {
			left += w
		}
	}
	for i, w := range weights {
		if set>>i&1 == 0 && w > 0 {
			subsets(weights, k, set|1<<i, p*w/left, found)
		}
	}
}

// Sets of edges against their exact chances; excluded edges are as if they were not there.
func TestSuccessiveSampling(t *testing.T) {
	for _, c := range []struct {
		weights  []float64
		k        int
		excluded []int64
	}{
		{[]float64{1, 2, 3}, 2, nil}, {[]float64{1, 2, 3}, 1, nil},
		{[]float64{1, 1, 2, 4}, 2, nil}, {[]float64{1, 1, 2, 4}, 3, nil},
		{[]float64{1000, 1, 2, 3, 4}, 3, nil}, {[]float64{1, 1, 1, 1, 1, 1}, 3, nil},
		{[]float64{5, 1, 7, 2, 9, 3, 4}, 3, []int64{2, 4}}, {[]float64{1e9, 1, 2, 3, 4}, 2, []int64{0}},
	} {
		w := tables(c.weights...)
		left := slices.Clone(c.weights)
		for _, p := range c.excluded {
			left[p] = 0
		}
		want := map[uint64]float64{}
		subsets(left, c.k, 0, 1, want)
		const trials = 60000
		got := map[uint64]float64{}
		var chooser rng.Chooser
		pos := make([]int64, c.k)
		stream := rng.NewStream(7, 0, 0, 0, rng.Neighbors)
		for v := range uint64(trials) {
			chooser.Weighted(pos, w, stream.State(v), c.excluded, false, int64(c.k), 0)
			set := uint64(0)
			for _, p := range pos {
				set |= 1 << p
			}
			got[set]++
		}
		x := 0.0
		for set, p := range want {
			x += (got[set] - trials*p) * (got[set] - trials*p) / (trials * p)
			delete(got, set)
		}
		if len(got) > 0 {
			t.Errorf("%+v: sets %v, which cannot be", c, got)
		}
		if len(want) > 1 {
			uniformity.Plausible(t, x, len(want)-1, "%+v", c)
		}
	}
	// The inclusion that algorithms are told by: 5/12, 11/15, 17/20.
	want := map[uint64]float64{}
	subsets([]float64{1, 2, 3}, 2, 0, 1, want)
	if p := want[3] + want[5]; math.Abs(p-5.0/12) > 1e-15 {
		t.Errorf("inclusion %g", p)
	}
}

// The steps that an engine takes for many rows at a time choose what Weighted does.
func TestSteps(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	var a, b rng.Chooser
	degrees := []int{511, 512, 513, 700, 3000}
	for n := 2; n <= 70; n++ {
		degrees = append(degrees, n)
	}
	again := 0
	for _, n := range degrees {
		for _, tail := range []float64{0, 1.2, 0.2} {
			weights := make([]float64, n)
			for i := range weights {
				weights[i] = 1
				if tail > 0 {
					weights[i] = math.Pow(1-draw.Float64(), -1/tail)
				}
			}
			w := tables(weights...)
			for k := 1; k < min(n, rng.Scanned+1); k++ {
				state := draw.Uint64()
				want, got, coins := make([]int64, k), make([]int64, k), make([]uint32, k)
				a.Weighted(want, w, state, nil, false, int64(k), 0)
				rng.Slots(got, coins, state, int64(n))
				if refused := w.TossOnce(got, coins); refused != 0 {
					w.FetchSpare(bits.OnesCount32(refused), state, int64(k))
					b.Again(got, w, state, refused)
					again++
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%d of %d, tail %g: %v, want %v", k, n, tail, got, want)
				}
			}
		}
	}
	if again < 1000 {
		t.Errorf("only %d rows had refused draws", again)
	}
}

// With replacement, each draw by itself, around excluded edges too; any part of a row.
func TestWithReplacement(t *testing.T) {
	weights := []float64{1, 2, 3, 4, 90}
	w := tables(weights...)
	for _, excluded := range [][]int64{nil, {4}, {0, 4}} {
		left := slices.Clone(weights)
		for _, p := range excluded {
			left[p] = 0
		}
		const k, trials = 40, 3000
		counts := make([]float64, 5)
		var chooser rng.Chooser
		pos := make([]int64, k)
		stream := rng.NewStream(9, 0, 0, 0, rng.Neighbors)
		for v := range uint64(trials) {
			state := stream.State(v)
			chooser.Weighted(pos, w, state, excluded, true, k, 0)
			for _, p := range pos {
				counts[p]++
			}
			// In two parts, one after the other.
			parts := make([]int64, k)
			chooser.Weighted(parts[:k/2], w, state, excluded, true, k, 0)
			chooser.Weighted(parts[k/2:], w, rng.Advance(state, k/2), excluded, true, k, k/2)
			if !slices.Equal(parts, pos) {
				t.Fatalf("row %d: %v, in parts %v", v, pos, parts)
			}
		}
		total, x, kinds := 0.0, 0.0, -1
		for _, l := range left {
			total += l
		}
		for i, l := range left {
			want := k * trials * l / total
			if l == 0 {
				if counts[i] > 0 {
					t.Errorf("excluded %v: edge %d was drawn", excluded, i)
				}
				continue
			}
			x += (counts[i] - want) * (counts[i] - want) / want
			kinds++
		}
		uniformity.Plausible(t, x, kinds, "excluded %v", excluded)
	}
}

// All but one of many: the edge that is left out.
func TestLargeFanout(t *testing.T) {
	for _, n := range []int{33, 70} {
		weights := make([]float64, n)
		for i := range weights {
			weights[i] = 1
		}
		weights[5] = 3
		w := tables(weights...)
		// The heavy one is left out where each of the others came before it.
		heavy := 1.0
		for j := range n - 1 {
			heavy *= float64(n-1-j) / float64(n-1-j+3)
		}
		const trials = 20000
		var chooser rng.Chooser
		pos := make([]int64, n-1)
		stream := rng.NewStream(3, 0, 0, 0, rng.Neighbors)
		out := 0.0
		for v := range uint64(trials) {
			chooser.Weighted(pos, w, stream.State(v), nil, false, int64(n-1), 0)
			sorted := slices.Clone(pos)
			slices.Sort(sorted)
			if len(slices.Compact(sorted)) != n-1 {
				t.Fatalf("row %d: %v", v, pos)
			}
			if !slices.Contains(pos, 5) {
				out++
			}
		}
		sigma := math.Sqrt(trials * heavy * (1 - heavy))
		if math.Abs(out-trials*heavy) > 4*sigma {
			t.Errorf("%d of %d: the heavy edge left out %g times, want %g +- %g", n-1, n, out, trials*heavy, sigma)
		}
	}
}

// build is Build of a graph and weights by edge id.
func build(g *csc.Relation, weights []float64, mask bool) (memory.Memory, error) {
	b := &Build{Relation: g, Len: int64(len(weights)), Name: "w", Mask: mask, Value: func(id int64) float64 { return weights[id] }}
	return b.Run()
}

// Every row keeps its positive edges, in order, with their ids, and has its own tables.
func TestBuild(t *testing.T) {
	lists := csctest.RandomRows(3000, 5)
	for _, bits := range []int{32, 64} {
		for _, withIDs := range []bool{false, true} {
			g := csctest.Graph(lists, 3000, bits, 64, withIDs)
			weights := make([]float64, g.NumEdges())
			for i := range weights {
				weights[i] = float64(i % 5)
			}
			for _, mask := range []bool{false, true} {
				m, err := build(g, weights, mask)
				if err != nil {
					t.Fatal(err)
				}
				words := memory.ViewAt[int64](m, 0, TablesWords)
				indptr := memory.ViewAt[int64](m, words[TablesIndptr], g.NumRows()+1)
				indices := arrayAt(m, words[TablesIndices], words[TablesNumEdges], bits)
				ids := arrayAt(m, words[TablesEdgeIDs], words[TablesNumEdges], int(words[TablesEdgeIDBits]))
				for v := range g.NumRows() {
					at, own := indptr[v], []float64(nil)
					for p := g.Indptr.Element(v); p < g.Indptr.Element(v+1); p++ {
						id := p
						if withIDs {
							id = g.EdgeIDs.Element(p)
						}
						if weights[id] > 0 {
							if indices.Element(at) != g.Indices.Element(p) || ids.Element(at) != id {
								t.Fatalf("row %d: another edge at %d", v, at)
							}
							at++
							own = append(own, weights[id])
						}
					}
					if at != indptr[v+1] {
						t.Fatalf("row %d ends at %d, want %d", v, indptr[v+1], at)
					}
					if want := tables(own...); !mask && !slices.Equal(want.Sums, memory.ViewAt[uint64](m, words[TablesSums], words[TablesNumEdges])[indptr[v]:at]) {
						t.Fatalf("row %d has other sums", v)
					}
				}
				if mask != (words[TablesAlias] == 0) {
					t.Errorf("mask %v: alias table at %d", mask, words[TablesAlias])
				}
				m.Release()
			}
			// Positive weights leave the CSC as it is.
			for i := range weights {
				weights[i]++
			}
			m, err := build(g, weights, false)
			if err != nil {
				t.Fatal(err)
			}
			if words := memory.ViewAt[int64](m, 0, TablesWords); words[TablesIndptr] != 0 || words[TablesSums] == 0 {
				t.Errorf("words %v of positive weights", words)
			}
			m.Release()
		}
	}
}

// Invalid weights are refused with the lowest edge id that has one.
func TestRefused(t *testing.T) {
	g := csctest.Graph([][]int64{{0, 1, 2}, {0}, {1, 2}}, 3, 64, 64, true)
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		weights := []float64{1, 1, bad, 1, bad, 1}
		_, err := build(g, weights, false)
		if want := fmt.Sprintf("w[2]: expected a finite weight >= 0, got %v", bad); !errors.Is(err, ErrValue) || err.Error() != "value error: "+want {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := build(g, []float64{1, 1, 1}, false); !errors.Is(err, ErrValue) {
		t.Errorf("too few weights: %v", err)
	}
	b := &Build{Relation: g, Len: 6, Name: "w", Value: func(int64) float64 { return 1 }}
	b.Stop.Store(true)
	if _, err := b.Run(); !errors.Is(err, csc.ErrStopped) {
		t.Errorf("stopped: %v", err)
	}
}

// Tables as they are made pass, and any that leads out of its row is named.
func TestCheck(t *testing.T) {
	degrees := make([][]int64, 300)
	for v := range degrees {
		degrees[v] = make([]int64, v%7)
	}
	g := csctest.Graph(degrees, 300, 32, 64, false)
	n := g.NumEdges()
	g.Alias, g.Sums = make([]uint64, n), make([]uint64, n)
	for v := range g.NumRows() {
		lo, hi := g.Indptr.Element(v), g.Indptr.Element(v+1)
		many := make([]float64, hi-lo)
		for i := range many {
			many[i] = 1 / float64(i+1)
		}
		new(Scratch).BuildTables(many, g.Alias[lo:hi], g.Sums[lo:hi])
	}
	if err := Check(g); err != nil {
		t.Fatal(err)
	}
	// Row 6 has six edges, from 15 on.
	for name, damage := range map[string]func(){
		"an alias outside": func() { g.Alias[17] = 6 << 32 },
		"a sum that falls": func() { g.Sums[17] = g.Sums[16] },
		"a sum too large":  func() { g.Sums[17] = 1 << 63 },
	} {
		alias, sum := g.Alias[17], g.Sums[17]
		damage()
		if err := Check(g); !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "tables[17]") {
			t.Errorf("%s: got %v", name, err)
		}
		g.Alias[17], g.Sums[17] = alias, sum
	}
}

// A page of the array that cannot be read any more is an error, whichever worker meets it.
func TestFault(t *testing.T) {
	g := csctest.Graph([][]int64{{0, 1, 2}, {0}, {1, 2}}, 3, 64, 64, false)
	page, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(page)
	b := &Build{Relation: g, Len: 6, Name: "w", Value: func(id int64) float64 { return float64(page[id]) }}
	if _, err := b.Run(); err == nil || !strings.Contains(err.Error(), "changed while w was read") {
		t.Errorf("got %v", err)
	}
}
