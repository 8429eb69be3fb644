package rng

// #cgo noescape pgs_distinct
// #cgo nocallback pgs_distinct
// #include "distinct.h"
import "C"

import "unsafe"

// DistinctMost is the largest fanout of DistinctRows.
const DistinctMost = C.PGS_MOST

// DistinctRows writes the CSC positions that rows contribute, one row after another: all positions
// of a row that has at most fanout edges, else those of Distinct, by the next of the states. Row i
// has degrees[i] positions from starts[i] on. to has exactly the length of all of them; 0 < fanout
// <= DistinctMost.
//
// A row that draws 10 of its edges takes 22 ns by itself, and 12 here if the processor has vectors
// of 512 bits; a row without draws saves most: batches of a graph like ogbn-mag take 0.7 of the
// time that they took a row at a time.
func DistinctRows(to, starts, degrees []int64, states []uint64, fanout int64) {
	distinctRows(to, starts, degrees, states, fanout, widest)
}

// FullRows is DistinctRows without draws: rows that would draw get arbitrary positions, as many as
// the fanout, which the caller replaces.
func FullRows(to, starts, degrees []int64, fanout int64) {
	distinctRows(to, starts, degrees, nil, fanout, widest)
}

func distinctRows(to, starts, degrees []int64, states []uint64, fanout int64, widest int) {
	if len(starts) == 0 {
		return
	}
	_ = degrees[len(starts)-1]
	C.pgs_distinct((*C.int64_t)(unsafe.SliceData(to)), C.int64_t(len(to)), (*C.int64_t)(unsafe.SliceData(starts)), (*C.int64_t)(unsafe.SliceData(degrees)),
		C.int64_t(len(starts)), (*C.uint64_t)(unsafe.SliceData(states)), C.int64_t(fanout), C.int(widest))
}
