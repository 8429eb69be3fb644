package csc

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// FromCOO builds the CSC of the edges src[i] -> dst[i] by a stable counting sort on all cores: a
// row lists its edges in the order of the input, and edge id i is the edge's position there.
// numNodes -1 stands for the largest id plus one. The memory begins with the words above; indptr is
// int64, the other arrays are as wide as the ids (edge ids are int64 for more than 2^31 edges).
func FromCOO(src, dst Array, numNodes int64) (memory.Memory, error) {
	if src.Len() != dst.Len() {
		return memory.Memory{}, valueError("dst: expected %d elements (len(src)), got %d", src.Len(), dst.Len())
	}
	if src.Bits == 32 {
		return fromCOO(src.I32, dst.I32, numNodes, 32)
	}
	return fromCOO(src.I64, dst.I64, numNodes, 64)
}

func fromCOO[T Index](src, dst []T, numNodes int64, bits int) (memory.Memory, error) {
	edges := int64(len(src))
	given := numNodes >= 0
	if !given {
		numNodes = max(largest(src), largest(dst)) + 1
	}
	limit := int64(MaxNodes)
	if bits == 32 {
		limit = MaxNodes32
	}
	if numNodes > limit {
		return memory.Memory{}, valueError("num_nodes: expected at most %d, got %d", limit, numNodes)
	}
	for _, side := range []struct {
		name string
		ids  []T
	}{{"src", src}, {"dst", dst}} {
		if i := outsideIn(side.ids, numNodes); i >= 0 {
			expected := fmt.Sprintf("in [0, %d)", numNodes)
			if !given {
				expected = ">= 0"
			}
			return memory.Memory{}, valueError("%s[%d]: expected an id %s, got %d", side.name, i, expected, side.ids[i])
		}
	}
	eidBits := EdgeIDBits(0, bits, edges)
	offIndptr := align(COOWords * 8)
	offIndices := align(offIndptr + (numNodes+1)*8)
	offEdgeIDs := align(offIndices + edges*int64(bits/8))
	size := offEdgeIDs + edges*int64(eidBits/8)
	// A single huge id, such as a hash, would request this.
	if err := memory.Affordable(size + numNodes*8); err != nil {
		return memory.Memory{}, err
	}
	m, err := memory.New(size)
	if err != nil {
		return m, err
	}
	m.SetSize(size)
	copy(memory.ViewAt[int64](m, 0, COOWords),
		[]int64{numNodes, edges, int64(bits), int64(eidBits), offIndptr, offIndices, offEdgeIDs})
	indptr := memory.ViewAt[int64](m, offIndptr, numNodes+1)
	indices := memory.ViewAt[T](m, offIndices, edges)
	if eidBits == 32 {
		err = countingSort(src, dst, indptr, indices, memory.ViewAt[int32](m, offEdgeIDs, edges))
	} else {
		err = countingSort(src, dst, indptr, indices, memory.ViewAt[int64](m, offEdgeIDs, edges))
	}
	if err != nil {
		m.Release()
		return memory.Memory{}, err
	}
	return m, nil
}

// countingSort preserves the order of edges within a row: part p of the input writes its edges of a
// row after those of all earlier parts.
func countingSort[T, E Index](src, dst []T, indptr []int64, indices []T, ids []E) error {
	rows, edges := int64(len(indptr)-1), int64(len(dst))
	parts := sortParts(rows, edges)
	scratch, err := memory.Map(parts * rows * 8)
	if err != nil {
		return err
	}
	defer scratch.Free()
	counts := memory.Slice[uint64](scratch, parts*rows)
	each := func(f func(counts []uint64, lo, hi int64)) {
		Together(parts, func(p int64) { f(counts[p*rows:(p+1)*rows], edges*p/parts, edges*(p+1)/parts) })
	}
	each(func(counts []uint64, lo, hi int64) {
		for _, v := range dst[lo:hi] {
			counts[v]++
		}
	})
	firstPlaces(counts, indptr, parts, nil)
	each(func(counts []uint64, lo, hi int64) {
		for i := lo; i < hi; i++ {
			at := &counts[dst[i]]
			indices[*at] = src[i]
			ids[*at] = E(i)
			*at++
		}
	})
	return nil
}

// sortParts returns the number of parts of the edges that a stable counting sort processes at once.
// Each has its own array of row counts, so that their number is limited to where this costs less
// than the edges themselves.
func sortParts(rows, edges int64) int64 {
	return max(1, min(int64(runtime.GOMAXPROCS(0)), edges>>16, 2*edges/(rows+1)))
}

// firstPlaces converts the counts of all parts, [parts][rows], to the position of each part's first
// edge of each row, and writes the offsets of rows. It returns false if stop, which may be nil,
// ended it early.
func firstPlaces(counts []uint64, indptr []int64, parts int64, stop *atomic.Bool) bool {
	rows, next := int64(len(indptr)-1), int64(0)
	for v := range rows {
		if v%between == 0 && stop != nil && stop.Load() {
			return false
		}
		indptr[v] = next
		for p := range parts {
			c := &counts[p*rows+v]
			n := int64(*c)
			*c = uint64(next)
			next += n
		}
	}
	indptr[rows] = next
	return true
}

func largest[T Index](a []T) int64 {
	var mu sync.Mutex
	top := int64(-1)
	Parallel(0, int64(len(a)), func(lo, hi int64) {
		m := int64(-1)
		for _, v := range a[lo:hi] {
			m = max(m, int64(v))
		}
		mu.Lock()
		top = max(top, m)
		mu.Unlock()
	})
	return top
}

func align(n int64) int64 { return (n + 63) &^ 63 }

// ExpandRows returns the row number of every edge, counted from first on, as wide as indptr.
func ExpandRows(indptr Array, first int64) (memory.Memory, error) {
	size := indptr.Element(indptr.Len()-1) * int64(indptr.Bits/8)
	m, err := memory.New(max(size, 1))
	if err != nil {
		return m, err
	}
	m.SetSize(size)
	if indptr.Bits == 32 {
		Expand(indptr.I32, memory.ViewAt[int32](m, 0, size/4), int32(first))
	} else {
		Expand(indptr.I64, memory.ViewAt[int64](m, 0, size/8), first)
	}
	return m, nil
}

// Expand writes the row number of every edge, counted from first on.
func Expand[T Index](indptr, out []T, first T) {
	for v := range len(indptr) - 1 {
		row := out[indptr[v]:indptr[v+1]]
		for i := range row {
			row[i] = first + T(v)
		}
	}
}
