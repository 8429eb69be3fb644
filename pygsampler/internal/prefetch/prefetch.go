// Package prefetch asks the processor to load memory that is read later.
package prefetch

import "unsafe"

// Element is the element type of tables and index lists.
type Element interface {
	~int32 | ~int64 | ~uint32 | ~uint64
}

// most is up to how many places At looks at.
const most = 4096

// Elements prefetches the elements of a table at all places, for a loop that reads them later. A loop of
// reads keeps as many of them in flight as the core can hold instructions; this loop, which waits
// for none, as many as the memory takes: weighted batches with replacement take about two thirds of
// their time with it. Places beyond the table are harmless.
func Elements[T, I Element](table []T, at []I) {
	if len(at) == 0 || len(table) == 0 {
		return
	}
	// Lines beyond the size of the first-level cache are evicted before they are read.
	at = at[:min(len(at), most)]
	t, a := unsafe.Pointer(&table[0]), unsafe.Pointer(&at[0])
	switch [2]uintptr{unsafe.Sizeof(table[0]), unsafe.Sizeof(at[0])} {
	case [2]uintptr{4, 4}:
		fetch32by32(t, a, len(at))
	case [2]uintptr{4, 8}:
		fetch32by64(t, a, len(at))
	case [2]uintptr{8, 4}:
		fetch64by32(t, a, len(at))
	default:
		fetch64by64(t, a, len(at))
	}
}

// Step is the number of elements that a loop reads between two calls of Ahead, and early the number
// of prefetched elements by then.
const (
	Step  = 64
	early = 128
)

// Ahead is At for a loop that reads the elements at all places in order, Step at a time: before it
// reads those from lo on, it prefetches later ones. So some prefetches are always in flight, into
// the second-level cache, which has room for more of them than the first has: one of 80,000
// elements of 20 MB takes 5 ns, and in rounds of 512 into the first 7.
func Ahead[T, I Element](table []T, at []I, lo int) {
	from, to := lo+early, min(lo+early+Step, len(at))
	if lo == 0 {
		from = 0
	}
	if from >= to || len(table) == 0 {
		return
	}
	t, a := unsafe.Pointer(&table[0]), unsafe.Pointer(&at[from])
	switch [2]uintptr{unsafe.Sizeof(table[0]), unsafe.Sizeof(at[0])} {
	case [2]uintptr{4, 4}:
		ahead32by32(t, a, to-from)
	case [2]uintptr{4, 8}:
		ahead32by64(t, a, to-from)
	case [2]uintptr{8, 4}:
		ahead64by32(t, a, to-from)
	default:
		ahead64by64(t, a, to-from)
	}
}

// All prefetches a whole table, one cache line at a time.
func All[T any](table []T) {
	if len(table) > 0 {
		fetchLines(unsafe.Pointer(&table[0]), len(table)*int(unsafe.Sizeof(table[0])))
	}
}

// aheadBytes is how far Copy prefetches: rows that lie there fit into the first-level cache, and are
// as many as a core loads at a time.
const aheadBytes = 1 << 12

// Copy copies the rows of ids, of row bytes each, from a table to out. Before it copies a row, it
// prefetches a later one, so that reads of the table are in flight while out is written.
func Copy[I int32 | int64](table []byte, row int64, ids []I, out []byte) {
	ahead := int(max(2, aheadBytes/row))
	for _, id := range ids[:min(ahead, len(ids))] {
		All(table[int64(id)*row:][:row])
	}
	for i, id := range ids {
		if i+ahead < len(ids) {
			All(table[int64(ids[i+ahead])*row:][:row])
		}
		copy(out[int64(i)*row:][:row], table[int64(id)*row:])
	}
}
