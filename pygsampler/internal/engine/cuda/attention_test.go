package cuda

import (
	"bytes"
	"math"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/layers"
)

// near compares what both engines made, of exponentials that are not the same, up to some ulps,
// where nothing is written beside it.
func (g *segments) near(t *testing.T, what string, got, want []byte, within float64) {
	t.Helper()
	if beside := got[len(want):]; !bytes.Equal(beside, bytes.Repeat([]byte{0x5A}, len(beside))) {
		t.Fatalf("%v: written beside %s", g, what)
	}
	a, b := g.floats(got[:len(want)]), g.floats(want)
	for i := range a {
		if diff := math.Abs(a[i] - b[i]); diff > within*(1+math.Abs(b[i])) || math.IsNaN(a[i]) != math.IsNaN(b[i]) {
			t.Fatalf("%v: %s[%d]: got %v, want %v", g, what, i, a[i], b[i])
		}
	}
}

// room is memory on the device for so many bytes, and some beside them.
func (g *segments) room(t *testing.T, bytes_ int) gpu.Address {
	t.Helper()
	return g.put(t, bytes.Repeat([]byte{0x5A}, bytes_+32), 0)
}

// attend compares attention and its gradients. With shared the heads share rows, the first of x.
func (g *segments) attend(t *testing.T, shared bool) {
	t.Helper()
	s := g.s
	// Scores are as wide as sums.
	wide := &segments{floatBits: max(g.floatBits, 32)}
	scores := func(n int, at float64) (content []byte) {
		all := make([]float64, n*g.heads)
		for i := range all {
			all[i] = 3 * math.Sin(at+float64(i))
		}
		return wide.values(all)
	}
	rows, edges := g.rows(), len(g.edges())
	value, score := g.floatBits/8, wide.floatBits/8
	grad := make([]float64, rows*g.width)
	for i := range grad {
		grad[i] = math.Cos(float64(i))
	}
	source, target := scores(g.sources, 1), scores(rows, 2)
	out, log := make([]byte, rows*g.width*value), make([]byte, rows*g.heads*score)
	alpha, pre, toTarget := make([]byte, edges*g.heads*value), make([]byte, edges*g.heads*score), make([]byte, rows*g.heads*score)
	here := &layers.Attention{Reduction: *g.onHost(SegmentSum, false, out, nil), Source: g.here(source), Target: g.here(target), Log: g.here(log), Slope: 0.25}
	here.Heads, here.Best, here.Shared = int64(g.heads), 0, int64(Word(shared))
	if err := here.Attend(alone{}); err != nil {
		t.Fatal(err)
	}
	there := &Attention{Segment: *g.onDevice(t, SegmentSum, false), Source: g.put(t, source, 0), Target: g.put(t, target, 0), Slope: 0.25}
	there.Heads, there.Out, there.Log, there.Shared = uint64(g.heads), g.room(t, len(out)), g.room(t, len(log)), shared
	if err := g.e.Attend(there, s); err != nil {
		t.Fatal(err)
	}
	within := map[int]float64{16: 1e-2, 32: 1e-4, 64: 1e-9}[g.floatBits]
	g.near(t, "out", download(t, s, there.Out, len(out)+32), out, within)
	// Rows without edges have no defined logarithm, so they are skipped.
	logs := download(t, s, there.Log, len(log)+32)
	for row := range rows {
		if at := row * g.heads * score; g.indptr[row] == g.indptr[row+1] {
			copy(logs[at:at+g.heads*score], log[at:])
		}
	}
	wide.near(t, "log", logs, log, within)
	here.Out, here.Alpha, here.Pre, here.ToTarget = g.here(g.values(grad)), g.here(alpha), g.here(pre), g.here(toTarget)
	if err := here.Attend(alone{}); err != nil {
		t.Fatal(err)
	}
	there.Out, there.Alpha = g.put(t, g.values(grad), g.off), g.put(t, bytes.Repeat([]byte{0}, len(alpha)), 0)
	there.Pre, there.ToTarget = g.put(t, make([]byte, len(pre)), 0), g.room(t, len(toTarget))
	if err := g.e.Attend(there, s); err != nil {
		t.Fatal(err)
	}
	g.near(t, "alpha", download(t, s, there.Alpha, len(alpha)+1)[:len(alpha)], alpha, within)
	// The gradient of a weight is the sum of many products.
	wide.near(t, "pre", download(t, s, there.Pre, len(pre)+1)[:len(pre)], pre, 20*within)
	wide.near(t, "to_target", download(t, s, there.ToTarget, len(toTarget)+32), toTarget, 20*within)
}

// softmax compares the softmax of weights as scores, and a gradient.
func (g *segments) softmax(t *testing.T) {
	t.Helper()
	s := g.s
	n := len(g.edges()) * g.heads * g.floatBits / 8
	within := map[int]float64{16: 1e-2, 32: 1e-5, 64: 1e-12}[g.floatBits]
	scores := append([]float64{}, g.weights...)
	for range g.padding * g.heads {
		scores = append(scores, math.NaN())
	}
	want := bytes.Repeat([]byte{0x5A}, n)
	here := &layers.Scores{
		Indptr: g.here(g.narrow(g.indptr)), X: g.here(g.values(scores)), Out: g.here(want), Rows: int64(g.rows()),
		Edges: int64(len(g.edges())), Heads: int64(g.heads), IDBits: int64(g.idBits), FloatBits: int64(g.floatBits), Brain: int64(Word(g.brain)),
	}
	there := &Scores{Segment: Segment{
		Indptr: g.put(t, g.narrow(g.indptr), 0), X: g.put(t, g.values(scores), 0), Out: g.room(t, n), Rows: uint64(g.rows()),
		Edges: uint64(len(g.edges())), Width: uint64(g.heads), Heads: 1, IDBits: g.idBits, FloatBits: g.floatBits, Brain: g.brain,
	}}
	for _, back := range []bool{false, true} {
		if back {
			grad := make([]float64, len(scores))
			for i := range grad {
				grad[i] = math.Sin(float64(i))
			}
			made := bytes.Clone(want)
			here.X, here.Grad, there.X, there.Grad = g.here(made), g.here(g.values(grad)), g.put(t, made, 0), g.put(t, g.values(grad), 0)
			there.Out = g.room(t, n)
		}
		if err := here.Softmax(alone{}); err != nil {
			t.Fatal(err)
		}
		if err := g.e.Softmax(there, s); err != nil {
			t.Fatal(err)
		}
		g.near(t, "softmax", download(t, s, there.Out, n+32), want, within)
	}
}

// Heads and widths of all kinds, with vectors and without, rows of all lengths, padding.
func TestAttend(t *testing.T) {
	e, s := device(t)
	for _, bits := range [][2]int{{32, 32}, {64, 32}, {64, 64}, {32, 16}} {
		for _, heads := range []int{1, 2, 4, 5} {
			for _, each := range []int{1, 2, 3, 8, 20, 64, 140} {
				g := randomSegments(t, e, s, everyDegree(), 60, heads*each, heads, bits[0], bits[1])
				g.padding, g.brain = 3, each%2 == 0
				g.attend(t, false)
				g.attend(t, true)
			}
		}
	}
	g := randomSegments(t, e, s, []int{2, 0, 2500, 1}, 40, 24, 2, 32, 32)
	g.off = 4
	g.attend(t, false)
	g.attend(t, true)
	randomSegments(t, e, s, []int{0, 0}, 5, 8, 2, 64, 32).attend(t, true)
}

// Heads that fill a warp, that do not, and more than it has lanes.
func TestSoftmax(t *testing.T) {
	e, s := device(t)
	for _, bits := range [][2]int{{32, 32}, {64, 32}, {64, 64}, {32, 16}} {
		for _, heads := range []int{1, 2, 3, 4, 7, 8, 16, 17, 31, 32, 33, 70} {
			g := randomSegments(t, e, s, everyDegree(), 60, heads, heads, bits[0], bits[1])
			g.padding, g.brain = 3, heads%2 == 0
			g.softmax(t)
		}
	}
	randomSegments(t, e, s, []int{5000, 0, 3}, 40, 2, 2, 32, 32).softmax(t)
}
