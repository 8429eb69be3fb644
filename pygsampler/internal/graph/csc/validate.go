package csc

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
)

// ValueError is the error of an input that has the right type and a wrong value.
type ValueError struct{ Text string }

func (e *ValueError) Error() string { return e.Text }

func valueError(format string, args ...any) error {
	return &ValueError{fmt.Sprintf(format, args...)}
}

// Validate checks every invariant of the graph once, on all cores, and names the first violation.
func (g *Relation) Validate() error {
	if err := CheckSizes(g.NumRows(), g.NumNodes, g.Kinds, g.Indices.Bits); err != nil {
		return err
	}
	if err := CheckEnds(g.Indptr.Element(0), g.Indptr.Element(g.NumRows()), g.NumRows(), g.NumEdges()); err != nil {
		return err
	}
	if i := firstIn(g.Indptr, decrease[int32], decrease[int64]); i >= 0 {
		return Decrease(i, g.Indptr.Element(i-1), g.Indptr.Element(i))
	}
	bad32 := func(a []int32) int64 { return outsideIn(a, g.NumNodes) }
	bad64 := func(a []int64) int64 { return outsideIn(a, g.NumNodes) }
	if i := firstIn(g.Indices, bad32, bad64); i >= 0 {
		return Outside(i, g.NumNodes, g.Indices.Element(i))
	}
	if g.EdgeIDs.Bits != 0 && g.EdgeIDs.Len() != g.NumEdges() {
		return valueError("edge_ids: expected %d elements (len(indices)), got %d", g.NumEdges(), g.EdgeIDs.Len())
	}
	return nil
}

// CheckEdgeData returns an error if an edge array lacks a value for the id of some edge. It reads
// all edge ids that the caller has provided.
func (g *Relation) CheckEdgeData() error {
	for _, name := range slices.Sorted(maps.Keys(g.EdgeData)) {
		length := g.EdgeData[name].Len()
		if g.EdgeIDs.Bits == 0 && length < g.NumEdges() {
			return valueError("edata[%q]: expected a value for each of %d edges, got %d", name, g.NumEdges(), length)
		}
		bad32 := func(a []int32) int64 { return outsideIn(a, length) }
		bad64 := func(a []int64) int64 { return outsideIn(a, length) }
		if g.EdgeIDs.Bits == 0 {
			continue
		}
		if i := firstIn(g.EdgeIDs, bad32, bad64); i >= 0 {
			return valueError("edata[%q]: expected a value for each edge id, got %d of them and an edge with id %d", name, length, g.EdgeIDs.Element(i))
		}
	}
	return nil
}

// The parts of a validation, in order, for callers that find violations by other means: CheckSizes,
// CheckEnds, then a Decrease, then an id Outside.

// CheckSizes checks sizes without reading the arrays; kinds is as in Relation.
func CheckSizes(rows, nodes, kinds int64, idBits int) error {
	if rows < 0 {
		return valueError("indptr: expected at least 1 element, got 0")
	}
	switch {
	case kinds < 0 || kinds > MaxKinds:
		return valueError("kinds: expected at most %d types, got %d", MaxKinds, kinds)
	case kinds > 0 && (rows%kinds != 0 || rows/kinds != nodes):
		return valueError("indptr: expected %d rows for each of %d nodes, got %d rows", kinds, nodes, rows)
	case kinds == 0 && nodes < rows:
		return valueError("num_nodes: expected at least %d (len(indptr) - 1), got %d", rows, nodes)
	}
	if nodes > MaxNodes {
		return valueError("num_nodes: expected at most 2^48, got %d", nodes)
	}
	if idBits == 32 && nodes > MaxNodes32 {
		return valueError("num_nodes: expected at most 2^31 with int32 ids, got %d", nodes)
	}
	return nil
}

// CheckEnds checks the first and the last offset.
func CheckEnds(first, last, rows, edges int64) error {
	if first != 0 {
		return valueError("indptr[0]: expected 0, got %d", first)
	}
	if last != edges {
		return valueError("indptr[%d]: expected %d (len(indices)), got %d", rows, edges, last)
	}
	return nil
}

// Decrease returns the error for offset i, which is less than the previous offset.
func Decrease(i, before, got int64) error {
	return valueError("indptr[%d]: expected at least %d (indptr[%d]), got %d", i, before, i-1, got)
}

// Outside returns the error for indices[i], which is no node.
func Outside(i, nodes, got int64) error {
	return valueError("indices[%d]: expected an id in [0, %d), got %d", i, nodes, got)
}

func firstIn(a Array, bad32 func([]int32) int64, bad64 func([]int64) int64) int64 {
	if a.Bits == 32 {
		return bad32(a.I32)
	}
	return bad64(a.I64)
}

// decrease is the lowest index whose element is below the one before, or -1.
func decrease[T Index](a []T) int64 {
	return lowest(1, int64(len(a)), func(i int64) bool { return a[i] < a[i-1] }, func(lo, hi int64) bool {
		for i := lo; i < hi; i++ {
			if a[i] < a[i-1] {
				return true
			}
		}
		return false
	})
}

// outsideIn is the lowest index whose id is not in [0, n), or -1.
func outsideIn[T Index](a []T, n int64) int64 {
	return lowest(0, int64(len(a)), func(i int64) bool { return uint64(int64(a[i])) >= uint64(n) }, func(lo, hi int64) bool {
		for _, v := range a[lo:hi] {
			// One unsigned comparison refuses negative ids too.
			if uint64(int64(v)) >= uint64(n) {
				return true
			}
		}
		return false
	})
}

// lowest is the first index of [lo, hi) at which bad holds, or -1. anyBad is the
// same question of a whole range, as a tight loop, for all cores at once.
func lowest(lo, hi int64, bad func(int64) bool, anyBad func(lo, hi int64) bool) int64 {
	var found atomic.Bool
	Parallel(lo, hi, func(lo, hi int64) {
		if anyBad(lo, hi) {
			found.Store(true)
		}
	})
	if found.Load() {
		for i := lo; i < hi; i++ {
			if bad(i) {
				return i
			}
		}
	}
	return -1
}
