package csc

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// plainSpread is a Spread by sorting.
func plainSpread(degree []int64) Spread {
	sorted := slices.Sorted(slices.Values(degree))
	s := Spread{Counts: [][2]int64{}}
	for _, k := range sorted {
		if n := len(s.Counts); n > 0 && s.Counts[n-1][0] == k {
			s.Counts[n-1][1]++
		} else {
			s.Counts = append(s.Counts, [2]int64{k, 1})
		}
		if k == 0 {
			s.Zero++
		}
	}
	if n := len(sorted); n > 0 {
		s.Min, s.Max = sorted[0], sorted[n-1]
		s.Median, s.P99 = sorted[(n+1)/2-1], sorted[(99*n+99)/100-1]
	}
	return s
}

func plainProfile(g *Relation) Profile {
	in, out := make([]int64, g.NumNodes), make([]int64, g.NumNodes)
	p := Profile{}
	for v := range g.NumRows() {
		seen := map[int64]bool{}
		for e := g.Indptr.Element(v); e < g.Indptr.Element(v+1); e++ {
			u := g.Indices.Element(e)
			in[v]++
			out[u]++
			if u == v {
				p.Loops++
			}
			if seen[u] {
				p.Parallel++
			}
			seen[u] = true
		}
	}
	for v := range in {
		if in[v] == 0 && out[v] == 0 {
			p.Isolated++
		}
	}
	p.In, p.Out = plainSpread(in), plainSpread(out)
	return p
}

func profile(t *testing.T, g *Relation, parallel bool, step int64) Profile {
	t.Helper()
	d, err := NewDegrees(g, parallel)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	for row := int64(0); row < g.NumRows(); {
		next, err := d.Advance(step)
		if err != nil || next <= row {
			t.Fatalf("row %d after %d: %v", next, row, err)
		}
		row = next
	}
	return d.Profile()
}

// random is a graph with rows from lists of degrees, and some vertices past its rows.
func random(degrees []int64, beyond int64, bits int) *Relation {
	r := rand.New(rand.NewPCG(1, 2))
	nodes := int64(len(degrees)) + beyond
	indptr := []int64{0}
	g := &Relation{NumNodes: nodes, Indices: Array{Bits: bits}}
	for v, k := range degrees {
		for range k {
			u := r.Int64N(nodes)
			if r.IntN(8) == 0 {
				u = int64(v)
			}
			g.Indices.I32 = append(g.Indices.I32, int32(u))
			g.Indices.I64 = append(g.Indices.I64, u)
		}
		indptr = append(indptr, indptr[v]+k)
	}
	g.Indptr = Array{Bits: 64, I64: indptr}
	if bits == 32 {
		g.Indices.I64 = nil
	} else {
		g.Indices.I32 = nil
	}
	return g
}

func TestDegreesAreThoseOfALoop(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	few := []int64{0, 3, 0, 0, 12, 1, 7, 0}
	many := make([]int64, 5000)
	for v := range many {
		many[v] = r.Int64N(60) * r.Int64N(2)
	}
	// Several parts of one step, a row longer than a step, and degrees past the small ones.
	many[17], many[4000], many[4999] = 150_000, 9000, 0
	for _, degrees := range [][]int64{nil, {0}, few, many} {
		for _, bits := range []int{32, 64} {
			g := random(degrees, 3, bits)
			want := plainProfile(g)
			for _, step := range []int64{1 << 40, 100_000, 5} {
				if got := profile(t, g, true, step); !reflect.DeepEqual(got, want) {
					t.Errorf("%d rows, int%d, steps of %d: got %+v, want %+v", len(degrees), bits, step, got, want)
				}
			}
			want.Parallel = -1
			if got := profile(t, g, false, 1000); !reflect.DeepEqual(got, want) {
				t.Errorf("%d rows, int%d: without parallel edges: got %+v, want %+v", len(degrees), bits, got, want)
			}
		}
	}
}

func TestWideCountersAgree(t *testing.T) {
	g := random([]int64{4, 0, 9}, 1, 64)
	d, err := NewDegrees(g, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free()
	d.out32, d.out64 = nil, make([]uint64, g.NumNodes)
	if _, err := d.Advance(1 << 20); err != nil {
		t.Fatal(err)
	}
	want := plainProfile(g)
	want.Parallel = -1
	if got := d.Profile(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDegreesOfArraysThatChange(t *testing.T) {
	for name, spoil := range map[string]func(*Relation){
		"id":     func(g *Relation) { g.Indices.I64[2] = 99 },
		"below":  func(g *Relation) { g.Indices.I64[2] = -1 },
		"offset": func(g *Relation) { g.Indptr.I64[1] = 1 << 40 },
		"end":    func(g *Relation) { g.Indptr.I64[2] = 1 << 40 },
		"minus":  func(g *Relation) { g.Indptr.I64[1] = -5 },
	} {
		g := random([]int64{4, 4}, 0, 64)
		d, err := NewDegrees(g, true)
		if err != nil {
			t.Fatal(err)
		}
		spoil(g)
		_, err = d.Advance(100)
		if err == nil {
			_, err = d.Advance(100)
		}
		if err == nil {
			t.Errorf("%s: expected an error", name)
		}
		d.Profile()
		d.Free()
	}
}

func TestOutDegreesAreThoseOfALoop(t *testing.T) {
	for _, bits := range []int{32, 64} {
		g := random([]int64{4, 0, 9, 1, 700}, 3, bits)
		want := make([]int64, g.NumNodes)
		for e := range g.NumEdges() {
			want[g.Indices.Element(e)]++
		}
		d, err := NewDegrees(g, false)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]int64, g.NumNodes)
		if d.Out(got); slices.Max(got) != 0 {
			t.Errorf("int%d: degrees %v before anything is counted", bits, got)
		}
		for row := int64(0); row < g.NumRows(); {
			if row, err = d.Advance(3); err != nil {
				t.Fatal(err)
			}
		}
		if d.Out(got); !slices.Equal(got, want) {
			t.Errorf("int%d: got %v, want %v", bits, got, want)
		}
		// The wide form of graphs with 2^32 edges and more.
		for _, n := range d.out32 {
			d.out64 = append(d.out64, uint64(n))
		}
		d.out32 = nil
		if d.Out(got); !slices.Equal(got, want) {
			t.Errorf("int%d: in wide counters: got %v, want %v", bits, got, want)
		}
		d.Free()
	}
}
