package calibrate

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/costs"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Size is the size of the graph that a GPU is measured by: nodes, all of the same degree, and the
// number of nodes whose out-edges are selected. A graph of a 256th of the nodes shows the costs
// that do not grow with the edges.
type Size struct{ Vertices, Degree, Rows int }

// Large exceeds the caches of a GPU: 2^25 edges.
var Large = Size{1 << 20, 32, 1 << 15}

const smaller = 256

// MeasureDevice returns the costs of a GPU, in a second or two plus the time of the compiler.
func MeasureDevice(e *cuda.Engine, size Size) (d costs.Device, err error) {
	stream, err := e.Context().NewStream()
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	of := &onDevice{engine: e, stream: stream}
	var times [2][2][2]float64
	turn := 0.0
	for g, vertices := range []int{max(size.Vertices/smaller, 1), size.Vertices} {
		graph, free, err := e.Upload(plain(vertices, size.Degree))
		if err != nil {
			return d, err
		}
		for many, rows := range []int{1, min(size.Rows, vertices)} {
			if err == nil {
				times[g][0][many], err = of.best(graph, program.Usual, rows)
			}
		}
		// The first batch by out-edges finds them. The kernels for the large graph are compiled
		// by then, and there is room for a batch by in-edges, which takes more.
		begin := time.Now()
		if err == nil {
			_, err = of.batch(graph, program.Other, 1)
		}
		first := time.Since(begin)
		for many, rows := range []int{1, min(size.Rows, vertices)} {
			if err == nil {
				times[g][1][many], err = of.best(graph, program.Other, rows)
			}
		}
		begin = time.Now()
		if err == nil {
			_, err = of.batch(graph, program.Other, 1)
		}
		turn = float64((first - time.Since(begin)).Nanoseconds())
		if err = errors.Join(err, free()); err != nil {
			return d, err
		}
	}
	return size.costs(times, turn), nil
}

// costs are what times tell: of the smaller graph and the large one, by in-edges and by out-edges, of one row and of some.
func (size Size) costs(times [2][2][2]float64, turn float64) costs.Device {
	small, large, edges := times[0], times[1], float64(size.Vertices*size.Degree)
	more := edges * (1 - 1.0/smaller)
	// A time that is too short to measure is not zero.
	least := func(ns, least float64) float64 { return math.Max(ns, least) }
	d := costs.Device{
		In:   least((large[0][0]-small[0][0])/more, 1e-5),
		Bit:  least((large[1][0]-small[1][0])/more, 1e-5),
		Out:  least((large[1][1]-large[1][0])/float64((size.Rows-1)*size.Degree), 1e-5),
		Turn: least(turn/edges, 1e-5),
	}
	d.More = least(small[1][0]-small[0][0]+(d.In-d.Bit)*edges/smaller, 1)
	return d
}

// onDevice times batches of one program: A[R, :], and how many edges each column has there.
type onDevice struct {
	engine *cuda.Engine
	stream gpu.Stream
}

// between is which of its nodes is A[R, :].
const between = 4

// batch is the nanoseconds of A[R, :] by a layout, of so many rows.
func (o *onDevice) batch(g *cuda.Graph, layout program.Layout, rows int) (float64, error) {
	p, err := program.Parse(strings.Join([]string{
		"%0 = seeds", "%1 = unique %0", "%2 = whole", "%3 = column %2", "%4 = cross %1, %3", "%5 = count %4 axis=0", `return vectors "a"=%5`,
	}, "\n"), "")
	if err != nil {
		return 0, err
	}
	p = p.Marked(func(_ int, n *program.Node) {
		if n.Op == program.Cross {
			n.Layout = layout
		}
	})
	p.Timed = true
	seeds := make([]int64, rows)
	for i := range seeds {
		seeds[i] = int64(i) * (g.Nodes / int64(rows))
	}
	f, err := o.engine.Start(g, &cuda.Call{
		Plan: cuda.NewProgram(p), Batch: request.Batch{Seeds: csc.Array{Bits: 64, I64: seeds}}, Stream: o.stream.Handle(),
	})
	if err != nil {
		return 0, err
	}
	made, _, err := f.Wait(-1)
	if err != nil {
		return 0, err
	}
	m, err := made.Download(o.stream)
	if err = errors.Join(err, made.Memory.Free(o.stream)); err != nil {
		return 0, err
	}
	defer m.Release()
	return timesOf(m, p)[between] * 1e3, nil
}

// best is the least of several batches.
func (o *onDevice) best(g *cuda.Graph, layout program.Layout, rows int) (best float64, err error) {
	best = math.Inf(1)
	for range repeats {
		ns, err := o.batch(g, layout, rows)
		if err != nil {
			return 0, err
		}
		best = min(best, ns)
	}
	return best, nil
}

// plain is a graph of nodes that all have the same degree, and neighbors anywhere.
func plain(vertices, degree int) *csc.Relation {
	indptr, indices := make([]int64, vertices+1), make([]int32, vertices*degree)
	x := uint64(1)
	for i := range indices {
		x = x*6364136223846793005 + 1442695040888963407
		indices[i] = int32((x >> 33) % uint64(vertices))
	}
	for v := range indptr {
		indptr[v] = int64(v) * int64(degree)
	}
	return &csc.Relation{
		NumNodes: int64(vertices), Indptr: csc.Array{Bits: 64, I64: indptr}, Indices: csc.Array{Bits: 32, I32: indices},
	}
}
