package rng

// #cgo noescape pgs_draw_left
// #cgo nocallback pgs_draw_left
// #include "pending_row.h"
import "C"

import "unsafe"

// PendingRow is a row of at most Short edges after TossOnce, without exclusions. It has Fanout
// positions from At on, and Edges sums from Start on; Refused has a bit for each of the positions
// that repeats an earlier one.
type PendingRow struct {
	At, Fanout, Start, Edges int64
	State, Refused           uint64
}

// DrawPending is Again for many short rows.
func DrawPending(positions []int64, sums []uint64, rows []PendingRow) {
	drawLeft(positions, sums, rows, widest)
}

func drawLeft(positions []int64, sums []uint64, rows []PendingRow, widest int) {
	for i := range rows {
		r := &rows[i]
		_, _ = positions[r.At:r.At+r.Fanout], sums[r.Start:r.Start+r.Edges]
	}
	if len(rows) > 0 {
		C.pgs_draw_left((*C.int64_t)(unsafe.SliceData(positions)), (*C.uint64_t)(unsafe.SliceData(sums)),
			(*C.struct_pgs_left)(unsafe.Pointer(unsafe.SliceData(rows))), C.int64_t(len(rows)), C.int(widest))
	}
}
