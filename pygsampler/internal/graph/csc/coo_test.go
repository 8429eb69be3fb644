package csc_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// built is what FromCOO's memory holds.
type built struct {
	numNodes, numEdges, idBits, edgeIDBits int64
	indptr, indices, ids                   []int64
}

func read(m memory.Memory) (b built) {
	w := memory.ViewAt[int64](m, 0, csc.COOEdgeIDs+1)
	b.numNodes, b.numEdges, b.idBits, b.edgeIDBits = w[csc.COONumNodes], w[csc.COONumEdges], w[csc.COOBits], w[csc.COOEdgeIDBits]
	b.indptr = batchtest.Ints(m, w[csc.COOIndptr], b.numNodes+1, 64)
	b.indices = batchtest.Ints(m, w[csc.COOIndices], b.numEdges, b.idBits)
	b.ids = batchtest.Ints(m, w[csc.COOEdgeIDs], b.numEdges, b.edgeIDBits)
	return b
}

// buckets is the CSC by appending every edge to its row: stable by construction.
func buckets(src, dst []int64, numNodes int64, bits int64) built {
	if numNodes < 0 {
		numNodes = 0
		for i := range src {
			numNodes = max(numNodes, src[i]+1, dst[i]+1)
		}
	}
	rows, ids := make([][]int64, numNodes), make([][]int64, numNodes)
	for i, v := range dst {
		rows[v] = append(rows[v], src[i])
		ids[v] = append(ids[v], int64(i))
	}
	b := built{numNodes, int64(len(src)), bits, bits, []int64{0}, []int64{}, []int64{}}
	for v := range rows {
		b.indices = append(b.indices, rows[v]...)
		b.ids = append(b.ids, ids[v]...)
		b.indptr = append(b.indptr, int64(len(b.indices)))
	}
	return b
}

func TestFromCOO(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(5)) // as many parts, however few cores
	r := rand.New(rand.NewPCG(1, 2))
	type input struct {
		name     string
		src, dst []int64
		numNodes int64
	}
	inputs := []input{
		{"empty", nil, nil, -1},
		{"empty with vertices", nil, nil, 5},
		{"no vertices", nil, nil, 0},
		{"self loops", []int64{0, 1, 1, 0}, []int64{0, 1, 1, 0}, -1},
		{"parallel", []int64{2, 2, 2, 1}, []int64{0, 0, 0, 0}, -1},
		{"trailing vertices", []int64{0, 1}, []int64{1, 0}, 9},
		{"largest id is a source", []int64{8, 1}, []int64{1, 0}, -1},
	}
	// Few rows for many edges use several parts, many rows one.
	for _, k := range [][2]int64{{1, 1000}, {1000, 300_000}, {7, 200_000}, {100_000, 150_000}} {
		in := input{fmt.Sprintf("%d vertices, %d edges", k[0], k[1]), nil, nil, k[0]}
		for range k[1] {
			in.src = append(in.src, r.Int64N(k[0]))
			in.dst = append(in.dst, min(r.Int64N(k[0]), r.Int64N(k[0])))
		}
		inputs = append(inputs, in)
	}
	for _, in := range inputs {
		for _, bits := range []int{32, 64} {
			m, err := csc.FromCOO(csctest.Array(in.src, bits), csctest.Array(in.dst, bits), in.numNodes)
			if err != nil {
				t.Fatalf("%s: %v", in.name, err)
			}
			got, want := read(m), buckets(in.src, in.dst, in.numNodes, int64(bits))
			m.Release()
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %d bits:\n got %.300v\nwant %.300v", in.name, bits, got, want)
			}
		}
	}
}

func TestFromCOOErrors(t *testing.T) {
	before := memory.Count().Live
	for _, bits := range []int{32, 64} {
		for _, k := range []struct {
			src, dst []int64
			numNodes int64
			want     string
		}{
			{[]int64{1}, nil, -1, "dst: expected 1 elements (len(src)), got 0"},
			{[]int64{0, 3}, []int64{0, 0}, 3, "src[1]: expected an id in [0, 3), got 3"},
			{[]int64{0, 2}, []int64{0, -7}, 3, "dst[1]: expected an id in [0, 3), got -7"},
			{[]int64{-1}, []int64{-1}, -1, "src[0]: expected an id >= 0, got -1"},
			{[]int64{0}, []int64{0}, 1<<48 + 1, map[int]string{
				32: "num_nodes: expected at most 2147483648, got 281474976710657",
				64: "num_nodes: expected at most 281474976710656, got 281474976710657",
			}[bits]},
		} {
			_, err := csc.FromCOO(csctest.Array(k.src, bits), csctest.Array(k.dst, bits), k.numNodes)
			var value *csc.ValueError
			if !errors.As(err, &value) || err.Error() != k.want {
				t.Errorf("%d bits: got %v, want %s", bits, err, k.want)
			}
		}
	}
	// An id that is no index, a hash perhaps: refused before a page is touched.
	_, err := csc.FromCOO(csctest.Array([]int64{0}, 64), csctest.Array([]int64{1 << 46}, 64), -1)
	if !errors.Is(err, memory.ErrNoMemory) {
		t.Errorf("2^46 vertices: got %v", err)
	}
	if n := memory.Count().Live; n != before {
		t.Errorf("%d memories were lost", n-before)
	}
}

func TestExpandRows(t *testing.T) {
	for _, bits := range []int{32, 64} {
		for _, indptr := range [][]int64{{0}, {0, 0, 0}, {0, 3}, {0, 0, 2, 2, 5, 5}} {
			m, err := csc.ExpandRows(csctest.Array(indptr, bits), 7)
			if err != nil {
				t.Fatal(err)
			}
			var want []int64
			for v := range len(indptr) - 1 {
				for range indptr[v+1] - indptr[v] {
					want = append(want, int64(7+v))
				}
			}
			got := csc.Array{Bits: bits}
			if bits == 32 {
				got.I32 = memory.ViewAt[int32](m, 0, int64(len(want)))
			} else {
				got.I64 = memory.ViewAt[int64](m, 0, int64(len(want)))
			}
			if !slices.Equal(values(got), want) && len(want) > 0 {
				t.Errorf("%v: got %v, want %v", indptr, values(got), want)
			}
			m.Release()
		}
	}
}
