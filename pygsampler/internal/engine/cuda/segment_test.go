package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/layers"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// segments is a CSR with values on the host, and memory for what is made of them.
type segments struct {
	e *Engine
	s gpu.Stream

	sources, width, heads int
	idBits, floatBits     int
	indptr, indices       []int64
	x, weights            []float64
	brain                 bool    // whether floats of 16 bits are bfloat16
	ids                   []int64 // the row of x that each source has; nil: its own
	padding               int     // edges behind the last offset
	off                   int     // bytes that X and Out lie behind a multiple of 16
	memory                deviceMemory
	pinned                runtime.Pinner
}

// randomSegments is a CSR with these degrees over sources, with parallel edges.
func randomSegments(t *testing.T, e *Engine, s gpu.Stream, degrees []int, sources, width, heads, idBits, floatBits int) *segments {
	random := rand.New(rand.NewPCG(uint64(width), uint64(sources)))
	g := &segments{e: e, s: s, sources: sources, width: width, heads: heads, idBits: idBits, floatBits: floatBits, indptr: []int64{0}}
	for _, d := range degrees {
		for range d {
			g.indices = append(g.indices, random.Int64N(int64(sources)))
			for range heads {
				g.weights = append(g.weights, random.NormFloat64())
			}
		}
		g.indptr = append(g.indptr, int64(len(g.indices)))
	}
	for range sources * width {
		g.x = append(g.x, random.NormFloat64())
	}
	t.Cleanup(func() {
		g.pinned.Unpin()
		g.memory.free(t, s)
	})
	return g
}

func (g *segments) rows() int { return len(g.indptr) - 1 }

// narrow is integers in the width of ids.
func (g *segments) narrow(ids []int64) []byte {
	a := csctest.Array(ids, g.idBits)
	if len(ids) == 0 {
		return nil
	}
	return bytes.Clone(unsafe.Slice((*byte)(a.Pointer()), len(ids)*g.idBits/8))
}

// values is floats in their width.
func (g *segments) values(v []float64) []byte {
	var made []byte
	for _, one := range v {
		bits := math.Float32bits(float32(one))
		switch {
		case g.floatBits == 64:
			made = binary.LittleEndian.AppendUint64(made, math.Float64bits(one))
		case g.floatBits == 32:
			made = binary.LittleEndian.AppendUint32(made, bits)
		case g.brain:
			made = binary.LittleEndian.AppendUint16(made, uint16(bits>>16))
		default:
			made = binary.LittleEndian.AppendUint16(made, someHalf(bits))
		}
	}
	return made
}

// floats undoes values; NaNs are one.
func (g *segments) floats(content []byte) []float64 {
	made := make([]float64, len(content)*8/g.floatBits)
	for i := range made {
		switch {
		case g.floatBits == 64:
			made[i] = math.Float64frombits(binary.LittleEndian.Uint64(content[8*i:]))
		case g.floatBits == 32:
			made[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(content[4*i:])))
		case g.brain:
			made[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(content[2*i:])) << 16))
		default:
			made[i] = ofHalf(binary.LittleEndian.Uint16(content[2*i:]))
		}
	}
	return made
}

// someHalf is a float16 near a float32: zero, a subnormal, infinity and NaN where that is one.
func someHalf(bits uint32) uint16 {
	sign, exponent, fraction := uint16(bits>>16&0x8000), int(bits>>23&0xFF)-112, uint16(bits>>13&0x3FF)
	switch {
	case exponent == 0xFF-112:
		return sign | 0x7C00 | fraction
	case exponent > 30:
		return sign | 0x7BFF
	case exponent < 1:
		return sign | fraction>>4
	}
	return sign | uint16(exponent)<<10 | fraction
}

func ofHalf(half uint16) float64 {
	size := math.Ldexp(float64(half&0x3FF|0x400), int(half>>10&0x1F)-25)
	switch half >> 10 & 0x1F {
	case 0:
		size = math.Ldexp(float64(half&0x3FF), -24)
	case 0x1F:
		if size = math.Inf(1); half&0x3FF != 0 {
			size = math.NaN()
		}
	}
	if half&0x8000 != 0 {
		return -size
	}
	return size
}

// edges is indices with padding behind them, of ids that are none.
func (g *segments) edges() []int64 {
	all := append([]int64{}, g.indices...)
	for range g.padding {
		all = append(all, -3)
	}
	return all
}

// ofEdges is weights with padding behind them.
func (g *segments) ofEdges() []float64 {
	return append(append([]float64{}, g.weights...), make([]float64, g.padding*g.heads)...)
}

// table is x where ids say, and how many rows it has.
func (g *segments) table() ([]float64, int) {
	if g.ids == nil {
		return g.x, g.sources
	}
	rows := 3*g.sources + 1
	table := make([]float64, rows*g.width)
	for i := range table {
		table[i] = 1e3
	}
	for source, id := range g.ids {
		copy(table[int(id)*g.width:], g.x[source*g.width:][:g.width])
	}
	return table, rows
}

// put is the address of a content on the device.
func (g *segments) put(t *testing.T, content []byte, off int) gpu.Address {
	t.Helper()
	return g.memory.at(t, g.e, g.s, content, off)
}

// here is the address of a content for internal/engine/cpu/layers, good until the end of the test.
func (g *segments) here(content []byte) int64 {
	if len(content) == 0 {
		content = make([]byte, 8)
	}
	g.pinned.Pin(&content[0])
	return int64(uintptr(unsafe.Pointer(&content[0])))
}

// onDevice is the reduction with all that is read on the device.
func (g *segments) onDevice(t *testing.T, kind SegmentKind, weighted bool) *Segment {
	t.Helper()
	table, rows := g.table()
	r := &Segment{
		X: g.put(t, g.values(table), g.off), Indptr: g.put(t, g.narrow(g.indptr), 0), Indices: g.put(t, g.narrow(g.edges()), 0),
		Sources: uint64(g.sources), Rows: uint64(g.rows()), Edges: uint64(len(g.edges())), Width: uint64(g.width), Heads: 1,
		Kind: kind, IDBits: g.idBits, FloatBits: g.floatBits, Brain: g.brain, Table: uint64(rows),
	}
	if g.ids != nil {
		r.IDs = g.put(t, g.narrow(g.ids), 0)
	}
	if weighted {
		r.Weights, r.Heads = g.put(t, g.values(g.ofEdges()), 0), uint64(g.heads)
	}
	return r
}

// onHost is the same for internal/engine/cpu/layers.
func (g *segments) onHost(kind SegmentKind, weighted bool, out, best []byte) *layers.Reduction {
	table, rows := g.table()
	r := &layers.Reduction{
		X: g.here(g.values(table)), Indptr: g.here(g.narrow(g.indptr)), Indices: g.here(g.narrow(g.edges())),
		Out: g.here(out), Best: g.here(best), Sources: int64(g.sources), Rows: int64(g.rows()),
		Edges: int64(len(g.edges())), Width: int64(g.width), Heads: 1, Kind: int64(kind), IDBits: int64(g.idBits),
		FloatBits: int64(g.floatBits), Brain: int64(Word(g.brain)), Table: int64(rows),
	}
	if g.ids != nil {
		r.IDs = g.here(g.narrow(g.ids))
	}
	if weighted {
		r.Weights, r.Heads = g.here(g.values(g.ofEdges())), int64(g.heads)
	}
	return r
}

func (g *segments) String() string {
	return fmt.Sprintf("ids of %d and floats of %d bits (brain %v), %d rows, width %d, %d heads, %d bytes off, ids %v, %d padding",
		g.idBits, g.floatBits, g.brain, g.rows(), g.width, g.heads, g.off, g.ids != nil, g.padding)
}

// check compares both engines' bits, where nothing beside the result is written to.
func (g *segments) check(t *testing.T, kind SegmentKind, weighted bool) {
	t.Helper()
	s := g.s
	size, ids := g.rows()*g.width*g.floatBits/8, g.rows()*g.width*g.idBits/8
	want, wantBest := make([]byte, size), make([]byte, ids)
	if err := g.onHost(kind, weighted, want, wantBest).Reduce(alone{}); err != nil {
		t.Fatal(err)
	}
	const beside = 32
	r := g.onDevice(t, kind, weighted)
	untouched := bytes.Repeat([]byte{0x5A}, beside)
	r.Out = g.put(t, bytes.Repeat([]byte{0x5A}, size+2*beside), g.off) + beside
	if kind == SegmentMax {
		r.Best = g.put(t, bytes.Repeat([]byte{0x5A}, ids+beside), 0)
	}
	r.Bad = g.put(t, bytes.Repeat([]byte{0xFF}, 8), 0)
	if err := g.e.Reduce(r, g.s); err != nil {
		t.Fatal(err)
	}
	all := download(t, s, r.Out-beside, size+2*beside)
	if !bytes.Equal(all[:beside], untouched) || !bytes.Equal(all[beside+size:], untouched) {
		t.Fatalf("%v, kind %d: written beside the result", g, kind)
	}
	got, expected := g.floats(all[beside:][:size]), g.floats(want)
	for i := range got {
		if math.Float64bits(got[i]) != math.Float64bits(expected[i]) && !(math.IsNaN(got[i]) && math.IsNaN(expected[i])) {
			t.Fatalf("%v, kind %d, weighted %v: row %d, column %d: got %v, want %v", g, kind, weighted, i/g.width, i%g.width, got[i], expected[i])
		}
	}
	if kind == SegmentMax {
		best := download(t, s, r.Best, ids+beside)
		if !bytes.Equal(best, append(wantBest, untouched...)) {
			t.Fatalf("%v: other rows are the largest", g)
		}
	}
	if bad := download(t, s, r.Bad, 8); !bytes.Equal(bad, bytes.Repeat([]byte{0xFF}, 8)) {
		t.Fatalf("%v: a bad id at %x", g, bad)
	}
}

// all checks every kind, and the dots.
func (g *segments) all(t *testing.T) {
	t.Helper()
	for kind := SegmentSum; kind <= SegmentMax; kind++ {
		g.check(t, kind, false)
	}
	g.check(t, SegmentSum, true)
	g.check(t, SegmentMean, true)
	g.dots(t)
}

func (g *segments) dots(t *testing.T) {
	t.Helper()
	s := g.s
	y := make([]float64, g.rows()*g.width)
	for i := range y {
		y[i] = math.Sin(float64(i))
	}
	n := len(g.edges()) * g.heads * g.floatBits / 8
	want := make([]byte, n)
	rh := g.onHost(SegmentSum, false, g.values(y), nil)
	rh.Heads = int64(g.heads)
	if err := rh.Dots(g.here(want), alone{}); err != nil {
		t.Fatal(err)
	}
	r := g.onDevice(t, SegmentSum, false)
	r.Heads, r.Out = uint64(g.heads), g.put(t, g.values(y), g.off)
	to := g.put(t, bytes.Repeat([]byte{0x5A}, n+16), 0)
	if err := g.e.Dots(r, to, g.s); err != nil {
		t.Fatal(err)
	}
	all := download(t, s, to, n+16)
	if !bytes.Equal(all[n:], bytes.Repeat([]byte{0x5A}, 16)) {
		t.Fatalf("%v: written beside the dots", g)
	}
	got, expected := g.floats(all[:n]), g.floats(want)
	within := 1e-4
	if g.floatBits == 16 {
		within = 1e-2
	}
	for i := range got {
		if diff := math.Abs(got[i] - expected[i]); diff > within*(1+math.Abs(expected[i])) || math.IsNaN(diff) {
			t.Fatalf("%v: edge %d, head %d: got %v, want %v", g, i/g.heads, i%g.heads, got[i], expected[i])
		}
	}
}

// everyDegree is rows of 0 to 70 edges and a few of none behind them.
func everyDegree() (degrees []int) {
	for d := range 71 {
		degrees = append(degrees, d)
	}
	return append(degrees, 0, 0)
}

// The CPU's bits for every width, degree and dtype.
func TestSegmentEveryWidth(t *testing.T) {
	e, s := device(t)
	widths := []int{64, 100, 128, 256, 300}
	for w := 1; w <= 40; w++ {
		widths = append(widths, w)
	}
	for _, width := range widths {
		for _, bits := range [][2]int{{32, 32}, {64, 32}, {32, 64}, {64, 64}, {32, 16}, {64, 16}} {
			g := randomSegments(t, e, s, everyDegree(), 60, width, 1, bits[0], bits[1])
			g.brain = width%2 == 1
			g.all(t)
		}
	}
}

// Rows that ids name, in a table with others between them, and padding behind the edges.
func TestSegmentOfTable(t *testing.T) {
	e, s := device(t)
	for _, width := range []int{1, 2, 4, 6, 7, 8, 47, 64, 100, 128, 256, 602} {
		for _, bits := range [][2]int{{32, 32}, {64, 32}, {32, 64}, {64, 16}} {
			g := randomSegments(t, e, s, everyDegree(), 60, width, 1, bits[0], bits[1])
			g.padding, g.brain = 5, width%4 == 0
			for _, id := range rand.New(rand.NewPCG(uint64(width), 3)).Perm(180)[:60] {
				g.ids = append(g.ids, int64(id))
			}
			g.all(t)
		}
	}
	g := randomSegments(t, e, s, []int{4, 0, 30}, 20, 12, 3, 64, 32)
	g.padding, g.ids = 1, make([]int64, 20)
	g.all(t)
	// Ids of rows that the table does not have add nothing.
	ids := make([]int64, 20)
	for i := range ids {
		ids[i] = []int64{0, -1, 1 << 31, 61}[i%4]
	}
	g.ids = nil
	r := g.onDevice(t, SegmentSum, false)
	r.IDs, r.Table, r.Out = g.put(t, g.narrow(ids), 0), 20, g.put(t, make([]byte, 3*12*4), 0)
	r.Bad = g.put(t, bytes.Repeat([]byte{0xFF}, 8), 0)
	if err := e.Reduce(r, s); err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 12)
	first := -1
	for i, source := range g.indices[4:] {
		if source%4 != 0 {
			if first < 0 {
				first = 4 + i
			}
			continue
		}
		for j := range want {
			want[j] += float32(g.x[j])
		}
	}
	for i, source := range g.indices[:4] {
		if source%4 != 0 {
			first = i
			break
		}
	}
	for j, v := range g.floats(download(t, s, r.Out+2*12*4, 12*4)) {
		if v != float64(want[j]) {
			t.Fatalf("column %d: got %v, want %v", j, v, want[j])
		}
	}
	if place := binary.LittleEndian.Uint64(download(t, s, r.Bad, 8)); place != uint64(first) {
		t.Fatalf("a bad id at %d, want %d", place, first)
	}
}

// The gradients of sums with weights and of means: weights by place, rows over degrees.
func TestSegmentFactors(t *testing.T) {
	e, s := device(t)
	for _, bits := range [][2]int{{32, 32}, {64, 32}, {64, 64}, {32, 16}} {
		for _, heads := range []int{1, 3} {
			for _, each := range []int{1, 4, 33} {
				g := randomSegments(t, e, s, everyDegree(), 23, heads*each, heads, bits[0], bits[1])
				g.padding = 2
				places, degrees := make([]int64, len(g.edges())), []int64{0}
				for i, place := range rand.New(rand.NewPCG(9, 9)).Perm(len(g.edges())) {
					places[i] = int64(place)
				}
				for i := range g.sources {
					degrees = append(degrees, degrees[i]+1+int64(i%11))
				}
				for _, weighted := range []bool{false, true} {
					want := make([]byte, g.rows()*g.width*g.floatBits/8)
					here, there := g.onHost(SegmentSum, weighted, want, nil), g.onDevice(t, SegmentSum, weighted)
					if weighted {
						here.Places, there.Places = g.here(g.narrow(places)), g.put(t, g.narrow(places), 0)
					} else {
						here.Degrees, there.Degrees = g.here(g.narrow(degrees)), g.put(t, g.narrow(degrees), 0)
					}
					there.Out = g.put(t, make([]byte, len(want)), 0)
					if err := here.Reduce(alone{}); err != nil {
						t.Fatal(err)
					}
					if err := e.Reduce(there, s); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(download(t, s, there.Out, len(want)), want) {
						t.Fatalf("%v, weighted %v: another sum", g, weighted)
					}
				}
			}
		}
	}
}

// Weights of each head, also where a vector would span two; one long row among short ones; none.
func TestSegmentHeadsAndRows(t *testing.T) {
	e, s := device(t)
	for _, heads := range []int{1, 2, 4} {
		for _, each := range []int{1, 2, 3, 4, 8, 40} {
			g := randomSegments(t, e, s, []int{3, 0, 1, 9, 6}, 20, heads*each, heads, 32, 32)
			g.all(t)
			randomSegments(t, e, s, []int{3, 0, 1, 9, 6}, 20, heads*each, heads, 64, 64).all(t)
		}
	}
	for _, degrees := range [][]int{{}, {0}, {0, 0, 0}, {2, 3000, 0, 1}} {
		for _, width := range []int{3, 16} {
			randomSegments(t, e, s, degrees, 200, width, 1, 32, 32).all(t)
		}
	}
	randomSegments(t, e, s, []int{1, 2, 0, 5}, 9, 3*140, 3, 64, 32).all(t)
}

// Rows that do not begin at vectors, so that columns are read one by one.
func TestSegmentMisaligned(t *testing.T) {
	e, s := device(t)
	for _, floats := range []int{32, 64} {
		for off := 0; off < 16; off += floats / 8 {
			for _, width := range []int{4, 6, 36} {
				g := randomSegments(t, e, s, []int{5, 0, 2, 7}, 30, width, 2, 32, floats)
				g.off = off
				g.all(t)
			}
		}
	}
}

// The first of equal values is the largest, NaN is larger than all, and neither infinities nor
// zeros of both signs are lost.
func TestSegmentAwkwardValues(t *testing.T) {
	e, s := device(t)
	awkward := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, 1, math.SmallestNonzeroFloat32, -math.MaxFloat32}
	for _, bits := range [][2]int{{32, 32}, {64, 64}} {
		for _, width := range []int{1, 8, 33} {
			g := randomSegments(t, e, s, everyDegree()[:30], 40, width, 1, bits[0], bits[1])
			for i := range g.x {
				g.x[i] = awkward[rand.New(rand.NewPCG(uint64(i), 5)).IntN(len(awkward))]
			}
			for kind := SegmentSum; kind <= SegmentMax; kind++ {
				g.check(t, kind, false)
			}
			g.check(t, SegmentSum, true)
		}
	}
}

// A source gets the gradient of a row whose largest it was once, however many edges lead there.
func TestSegmentTaken(t *testing.T) {
	e, s := device(t)
	for _, bits := range [][2]int{{32, 32}, {64, 32}, {32, 64}, {64, 64}} {
		for _, width := range []int{1, 4, 6, 40, 132} {
			g := randomSegments(t, e, s, everyDegree()[:20], 7, width, 1, bits[0], bits[1])
			rows := g.rows()
			best := make([]byte, rows*width*g.idBits/8)
			if err := g.onHost(SegmentMax, false, make([]byte, rows*width*g.floatBits/8), best).Reduce(alone{}); err != nil {
				t.Fatal(err)
			}
			// The gradients, and the edges by their sources.
			grad := make([]float64, rows*width)
			for i := range grad {
				grad[i] = float64(float32(math.Sin(float64(i))))
			}
			there := &segments{e: e, s: s, padding: 3, sources: rows, width: width, heads: 1, idBits: bits[0], floatBits: bits[1], indptr: []int64{0}, x: grad}
			for source := range g.sources {
				for row := range rows {
					for _, from := range g.indices[g.indptr[row]:g.indptr[row+1]] {
						if from == int64(source) {
							there.indices = append(there.indices, int64(row))
						}
					}
				}
				there.indptr = append(there.indptr, int64(len(there.indices)))
			}
			want := make([]float64, g.sources*width)
			for i := range grad {
				from := int64(int32(binary.LittleEndian.Uint32(best[i*g.idBits/8:])))
				if from < 0 {
					continue
				}
				to := &want[int(from)*width+i%width]
				if *to += grad[i]; bits[1] == 32 {
					*to = float64(float32(*to))
				}
			}
			r := there.onDevice(t, SegmentTaken, false)
			r.Best = there.put(t, best, 0)
			r.Out = there.put(t, make([]byte, len(want)*g.floatBits/8), 0)
			if err := e.Reduce(r, s); err != nil {
				t.Fatal(err)
			}
			for i, v := range there.floats(download(t, s, r.Out, len(want)*g.floatBits/8)) {
				if v != want[i] {
					t.Fatalf("%v: source %d, column %d: got %v, want %v", g, i/width, i%width, v, want[i])
				}
			}
			there.memory.free(t, s)
		}
	}
}

// Ids that are no rows are not read, add nothing, and the first of their places is noted.
func TestSegmentBadIDs(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		for _, width := range []int{1, 12, 200} {
			g := randomSegments(t, e, s, []int{3, 9, 0, 30, 2}, 10, width, 1, bits, 32)
			for _, wrong := range []int64{-1, 10, math.MaxInt32, math.MinInt32} {
				all := g.indices
				g.indices = append([]int64{}, all...)
				for _, at := range []int{40, 17, 5} {
					g.indices[at] = wrong
				}
				for kind := SegmentSum; kind <= SegmentMax; kind++ {
					r := g.onDevice(t, kind, false)
					r.Out = g.put(t, make([]byte, g.rows()*width*4), 0)
					r.Bad = g.put(t, bytes.Repeat([]byte{0xFF}, 8), 0)
					if err := e.Reduce(r, s); err != nil {
						t.Fatal(err)
					}
					if place := binary.LittleEndian.Uint64(download(t, s, r.Bad, 8)); place != 5 {
						t.Fatalf("%v: a bad id at %d, want 5", g, place)
					}
					if kind == SegmentSum {
						want := make([]float32, width)
						for e := 3; e < 12; e++ {
							if g.indices[e] != wrong {
								for j := range width {
									want[j] += float32(g.x[int(g.indices[e])*width+j])
								}
							}
						}
						for j, v := range g.floats(download(t, s, r.Out+gpu.Address(width*4), width*4)) {
							if v != float64(want[j]) {
								t.Fatalf("%v: column %d: got %v, want %v", g, j, v, want[j])
							}
						}
					}
				}
				g.indices = all
			}
		}
	}
}
