package run

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/lanes"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
)

// chosenIDs are the edge ids of each destination of a block.
func chosenIDs(r result, block int) (ids [][]int64) {
	b := r.Blocks[block]
	for i := range b.Dst {
		ids = append(ids, b.EdgeIDs[b.Indptr[i]:b.Indptr[i+1]])
	}
	return ids
}

// naiveRace is the race by its definition, with the quotients as exact numbers and all of them sorted.
func naiveRace(p []float64, k int, state uint64) []int64 {
	type entry struct {
		j   int64
		key *big.Float
	}
	var entries []entry
	for j, w := range p {
		if w > 0 {
			e := rng.Exponential(rng.Draw(state, j))
			// Keys have the 52 bits of the quotient's fraction.
			q := new(big.Float).SetPrec(53).Quo(big.NewFloat(e), big.NewFloat(w))
			entries = append(entries, entry{int64(j), q})
		}
	}
	if k >= 0 && len(entries) > k {
		slices.SortStableFunc(entries, func(a, b entry) int { return a.key.Cmp(b.key) })
		entries = entries[:k]
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.j, b.j) })
	js := []int64{}
	for _, e := range entries {
		js = append(js, e.j)
	}
	return js
}

// naiveDraws are draws with replacement by their definition.
func naiveDraws(p []float64, k int, state uint64) []int64 {
	js, d, largest := []int64{}, 0, 0.0
	for j, w := range p {
		if w > 0 {
			js, d, largest = append(js, int64(j)), d+1, max(largest, w)
		}
	}
	if k < 0 || d == 0 {
		return js
	}
	_, e := math.Frexp(largest)
	bits := len(fmt.Sprintf("%b", d))
	sum, sums := new(big.Int), []*big.Int{}
	for _, j := range js {
		whole, _ := new(big.Float).SetMantExp(big.NewFloat(p[j]), 62-bits-e).Int(nil)
		if whole.Sign() == 0 {
			whole.SetInt64(1)
		}
		sum = new(big.Int).Add(sum, whole)
		sums = append(sums, sum)
	}
	drawn := []int64{}
	for j := range k {
		x := new(big.Int).Mul(new(big.Int).SetUint64(rng.Draw(state, j)), sum)
		x.Rsh(x, 64)
		at := slices.IndexFunc(sums, func(s *big.Int) bool { return s.Cmp(x) > 0 })
		drawn = append(drawn, js[at])
	}
	return drawn
}

// Keys for every small degree and fanout, with weights of 0, equal, tiny and huge ones, and for
// a row of thousands. The keys of C equal the keys of Go, for every scale of weights.
func TestKeys(t *testing.T) {
	draws, weights, places := []uint64{}, []float64{}, []int64{}
	for i := range 3000 {
		x := rng.Mix(uint64(i))
		switch i {
		case 0:
			x = 0
		case 1:
			x = math.MaxUint64
		}
		draws, places = append(draws, x), append(places, int64(2999-i))
		weights = append(weights, math.Ldexp(1+rng.Uniform(rng.Mix(x)), i*2097/3000-1074))
	}
	weights[7], weights[8] = math.SmallestNonzeroFloat64, math.MaxFloat64
	for _, n := range []int{0, 1, 7, 3000} {
		keys := make([]uint64, n)
		lanes.Keys(draws[:n], weights, places[:n], keys)
		for k, key := range keys {
			if want := raceKey(draws[k], weights[places[k]]); key != want {
				t.Fatalf("draw %#x, weight %v: expected key %#x, got %#x", draws[k], weights[places[k]], want, key)
			}
		}
	}
}

func TestIndividualByWeight(t *testing.T) {
	rows, seeds := csctest.EveryDegree()
	rows = append(rows, csctest.Steps(5000, 0))
	seeds = append(seeds, int64(len(rows)-1))
	g := csctest.Graph(rows, int64(len(rows)), 64, 64, false)
	kinds := map[string]func(i int) float64{
		"one":  func(int) float64 { return 1 },
		"some": func(i int) float64 { return float64(rng.Mix(uint64(i)) % 4) },
		"wild": func(i int) float64 {
			return math.Ldexp(rng.Uniform(rng.Mix(uint64(i))), int(rng.Mix(uint64(i+9))%2090)-1073)
		},
	}
	for name, weight := range kinds {
		w := make([]float64, g.NumEdges())
		for i := range w {
			w[i] = weight(i)
		}
		g.EdgeData = map[string]csc.Values{"w": csc.ValuesOf(w)}
		for k := int64(-1); k <= 40; k++ {
			for _, replace := range []bool{false, true} {
				of := batchOf(uint64(k+2), seeds...)
				p := parse(t, "w", "seeds", "slice %0", fmt.Sprintf("individual %%1, %%1 k=%d replace=%t site=5", k, replace), "return blocks %2")
				got := chosenIDs(sampled(t, p, g, of), 0)
				stream := rng.NewStream(of.Seed, of.Epoch, of.Number, 5, rng.Neighbors)
				for i, v := range seeds {
					start, end := g.Indptr.Element(v), g.Indptr.Element(v+1)
					naive := naiveRace
					if replace {
						naive = naiveDraws
					}
					if k > 3 && end-start > 70 && k%13 != 0 {
						continue // the naive one takes its time
					}
					want := naive(w[start:end], int(k), stream.State(uint64(v)))
					for j := range want {
						want[j] += start
					}
					if !slices.Equal(got[i], want) {
						t.Fatalf("%s, k=%d, replace %v, %d edges: got %v, want %v", name, k, replace, end-start, got[i], want)
					}
				}
			}
		}
	}
}

// The keys have the order of the quotients, whatever their scale.
func TestRaceKeys(t *testing.T) {
	type of struct {
		key uint64
		q   *big.Float
	}
	var all []of
	for i := range 3000 {
		x, w := rng.Mix(uint64(i)), math.Ldexp(rng.Uniform(rng.Mix(uint64(i)<<20)), int(rng.Mix(uint64(i)<<40)%2090)-1073)
		all = append(all, of{raceKey(x, w), new(big.Float).SetPrec(53).Quo(big.NewFloat(rng.Exponential(x)), big.NewFloat(w))})
		if bound := ratioAbove(raceKey(x, w)); tooLate(x, w, bound) {
			t.Fatalf("draw %#x, weight %g: too late for its own key", x, w)
		}
	}
	slices.SortFunc(all, func(a, b of) int { return cmp.Compare(a.key, b.key) })
	for i := range all[1:] {
		if all[i].q.Cmp(all[i+1].q) > 0 {
			t.Fatalf("keys %#x, %#x of %v, %v", all[i].key, all[i+1].key, all[i].q, all[i+1].q)
		}
	}
}

func TestKth(t *testing.T) {
	for n := 1; n < 400; n += 1 + n/7 {
		for _, span := range []uint64{1, 3, 1 << 60} {
			a := make([]uint64, n)
			for i := range a {
				a[i] = rng.Mix(uint64(i*n)) % span
			}
			sorted := slices.Sorted(slices.Values(a))
			for k := range n {
				if k < insertedKeys && kthOfFew(a, k) != sorted[k] || kth(slices.Clone(a), k) != sorted[k] {
					t.Fatalf("%d of %d below %d", k, n, span)
				}
			}
		}
	}
}

// Many candidates: some keys are made to guess by, and the rest only where they may count.
func TestCollectiveOfMany(t *testing.T) {
	rows := csctest.RandomRows(30_000, 3)
	g := csctest.Graph(rows, 30_000, 32, 64, false)
	x := make([]float64, g.NumNodes)
	for name, weight := range map[string]func(i int) float64{
		"one":     func(int) float64 { return 1 },
		"wild":    func(i int) float64 { return math.Ldexp(1, int(rng.Mix(uint64(i))%2000)-1000) },
		"strided": func(i int) float64 { return float64(1+i%2) * 1e-3 },
	} {
		for i := range x {
			x[i] = weight(i)
		}
		g.VertexData = map[string]csc.Values{"x": csc.ValuesOf(x)}
		for _, k := range []int{1, 50, 3000, 25_000} {
			p := parse(t, "", "seeds", "slice %0", "vertices name=\"x\"", fmt.Sprintf("collective %%1, %%2 k=%d replace=false site=1", k),
				"row %3", "row %1", "return vectors \"chosen\"=%4 \"rows\"=%5")
			of := batchOf(4, csctest.Steps(30_000, 1)...)
			r := sampled(t, p, g, of)
			got, all := r.Lists["chosen"], r.Lists["rows"]
			stream := rng.NewStream(of.Seed, of.Epoch, of.Number, 1, rng.Candidates)
			key := func(u int64) uint64 { return raceKey(rng.Draw(stream.State(uint64(u)), 0), x[u]) }
			slices.SortFunc(all, func(a, b int64) int { return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a, b)) })
			want := slices.Sorted(slices.Values(all[:min(k, len(all))]))
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s, k=%d: %d rows, want %d of %d", name, k, len(got), len(want), len(all))
			}
		}
	}
}

// trials is so many batches as show a law, or fewer under the race detector, which has nothing to find
// in their number.
func trials(n float64) float64 {
	if testing.Short() {
		return n / 20
	}
	return n
}

// The race of three edges with the weights 1, 2, 3, of which two are drawn: successive sampling.
func TestRaceLaw(t *testing.T) {
	g := csctest.Graph([][]int64{{0, 0, 0}}, 1, 64, 64, false)
	g.EdgeData = map[string]csc.Values{"w": csc.ValuesOf([]float64{1, 2, 3})}
	p := parse(t, "w", "seeds", "slice %0", "individual %1, %1 k=2 replace=false site=0", "return blocks %2")
	n := trials(60_000)
	counts := map[string]float64{}
	for number := range uint64(n) {
		counts[fmt.Sprint(chosenIDs(sampled(t, p, g, batchOf(number, 0)), 0)[0])]++
	}
	x := 0.0
	for set, chance := range map[string]float64{"[0 1]": 3.0 / 20, "[0 2]": 4.0 / 15, "[1 2]": 7.0 / 12} {
		x += (counts[set] - n*chance) * (counts[set] - n*chance) / (n * chance)
	}
	uniformity.Plausible(t, x, 2, "sets of two of three edges")
}

// LADIES on the test graph of its law: each row's chance to be among two of five, whose chances are in the ratio
// 1, 1, 2, 1, 1.
func TestCollectiveLaw(t *testing.T) {
	g := csctest.Graph([][]int64{{0, 1, 2}, {}, {}, {2, 3, 4}}, 5, 32, 32, false)
	p := parse(t, "", "seeds", "slice %0", "sum %1 axis=1", "collective %1, %2 k=2 replace=false site=0", "row %3",
		"collective %1, %2 k=2 replace=true site=1", "times %5", "row %5", "return vectors \"rows\"=%4 \"times\"=%6 \"of\"=%7")
	n := trials(40_000)
	var once, often [5]float64
	for number := range uint64(n) {
		r := sampled(t, p, g, batchOf(number, 0, 3))
		for _, u := range r.Lists["rows"] {
			once[u]++
		}
		sum := float32(0)
		for i, u := range r.Lists["of"] {
			often[u] += float64(r.Vectors["times"][i])
			sum += r.Vectors["times"][i]
		}
		if len(r.Lists["rows"]) != 2 || sum != 2 {
			t.Fatalf("batch %d: %v", number, r)
		}
	}
	x, y := 0.0, 0.0
	for u, share := range []float64{1, 1, 2, 1, 1} {
		pi := []float64{0, 0.35, 0.6}[int(share)] * n
		x += (once[u] - pi) * (once[u] - pi) / (pi * (1 - pi/n)) * 4 / 5
		of := 2 * n * share / 6
		y += (often[u] - of) * (often[u] - of) / of
	}
	if x > 25 {
		t.Errorf("rows of two among five: %v of %v", once, n)
	}
	uniformity.Plausible(t, y, 4, "rows drawn twice with replacement")
}
