package cpu

import (
	"math"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/csc"
)

// plausible fails when chi-square statistic x with k degrees of freedom has a
// p-value below 1e-4 or above 1-1e-4: counts that fit too well are no sample
// either. All seeds are fixed, so a test that passes passes always.
func plausible(t *testing.T, x float64, k int, format string, args ...any) {
	t.Helper()
	// Wilson and Hilferty: the cube root of chi-square over k is nearly normal.
	v := 2 / (9 * float64(k))
	z := (math.Cbrt(x/float64(k)) - (1 - v)) / math.Sqrt(v)
	if p := math.Erfc(z/math.Sqrt2) / 2; p < 1e-4 || p > 1-1e-4 {
		t.Errorf(format+": chi-square %.1f with %d degrees of freedom, p = %.2g", append(args, x, k, p)...)
	}
}

// uniform is Pearson's statistic of counts that are equally likely.
func uniform(counts []float64) (x float64) {
	total := 0.0
	for _, c := range counts {
		total += c
	}
	each := total / float64(len(counts))
	for _, c := range counts {
		x += (c - each) * (c - each) / each
	}
	return x
}

// alike is a graph of n vertices that all have the same in-neighbours, the first
// degree vertices.
func alike(n, degree int64) *csc.Graph {
	indptr, indices := make([]int64, n+1), make([]int64, n*degree)
	for v := range n {
		indptr[v+1] = (v + 1) * degree
		for j := range degree {
			indices[v*degree+j] = j
		}
	}
	return &csc.Graph{Indptr: array(indptr, 64), Indices: array(indices, 64), NumNodes: n}
}

// choices is, for every seed of a batch and every hop, which edges of its row were
// taken: as an index among all subsets (or draws) of the given size.
func choices(t *testing.T, r Request, degree, fanout int64) [][]int64 {
	s := sample(t, &r, idle(0))
	out := make([][]int64, len(r.Fanouts))
	for hop := range out {
		b := s.Blocks[len(s.Blocks)-1-hop]
		for i := range r.Seeds.Len() {
			key := int64(0)
			for _, id := range b.EdgeID[b.Indptr[i]:b.Indptr[i+1]] {
				if r.Replace {
					key = key*degree + id%degree
				} else {
					key |= 1 << (id % degree)
				}
			}
			if b.Indptr[i+1]-b.Indptr[i] != fanout {
				t.Fatalf("row %d has %d edges", i, b.Indptr[i+1]-b.Indptr[i])
			}
			out[hop] = append(out[hop], key)
		}
	}
	return out
}

// What a batch takes of equal rows: every subset (every pair of draws, with
// replacement) as often as any other; and the joint choices of two rows that differ
// in vertex, hop, batch, epoch or seed as often as their product says.
func TestEngineChoosesUniformlyAndIndependently(t *testing.T) {
	const n, degree, fanout = 18000, 4, 2
	g := alike(n, degree)
	for _, replace := range []bool{false, true} {
		for _, queue := range []bool{false, true} {
			kinds := map[int64]int{3: 0, 5: 1, 9: 2, 6: 3, 10: 4, 12: 5}
			if replace {
				clear(kinds)
				for key := range int64(degree * degree) {
					kinds[key] = int(key)
				}
			}
			base := Request{
				Graph: g, Fanouts: []int64{fanout, fanout}, Replace: replace, Queue: queue,
				Seed: 5, Epoch: 3, Batch: 8, Seeds: array(upTo(n, n-1), 64),
			}
			first := choices(t, base, degree, fanout)
			for hop, chosen := range first {
				counts := make([]float64, len(kinds))
				for _, key := range chosen {
					kind, ok := kinds[key]
					if !ok {
						t.Fatalf("hop %d: choice %d is none", hop, key)
					}
					counts[kind]++
				}
				plausible(t, uniform(counts), len(kinds)-1, "replace=%v queue=%v hop %d", replace, queue, hop)
			}
			other := func(change func(*Request)) []int64 {
				r := base
				change(&r)
				return choices(t, r, degree, fanout)[0]
			}
			for name, chosen := range map[string][]int64{
				"next vertex": append(first[0][1:n:n], first[0][0]),
				"next hop":    first[1],
				"next batch":  other(func(r *Request) { r.Batch++ }),
				"next epoch":  other(func(r *Request) { r.Epoch++ }),
				"next seed":   other(func(r *Request) { r.Seed++ }),
				"high batch":  other(func(r *Request) { r.Batch |= 1 << 35 }),
			} {
				joint := make([]float64, len(kinds)*len(kinds))
				for v, key := range chosen {
					// Every second vertex: the pairs of neighbours then do not overlap.
					if v%2 == 0 {
						joint[kinds[first[0][v]]*len(kinds)+kinds[key]]++
					}
				}
				plausible(t, uniform(joint), len(joint)-1, "replace=%v queue=%v and %s", replace, queue, name)
			}
		}
	}
}

// Around excluded edges the rest is sampled as if the graph had nothing else.
func TestExcludedChoicesAreUniform(t *testing.T) {
	const n, degree = 12000, 9
	g := alike(n, degree)
	var ids []int64
	for v := range int64(n) {
		ids = append(ids, v*degree, v*degree+4, v*degree+8)
	}
	x, err := g.Exclude(ids)
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Graph: g, Fanouts: []int64{2}, Seeds: array(upTo(n, n-1), 64), Exclude: x}
	counts := map[int64]float64{}
	for _, key := range choices(t, r, degree, 2)[0] {
		counts[key]++
	}
	var flat []float64
	for key, c := range counts {
		if key&(1|1<<4|1<<8) != 0 {
			t.Fatalf("choice %b holds an excluded edge", key)
		}
		flat = append(flat, c)
	}
	if len(flat) != 15 {
		t.Fatalf("%d of 15 pairs", len(flat))
	}
	plausible(t, uniform(flat), 14, "pairs of six")
}
