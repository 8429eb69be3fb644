// Package lanes implements, in C, the loops of programs on the CPU whose elements are independent,
// or mostly so: several elements at a time if the processor has vectors of 512 bits. They read and
// write arrays of the batch only: a file behind the graph's arrays may be truncated, which only
// Go's loops survive.
package lanes

// #cgo CFLAGS: -O3 -std=c11
// #cgo LDFLAGS: -lm
// #cgo noescape pgs_sift
// #cgo nocallback pgs_sift
// #cgo noescape pgs_race
// #cgo nocallback pgs_race
// #cgo noescape pgs_claim
// #cgo nocallback pgs_claim
// #cgo noescape pgs_gather_rows
// #cgo nocallback pgs_gather_rows
// #cgo noescape pgs_settle_rows
// #cgo nocallback pgs_settle_rows
// #cgo noescape pgs_keys
// #cgo nocallback pgs_keys
// #cgo noescape pgs_above
// #cgo nocallback pgs_above
// #cgo noescape pgs_largest
// #cgo nocallback pgs_largest
// #cgo noescape pgs_sums
// #cgo nocallback pgs_sums
// #cgo noescape pgs_values
// #cgo nocallback pgs_values
// #cgo noescape pgs_outside
// #cgo nocallback pgs_outside
// #cgo noescape pgs_map
// #cgo nocallback pgs_map
// #include "lanes.h"
import "C"

import (
	"math/bits"
	"unsafe"
)

// widest is the bits of the widest vectors that there is code for; those that the processor has not are not used. A test
// sets it.
var widest = 512

func at[E, T any](a []T) *E { return (*E)(unsafe.Pointer(unsafe.SliceData(a))) }

// Sift writes the positions, from base on, of the ids whose bit is set among size bits, and the ids
// themselves unless kept is nil; it returns their number, and false if an id has no bit. places and
// kept have room for all. A loop in Go takes 1.6 ns per id if one of 60 is selected, this one 0.6.
func Sift[I int32 | int64](ids []I, members []uint64, size, base int64, places []int64, kept []I) (n int64, ok bool) {
	if len(ids) == 0 {
		return 0, true
	}
	if size > int64(len(members))*64 || len(places) < len(ids) || kept != nil && len(kept) < len(ids) {
		panic("lanes: no room")
	}
	n = int64(C.pgs_sift(unsafe.Pointer(&ids[0]), C.int(unsafe.Sizeof(ids[0])*8), C.int64_t(len(ids)), at[C.uint64_t](members), C.int64_t(size),
		C.int64_t(base), at[C.int64_t](places), unsafe.Pointer(unsafe.SliceData(kept)), C.int(widest)))
	return n, n >= 0
}

// Race writes the first draws of states, and their positions from base on, except those that are
// certainly later than a bound for their weights: -log(u) is at least 1 - u. It returns their
// number; draws and places have room for all.
func Race(states []uint64, weights []float64, bound float64, base int64, draws []uint64, places []int64) int64 {
	if len(states) == 0 {
		return 0
	}
	if len(weights) < len(states) || len(draws) < len(states) || len(places) < len(states) {
		panic("lanes: no room")
	}
	return int64(C.pgs_race(at[C.uint64_t](states), at[C.double](weights), C.int64_t(len(states)), C.double(bound), C.int64_t(base),
		at[C.uint64_t](draws), at[C.int64_t](places), C.int(widest)))
}

// Claim is cpu.Claim for a map of words: it replaces ids by their numbers, of which n exist, and
// appends new ids to nodes. ok is false if an id has no word. nodes has room for one more than all.
func Claim[I int32 | int64](ids []I, words []uint32, tag, limit uint32, nodes []I, n int64) (int64, bool) {
	if len(ids) == 0 {
		return n, true
	}
	if n >= int64(len(nodes)) {
		panic("lanes: no room")
	}
	n = int64(C.pgs_claim(unsafe.Pointer(&ids[0]), C.int(unsafe.Sizeof(ids[0])*8), C.int64_t(len(ids)), at[C.uint32_t](words), C.int64_t(len(words)),
		C.uint32_t(tag), C.uint32_t(limit), unsafe.Pointer(unsafe.SliceData(nodes)), C.int64_t(n), C.int(widest)))
	return n, n >= 0
}

// RowSums adds up values by their rows, as the two integers of Sums for each row; powers holds the
// units of the second integer in addition to those of Sums. Rows are numbered in the order in which
// they occur; most have one value, which is the sum itself, and only the integers of other rows are
// stored. Next is the number of rows so far.
type RowSums struct {
	Powers       [4]float64
	To           []float64 // of each row, with room for one more
	Parts, Slots []int64   // room for the integers and the row of those that have several values
	state        [2]int64
}

// Add adds the values of rows; it returns false if a row does not exist, or if there is no room.
// With an array of integers for all rows a value took 3 to 4 ns, which is 1 to 2 in this way.
func (s *RowSums) Add(values []float64, rows []int32, wide []int64) bool {
	n, of, bits := len(values), unsafe.Pointer(unsafe.SliceData(rows)), 32
	if wide != nil {
		of, bits = unsafe.Pointer(unsafe.SliceData(wide)), 64
	}
	if n == 0 {
		return true
	}
	if max(len(rows), len(wide)) < n || cap(s.To) <= len(s.To) || len(s.Parts) < 2*len(s.Slots) {
		panic("lanes: no room")
	}
	return C.pgs_gather_rows(at[C.double](values), of, C.int(bits), C.int64_t(n), (*C.double)(&s.Powers[0]), at[C.double](s.To), C.int64_t(len(s.To)),
		at[C.int64_t](s.Parts), at[C.int64_t](s.Slots), C.int64_t(len(s.Slots)), (*C.int64_t)(&s.state[0]), C.int(widest)) != 0
}

// End writes the sums of rows that have several values.
func (s *RowSums) End() {
	C.pgs_settle_rows(at[C.int64_t](s.Parts), at[C.int64_t](s.Slots), C.int64_t(s.state[1]), (*C.double)(&s.Powers[0]), at[C.double](s.To))
}

// Keys writes the keys of draws for the weights at places: an exponential variate over a weight, in
// a scale that does not overflow.
func Keys(draws []uint64, weights []float64, places []int64, keys []uint64) {
	if len(places) != len(draws) || len(keys) < len(draws) {
		panic("lanes: no room")
	}
	for _, p := range places {
		_ = weights[p]
	}
	C.pgs_keys(at[C.uint64_t](draws), at[C.double](weights), at[C.int64_t](places), C.int64_t(len(draws)), at[C.uint64_t](keys), C.int(widest))
}

// Draw replaces each draw by the index of the element whose cumulative sum it falls on: the first
// sum above the draw, after the draw is reduced to the last sum.
func Draw(sums, draws []uint64) {
	total := sums[len(sums)-1]
	for k, x := range draws {
		draws[k], _ = bits.Mul64(x, total)
	}
	if len(draws) > 0 {
		C.pgs_above(at[C.uint64_t](sums), C.int64_t(len(sums)), at[C.uint64_t](draws), C.int64_t(len(draws)), C.int(widest))
	}
}

// Largest returns the bits of the largest absolute value.
func Largest(values []float64) uint64 {
	return uint64(C.pgs_largest(at[C.double](values), C.int64_t(len(values)), C.int(widest)))
}

// Sums adds up both integers of each value: the integer part of its product with the first power,
// and of the remainder in units of the second, times the third.
func Sums(values []float64, powers [3]float64) (first, second int64) {
	var sums [2]int64
	C.pgs_sums(at[C.double](values), C.int64_t(len(values)), (*C.double)(&powers[0]), (*C.int64_t)(&sums[0]), C.int(widest))
	return sums[0], sums[1]
}

// Values converts pairs of sums, in units of two powers, to values.
func Values(parts []int64, powers [2]float64, to []float64) {
	if len(parts) < 2*len(to) {
		panic("lanes: no room")
	}
	C.pgs_values(at[C.int64_t](parts), C.int64_t(len(to)), (*C.double)(&powers[0]), at[C.double](to), C.int(widest))
}

// Outside reports whether a value is not positive and finite.
func Outside(values []float64) bool {
	return C.pgs_outside(at[C.double](values), C.int64_t(len(values)), C.int(widest)) != 0
}

// Op is a map of one or two numbers.
type Op int

// Min is y if it is less than x, else x; Max is the larger one. Relu and Sqrt have one argument, x.
const (
	Add  Op = C.PGS_ADD
	Sub  Op = C.PGS_SUB
	Mul  Op = C.PGS_MUL
	Div  Op = C.PGS_DIV
	Min  Op = C.PGS_MIN
	Max  Op = C.PGS_MAX
	Relu Op = C.PGS_RELU
	Sqrt Op = C.PGS_SQRT
)

// Map writes the op of each pair of elements; to may be one of the inputs. 512 of them take 0.1 us,
// while Go's loop takes 0.25.
func Map(op Op, to, x, y []float64) {
	if len(x) < len(to) || len(y) < len(to) {
		panic("lanes: no room")
	}
	C.pgs_map(C.int(op), at[C.double](to), at[C.double](x), at[C.double](y), C.int64_t(len(to)), C.int(widest))
}
