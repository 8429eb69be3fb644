package layers

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// lent is a crew of so many workers.
type lent int

func (l lent) Borrow(n int) int { return min(n, int(l)) }
func (l lent) Return(int)       {}

// pinned is what C is given of Go's memory: for good, since tests are short.
var pinned runtime.Pinner

func at[T any](s []T) int64 {
	if cap(s) == 0 {
		s = make([]T, 1)
	}
	s = s[:1]
	pinned.Pin(&s[0])
	return int64(uintptr(unsafe.Pointer(&s[0])))
}

type float interface{ float32 | float64 }
type id interface{ int32 | int64 }

// problem is a CSR of rows with these degrees over sources, and rows of values.
type problem[I id, F float] struct {
	indptr, indices []I
	x, weights      []F
	sources, width  int
	heads           int
}

func random[I id, F float](r *rand.Rand, degrees []int, sources, width, heads int) problem[I, F] {
	p := problem[I, F]{indptr: []I{0}, sources: sources, width: width, heads: heads}
	for _, d := range degrees {
		for range d {
			p.indices = append(p.indices, I(r.IntN(sources)))
			for range heads {
				p.weights = append(p.weights, F(r.NormFloat64()))
			}
		}
		p.indptr = append(p.indptr, I(len(p.indices)))
	}
	for range sources * width {
		p.x = append(p.x, F(r.NormFloat64()))
	}
	return p
}

func (p *problem[I, F]) reduction(kind int64, weighted bool, out []F, best []I) *Reduction {
	r := &Reduction{
		X: at(p.x), Indptr: at(p.indptr), Indices: at(p.indices), Out: at(out), Sources: int64(p.sources),
		Rows: int64(len(p.indptr) - 1), Edges: int64(len(p.indices)), Width: int64(p.width), Heads: 1, Kind: kind, Table: int64(p.sources),
		IDBits: 8 * int64(unsafe.Sizeof(p.indptr[0])), FloatBits: 8 * int64(unsafe.Sizeof(*new(F))),
	}
	if weighted {
		r.Weights, r.Heads = at(p.weights), int64(p.heads)
	}
	if best != nil {
		r.Best = at(best)
	}
	return r
}

// want is the same, edge by edge, in the order in which the engine adds.
func (p *problem[I, F]) want(kind int64, weighted bool) (out []F, best []I) {
	rows := len(p.indptr) - 1
	out, best = make([]F, rows*p.width), make([]I, rows*p.width)
	for row := range rows {
		for j := range p.width {
			sum, from := F(0), I(-1)
			for e := p.indptr[row]; e < p.indptr[row+1]; e++ {
				v := p.x[int(p.indices[e])*p.width+j]
				switch {
				case kind == Max:
					if from < 0 || v > sum || (v != v && sum == sum) {
						sum, from = v, p.indices[e]
					}
				case weighted:
					product := p.weights[int(e)*p.heads+j/(p.width/p.heads)] * v
					sum += product
				default:
					sum += v
				}
			}
			if d := p.indptr[row+1] - p.indptr[row]; kind == Mean && d > 0 {
				sum /= F(d)
			}
			out[row*p.width+j], best[row*p.width+j] = sum, from
		}
	}
	return out, best
}

func check[I id, F float](t *testing.T, r *rand.Rand) {
	t.Helper()
	degrees := []int{0, 1, 2, 0, 3, 7, 8, 9, 16, 17, 500, 0}
	for range 600 {
		degrees = append(degrees, r.IntN(12))
	}
	for _, width := range []int{1, 2, 3, 7, 8, 9, 16, 33, 100, 256} {
		p := random[I, F](r, degrees, 97, width, 1)
		for i := range p.x {
			if i%101 == 0 {
				p.x[i] = F(math.NaN())
			}
		}
		for _, workers := range []lent{0, 3} {
			for kind := int64(Sum); kind <= Max; kind++ {
				wantOut, wantBest := p.want(kind, false)
				out, best := make([]F, len(wantOut)), make([]I, len(wantOut))
				if kind != Max {
					best, wantBest = nil, nil
				}
				if err := p.reduction(kind, false, out, best).Reduce(workers); err != nil {
					t.Fatal(err)
				}
				same := func(a, b F) bool { return a == b || a != a && b != b }
				if !slices.EqualFunc(out, wantOut, same) || !slices.Equal(best, wantBest) {
					t.Fatalf("kind %d, width %d, %d workers: another result", kind, width, workers)
				}
			}
		}
	}
	for _, heads := range []int{1, 2, 4, 12} {
		p := random[I, F](r, degrees, 97, 24, heads)
		want, _ := p.want(Sum, true)
		out := make([]F, len(want))
		if err := p.reduction(Sum, true, out, nil).Reduce(lent(2)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out, want) {
			t.Fatalf("%d heads: another result", heads)
		}
		// Edge by edge the product of both rows.
		dots := make([]F, len(p.weights))
		rd := p.reduction(Sum, true, out, nil)
		rd.Weights = 0
		if err := rd.Dots(at(dots), lent(2)); err != nil {
			t.Fatal(err)
		}
		each := 24 / heads
		for row := range len(p.indptr) - 1 {
			for e := p.indptr[row]; e < p.indptr[row+1]; e++ {
				for h := range heads {
					sum := 0.0
					for j := h * each; j < (h+1)*each; j++ {
						sum += float64(p.x[int(p.indices[e])*24+j]) * float64(out[row*24+j])
					}
					if got := float64(dots[int(e)*heads+h]); math.Abs(got-sum) > 1e-4*(1+math.Abs(sum)) {
						t.Fatalf("%d heads, edge %d: got %v, want %v", heads, e, got, sum)
					}
				}
			}
		}
	}
}

func TestReduceAndDots(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check[int32, float32](t, r)
	check[int64, float32](t, r)
	check[int32, float64](t, r)
	check[int64, float64](t, r)
}

// Every edge is in the transposed CSR once, and those of a source keep their order.
func TestTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, sources := range []int{1, 2, 50} {
		for _, degrees := range [][]int{{}, {0}, {3}, {0, 5, 0, 200, 1}} {
			p := random[int64, float32](r, degrees, sources, 1, 1)
			starts, rows, places := make([]int64, sources+1), make([]int64, len(p.indices)), make([]int64, len(p.indices))
			// Entries behind the last offset are padding, also with invalid ids.
			p.indices = append(p.indices, 0, -9, 0)
			places = append(places, -5, -5, -5)
			if err := p.reduction(Sum, false, make([]float32, 1), nil).Transpose(at(starts), at(rows), at(places)); err != nil {
				t.Fatal(err)
			}
			alone := make([]int64, len(rows))
			if err := p.reduction(Sum, false, make([]float32, 1), nil).Transpose(at(starts), at(alone), 0); err != nil {
				t.Fatal(err)
			}
			p.indices = p.indices[:len(rows)]
			if !slices.Equal(alone, rows) || slices.Max(places[len(rows):]) != -5 {
				t.Fatalf("rows %v, alone %v; places %v", rows, alone, places)
			}
			if starts[0] != 0 || starts[sources] != int64(len(p.indices)) {
				t.Fatalf("starts %v of %d edges", starts, len(p.indices))
			}
			for s := range sources {
				part := places[starts[s]:starts[s+1]]
				if !slices.IsSorted(part) {
					t.Fatalf("edges of source %d: %v", s, part)
				}
				for i, e := range part {
					row := rows[starts[s]+int64(i)]
					if p.indices[e] != int64(s) || e < p.indptr[row] || e >= p.indptr[row+1] {
						t.Fatalf("edge %d of source %d in row %d", e, s, row)
					}
				}
			}
		}
	}
}

func TestRefused(t *testing.T) {
	x, out, ids := make([]float32, 20), make([]float32, 20), []int64{0, 1, 2}
	good := func() Reduction {
		return Reduction{
			X: at(x), Indptr: at([]int64{0, 2, 3}), Indices: at(ids), Out: at(out),
			Sources: 5, Table: 5, Rows: 2, Edges: 3, Width: 4, Heads: 1, IDBits: 64, FloatBits: 32,
		}
	}
	for text, change := range map[string]func(*Reduction){
		"32 or 64 bits":                   func(r *Reduction) { r.IDBits = 16 },
		"floats of 8":                     func(r *Reduction) { r.FloatBits = 8 },
		"or ids, got 6 rows":              func(r *Reduction) { r.Table = 6 },
		"expected degrees alone":          func(r *Reduction) { r.Degrees, r.Weights = r.Indptr, r.X },
		"places without ids":              func(r *Reduction) { r.Places, r.IDs = r.Indices, r.Indices },
		"a multiple of 8 edges":           func(r *Reduction) { r.Piece = 12 },
		"a kind from 0 to 2, got 3":       func(r *Reduction) { r.Kind = 3 },
		"heads that divide":               func(r *Reduction) { r.Heads = 3 },
		"sizes >= 0":                      func(r *Reduction) { r.Sources = -1 },
		"expected addresses":              func(r *Reduction) { r.X = 0 },
		"at most 2, got 0 to 3":           func(r *Reduction) { r.Edges = 2 },
		"at most 3, got 1 to 3":           func(r *Reduction) { r.Indptr = at([]int64{1, 2, 3}) },
		"values that do not fall":         func(r *Reduction) { r.Rows, r.Indptr = 3, at([]int64{0, 2, 1, 3}) },
		"indices[1]: expected a row of x": func(r *Reduction) { r.Indices = at([]int64{0, 5, 2}) },
		"in [0, 5), got -7":               func(r *Reduction) { r.Indices = at([]int64{0, 1, -7}) },
		"of[2]: expected a row of x":      func(r *Reduction) { r.IDs, r.Table = at([]int64{4, 3, 9, 1, 0}), 9 },
	} {
		r := good()
		change(&r)
		err := r.Reduce(lent(0))
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("expected %q, got %v", text, err)
		}
		if strings.Contains(text, "expected a row of x") && !errors.Is(err, request.ErrIndex) {
			t.Errorf("%v is no index error", err)
		}
		if text != "expected addresses" && r.IDs == 0 && r.Transpose(at(make([]int64, 6)), at(make([]int64, 4)), at(make([]int64, 4))) == nil {
			t.Errorf("%s: the transpose was made", text)
		}
	}
	r := good()
	if err := r.Reduce(lent(0)); err != nil {
		t.Error(err)
	}
}

// Rows that ids name, weights by place, rows over degrees, padding: each as the plain reduction of
// what it stands for.
func TestReduceOf(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	degrees := []int{3, 0, 1, 9, 14, 2}
	for _, width := range []int{1, 4, 21} {
		p := random[int32, float32](r, degrees, 11, width, 1)
		rows := len(degrees)
		reduced := func(change func(*Reduction)) []float32 {
			out := make([]float32, rows*width)
			reduction := p.reduction(Sum, false, out, nil)
			change(reduction)
			if err := reduction.Reduce(lent(1)); err != nil {
				t.Fatal(err)
			}
			return out
		}
		equal := func(name string, got, want []float32) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Fatalf("%s, width %d: got %v, want %v", name, width, got, want)
			}
		}
		want := reduced(func(*Reduction) {})
		ids := make([]int32, p.sources)
		table := make([]float32, 30*width)
		for s, id := range r.Perm(30)[:p.sources] {
			ids[s] = int32(id)
			copy(table[id*width:], p.x[s*width:(s+1)*width])
		}
		equal("of", reduced(func(r *Reduction) { r.X, r.IDs, r.Table = at(table), at(ids), 30 }), want)
		padded := append(slices.Clone(p.indices), -1, 99)
		equal("padded", reduced(func(r *Reduction) { r.Indices, r.Edges = at(padded), r.Edges+2 }), want)
		weighted := reduced(func(r *Reduction) { r.Weights = at(p.weights) })
		places, placed := make([]int32, len(p.indices)), make([]float32, len(p.indices))
		for e, place := range r.Perm(len(p.indices)) {
			places[e], placed[place] = int32(place), p.weights[e]
		}
		equal("places", reduced(func(r *Reduction) { r.Weights, r.Places = at(placed), at(places) }), weighted)
		offsets := []int32{0}
		for s := range p.sources {
			offsets = append(offsets, offsets[s]+1+int32(s%3))
		}
		over := make([]float32, len(p.indices))
		for e, s := range p.indices {
			over[e] = 1 / float32(1+s%3)
		}
		equal("degrees", reduced(func(r *Reduction) { r.Degrees = at(offsets) }), reduced(func(r *Reduction) { r.Weights = at(over) }))
		dots := make([]float32, len(padded))
		for i := range dots {
			dots[i] = -5
		}
		reduction := p.reduction(Sum, false, want, nil)
		reduction.Indices, reduction.Edges = at(padded), reduction.Edges+2
		reduction.X, reduction.IDs, reduction.Table = at(table), at(ids), 30
		if err := reduction.Dots(at(dots), lent(1)); err != nil {
			t.Fatal(err)
		}
		plain := make([]float32, len(p.indices))
		if err := p.reduction(Sum, false, want, nil).Dots(at(plain), lent(1)); err != nil {
			t.Fatal(err)
		}
		equal("dots", dots, append(plain, 0, 0))
	}
}

// bfloat16 and float16 are added as float32 and rounded once.
func TestReduceNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for brain := range int64(2) {
		const width = 5
		p := random[int64, float32](r, []int{40, 0, 3, 1}, 30, width, 1)
		narrow := make([]uint16, len(p.x))
		for i, v := range p.x {
			// Sixteenths below 16 are exact in both.
			sixteenths := math.Round(float64(v) * 4)
			p.x[i] = float32(sixteenths) / 16
			if brain == 1 {
				narrow[i] = uint16(math.Float32bits(p.x[i]) >> 16)
			} else {
				narrow[i] = half(p.x[i])
			}
		}
		for kind := int64(Sum); kind <= Max; kind++ {
			out, best := make([]uint16, 4*width), make([]int64, 4*width)
			reduction := p.reduction(kind, false, make([]float32, 1), best)
			reduction.X, reduction.Out, reduction.FloatBits, reduction.Brain = at(narrow), at(out), 16, brain
			if err := reduction.Reduce(lent(0)); err != nil {
				t.Fatal(err)
			}
			want, wantBest := p.want(kind, false)
			for i, v := range want {
				rounded := half(v)
				if brain == 1 {
					bits := math.Float32bits(v)
					rounded = uint16((bits + 0x7FFF + bits>>16&1) >> 16)
				}
				if out[i] != rounded || kind == Max && best[i] != wantBest[i] {
					t.Fatalf("brain %d, kind %d, value %d: got %#x, want %#x (%v)", brain, kind, i, out[i], rounded, v)
				}
			}
		}
	}
}

// half is a float16, found by trying all: the nearest, of two as near the even one.
func half(x float32) uint16 {
	best, far := uint16(0), math.Inf(1)
	for h := range uint16(0x7C00) {
		size := math.Ldexp(float64(h&0x3FF|0x400), int(h>>10)-25)
		if h < 0x400 {
			size = math.Ldexp(float64(h), -24)
		}
		if d := math.Abs(math.Abs(float64(x)) - size); d < far || d == far && h%2 == 0 {
			best, far = h, d
		}
	}
	if x < 0 {
		best |= 0x8000
	}
	return best
}
